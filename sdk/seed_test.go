package sdk

import (
	"slices"
	"testing"

	copilot "github.com/github/copilot-sdk/go"
)

// These are the tests of pending work that the SDKs have themselves, once more
// with this project's models, and with a closer look: at the first handler, which
// must not be asked again, at the order of results, and at the log.

const (
	askPermission = "Use resume_permission_tool with value 'alpha', then reply with the result."
	askExternal   = "Use resume_external_tool with value 'beta', then reply with the result."
	askParallel   = "Call pending_lookup_a with value 'alpha' and pending_lookup_b with value 'beta', then reply with both results."
)

func TestAPendingPermissionGoesOnAfterAResume(t *testing.T) {
	t.Parallel()
	inEachWorld(t, func(t *testing.T, h *home) {
		server := h.serveBySDK()
		first, original := h.judge(silence), h.lookup("resume_permission_tool", func(string) string { return "ORIGINAL_SHOULD_NOT_RUN" })
		suspended := server.connect()
		s1 := suspended.create(part{tools: []copilot.Tool{original.tool()}, permission: first.decide})
		s1.say(askPermission)
		request := all[copilot.PermissionRequestedData](s1.record, 1)[0].RequestID
		first.await(1)
		suspended.die()

		second, again := h.judge(nobody), h.lookup("resume_permission_tool", func(v string) string { return "PERMISSION_RESUMED_" + v })
		s2 := server.connect().resume(s1.SessionID, part{tools: []copilot.Tool{again.tool()}, permission: second.decide, pending: copilot.Bool(true)})
		if !s2.decide(request, yes) {
			t.Error("the answer does not count")
		}
		if got := s2.answer(1); got != "PERMISSION_RESUMED_alpha" {
			t.Errorf("the answer is %q", got)
		}
		if s2.decide(request, no) {
			t.Error("a second answer counts")
		}
		if len(first.asked()) != 1 || len(second.asked()) > 1 {
			t.Errorf("the first program was asked %d times, the second %d times, want 1 and at most 1", len(first.asked()), len(second.asked()))
		}
		if len(original.asked()) != 0 || !slices.Equal(again.asked(), []string{"alpha"}) {
			t.Errorf("the first tool ran for %v, the second for %v", original.asked(), again.asked())
		}
		checkResume(t, s2, false, true) // it brings the tool of the one that left: it is that program again
		h.audit(s1.SessionID)
	})
}

func TestAPendingToolCallGoesOnAfterAResume(t *testing.T) {
	t.Parallel()
	inEachWorld(t, func(t *testing.T, h *home) {
		server := h.serveBySDK()
		held := h.lookup("resume_external_tool", nil)
		suspended := server.connect()
		s1 := suspended.create(part{tools: []copilot.Tool{held.tool()}, permission: approve})
		s1.say(askExternal)
		request := s1.calls("resume_external_tool")["resume_external_tool"]
		held.await(1)
		suspended.die()

		s2 := server.connect().resume(s1.SessionID, part{permission: approve, pending: copilot.Bool(true)})
		if !s2.giveTool(request, "EXTERNAL_RESUMED_BETA") {
			t.Error("the answer does not count")
		}
		if got := s2.answer(1); got != "EXTERNAL_RESUMED_BETA" {
			t.Errorf("the answer is %q", got)
		}
		if s2.giveTool(request, "LATE") {
			t.Error("a second answer counts")
		}
		if !slices.Equal(held.asked(), []string{"beta"}) {
			t.Errorf("the tool ran for %v", held.asked())
		}
		checkResume(t, s2, true, false)
		if got := h.audit(s1.SessionID).given("resume_external_tool"); !slices.Equal(got, []string{"EXTERNAL_RESUMED_BETA"}) {
			t.Errorf("the log has the results %q", got)
		}
	})
}

func TestParallelPendingToolCallsGoOnInAnyOrder(t *testing.T) {
	t.Parallel()
	for name, order := range map[string][]string{"b then a": {"pending_lookup_b", "pending_lookup_a"}, "a then b": {"pending_lookup_a", "pending_lookup_b"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inEachWorld(t, func(t *testing.T, h *home) {
				server := h.serveBySDK()
				a, b := h.lookup("pending_lookup_a", nil), h.lookup("pending_lookup_b", nil)
				suspended := server.connect()
				s1 := suspended.create(part{tools: []copilot.Tool{a.tool(), b.tool()}, permission: approve})
				s1.say(askParallel)
				requests := s1.calls("pending_lookup_a", "pending_lookup_b")
				a.await(1)
				b.await(1)
				suspended.die()

				s2 := server.connect().resume(s1.SessionID, part{permission: approve, pending: copilot.Bool(true)})
				results := map[string]string{"pending_lookup_a": "PARALLEL_A_ALPHA", "pending_lookup_b": "PARALLEL_B_BETA"}
				for _, tool := range order {
					if !s2.giveTool(requests[tool], results[tool]) {
						t.Errorf("the answer of %s does not count", tool)
					}
				}
				if got := s2.answer(1); got != "PARALLEL_A_ALPHA\nPARALLEL_B_BETA" {
					t.Errorf("the answer is %q", got)
				}
				if !slices.Equal(a.asked(), []string{"alpha"}) || !slices.Equal(b.asked(), []string{"beta"}) {
					t.Errorf("the tools ran for %v and %v", a.asked(), b.asked())
				}
				h.audit(s1.SessionID)
			})
		})
	}
}

