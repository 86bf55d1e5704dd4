package rest

import (
	"net/http"

	"github.com/abide-run/abide/internal/api"
)

// A param is a parameter of a query.
type param struct {
	name, about string
	kind        string   // "string" if empty
	values      []string // possible values; any if nil
}

// The parameters that several routes have.
var (
	paramSession = param{name: "session", about: "only of this session"}
	paramFolder  = param{name: "folder", about: "absolute path of a folder"}
	paramLimit   = param{name: "limit", about: "length of the answer", kind: "integer"}
	paramWait    = param{name: "wait", about: "seconds to wait for something new, at most 60", kind: "integer"}
	paramAfter   = param{name: "after", about: "position of the last event that the reader has; 0 is the beginning", kind: "integer"}
)

// table returns all routes.
func (s *Server) table() []route {
	const get, post = http.MethodGet, http.MethodPost
	return []route{
		{method: post, path: "/sessions", summary: "Create a session", body: Create{}, answer: Session{}, status: http.StatusCreated, handle: s.create},
		{method: get, path: "/sessions", summary: "List sessions, the last modified first", answer: Sessions{}, handle: s.list, query: []param{
			{name: "state", about: "only sessions in this state", values: []string{stateNeedsYou, stateRunning, stateParked, stateUnfinished, stateDamaged, stateIdle}},
			paramFolder, {name: "text", about: "text in the name or the summary"}, {name: "idPrefix", about: "start of the id"},
			{name: "repository", about: "owner/name"}, {name: "branch", about: "branch that the folder has now"},
			{name: "since", about: "modified at this time or later, in RFC 3339"}, {name: "before", about: "modified before this time, in RFC 3339"},
			{name: "unlisted", about: "also sessions of agents, and those without a message", kind: "boolean"},
			paramLimit, {name: "cursor", about: "nextCursor of the page before"},
		}},
		{method: get, path: "/sessions/{id}", summary: "Show a session", answer: Detail{}, handle: s.known(s.show)},
		{method: http.MethodPatch, path: "/sessions/{id}", summary: "Change the name, the model or the mode of a session", body: Patch{}, answer: Detail{}, handle: s.known(s.change)},
		{method: http.MethodDelete, path: "/sessions/{id}", summary: "Delete a session", status: http.StatusNoContent, handle: s.known(s.remove)},
		{method: post, path: "/sessions/{id}/fork", summary: "Create a session that shares the events of another", body: Fork{}, answer: Session{}, status: http.StatusCreated, handle: s.known(s.fork)},
		{method: post, path: "/sessions/{id}/rewind", summary: "Take back an event and all after it", body: Rewind{}, answer: api.RewindResult{}, handle: s.known(s.rewind)},
		{method: post, path: "/sessions/{id}/rewind/preview", summary: "Show what a rewind would do", body: Rewind{}, answer: api.RewindPreview{}, handle: s.known(s.previewRewind)},
		{method: get, path: "/sessions/{id}/export", summary: "Read all events, one a line, as they are stored", text: "application/x-ndjson", handle: s.known(s.export)},
		{method: post, path: "/sessions/{id}/messages", summary: "Send a message", body: Message{}, answer: Sent{}, status: http.StatusAccepted, handle: s.known(s.send)},
		{method: http.MethodDelete, path: "/sessions/{id}/queue/{message}", summary: "Take a message back that waits", status: http.StatusNoContent, handle: s.known(s.unqueue)},
		{method: post, path: "/sessions/{id}/stop", summary: "Stop the turn of a session", body: Stop{}, answer: Stopped{}, handle: s.known(s.stop)},
		{method: get, path: "/sessions/{id}/events", summary: "Read or follow what happens in a session", answer: Page{}, stream: true, handle: s.known(s.events), query: []param{
			paramAfter, paramWait, paramLimit, {name: "last", about: "the last events instead", kind: "integer"}, {name: "before", about: "the last events before this position instead", kind: "integer"},
			{name: "stream", about: "true for a stream of events, like the header Accept: text/event-stream", kind: "boolean"},
		}},
		{method: get, path: "/sessions/{id}/log", summary: "Read the log as it is stored", answer: Log{}, handle: s.known(s.storedLog), query: []param{
			paramAfter, paramLimit, {name: "last", about: "the last events instead", kind: "integer"}, {name: "hash", about: "hash of the page before: the link is checked"},
		}},
		{method: get, path: "/sessions/{id}/verify", summary: "Check the hash chain of a session", answer: Verified{}, handle: s.known(s.verify)},
		{method: get, path: "/sessions/{id}/context", summary: "Show how full the context of a session is", answer: api.ContextResult{}, handle: s.known(s.context)},
		{method: get, path: "/sessions/{id}/servers", summary: "List the MCP servers of a session", answer: Servers{}, handle: s.known(s.servers)},
		{method: get, path: "/sessions/{id}/tasks/{task}", summary: "Show a command", answer: api.Task{}, handle: s.known(s.showTask)},
		{method: get, path: "/sessions/{id}/tasks/{task}/output", summary: "Read or follow the output of a command", answer: Output{}, stream: true, handle: s.known(s.output), query: []param{
			{name: "offset", about: "first byte", kind: "integer"}, {name: "tail", about: "number of last bytes instead", kind: "integer"},
			{name: "stream", about: "stdout or stderr; both if missing; true for a stream of events", values: []string{"stdout", "stderr", "true"}},
			{name: "wait", about: "wait for output or the end", kind: "boolean"},
		}},
		{method: post, path: "/sessions/{id}/tasks/{task}/input", summary: "Write to the standard input of a command", body: TaskInput{}, status: http.StatusNoContent, handle: s.known(s.input)},
		{method: post, path: "/sessions/{id}/tasks/{task}/stop", summary: "Stop a command", answer: api.Task{}, handle: s.known(s.stopTask)},
		{method: get, path: "/events", summary: "Follow several sessions, and changes in the list of all", stream: true, text: "text/event-stream", handle: s.allEvents, query: []param{
			{name: "sessions", about: "ID@POSITION of each session to follow, with commas between"},
		}},
		{method: get, path: "/questions", summary: "List the open questions of all sessions, the oldest first", answer: Questions{}, handle: s.listQuestions, query: []param{
			paramSession, paramWait, {name: "known", about: "version of the list that the reader has: wait for another one"},
		}},
		{method: get, path: "/questions/{question}", summary: "Show an open question", answer: Question{}, handle: s.showQuestion},
		{method: post, path: "/questions/{question}/answer", summary: "Answer a question", body: Answer{}, answer: Accepted{}, handle: s.answer, query: []param{
			{name: "session", about: "session of the question, so that an answer that is sent again is recognised after a restart"},
		}},
		{method: get, path: "/tasks", summary: "List the commands of a session, or of all", answer: Tasks{}, handle: s.listTasks, query: []param{
			paramSession, {name: "all", about: "also those that have ended", kind: "boolean"},
		}},
		{method: get, path: "/models", summary: "List the models", answer: api.ModelsResult{}, handle: s.models},
		{method: get, path: "/cost", summary: "Sum up what model requests have cost", answer: api.CostResult{}, handle: s.cost, query: []param{
			paramSession, {name: "since", about: "first day, like 2026-01-31"}, {name: "by", about: "session, day, model and purpose, with commas between"},
		}},
		{method: get, path: "/memory", summary: "List the pages of memory", answer: api.MemoryResult{}, handle: s.remembers(s.memory), query: []param{paramFolder}},
		{method: get, path: "/memory/page", summary: "Read a page of memory", answer: api.MemoryPage{}, handle: s.remembers(s.memoryPage), query: []param{
			paramFolder, {name: "page", about: "name of the page"}, {name: "user", about: "true for a page of the user", kind: "boolean"}, {name: "version", about: "the latest if missing", kind: "integer"},
		}},
		{method: get, path: "/memory/search", summary: "Search memory", answer: api.MemorySearchResult{}, handle: s.remembers(s.searchMemory), query: []param{
			paramFolder, {name: "q", about: "words"}, paramLimit,
		}},
		{method: get, path: "/rules", summary: "List what is allowed for longer than a session", answer: api.RulesResult{}, handle: s.rules},
		{method: post, path: "/rules/revoke", summary: "Take a rule back", body: Revoke{}, status: http.StatusNoContent, handle: s.revoke},
		{method: get, path: "/jobs", summary: "List the jobs that maintain memory", answer: api.JobsResult{}, handle: s.remembers(s.jobs), query: []param{paramSession}},
		{method: post, path: "/jobs/{job}/retry", summary: "Try a job again that was set aside", status: http.StatusNoContent, handle: s.remembers(s.retryJob)},
		{method: get, path: "/search", summary: "Search the messages of all sessions", answer: Found{}, handle: s.search, query: []param{
			{name: "q", about: `words, "phrases" and starts of words (refus*)`}, paramLimit,
		}},
		{method: get, path: "/workspaces", summary: "List the workspaces that sessions can work in", answer: api.WorkspacesResult{}, handle: s.workspaces},
		{method: get, path: "/status", summary: "Show what the server does", answer: Status{}, handle: s.status},
		{method: get, path: "/openapi.json", summary: "This document", text: "application/json", handle: s.document},
	}
}
