package upgradetest

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/model/offline"
)

var (
	writeWith    = flag.String("write", "", "write data folders with the program `BINARY`")
	onlyScenario = flag.String("scenario", "", "write only the folder of this `NAME`")
)

// fixtureDir is where folders are written: a place that says nothing about a machine.
const fixtureDir = "/tmp/abide-fixture"

// A scenario is what is done with the program before its folder is kept. It ends
// the program itself.
type scenario func(*program)

var scenarios = map[string]scenario{
	"turns":     writeTurns,
	"hooks":     writeHooks,
	"agents":    writeAgents,
	"contexts":  writeContexts,
	"memory":    writeMemory,
	"histories": writeHistories,
	"tasks":     writeTasks,
	"questions": writeQuestions,
	"many":      writeMany,
	"requests":  writeRequests,
	"killed":    writeKilled,
}

// played is the model of what the offline model cannot do. It is named by a relative
// path, so that it is found wherever the folder is copied to.
const played = "scripted:model.json"

var long = "It was a long day." + strings.Repeat(" Then something else happened.", 200)

var modelRules = object{"rules": []object{
	{"when": object{"tool": "write_extracted", "userContains": "We keep the log in SQLite."}, "reply": object{"calls": []object{extracted(object{
		"options": []string{"SQLite", "files"}, "chosen": "The log is kept in SQLite", "rationale": "it needs no server"})}}},
	{"when": object{"tool": "write_extracted"}, "reply": object{"calls": []object{extracted()}}},
	{"when": object{"userContains": "take your time"}, "reply": object{"text": "<overview>It took its time.</overview>", "delay": "5s"}},
	{"when": object{"userContains": "Please create a detailed summary"}, "reply": object{"text": "<overview>They talked about a day.</overview>"}},
	{"when": object{"user": "Tell me about your day."}, "reply": object{"text": long}},
	{"when": object{"user": "Wait for me."}, "reply": object{"text": "I have waited.", "delay": "5s"}},
	{"when": object{"user": "Fail."}, "reply": object{"error": object{"status": 401}}},
	{"when": object{"user": "Use the tool.", "step": 1}, "reply": object{"calls": []object{{"tool": "lookup", "arguments": object{"value": "x"}}}}},
	{"when": object{"user": "Write and look.", "step": 1}, "reply": object{"text": "First I look.", "calls": []object{
		{"tool": "view", "arguments": object{"path": notesPath}},
		{"tool": "task_create", "arguments": object{"subject": "look"}}}}},
	{"when": object{"user": "Write and look.", "step": 2}, "reply": object{"calls": []object{{"tool": "task_update", "arguments": object{"id": 1, "status": "completed"}}}}},
	{"reply": object{"text": "So be it."}},
}}

func extracted(decisions ...object) object {
	if decisions == nil {
		decisions = []object{}
	}
	return object{"tool": "write_extracted", "arguments": object{"decisions": decisions, "discussions": []object{}, "attempts": []object{}, "requests": []object{}}}
}

// hookAnswers is what the client says to hooks.
var hookAnswers = map[string]json.RawMessage{
	event.HookSessionStart:    json.RawMessage(`{"additionalContext":"The hook says hello."}`),
	event.HookPromptSubmitted: json.RawMessage(`{"additionalContext":"<system_reminder>The hook has read this.</system_reminder>"}`),
	event.HookPreToolUse:      json.RawMessage(`{"permissionDecision":"allow","permissionDecisionReason":"it is harmless"}`),
	event.HookPostToolUse:     json.RawMessage(`{"additionalContext":"The hook has seen the result."}`),
}

var (
	once        = object{"kind": "approve-once"}
	whole       = object{"kind": "approve-for-session"}
	no          = object{"kind": "reject", "feedback": "not today"}
	notesPath   = filepath.Join(fixtureDir, "work", "notes.txt")
	createNotes = `Use create with {"path":"` + notesPath + `","file_text":"one\ntwo\n"}`
	editNotes   = `Use edit with {"path":"` + notesPath + `","old_str":"two","new_str":"three"}`
	viewNotes   = `Use view with {"path":"` + notesPath + `"}`
)

