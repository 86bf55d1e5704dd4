package rpc_test

import (
	"encoding/json"
	"testing"
	"testing/synctest"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/server/rpc"
)

// attempt reads the mark of a question that was put again.
func attempt(t *testing.T, e event.Event) int {
	t.Helper()
	var d struct {
		Data struct {
			Attempt int `json:"attempt"`
		} `json:"data"`
	}
	if err := json.Unmarshal(e.Bytes, &d); err != nil {
		t.Fatal(err)
	}
	return d.Data.Attempt
}

var again = object{"requestPermission": true, "continuePendingWork": true, "abide": object{"redeliver": true}}

// What is open is put to a client that wants it, marked with its attempt, and to
// no other. The same answer counts as ever.
func TestOpenQuestionsArePutAgainToWhoWantsThem(t *testing.T) {
	r := newTestServer(t)
	tools := []object{{"name": "act"}, {"name": "free", "skipPermission": true}}
	first := r.open(api.SessionCreate, object{"requestPermission": true, "tools": tools})
	first.must(api.SessionSend, object{"sessionId": "s", "prompt": "Call act with value 'x' and free with value 'y', then reply with both results"}, nil)
	permission := data[event.PermissionAskedData](t, first.await(event.PermissionAsked))
	call := data[event.ExternalAskedData](t, first.await(event.ExternalAsked))
	first.Close()
	plain := r.open(api.SessionResume, object{"continuePendingWork": true})
	for n := 2; n <= 3; n++ {
		p := r.open(api.SessionResume, again)
		e := p.await(event.PermissionAsked)
		if d := data[event.PermissionAskedData](t, e); d.RequestID != permission.RequestID || attempt(t, e) != n || e.Seq != 0 {
			t.Errorf("asked again is %s with attempt %d, want %s with attempt %d", d.RequestID, attempt(t, e), permission.RequestID, n)
		}
		e = p.await(event.ExternalAsked)
		if d := data[event.ExternalAskedData](t, e); d.RequestID != call.RequestID || d.ToolName != "free" || attempt(t, e) != n {
			t.Errorf("called again is %+v with attempt %d", d, attempt(t, e))
		}
	}
	var won api.Success
	plain.must(api.AnswerTool, object{"sessionId": "s", "requestId": call.RequestID, "result": "DONE"}, &won)
	plain.must(api.AnswerPermission, object{"sessionId": "s", "requestId": permission.RequestID, "result": object{"kind": "reject", "feedback": "no"}}, nil)
	if !won.Success {
		t.Error("the answer does not count")
	}
	for {
		e := <-plain.events
		if e.Type == event.SessionIdle {
			break
		}
		if asked := e.Type == event.PermissionAsked || e.Type == event.ExternalAsked; asked {
			t.Errorf("a client that did not want it was asked again: %s", e.Bytes)
		}
	}
	late := r.open(api.SessionResume, again) // nothing is open any more
	late.must(api.SessionSend, object{"sessionId": "s", "prompt": "Reply with exactly: BYE"}, nil)
	for e := range late.events {
		if asked := e.Type == event.PermissionAsked || e.Type == event.ExternalAsked; asked {
			t.Errorf("what is closed is asked again: %s", e.Bytes)
		}
		if e.Type == event.SessionIdle {
			break
		}
	}
}

// Every SDK can say that it is interested in a kind of events: then it is also
// shown what is open of that kind.
func TestWhoIsInterestedInQuestionsIsShownTheOpenOnes(t *testing.T) {
	r := newTestServer(t)
	first := r.open(api.SessionCreate, acting)
	asked := first.question(t)
	first.Close()
	p := r.open(api.SessionResume, object{"continuePendingWork": true, "requestPermission": true})
	p.must(api.RegisterInterest, object{"sessionId": "s", "eventType": "external_tool.requested"}, nil)
	p.must(api.RegisterInterest, object{"sessionId": "s", "eventType": "permission.requested"}, nil)
	e := p.await(event.PermissionAsked)
	if d := data[event.PermissionAskedData](t, e); d.RequestID != asked.RequestID || attempt(t, e) != 2 {
		t.Errorf("asked is %s with attempt %d", d.RequestID, attempt(t, e))
	}
}

