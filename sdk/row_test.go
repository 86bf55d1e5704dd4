package sdk

import (
	"errors"
	"slices"
	"strings"
	"testing"

	copilot "github.com/github/copilot-sdk/go"
	"github.com/github/copilot-sdk/go/rpc"
)

// These are the situations in which runtimes lose pending work, or do it twice.
// What outlives what is in TestPendingWorkOutlivesEverything.

// pend leaves a call pending, and returns the session and the id of the request.
func (p *program) pend() (s *session, request string) {
	p.home.t.Helper()
	s = p.create(holding("resume_external_tool")(p.home))
	s.say(askExternal)
	return s, s.calls("resume_external_tool")["resume_external_tool"]
}

// again comes back to a session, and wants its pending work.
func (p *program) again(s *session) *session {
	p.home.t.Helper()
	return p.resume(s.SessionID, part{permission: approve, pending: copilot.Bool(true)})
}

// flags are what a program can say of pending work.
var flags = map[string]*bool{"absent": nil, "false": copilot.Bool(false), "true": copilot.Bool(true)}

func TestAWarmResumeTouchesNothing(t *testing.T) {
	t.Parallel()
	for name, flag := range flags {
		for _, who := range []string{"the first", "the second"} {
			t.Run(name+"/"+who+" answers", func(t *testing.T) {
				t.Parallel()
				inEachWorld(t, func(t *testing.T, h *home) {
					server := h.serve()
					s1, request := server.connect().pend()
					s2 := server.connect().resume(s1.SessionID, part{permission: approve, pending: flag})
					checkResume(t, s2, true, false)
					one, other := s1, s2
					if who == "the second" {
						one, other = s2, s1
					}
					if !one.giveTool(request, found("beta")) || other.giveTool(request, "LATE") {
						t.Error("the first answer should count, and no other")
					}
					if a, b := s1.answer(1), s2.answer(1); a != "found beta" || b != a {
						t.Errorf("the answers are %q and %q", a, b)
					}
					h.audit(s1.SessionID)
				})
			})
		}
	}
}

// A program that comes back at once, alone and with the same tool, is the one that left,
// started again: what it says of pending work counts as if it had been away for long.
func TestAProgramThatIsStartedAgainIsNoSecondOne(t *testing.T) {
	t.Parallel()
	for name, flag := range flags {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHome(t, newNear(t))
			server := h.serve()
			p := server.connect()
			s1, request := p.pend()
			p.die()
			again := holding("resume_external_tool")(h)
			again.pending = flag
			s2 := server.connect().resume(s1.SessionID, again)
			keeps := flag != nil && *flag
			if s2.giveTool(request, found("beta")) != keeps {
				t.Errorf("an answer counts: %v, want %v", !keeps, keeps)
			}
			s2.say("Reply with exactly: AFTERWARDS")
			s2.until("the message is answered", func(events []copilot.SessionEvent) bool { return lastWords(events) == "AFTERWARDS" })
			s2.rest()
			h.audit(s1.SessionID)
		})
	}
}

func TestACallOutlivesTheOwnerOfItsTool(t *testing.T) {
	t.Parallel()
	inEachWorld(t, func(t *testing.T, h *home) {
		server := h.serve()
		owner := server.connect()
		s1 := owner.create(holding("resume_external_tool")(h))
		s2 := server.connect().resume(s1.SessionID, part{permission: approve})
		s1.say(askExternal)
		request := s2.calls("resume_external_tool")["resume_external_tool"]
		owner.die()
		if !s2.giveTool(request, found("beta")) {
			t.Error("the answer does not count")
		}
		if got := s2.answer(1); got != "found beta" {
			t.Errorf("the answer is %q", got)
		}
		h.audit(s1.SessionID)
	})
}

func TestAColdResumeIsAtWorkAtOnce(t *testing.T) {
	t.Parallel()
	inEachWorld(t, func(t *testing.T, h *home) {
		server := h.serve()
		p := server.connect()
		s1, request := p.pend()
		p.leave()
		s2 := server.connect().again(s1)
		checkResume(t, s2, false, true)
		now, err := s2.RPC.Metadata.Activity(h.ctx)
		if err != nil {
			t.Error(err)
		} else if !now.HasActiveWork || !now.Abortable {
			t.Errorf("the session's activity is %+v", *now)
		}
		if !s2.giveTool(request, found("beta")) || s2.answer(1) != "found beta" {
			t.Error("the answer does not count")
		}
		h.audit(s1.SessionID)
	})
}

