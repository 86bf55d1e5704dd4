package sdk

import (
	"errors"
	"strings"
	"testing"

	copilot "github.com/github/copilot-sdk/go"
	"github.com/github/copilot-sdk/go/rpc"
)

// A program with handlers that dies with open questions and comes back to its pending
// work has them put to its handlers once, by the SDK: it need not look for them.
func TestAProgramThatComesBackIsAskedOnce(t *testing.T) {
	t.Parallel()
	for _, d := range deaths {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			h := newHome(t, newNear(t))
			p, die, next := d.begin(h)
			free := h.lookup(pendingB, nil).tool()
			free.SkipPermission = true
			s1 := p.create(part{permission: h.judge(silence).decide, tools: []copilot.Tool{h.lookup(pendingA, nil).tool(), free}})
			s1.say(askParallel)
			all[copilot.PermissionRequestedData](s1.record, 1)
			s1.calls(pendingB)
			die()

			a, b, judge := h.lookup(pendingA, found), h.lookup(pendingB, found), h.judge(yes)
			s2 := next().resume(s1.SessionID, part{permission: judge.decide, tools: []copilot.Tool{a.tool(), b.tool()}, pending: copilot.Bool(true)})
			if got := s2.answer(1); got != "found alpha\nfound beta" {
				t.Errorf("the answer is %q", got)
			}
			if len(judge.asked()) != 1 || len(a.asked()) != 1 || len(b.asked()) != 1 {
				t.Errorf("the judge was asked %d times, the tools %d and %d times; want 1 each", len(judge.asked()), len(a.asked()), len(b.asked()))
			}
			h.audit(s1.SessionID)
		})
	}
}

// A message never waits behind a question that nobody was shown, whatever the program
// said about pending work when it came back.
func TestAMessageDoesNotWaitBehindAQuestionThatNobodySaw(t *testing.T) {
	t.Parallel()
	for name, pending := range map[string]*bool{"pending work goes on": copilot.Bool(true), "nothing is said of pending work": nil} {
		for how, decision := range map[string]rpc.PermissionDecision{"no": no, "nobody is available": nobody} {
			t.Run(name+", "+how, func(t *testing.T) {
				t.Parallel()
				h := newHome(t, newNear(t))
				server := h.serve()
				p := server.connect()
				s1 := p.create(part{permission: h.judge(silence).decide, tools: []copilot.Tool{h.lookup("resume_permission_tool", nil).tool()}})
				s1.say(askPermission)
				all[copilot.PermissionRequestedData](s1.record, 1)
				p.die()

				judge := h.judge(decision)
				s2 := server.connect().resume(s1.SessionID, part{permission: judge.decide, pending: pending})
				s2.say("Reply with exactly: AFTERWARDS")
				s2.until("the message is answered", func(events []copilot.SessionEvent) bool { return lastWords(events) == "AFTERWARDS" })
				s2.rest()
				h.audit(s1.SessionID)
			})
		}
	}
}

// Of two programs that came back, one takes the open question and dies before it has
// answered. The other one is asked then.
func TestAQuestionGoesToWhoeverStays(t *testing.T) {
	t.Parallel()
	h := newHome(t, newNear(t))
	server := h.serve()
	p := server.connect()
	s1 := p.create(part{permission: h.judge(silence).decide, tools: []copilot.Tool{h.lookup("resume_permission_tool", found).tool()}})
	s1.say(askPermission)
	all[copilot.PermissionRequestedData](s1.record, 1)
	p.die()

	first, second, tool := h.judge(silence), h.judge(yes), h.lookup("resume_permission_tool", found)
	q := server.connect()
	q.resume(s1.SessionID, part{permission: first.decide, pending: copilot.Bool(true)})
	first.await(1)
	s3 := server.connect().resume(s1.SessionID, part{permission: second.decide, tools: []copilot.Tool{tool.tool()}, pending: copilot.Bool(true)})
	if n := len(second.asked()); n != 0 {
		t.Errorf("the second program was asked %d times while the first had the question", n)
	}
	q.die()
	if got := s3.answer(1); got != "found alpha" || len(second.asked()) != 1 {
		t.Errorf("the answer is %q, and the second program was asked %d times", got, len(second.asked()))
	}
	h.audit(s1.SessionID)
}

// A form that is open when its program dies is put to the program that comes back.
func TestAFormIsPutToTheProgramThatComesBack(t *testing.T) {
	t.Parallel()
	h := newHome(t, newNear(t))
	server := h.serve()
	p := server.connect()
	put, never := newTally(h), h.never()
	s1 := p.create(part{permission: approve, form: func(c copilot.ElicitationContext) (copilot.ElicitationResult, error) {
		put.add(c.Message)
		<-never
		return copilot.ElicitationResult{Action: "cancel"}, nil
	}})
	asks := server.connect().resume(s1.SessionID, part{permission: approve})
	done := make(chan error, 1)
	go func() {
		yes, err := asks.UI().Confirm(h.ctx, "Sure?")
		if err == nil && !yes {
			err = errors.New("the person said no")
		}
		done <- err
	}()
	put.await(1)
	p.die()
	again := newTally(h)
	server.connect().resume(s1.SessionID, part{permission: approve, pending: copilot.Bool(true), form: func(c copilot.ElicitationContext) (copilot.ElicitationResult, error) {
		again.add(c.Message)
		return copilot.ElicitationResult{Action: "accept", Content: map[string]copilot.ElicitationFieldValue{"confirmed": true}}, nil
	}})
	if err := <-done; err != nil || len(again.asked()) != 1 {
		t.Errorf("the form came back with %v, and was put again %d times", err, len(again.asked()))
	}
	h.audit(s1.SessionID)
}