func writeTurns(p *program) {
	p.open("s", offline.Name, nil)
	p.say("s", "Reply with exactly: HELLO")
	p.consent("s", createNotes, whole)
	p.consent("s", viewNotes, once)
	p.say("s", editNotes)
	p.consent("s", "Run `echo one`", once)
	p.consent("s", "Run `echo two`", no)
	p.say("s", `Call task_create with {"subject":"one"} and task_create with {"subject":"two"}, then reply with both results`)
	p.call(api.NameSet, object{"sessionId": "s", "name": "fixture"}, nil)
	p.call(api.SessionLog, object{"sessionId": "s", "message": "a remark"}, nil)

	idle := p.count("s", event.SessionIdle)
	p.send("s", "Use lookup with value 'x', then reply with the result", object{"abideKey": "look"})
	call := p.until("s", event.ExternalAsked, 1)
	p.send("s", "Reply with exactly: LATER", nil)
	p.send("s", "Reply with exactly: STEERED", object{"mode": event.ModeSteer})
	p.call(api.AnswerTool, object{"sessionId": "s", "requestId": requestID(p.t, call), "result": "found"}, nil)
	p.until("s", event.SessionIdle, idle+1)

	p.send("s", "Ask me: which colour?", nil)
	asked := p.until("s", event.UserInputAsked, 1)
	p.call(api.AnswerUserInput, object{"sessionId": "s", "requestId": requestID(p.t, asked), "response": object{"answer": "blue", "wasFreeform": true}}, nil)
	p.until("s", event.SessionIdle, idle+2)

	p.call(api.ModelSwitchTo, object{"sessionId": "s", "modelId": played}, nil)
	p.consent("s", "Write and look.", once)
	p.say("s", "Fail.")
	p.call(api.ModelSwitchTo, object{"sessionId": "s", "modelId": offline.Name}, nil)

	idle = p.count("s", event.SessionIdle)
	p.send("s", "Use lookup with value 'y', then reply with the result", nil)
	p.until("s", event.ExternalAsked, 2)
	p.send("s", "Reply with exactly: NEVER", nil)
	p.call(api.SessionAbort, object{"sessionId": "s", "reason": "enough"}, nil)
	p.until("s", event.SessionIdle, idle+1)

	p.ask(api.UIElicitation, object{"sessionId": "s", "message": "Which size?", "requestedSchema": object{"type": "object"}, "abideKey": "form"})
	form := p.until("s", event.ElicitationAsked, 1)
	p.call(api.AnswerElicitation, object{"sessionId": "s", "requestId": requestID(p.t, form), "result": object{"action": "accept", "content": object{"size": 3}}}, nil)
	p.ask(api.CommandsExecute, object{"sessionId": "s", "commandName": "tidy", "args": "all"})
	p.call(api.AnswerCommand, object{"sessionId": "s", "requestId": requestID(p.t, p.until("s", event.CommandExecute, 1))}, nil)
	p.call(api.ModeSet, object{"sessionId": "s", "mode": "autopilot"}, nil)
	p.call(api.ModeSet, object{"sessionId": "s", "mode": "interactive"}, nil)
	p.call(api.PermissionsReset, object{"sessionId": "s"}, nil)
	p.consent("s", "Run `echo three`", no)
	p.call(api.SessionResume, object{"sessionId": "s", "abide": object{"keep": true}, "abideKey": "again"}, nil)

	p.open("suspended", offline.Name, nil)
	p.send("suspended", "Use lookup with value 'z', then reply with the result", nil)
	p.until("suspended", event.ExternalAsked, 1)
	p.call(api.SessionSuspend, object{"sessionId": "suspended"}, nil)
	p.open("untouched", offline.Name, nil)
	p.leave()
}

func writeHooks(p *program) {
	p.open("s", offline.Name, object{"hooks": true})
	p.say("s", "Reply with exactly: HELLO")
	p.say("s", createNotes)
	p.say("s", viewNotes) // the hook allows it
	p.open("failing", played, object{"hooks": true})
	p.say("failing", "Fail.")
	p.say("failing", "Go on.")
	p.leave()
}

// skill writes a skill into the folder of the sessions and says where it is.
func (p *program) skill() object {
	p.write("work/skills/greet/SKILL.md", "---\nname: greet\ndescription: How to greet.\n---\n\nSay hello twice.\n")
	return object{
		"skillDirectories": []string{filepath.Join(p.dir, "work/skills")},
		"customAgents":     []object{{"name": "host", "prompt": "You are the host.", "tools": nil, "skills": []string{"greet"}}},
	}
}

