package turn_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/abide-run/abide/internal/api/shapetest"
	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/approval/shell"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/tool/ask"
	"github.com/abide-run/abide/internal/tool/builtin"
	"github.com/abide-run/abide/internal/tool/plan"
	"github.com/abide-run/abide/internal/turn"
	"github.com/abide-run/abide/internal/window"
)

// A writer makes a log by hand.
type writer struct {
	t      testing.TB
	state  *turn.State
	events []event.Event
}

func newWriter(t testing.TB) *writer { return &writer{t: t, state: turn.New("s")} }

func (w *writer) add(payloads ...event.Payload) *writer {
	w.t.Helper()
	for _, p := range payloads {
		e, err := event.Encode(event.Head{ID: event.NewID(), Time: time.Unix(0, 0), Parent: w.state.Parent}, p)
		if err != nil {
			w.t.Fatal(err)
		}
		e.Seq = event.Seq(len(w.events) + 1)
		w.events = append(w.events, e)
		if err := w.state.Fold(e); err != nil {
			w.t.Fatal(err)
		}
	}
	return w
}

// nothing is a process that has just started, in which the next request fits.
var nothing = turn.Now{
	Verdict: &window.Verdict{},
	Running: func(string) bool { return false }, Fresh: func(string) bool { return false }, Asked: func(string) bool { return false },
}

var (
	start    = event.SessionStartData{SessionID: "s", Version: 1}
	accepted = event.InputAcceptedData{InputID: "i", Prompt: "do it", Mode: event.ModeQueue}
	steer    = event.InputAcceptedData{InputID: "j", Prompt: "rather so", Mode: event.ModeSteer}
	message  = event.UserMessageData{Content: "do it", InteractionID: "x", InputID: "i"}
	asked    = event.AssistantTurnStartData{TurnID: "0", InteractionID: "x"}
	ended    = event.AssistantTurnEndData{TurnID: "0"}
	words    = event.AssistantMessageData{MessageID: "m", Content: "done"}
	calls    = event.AssistantMessageData{MessageID: "m", ToolRequests: []event.ToolRequest{
		{ToolCallID: "c1", Name: "act", Arguments: json.RawMessage(`{}`)},
		{ToolCallID: "c2", Name: "act", Arguments: json.RawMessage(`{}`)}}}
	idle    = event.SessionIdleData{}
	rewound = event.HistoryHiddenData{From: 1, To: 1, Files: true}
)

var (
	command = event.InputAcceptedData{InputID: "k", Kind: event.InputCommand, Prompt: "/go", Mode: event.ModeQueue}
	carried = event.CommandExecuteData{RequestID: "x", Command: "/go", InputID: "k"}
)

func held(paused bool) event.Payload {
	return event.QueueChangedData{Order: []string{"i", "j"}, Paused: &paused}
}

func intended(id string) event.Payload { return event.ToolStartData{ToolCallID: id, ToolName: "act"} }
func begun(id string) event.Payload {
	return event.ToolBegunData{ToolCallID: id, Key: "k" + id, Attempt: 1}
}
func finished(id string) event.Payload {
	return event.ToolCompleteData{ToolCallID: id, Success: true, Result: &event.ToolResult{Content: "r"}}
}
func asks(id string) event.Payload {
	return event.PermissionAskedData{RequestID: "q" + id, ToolCallID: id, PermissionRequest: json.RawMessage(`{}`)}
}
func allowed(id string) event.Payload {
	return event.PermissionDoneData{RequestID: "q" + id, ToolCallID: id, Result: event.PermissionResult{Kind: event.Approved}}
}