// interrupted is what the model is told of calls that nobody wanted back.
const interrupted = "The execution of this tool, or a previous tool was interrupted."

// A resume that does not want the pending work ends it: for good, whatever comes
// next.
func TestADeclinedResumeIsForGood(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"absent", "false"} {
		for _, next := range []string{"a turn", "another resume", "a kill"} {
			t.Run(name+"/then "+next, func(t *testing.T) {
				t.Parallel()
				inEachWorld(t, func(t *testing.T, h *home) {
					server := h.serve()
					p := server.connect()
					s1, request := p.pend()
					p.leave()
					p = server.connect()
					s2 := p.resume(s1.SessionID, part{permission: approve, pending: flags[name]})
					if s2.giveTool(request, "LATE") {
						t.Error("an answer counts after the work was declined")
					}
					switch next {
					case "another resume":
						p.leave()
						s2 = server.connect().again(s1)
					case "a kill":
						server.end()
						p.die()
						s2 = h.serve().connect().again(s1)
					}
					if s2.giveTool(request, "LATE") {
						t.Error("what was declined is there again")
					}
					s2.rest()
					if got := s2.ask("Reply with exactly: NEXT"); got != "NEXT" {
						t.Errorf("the answer is %q", got)
					}
					if h.model.far != nil {
						if told, _ := h.model.far.told(); strings.Count(told, interrupted) != 1 {
							t.Errorf("the model was told\n%s", told)
						}
					}
					h.audit(s1.SessionID)
				})
			})
		}
	}
}

func TestADeclinedPermissionIsForGood(t *testing.T) {
	t.Parallel()
	inEachWorld(t, func(t *testing.T, h *home) {
		server := h.serve()
		p := server.connect()
		tool := h.lookup("resume_permission_tool", found)
		s1 := p.create(part{permission: h.judge(silence).decide, tools: []copilot.Tool{tool.tool()}})
		s1.say(askPermission)
		request := all[copilot.PermissionRequestedData](s1.record, 1)[0].RequestID
		p.leave()
		p = server.connect()
		s2 := p.resume(s1.SessionID, part{permission: approve, tools: []copilot.Tool{tool.tool()}})
		if s2.decide(request, yes) {
			t.Error("an answer counts after the work was declined")
		}
		server.end()
		p.die()
		s3 := h.serve().connect().again(s1)
		if s3.decide(request, yes) {
			t.Error("what was declined is there again")
		}
		s3.rest()
		if got := s3.ask("Reply with exactly: NEXT"); got != "NEXT" || len(tool.asked()) > 0 {
			t.Errorf("the answer is %q, and the tool ran for %v", got, tool.asked())
		}
		h.audit(s1.SessionID)
	})
}

func TestPendingWorkOutlivesManyDeaths(t *testing.T) {
	t.Parallel()
	inEachWorld(t, func(t *testing.T, h *home) {
		server := h.serve()
		p := server.connect()
		s, request := p.pend()
		for i := range 6 {
			switch i % 3 {
			case 0:
				p.die()
			case 1:
				p.leave()
			case 2:
				server.end()
				p.die()
				server = h.serve()
			}
			p = server.connect()
			s = p.again(s)
			if open := s.openCalls(); open["resume_external_tool"] != request {
				t.Fatalf("after death %d the open calls are %v, want %s", i+1, open, request)
			}
		}
		if !s.giveTool(request, found("beta")) || s.answer(1) != "found beta" {
			t.Error("the answer does not count")
		}
		h.audit(s.SessionID)
	})
}

func TestAnAbortEndsPendingWork(t *testing.T) {
	t.Parallel()
	inEachWorld(t, func(t *testing.T, h *home) {
		server := h.serve()
		p := server.connect()
		s1, request := p.pend()
		server.end()
		p.die()
		s2 := h.serve().connect().again(s1)
		h.must(s2.Abort(h.ctx))
		if d := all[copilot.SessionIdleData](s2.record, 1)[0]; d.Aborted == nil || !*d.Aborted {
			t.Errorf("the session is idle, and not as one that was stopped: %+v", d)
		}
		if s2.giveTool(request, "LATE") {
			t.Error("an answer counts after an abort")
		}
		if got := s2.ask("Reply with exactly: NEXT"); got != "NEXT" {
			t.Errorf("the answer is %q", got)
		}
		h.audit(s1.SessionID)
	})
}