func TestAResumeWithoutPendingWorkIsAnOrdinaryOne(t *testing.T) {
	t.Parallel()
	inEachWorld(t, func(t *testing.T, h *home) {
		server := h.serveBySDK()
		first := server.connect()
		s1 := first.create(part{permission: approve})
		if got := s1.ask("Reply with exactly: NO_PENDING_TURN_ONE"); got != "NO_PENDING_TURN_ONE" {
			t.Errorf("the answer is %q", got)
		}
		h.must(s1.Disconnect())
		first.die()

		s2 := server.connect().resume(s1.SessionID, part{permission: approve, pending: copilot.Bool(true)})
		if got := s2.ask("Reply with exactly: NO_PENDING_TURN_TWO"); got != "NO_PENDING_TURN_TWO" {
			t.Errorf("the answer is %q", got)
		}
		if got := h.audit(s1.SessionID).answers; !slices.Equal(got, []string{"NO_PENDING_TURN_ONE", "NO_PENDING_TURN_TWO"}) {
			t.Errorf("the log has the answers %q", got)
		}
	})
}

func TestAWarmResumeLeavesPendingToolCallsAlone(t *testing.T) {
	t.Parallel()
	inEachWorld(t, func(t *testing.T, h *home) {
		server := h.serveBySDK()
		held := h.lookup("resume_external_tool", nil)
		suspended := server.connect()
		s1 := suspended.create(part{tools: []copilot.Tool{held.tool()}, permission: approve})
		s1.say(askExternal)
		request := s1.calls("resume_external_tool")["resume_external_tool"]
		held.await(1)
		suspended.die()

		s2 := server.connect().resume(s1.SessionID, part{permission: approve, pending: copilot.Bool(false)})
		checkResume(t, s2, true, false)
		if !s2.giveTool(request, "EXTERNAL_RESUMED_BETA") {
			t.Error("the answer does not count")
		}
		if got := s2.answer(1); got != "EXTERNAL_RESUMED_BETA" {
			t.Errorf("the answer is %q", got)
		}
		if !slices.Equal(held.asked(), []string{"beta"}) {
			t.Errorf("the tool ran for %v", held.asked())
		}
		h.audit(s1.SessionID)
	})
}

func TestTheResumeEventTellsWhatWasAskedFor(t *testing.T) {
	t.Parallel()
	inEachWorld(t, func(t *testing.T, h *home) {
		server := h.serveBySDK()
		first := server.connect()
		s1 := first.create(part{permission: approve})
		s1.ask("Reply with exactly: CONTINUE_PENDING_WORK_TRUE_TURN_ONE")
		h.must(s1.Disconnect())
		first.die()

		s2 := server.connect().resume(s1.SessionID, part{permission: approve, pending: copilot.Bool(true)})
		checkResume(t, s2, false, true)
		if got := s2.ask("Reply with exactly: CONTINUE_PENDING_WORK_TRUE_TURN_TWO"); got != "CONTINUE_PENDING_WORK_TRUE_TURN_TWO" {
			t.Errorf("the answer is %q", got)
		}
		h.audit(s1.SessionID)
	})
}

// checkResume: there is one session.resume event, in the history and among what
// was shown, and it says whether a turn was running and whether pending work is
// continued.
func checkResume(t *testing.T, s *session, active, continued bool) {
	t.Helper()
	s.until("the resume event", func(events []copilot.SessionEvent) bool { return number(events, resumed) > 0 })
	for _, events := range [][]copilot.SessionEvent{s.events(), s.seen()} {
		found := pick[copilot.SessionResumeData](events)
		if len(found) != 1 {
			t.Fatalf("there are %d resume events, want 1", len(found))
		}
		d := found[0]
		if d.SessionWasActive == nil || *d.SessionWasActive != active || d.ContinuePendingWork == nil || *d.ContinuePendingWork != continued {
			t.Errorf("the resume event says active %v, continue %v, want %v, %v", value(d.SessionWasActive), value(d.ContinuePendingWork), active, continued)
		}
	}
}

// value is what a pointer points to, for people.
func value[T any](p *T) any {
	if p == nil {
		return nil
	}
	return *p
}