// TestNext walks a turn from the first event to the last, and every way off it.
func TestNext(t *testing.T) {
	here := func(ids ...string) func(string) bool {
		return func(id string) bool {
			for _, x := range ids {
				if x == id {
					return true
				}
			}
			return false
		}
	}
	toCalls := []event.Payload{start, accepted, message, asked, calls}
	both := append(toCalls, intended("c1"), intended("c2"))
	both = both[:len(both):len(both)] // appending must copy
	for _, test := range []struct {
		name string
		log  []event.Payload
		now  turn.Now
		want string
	}{
		{"nothing to do", []event.Payload{start}, nothing, "turn.Wait"},
		{"an input waits", []event.Payload{start, accepted}, nothing, "turn.Deliver"},
		{"delivered", []event.Payload{start, accepted, message}, nothing, "turn.StartStep"},
		{"steered before the request", []event.Payload{start, accepted, message, steer}, nothing, "turn.Deliver"},
		{"queued during the turn waits", []event.Payload{start, accepted, message, event.InputAcceptedData{InputID: "j", Mode: event.ModeQueue}}, nothing, "turn.StartStep"},
		{"to be asked, also after a crash", []event.Payload{start, accepted, message, asked}, nothing, "turn.AskModel"},
		{"being asked", []event.Payload{start, accepted, message, asked}, turn.Now{Asking: true}, "turn.Wait"},
		{"answered in words", []event.Payload{start, accepted, message, asked, words}, nothing, "turn.EndStep"},
		{"turn over", []event.Payload{start, accepted, message, asked, words, ended}, nothing, "turn.Rest"},
		{"turn over, another waits", []event.Payload{start, accepted, message, steer, asked, words, ended}, nothing, "turn.Deliver"},
		{"at rest", []event.Payload{start, accepted, message, asked, words, ended, idle}, nothing, "turn.Wait"},
		{"calls wanted", toCalls, nothing, "turn.Intend"},
		{"calls intended", both, nothing, "turn.Judge"},
		{"one asks, the other is judged", append(both, asks("c1")), nothing, "turn.Judge"},
		{"both ask", append(both, asks("c1"), asks("c2")), nothing, "turn.Wait"},
		{"one is permitted", append(both, asks("c1"), asks("c2"), allowed("c2")), nothing, "turn.Begin"},
		{"begun here", append(both, begun("c1")), turn.Now{Running: here(), Fresh: here("c1")}, "turn.RunTool"},
		{"begun and running", append(both, begun("c1"), begun("c2")), turn.Now{Running: here("c1", "c2"), Fresh: here("c1", "c2")}, "turn.Wait"},
		{"begun by a runtime that is no more", append(both, begun("c1")), nothing, "turn.Recover"},
		{"one finished, one running", append(both, begun("c1"), begun("c2"), finished("c1")), turn.Now{Running: here("c2"), Fresh: here("c2")}, "turn.Wait"},
		{"all finished", append(both, begun("c1"), begun("c2"), finished("c2"), finished("c1")), nothing, "turn.EndStep"},
		{"next step", append(both, begun("c1"), begun("c2"), finished("c2"), finished("c1"), ended), nothing, "turn.StartStep"},
		{"aborted", append(both, asks("c1"), event.AbortData{}), nothing, "turn.Rest"},
		{"a command waits", []event.Payload{start, command}, nothing, "turn.Command"},
		{"a command is with a client", []event.Payload{start, command, accepted, carried}, nothing, "turn.Wait"},
		{"a command is done with", []event.Payload{start, command, carried, event.CommandDoneData{RequestID: "x"}}, nothing, "turn.Rest"},
		{"the queue goes on after it", []event.Payload{start, command, accepted, carried, event.CommandDoneData{RequestID: "x"}}, nothing, "turn.Deliver"},
		{"the queue rests after it", []event.Payload{start, command, accepted, carried, event.CommandDoneData{RequestID: "x", Stop: true}}, nothing, "turn.Wait"},
		{"until something new comes", []event.Payload{start, command, accepted, carried, event.CommandDoneData{RequestID: "x", Stop: true}, steer}, nothing, "turn.Deliver"},
		{"the queue is held", []event.Payload{start, accepted, held(true)}, nothing, "turn.Wait"},
		{"the queue is held at the end of a turn", []event.Payload{start, accepted, message, asked, steer, held(true), words, ended}, nothing, "turn.Wait"},
		{"the queue is let go", []event.Payload{start, accepted, held(true), held(false)}, nothing, "turn.Deliver"},
		{"taken out of the queue", []event.Payload{start, accepted, event.QueueChangedData{}}, nothing, "turn.Wait"},
		{"a command does not stop a turn", []event.Payload{start, accepted, message, command, carried, asked, words}, nothing, "turn.EndStep"},
		{"suspended", []event.Payload{start, accepted, message, asked, event.SessionSuspendedData{Suspended: true}}, nothing, "turn.Wait"},
		{"and back", []event.Payload{start, accepted, message, asked, event.SessionSuspendedData{Suspended: true}, event.SessionSuspendedData{}}, nothing, "turn.AskModel"},
		{"gave up", []event.Payload{start, accepted, message, asked, ended, event.SessionErrorData{EndsTurn: true}}, nothing, "turn.Rest"},
		{"a remark ends nothing", []event.Payload{start, accepted, message, asked, event.SessionErrorData{}}, nothing, "turn.AskModel"},
		{"declined", append(both, event.TurnEndedData{}), nothing, "turn.Rest"},
		{"forked in the middle", append(both, event.SessionForkedData{}), nothing, "turn.Wait"},
		{"files to restore", []event.Payload{start, rewound, accepted}, nothing, "turn.Restore"},
		{"files being restored", []event.Payload{start, rewound, accepted}, turn.Now{Restoring: true}, "turn.Wait"},
		{"files restored", []event.Payload{start, rewound, event.FilesRestoredData{}, accepted}, nothing, "turn.Deliver"},
		{"files of one rewind restored", []event.Payload{start, rewound, rewound, event.FilesRestoredData{}}, nothing, "turn.Restore"},
		{"files that stay", []event.Payload{start, event.HistoryHiddenData{From: 1, To: 1}}, nothing, "turn.Wait"},
		{"news of a task", []event.Payload{start, event.TaskStartedData{Key: "k"}, event.TaskReportedData{Key: "k", Ended: true, Text: "x"}}, nothing, "turn.Notify"},
		{"news of a task, after an abort", []event.Payload{start, event.AbortData{}, event.SessionIdleData{Aborted: true}, event.TaskStartedData{Key: "k"}, event.TaskReportedData{Key: "k", Ended: true, Text: "x"}}, nothing, "turn.Wait"},
		{"forked, with news of a task", []event.Payload{start, event.TaskStartedData{Key: "k"}, event.TaskReportedData{Key: "k", Ended: true, Text: "x"}, event.SessionForkedData{}}, nothing, "turn.Wait"},
		{"forked, with files to restore", []event.Payload{start, rewound, event.SessionForkedData{}}, nothing, "turn.Wait"},
		{"one step too many", []event.Payload{start, event.SessionConfiguredData{MaxSteps: 1}, accepted, message, asked, calls, intended("c1"), intended("c2"), finished("c1"), finished("c2"), ended}, nothing, "turn.GiveUp"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWriter(t).add(test.log...)
			if got := fmt.Sprintf("%T", turn.Next(w.state, test.now)); got != test.want {
				t.Errorf("next = %s, want %s", got, test.want)
			}
			loaded := turn.New("s")
			if err := loaded.Load(w.events); err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprintf("%T", turn.Next(loaded, test.now)); got != test.want {
				t.Errorf("after loading, next = %s, want %s", got, test.want)
			}
		})
	}
}

