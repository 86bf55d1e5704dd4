package rpc_test

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/approval/places"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/jsonrpc"
	"github.com/abide-run/abide/internal/server/rpc"
	"github.com/abide-run/abide/internal/session"
)

type object = map[string]any

// newFiled is a testServer whose sessions have files.
func newFiled(t *testing.T) *testServer {
	dir := t.TempDir()
	known := places.Open(filepath.Join(dir, "locations.json"))
	r := newTestServerWith(t, session.Options{Standing: known.Standing})
	r.srv = rpc.New(r.host, rpc.Options{
		Version: "test", Places: known,
		Workspace: func(id event.SessionID) string { return filepath.Join(dir, string(id)) },
	})
	return r
}

// open connects a client and lets it open the session s.
func (r *testServer) open(method string, more object) *peer {
	r.t.Helper()
	p := r.connect(rpc.Door{})
	p.open(method, more)
	return p
}

func (p *peer) open(method string, more object) {
	p.t.Helper()
	params := object{"sessionId": "s", "workingDirectory": p.t.TempDir()}
	maps.Copy(params, more)
	p.must(method, params, nil)
}

func data[T any](t *testing.T, e event.Event) T {
	t.Helper()
	d, err := event.As[T](e)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// later makes a request whose answer is not waited for here.
func (p *peer) later(method string, params, result any) <-chan error {
	done := make(chan error, 1)
	go func() { done <- p.Call(context.Background(), method, params, result) }()
	return done
}

func TestBadInputToEveryFamilyIsNamed(t *testing.T) {
	r := newFiled(t)
	p := r.open(api.SessionCreate, nil)
	for _, test := range []struct {
		method string
		params object
		want   string
	}{
		{api.CheckInUse, object{"sessionIds": "s"}, "sessionIds: want array"},
		{api.SetForeground, object{"sessionId": 7}, "sessionId: want string"},
		{api.SessionSuspend, object{"sessionId": "nope"}, "not found"},
		{api.UIElicitation, object{"sessionId": "s", "requestedSchema": object{}}, "message: it is empty"},
		{api.UIElicitation, object{"sessionId": "s", "message": "?", "requestedSchema": 3}, "requestedSchema: want object"},
		{api.UIElicitation, object{"sessionId": "s", "message": "?", "requestedSchema": object{}}, "not supported"},
		{api.AnswerElicitation, object{"sessionId": "s", "requestId": "r", "result": object{"action": "shrug"}}, "result.action"},
		{api.CommandsList, object{"sessionId": "nope"}, "not found"},
		{api.CommandsInvoke, object{"sessionId": "s", "name": "/"}, "name: it is empty"},
		{api.CommandsExecute, object{"sessionId": "s"}, "commandName: it is empty"},
		{api.CommandsEnqueue, object{"sessionId": "s", "command": " / "}, "command: it is empty"},
		{api.CommandsRespond, object{"sessionId": "s", "requestId": "r", "result": 1}, "result: want object"},
		{api.AnswerCommand, object{"sessionId": "nope", "requestId": "r"}, "not found"},
		{api.EventLogRead, object{"sessionId": "s", "max": 0}, "max: use 1 to 1000"},
		{api.EventLogRead, object{"sessionId": "s", "waitMs": -1}, "waitMs: it is negative"},
		{api.EventLogRead, object{"sessionId": "s", "types": []string{}}, "types: want"},
		{api.EventLogRead, object{"sessionId": "s", "cursor": "x"}, "cursor:"},
		{api.EventLogRead, object{"sessionId": "s", "cursor": "3.zz"}, "cursor:"},
		{api.EventLogRead, object{"sessionId": "s", "direction": "up"}, `direction: "up"`},
		{api.EventLogTail, object{"sessionId": "nope"}, "not found"},
		{api.RegisterInterest, object{"sessionId": "s"}, "eventType: it is empty"},
		{api.PlanUpdate, object{"sessionId": "s"}, "content: it is missing"},
		{api.PlanRead, object{"sessionId": "nope"}, "not found"},
		{api.PlanDelete, object{"sessionId": "nope"}, "not found"},
		{api.PlanReadTodos, object{"sessionId": "nope"}, "not found"},
		{api.QueuePending, object{"sessionId": "nope"}, "not found"},
		{api.QueueHasPending, object{"sessionId": "nope"}, "not found"},
		{api.QueueClear, object{"sessionId": "nope"}, "not found"},
		{api.QueueRemoveAt, object{"sessionId": "s"}, "id: it is empty"},
		{api.QueueMoveItem, object{"sessionId": "s", "id": "x", "toPosition": "up"}, "toPosition: want number"},
		{api.QueueUpdateText, object{"sessionId": "s"}, "id: it is empty"},
		{api.QueueSendNow, object{"sessionId": "s"}, "id: it is empty"},
		{api.QueueInsertAt, object{"sessionId": "s", "message": object{}}, "message.prompt: it is empty"},
		{api.QueueDuplicateAt, object{"sessionId": "s", "id": "x"}, "Queued item not found: x"},
		{api.QueueSetPaused, object{"sessionId": "s"}, "paused: it is missing"},
		{api.PermissionsSetApproveAll, object{"sessionId": "s"}, "enabled: it is missing"},
		{api.PermissionsSetMode, object{"sessionId": "s", "mode": "assisted"}, `mode: "assisted" is not supported`},
		{api.PermissionsGetMode, object{"sessionId": "nope"}, "not found"},
		{api.PermissionsConfigure, object{"sessionId": "s", "rules": object{"approved": []object{{}}}}, "rules.approved[0].kind"},
		{api.PermissionsConfigure, object{"sessionId": "s", "paths": object{"additionalDirectories": []string{"x"}}}, "paths:"},
		{api.PermissionsModifyRules, object{"sessionId": "s", "scope": "world"}, `scope: "world"`},
		{api.PermissionsModifyRules, object{"sessionId": "s", "scope": "session", "add": []object{{"kind": "edit", "argument": "["}}}, "add[0]"},
		{api.PermissionsSetRequired, object{"sessionId": "s"}, "required: it is missing"},
		{api.PermissionsPromptShown, object{"sessionId": "s"}, "message: it is empty"},
		{api.PermissionsReset, object{"sessionId": "nope"}, "not found"},
		{api.PathsList, object{"sessionId": "nope"}, "not found"},
		{api.PathsAdd, object{"sessionId": "s", "path": "/no/such/folder"}, "path /no/such/folder"},
		{api.PathsUpdatePrimary, object{"sessionId": "s"}, "path: it is empty"},
		{api.PathsAllowed, object{"sessionId": "s"}, "path: it is empty"},
		{api.PathsWorkspace, object{"sessionId": "nope", "path": "x"}, "not found"},
		{api.URLsUnrestricted, object{"sessionId": "s"}, "enabled: it is missing"},
		{api.LocationsResolve, object{"sessionId": "s", "workingDirectory": "here"}, "workingDirectory: want an absolute path"},
		{api.LocationsApply, object{"sessionId": "nope", "workingDirectory": "/"}, "not found"},
		{api.LocationsAddApproval, object{"sessionId": "s", "approval": object{"kind": "read"}}, "locationKey: it is empty"},
		{api.LocationsAddApproval, object{"sessionId": "s", "locationKey": "/x", "approval": object{"kind": "magic"}}, "approval.kind"},
		{api.LocationsAddApproval, object{"sessionId": "s", "locationKey": "/x", "approval": object{"kind": "commands"}}, "approval.commandIdentifiers"},
		{api.FolderIsTrusted, object{"sessionId": "s", "path": "x"}, "path: want an absolute path"},
		{api.FolderAddTrusted, object{"sessionId": "s"}, "path: it is empty"},
		{api.InferenceResponseStart, object{"requestId": "r", "status": 7}, "status: 7"},
		{api.InferenceResponseChunk, object{"requestId": "r", "data": "!", "binary": true}, "data:"},
		{api.SessionCreate, object{"commands": []object{{}}}, "commands[0].name"},
		{api.SessionCreate, object{"providers": []object{{"baseUrl": "http://x"}}}, "providers[0].name"},
		{api.SessionCreate, object{"providers": []object{{"name": "a"}}}, "providers[0].baseUrl"},
		{api.SessionCreate, object{"providers": []object{{"name": "a", "baseUrl": "u"}, {"name": "a", "baseUrl": "u"}}}, `providers[1].name: there is another "a"`},
		{api.SessionCreate, object{"provider": object{}}, "provider.baseUrl: it is empty"},
		{api.SessionCreate, object{"provider": object{"baseUrl": 7}}, "provider.baseUrl: want string, have number"},
		{api.SessionCreate, object{"providers": []object{{"azure": object{"apiVersion": 1}}}}, "providers.azure.apiVersion: want string, have number"},
		{api.SessionCreate, object{"models": []object{{"maxOutputTokens": "many"}}}, "models.maxOutputTokens: want number, have string"},
		{api.SessionCreate, object{"models": []object{{"id": "m", "provider": "a"}}}, "models[0]"},
	} {
		if fault := p.refused(test.method, test.params); !strings.Contains(fault.Message, test.want) {
			t.Errorf("%s %v: %s, want %q", test.method, test.params, fault.Message, test.want)
		}
	}
}

func TestNoTerminalShowsASession(t *testing.T) {
	p := newTestServer(t).open(api.SessionCreate, nil)
	var at api.ForegroundResult
	p.must(api.GetForeground, nil, &at)
	var set api.Success
	p.must(api.SetForeground, object{"sessionId": "s"}, &set)
	if at.SessionID != "" || set.Success || !strings.Contains(set.Error, "Not running in TUI+server mode") {
		t.Errorf("foreground %+v, set %+v", at, set)
	}
}

func TestASessionThatTheClientHasLeftIsGoneForIt(t *testing.T) {
	r := newTestServer(t)
	p := r.open(api.SessionCreate, nil)
	other := r.connect(rpc.Door{})
	inUse := func() bool {
		var use api.InUseResult
		other.must(api.CheckInUse, object{"sessionIds": []string{"s", "t"}}, &use)
		return slices.Equal(use.InUse, []event.SessionID{"s"})
	}
	if !inUse() {
		t.Error("a session with a client is not in use")
	}
	p.must(api.SessionDestroy, object{"sessionId": "s"}, nil)
	if inUse() {
		t.Error("a session that its client has left is in use")
	}
	for _, method := range []string{api.SessionGetMessages, api.SessionSend, api.SessionAbort, api.QueuePending, api.EventLogTail} {
		if fault := p.refused(method, object{"sessionId": "s", "prompt": "x"}); !strings.Contains(fault.Message, "Session not found") {
			t.Errorf("%s: %v", method, fault)
		}
	}
	p.must(api.SessionDestroy, object{"sessionId": "s"}, nil) // a second call does no harm
	p.must(api.Status, object{"sessionId": "s"}, nil)         // our own methods need nobody there
	r.open(api.SessionResume, nil)
	p.must(api.SessionGetMessages, object{"sessionId": "s"}, nil) // somebody is there
	p.must(api.SessionResume, object{"sessionId": "s"}, nil)
	p.must(api.SessionGetMessages, object{"sessionId": "s"}, nil)
}

func TestAFormIsFilledInByAnotherClient(t *testing.T) {
	r := newTestServer(t)
	asks := r.open(api.SessionCreate, nil)
	var opened api.OpenResult
	person := r.connect(rpc.Door{})
	person.must(api.SessionResume, object{"sessionId": "s", "requestElicitation": true}, &opened)
	if !opened.Capabilities.UI.Elicitation {
		t.Error("the capability is missing in the answer")
	}
	if d := data[event.CapabilitiesChangedData](t, asks.await(event.CapabilitiesChanged)); !d.UI.Elicitation {
		t.Error("the capability was not announced")
	}
	for _, action := range []string{"accept", "decline", "cancel"} {
		var filled api.ElicitationResult
		done := asks.later(api.UIElicitation, object{"sessionId": "s", "message": "Name?", "requestedSchema": object{"type": "object", "properties": object{}}}, &filled)
		form := data[event.ElicitationAskedData](t, person.await(event.ElicitationAsked))
		var open api.QuestionsResult
		person.must(api.Questions, object{"sessionId": "s"}, &open)
		if len(open.Questions) != 1 || form.Message != "Name?" {
			t.Errorf("form %+v; %d questions are listed, want 1", form, len(open.Questions))
		}
		var first, second api.Success
		answer := object{"sessionId": "s", "requestId": form.RequestID, "result": object{"action": action, "content": object{"name": "Mona"}}}
		person.must(api.AnswerElicitation, answer, &first)
		person.must(api.AnswerElicitation, answer, &second)
		if err := <-done; err != nil || filled.Action != action || !strings.Contains(string(filled.Content), "Mona") {
			t.Errorf("filled %+v, %v", filled, err)
		}
		if !first.Success || second.Success {
			t.Errorf("answered %v, and again %v", first, second)
		}
	}
	person.must(api.SessionDestroy, object{"sessionId": "s"}, nil)
	if d := data[event.CapabilitiesChangedData](t, asks.await(event.CapabilitiesChanged)); d.UI.Elicitation {
		t.Error("the lost capability was not announced")
	}
}

func TestAFormWhoseAskerHasLeftIsCancelled(t *testing.T) {
	r := newTestServer(t)
	person := r.open(api.SessionCreate, object{"requestElicitation": true})
	asks := r.connect(rpc.Door{})
	asks.later(api.UIElicitation, object{"sessionId": "s", "message": "Name?", "requestedSchema": object{"type": "object", "properties": object{}}}, nil)
	person.await(event.ElicitationAsked)
	asks.Close()
	if d := data[event.ElicitationDoneData](t, person.await(event.ElicitationDone)); d.Action != "cancel" {
		t.Errorf("action = %s", d.Action)
	}
}

func TestAFormOfARelayOutlivesItsConnection(t *testing.T) {
	r := newTestServer(t)
	person := r.open(api.SessionCreate, object{"requestElicitation": true})
	ask := object{"sessionId": "s", "message": "Name?", "requestedSchema": object{"type": "object", "properties": object{}}, "abideKey": "k"}
	lost := r.connect(rpc.Door{Private: true})
	lost.later(api.UIElicitation, ask, nil)
	form := data[event.ElicitationAskedData](t, person.await(event.ElicitationAsked))
	lost.Close()
	again := r.connect(rpc.Door{Private: true})
	var filled api.ElicitationResult
	done := again.later(api.UIElicitation, ask, &filled)
	var won api.Success
	person.must(api.AnswerElicitation, object{"sessionId": "s", "requestId": form.RequestID, "result": object{"action": "accept"}}, &won)
	if err := <-done; err != nil || filled.Action != "accept" || !won.Success {
		t.Errorf("filled %+v, %v, %+v", filled, err, won)
	}
	again.must(api.UIElicitation, ask, &filled) // the outcome can be had after the end, too
	if filled.Action != "accept" {
		t.Errorf("asked a third time: %+v", filled)
	}
}

func TestCommandsOfClients(t *testing.T) {
	r := newTestServer(t)
	p := r.open(api.SessionCreate, nil)
	owner := r.connect(rpc.Door{})
	owner.must(api.SessionResume, object{"sessionId": "s", "commands": []object{{"name": "deploy", "description": "Deploy it"}}}, nil)
	if d := data[event.CommandsChangedData](t, p.await(event.CommandsChanged)); len(d.Commands) != 1 || d.Commands[0].Description != "Deploy it" {
		t.Errorf("commands = %+v", d.Commands)
	}
	var list api.CommandsResult
	p.must(api.CommandsList, object{"sessionId": "s", "includeBuiltins": false}, &list)
	if len(list.Commands) != 1 || list.Commands[0].Kind != "client" {
		t.Errorf("commands of clients = %+v", list)
	}
	p.must(api.CommandsList, object{"sessionId": "s", "includeClientCommands": false}, &list)
	if len(list.Commands) == 0 || slices.ContainsFunc(list.Commands, func(c api.CommandInfo) bool { return c.Kind != "builtin" || c.Description == "" }) {
		t.Errorf("own commands = %+v", list)
	}
	for _, fault := range []string{"", "it broke"} {
		var result api.ExecuteResult
		done := p.later(api.CommandsExecute, object{"sessionId": "s", "commandName": "deploy", "args": "to production"}, &result)
		d := data[event.CommandExecuteData](t, owner.await(event.CommandExecute))
		if d.Command != "/deploy to production" || d.CommandName != "deploy" || d.Args != "to production" {
			t.Errorf("asked to carry out %+v", d)
		}
		var first, second api.Success
		owner.must(api.AnswerCommand, object{"sessionId": "s", "requestId": d.RequestID, "error": fault}, &first)
		owner.must(api.AnswerCommand, object{"sessionId": "s", "requestId": d.RequestID}, &second)
		var unknown api.Success
		owner.must(api.AnswerCommand, object{"sessionId": "s", "requestId": "made up"}, &unknown)
		if !unknown.Success {
			t.Error("a command that nobody knows of is somebody's fault")
		}
		if err := <-done; err != nil || result.Error != fault || !first.Success || second.Success {
			t.Errorf("result %+v, %v; answered %v, again %v", result, err, first, second)
		}
	}
	var unknown api.ExecuteResult
	p.must(api.CommandsExecute, object{"sessionId": "s", "commandName": "nothing"}, &unknown)
	if !strings.Contains(unknown.Error, "/nothing") {
		t.Errorf("an unknown command: %+v", unknown)
	}
	owner.must(api.SessionDestroy, object{"sessionId": "s"}, nil)
	if d := data[event.CommandsChangedData](t, p.await(event.CommandsChanged)); len(d.Commands) != 0 {
		t.Errorf("commands = %+v", d.Commands)
	}
}

func TestAMessageThatNamesACommandIsOne(t *testing.T) {
	p := newTestServer(t).open(api.SessionCreate, object{"commands": []object{{"name": "deploy"}}})
	p.must(api.SessionSend, object{"sessionId": "s", "prompt": "/deploy now"}, nil)
	d := data[event.CommandExecuteData](t, p.await(event.CommandExecute))
	p.must(api.AnswerCommand, object{"sessionId": "s", "requestId": d.RequestID}, nil)
	p.await(event.SessionIdle)
	p.must(api.SessionSend, object{"sessionId": "s", "prompt": "/other now"}, nil)
	if m := data[event.UserMessageData](t, p.await(event.UserMessage)); m.Content != "/other now" {
		t.Errorf("message = %q", m.Content)
	}
}

func TestCommandsOfTheRuntime(t *testing.T) {
	p := newTestServer(t).open(api.SessionCreate, nil)
	for name, want := range map[string]string{"help": "/model", "/HELP": "/help", "model": "The model is", "usage": "0 turns"} {
		var said api.InvokeResult
		p.must(api.CommandsInvoke, object{"sessionId": "s", "name": name}, &said)
		if said.Kind != "text" || !strings.Contains(said.Text, want) {
			t.Errorf("%s says %+v", name, said)
		}
	}
	p.must(api.CommandsInvoke, object{"sessionId": "s", "name": "rename", "input": "Mine"}, nil)
	if d := data[event.TitleChangedData](t, p.await(event.TitleChanged)); d.Title != "Mine" {
		t.Errorf("title = %q", d.Title)
	}
	if fault := p.refused(api.CommandsInvoke, object{"sessionId": "s", "name": "nothing"}); !strings.Contains(fault.Message, "/nothing") {
		t.Error(fault)
	}
	var queued api.EnqueueResult
	p.must(api.CommandsEnqueue, object{"sessionId": "s", "command": "/help"}, &queued)
	if d := data[event.SessionInfoData](t, p.await(event.SessionInfo)); !queued.Queued || !strings.Contains(d.Message, "/usage") {
		t.Errorf("queued %v, said %q", queued, d.Message)
	}
	p.must(api.CommandsEnqueue, object{"sessionId": "s", "command": "/nothing"}, nil)
	if d := data[event.SessionWarningData](t, p.await(event.SessionWarning)); !strings.Contains(d.Message, "/nothing") {
		t.Errorf("said %q", d.Message)
	}
}

func TestWhoLooksAfterTheQueueIsAskedAboutCommands(t *testing.T) {
	r := newTestServer(t)
	p := r.open(api.SessionCreate, object{"commands": []object{{"name": "deploy"}}})
	host := r.open(api.SessionResume, nil)
	var interest api.HandleResult
	host.must(api.RegisterInterest, object{"sessionId": "s", "eventType": event.CommandQueued}, &interest)
	p.must(api.CommandsEnqueue, object{"sessionId": "s", "command": "/deploy a"}, nil)
	first := data[event.CommandQueuedData](t, host.await(event.CommandQueued))
	p.must(api.CommandsEnqueue, object{"sessionId": "s", "command": "/deploy b"}, nil)
	p.must(api.CommandsEnqueue, object{"sessionId": "s", "command": "/deploy c", "displayText": "third"}, nil)
	var queue api.QueueResult
	p.must(api.QueuePending, object{"sessionId": "s"}, &queue)
	if len(queue.Items) != 2 || queue.Items[0].Kind != "command" || queue.Items[1].Display != "third" {
		t.Errorf("queue = %+v", queue)
	}
	var won api.Success
	host.must(api.CommandsRespond, object{"sessionId": "s", "requestId": "unknown", "result": object{"handled": true}}, &won)
	if won.Success {
		t.Error("an unknown request was answered")
	}
	host.must(api.CommandsRespond, object{"sessionId": "s", "requestId": first.RequestID, "result": object{"handled": true}}, &won)
	second := data[event.CommandQueuedData](t, host.await(event.CommandQueued))
	if !won.Success || second.Command != "/deploy b" {
		t.Errorf("won %v, then %+v", won, second)
	}
	// What is not handled goes to the client that has the command.
	host.must(api.CommandsRespond, object{"sessionId": "s", "requestId": second.RequestID, "result": object{"handled": false}}, &won)
	d := data[event.CommandExecuteData](t, p.await(event.CommandExecute))
	p.must(api.AnswerCommand, object{"sessionId": "s", "requestId": d.RequestID}, nil)
	third := data[event.CommandQueuedData](t, host.await(event.CommandQueued))
	// So does what nobody looks after any more.
	host.must(api.ReleaseInterest, object{"sessionId": "s", "handle": interest.Handle}, &won)
	if d = data[event.CommandExecuteData](t, p.await(event.CommandExecute)); d.Command != third.Command {
		t.Errorf("carried out %+v", d)
	}
	p.must(api.AnswerCommand, object{"sessionId": "s", "requestId": d.RequestID}, nil)
	p.await(event.SessionIdle)
	host.must(api.ReleaseInterest, object{"sessionId": "s", "handle": interest.Handle}, &won)
	if !won.Success {
		t.Error("releasing twice is an error")
	}
}

func TestTheQueueRestsUntilSomethingNewComes(t *testing.T) {
	p := newTestServer(t).open(api.SessionCreate, nil)
	p.must(api.RegisterInterest, object{"sessionId": "s", "eventType": event.CommandQueued}, nil)
	p.must(api.CommandsEnqueue, object{"sessionId": "s", "command": "/a"}, nil)
	first := data[event.CommandQueuedData](t, p.await(event.CommandQueued))
	p.must(api.CommandsEnqueue, object{"sessionId": "s", "command": "/b"}, nil)
	p.must(api.CommandsRespond, object{"sessionId": "s", "requestId": first.RequestID, "result": object{"handled": true, "stopProcessingQueue": true}}, nil)
	var pending api.HasPendingResult
	p.must(api.QueueHasPending, object{"sessionId": "s"}, &pending)
	if !pending.HasPending {
		t.Error("the queue went on")
	}
	p.must(api.CommandsEnqueue, object{"sessionId": "s", "command": "/c"}, nil)
	if d := data[event.CommandQueuedData](t, p.await(event.CommandQueued)); d.Command != "/b" {
		t.Errorf("next = %+v", d)
	}
}

// texts are what waits in the queue of s.
func (p *peer) texts() []string {
	var queue api.QueueResult
	p.must(api.QueueSnapshot, object{"sessionId": "s"}, &queue)
	list := slices.Clone(queue.Steering)
	for _, item := range queue.Items {
		list = append(list, item.Display)
	}
	return list
}

func TestTheQueueCanBeChanged(t *testing.T) {
	r := newTestServer(t)
	p := r.open(api.SessionCreate, nil)
	p.must(api.QueueSetPaused, object{"sessionId": "s", "paused": true}, nil)
	if fault := p.refused(api.QueueSetPaused, object{"sessionId": "s", "paused": true}); !strings.Contains(fault.Message, "queue_already_paused") {
		t.Error(fault)
	}
	ids := map[string]string{}
	for _, text := range []string{"a", "b", "c"} {
		var sent api.SendResult
		p.must(api.SessionSend, object{"sessionId": "s", "prompt": text}, &sent)
		ids[text] = sent.MessageID
	}
	check := func(what string, want ...string) {
		t.Helper()
		if got := p.texts(); !slices.Equal(got, want) {
			t.Errorf("%s: the queue is %v, want %v", what, got, want)
		}
	}
	check("held", "a", "b", "c")
	p.must(api.QueueMoveItem, object{"sessionId": "s", "id": ids["c"], "toPosition": -1}, nil)
	check("moved", "c", "a", "b")
	var changed api.ChangedResult
	p.must(api.QueueMoveItem, object{"sessionId": "s", "id": ids["b"], "toPosition": 9}, &changed)
	if changed.Changed {
		t.Error("the last was moved to the end")
	}
	p.must(api.QueueUpdateText, object{"sessionId": "s", "id": ids["a"], "prompt": "Reply with exactly: A", "displayPrompt": "A"}, nil)
	check("edited", "c", "A", "b")
	var added api.ItemResult
	p.must(api.QueueInsertAt, object{"sessionId": "s", "message": object{"prompt": "d"}, "position": 1}, &added)
	check("inserted", "c", "d", "A", "b")
	p.must(api.QueueDuplicateAt, object{"sessionId": "s", "id": added.ID}, nil)
	check("duplicated", "c", "d", "d", "A", "b")
	var steered api.SteeredResult
	p.must(api.QueueSendNow, object{"sessionId": "s", "id": ids["a"]}, &steered)
	if steered.Steered {
		t.Error("steered into no turn")
	}
	// A request that is made again changes nothing more.
	relay := r.connect(rpc.Door{Private: true})
	for range 2 {
		var removed api.RemovedResult
		relay.must(api.QueueRemoveRecent, object{"sessionId": "s", "abideKey": "k"}, &removed)
		if !removed.Removed {
			t.Error("nothing was removed")
		}
		check("removed", "c", "d", "d", "A")
	}
	for _, id := range []string{ids["c"], added.ID} {
		p.must(api.QueueRemoveAt, object{"sessionId": "s", "id": id}, nil)
	}
	check("removed by id", "d", "A")
	p.must(api.QueueMoveItem, object{"sessionId": "s", "id": ids["a"], "toPosition": 0}, nil)
	p.must(api.QueueSetPaused, object{"sessionId": "s", "paused": false}, nil)
	if d := data[event.AssistantMessageData](t, p.await(event.AssistantMessage)); d.Content != "A" {
		t.Errorf("answer = %q", d.Content)
	}
	p.await(event.SessionIdle)
	p.must(api.QueueClear, object{"sessionId": "s"}, nil)
	check("cleared")
	var removed api.RemovedResult
	p.must(api.QueueRemoveRecent, object{"sessionId": "s"}, &removed)
	if removed.Removed {
		t.Error("something was removed from nothing")
	}
}

func TestThePlanIsAFile(t *testing.T) {
	p := newFiled(t).open(api.SessionCreate, nil)
	var plan api.PlanResult
	read := func() string {
		p.must(api.PlanRead, object{"sessionId": "s"}, &plan)
		if plan.Content == nil {
			return ""
		}
		return *plan.Content
	}
	operation := func() string { return data[event.PlanChangedData](t, p.await(event.PlanChanged)).Operation }
	if read(); plan.Exists || plan.Path == nil {
		t.Errorf("plan = %+v", plan)
	}
	for _, want := range []string{"create", "update"} {
		p.must(api.PlanUpdate, object{"sessionId": "s", "content": "# " + want}, nil)
		if got := operation(); got != want || read() != "# "+want || !plan.Exists {
			t.Errorf("%s: %s, plan %+v", want, got, plan)
		}
	}
	if b, err := os.ReadFile(*plan.Path); err != nil || string(b) != "# update" {
		t.Errorf("the file has %q, %v", b, err)
	}
	p.must(api.PlanDelete, object{"sessionId": "s"}, nil)
	if got := operation(); got != "delete" || read() != "" {
		t.Errorf("%s, plan %+v", got, plan)
	}
	p.must(api.PlanDelete, object{"sessionId": "s"}, nil)
	var todos api.TodosResult
	p.must(api.PlanReadTodos, object{"sessionId": "s"}, &todos)
	p.must(api.PlanReadTodosDeps, object{"sessionId": "s"}, &todos)
	if len(todos.Rows)+len(todos.Dependencies) > 0 {
		t.Errorf("todos = %+v", todos)
	}
}

// kinds are the types of events.
func kinds(t *testing.T, events []json.RawMessage) []event.Type {
	t.Helper()
	var list []event.Type
	for _, b := range events {
		e, err := event.Parse(0, b)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, e.Type)
	}
	return list
}

