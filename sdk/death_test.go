package sdk

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	copilot "github.com/github/copilot-sdk/go"
	"github.com/github/copilot-sdk/go/rpc"
)

// A death is a way in which a program loses its session. It returns the program,
// what ends it, and how another one is started afterwards.
type death struct {
	name  string
	begin func(h *home) (p *program, die func(), next func() *program)
}

var deaths = []death{
	{"the connection is cut", func(h *home) (*program, func(), func() *program) {
		server := h.serve()
		p := server.connect()
		return p, p.die, server.connect
	}},
	{"the program leaves", func(h *home) (*program, func(), func() *program) {
		server := h.serve()
		p := server.connect()
		return p, p.leave, server.connect
	}},
	{"the server is killed", func(h *home) (*program, func(), func() *program) {
		server := h.serve()
		p := server.connect()
		return p, func() { server.end(); p.die() }, func() *program { return h.serve().connect() }
	}},
	{"the child is killed", func(h *home) (*program, func(), func() *program) {
		p := h.child()
		return p, p.die, h.child
	}},
	{"the child is shut down", func(h *home) (*program, func(), func() *program) {
		p := h.child()
		return p, p.leave, h.child
	}},
	{"both processes of the folder are killed", func(h *home) (*program, func(), func() *program) {
		engine := h.serve()
		p := h.child()
		return p, func() {
			p.die() // the other way round, it would take over
			h.awaitProcesses(2)
			engine.end() // with a process that uses it, it would go on with what is under way
		}, h.child
	}},
	{"its relay is killed", func(h *home) (*program, func(), func() *program) {
		h.serve()
		p := h.child()
		return p, p.die, h.child
	}},
}

// leave ends the program in good order: it tells the runtime that it goes, and
// shuts that down if it is its own.
func (p *program) leave() {
	p.home.t.Helper()
	if err := p.Stop(); err != nil {
		p.home.t.Error(err)
	}
	p.die()
}

// A job is work that is left pending by one program and finished by another.
type job struct {
	name   string
	far    bool // true if the model has to be outside of the program
	prompt string
	part   func(h *home) part        // part that the first program plays, which leaves the work open
	begin  func(h *home, s *session) // waits until it is pending
	next   func(h *home) part        // part that the second program plays
	finish func(h *home, s *session) // answers what is open
	want   string                    // end of the last message
}

// check looks at the last words.
func (j job) check(h *home, got string) {
	h.t.Helper()
	if !strings.HasSuffix(got, j.want) {
		h.t.Errorf("the answer is %q, want %q", got, j.want)
	}
}

// found is what the tools of second programs give.
func found(value string) string { return "found " + value }

// holding is a program with tools that never answer.
func holding(tools ...string) func(*home) part {
	return func(h *home) part {
		p := part{permission: approve}
		for _, name := range tools {
			p.tools = append(p.tools, h.lookup(name, nil).tool())
		}
		return p
	}
}

// bare is a program that has no tools: it answers calls by their ids.
func bare(*home) part { return part{permission: approve} }

// waiting waits for the calls of tools.
func waiting(tools ...string) func(*home, *session) {
	return func(_ *home, s *session) { s.calls(tools...) }
}

// openCalls finds the calls that nobody has answered, by the names of their
// tools, in the history: the program that saw them is dead.
func (s *session) openCalls() map[string]string {
	s.home.t.Helper()
	return openCalls(s.events())
}

func openCalls(events []copilot.SessionEvent) map[string]string {
	open := make(map[string]string)
	for _, d := range pick[copilot.ExternalToolRequestedData](events) {
		open[d.ToolName] = d.RequestID
	}
	for _, d := range pick[rpc.ExternalToolCompletedData](events) {
		for name, id := range open {
			if id == d.RequestID {
				delete(open, name)
			}
		}
	}
	return open
}

// openPermissions finds the permission requests that nobody has answered. The
// runtime would list them, but this SDK cannot read the list: it has no decoder
// for the requests in it.
func (s *session) openPermissions() []string {
	s.home.t.Helper()
	return openPermissions(s.events())
}

func openPermissions(events []copilot.SessionEvent) (ids []string) {
	for _, d := range pick[copilot.PermissionRequestedData](events) {
		ids = append(ids, d.RequestID)
	}
	for _, d := range pick[copilot.PermissionCompletedData](events) {
		ids = slices.DeleteFunc(ids, func(id string) bool { return id == d.RequestID })
	}
	return ids
}

// giveTools answers open calls in this order, each with what is found.
func giveTools(values ...[2]string) func(*home, *session) {
	return func(h *home, s *session) {
		h.t.Helper()
		open := s.openCalls()
		if len(open) != len(values) {
			h.t.Fatalf("the open calls are %v, want %v", open, values)
		}
		for _, v := range values {
			if !s.giveTool(open[v[0]], found(v[1])) {
				h.t.Errorf("the answer of %s does not count", v[0])
			}
		}
	}
}

