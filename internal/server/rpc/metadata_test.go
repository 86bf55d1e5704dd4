package rpc_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/server/rpc"
)

func TestBadInputAboutASessionIsNamed(t *testing.T) {
	p := newFiled(t).open(api.SessionCreate, nil)
	for _, test := range []struct {
		method string
		params object
		want   string
	}{
		{api.ModeGet, object{"sessionId": "nope"}, "not found"},
		{api.ModeSet, object{"sessionId": "s", "mode": "shell"}, `mode: "shell"`},
		{api.NameGet, object{"sessionId": "nope"}, "not found"},
		{api.NameSet, object{"sessionId": "s", "name": " \t"}, "Session name cannot be empty"},
		{api.NameSetAuto, object{"sessionId": "s", "summary": " "}, "summary: it is empty"},
		{api.IsProcessing, object{"sessionId": "nope"}, "not found"},
		{api.Activity, object{"sessionId": "nope"}, "not found"},
		{api.Snapshot, object{"sessionId": "nope"}, "not found"},
		{api.ContextInfo, object{"sessionId": "nope"}, "not found"},
		{api.UsageMetrics, object{"sessionId": "nope"}, "not found"},
		{api.SetDirectory, object{"sessionId": "s", "workingDirectory": "x"}, "workingDirectory: want an absolute path"},
		{api.SetDirectory, object{"sessionId": "s", "workingDirectory": "/no/such"}, "workingDirectory /no/such"},
		{api.RecordContext, object{"sessionId": "s", "context": object{}}, "context.cwd: it is empty"},
		{api.ModelList, object{"sessionId": "nope"}, "not found"},
		{api.SetReasoningEffort, object{"sessionId": "s"}, "reasoningEffort: it is empty"},
		{api.ProviderAdd, object{"sessionId": "s", "providers": []object{{"name": "a"}}}, "providers[0].baseUrl"},
		{api.ProviderEndpoint, object{"sessionId": "s"}, "no provider"},
		{api.SendMessages, object{"sessionId": "s"}, "messages: it is empty"},
		{api.InterruptTurn, object{"sessionId": "nope"}, "not found"},
		{api.SessionShutdown, object{"sessionId": "s", "type": "odd"}, `type: "odd"`},
		{api.CurrentTools, object{}, "sessionId: it is missing"},
		{api.AnswerExitPlan, object{"sessionId": "s", "requestId": "r", "response": object{}}, "response.approved: it is missing"},
	} {
		if fault := p.refused(test.method, test.params); !strings.Contains(fault.Message, test.want) {
			t.Errorf("%s %v: %s, want %q", test.method, test.params, fault.Message, test.want)
		}
	}
}

func TestModeAndNameOfASession(t *testing.T) {
	p := newFiled(t).open(api.SessionCreate, nil)
	mode := func() (m string) { p.must(api.ModeGet, object{"sessionId": "s"}, &m); return m }
	if mode() != "interactive" {
		t.Error(mode())
	}
	p.must(api.ModeSet, object{"sessionId": "s", "mode": "plan"}, nil)
	if d := data[event.ModeChangedData](t, p.await(event.ModeChanged)); d.NewMode != "plan" || d.PreviousMode != "interactive" || mode() != "plan" {
		t.Errorf("%+v, %s", d, mode())
	}
	name := func() string {
		var n api.NameResult
		p.must(api.NameGet, object{"sessionId": "s"}, &n)
		if n.Name == nil {
			return ""
		}
		return *n.Name
	}
	suggest := func(text string) bool {
		var r api.AppliedNameResult
		p.must(api.NameSetAuto, object{"sessionId": "s", "summary": text}, &r)
		return r.Applied
	}
	if name() != "" || !suggest("  first ") || name() != "first" || !suggest("second") || name() != "second" {
		t.Errorf("name = %q", name())
	}
	p.must(api.NameSet, object{"sessionId": "s", "name": "Mine"}, nil)
	if suggest("third") || name() != "Mine" {
		t.Errorf("name = %q", name())
	}
}