func writeAgents(p *program) {
	const start = `Use task with {"description":"d","prompt":%q,"agent_type":"task","name":"n"}`
	p.open("s", offline.Name, p.skill())
	p.say("s", fmt.Sprintf(start, "Reply with exactly: DONE"))
	p.consent("s", fmt.Sprintf(start, "Run `echo agent`"), once)
	p.say("s", `Use skill with {"skill":"greet"}`)
	p.call(api.AgentSelect, object{"sessionId": "s", "name": "host"}, nil)
	p.say("s", "Reply with exactly: WELCOME")
	p.call(api.AgentDeselect, object{"sessionId": "s"}, nil)
	p.say("s", "Reply with exactly: BYE")

	with := p.skill()
	with["agent"] = "host"
	p.open("rewound", offline.Name, with)
	p.say("rewound", "Reply with exactly: WELCOME")
	p.call(api.HistoryRewind, object{"sessionId": "rewound", "eventId": eventID(p.t, p.until("rewound", event.UserMessage, 1))}, nil)
	p.say("rewound", "Reply with exactly: AGAIN")
	p.leave()
}

func writeContexts(p *program) {
	small := object{"modelCapabilities": object{"limits": object{"max_context_window_tokens": 9000}}}
	p.open("manual", played, nil)
	p.say("manual", "Tell me about your day.")
	p.say("manual", "And then?")
	p.call(api.HistoryCompact, object{"sessionId": "manual"}, nil)
	p.say("manual", "Go on.")
	p.call(api.HistoryUncompact, object{"sessionId": "manual"}, nil)
	p.say("manual", "And now?")
	p.open("undone", played, nil)
	p.say("undone", "Tell me about your day.")
	p.call(api.HistoryCompact, object{"sessionId": "undone"}, nil)
	p.call(api.HistoryUncompact, object{"sessionId": "undone"}, nil)
	p.open("small", played, small)
	for range 8 {
		p.say("small", "Tell me about your day.")
	}
	p.until("small", event.CompactionComplete, p.count("small", event.CompactionStart))

	p.open("beside", played, nil)
	p.say("beside", "Tell me about your day.")
	p.send("beside", "Use the tool.", nil)
	p.until("beside", event.ExternalAsked, 1)
	p.call(api.HistoryCompact, object{"sessionId": "beside"}, nil)
	p.call(api.AnswerTool, object{"sessionId": "beside", "requestId": requestID(p.t, p.until("beside", event.ExternalAsked, 1)), "result": "found"}, nil)
	p.until("beside", event.SessionIdle, 2)
	p.leave()
}

func writeMemory(p *program) {
	p.open("s", played, nil)
	p.say("s", "We keep the log in SQLite.")
	p.remembered()
	p.say("s", "And nothing else.")
	p.remembered()
	p.open("later", played, nil)
	p.say("later", "What do you know?")
	p.remembered()
	p.leave()
}

// remembered waits until no job is left.
func (p *program) remembered() {
	for {
		var list api.JobsResult
		p.call(api.Jobs, object{}, &list)
		if len(list.Jobs) == 0 {
			return
		}
		p.call(api.JobWait, object{"jobId": list.Jobs[0].JobID}, nil)
	}
}

