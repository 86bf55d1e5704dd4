package upgradetest

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/daemon"
	"github.com/abide-run/abide/internal/event"
)

// answers says how each kind of question is answered: by which method, and with what
// beside the ids.
var answers = map[event.Type]struct {
	method string
	answer object
}{
	event.PermissionAsked:  {api.AnswerPermission, object{"result": object{"kind": "approve-once"}}},
	event.ExternalAsked:    {api.AnswerTool, object{"result": "found"}},
	event.UserInputAsked:   {api.AnswerUserInput, object{"response": object{"answer": "blue", "wasFreeform": true}}},
	event.ExitPlanAsked:    {api.AnswerExitPlan, object{"response": object{"approved": true, "selectedAction": "interactive"}}},
	event.ElicitationAsked: {api.AnswerElicitation, object{"result": object{"action": "accept", "content": object{"size": 3}}}},
	event.CommandExecute:   {api.AnswerCommand, object{}},
	event.CommandQueued:    {api.CommandsRespond, object{"result": object{"handled": true}}},
}

// prompt is what every session is told after the upgrade.
const prompt = "Reply with exactly: ON"

func TestEverySessionOfAnOldFolderGoesOn(t *testing.T) {
	eachFolder(t, func(t *testing.T, _, archive string) {
		dir := unpack(t, archive)
		before := readLogs(t, archive)
		goOn(t, dir, before)
		checkAfter(t, before, readStore(t, openStore(t, dir)))
	})
}

// goOn starts an engine on a folder, answers what is open and says something to every
// session. Models that are scripted answer at once from now on.
func goOn(t *testing.T, dir string, logs []log) {
	t.Helper()
	t.Chdir(dir) // scripts of a model are looked for in the current folder
	if err := os.WriteFile("model.json", []byte(`{"rules":[{"reply":{"text":"{{user}}"}}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	n, err := daemon.Open(t.Context(), daemon.Config{Dir: filepath.Join(dir, "home"), Version: "test", Defaults: api.Defaults{Cwd: dir}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	}()
	rwc, err := n.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p := newPeer(t, rwc)
	defer p.close()
	for _, l := range logs {
		if !isAgent(t, l) {
			p.resume(l)
		}
	}
	done := make(map[string]bool)
	p.answerOpen(logs, done)
	for _, l := range logs {
		if !isAgent(t, l) {
			p.carryOn(string(l.index.ID), done)
		}
	}
}

// isAgent reports whether a session works for another one, which alone talks to it.
func isAgent(t *testing.T, l log) bool {
	t.Helper()
	return loadState(t, l.index.ID, l.events).Setup.Config.Agent != nil
}

// resume comes back to a session as the client that has made it.
func (p *peer) resume(l log) {
	p.t.Helper()
	s := loadState(p.t, l.index.ID, l.events)
	p.call(api.SessionResume, object{
		"sessionId": l.index.ID, "continuePendingWork": true, "abide": object{"keep": true}, "hooks": s.Setup.Declared.Hooks,
		"requestPermission": true, "requestUserInput": true, "requestElicitation": true, "requestExitPlanMode": true,
		"tools":    []object{{"name": "lookup", "description": "Looks a thing up.", "skipPermission": true}},
		"commands": []object{{"name": "tidy", "description": "Tidies up."}},
	}, nil)
	if s.Queue.Paused {
		p.call(api.QueueSetPaused, object{"sessionId": l.index.ID, "paused": false}, nil)
	}
}

// answerOpen answers all that is open in the logs. Every answer has to win, and what
// calls and forms wait for has to be listed: what an agent asks, in the session that
// has started it.
func (p *peer) answerOpen(logs []log, done map[string]bool) {
	p.t.Helper()
	all := p.listed("")
	for _, l := range logs {
		s := loadState(p.t, l.index.ID, l.events)
		listed := all
		if s.Setup.Config.Agent != nil {
			listed = p.listed(s.Setup.Config.Agent.Session)
		}
		var open []event.Event
		for _, c := range s.Questions() {
			open = append(open, c.Asked)
		}
		for _, x := range s.Exchanges.Open {
			open = append(open, x.Asked)
		}
		for _, asked := range open {
			command := asked.Type == event.CommandExecute || asked.Type == event.CommandQueued
			if !command && !slices.Contains(listed, requestID(p.t, asked)) {
				p.t.Errorf("session %s: %s is not listed: %s", l.index.ID, asked.Type, asked.Bytes)
			}
			p.answer(string(l.index.ID), asked, done)
		}
	}
}

// listed are the ids of the questions that are listed for a session, or for all.
func (p *peer) listed(id event.SessionID) (ids []string) {
	p.t.Helper()
	var list api.QuestionsResult
	p.call(api.Questions, object{"sessionId": id}, &list)
	for _, q := range list.Questions {
		e, err := event.Parse(0, q.Event)
		if err != nil {
			p.t.Fatal(err)
		}
		ids = append(ids, requestID(p.t, e))
	}
	return ids
}

// answer answers a question, unless it was answered before.
func (p *peer) answer(id string, asked event.Event, done map[string]bool) {
	p.t.Helper()
	request := requestID(p.t, asked)
	if done[request] {
		return
	}
	done[request] = true
	how := answers[asked.Type]
	params := object{"sessionId": id, "requestId": request}
	for key, value := range how.answer {
		params[key] = value
	}
	var won api.Success
	if p.call(how.method, params, &won); !won.Success {
		p.t.Errorf("session %s: the answer to %s (%s) did not win", id, request, asked.Type)
	}
}

// carryOn says something to a session, and answers what it asks until that was
// answered and the session is idle.
func (p *peer) carryOn(id string, done map[string]bool) {
	p.t.Helper()
	p.call(api.SessionSend, object{"sessionId": id, "prompt": prompt}, nil)
	heard, answered := false, false
	for i := 0; ; i++ {
		e := p.nth(id, i)
		if _, asks := answers[e.Type]; asks {
			p.answer(id, e, done)
		}
		switch e.Type {
		case event.UserMessage:
			heard = heard || bytes.Contains(e.Bytes, []byte(prompt))
		case event.AssistantMessage:
			answered = answered || heard
		case event.SessionIdle:
			if answered {
				return
			}
		}
	}
}

// checkAfter makes sure that the sessions have what they had and more, and that
// nothing was set aside.
func checkAfter(t *testing.T, before, after []log) {
	t.Helper()
	for i, was := range before {
		is := after[i]
		if is.index.ID != was.index.ID || is.index.Damage != nil {
			t.Fatalf("session %s became %s, damage %v", was.index.ID, is.index.ID, is.index.Damage)
		}
		if len(is.events) < len(was.events) {
			t.Fatalf("session %s had %d events and has %d", was.index.ID, len(was.events), len(is.events))
		}
		for n, e := range was.events {
			if !bytes.Equal(e.Bytes, is.events[n].Bytes) {
				t.Fatalf("session %s: event %d was %s and is %s", was.index.ID, e.Seq, e.Bytes, is.events[n].Bytes)
			}
		}
		if open := loadState(t, is.index.ID, is.events).Questions(); len(open) > 0 {
			t.Errorf("session %s has open questions, the first about %s: %v", is.index.ID, open[0].Request.Name, kinds(is.events[len(was.events):]))
		}
	}
}