func TestAModelThatRunsInCirclesIsStopped(t *testing.T) {
	w := newWriter(t).add(start, accepted, message)
	steps := 0
	for ; steps < 100; steps++ {
		if _, stop := turn.Next(w.state, nothing).(turn.GiveUp); stop {
			break
		}
		w.add(asked, calls, intended("c1"), intended("c2"), finished("c1"), finished("c2"), ended)
	}
	if steps != turn.MaxRepeats {
		t.Errorf("stopped after %d equal steps, want %d", steps, turn.MaxRepeats)
	}
}

// fake is a tool that does nothing.
type fake struct {
	spec tool.Spec
	ask  *approval.Request
}

func (f fake) Spec() tool.Spec                                                  { return f.spec }
func (f fake) Permission(context.Context, tool.Call) (*approval.Request, error) { return f.ask, nil }
func (f fake) Run(_ context.Context, _ tool.Call) (tool.Result, error)          { return tool.Result{}, nil }

// picky is a tool that refuses by itself.
type picky struct{ fake }

func (picky) Permission(context.Context, tool.Call) (*approval.Request, error) {
	return nil, &tool.Refusal{Result: tool.Result{Text: "The file is locked: close it first.", Message: "Locked", Failed: true, Code: event.CodeFailure}}
}

func TestARefusalIsTheResult(t *testing.T) {
	w := newWriter(t).add(start, accepted, message, asked,
		event.AssistantMessageData{ToolRequests: []event.ToolRequest{{ToolCallID: "c", Name: "picky", Arguments: json.RawMessage(`{}`)}}}, intended("c"))
	record := turn.Catalog{picky{fake{spec: tool.Spec{Name: "picky"}}}}.Judge(w.state, w.state.Turn.Calls[0])
	want := event.ToolError{Message: "Locked", Code: event.CodeFailure, ForModel: "The file is locked: close it first."}
	if d, ok := record[0].(event.ToolCompleteData); !ok || len(record) != 1 || *d.Error != want {
		t.Errorf("recorded %+v, want %+v", record, want)
	}
}

func TestAResultKeepsItsParts(t *testing.T) {
	w := newWriter(t).add(start, accepted, message, asked, calls)
	d := turn.Complete(w.state, w.state.Turn.Calls[0], tool.Result{Text: "seen", Detailed: "more", Contents: json.RawMessage(`[1]`), Binary: json.RawMessage(`[2]`)})
	want := &event.ToolResult{Content: "seen", DetailedContent: "more", Contents: json.RawMessage(`[1]`), Binary: json.RawMessage(`[2]`)}
	if !d.Success || !cmp.Equal(d.Result, want) {
		t.Errorf("result = %+v, want %+v", d.Result, want)
	}
}

// TestAToolIsToldWhyItMayGoOn: who allowed a call, and what was shown, is known
// to every attempt at it, also in another process.
func TestAToolIsToldWhyItMayGoOn(t *testing.T) {
	shown := json.RawMessage(`{"kind":"shell","path":"/x"}`)
	ask := shellRequest("ls", shown)
	inScope := &approval.Request{Kind: approval.Read, Allowed: true, Ask: shown}
	can := event.ClientDeclaredData{Permission: true}
	grant := event.PermissionDoneData{Grants: []event.Grant{{Kind: approval.Shell, Command: "'ls'"}}}
	for _, test := range []struct {
		name    string
		ask     *approval.Request
		log     []event.Payload
		answer  string
		granted bool
		asked   bool
		by      string
		words   bool
	}{
		{"by a person", ask, []event.Payload{can}, turn.ApproveOnce, true, true, event.ByAnswer, false},
		{"by an earlier yes", ask, []event.Payload{can, grant}, "", true, false, event.ByGrant, true},
		{"by a rule", ask, []event.Payload{event.SessionConfiguredData{Permissions: event.PermissionRules{Allow: []string{"shell(ls *)"}}}}, "", true, false, event.ByRule, true},
		{"by a rule about the tool", ask, []event.Payload{event.SessionConfiguredData{Permissions: event.PermissionRules{Allow: []string{"act"}}}}, "", true, false, event.ByRule, true},
		{"by the scope", inScope, nil, "", false, false, event.ByScope, false},
		{"by the rule set", ask, []event.Payload{event.SessionConfiguredData{Approve: approval.All}}, "", true, false, event.BySet, false},
		{"needs nobody", nil, nil, "", false, false, event.ByNothing, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			catalog := turn.Catalog{fake{spec: tool.Spec{Name: "act", Replay: tool.Keyed}, ask: test.ask}}
			w := newWriter(t).add(start).add(test.log...).add(accepted, message, asked, event.AssistantMessageData{ToolRequests: calls.ToolRequests[:1]}, intended("c1"))
			w.add(catalog.Judge(w.state, w.state.Turn.Calls[0])...)
			if test.answer != "" {
				record, ok, err := turn.Answer{RequestID: w.state.Turn.Calls[0].Question, Permission: &turn.Decision{Kind: test.answer}}.Give(w.state)
				if !ok || err != nil {
					t.Fatal(ok, err)
				}
				w.add(record...)
				w.add(catalog.Begin(w.state, w.state.Turn.Calls[0])...)
			}
			for attempt := 1; attempt <= 2; attempt++ {
				_, call := catalog.Tool(w.state, w.state.Turn.Calls[0])
				if call.Decision == nil || call.Decision.By != test.by || (call.Decision.RequestID != "") != (test.by == event.ByAnswer) || call.Decision.FromWords() != test.words {
					t.Errorf("attempt %d: decided by %+v, want %s", call.Attempt, call.Decision, test.by)
				}
				if call.Granted != test.granted || (call.Asked != nil) != test.asked || call.Attempt != attempt {
					t.Errorf("attempt %d: granted = %v, asked %s, want %v, %v", call.Attempt, call.Granted, call.Asked, test.granted, test.asked)
				}
				w.add(catalog.Recover(w.state, w.state.Turn.Calls[0])...)
			}
		})
	}
}