func TestWhatASessionIsLike(t *testing.T) {
	p := newFiled(t).open(api.SessionCreate, object{"tools": []object{{"name": "act", "description": "Act", "skipPermission": true}}, "model": "m"})
	active := func() bool {
		var a api.ActivityResult
		var b api.ProcessingResult
		p.must(api.Activity, object{"sessionId": "s"}, &a)
		p.must(api.IsProcessing, object{"sessionId": "s"}, &b)
		if a.HasActiveWork != b.Processing || a.Abortable != b.Processing {
			t.Errorf("%+v, %+v", a, b)
		}
		return b.Processing
	}
	if active() {
		t.Error("a new session is active")
	}
	var sent api.SendMessagesResult
	p.must(api.SendMessages, object{"sessionId": "s", "messages": []object{
		{"prompt": "Use act with value 'x', then reply with the result"}, {"prompt": "Reply with exactly: NEXT"}}}, &sent)
	p.await(event.ExternalAsked)
	if len(sent.MessageIDs) != 2 || !active() {
		t.Errorf("sent %v, active %v", sent, active())
	}
	var tools api.ToolsResult
	p.must(api.CurrentTools, object{"sessionId": "s"}, &tools)
	ofClient := func(t api.ToolInfo) bool { return t.Name == "act" }
	if !slices.ContainsFunc(tools.Tools, ofClient) {
		t.Errorf("the client's tool is not among those of the session: %+v", tools)
	}
	p.must(api.ToolsList, nil, &tools)
	if slices.ContainsFunc(tools.Tools, ofClient) {
		t.Errorf("the client's tool is among those of the runtime: %+v", tools)
	}
	var stopped api.InterruptResult
	p.must(api.InterruptTurn, object{"sessionId": "s", "flushQueued": true}, &stopped)
	if d := data[event.AssistantMessageData](t, p.await(event.AssistantMessage)); !stopped.Interrupted || d.Content != "NEXT" {
		t.Errorf("interrupted %v, then %q", stopped, d.Content)
	}
	p.await(event.SessionIdle)
	p.must(api.InterruptTurn, object{"sessionId": "s"}, &stopped)
	if stopped.Interrupted {
		t.Error("interrupted nothing")
	}
	dir := t.TempDir()
	p.must(api.SetDirectory, object{"sessionId": "s", "workingDirectory": dir}, nil)
	var at api.SnapshotResult
	p.must(api.Snapshot, object{"sessionId": "s"}, &at)
	if at.SessionID != "s" || at.CurrentMode != "interactive" || at.WorkingDirectory != dir || at.WorkspacePath == nil || at.Workspace == nil || at.StartTime == "" || at.ModifiedTime == "" {
		t.Errorf("snapshot = %+v", at)
	}
	p.must(api.RecordContext, object{"sessionId": "s", "context": object{"cwd": "/elsewhere", "branch": "b"}}, nil)
	p.must(api.RecordContext, object{"sessionId": "s", "context": object{"cwd": dir, "branch": "b2"}}, nil)
	if d := data[event.ContextChangedData](t, p.await(event.ContextChanged)); d.Branch != "b2" {
		t.Errorf("context = %+v", d)
	}
	p.must(api.SetReasoningEffort, object{"sessionId": "s", "reasoningEffort": "high"}, nil)
	var model api.ModelResult
	p.must(api.ModelGetCurrent, object{"sessionId": "s"}, &model)
	if model.ReasoningEffort != "high" {
		t.Errorf("model = %+v", model)
	}
	p.must(api.ContextInfo, object{"sessionId": "s"}, nil)
	var used api.MetricsResult
	p.must(api.UsageMetrics, object{"sessionId": "s"}, &used)
	if used.UserRequests != 2 || used.SessionStartTime == "" || used.Tokens["output"].Count == 0 {
		t.Errorf("used %+v", used)
	}
}

func TestProvidersCanBeAdded(t *testing.T) {
	p := newWired(t).connect(rpc.Door{})
	p.must(api.SessionCreate, byok, nil)
	endpoint := func(model string) (r api.EndpointResult) {
		p.must(api.ProviderEndpoint, object{"sessionId": "s", "modelId": model}, &r)
		return r
	}
	add := object{"sessionId": "s",
		"providers": []object{{"name": "green", "baseUrl": "https://green.invalid", "apiKey": "green-key", "headers": object{"X-A": "b"}}},
		"models":    []object{{"id": "new", "provider": "green", "name": "New"}}}
	var added api.ProviderAddResult
	p.must(api.ProviderAdd, add, &added)
	if len(added.Models) != 1 || added.Models[0].ID != "green/new" || added.Models[0].Name != "New" {
		t.Errorf("added %+v, want the models as they can be chosen", added)
	}
	p.must(api.ProviderAdd, add, nil) // twice is once
	if e := endpoint("green/new"); e.BaseURL != "https://green.invalid" || e.APIKey != "green-key" || e.Headers["X-A"] != "b" || e.Type != "openai" {
		t.Errorf("green is at %+v", e)
	}
	if e := endpoint("blue/slow"); e.APIKey != "blue-key" {
		t.Errorf("blue is at %+v", e)
	}
	if e := endpoint(""); e.BaseURL != "https://red.invalid/v1" {
		t.Errorf("the session's model is at %+v", e)
	}
	var list struct{ List []api.Model }
	p.must(api.ModelList, object{"sessionId": "s"}, &list)
	if len(list.List) != 3 {
		t.Errorf("models = %+v", list)
	}
}