func TestTheEventLogIsReadInPages(t *testing.T) {
	p := newTestServer(t).open(api.SessionCreate, nil)
	p.must(api.SessionSend, object{"sessionId": "s", "prompt": "Reply with exactly: HI"}, nil)
	p.await(event.SessionIdle)
	var all api.LogReadResult
	p.must(api.EventLogRead, object{"sessionId": "s"}, &all)
	want := kinds(t, all.Events)
	if want[0] != event.SessionStart || want[len(want)-1] != event.SessionIdle || all.HasMore || all.CursorStatus != "ok" {
		t.Fatalf("all = %v, %+v", want, all)
	}
	if slices.ContainsFunc(want, event.Type.Hidden) {
		t.Errorf("hidden events are shown: %v", want)
	}
	var got []event.Type
	for cursor, more := "", true; more; {
		var page api.LogReadResult
		p.must(api.EventLogRead, object{"sessionId": "s", "max": 2, "cursor": cursor}, &page)
		if len(page.Events) > 2 {
			t.Fatalf("%d events in a page of 2", len(page.Events))
		}
		got, cursor, more = append(got, kinds(t, page.Events)...), page.Cursor, page.HasMore
	}
	if !slices.Equal(got, want) {
		t.Errorf("pages have %v\nwant %v", got, want)
	}
	var filtered api.LogReadResult
	p.must(api.EventLogRead, object{"sessionId": "s", "types": []event.Type{event.UserMessage, event.SessionIdle}}, &filtered)
	if got := kinds(t, filtered.Events); !slices.Equal(got, []event.Type{event.UserMessage, event.SessionIdle}) {
		t.Errorf("filtered = %v", got)
	}
	p.must(api.EventLogRead, object{"sessionId": "s", "includeEphemeral": false, "types": "*"}, &filtered)
	if got := kinds(t, filtered.Events); slices.ContainsFunc(got, event.Type.Ephemeral) {
		t.Errorf("without ephemeral ones: %v", got)
	}
	lasting := kinds(t, filtered.Events)
	var back []event.Type
	for cursor, more := "", true; more; {
		var page api.LogReadResult
		p.must(api.EventLogRead, object{"sessionId": "s", "max": 2, "direction": "backward", "cursor": cursor}, &page)
		back, cursor, more = append(kinds(t, page.Events), back...), page.Cursor, page.HasMore
	}
	if !slices.Equal(back, lasting) {
		t.Errorf("backward pages have %v\nwant %v", back, lasting)
	}
	var expired api.LogReadResult
	p.must(api.EventLogRead, object{"sessionId": "s", "cursor": "3." + strings.Repeat("ab", 32)}, &expired)
	if expired.CursorStatus != "expired" || len(expired.Events) != len(all.Events) {
		t.Errorf("a cursor of another log: %s, %d events", expired.CursorStatus, len(expired.Events))
	}
	var started string
	for _, b := range all.Events {
		if e, _ := event.Parse(0, b); e.Type == event.UserMessage {
			head, err := e.Head()
			if err != nil {
				t.Fatal(err)
			}
			started = head.ID
		}
	}
	p.must(api.HistoryTruncate, object{"sessionId": "s", "eventId": started}, nil)
	var short api.LogReadResult
	p.must(api.EventLogRead, object{"sessionId": "s"}, &short)
	if got := kinds(t, short.Events); slices.Contains(got, event.UserMessage) || got[0] != event.SessionStart {
		t.Errorf("what was taken back is still read: %v", got)
	}
	p.must(api.EventLogRead, object{"sessionId": "s", "cursor": "99999"}, &expired)
	if expired.CursorStatus != "expired" {
		t.Errorf("a cursor beyond the end: %s", expired.CursorStatus)
	}
}