func TestAToolOnDemandIsOfferedWhereItIsNamed(t *testing.T) {
	catalog := turn.Catalog{fake{spec: tool.Spec{Name: "exec", OnDemand: true}}, fake{spec: tool.Spec{Name: "act"}}}
	for _, test := range []struct {
		config event.SessionConfiguredData
		want   int
	}{
		{event.SessionConfiguredData{}, 1},
		{event.SessionConfiguredData{AvailableTools: []string{"*"}}, 1},
		{event.SessionConfiguredData{AvailableTools: []string{"exec"}}, 1},
		{event.SessionConfiguredData{AvailableTools: []string{"builtin:exec", "act"}}, 2},
		{event.SessionConfiguredData{ExtraTools: []string{"exec"}}, 2},
		{event.SessionConfiguredData{ExtraTools: []string{"exec"}, ExcludedTools: []string{"exec"}}, 1},
	} {
		if got := catalog.Offer(newWriter(t).add(start, test.config).state); len(got) != test.want {
			t.Errorf("%+v: %d tools are offered, want %d", test.config, len(got), test.want)
		}
	}
}

func TestTheScopeOfACall(t *testing.T) {
	listed := event.ScopeRules{Allow: []event.ScopeRule{{Target: "/a", Permission: "read"}}, Deny: []event.ScopeRule{{Target: "/b", Permission: "read"}}}
	folder := []event.ScopeRule{{Target: "/w", Permission: "write"}}
	for _, test := range []struct {
		name   string
		config event.SessionConfiguredData
		want   []event.ScopeRule
	}{
		{"nothing by itself", event.SessionConfiguredData{WorkingDirectory: "/w"}, nil},
		{"the folder", event.SessionConfiguredData{WorkingDirectory: "/w", Approve: approval.Workspace}, folder},
		{"what is listed, and nothing else", event.SessionConfiguredData{WorkingDirectory: "/w", Approve: approval.Workspace, Scope: listed}, listed.Allow},
		{"what is listed, whoever started it", event.SessionConfiguredData{WorkingDirectory: "/w", Scope: listed}, listed.Allow},
	} {
		w := newWriter(t).add(start, test.config, accepted, message, asked, calls)
		_, call := turn.Catalog{}.Tool(w.state, w.state.Turn.Calls[0])
		if !cmp.Equal(call.Scope.Allow, test.want) || !cmp.Equal(call.Scope.Deny, test.config.Scope.Deny) {
			t.Errorf("%s: %+v, want %+v", test.name, call.Scope, test.want)
		}
	}
}

// TestACallKnowsTheRulesThatKeepFilesFromIt is about tools that read all files of a folder.
func TestACallKnowsTheRulesThatKeepFilesFromIt(t *testing.T) {
	config := event.SessionConfiguredData{
		Permissions: event.PermissionRules{Allow: []string{"read(a)"}, Deny: []string{"read(b)"}, Ask: []string{"read(c)"}},
		Managed:     &event.ManagedRules{Deny: []string{"read(d)"}, Ask: []string{"read(e)"}},
	}
	for _, test := range []struct {
		name string
		log  []event.Payload
		want []string
	}{
		{"nobody was asked", nil, []string{"read(b)", "read(d)", "read(c)", "read(e)"}},
		{"a person has allowed it", []event.Payload{intended("c1"), asks("c1"), allowed("c1")}, []string{"read(b)", "read(d)"}},
	} {
		w := newWriter(t).add(start, config, accepted, message, asked, calls).add(test.log...)
		if _, call := (turn.Catalog{}).Tool(w.state, w.state.Turn.Calls[0]); !cmp.Equal(call.Unread, test.want) {
			t.Errorf("%s: %q, want %q", test.name, call.Unread, test.want)
		}
	}
}

// TestACallIsMadeWhereItWasJudged: the question of a call shows the working directory. A
// client that changes it before the answer changes nothing for the call, and neither does
// one that does so before the call is made again.
func TestACallIsMadeWhereItWasJudged(t *testing.T) {
	at := func(dir string) event.Payload { return event.SessionConfiguredData{WorkingDirectory: dir} }
	for _, test := range []struct {
		name string
		log  []event.Payload
		want string
	}{
		{"not judged yet", []event.Payload{at("/b")}, "/b"},
		{"asked before", []event.Payload{intended("c1"), asks("c1"), at("/b"), allowed("c1")}, "/a"},
		{"asked after", []event.Payload{intended("c1"), at("/b"), asks("c1"), allowed("c1")}, "/b"},
		{"begun before", []event.Payload{intended("c1"), begun("c1"), at("/b"), begun("c1")}, "/a"},
		{"asked and begun before", []event.Payload{intended("c1"), asks("c1"), allowed("c1"), at("/b"), begun("c1"), at("/c")}, "/a"},
	} {
		w := newWriter(t).add(start, at("/a"), accepted, message, asked, calls).add(test.log...)
		if _, call := (turn.Catalog{}).Tool(w.state, w.state.Turn.Calls[0]); call.Dir != test.want {
			t.Errorf("%s: the call is made in %s, want %s", test.name, call.Dir, test.want)
		}
	}
}