// TestWhatWasShownLiveIsNotPutAgain: a client that was connected when the question was asked has
// been shown it, and would answer twice.
func TestWhatWasShownLiveIsNotPutAgain(t *testing.T) {
	p := newTestServer(t).open(api.SessionCreate, acting)
	p.question(t)
	p.must(api.RegisterInterest, object{"sessionId": "s", "eventType": "permission.requested"}, nil)
	for { // whatever is put again comes before the answer to that
		select {
		case e := <-p.events:
			if e.Type == event.PermissionAsked {
				t.Errorf("asked again: %s", e.Bytes)
			}
			continue
		default:
		}
		return
	}
}

func TestAFormIsPutAgain(t *testing.T) {
	r := newTestServer(t)
	asker := r.open(api.SessionCreate, nil)
	filler := r.open(api.SessionResume, object{"requestElicitation": true})
	var filled api.ElicitationResult
	done := asker.later(api.UIElicitation, object{"sessionId": "s", "message": "Sure?", "requestedSchema": object{"type": "object", "properties": object{}}}, &filled)
	form := data[event.ElicitationAskedData](t, filler.await(event.ElicitationAsked))
	filler.Close()
	p := r.open(api.SessionResume, object{"requestElicitation": true, "abide": object{"redeliver": true}})
	e := p.await(event.ElicitationAsked)
	if d := data[event.ElicitationAskedData](t, e); d.RequestID != form.RequestID || attempt(t, e) != 2 {
		t.Errorf("the form is %s with attempt %d", d.RequestID, attempt(t, e))
	}
	p.must(api.AnswerElicitation, object{"sessionId": "s", "requestId": form.RequestID, "result": object{"action": "accept"}}, nil)
	if err := <-done; err != nil || filled.Action != "accept" {
		t.Errorf("filled in is %+v, %v", filled, err)
	}
}

// All that is open is listed, of whatever kind, of one session and of all.
func TestEveryKindOfQuestionIsListed(t *testing.T) {
	r := newTestServer(t)
	tools := []object{{"name": "act"}, {"name": "free", "skipPermission": true}}
	hold := make(chan struct{})
	p := r.connect(rpc.Door{})
	p.answer = func(api.UserInputParams) (api.UserInputResult, error) { <-hold; return api.UserInputResult{}, nil }
	p.must(api.SessionCreate, object{"sessionId": "s", "requestPermission": true, "requestUserInput": true, "requestElicitation": true, "tools": tools}, nil)
	defer close(hold)
	p.must(api.SessionSend, object{"sessionId": "s", "prompt": `Call act with value 'x' and free with value 'y' and ask_user with {"question":"why?"}`}, nil)
	for _, kind := range []event.Type{event.PermissionAsked, event.ExternalAsked, event.UserInputAsked} {
		p.await(kind)
	}
	p.later(api.UIElicitation, object{"sessionId": "s", "message": "Sure?", "requestedSchema": object{"type": "object", "properties": object{}}}, nil)
	p.await(event.ElicitationAsked)
	p.must(api.SessionCreate, object{"sessionId": "t", "requestPermission": true}, nil)
	for _, params := range []object{{"sessionId": "s"}, {}} {
		var list api.QuestionsResult
		p.must(api.Questions, params, &list)
		kinds := map[event.Type]int{}
		for _, q := range list.Questions {
			e, err := event.Parse(0, q.Event)
			if err != nil || q.SessionID != "s" {
				t.Fatalf("%s in %s: %v", q.Event, q.SessionID, err)
			}
			kinds[e.Type]++
		}
		for _, kind := range []event.Type{event.PermissionAsked, event.ExternalAsked, event.UserInputAsked, event.ElicitationAsked} {
			if kinds[kind] != 1 || len(list.Questions) != 4 {
				t.Errorf("with %v there are %d of %s, of %d", params, kinds[kind], kind, len(list.Questions))
			}
		}
	}
	var pending api.PendingResult
	p.must(api.PendingPermissions, object{"sessionId": "s"}, &pending)
	if len(pending.Items) != 1 {
		t.Errorf("pending are %+v", pending)
	}
}

