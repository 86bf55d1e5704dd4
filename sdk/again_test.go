package sdk

import (
	"strings"
	"testing"

	copilot "github.com/github/copilot-sdk/go"
	"github.com/github/copilot-sdk/go/rpc"
)

// A program that comes back and wants its questions again has them put to its own
// handlers, by the SDK: it need not look for them.
func TestWhoIsInterestedIsAskedAgainAfterAKill(t *testing.T) {
	t.Parallel()
	inEachWorld(t, func(t *testing.T, h *home) {
		server := h.serve()
		p := server.connect()
		free := h.lookup(pendingB, nil).tool()
		free.SkipPermission = true
		s1 := p.create(part{permission: h.judge(silence).decide, tools: []copilot.Tool{h.lookup(pendingA, nil).tool(), free}})
		s1.say(askParallel)
		all[copilot.PermissionRequestedData](s1.record, 1)
		s1.calls(pendingB)
		server.end()
		p.die()

		a, b, judge := h.lookup(pendingA, found), h.lookup(pendingB, found), h.judge(yes)
		s2 := h.serve().connect().resume(s1.SessionID, part{permission: judge.decide, tools: []copilot.Tool{a.tool(), b.tool()}, pending: copilot.Bool(true)})
		if n := len(judge.asked()) + len(b.asked()); n > 0 {
			t.Errorf("%d questions were put again to a program that had not said that it wants them", n)
		}
		for _, kind := range []string{"permission.requested", "external_tool.requested"} {
			_, err := s2.RPC.EventLog.RegisterInterest(h.ctx, &rpc.RegisterEventInterestParams{EventType: kind})
			h.must(err)
		}
		if got := s2.answer(1); got != "found alpha\nfound beta" {
			t.Errorf("the answer is %q", got)
		}
		if len(judge.asked()) != 1 || len(a.asked()) != 1 || len(b.asked()) != 1 {
			t.Errorf("the judge was asked %d times, the tools %d and %d times; want 1 each", len(judge.asked()), len(a.asked()), len(b.asked()))
		}
		h.audit(s1.SessionID)
	})
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
	go func() { given <- s.giveTool(request, huge) }()
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