// TestAClientMakesACallWhereItWasJudged: the same holds for the tools of clients.
func TestAClientMakesACallWhereItWasJudged(t *testing.T) {
	at := func(dir string) event.Payload { return event.SessionConfiguredData{WorkingDirectory: dir} }
	w := newWriter(t).add(start, at("/a"), event.ToolsDeclaredData{Tools: []event.ExternalTool{{Name: "act"}}}, accepted, message, asked, calls,
		intended("c1"), asks("c1"), at("/b"), allowed("c1"))
	if d, ok := (turn.Catalog{}).Begin(w.state, w.state.Turn.Calls[0])[0].(event.ExternalAskedData); !ok || d.WorkingDirectory != "/a" {
		t.Errorf("the client is asked to make %+v", d)
	}
}

// TestTheRulesOfAPlaceStayThere: what is allowed in a place is not allowed in another one
// to which the session moves.
func TestTheRulesOfAPlaceStayThere(t *testing.T) {
	rules := event.ClientRules{Location: "/a", FromThere: []event.Rule{{Kind: "shell"}}, AllowReads: true}
	w := newWriter(t).add(start, event.SessionConfiguredData{WorkingDirectory: "/a"}, rules, event.SessionConfiguredData{WorkingDirectory: "/a", Model: "m"})
	if got := w.state.Permission.Rules; len(got.FromThere) != 1 {
		t.Errorf("in the same place: %+v", got)
	}
	w.add(event.SessionConfiguredData{WorkingDirectory: "/b"})
	if got := w.state.Permission.Rules; got.Location != "" || got.FromThere != nil || !got.AllowReads {
		t.Errorf("in another place: %+v", got)
	}
}

func TestJudge(t *testing.T) {
	shell := shellRequest("ls", json.RawMessage(`{}`))
	catalog := turn.Catalog{
		fake{spec: tool.Spec{Name: "free"}},
		fake{spec: tool.Spec{Name: "shell"}, ask: shell},
		fake{spec: tool.Spec{Name: "write"}, ask: &approval.Request{Kind: approval.Write, Allowed: true, Ask: json.RawMessage(`{}`)}},
		ask.New(), plan.New(),
	}
	star := "*"
	planning := event.ModeChangedData{NewMode: event.ModePlan}
	external := event.ToolsDeclaredData{Tools: []event.ExternalTool{{Name: "mine"}, {Name: "open", SkipPermission: true}}}
	can, planner := event.ClientDeclaredData{Permission: true, UserInput: true}, event.ClientDeclaredData{ExitPlan: true}
	for _, test := range []struct {
		name string
		tool string
		args string
		bad  string
		log  []event.Payload
		want event.Type
		code string
	}{
		{"free tool begins", "free", `{}`, "", nil, event.ToolBegun, ""},
		{"command asks", "shell", `{}`, "", []event.Payload{can}, event.PermissionAsked, ""},
		{"nobody to ask", "shell", `{}`, "", nil, event.ToolComplete, event.CodeDenied},
		{"everything allowed", "shell", `{}`, "", []event.Payload{event.SessionConfiguredData{Approve: approval.All}}, event.ToolBegun, ""},
		{"granted before", "shell", `{}`, "", []event.Payload{can, event.PermissionDoneData{Grants: []event.Grant{{Kind: approval.Shell, Command: "'ls'"}}}}, event.ToolBegun, ""},
		{"granted for another command", "shell", `{}`, "", []event.Payload{can, event.PermissionDoneData{Grants: []event.Grant{{Kind: approval.Shell, Command: "'rm'"}}}}, event.PermissionAsked, ""},
		{"granted for all commands by an older version", "shell", `{}`, "", []event.Payload{can, event.PermissionDoneData{Grants: []event.Grant{{Kind: approval.Shell}}}}, event.PermissionAsked, ""},
		{"granted by name by an older version", "shell", `{}`, "", []event.Payload{can, event.PermissionDoneData{Grants: []event.Grant{{Kind: approval.Shell, Subject: "ls"}}}}, event.ToolBegun, ""},
		{"granted for the place", "shell", `{}`, "", []event.Payload{can, event.ClientRules{FromThere: []event.Rule{{Kind: "shell", Grant: &event.Grant{Kind: approval.Shell, Command: "'ls'"}}}}}, event.ToolBegun, ""},
		{"a star that was stored for the place", "shell", `{}`, "", []event.Payload{can, event.ClientRules{FromThere: []event.Rule{{Kind: "shell", Argument: &star}}}}, event.PermissionAsked, ""},
		{"a client's tool with the name of everything", "shell", `{}`, "", []event.Payload{can, event.ClientRules{Allow: []event.Rule{{Kind: "custom-tool", Argument: &star}}}}, event.PermissionAsked, ""},
		{"unknown tool", "nope", `{}`, "", nil, event.ToolComplete, event.CodeFailure},
		{"excluded tool", "free", `{}`, "", []event.Payload{event.SessionConfiguredData{ExcludedTools: []string{"builtin:*"}}}, event.ToolComplete, event.CodeFailure},
		{"not among the available", "free", `{}`, "", []event.Payload{event.SessionConfiguredData{AvailableTools: []string{"shell"}}}, event.ToolComplete, event.CodeFailure},
		{"excluded wins over available", "free", `{}`, "", []event.Payload{event.SessionConfiguredData{AvailableTools: []string{"free"}, ExcludedTools: []string{"free"}}}, event.ToolComplete, event.CodeFailure},
		{"bad arguments", "free", `{}`, "[1]", nil, event.ToolComplete, event.CodeFailure},
		{"client's tool asks", "mine", `{}`, "", []event.Payload{can, external}, event.PermissionAsked, ""},
		{"client's tool without permission", "open", `{}`, "", []event.Payload{external}, event.ExternalAsked, ""},
		{"question to a person", tool.AskUser, `{"question":"?"}`, "", []event.Payload{can}, event.UserInputAsked, ""},
		{"question without words", tool.AskUser, `{}`, "", []event.Payload{can}, event.ToolComplete, event.CodeFailure},
		{"question that is a number", tool.AskUser, `{"question":1}`, "", []event.Payload{can}, event.ToolComplete, event.CodeFailure},
		{"no person", tool.AskUser, `{"question":"?"}`, "", nil, event.ToolComplete, event.CodeFailure},
		{"a file is written", "write", `{}`, "", nil, event.ToolBegun, ""},
		{"no file is written before there is a plan", "write", `{}`, "", []event.Payload{planning}, event.ToolComplete, event.CodeDenied},
		{"but commands may be asked for", "shell", `{}`, "", []event.Payload{can, planning}, event.PermissionAsked, ""},
		{"a plan is presented", "exit_plan_mode", `{"summary":"s"}`, "", []event.Payload{planner, planning}, event.ExitPlanAsked, ""},
		{"a plan without words", "exit_plan_mode", `{}`, "", []event.Payload{planner, planning}, event.ToolComplete, event.CodeFailure},
		{"a plan that is a list", "exit_plan_mode", `{"summary":[]}`, "", []event.Payload{planner, planning}, event.ToolComplete, event.CodeFailure},
		{"nobody to present it to", "exit_plan_mode", `{"summary":"s"}`, "", []event.Payload{planning}, event.ToolComplete, event.CodeFailure},
		{"nothing is planned", "exit_plan_mode", `{"summary":"s"}`, "", []event.Payload{planner}, event.ToolComplete, event.CodeFailure},
		{"a client's rule allows", "shell", `{}`, "", []event.Payload{can, event.ClientRules{Allow: []event.Rule{{Kind: "shell"}}}}, event.ToolBegun, ""},
		{"a client's rule denies", "shell", `{}`, "", []event.Payload{can, event.ClientRules{AllowAll: true, Deny: []event.Rule{{Kind: "shell"}}}}, event.ToolComplete, event.CodeDenied},
		{"approvals were taken back", "shell", `{}`, "", []event.Payload{can, event.PermissionDoneData{Grants: []event.Grant{{Kind: approval.Shell, Command: "'ls'"}}}, event.GrantsResetData{}}, event.PermissionAsked, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWriter(t).add(start).add(test.log...).add(accepted, message, asked,
				event.AssistantMessageData{ToolRequests: []event.ToolRequest{{ToolCallID: "c", Name: test.tool, Arguments: json.RawMessage(test.args), Malformed: test.bad}}}, intended("c"))
			step, ok := turn.Next(w.state, nothing).(turn.Judge)
			if !ok {
				t.Fatalf("next = %T, want turn.Judge", turn.Next(w.state, nothing))
			}
			record := catalog.Judge(w.state, step.Call)
			if len(record) != 1 || record[0].Type() != test.want {
				t.Fatalf("recorded %v, want one %s", record, test.want)
			}
			if d, ok := record[0].(event.ToolCompleteData); ok && d.Error.Code != test.code {
				t.Errorf("code = %s (%s), want %s", d.Error.Code, d.Error.Message, test.code)
			}
		})
	}
}