func TestAMessageWaitsBehindPendingWorkThroughAKill(t *testing.T) {
	t.Parallel()
	inEachWorld(t, func(t *testing.T, h *home) {
		server := h.serve()
		p := server.connect()
		s1, request := p.pend()
		p.leave()
		p = server.connect()
		s2 := p.again(s1)
		s2.say("Reply with exactly: NEXT")
		checkQueue(t, s2, "Reply with exactly: NEXT")
		server.end()
		p.die()
		s3 := h.serve().connect().again(s1)
		checkQueue(t, s3, "Reply with exactly: NEXT")
		if !s3.giveTool(request, found("beta")) {
			t.Error("the answer does not count")
		}
		if got := s3.answer(1); got != "NEXT" {
			t.Errorf("the last answer is %q", got)
		}
		l := h.audit(s1.SessionID)
		if got := l.given("resume_external_tool"); !slices.Equal(got, []string{"found beta"}) {
			t.Errorf("the results are %q", got)
		}
		if got := pick[copilot.AssistantMessageData](s3.events()); len(got) != 3 || got[1].Content != "found beta" {
			t.Errorf("there are %d messages of the model, and the one before the last is not about the tool", len(got))
		}
	})
}

func checkQueue(t *testing.T, s *session, want ...string) {
	t.Helper()
	queue, err := s.RPC.Queue.PendingItems(s.home.ctx)
	s.home.must(err)
	var got []string
	for _, item := range queue.Items {
		got = append(got, item.DisplayText)
	}
	if !slices.Equal(got, want) {
		t.Errorf("the queue is %q, want %q", got, want)
	}
}

// The model is asked again only by those who cannot know its answer.
func TestAModelRequestIsMadeAgainOnlyIfTheProcessDied(t *testing.T) {
	t.Parallel()
	for _, d := range deaths {
		want := 1
		if strings.Contains(d.name, "killed") && !strings.Contains(d.name, "relay") || strings.Contains(d.name, "shut down") {
			want = 2
		}
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			h := newHome(t, newFar(t))
			h.model.far.pause()
			p, die, next := d.begin(h)
			s1 := p.create(part{permission: approve})
			s1.say("Reply with exactly: STILL_HERE")
			h.model.far.arrival()
			die()
			if want == 2 { // until it has noticed that its launcher was killed, a process would take the answer, or clients
				h.awaitProcesses(0)
			}
			h.model.far.goOn()
			s2 := next().again(s1)
			s2.rest()
			if got := lastWords(s2.events()); got != "STILL_HERE" {
				t.Errorf("the answer is %q", got)
			}
			if _, n := h.model.far.told(); n != want {
				t.Errorf("the model was asked %d times, want %d", n, want)
			}
			h.audit(s1.SessionID)
		})
	}
}

func TestAQuestionIsAnsweredByItsIDAfterAKill(t *testing.T) {
	t.Parallel()
	inEachWorld(t, func(t *testing.T, h *home) {
		server := h.serve()
		p := server.connect()
		s1 := p.create(asking(h))
		s1.say("Ask me: which colour do you like?")
		request := all[copilot.UserInputRequestedData](s1.record, 1)[0].RequestID
		server.end()
		p.die()
		s2 := h.serve().connect().again(s1) // nobody is behind it
		if !s2.tell(request, "green") || s2.tell(request, "red") {
			t.Error("the first answer should count, and no other")
		}
		if got := s2.answer(1); got != "User responded: green" {
			t.Errorf("the answer is %q", got)
		}
		h.audit(s1.SessionID)
	})
}

// A session that waits is not put to rest by the clock. That time has passed is
// told by the end of a command.
func TestAnIdleTimeoutLeavesPendingWorkAlone(t *testing.T) {
	t.Parallel()
	h := newHome(t, newNear(t))
	server := h.serve("--session-idle-timeout", "1")
	s, request := server.connect().pend()
	other := server.connect().create(part{permission: approve})
	other.ask("Run `sleep 2.5`")
	if n := len(h.status(s.SessionID).Questions); n != 1 {
		t.Errorf("there are %d open questions, want 1", n)
	}
	if !s.giveTool(request, found("beta")) || s.answer(1) != "found beta" {
		t.Error("the answer does not count")
	}
	h.audit(s.SessionID)
}

