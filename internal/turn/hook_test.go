package turn_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/tool/agent"
	"github.com/abide-run/abide/internal/turn"
	"github.com/abide-run/abide/internal/window"
)

// listening is a process in which hooks can be asked, and are being asked.
var listening = turn.Now{
	Running: func(string) bool { return false }, Fresh: func(string) bool { return false },
	Hooks: true, Asked: func(string) bool { return true }, Verdict: &window.Verdict{},
}

func hooks(kind string, calls ...string) event.HookStartData {
	return event.HookStartData{ID: "h-" + kind, Kind: kind, Input: json.RawMessage(`{"transformedPrompt":"read"}`), Calls: calls, InputID: map[bool]string{true: "i"}[strings.HasPrefix(kind, "userPrompt")]}
}

func says(kind, output string) event.HookEndData {
	return event.HookEndData{ID: "h-" + kind, Kind: kind, Success: true, Output: json.RawMessage(output)}
}

func saysOf(call, output string) event.HookEndData {
	d := says(event.HookPreToolUse, "")
	d.Output, d.Outputs = nil, map[string]json.RawMessage{call: json.RawMessage(output)}
	return d
}

func after(call string) event.HookStartData {
	d := hooks(event.HookPostToolUse, call)
	outcome := finished(call).(event.ToolCompleteData)
	d.Outcome = &outcome
	return d
}

func failure() event.HookStartData {
	d := hooks(event.HookErrorOccurred)
	d.Failure = &event.SessionErrorData{ErrorType: "model", Message: "broken"}
	return d
}

// hookEvents are what hooks can add to a log.
var hookEvents = []event.Payload{
	hooks(event.HookPromptSubmitted), says(event.HookPromptSubmitted, `{"modifiedPrompt":"p","additionalContext":"c"}`),
	hooks(event.HookPromptTransformed), says(event.HookPromptTransformed, `{"modifiedTransformedPrompt":"t"}`),
	hooks(event.HookSessionStart), says(event.HookSessionStart, `{"additionalContext":"c"}`),
	hooks(event.HookPreToolUse, "c1", "c2"), saysOf("c1", `{"permissionDecision":"deny","modifiedArgs":{"a":1}}`),
	after("c1"), says(event.HookPostToolUse, `{"modifiedResult":"other","additionalContext":"c"}`),
	hooks(event.HookAgentStop), says(event.HookAgentStop, `{"decision":"block","reason":"r"}`), says(event.HookAgentStop, ``),
	event.UserMessageData{Content: "r", InteractionID: "x", Source: turn.SourceAgentStop},
	hooks(event.HookSessionEnd), says(event.HookSessionEnd, ``),
	failure(), says(event.HookErrorOccurred, `{"errorHandling":"retry"}`), says(event.HookErrorOccurred, ``),
	event.SystemMessageData{Content: "sys", Context: "c"},
	event.HookEndData{ID: "nobody's", Kind: "bogus", Output: json.RawMessage(`[]`)}, event.HookStartData{ID: "b", Kind: "bogus"},
}