// decideAll answers the one permission request that is open.
func decideAll(d rpc.PermissionDecision) func(*home, *session) {
	return func(h *home, s *session) {
		h.t.Helper()
		ids := s.openPermissions()
		if len(ids) != 1 || !s.decide(ids[0], d) {
			h.t.Fatalf("the open permission requests are %v; one should be, and be answered", ids)
		}
	}
}

// giveFirst is a first program that answers one of its calls before it dies.
func giveFirst(tool, value string) func(*home, *session) {
	return func(h *home, s *session) {
		h.t.Helper()
		if !s.giveTool(s.calls("pending_lookup_a", "pending_lookup_b")[tool], found(value)) {
			h.t.Errorf("the answer of %s does not count", tool)
		}
	}
}

// asking is a program with a person who never answers.
func asking(h *home) part {
	h.person = h.at(h.never(), "too late")
	return part{permission: approve, input: h.person.answer}
}

// answering is a program with a person who likes blue.
func answering(h *home) part { return part{permission: approve, input: h.at(now, "blue").answer} }

// isAsked waits until the question is put to the person, who says nothing.
func isAsked(h *home, s *session) {
	all[copilot.UserInputRequestedData](s.record, 1)
	h.person.await(1)
}

// fifo is where a command of the session reads.
func (h *home) fifo() string { return filepath.Join(filepath.Dir(h.dir), "feed") }

// nothing is to be done.
func nothing(*home, *session) {}

const (
	pendingA = "pending_lookup_a"
	pendingB = "pending_lookup_b"
)

var jobs = []job{
	{
		name: "permission", prompt: askPermission,
		part: func(h *home) part {
			return part{permission: h.judge(silence).decide, tools: []copilot.Tool{h.lookup("resume_permission_tool", nil).tool()}}
		},
		begin: func(_ *home, s *session) { all[copilot.PermissionRequestedData](s.record, 1) },
		next: func(h *home) part {
			return part{permission: h.judge(nobody).decide, tools: []copilot.Tool{h.lookup("resume_permission_tool", found).tool()}}
		},
		finish: decideAll(yes), want: "found alpha",
	},
	{
		name: "permission that is refused", prompt: askPermission,
		part: func(h *home) part {
			return part{permission: h.judge(silence).decide, tools: []copilot.Tool{h.lookup("resume_permission_tool", nil).tool()}}
		},
		begin:  func(_ *home, s *session) { all[copilot.PermissionRequestedData](s.record, 1) },
		next:   func(h *home) part { return part{permission: h.judge(nobody).decide} },
		finish: decideAll(&rpc.PermissionDecisionReject{Feedback: copilot.String("not today")}),
		want:   "The user rejected this tool call. User feedback: not today",
	},
	{
		name: "tool", prompt: askExternal,
		part: holding("resume_external_tool"), begin: waiting("resume_external_tool"),
		next: bare, finish: giveTools([2]string{"resume_external_tool", "beta"}), want: "found beta",
	},
	{
		name: "two tools, first a", prompt: askParallel,
		part: holding(pendingA, pendingB), begin: waiting(pendingA, pendingB), next: bare,
		finish: giveTools([2]string{pendingA, "alpha"}, [2]string{pendingB, "beta"}), want: "found alpha\nfound beta",
	},
	{
		name: "two tools, first b", prompt: askParallel,
		part: holding(pendingA, pendingB), begin: waiting(pendingA, pendingB), next: bare,
		finish: giveTools([2]string{pendingB, "beta"}, [2]string{pendingA, "alpha"}), want: "found alpha\nfound beta",
	},
	{
		name: "two tools, a before and b after", prompt: askParallel,
		part: holding(pendingA, pendingB), begin: giveFirst(pendingA, "alpha"), next: bare,
		finish: giveTools([2]string{pendingB, "beta"}), want: "found alpha\nfound beta",
	},
	{
		name: "two tools, b before and a after", prompt: askParallel,
		part: holding(pendingA, pendingB), begin: giveFirst(pendingB, "beta"), next: bare,
		finish: giveTools([2]string{pendingA, "alpha"}), want: "found alpha\nfound beta",
	},
	{
		name: "question", prompt: "Ask me: which colour do you like?",
		part: asking, begin: isAsked,
		next: answering, finish: nothing, want: "User responded: blue",
	},
	{
		name: "a permission, a tool and a question at once", prompt: `Call pending_lookup_a with value 'alpha' and pending_lookup_b with value 'beta' and ask_user with {"question":"which colour do you like?"}`,
		part: func(h *home) part {
			p, free := asking(h), h.lookup(pendingB, nil).tool()
			free.SkipPermission = true
			p.permission, p.tools = h.judge(silence).decide, []copilot.Tool{h.lookup(pendingA, nil).tool(), free}
			return p
		},
		begin: func(h *home, s *session) {
			isAsked(h, s)
			all[copilot.PermissionRequestedData](s.record, 1)
			s.calls(pendingB)
		},
		next: func(h *home) part {
			p := answering(h)
			p.permission, p.tools = h.judge(nobody).decide, []copilot.Tool{h.lookup(pendingA, found).tool()}
			return p
		},
		finish: func(h *home, s *session) {
			giveTools([2]string{pendingB, "beta"})(h, s)
			decideAll(yes)(h, s)
		},
		want: "found alpha\nfound beta\nUser responded: blue",
	},
	{
		name: "a tool beside a command that runs", prompt: `Call bash with {"command":"read -r line <$HOME/feed; echo got $line","description":"Read","initial_wait":300} and resume_external_tool with value 'beta'`,
		part: func(h *home) part {
			h.must(syscall.Mkfifo(h.fifo(), 0o600))
			return holding("resume_external_tool")(h)
		},
		begin: func(h *home, s *session) {
			s.calls("resume_external_tool")
			feed, err := os.OpenFile(h.fifo(), os.O_WRONLY, 0) // returns when the command has opened the other end
			h.must(err)
			h.t.Cleanup(func() { feed.Close() })
			h.feed = feed
		},
		next: bare,
		finish: func(h *home, s *session) {
			_, err := h.feed.WriteString("FED\n")
			h.must(errors.Join(err, h.feed.Close()))
			giveTools([2]string{"resume_external_tool", "beta"})(h, s)
		},
		want: "got FED\n<exited with exit code 0>\nfound beta",
	},
	{
		name: "model request", far: true, prompt: "Reply with exactly: STILL_HERE",
		part:  func(h *home) part { h.model.far.pause(); return bare(h) },
		begin: func(h *home, _ *session) { h.model.far.arrival() },
		next:  bare, finish: func(h *home, _ *session) { h.model.far.goOn() }, want: "STILL_HERE",
	},
	{
		name: "model request after a tool", far: true, prompt: askExternal,
		part: holding("resume_external_tool"),
		begin: func(h *home, s *session) {
			request := s.calls("resume_external_tool")["resume_external_tool"]
			h.model.far.pause()
			if !s.giveTool(request, found("beta")) {
				h.t.Error("the answer does not count")
			}
			h.model.far.arrival()
		},
		next: bare, finish: func(h *home, _ *session) { h.model.far.goOn() }, want: "found beta",
	},
}