// A plan that waits for a person's approval waits through a kill, and is put to
// the next program.
func TestAPlanIsApprovedAfterAKill(t *testing.T) {
	t.Parallel()
	for _, d := range deaths {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			h := newHome(t, newNear(t))
			p, die, next := d.begin(h)
			shown, over := newTally(h), h.never()
			s1 := p.create(part{permission: approve, plan: func(r copilot.ExitPlanModeRequest, _ copilot.ExitPlanModeInvocation) (copilot.ExitPlanModeResult, error) {
				shown.add(r.Summary)
				<-over
				return copilot.ExitPlanModeResult{Feedback: "TOO LATE"}, nil
			}})
			_, err := s1.Send(h.ctx, copilot.MessageOptions{Prompt: `Use exit_plan_mode with {"summary":"the plan"}, then reply with the result`, AgentMode: copilot.AgentModePlan})
			h.must(err)
			shown.await(1)
			die()

			again := newTally(h)
			s2 := next().resume(s1.SessionID, part{permission: approve, pending: copilot.Bool(true), plan: func(r copilot.ExitPlanModeRequest, _ copilot.ExitPlanModeInvocation) (copilot.ExitPlanModeResult, error) {
				again.add(r.Summary)
				return copilot.ExitPlanModeResult{Approved: true, SelectedAction: "interactive"}, nil
			}})
			s2.rest()
			if got := lastWords(s2.events()); !strings.HasPrefix(got, "Plan approved!") || len(again.asked()) != 1 {
				t.Errorf("the answer is %q, and the plan was shown again for %q", got, again.asked())
			}
			h.audit(s1.SessionID)
		})
	}
}

// Two programs with processes of their own: one puts a form to the person of the
// other, and the engine is killed before the person has filled it in.
func TestAFormIsFilledInThoughTheEngineIsKilled(t *testing.T) {
	t.Parallel()
	h := newHome(t, newNear(t))
	engine := h.serve()
	put, dead := newTally(h), make(chan struct{})
	s1 := h.child().create(part{permission: approve, form: func(c copilot.ElicitationContext) (copilot.ElicitationResult, error) {
		put.add(c.Message)
		<-dead
		return copilot.ElicitationResult{Action: "accept", Content: map[string]copilot.ElicitationFieldValue{"confirmed": true}}, nil
	}})
	s2 := h.child().resume(s1.SessionID, part{permission: approve})
	type outcome struct {
		yes bool
		err error
	}
	done := make(chan outcome, 1)
	go func() {
		yes, err := s2.UI().Confirm(h.ctx, "Sure?")
		done <- outcome{yes, err}
	}()
	put.await(1)
	engine.end()
	close(dead)
	if got := <-done; got.err != nil || !got.yes {
		t.Errorf("the person said %+v", got)
	}
	h.audit(s1.SessionID)
}

// A result of 100 MB: a text is kept in a file, and what cannot be is refused by
// name and can be given again. Nobody else waits for it.
func TestAResultOf100MBHurtsNobody(t *testing.T) {
	t.Parallel()
	h := newHome(t, newNear(t))
	server := h.serve()
	s, other := server.connect().create(holding("resume_external_tool")(h)), server.connect().create(part{permission: approve})
	s.say(askExternal)
	request := s.calls("resume_external_tool")["resume_external_tool"]
	huge := strings.Repeat("A", 100<<20)
	_, err := s.RPC.Tools.HandlePendingToolCall(h.ctx, &rpc.HandlePendingToolCallRequest{
		RequestID: request, Result: &rpc.ExternalToolTextResultForLlm{TextResultForLlm: "ok", SessionLog: &huge},
	})
	if err == nil || !strings.Contains(err.Error(), "result.sessionLog") {
		t.Errorf("what is too long was answered with %v", err)
	}
	given := make(chan bool, 1)
	go func() {
		defer close(given) // also if it fails
		given <- s.giveTool(request, huge)
	}()
	if got := other.ask("Reply with exactly: HERE"); got != "HERE" {
		t.Errorf("another program is answered %q", got)
	}
	if !<-given {
		t.Error("the answer does not count")
	}
	if got := s.answer(1); !strings.HasPrefix(got, "Output too large to read at once (102400.0 KB). Saved to: ") || len(got) > 2000 {
		t.Errorf("the answer is %.300q", got)
	}
	h.audit(s.SessionID)
}
