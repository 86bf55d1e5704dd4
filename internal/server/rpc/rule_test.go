package rpc_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/approval/places"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/server/rpc"
)

// tools are what a client needs for asks.
var acting = object{"requestPermission": true, "tools": []object{{"name": "act"}}}

// question makes the model call the client's tool, and returns what is asked.
func (p *peer) question(t *testing.T) event.PermissionAskedData {
	t.Helper()
	p.must(api.SessionSend, object{"sessionId": "s", "prompt": "Use act with value 'x', then reply with the result"}, nil)
	return data[event.PermissionAskedData](t, p.await(event.PermissionAsked))
}

// finish lets the client's tool end the turn.
func (p *peer) finish(t *testing.T) {
	t.Helper()
	asked := data[event.ExternalAskedData](t, p.await(event.ExternalAsked))
	p.must(api.AnswerTool, object{"sessionId": "s", "requestId": asked.RequestID, "result": "ok"}, nil)
	p.await(event.SessionIdle)
}

func (p *peer) rules() api.RulesResult {
	p.t.Helper()
	var r api.RulesResult
	p.must(api.Rules, object{}, &r)
	return r
}

func texts(rules []api.ShownRule) (list []string) {
	for _, r := range rules {
		list = append(list, r.Text)
	}
	return list
}

func TestAlwaysHoldsEverywhereUntilItIsRevoked(t *testing.T) {
	r := newFiled(t)
	p := r.open(api.SessionCreate, acting)
	asked := p.question(t)
	if want := []event.Grant{{Kind: "custom-tool", Subject: "act"}}; !slices.EqualFunc(asked.Grants, want, event.Grant.Equal) {
		t.Errorf("always would save %v, want %v", asked.Grants, want)
	}
	var won api.Success
	p.must(api.AnswerPermission, object{"sessionId": "s", "requestId": asked.RequestID, "result": object{"kind": "approve-permanently"}}, &won)
	if d := data[event.PermissionDoneData](t, p.await(event.PermissionDone)); !won.Success || d.Result.Kind != event.Approved || len(d.Grants) > 0 {
		t.Errorf("answered %v, recorded %+v", won, d)
	}
	p.finish(t)
	if got := p.rules(); !slices.Equal(texts(got.Always), []string{"act"}) || len(got.Locations) > 0 {
		t.Errorf("saved is %+v", got)
	}
	elsewhere := r.connect(rpc.Door{})
	elsewhere.must(api.SessionCreate, object{"sessionId": "t", "requestPermission": true, "workingDirectory": t.TempDir()}, nil)
	if p.asks(t) {
		t.Error("the session asks again")
	}
	elsewhere.must(api.SessionDelete, object{"sessionId": "s"}, nil)
	q := r.open(api.SessionCreate, acting) // this session has another folder
	if q.asks(t) {
		t.Error("a session elsewhere asks")
	}
	var revoked api.Success
	elsewhere.must(api.RuleRevoke, object{"rule": "act"}, &revoked)
	if !revoked.Success || !q.asks(t) {
		t.Errorf("revoked is %v, and a session that was open goes on without asking", revoked.Success)
	}
	elsewhere.must(api.RuleRevoke, object{"rule": "act"}, &revoked)
	if revoked.Success {
		t.Error("a rule was revoked twice")
	}
}

func TestARuleOfAPlaceIsSavedAndRevokedThere(t *testing.T) {
	p := newFiled(t).open(api.SessionCreate, acting)
	asked := p.question(t)
	p.must(api.AnswerPermission, object{"sessionId": "s", "requestId": asked.RequestID, "result": object{"kind": "approve-for-location"}}, nil)
	p.finish(t)
	saved := p.rules()
	if len(saved.Always) > 0 || len(saved.Locations) != 1 {
		t.Fatalf("saved is %+v", saved)
	}
	if p.asks(t) {
		t.Error("the session asks again in its place")
	}
	for key, rules := range saved.Locations {
		for _, text := range texts(rules) {
			p.must(api.RuleRevoke, object{"locationKey": key, "rule": text}, nil)
		}
	}
	if !p.asks(t) {
		t.Error("a rule that was revoked still holds")
	}
}

// TestAYesForAPlaceIsSavedWhereItWasAsked: a client has moved the session before the answer
// to a question comes, which was shown with the place where the session was.
func TestAYesForAPlaceIsSavedWhereItWasAsked(t *testing.T) {
	p := newFiled(t).open(api.SessionCreate, acting)
	there, elsewhere := t.TempDir(), t.TempDir()
	p.must(api.SetDirectory, object{"sessionId": "s", "workingDirectory": there}, nil)
	asked := p.question(t)
	p.must(api.SetDirectory, object{"sessionId": "s", "workingDirectory": elsewhere}, nil)
	p.must(api.AnswerPermission, object{"sessionId": "s", "requestId": asked.RequestID, "result": object{"kind": "approve-for-location"}}, nil)
	p.finish(t)
	key := places.Locate(there).Key
	if saved := p.rules(); len(saved.Locations) != 1 || !slices.Equal(texts(saved.Locations[key]), []string{"act"}) {
		t.Errorf("saved is %+v, want a rule for %s", saved, key)
	}
	if !p.asks(t) {
		t.Error("the rule holds where nobody has approved it")
	}
}

func TestAnAnswerThatCameTooLateSavesNothing(t *testing.T) {
	p := newFiled(t).open(api.SessionCreate, acting)
	asked := p.question(t)
	p.must(api.AnswerPermission, object{"sessionId": "s", "requestId": asked.RequestID, "result": object{"kind": "approve-once"}}, nil)
	p.finish(t)
	for _, result := range []object{
		{"kind": "approve-permanently"}, {"kind": "approve-permanently", "domain": "example.org"},
		{"kind": "approve-for-location", "approval": object{"kind": "write"}},
	} {
		var won api.Success
		p.must(api.AnswerPermission, object{"sessionId": "s", "requestId": asked.RequestID, "result": result}, &won)
		if saved := p.rules(); won.Success || len(saved.Always)+len(saved.Locations) > 0 {
			t.Errorf("%v: won is %v, saved is %+v", result, won.Success, saved)
		}
	}
}

func TestBadInputAboutRulesIsNamed(t *testing.T) {
	p := newFiled(t).open(api.SessionCreate, acting)
	asked := p.question(t)
	for method, tests := range map[string]map[string]object{
		api.RuleRevoke: {"rule: it is empty": {}, "rule: want string": {"rule": 7}},
		api.AnswerPermission: {
			"approval.kind":            {"sessionId": "s", "requestId": asked.RequestID, "result": object{"kind": "approve-permanently", "approval": object{"kind": "magic"}}},
			"approval.toolName":        {"sessionId": "s", "requestId": asked.RequestID, "result": object{"kind": "approve-for-location", "approval": object{"kind": "custom-tool"}}},
			"requestId: it is missing": {"sessionId": "s", "result": object{"kind": "approve-once"}},
			"sessionId: it is missing": {"requestId": "r", "result": object{"kind": "approve-once"}},
		},
	} {
		for want, params := range tests {
			if fault := p.refused(method, params); !strings.Contains(fault.Message, want) {
				t.Errorf("%s: %s, want %q", method, fault.Message, want)
			}
		}
	}
	p.must(api.AnswerPermission, object{"sessionId": "s", "requestId": asked.RequestID, "result": object{"kind": "approve-once"}}, nil)
	p.finish(t)
}