func TestReadingTheEventLogWaits(t *testing.T) {
	p := newTestServer(t).open(api.SessionCreate, nil)
	var tail api.CursorResult
	p.must(api.EventLogTail, object{"sessionId": "s"}, &tail)
	var empty api.LogReadResult
	p.must(api.EventLogRead, object{"sessionId": "s", "cursor": tail.Cursor, "waitMs": 1}, &empty)
	if len(empty.Events) != 0 || empty.HasMore {
		t.Errorf("empty = %+v", empty)
	}
	// What is never stored is seen by those who wait for it.
	other := p
	var got api.LogReadResult
	done := p.later(api.EventLogRead, object{"sessionId": "s", "cursor": tail.Cursor, "waitMs": 30000, "types": []event.Type{event.TitleChanged}}, &got)
	for i := 0; ; i++ { // the loop ends when the reader waits
		other.must(api.NameSet, object{"sessionId": "s", "name": strings.Repeat("x", i+1)}, nil)
		select {
		case err := <-done:
			if err != nil || !slices.Equal(slices.Compact(kinds(t, got.Events)), []event.Type{event.TitleChanged}) { // one or more names
				t.Fatalf("%v, %v", kinds(t, got.Events), err)
			}
		case <-time.After(time.Millisecond):
			continue
		}
		break
	}
	var rest api.LogReadResult
	p.must(api.SessionSend, object{"sessionId": "s", "prompt": "Reply with exactly: HI"}, nil)
	p.must(api.EventLogRead, object{"sessionId": "s", "cursor": got.Cursor, "waitMs": 30000, "types": []event.Type{event.SessionIdle}}, &rest)
	if !slices.Equal(kinds(t, rest.Events), []event.Type{event.SessionIdle}) {
		t.Errorf("%+v", rest)
	}
}