// TestHooksInATurn walks a turn with hooks from the first event to the last.
func TestHooksInATurn(t *testing.T) {
	deaf := listening
	deaf.Hooks = false
	unheard := listening
	unheard.Asked = func(string) bool { return false }
	delivered := []event.Payload{start, accepted, message}
	called := append(slices.Clone(delivered), hooks(event.HookSessionStart), says(event.HookSessionStart, ""), asked, calls, intended("c1"), intended("c2"))
	over := append(slices.Clone(delivered), asked, words, ended)
	with := func(log []event.Payload, more ...event.Payload) []event.Payload {
		return append(slices.Clone(log), more...)
	}
	for _, test := range []struct {
		name string
		log  []event.Payload
		now  turn.Now
		want string
	}{
		{"an input waits", []event.Payload{start, accepted}, listening, "turn.StartHook userPromptSubmitted"},
		{"nobody can be asked", []event.Payload{start, accepted}, deaf, "turn.Deliver"},
		{"it was stored that it is asked, and this process does not", []event.Payload{start, accepted, hooks(event.HookPromptSubmitted)}, unheard, "turn.AskHook"},
		{"being asked", []event.Payload{start, accepted, hooks(event.HookPromptSubmitted)}, listening, "turn.Wait"},
		{"heard", []event.Payload{start, accepted, hooks(event.HookPromptSubmitted), says(event.HookPromptSubmitted, "")}, listening, "turn.StartHook userPromptTransformed"},
		{"both heard", []event.Payload{start, accepted, hooks(event.HookPromptSubmitted), says(event.HookPromptSubmitted, ""), hooks(event.HookPromptTransformed), says(event.HookPromptTransformed, "")}, listening, "turn.Deliver"},
		{"first turn", delivered, listening, "turn.StartHook sessionStart"},
		{"something to add", with(delivered, hooks(event.HookSessionStart), says(event.HookSessionStart, `{"additionalContext":"c"}`)), listening, "turn.Say"},
		{"it is added", with(delivered, hooks(event.HookSessionStart), says(event.HookSessionStart, `{"additionalContext":"c"}`), event.SystemMessageData{Context: "c"}), listening, "turn.StartStep"},
		{"calls", called, listening, "turn.StartHook preToolUse"},
		{"calls, being asked", with(called, hooks(event.HookPreToolUse, "c1", "c2")), listening, "turn.Wait"},
		{"calls, heard", with(called, hooks(event.HookPreToolUse, "c1", "c2"), saysOf("c1", `{}`)), listening, "turn.Judge"},
		{"calls, heard before a crash", with(called, hooks(event.HookPreToolUse, "c1", "c2"), saysOf("c1", `{}`)), deaf, "turn.Judge"},
		{"made, being asked", with(called, hooks(event.HookPreToolUse, "c1", "c2"), saysOf("c1", `{}`), asks("c2"), begun("c1"), after("c1")), listening, "turn.Wait"},
		{"made, heard", with(called, begun("c1"), after("c1"), says(event.HookPostToolUse, "")), listening, "turn.Conclude"},
		{"the last word", over, listening, "turn.StartHook agentStop"},
		{"the last word is taken", with(over, hooks(event.HookAgentStop), says(event.HookAgentStop, "")), listening, "turn.StartHook sessionEnd"},
		{"the last word is not taken", with(over, hooks(event.HookAgentStop), says(event.HookAgentStop, `{"decision":"block"}`)), deaf, "turn.Say"},
		{"the end is being told", with(over, hooks(event.HookSessionEnd)), listening, "turn.Wait"},
		{"the end is told", with(over, hooks(event.HookAgentStop), says(event.HookAgentStop, ""), hooks(event.HookSessionEnd), says(event.HookSessionEnd, "")), listening, "turn.Rest"},
		{"aborted", with(called, event.AbortData{}), listening, "turn.StartHook sessionEnd"},
		{"the model failed", with(delivered, asked, failure()), listening, "turn.Wait"},
		{"the turn is given up", with(delivered, asked, failure(), says(event.HookErrorOccurred, `{"errorHandling":"skip"}`)), listening, "turn.Fail"},
		{"the model is asked again", with(delivered, asked, failure(), says(event.HookErrorOccurred, `{"errorHandling":"retry"}`)), listening, "turn.AskModel"},
	} {
		w := newWriter(t).add(test.log...)
		step := turn.Next(w.state, test.now)
		got := fmt.Sprintf("%T", step)
		if h, ok := step.(turn.StartHook); ok {
			got += " " + h.Kind
		}
		if got != test.want {
			t.Errorf("%s: next is %s, want %s", test.name, got, test.want)
		}
	}
}

func TestTheSystemPromptIsLookedOverBeforeATurn(t *testing.T) {
	w := newWriter(t).add(start, accepted)
	now := listening
	now.Hooks, now.Prepare = false, true
	if _, ok := turn.Next(w.state, now).(turn.Prepare); !ok {
		t.Error("it is not")
	}
	now.Prepare, now.Preparing = false, true
	if _, ok := turn.Next(w.state, now).(turn.Wait); !ok {
		t.Error("the turn begins meanwhile")
	}
	w.add(message)
	if _, ok := turn.Next(w.state, now).(turn.StartStep); !ok {
		t.Error("a turn that has begun waits")
	}
}