// What this version does not know of a provider may be secret, so it is not recorded.
func TestUnknownMembersOfProvidersAreNotRecorded(t *testing.T) {
	r := newTestServer(t)
	p := r.connect(rpc.Door{})
	strange := func(name string) object {
		return object{"name": name, "baseUrl": "http://x", "APIKEY": "hidden", "clientSecret": "hidden", "transport": "http"}
	}
	models := func(id string) []object {
		return []object{{"id": id, "provider": "a", "clientSecret": "hidden"}}
	}
	check := func(own, listed, models string) {
		t.Helper()
		st, err := r.host.Status(t.Context(), "s")
		if err != nil {
			t.Fatal(err)
		}
		if c := st.Config; string(c.Provider) != own || string(c.Providers) != listed || string(c.Models) != models {
			t.Errorf("recorded %s, %s and %s, want %s, %s and %s", c.Provider, c.Providers, c.Models, own, listed, models)
		}
	}
	const a, b = `{"name":"a","baseUrl":"http://x"}`, `{"name":"b","baseUrl":"http://x"}`
	p.must(api.SessionCreate, object{"sessionId": "s", "provider": strange("own"), "providers": []object{strange("a")}, "models": models("m")}, nil)
	check(`{"name":"own","baseUrl":"http://x"}`, `[`+a+`]`, `[{"id":"m","provider":"a"}]`)
	p.must(api.ProviderAdd, object{"sessionId": "s", "providers": []object{strange("b")}, "models": models("n")}, nil)
	check(`{"name":"own","baseUrl":"http://x"}`, `[`+b+`,`+a+`]`, `[{"id":"n","provider":"a"},{"id":"m","provider":"a"}]`)
	p.must(api.OptionsUpdate, object{"sessionId": "s", "provider": strange("other")}, nil)
	check(`{"name":"other","baseUrl":"http://x"}`, `[`+b+`,`+a+`]`, `[{"id":"n","provider":"a"},{"id":"m","provider":"a"}]`)
	var at api.EndpointResult
	p.must(api.ProviderEndpoint, object{"sessionId": "s", "modelId": "a/m"}, &at)
	if at.APIKey != "hidden" {
		t.Errorf("the key is %q", at.APIKey)
	}
}