// asks reports whether a client tool is asked about.
func (p *peer) asks(t *testing.T) bool {
	t.Helper()
	p.must(api.SessionSend, object{"sessionId": "s", "prompt": "Use act with value 'x', then reply with the result"}, nil)
	timeout := time.After(time.Minute)
	for {
		select {
		case e := <-p.events:
			switch e.Type {
			case event.PermissionAsked:
				p.must(api.SessionAbort, object{"sessionId": "s"}, nil)
				p.await(event.SessionIdle)
				return true
			case event.ExternalAsked:
				p.must(api.AnswerTool, object{"sessionId": "s", "requestId": data[event.ExternalAskedData](t, e).RequestID, "result": "ok"}, nil)
				p.await(event.SessionIdle)
				return false
			case event.SessionIdle: // it was denied
				return false
			}
		case <-timeout:
			t.Fatal("nothing happens")
		}
	}
}

func TestPermissionsAreJudgedAsClientsSay(t *testing.T) {
	p := newFiled(t).open(api.SessionCreate, object{"requestPermission": true, "tools": []object{{"name": "act"}}})
	check := func(what string, want bool) {
		t.Helper()
		if got := p.asks(t); got != want {
			t.Errorf("%s: asked is %v, want %v", what, got, want)
		}
	}
	mode := func() string {
		var m api.PermissionModeResult
		p.must(api.PermissionsGetMode, object{"sessionId": "s"}, &m)
		return m.Mode
	}
	check("at first", true)
	p.must(api.PermissionsSetApproveAll, object{"sessionId": "s", "enabled": true}, nil)
	if d := data[event.PermissionsChangedData](t, p.await(event.PermissionsChanged)); d.Mode != "allow-all" || d.PreviousMode != "manual" || mode() != "allow-all" {
		t.Errorf("changed %+v, mode %s", d, mode())
	}
	check("everything is allowed", false)
	p.must(api.PermissionsSetMode, object{"sessionId": "s", "mode": "manual"}, nil)
	if mode() != "manual" {
		t.Error(mode())
	}
	check("and is not any more", true)
	rule := []object{{"kind": "custom-tool", "argument": "act"}}
	p.must(api.PermissionsModifyRules, object{"sessionId": "s", "scope": "session", "add": rule}, nil)
	check("a rule allows it", false)
	p.must(api.PermissionsModifyRules, object{"sessionId": "s", "scope": "session", "remove": rule}, nil)
	check("the rule is gone", true)
	p.must(api.PermissionsModifyRules, object{"sessionId": "s", "scope": "location", "add": rule}, nil)
	check("a rule of the place allows it", false)
	p.must(api.PermissionsReset, object{"sessionId": "s"}, nil)
	check("the approvals are taken back", true)
	p.must(api.PermissionsConfigure, object{"sessionId": "s", "rules": object{"approved": rule, "denied": rule}}, nil)
	if p.asks(t) {
		t.Error("what is denied is asked about")
	}
	p.must(api.PermissionsSetRequired, object{"sessionId": "s", "required": true}, nil)
	p.must(api.PermissionsSetRequired, object{"sessionId": "s", "required": false}, nil)
	p.must(api.PermissionsPromptShown, object{"sessionId": "s", "message": "May it?"}, nil)
	p.must(api.URLsUnrestricted, object{"sessionId": "s", "enabled": true}, nil)
}