func TestWhatAHookAllowsIsGrantedUnlessARuleDenies(t *testing.T) {
	ask := &approval.Request{Kind: approval.Shell, Subjects: []string{"act"}, Details: []string{"act"}, Ask: json.RawMessage(`{}`)}
	catalog := turn.Catalog{fake{tool.Spec{Name: "act"}, ask}}
	free := turn.Catalog{fake{tool.Spec{Name: "act"}, nil}}
	judge := func(c turn.Catalog, config event.SessionConfiguredData, decision string) event.Payload {
		w := newWriter(t).add(start, config, event.ClientDeclaredData{Permission: true}, accepted, message, asked, calls, intended("c1"), intended("c2"))
		w.add(hooks(event.HookPreToolUse, "c1", "c2"), saysOf("c1", `{"permissionDecision":"`+decision+`"}`))
		return c.Judge(w.state, w.state.Turn.Calls[0])[0]
	}
	guarded := *ask
	guarded.Protected = "git runs it"
	if _, ok := judge(turn.Catalog{fake{tool.Spec{Name: "act"}, &guarded}}, event.SessionConfiguredData{Approve: approval.All}, turn.HookAllow).(event.PermissionAskedData); !ok {
		t.Error("a protected file is not asked about because a hook allows it")
	}
	all := event.SessionConfiguredData{Approve: approval.All}
	denied := event.SessionConfiguredData{Permissions: event.PermissionRules{Deny: []string{"act"}}}
	if d, ok := judge(catalog, event.SessionConfiguredData{}, turn.HookAllow).(event.ToolBegunData); !ok || !d.Granted {
		t.Errorf("allowed: %+v", d)
	}
	if d, ok := judge(catalog, denied, turn.HookAllow).(event.ToolCompleteData); !ok || d.Error.Code != event.CodeDenied {
		t.Errorf("allowed by the hook, denied by a rule: %+v", d)
	}
	if _, ok := judge(catalog, all, turn.HookAsk).(event.PermissionAskedData); !ok {
		t.Error("a person is not asked although a hook wants it")
	}
	d, ok := judge(free, all, turn.HookAsk).(event.PermissionAskedData)
	if !ok || !strings.Contains(string(d.PermissionRequest), `"kind":"hook"`) {
		t.Errorf("a person is asked with %s", d.PermissionRequest)
	}
	unread := turn.Catalog{fake{tool.Spec{Name: "act"}, &approval.Request{Kind: approval.Shell, Ask: json.RawMessage(`{}`)}}}
	mayBe := event.SessionConfiguredData{Permissions: event.PermissionRules{Deny: []string{"bash(sudo *)"}}}
	if _, ok := judge(unread, mayBe, turn.HookAllow).(event.PermissionAskedData); !ok {
		t.Error("a hook allows what a rule may deny")
	}
	if d, ok := judge(free, all, turn.HookDeny).(event.ToolCompleteData); !ok || d.Error.Code != event.CodeDenied {
		t.Errorf("denied: %+v", d)
	}
}

// Some calls need no permission. Rules that name their tools hold nevertheless.
func TestRulesHoldForCallsThatNeedNoPermission(t *testing.T) {
	free := turn.Catalog{fake{tool.Spec{Name: "act"}, nil}}
	judge := func(config event.SessionConfiguredData) event.Payload {
		w := newWriter(t).add(start, config, event.ClientDeclaredData{Permission: true}, accepted, message, asked, calls, intended("c1"), intended("c2"))
		return free.Judge(w.state, w.state.Turn.Calls[0])[0]
	}
	with := func(deny, ask string) event.SessionConfiguredData {
		return event.SessionConfiguredData{Approve: approval.Workspace, Permissions: event.PermissionRules{Deny: []string{deny}, Ask: []string{ask}}}
	}
	for _, rule := range []string{"act", "*", "ACT"} {
		if d, ok := judge(with(rule, "other")).(event.ToolCompleteData); !ok || d.Error.Code != event.CodeDenied {
			t.Errorf("denied by %s: %+v", rule, d)
		}
		if _, ok := judge(with("other", rule)).(event.PermissionAskedData); !ok {
			t.Errorf("the rule %s asks, and nobody is asked", rule)
		}
	}
	managed := event.SessionConfiguredData{Managed: &event.ManagedRules{Deny: []string{"act"}}}
	if d, ok := judge(managed).(event.ToolCompleteData); !ok || d.Error.Code != event.CodeDenied {
		t.Errorf("denied by the client's settings: %+v", d)
	}
	if d, ok := judge(with("other", "other")).(event.ToolBegunData); !ok || d.Decision.By != event.ByNothing {
		t.Errorf("without such a rule: %+v", d)
	}
}

func TestAnOutcomeThatWasKnownIsNotLostInAnInterruption(t *testing.T) {
	w := newWriter(t).add(start, accepted, message, asked, calls, intended("c1"), intended("c2"), begun("c1"), after("c1"))
	w.add(turn.Interrupt(w.state, "stop", func(*turn.Call) bool { return true })...)
	d, err := event.As[event.ToolCompleteData](w.events[len(w.events)-2])
	if err != nil || !d.Success || len(w.state.Hooks.Open) != 0 {
		t.Errorf("%+v, %v, %d hooks are open", d, err, len(w.state.Hooks.Open))
	}
}