// What a newer version has recorded of a provider stays when another is added.
func TestProvidersOfANewerVersionAreKeptBesideAddedOnes(t *testing.T) {
	r := newTestServer(t)
	p := r.open(api.SessionCreate, nil)
	const old, model = `{"name":"old","baseUrl":"http://x","zone":{"n":1.10,"s":"<"}}`, `{"id":"m","provider":"old","tier":[1,2]}`
	err := r.host.Configure(t.Context(), "s", func(to *event.SessionConfiguredData) error {
		to.Providers, to.Models = json.RawMessage(`[`+old+`]`), json.RawMessage(`[`+model+`]`)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	p.must(api.ProviderAdd, object{"sessionId": "s", "providers": []object{{"name": "new", "baseUrl": "http://y"}}}, nil)
	st, err := r.host.Status(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(st.Config.Providers), `[{"name":"new","baseUrl":"http://y"},`+old+`]`; got != want {
		t.Errorf("the providers are %s, want %s", got, want)
	}
	if got, want := string(st.Config.Models), `[`+model+`]`; got != want {
		t.Errorf("the models are %s, want %s", got, want)
	}
}

func TestASessionIsShutDownForEverybody(t *testing.T) {
	r := newTestServer(t)
	p := r.open(api.SessionCreate, object{"tools": []object{{"name": "act", "skipPermission": true}}})
	other := r.open(api.SessionResume, nil)
	p.must(api.SessionSend, object{"sessionId": "s", "prompt": "Use act with value 'x', then reply with the result"}, nil)
	asked := data[event.ExternalAskedData](t, p.await(event.ExternalAsked))
	p.must(api.SessionShutdown, object{"sessionId": "s", "reason": "enough"}, nil)
	for _, c := range []*peer{p, other} {
		if d := data[event.ShutdownData](t, c.await(event.SessionShutdown)); d.Kind != "routine" || d.Started == 0 {
			t.Errorf("shutdown = %+v", d)
		}
	}
	if fault := p.refused(api.SessionSend, object{"sessionId": "s", "prompt": "x"}); !strings.Contains(fault.Message, "not found") {
		t.Error(fault)
	}
	p.must(api.SessionResume, object{"sessionId": "s", "continuePendingWork": true, "tools": []object{{"name": "act", "skipPermission": true}}}, nil)
	var won api.Success
	p.must(api.AnswerTool, object{"sessionId": "s", "requestId": asked.RequestID, "result": "DONE"}, &won)
	if d := data[event.AssistantMessageData](t, p.await(event.AssistantMessage)); !won.Success || !strings.Contains(d.Content, "DONE") {
		t.Errorf("answered %v, then %q", won, d.Content)
	}
}

// plan is how the offline model is asked to present a plan.
const plan = `Use exit_plan_mode with {"summary":"Do it","recommendedAction":"interactive"}`

func TestAPlanIsApprovedByAPerson(t *testing.T) {
	for _, test := range []struct {
		reply object
		want  string
		mode  string
	}{
		{object{"approved": true, "selectedAction": "interactive"}, "Plan approved! Exited plan mode.\n\nYou are now in interactive mode. Start", "interactive"},
		{object{"approved": true, "selectedAction": "autopilot"}, "You are now in autopilot mode", "autopilot"},
		{object{"approved": true, "selectedAction": "exit_only"}, "without automatic execution", "interactive"},
		{object{"approved": false, "feedback": "shorter"}, "Plan not approved. User feedback:\n\nshorter\n\nPlease update", "plan"},
		{object{"approved": false}, "did not provide specific feedback", "plan"},
	} {
		r := newFiled(t)
		p := r.connect(rpc.Door{})
		asked := make(chan api.ExitPlanParams, 1)
		p.serve = func(method string, params json.RawMessage) (any, error) {
			var q api.ExitPlanParams
			if method != api.ExitPlan || json.Unmarshal(params, &q) != nil {
				return nil, errors.New("what?")
			}
			asked <- q
			return test.reply, nil
		}
		p.must(api.SessionCreate, object{"sessionId": "s", "requestExitPlanMode": true}, nil)
		p.must(api.ModeSet, object{"sessionId": "s", "mode": "plan"}, nil)
		p.must(api.PlanUpdate, object{"sessionId": "s", "content": "# Plan"}, nil)
		p.must(api.SessionSend, object{"sessionId": "s", "prompt": plan}, nil)
		if q := <-asked; q.PlanContent != "# Plan" || q.Summary != "Do it" || q.Recommended != "interactive" || strings.Join(q.Actions, " ") != "autopilot interactive exit_only" {
			t.Errorf("asked %+v", q)
		}
		p.await(event.ExitPlanDone)
		if d := data[event.ToolCompleteData](t, p.await(event.ToolComplete)); d.Result == nil || !strings.Contains(d.Result.Content, test.want) {
			t.Errorf("%v: the model reads %+v", test.reply, d)
		}
		p.await(event.SessionIdle)
		var mode string
		p.must(api.ModeGet, object{"sessionId": "s"}, &mode)
		if mode != test.mode {
			t.Errorf("%v: the mode is %s, want %s", test.reply, mode, test.mode)
		}
	}
}

func TestAnyClientMayApproveAPlan(t *testing.T) {
	r := newTestServer(t)
	p := r.connect(rpc.Door{})
	p.must(api.SessionCreate, object{"sessionId": "s"}, nil)
	other := r.connect(rpc.Door{})
	lost := make(chan struct{})
	defer close(lost)
	other.serve = func(method string, _ json.RawMessage) (any, error) {
		if method == api.ExitPlan {
			<-lost
		}
		return nil, errors.New("gone")
	}
	other.must(api.SessionResume, object{"sessionId": "s", "requestExitPlanMode": true}, nil)
	p.must(api.SessionSend, object{"sessionId": "s", "prompt": plan, "agentMode": "plan"}, nil)
	q := data[event.ExitPlanAskedData](t, p.await(event.ExitPlanAsked))
	var open api.QuestionsResult
	p.must(api.Questions, object{"sessionId": "s"}, &open)
	var first, second api.Success
	answer := object{"sessionId": "s", "requestId": q.RequestID, "response": object{"approved": true}}
	p.must(api.AnswerExitPlan, answer, &first)
	p.must(api.AnswerExitPlan, answer, &second)
	if len(open.Questions) != 1 || !first.Success || second.Success {
		t.Errorf("%d questions; answered %v, again %v", len(open.Questions), first, second)
	}
	p.await(event.SessionIdle)
	// Without plan mode there is no plan to present.
	p.must(api.SessionSend, object{"sessionId": "s", "prompt": plan}, nil)
	if d := data[event.ToolCompleteData](t, p.await(event.ToolComplete)); d.Error == nil || !strings.Contains(d.Error.Message, "does not exist") {
		t.Errorf("%+v", d)
	}
}