func writeHistories(p *program) {
	p.open("s", offline.Name, nil)
	p.say("s", "Reply with exactly: ONE")
	p.consent("s", createNotes, whole)
	p.say("s", editNotes)
	p.say("s", "Reply with exactly: TWO")
	var fork api.ForkResult
	p.call(api.SessionsFork, object{"sessionId": "s", "name": "fork"}, &fork)
	edit := p.until("s", event.UserMessage, 3)
	p.call(api.HistoryRewind, object{"sessionId": "s", "eventId": eventID(p.t, edit)}, nil)
	p.say("s", "Reply with exactly: AFTER")
	p.call(api.HistoryTruncate, object{"sessionId": "s", "eventId": eventID(p.t, p.until("s", event.UserMessage, 5))}, nil)
	id := string(fork.SessionID)
	p.call(api.SessionResume, object{"sessionId": id, "abide": object{"keep": true}}, nil)
	p.say(id, "Reply with exactly: FORKED")
	var second api.ForkResult
	p.call(api.SessionsFork, object{"sessionId": id, "toEventId": eventID(p.t, p.until(id, event.UserMessage, 1))}, &second)
	p.open("asked", offline.Name, nil)
	p.send("asked", "Use lookup with value 'x', then reply with the result", nil)
	p.until("asked", event.ExternalAsked, 1)
	p.call(api.SessionsFork, object{"sessionId": "asked"}, nil)

	p.open("busy", offline.Name, object{"abide": object{"approve": "all"}})
	p.say("busy", fmt.Sprintf(untilThere, "four"))
	p.say("busy", `Use task_create with {"subject":"one"}`)
	p.call(api.QueueSetPaused, object{"sessionId": "busy", "paused": true}, nil)
	p.send("busy", "Reply with exactly: HELD", nil)
	p.ask(api.UIElicitation, object{"sessionId": "busy", "message": "Which size?", "requestedSchema": object{"type": "object"}})
	p.until("busy", event.ElicitationAsked, 1)
	p.call(api.SessionsFork, object{"sessionId": "busy"}, nil)
	p.write("work/four", "")
	p.until("busy", event.SystemNotification, 1)
	p.leave()
}

func eventID(t *testing.T, e event.Event) string {
	t.Helper()
	head, err := e.Head()
	if err != nil {
		t.Fatal(err)
	}
	return head.ID
}

// A command that ends when a file is there.
const untilThere = "Run `while [ ! -e %s ]; do sleep 0.05; done; echo ended` in the background"

func writeTasks(p *program) {
	all := object{"abide": object{"approve": "all"}}
	p.open("told", offline.Name, all)
	p.say("told", fmt.Sprintf(untilThere, "one"))
	p.write("work/one", "")
	p.until("told", event.SessionIdle, 2) // the turn of the notification is over
	p.say("told", "Reply with exactly: HEARD")

	with := p.skill()
	with["abide"] = all["abide"]
	p.open("skilled", offline.Name, with)
	p.say("skilled", fmt.Sprintf(untilThere, "two"))
	p.call(api.AgentSelect, object{"sessionId": "skilled", "name": "host"}, nil)
	p.write("work/two", "")
	p.until("skilled", event.SessionIdle, 2)
	p.say("skilled", "Reply with exactly: WELCOME")

	p.open("during", offline.Name, all)
	p.say("during", fmt.Sprintf(untilThere, "three"))
	p.send("during", "Use lookup with value 'x', then reply with the result", nil)
	p.until("during", event.ExternalAsked, 1)
	p.write("work/three", "")
	p.call(api.AnswerTool, object{"sessionId": "during", "requestId": requestID(p.t, p.until("during", event.ExternalAsked, 1)), "result": "found"}, nil)
	p.until("during", event.SystemNotification, 1)
	p.until("during", event.SessionIdle, 2)
	p.leave()
}

func writeQuestions(p *program) {
	open := func(id, prompt string, kind event.Type) {
		p.open(id, offline.Name, nil)
		p.send(id, prompt, nil)
		p.until(id, kind, 1)
	}
	open("permission", "Run `echo allowed`", event.PermissionAsked)
	open("external", "Use lookup with value 'x', then reply with the result", event.ExternalAsked)
	open("input", "Ask me: which colour?", event.UserInputAsked)
	open("agent", "Use task with {\"description\":\"d\",\"prompt\":\"Run `echo agent`\",\"agent_type\":\"task\",\"name\":\"n\"}", event.PermissionAsked)
	open("several", "Call lookup with value 'x' and bash with {\"command\":\"echo a\",\"description\":\"a\"} and lookup with value 'y', then reply with all results", event.PermissionAsked)
	p.until("several", event.ExternalAsked, 2)

	p.open("plan", offline.Name, nil)
	p.call(api.ModeSet, object{"sessionId": "plan", "mode": "plan"}, nil)
	p.send("plan", `Use exit_plan_mode with {"summary":"Do it."}`, nil)
	p.until("plan", event.ExitPlanAsked, 1)

	p.open("form", offline.Name, nil)
	p.say("form", "Reply with exactly: HELLO")
	p.ask(api.UIElicitation, object{"sessionId": "form", "message": "Which size?", "requestedSchema": object{"type": "object"}})
	p.until("form", event.ElicitationAsked, 1)

	p.open("command", offline.Name, nil)
	p.say("command", "Reply with exactly: HELLO")
	p.ask(api.CommandsExecute, object{"sessionId": "command", "commandName": "tidy", "args": "all"})
	p.until("command", event.CommandExecute, 1)

	open("queue", "Use lookup with value 'x', then reply with the result", event.ExternalAsked)
	p.send("queue", "Reply with exactly: SECOND", nil)
	p.call(api.CommandsEnqueue, object{"sessionId": "queue", "command": "/tidy"}, nil)
	p.send("queue", "Reply with exactly: THIRD", nil)

	p.open("paused", offline.Name, nil)
	p.say("paused", "Reply with exactly: HELLO")
	p.call(api.QueueSetPaused, object{"sessionId": "paused", "paused": true}, nil)
	p.send("paused", "Reply with exactly: HELD", nil)
	p.kill() // a client that leaves takes its forms with it
}