func TestOnlyWhatWasDoneIsAskedAboutAfterwards(t *testing.T) {
	w := newWriter(t).add(start, accepted, message, asked, calls, intended("c1"), intended("c2"))
	for code, want := range map[string]event.Type{
		"": event.HookStart, event.CodeFailure: event.HookStart, event.CodeTimeout: event.HookStart,
		event.CodeDenied: event.ToolComplete, event.CodeRejected: event.ToolComplete, event.CodeInterrupted: event.ToolComplete,
	} {
		d := finished("c1").(event.ToolCompleteData)
		if code != "" {
			d.Success, d.Result, d.Error = false, nil, &event.ToolError{Code: code, Message: "m"}
		}
		if got := turn.HoldForHooks(w.state, true, time.Unix(0, 0), []event.Payload{d})[0].Type(); got != want {
			t.Errorf("%q: %s, want %s", code, got, want)
		}
		if got := turn.HoldForHooks(w.state, false, time.Unix(0, 0), []event.Payload{d})[0].Type(); got != event.ToolComplete {
			t.Errorf("%q without hooks: %s", code, got)
		}
	}
}

func TestAgentsThatCanBeStarted(t *testing.T) {
	s := newWriter(t).add(start, event.SessionConfiguredData{ExcludedAgents: []string{"explore"}}).state
	catalog := turn.Catalog{agent.New(nil)}
	offered := catalog.Offer(s)
	if len(offered) != 1 || strings.Contains(string(offered[0].Parameters), `"explore"`) || !strings.Contains(string(offered[0].Parameters), `"research"`) {
		t.Errorf("offered %+v", offered)
	}
	s.Setup.Config.Agent = &event.AgentOf{}
	if offered := catalog.Offer(s); len(offered) != 0 {
		t.Errorf("an agent is offered %+v", offered)
	}
}

func TestWhatASessionWasComeToByIsForgottenWhenItIsIdle(t *testing.T) {
	w := newWriter(t).add(start, accepted, message, hooks(event.HookSessionStart), says(event.HookSessionStart, ""), asked, words, ended, idle)
	loaded := turn.New("s")
	if err := loaded.Load(w.events); err != nil || loaded.Life.Entry != "" || w.state.Life.Entry != "" {
		t.Errorf("folded %q, loaded %q, %v", w.state.Life.Entry, loaded.Life.Entry, err)
	}
}

// TestAProtectedFileWithNobodyToAskIsRefusedWithTheReason: not even --yolo writes it.
func TestAProtectedFileWithNobodyToAskIsRefusedWithTheReason(t *testing.T) {
	ask := &approval.Request{Kind: approval.Write, Allowed: true, Protected: "git runs it", Ask: json.RawMessage(`{}`)}
	w := newWriter(t).add(start, event.SessionConfiguredData{Approve: approval.All}, accepted, message, asked, calls, intended("c1"), intended("c2"))
	d, ok := turn.Catalog{fake{tool.Spec{Name: "act"}, ask}}.Judge(w.state, w.state.Turn.Calls[0])[0].(event.ToolCompleteData)
	if !ok || d.Error == nil || d.Error.Code != event.CodeDenied || !strings.Contains(d.Error.Message, "git runs it") {
		t.Errorf("%+v", d)
	}
}

// TestAYesToAProtectedFileCoversNothingElse, whatever the answer says.
func TestAYesToAProtectedFileCoversNothingElse(t *testing.T) {
	for _, kind := range []string{turn.ApproveOnce, turn.ApproveForSession, turn.ApproveForLocation, turn.ApprovePermanently} {
		w := newWriter(t).add(start, event.ClientDeclaredData{Permission: true}, accepted, message, asked, calls, intended("c1"), intended("c2"))
		w.add(event.PermissionAskedData{RequestID: "q", ToolCallID: "c1", PermissionRequest: json.RawMessage(`{"kind":"write"}`)})
		record, ok, err := turn.Answer{RequestID: "q", Permission: &turn.Decision{Kind: kind, Approval: json.RawMessage(`{"kind":"write"}`)}}.Give(w.state)
		if err != nil || !ok || len(record) != 1 {
			t.Fatalf("%s: %v, %v, %v", kind, record, ok, err)
		}
		if d := record[0].(event.PermissionDoneData); d.Result.Kind != event.Approved || len(d.Grants) > 0 {
			t.Errorf("%s: %+v", kind, d)
		}
	}
}