// shellRequest returns the request for a command line.
func shellRequest(text string, ask json.RawMessage) *approval.Request {
	r := &approval.Request{Kind: approval.Shell, Ask: ask}
	r.ReadCommand(shell.Parse(text), approval.Surroundings{Dir: "/w", Home: "/w"})
	return r
}

// TestAQuestionSaysWhyItIsAsked: a person is told the reason, how the command was
// understood, and what each answer would allow.
func TestAQuestionSaysWhyItIsAsked(t *testing.T) {
	can := event.ClientDeclaredData{Permission: true}
	rules := func(ask ...string) event.Payload {
		return event.SessionConfiguredData{Permissions: event.PermissionRules{Ask: ask}}
	}
	shown := json.RawMessage(`{}`)
	for _, test := range []struct {
		ask    *approval.Request
		log    []event.Payload
		reason string
		offers int
	}{
		{shellRequest("ls -l", shown), nil, "no rule or grant allows it", 3},
		{shellRequest("ls $X", shown), nil, "it has an expansion ($X) at column 4", 1},
		{shellRequest("ls -l", shown), []event.Payload{rules("shell(ls *)")}, "the rule shell(ls *) asks about it", 3},
		{&approval.Request{Kind: approval.Write, Details: []string{"/etc/a/b"}, Ask: shown}, nil, "it is outside of what the session may write unasked", 3},
		{&approval.Request{Kind: approval.Write, Details: []string{"/etc/a/b"}, Allowed: true, Ask: shown}, []event.Payload{rules("write(/etc)")}, "the rule write(/etc) asks about it", 3},
		{&approval.Request{Kind: approval.Shell, Ask: shown, More: event.PermissionMore{Reasons: []string{"of the tool"}}}, nil, "of the tool", 1},
	} {
		catalog := turn.Catalog{fake{spec: tool.Spec{Name: "act"}, ask: test.ask}}
		w := newWriter(t).add(start, can).add(test.log...).add(accepted, message, asked, event.AssistantMessageData{ToolRequests: calls.ToolRequests[:1]}, intended("c1"))
		d, ok := catalog.Judge(w.state, w.state.Turn.Calls[0])[0].(event.PermissionAskedData)
		if !ok || d.Abide == nil {
			t.Fatalf("%s: nobody is asked", test.reason)
		}
		if d.Abide.Reasons[0] != test.reason || len(d.Abide.Offers) != test.offers || d.Abide.Tool != "act" {
			t.Errorf("asked because %q, with %d offers; want %q and %d", d.Abide.Reasons, len(d.Abide.Offers), test.reason, test.offers)
		}
	}
}