// Of many sessions that wait, none stays in memory because its questions were
// listed.
func TestListingQuestionsLeavesNoSessionInMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTestServer(t)
		p := r.dialPipe()
		for _, id := range []string{"a", "b", "c"} {
			p.must(api.SessionCreate, object{"sessionId": id, "requestPermission": true, "tools": []object{{"name": "act"}}}, nil)
			p.must(api.SessionSend, object{"sessionId": id, "prompt": "Use act with value 'x'"}, nil)
			p.await(event.PermissionAsked)
			p.must(api.SessionDestroy, object{"sessionId": id}, nil)
			synctest.Wait() // a session that is at work stays in memory
			r.host.Unload(event.SessionID(id))
		}
		if n := r.host.Resident(); n != 0 {
			t.Fatalf("%d sessions are in memory before", n)
		}
		var list api.QuestionsResult
		p.must(api.Questions, object{}, &list)
		if n := r.host.Resident(); n != 0 || len(list.Questions) != 3 {
			t.Errorf("there are %d questions, want 3, and %d sessions stay in memory", len(list.Questions), n)
		}
	})
}

// TestAProgramThatComesBackIsSentWhatIsOpenUntilItHasDecided: a program that comes back is sent
// the open question, and no other client is. While the program may answer by the id that it
// knows, an answer that says that nobody is available does not count. It counts once a message
// waits behind the question.
func TestAProgramThatComesBackIsSentWhatIsOpenUntilItHasDecided(t *testing.T) {
	r := newTestServer(t)
	first := r.open(api.SessionCreate, acting)
	asked := first.question(t)
	first.Close()
	back := object{"requestPermission": true, "continuePendingWork": true}
	p := r.open(api.SessionResume, back)
	e := p.await(event.PermissionAsked)
	if d := data[event.PermissionAskedData](t, e); d.RequestID != asked.RequestID || attempt(t, e) != 2 {
		t.Errorf("asked is %s with attempt %d", d.RequestID, attempt(t, e))
	}
	other := r.open(api.SessionResume, back)
	nobody := nobodyFor(asked.RequestID)
	p.must(api.AnswerPermission, nobody, nil)
	var pending api.PendingResult
	p.must(api.PendingPermissions, object{"sessionId": "s"}, &pending)
	if len(pending.Items) != 1 {
		t.Fatalf("pending are %+v", pending)
	}
	p.must(api.SessionSend, object{"sessionId": "s", "prompt": "Reply with exactly: NEXT"}, nil)
	if e := p.await(event.PermissionAsked); attempt(t, e) != 3 {
		t.Errorf("asked with attempt %d", attempt(t, e))
	}
	p.must(api.AnswerPermission, nobody, nil)
	p.await(event.SessionIdle)
	for len(other.events) > 0 {
		if e := <-other.events; e.Type == event.PermissionAsked {
			t.Errorf("another client was asked, too: %s", e.Bytes)
		}
	}
}