func TestTheFoldersOfASession(t *testing.T) {
	p := newFiled(t).open(api.SessionCreate, nil)
	main, more, next := t.TempDir(), t.TempDir(), t.TempDir()
	within := func(method, path string) bool {
		var r api.AllowedResult
		p.must(method, object{"sessionId": "s", "path": path}, &r)
		return r.Allowed
	}
	p.must(api.PermissionsConfigure, object{"sessionId": "s", "paths": object{"workspacePath": main, "includeTempDirectory": false}}, nil)
	if !within(api.PathsAllowed, filepath.Join(main, "new", "file")) || within(api.PathsAllowed, filepath.Join(more, "file")) || within(api.PathsAllowed, main+"x") {
		t.Error("the main folder is not the allowed one")
	}
	p.must(api.PathsAdd, object{"sessionId": "s", "path": more}, nil)
	if !within(api.PathsAllowed, filepath.Join(more, "file")) || within(api.PathsWorkspace, filepath.Join(more, "file")) {
		t.Error("a folder that was added is not allowed, or is the main one")
	}
	p.must(api.PathsUpdatePrimary, object{"sessionId": "s", "path": next}, nil)
	var list api.PathsResult
	p.must(api.PathsList, object{"sessionId": "s"}, &list)
	if list.Primary != next || !slices.Equal(list.Directories, []string{next, more}) || !within(api.PathsWorkspace, next) {
		t.Errorf("folders = %+v", list)
	}
	link := filepath.Join(next, "out")
	if err := os.Symlink(main, link); err != nil {
		t.Fatal(err)
	}
	if within(api.PathsWorkspace, filepath.Join(link, "file")) {
		t.Error("a link leads out of the folder")
	}
	p.must(api.PermissionsConfigure, object{"sessionId": "s", "paths": object{"unrestricted": true}}, nil)
	if !within(api.PathsAllowed, "/etc/passwd") {
		t.Error("every folder is allowed, but not this one")
	}
}