// TestAHookAllowsACallWhereItWasAsked: a hook is told the working directory. What it allows
// there is not made in another one that a client has chosen meanwhile.
func TestAHookAllowsACallWhereItWasAsked(t *testing.T) {
	catalog := turn.Catalog{fake{tool.Spec{Name: "act"}, &approval.Request{Kind: approval.Shell, Subjects: []string{"act"}, Ask: json.RawMessage(`{}`)}}}
	at := func(dir string) event.Payload { return event.SessionConfiguredData{WorkingDirectory: dir} }
	for moved, want := range map[string]event.Type{"/a": event.ToolBegun, "/b": event.PermissionAsked} {
		w := newWriter(t).add(start, at("/a"), event.ClientDeclaredData{Permission: true}, accepted, message, asked, calls, intended("c1"),
			hooks(event.HookPreToolUse, "c1"), at(moved), saysOf("c1", `{"permissionDecision":"allow"}`))
		if got := catalog.Judge(w.state, w.state.Turn.Calls[0]); len(got) != 1 || got[0].Type() != want {
			t.Errorf("in %s: %v, want %s", moved, got, want)
		}
	}
}

// Clients write JSON in their own ways: what they decide is compared as it is read.
func TestTheStrictestDecisionOfSeveralHooksCounts(t *testing.T) {
	for _, test := range []struct {
		name    string
		outputs []string
		want    string
	}{
		{"no before yes", []string{`{"permissionDecision":"deny"}`, `{"permissionDecision":"allow"}`}, turn.HookDeny},
		{"yes before no", []string{`{"permissionDecision":"allow"}`, `{"permissionDecision":"deny"}`}, turn.HookDeny},
		{"escapes", []string{`{"permissionDecision":"den\u0079"}`, `{"permissionDecision":"allow"}`}, turn.HookDeny},
		{"escapes in ask", []string{`{"permissionDecision":"\u0061sk"}`, `{"permissionDecision":"allow"}`}, turn.HookAsk},
		{"another case", []string{`{"PermissionDecision":"deny"}`, `{"permissionDecision":"allow"}`}, turn.HookDeny},
		{"another case of yes", []string{`{"permissiondecision":"allow"}`, `{"permissionDecision":"deny"}`}, turn.HookDeny},
		{"nothing", []string{`{"permissionDecision":"deny"}`, `{"permissionDecision":null}`}, turn.HookDeny},
		{"a broken field", []string{`{"additionalContext":5,"permissionDecision":"deny"}`, `{"permissionDecision":"allow"}`}, turn.HookDeny},
		{"other arguments", []string{`{"permissionDecision":"allow"}`, `{"modifiedArgs":{"command":"evil"}}`}, ""},
		{"other arguments, and then yes", []string{`{"modifiedArgs":{"command":"evil"}}`, `{"permissionDecision":"allow"}`}, ""},
		{"other arguments with a yes of their own", []string{`{"permissionDecision":"allow","modifiedArgs":{}}`, `{"permissionDecision":"allow"}`}, turn.HookAllow},
	} {
		var outputs []json.RawMessage
		for _, o := range test.outputs {
			outputs = append(outputs, json.RawMessage(o))
		}
		var got turn.Verdict
		if merged := turn.MergeOutputs(outputs); merged != nil {
			_ = json.Unmarshal(merged, &got)
		}
		if got.Decision != test.want {
			t.Errorf("%s: the decision is %q, want %q", test.name, got.Decision, test.want)
		}
	}
}

// A hook that says yes to arguments of its own has not said yes to those of the model.
func TestAYesThatCannotBeReadAsAWholeIsNone(t *testing.T) {
	for output, want := range map[string]string{
		`{"permissionDecision":"allow","modifiedArgs":{"a":1}}`:                       turn.HookAllow,
		`{"permissionDecision":"allow","modifiedArgs":null}`:                          turn.HookAllow,
		`{"permissionDecision":"allow","modifiedArgs":{"a":1},"additionalContext":5}`: "",
		`{"permissionDecision":"allow","modifiedArgs":"{\"a\":1}"}`:                   "",
		`{"permissionDecision":"deny","additionalContext":5}`:                         turn.HookDeny,
		`{"permissionDecision":"ask","modifiedArgs":[]}`:                              turn.HookAsk,
	} {
		w := newWriter(t).add(start, accepted, message, asked, calls, intended("c1"), intended("c2"), hooks(event.HookPreToolUse, "c1", "c2"), saysOf("c1", output))
		if got := w.state.Turn.Calls[0].Hook.Verdict.Decision; got != want {
			t.Errorf("%s: the decision is %q, want %q", output, got, want)
		}
	}
}