// writeRequests does what clients can do to a session beside talking to it.
func writeRequests(p *program) {
	p.write("work/AGENTS.md", "Be brief.\n")
	p.open("s", offline.Name, nil)
	p.say("s", "Reply with exactly: HELLO")
	p.call(api.PermissionsSetApproveAll, object{"sessionId": "s", "enabled": true}, nil)
	p.say("s", "Run `echo allowed`")
	p.call(api.SessionLog, object{"sessionId": "s", "message": "mind this", "level": "warning"}, nil)
	p.call(api.PlanUpdate, object{"sessionId": "s", "content": "# Plan"}, nil)
	p.call(api.RecordContext, object{"sessionId": "s", "context": object{"cwd": fixtureDir + "/work", "branch": "main"}}, nil)
	p.call(api.WorkspaceCreateFile, object{"sessionId": "s", "path": "a", "content": "text"}, nil)
	p.call(api.ModeSet, object{"sessionId": "s", "mode": "autopilot"}, nil)
	p.say("s", `Use task_complete with {"summary":"all is done"}`)

	p.call(api.ModeSet, object{"sessionId": "s", "mode": "plan"}, nil)
	idle := p.count("s", event.SessionIdle)
	p.send("s", `Use exit_plan_mode with {"summary":"Do it."}`, nil)
	plan := p.until("s", event.ExitPlanAsked, 1)
	p.call(api.AnswerExitPlan, object{"sessionId": "s", "requestId": requestID(p.t, plan), "response": object{"approved": true, "selectedAction": "interactive"}}, nil)
	p.until("s", event.SessionIdle, idle+1)

	p.call(api.RegisterInterest, object{"sessionId": "s", "eventType": event.CommandQueued}, nil)
	p.call(api.CommandsEnqueue, object{"sessionId": "s", "command": "/deploy"}, nil)
	queued := p.until("s", event.CommandQueued, 1)
	p.send("s", "Reply with exactly: STOPPED", nil)
	p.call(api.CommandsRespond, object{"sessionId": "s", "requestId": requestID(p.t, queued), "result": object{"handled": true, "stopProcessingQueue": true}}, nil)

	p.open("declined", offline.Name, nil)
	p.send("declined", "Use lookup with value 'x', then reply with the result", nil)
	p.until("declined", event.ExternalAsked, 1)
	p.call(api.SessionResume, object{"sessionId": "declined", "abide": object{"keep": true, "redeliver": true}, "continuePendingWork": true}, nil)
	p.call(api.SessionDestroy, object{"sessionId": "declined"}, nil)
	p.call(api.SessionResume, object{"sessionId": "declined", "abide": object{"keep": true}, "continuePendingWork": false}, nil)

	p.open("ended", offline.Name, nil)
	p.say("ended", "Reply with exactly: HELLO")
	p.call(api.SessionShutdown, object{"sessionId": "ended", "reason": "enough"}, nil)
	p.leave()
}

// writeMany makes more requests than keys are remembered after one input that has a key.
func writeMany(p *program) {
	p.open("s", offline.Name, nil)
	p.send("s", "Reply with exactly: KEYED", object{"abideKey": "first"})
	p.until("s", event.SessionIdle, 1)
	for i := range 70 {
		p.call(api.QueueSetPaused, object{"sessionId": "s", "paused": i%2 == 0}, nil)
	}
	p.say("s", "Reply with exactly: UNKEYED")
	p.leave()
}