func TestPlacesAreRemembered(t *testing.T) {
	r := newFiled(t)
	p := r.open(api.SessionCreate, nil)
	repo := t.TempDir()
	if err := os.MkdirAll(filepath.Join(repo, ".git"), 0o700); err != nil {
		t.Fatal(err)
	}
	sub := filepath.Join(repo, "sub")
	if err := os.Mkdir(sub, 0o700); err != nil {
		t.Fatal(err)
	}
	var at api.LocationResult
	p.must(api.LocationsResolve, object{"sessionId": "s", "workingDirectory": sub}, &at)
	if at.Key != repo || at.Kind != "repo" {
		t.Errorf("location = %+v", at)
	}
	approve := object{"sessionId": "s", "locationKey": repo, "approval": object{"kind": "commands", "commandIdentifiers": []string{"git status"}}}
	p.must(api.LocationsAddApproval, approve, nil)
	p.must(api.LocationsAddApproval, approve, nil) // twice is once
	p.must(api.SessionCreate, object{"sessionId": "other"}, nil)
	var applied api.AppliedResult
	p.must(api.LocationsApply, object{"sessionId": "other", "workingDirectory": sub}, &applied)
	if applied.RuleCount != 1 || applied.Rules[0].Kind != "shell" || *applied.Rules[0].Argument != "git status" || !applied.Changed {
		t.Errorf("applied = %+v", applied)
	}
	trusted := func() bool {
		var r api.TrustedResult
		p.must(api.FolderIsTrusted, object{"sessionId": "s", "path": sub}, &r)
		return r.Trusted
	}
	if trusted() {
		t.Error("a folder is trusted that nobody trusts")
	}
	p.must(api.FolderAddTrusted, object{"sessionId": "s", "path": repo}, nil)
	if !trusted() {
		t.Error("a folder below a trusted one is not")
	}
}