func TestDecisions(t *testing.T) {
	shown := []event.Grant{{Kind: "shell", Command: "'ls' '-l'"}}
	prefix := event.Grant{Kind: "shell", Prefix: []string{"ls"}}
	offers := &event.PermissionMore{Offers: []event.Offer{{ID: "once"}, {ID: "command", Grants: shown}, {ID: "prefix", Grants: []event.Grant{prefix}}}}
	for _, test := range []struct {
		decision turn.Decision
		result   string
		code     string // code of the call's terminal record; empty if it goes on
		stops    bool
		grants   []event.Grant
	}{
		{turn.Decision{Kind: turn.ApproveOnce}, event.Approved, "", false, nil},
		{turn.Decision{Kind: turn.ApproveForSession}, event.ApprovedForSession, "", false, shown},
		{turn.Decision{Kind: turn.ApproveForSession, Approval: json.RawMessage(`{"kind":"commands","commandIdentifiers":["python3","git status","git","*"]}`)}, event.ApprovedForSession, "", false, append(slices.Clip(shown), event.Grant{Kind: "shell", Prefix: []string{"git", "status"}})},
		{turn.Decision{Kind: turn.ApproveForSession, Offer: "prefix"}, event.ApprovedForSession, "", false, []event.Grant{prefix}},
		{turn.Decision{Kind: turn.ApproveForSession, Offer: "once"}, event.ApprovedForSession, "", false, nil},
		{turn.Decision{Kind: turn.ApproveForLocation, Approval: json.RawMessage(`{"kind":"write"}`)}, event.ApprovedForLocation, "", false, shown},
		{turn.Decision{Kind: turn.ApproveForLocation, Standing: true}, event.ApprovedForLocation, "", false, nil},
		{turn.Decision{Kind: turn.ApprovePermanently}, event.Approved, "", false, shown},
		{turn.Decision{Kind: turn.ApprovePermanently, Standing: true}, event.Approved, "", false, nil},
		{turn.Decision{Kind: turn.Reject}, event.DeniedByUser, event.CodeRejected, true, nil},
		{turn.Decision{Kind: turn.Reject, Feedback: "not now"}, event.DeniedByUser, event.CodeDenied, false, nil},
		{turn.Decision{Kind: turn.UserNotAvailable}, event.DeniedNobody, event.CodeDenied, false, nil},
	} {
		t.Run(test.decision.Kind+test.decision.Feedback, func(t *testing.T) {
			w := newWriter(t).add(start, accepted, message, asked,
				event.AssistantMessageData{ToolRequests: calls.ToolRequests[:1]}, intended("c1"),
				event.PermissionAskedData{RequestID: "q", ToolCallID: "c1", Grants: shown, Abide: offers, PermissionRequest: json.RawMessage(`{"kind":"shell"}`)})
			record, ok, err := turn.Answer{RequestID: "q", Permission: &test.decision}.Give(w.state)
			if !ok || err != nil {
				t.Fatal(ok, err)
			}
			done := record[0].(event.PermissionDoneData)
			if done.Result.Kind != test.result || !cmp.Equal(done.Grants, test.grants) {
				t.Errorf("result = %s with %v, want %s with %v", done.Result.Kind, done.Grants, test.result, test.grants)
			}
			w.add(record...)
			if again, ok, _ := (turn.Answer{RequestID: "q", Permission: &test.decision}).Give(w.state); ok {
				t.Errorf("a second answer is recorded as %v", again)
			}
			if test.code == "" {
				if _, ok := turn.Next(w.state, nothing).(turn.Begin); !ok {
					t.Errorf("next = %T, want turn.Begin", turn.Next(w.state, nothing))
				}
				return
			}
			if got := record[1].(event.ToolCompleteData).Error.Code; got != test.code {
				t.Errorf("code = %s, want %s", got, test.code)
			}
			w.add(ended)
			if stopped := w.state.Turn == nil; stopped != test.stops {
				t.Errorf("turn stopped = %v, want %v", stopped, test.stops)
			}
		})
	}
}