// The end of a cut connection may be noticed after its successor is there. What the
// successor was sent because it wants it is not sent to it again then.
func TestAQuestionIsPutOnceToAClientWhosePredecessorLeavesLater(t *testing.T) {
	interest := object{"sessionId": "s", "eventType": "permission.requested"}
	for name, test := range map[string]struct {
		resume   object
		interest bool
		want     int // number of times that the client is asked
	}{
		"redeliver":                       {again, false, 1},
		"redeliver without a handler":     {object{"abide": object{"redeliver": true}}, false, 1},
		"interest":                        {object{}, true, 1},
		"neither":                         {object{"requestPermission": true}, false, 1},
		"it cannot answer such questions": {object{"continuePendingWork": true}, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newTestServer(t)
				first, p := r.dialPipe(), r.dialPipe()
				first.open(api.SessionCreate, acting)
				asked := first.question(t)
				p.open(api.SessionResume, test.resume)
				if test.interest {
					p.must(api.RegisterInterest, interest, nil)
				}
				first.Close()
				synctest.Wait()
				var attempts []int
				for len(p.events) > 0 {
					if e := <-p.events; e.Type == event.PermissionAsked {
						attempts = append(attempts, attempt(t, e))
					}
				}
				if len(attempts) != test.want {
					t.Errorf("the question was put with attempts %v, want %d of them", attempts, test.want)
				}
				p.must(api.AnswerPermission, object{"sessionId": "s", "requestId": asked.RequestID, "result": object{"kind": "reject"}}, nil)
				p.await(event.SessionIdle)
			})
		})
	}
}

// It makes no difference to a program that comes back when the end of its lost connection
// is noticed: that nobody is available is no answer.
func TestAProgramWhosePredecessorLeavesLaterHasNotDecidedEither(t *testing.T) {
	r := newTestServer(t)
	first := r.open(api.SessionCreate, acting)
	asked := first.question(t)
	p := r.open(api.SessionResume, object{"requestPermission": true, "continuePendingWork": true})
	first.Close()
	p.await(event.PermissionAsked)
	p.must(api.AnswerPermission, nobodyFor(asked.RequestID), nil)
	var pending api.PendingResult
	p.must(api.PendingPermissions, object{"sessionId": "s"}, &pending)
	if len(pending.Items) != 1 {
		t.Errorf("pending are %+v", pending)
	}
}

// A message that waits behind a question makes the next answer count, also if the client
// was sent the question before it, and whoever has sent the message.
func TestNobodyIsAnAnswerWhileAMessageWaits(t *testing.T) {
	for _, own := range []bool{true, false} {
		r := newTestServer(t)
		first := r.open(api.SessionCreate, acting)
		asked := first.question(t)
		first.must(api.SessionDestroy, object{"sessionId": "s"}, nil)
		p := r.open(api.SessionResume, object{"requestPermission": true, "continuePendingWork": true})
		p.await(event.PermissionAsked)
		sender := p
		if !own {
			sender = r.open(api.SessionResume, object{})
		}
		sender.must(api.SessionSend, object{"sessionId": "s", "prompt": "Reply with exactly: NEXT"}, nil)
		p.must(api.AnswerPermission, nobodyFor(asked.RequestID), nil)
		p.await(event.SessionIdle)
	}
}

// A client that has not decided is asked once more when it sends a message, also if it was
// sent the question a second time because it is interested.
func TestWhoHasNotDecidedIsAskedOnceMoreAlsoIfInterested(t *testing.T) {
	r := newTestServer(t)
	first := r.open(api.SessionCreate, acting)
	asked := first.question(t)
	first.must(api.SessionDestroy, object{"sessionId": "s"}, nil)
	p := r.open(api.SessionResume, object{"requestPermission": true, "continuePendingWork": true})
	p.must(api.RegisterInterest, object{"sessionId": "s", "eventType": "permission.requested"}, nil)
	p.await(event.PermissionAsked)
	p.await(event.PermissionAsked)
	p.must(api.AnswerPermission, nobodyFor(asked.RequestID), nil)
	p.must(api.SessionSend, object{"sessionId": "s", "prompt": "Reply with exactly: NEXT"}, nil)
	if e := p.await(event.PermissionAsked); attempt(t, e) != 4 {
		t.Errorf("asked with attempt %d, want 4", attempt(t, e))
	}
	p.must(api.AnswerPermission, nobodyFor(asked.RequestID), nil)
	p.await(event.SessionIdle)
}

// nobodyFor answers a permission question with that nobody is available.
func nobodyFor(requestID string) object {
	return object{"sessionId": "s", "requestId": requestID, "result": object{"kind": "user-not-available"}}
}