// inItsWorlds runs a test in all worlds in which the job can be done.
func (j job) inItsWorlds(t *testing.T, f func(t *testing.T, h *home)) {
	inEachWorld(t, func(t *testing.T, h *home) {
		if !j.far || h.model.far != nil {
			f(t, h)
		}
	})
}

// Whatever a program was waiting for, and however it is lost: another one finds
// what is open, answers it, and has the answer. Nothing is done twice, and of the
// first program's handlers none counts.
func TestPendingWorkOutlivesEverything(t *testing.T) {
	t.Parallel()
	for _, d := range deaths {
		for _, j := range jobs {
			t.Run(d.name+"/"+j.name, func(t *testing.T) {
				t.Parallel()
				j.inItsWorlds(t, func(_ *testing.T, h *home) { j.outlives(h, d) })
			})
		}
	}
}

func (j job) outlives(h *home, d death) {
	p, die, next := d.begin(h)
	first := p.create(j.part(h))
	first.say(j.prompt)
	j.begin(h, first)
	die()

	o := j.next(h)
	o.pending = copilot.Bool(true)
	second := next().resume(first.SessionID, o)
	j.finish(h, second)
	second.rest()
	j.check(h, lastWords(second.events()))
	l := h.audit(first.SessionID)
	if n := len(pick[copilot.SessionResumeData](second.events())); n != 1 {
		h.t.Errorf("there are %d resume events, want 1", n)
	}
	if len(l.answers) != 1 {
		h.t.Errorf("there were %d turns, with the answers %q", len(l.answers), l.answers)
	}
}

// rest waits until the session has nothing more to do. It may be so already.
func (s *session) rest() {
	s.home.t.Helper()
	if s.home.status(s.SessionID).Active {
		s.until("the session is at rest", func(events []copilot.SessionEvent) bool { return number(events, idle) > 0 })
	}
}

// A program whose engine is killed, and that has a process of its own, need not
// do anything: the process takes over, and its questions are still there.
func TestAProgramNeedNotNoticeThatTheEngineWasKilled(t *testing.T) {
	t.Parallel()
	for _, j := range jobs {
		t.Run(j.name, func(t *testing.T) {
			t.Parallel()
			j.inItsWorlds(t, func(t *testing.T, h *home) {
				engine := h.serve()
				o, later := j.part(h), j.next(h)
				dead := make(chan struct{})
				h.person = h.at(dead, "blue")
				if later.input != nil {
					o.input = h.person.answer
				}
				for _, tool := range later.tools {
					i := slices.IndexFunc(o.tools, func(other copilot.Tool) bool { return other.Name == tool.Name })
					o.tools[i].Handler = tool.Handler
				}
				s := h.child().create(o)
				s.say(j.prompt)
				j.begin(h, s)
				engine.end()
				close(dead)
				j.finish(h, s)
				j.check(h, s.answer(1))
				h.audit(s.SessionID)
			})
		})
	}
}