// TestEveryDecisionIsRecordedAsTypedClientsReadIt answers questions of every kind,
// with and without saying what the answer covers.
func TestEveryDecisionIsRecordedAsTypedClientsReadIt(t *testing.T) {
	kinds := []string{turn.ApproveOnce, turn.ApproveForSession, turn.ApproveForLocation, turn.ApprovePermanently, turn.Reject, turn.UserNotAvailable}
	said := []string{``, `null`, `{}`, `{"kind":""}`, `"all"`, `{"kind":"commands"}`, `{"kind":"custom-tool"}`, `{"kind":"custom-tool","toolName":"x"}`, `{"kind":"read"}`, `{"kind":"commands","commandIdentifiers":["ls"]}`}
	questions := [][]event.Grant{nil, {{Kind: "read"}}, {{Kind: "write"}}, {{Kind: "url"}}, {{Kind: "custom-tool", Subject: "x"}}, {{Kind: "shell"}}, {{Kind: "shell", Subject: "ls"}, {Kind: "shell", Subject: "cat"}}}
	for _, kind := range kinds {
		for _, approval := range said {
			for _, grants := range questions {
				w := newWriter(t).add(start, accepted, message, asked,
					event.AssistantMessageData{ToolRequests: calls.ToolRequests[:1]}, intended("c1"),
					event.PermissionAskedData{RequestID: "q", ToolCallID: "c1", Grants: grants, PermissionRequest: json.RawMessage(`{}`)})
				d := turn.Decision{Kind: kind, Approval: json.RawMessage(approval), Feedback: "no"}
				record, ok, err := turn.Answer{RequestID: "q", Permission: &d}.Give(w.state)
				if !ok || err != nil {
					t.Fatal(ok, err)
				}
				e, err := event.Encode(event.Head{ID: "1", Time: time.Unix(0, 0)}, record[0])
				if err != nil {
					t.Fatal(err)
				}
				if faults := shapetest.Event(e.Bytes); len(faults) > 0 {
					t.Errorf("%s %s about %v: %s: %q", kind, approval, grants, e.Bytes, faults)
				}
			}
		}
	}
}

func TestAnAnswerMustFitItsQuestion(t *testing.T) {
	w := newWriter(t).add(start, accepted, message, asked, calls, intended("c1"), intended("c2"), asks("c1"))
	for _, a := range []turn.Answer{
		{RequestID: "qc1", External: &turn.ExternalResult{Text: "x"}},
		{RequestID: "qc1", User: &turn.UserReply{Answer: "x"}},
		{RequestID: "nope", Permission: &turn.Decision{Kind: turn.ApproveOnce}},
	} {
		if record, ok, err := a.Give(w.state); ok || err != nil {
			t.Errorf("%+v was taken: %v, %v", a, record, err)
		}
	}
	if _, ok, err := (turn.Answer{RequestID: "qc1", Permission: &turn.Decision{Kind: "maybe"}}).Give(w.state); ok || err == nil {
		t.Error("an unknown decision was taken")
	}
}

func TestDeclineLeavesAloneWhatGoesOn(t *testing.T) {
	external := event.ExternalAskedData{RequestID: "e", ToolCallID: "c1", ToolName: "act"}
	for _, test := range []struct {
		name  string
		other event.Payload
		over  bool
	}{
		{"both declined", event.ExternalAskedData{RequestID: "f", ToolCallID: "c2", ToolName: "act"}, true},
		{"other finished", finished("c2"), true},
		{"a person is asked", event.UserInputAskedData{RequestID: "u", ToolCallID: "c2", Question: "?"}, false},
		{"a call runs", begun("c2"), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWriter(t).add(start, accepted, message, asked, calls, intended("c1"), intended("c2"), external, test.other)
			w.add(turn.Decline(w.state)...)
			if over := w.state.Turn == nil; over != test.over {
				t.Errorf("turn over = %v, want %v", over, test.over)
			}
			if w.state.Question("e") != nil {
				t.Error("the external call can still be answered")
			}
		})
	}
}

// TestTheVersionOfTheOfferChangesWithTheOffer: the session keeps the tools that it offers
// until the version or the mode changes.
func TestTheVersionOfTheOfferChangesWithTheOffer(t *testing.T) {
	catalog := turn.Catalog(builtin.New(nil, nil))
	found := event.SessionConfiguredData{Skills: event.SkillRules{Discover: true}}
	for _, p := range []event.Payload{
		event.SessionConfiguredData{ExcludedTools: []string{"*"}},
		event.ClientDeclaredData{UserInput: true},
		event.ToolsDeclaredData{Tools: []event.ExternalTool{{Name: "mine"}}},
		event.SkillsFoundData{Skills: []event.Skill{{Name: "dance"}}},
	} {
		before, after := newWriter(t).add(start, found), newWriter(t).add(start, found, p)
		if cmp.Equal(catalog.Offer(before.state), catalog.Offer(after.state)) {
			t.Errorf("%s does not change the tools that are offered", p.Type())
		}
		if before.state.Setup.Offered == after.state.Setup.Offered {
			t.Errorf("%s changes the tools that are offered, and not the version", p.Type())
		}
	}
}

// The decision about a command says with which PATH it is run: that with which it was
// judged or shown. It stays when the call is begun again.
func TestADecisionKeepsTheSearchPathOfItsCommand(t *testing.T) {
	ask := &approval.Request{Kind: approval.Shell, Subjects: []string{"act"}, Ask: json.RawMessage(`{}`), More: event.PermissionMore{SearchPath: "/judged"}}
	catalog := turn.Catalog{fake{tool.Spec{Name: "act", Replay: tool.Keyed}, ask}}
	for name, config := range map[string]event.SessionConfiguredData{"set": {Approve: approval.All}, "answer": {}} {
		w := newWriter(t).add(start, config, event.ClientDeclaredData{Permission: true}, accepted, message, asked, calls, intended("c1"))
		call := w.state.Turn.Calls[0]
		record := catalog.Judge(w.state, call)
		if d, ok := record[0].(event.PermissionAskedData); ok {
			w.add(d, event.PermissionDoneData{RequestID: d.RequestID, ToolCallID: "c1", Result: event.PermissionResult{Kind: event.Approved}})
			record = catalog.Begin(w.state, call)
		}
		w.add(record...)
		again, ok := catalog.Recover(w.state, call)[0].(event.ToolBegunData)
		if !ok || again.Decision == nil || again.Decision.SearchPath != "/judged" {
			t.Errorf("%s: the call is begun again with %+v", name, again.Decision)
		}
	}
}
