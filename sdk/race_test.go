package sdk

import (
	"strings"
	"sync"
	"testing"

	copilot "github.com/github/copilot-sdk/go"
	"github.com/github/copilot-sdk/go/rpc"
)

// A race is a question that two programs answer at the same time.
type race struct {
	name   string
	prompt string
	part   func(h *home) part // part that both programs play; they leave the work open
	asked  func(s *session) (request string)
	// answer gives the answer of one of the two, and tells whether that counts.
	answer func(s *session, request, who string) (bool, error)
}

var races = []race{
	{
		"permission", askPermission,
		func(h *home) part { return part{permission: h.judge(silence).decide} },
		func(s *session) string { return all[copilot.PermissionRequestedData](s.record, 1)[0].RequestID },
		func(s *session, request, who string) (bool, error) {
			r, err := s.RPC.Permissions.HandlePendingPermissionRequest(s.home.ctx, &rpc.PermissionDecisionRequest{
				RequestID: request, Result: &rpc.PermissionDecisionReject{Feedback: &who},
			})
			return err == nil && r.Success, err
		},
	},
	{
		"tool", askExternal,
		func(h *home) part { return part{permission: approve} },
		func(s *session) string { return s.calls("resume_external_tool")["resume_external_tool"] },
		func(s *session, request, who string) (bool, error) {
			r, err := s.RPC.Tools.HandlePendingToolCall(s.home.ctx, &rpc.HandlePendingToolCallRequest{
				RequestID: request, Result: rpc.ExternalToolStringResult(who),
			})
			return err == nil && r.Success, err
		},
	},
	{
		"question", "Ask me: who is it?", asking,
		func(s *session) string { return all[copilot.UserInputRequestedData](s.record, 1)[0].RequestID },
		func(s *session, request, who string) (bool, error) {
			r, err := s.RPC.UI.HandlePendingUserInput(s.home.ctx, &rpc.UIHandlePendingUserInputRequest{
				RequestID: request, Response: rpc.UIUserInputResponse{Answer: who, WasFreeform: true},
			})
			return err == nil && r.Success, err
		},
	},
}

// doors are the ways in which two programs come to one session.
var doors = map[string]func(h *home) (a, b *program){
	"one server": func(h *home) (a, b *program) {
		s := h.serve()
		return s.connect(), s.connect()
	},
	"two servers":  func(h *home) (a, b *program) { return h.serve().connect(), h.serve().connect() },
	"two children": func(h *home) (a, b *program) { return h.child(), h.child() },
}

// Two programs on one folder, in one process or in two: of their answers exactly
// one counts, and that is the one the model reads.
func TestOfTwoAnswersOneCounts(t *testing.T) {
	t.Parallel()
	for door, enter := range doors {
		for _, r := range races {
			t.Run(door+"/"+r.name, func(t *testing.T) {
				t.Parallel()
				h := newHome(t, newNear(t))
				a, b := enter(h)
				for range 5 {
					r.run(t, h, a, b)
				}
			})
		}
	}
}

func (r race) run(t *testing.T, h *home, a, b *program) {
	t.Helper()
	o := r.part(h)
	first := o
	if r.name != "question" {
		for _, name := range []string{"resume_permission_tool", "resume_external_tool"} {
			declared := h.lookup(name, nil).tool()
			declared.Handler = nil // calls are left to the programs
			first.tools = append(first.tools, declared)
		}
	}
	s1 := a.create(first)
	s2 := b.resume(s1.SessionID, o)
	s1.say(r.prompt)
	request := r.asked(s2)
	r.asked(s1)

	type outcome struct {
		won bool
		err error
	}
	var running sync.WaitGroup
	got := make(map[string]*outcome)
	for who, s := range map[string]*session{"ALICE": s1, "BOB": s2} {
		o := &outcome{}
		got[who] = o
		running.Go(func() { o.won, o.err = r.answer(s, request, who) })
	}
	running.Wait()
	if got["ALICE"].err != nil || got["BOB"].err != nil || got["ALICE"].won == got["BOB"].won {
		t.Fatalf("ALICE: %+v, BOB: %+v; one of them should count", *got["ALICE"], *got["BOB"])
	}
	winner := "BOB"
	if got["ALICE"].won {
		winner = "ALICE"
	}
	for _, s := range []*session{s1, s2} {
		if words := s.answer(1); !strings.HasSuffix(words, winner) {
			t.Errorf("%s won, and the answer is %q", winner, words)
		}
	}
	h.audit(s1.SessionID)
}