// To suspend a session ends what nobody has allowed yet, and nothing else.
func TestASuspendedSessionLosesOnlyOpenPermissions(t *testing.T) {
	t.Parallel()
	inEachWorld(t, func(t *testing.T, h *home) {
		server := h.serve()
		p := server.connect()
		s1, request := p.pend()
		s1.say("Reply with exactly: NEXT")
		if _, err := s1.RPC.Suspend(h.ctx); err != nil {
			t.Fatal(err)
		}
		server.end()
		p.die()
		s2 := h.serve().connect().again(s1)
		if !s2.giveTool(request, found("beta")) {
			t.Error("the answer does not count")
		}
		if got := s2.answer(1); got != "NEXT" {
			t.Errorf("the last answer is %q", got)
		}
		if got := h.audit(s1.SessionID).given("resume_external_tool"); !slices.Equal(got, []string{"found beta"}) {
			t.Errorf("the results are %q", got)
		}
	})
}

func TestASuspendedPermissionIsCancelledVisibly(t *testing.T) {
	t.Parallel()
	inEachWorld(t, func(t *testing.T, h *home) {
		server := h.serve()
		s := server.connect().create(part{permission: h.judge(silence).decide, tools: []copilot.Tool{h.lookup("resume_permission_tool", found).tool()}})
		s.say(askPermission)
		request := all[copilot.PermissionRequestedData](s.record, 1)[0].RequestID
		if _, err := s.RPC.Suspend(h.ctx); err != nil {
			t.Fatal(err)
		}
		done := all[copilot.PermissionCompletedData](s.record, 1)[0]
		if cancelled, ok := done.Result.(*rpc.PermissionCancelled); !ok || cancelled.Reason == nil || *cancelled.Reason != "Session suspended" {
			t.Errorf("the request was closed with %#v", done.Result)
		}
		if s.decide(request, yes) {
			t.Error("an answer counts after the request was cancelled")
		}
	})
}

// A program that gives a session up has not answered its questions, whatever it
// says afterwards.
func TestALeavingProgramIsNoAnswer(t *testing.T) {
	t.Parallel()
	inEachWorld(t, func(t *testing.T, h *home) {
		server := h.serve()
		p := server.connect()
		asked, gone := newTally(h), make(chan struct{})
		s1 := p.create(part{permission: approve, input: func(r copilot.UserInputRequest, _ copilot.UserInputInvocation) (copilot.UserInputResponse, error) {
			asked.add(r.Question)
			<-gone
			return copilot.UserInputResponse{}, errors.New("nobody is here any more")
		}})
		s1.say("Ask me: which colour do you like?")
		asked.await(1)
		h.must(s1.Disconnect())
		close(gone)
		for range 5 { // everything that it sent has arrived after these answers
			_, err := p.Ping(h.ctx, "")
			h.must(err)
		}
		o := answering(h)
		o.pending = copilot.Bool(true)
		s2 := server.connect().resume(s1.SessionID, o)
		s2.rest()
		if got := lastWords(s2.events()); got != "User responded: blue" {
			t.Errorf("the answer is %q", got)
		}
		h.audit(s1.SessionID)
	})
}

func TestAServerWantsItsToken(t *testing.T) {
	t.Parallel()
	h := newHome(t, newNear(t))
	server := h.serve()
	for name, wrong := range map[string]string{"none": "", "another one": token + "!", "a part of it": token[:5]} {
		door := copilot.URIConnection{URL: "localhost:" + server.number(), ConnectionToken: wrong}
		if _, err := h.tryProgram(door); err == nil || !strings.Contains(err.Error(), "AUTHENTICATION") {
			t.Errorf("with %s a program is told: %v", name, err)
		}
	}
	if got := server.connect().create(part{}).ask("Reply with exactly: IN"); got != "IN" {
		t.Errorf("the answer is %q", got)
	}
}

// A connection that was cut owns no tools, even if the server has not heard of it
// yet.
func TestTheToolsOfADeadConnectionAreFree(t *testing.T) {
	t.Parallel()
	h := newHome(t, newNear(t))
	server := h.serve()
	tools := []copilot.Tool{h.lookup("lookup", found).tool()}
	for range 20 {
		first, second := server.connect(), server.connect()
		s := first.create(part{tools: tools, permission: approve})
		s.ask("Use lookup with value 'x', then reply with the result")
		first.die()
		if got := second.resume(s.SessionID, part{tools: tools, permission: approve}).ask("Use lookup with value 'y', then reply with the result"); got != "found y" {
			t.Fatalf("the answer is %q", got)
		}
		second.die()
	}
}