func TestASuspendedSessionGoesOnWhenItIsResumed(t *testing.T) {
	r := newTestServer(t)
	tools := []object{{"name": "ask"}, {"name": "act", "skipPermission": true}}
	p := r.open(api.SessionCreate, object{"requestPermission": true, "tools": tools})
	p.must(api.SessionSend, object{"sessionId": "s", "prompt": "Call ask with value 'x' and act with value 'y', then reply with both results"}, nil)
	p.await(event.PermissionAsked)
	act := data[event.ExternalAskedData](t, p.await(event.ExternalAsked))
	p.must(api.SessionSuspend, object{"sessionId": "s"}, nil)
	if d := data[event.PermissionDoneData](t, p.await(event.PermissionDone)); d.Result.Kind != event.Cancelled || d.Result.Reason != "Session suspended" {
		t.Errorf("permission %+v", d.Result)
	}
	if d := data[event.SessionIdleData](t, p.await(event.SessionIdle)); !d.Aborted {
		t.Errorf("idle %+v", d)
	}
	p.must(api.SessionSuspend, object{"sessionId": "s"}, nil)
	var won api.Success
	p.must(api.AnswerTool, object{"sessionId": "s", "requestId": act.RequestID, "result": "DONE"}, &won)
	var st api.StatusResult
	p.must(api.Status, object{"sessionId": "s"}, &st)
	if !won.Success || !st.Active {
		t.Errorf("answered %v, active %v", won, st.Active)
	}
	p.must(api.SessionResume, object{"sessionId": "s", "continuePendingWork": true, "requestPermission": true, "tools": tools}, nil)
	if d := data[event.AssistantMessageData](t, p.await(event.AssistantMessage)); !strings.Contains(d.Content, "DONE") {
		t.Errorf("answer = %q", d.Content)
	}
	p.await(event.SessionIdle)
	p.must(api.SessionSuspend, object{"sessionId": "s"}, nil) // nothing to suspend
}