// writeKilled kills the program while everything is under way.
func writeKilled(p *program) {
	const forever = "echo begun; touch %[1]s; while [ -e %[1]s ]; do sleep 0.05; done"
	all := object{"abide": object{"approve": "all"}}
	p.open("compacting", played, nil)
	p.say("compacting", "Tell me about your day.")
	p.hold = "hooked"
	p.open("hooked", offline.Name, object{"hooks": true})
	p.open("running", offline.Name, all)
	p.say("running", "Reply with exactly: HELLO")
	p.open("task", offline.Name, all)
	p.say("task", "Run `"+fmt.Sprintf(forever, "detached")+"` in the background")
	p.open("asking", played, nil)
	p.say("asking", "Hello.")

	p.send("running", "Run `"+fmt.Sprintf(forever, "begun")+"`", nil)
	for !p.exists("work/begun") {
		p.call(api.Ping, object{}, nil)
	}
	p.send("hooked", "Reply with exactly: HOOKED", nil)
	p.until("hooked", event.HookStart, 1)
	p.ask(api.HistoryCompact, object{"sessionId": "compacting", "customInstructions": "take your time"})
	p.until("compacting", event.CompactionStart, 1)
	p.send("asking", "Wait for me.", nil)
	p.until("asking", event.AssistantTurnStart, 2)
	p.kill()
}

func (p *program) write(name, text string) {
	p.t.Helper()
	path := filepath.Join(p.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		p.t.Fatal(err)
	}
}

func (p *program) exists(name string) bool {
	_, err := os.Stat(filepath.Join(p.dir, name))
	return err == nil
}

// TestWriteFolders writes the archives in testdata. It needs to be asked for.
func TestWriteFolders(t *testing.T) {
	if *writeWith == "" {
		t.Skip("-write names the program that writes the folders")
	}
	for name, play := range scenarios {
		if *onlyScenario == "" || *onlyScenario == name {
			t.Run(name, func(t *testing.T) { writeFolder(t, name, play) })
		}
	}
}

func writeFolder(t *testing.T, name string, play scenario) {
	script, err := json.Marshal(modelRules)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(fixtureDir); err != nil {
		t.Fatal(err)
	}
	at := &program{peer: &peer{t: t}, dir: fixtureDir}
	at.write("model.json", string(script))
	at.write("work/.git/HEAD", "ref: refs/heads/main\n")
	if name == "memory" {
		at.write("home/config.toml", "[memory]\nextract_threshold = 1\nidle = \"20ms\"\n")
	}
	p := startProgram(t, *writeWith, fixtureDir)
	play(p)
	pack(t, fixtureDir, filepath.Join("testdata", name+".tar.gz"))
	if err := os.RemoveAll(fixtureDir); err != nil { // this also ends a command that outlived the program
		t.Fatal(err)
	}
}

// pack keeps a folder without what no process finds again: locks, sockets and the
// shared memory of the store.
func pack(t *testing.T, dir, archive string) {
	t.Helper()
	f, err := os.Create(archive)
	if err != nil {
		t.Fatal(err)
	}
	zip, _ := gzip.NewWriterLevel(f, gzip.BestCompression) // the level is valid
	out := tar.NewWriter(zip)
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || strings.HasSuffix(path, "-shm") || strings.HasSuffix(path, "lock") {
			return err
		}
		return packFile(out, dir, path)
	})
	if err := errors.Join(err, out.Close(), zip.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

// packFile adds a file without its times and its owner.
func packFile(out *tar.Writer, dir, path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	name, err := filepath.Rel(dir, path)
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if err := out.WriteHeader(&tar.Header{Name: filepath.ToSlash(name), Mode: int64(info.Mode().Perm()), Size: int64(len(data))}); err != nil {
		return err
	}
	_, err = out.Write(data)
	return err
}

// unpack makes a copy of a kept folder and returns where it is.
func unpack(t *testing.T, archive string) string {
	t.Helper()
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	zip, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for in := tar.NewReader(zip); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return dir
		}
		if err == nil {
			err = unpackFile(filepath.Join(dir, filepath.FromSlash(h.Name)), in, h)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func unpackFile(path string, in io.Reader, h *tar.Header) error {
	data, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	return errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, data, h.FileInfo().Mode()))
}