func TestOnlyWhoWantsPiecesGetsThem(t *testing.T) {
	r := newTestServer(t)
	streams := r.open(api.SessionCreate, object{"streaming": true})
	whole := r.open(api.SessionResume, nil)
	streams.must(api.SessionSend, object{"sessionId": "s", "prompt": "Reply with exactly: HI"}, nil)
	streams.await(event.MessageDelta)
	for last := event.Type(""); last != event.SessionIdle; {
		e := <-whole.events
		if last = e.Type; last.Piece() {
			t.Errorf("got a %s", e.Type)
		}
	}
}

func TestWhatThereIsNoneOfIsAnsweredAtOnce(t *testing.T) {
	p := newTestServer(t).open(api.SessionCreate, nil)
	for method, want := range map[string]string{
		"plugins.list": `{"plugins":[]}`, "session.canvas.list": `{"canvases":[]}`, "account.getAllUsers": `[]`, "plugins.builtin.set": `null`,
	} {
		var got json.RawMessage
		p.must(method, object{"sessionId": "s"}, &got)
		if string(got) != want {
			t.Errorf("%s: %s, want %s", method, got, want)
		}
	}
	if fault := p.refused("session.canvas.list", object{"sessionId": "nope"}); !strings.Contains(fault.Message, "not found") {
		t.Error(fault)
	}
	for _, method := range []string{"session.mcp.configureGitHub", "skills.config.setDisabledSkills", "session.workspaces.addSummary", "sessionFs.setProvider", "sessions.getEventFilePath"} {
		if fault := p.refused(method, object{"sessionId": "s"}); fault.Code != jsonrpc.CodeMethodNotFound || !strings.Contains(fault.Message, method+" is not supported") {
			t.Errorf("%s: %v", method, fault)
		}
	}
}

func TestAnApprovalForThePlaceHoldsInTheNextSession(t *testing.T) {
	r := newFiled(t)
	dir := t.TempDir()
	tools := []object{{"name": "act"}}
	p := r.open(api.SessionCreate, object{"requestPermission": true, "tools": tools, "workingDirectory": dir})
	p.must(api.SessionSend, object{"sessionId": "s", "prompt": "Use act with value 'x', then reply with the result"}, nil)
	asked := data[event.PermissionAskedData](t, p.await(event.PermissionAsked))
	p.must(api.AnswerPermission, object{"sessionId": "s", "requestId": asked.RequestID, "result": object{
		"kind": "approve-for-location", "locationKey": dir, "approval": object{"kind": "custom-tool", "toolName": "act"}}}, nil)
	if d := data[event.PermissionDoneData](t, p.await(event.PermissionDone)); d.Result.Kind != event.ApprovedForLocation {
		t.Errorf("permission %+v", d.Result)
	}
	p.must(api.SessionDelete, object{"sessionId": "s"}, nil)
	next := r.open(api.SessionCreate, object{"requestPermission": true, "tools": tools, "workingDirectory": dir})
	if next.asks(t) {
		t.Error("somebody was asked again in the same place")
	}
	elsewhere := newFiled(t).open(api.SessionCreate, object{"requestPermission": true, "tools": tools})
	if !elsewhere.asks(t) {
		t.Error("nobody was asked elsewhere")
	}
}
