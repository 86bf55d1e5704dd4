package sdk

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"

	copilot "github.com/github/copilot-sdk/go"
	"github.com/github/copilot-sdk/go/rpc"

	"github.com/abide-run/abide/internal/event"
)

// A talker wants answers in a session, and comes back as often as it is killed.
// It knows nothing from its earlier lives but the name of the session and what
// it wants to say.
type talker struct {
	home   *home
	id     string
	say    func(turn int) exchange
	enough func(turns int) bool // reports whether so many answered turns will do

	handed *tally       // every result that its tools have ever given; no two are the same
	serial atomic.Int64 // number of the last of them
}

// An exchange is a prompt, and what the answer should look like.
type exchange struct{ prompt, answer string }

// exchanges are what can be talked about. No two prompts are the same.
var exchanges = []func(i int) exchange{
	func(i int) exchange {
		return exchange{fmt.Sprintf("Reply with exactly: WORD %d", i), fmt.Sprintf(`^WORD %d$`, i)}
	},
	func(i int) exchange {
		return exchange{fmt.Sprintf("Use lookup with value 'v%d', then reply with the result", i), fmt.Sprintf(`^found v%d, number \d+$`, i)}
	},
	func(i int) exchange {
		return exchange{
			fmt.Sprintf("Call lookup with value 'a%d' and lookup with value 'b%[1]d', then reply with both results", i),
			fmt.Sprintf(`^found a%d, number \d+\nfound b%[1]d, number \d+$`, i),
		}
	},
	func(i int) exchange {
		return exchange{fmt.Sprintf("Ask me: how are you, for the time number %d?", i), `^User responded: blue$`}
	},
}

func newTalker(h *home, id string) *talker {
	return &talker{home: h, id: id, handed: newTally(h)}
}

// give is what the tool does.
func (k *talker) give(value string) string {
	result := fmt.Sprintf("found %s, number %d", value, k.serial.Add(1))
	k.handed.add(result)
	return result
}

func (k *talker) part() part {
	tool := lookup{tally: newTally(k.home), name: "lookup", give: k.give}
	return part{
		id: k.id, tools: []copilot.Tool{tool.tool()}, permission: approve, input: k.home.at(now, "blue").answer,
		pending: copilot.Bool(true), streaming: true,
	}
}

// A life is one program of a talker.
type life struct {
	*talker
	ctx     context.Context
	program *program
	session *session
}

// live talks until there was enough. Each is told how many events it was shown.
// An error is that of ctx, or a fault.
func (k *talker) live(ctx context.Context, p *program, each func(shown int)) error {
	l := &life{talker: k, ctx: ctx, program: p}
	err := l.run(each)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

func (l *life) run(each func(int)) error {
	if err := l.open(each); err != nil {
		return err
	}
	events, err := l.session.GetEvents(l.ctx)
	if err != nil {
		return err
	}
	begun := len(pick[copilot.UserMessageData](events))
	if err := l.settle(events); err != nil {
		return err
	}
	for turn := max(0, begun-1); ; turn++ {
		if err := l.turn(turn, turn < begun); err != nil || l.enough(turn+1) {
			return err
		}
	}
}

// open comes back to the session, or makes it.
func (l *life) open(each func(int)) (err error) {
	r, o := newRecord(l.home), l.part()
	r.each = each
	l.session, err = l.program.join(l.ctx, r, l.id, o)
	if err != nil && strings.Contains(strings.ToLower(err.Error()), "not found") {
		l.session, err = l.program.begin(l.ctx, r, o)
	}
	return err
}

// settle answers what earlier lives have left open. What comes up from now on is
// put to the handlers of this life.
func (l *life) settle(events []copilot.SessionEvent) error {
	for _, id := range openPermissions(events) {
		if _, err := l.session.RPC.Permissions.HandlePendingPermissionRequest(l.ctx, &rpc.PermissionDecisionRequest{RequestID: id, Result: yes}); err != nil {
			return err
		}
	}
	done := pick[rpc.ExternalToolCompletedData](events)
	for _, d := range pick[copilot.ExternalToolRequestedData](events) {
		if slices.ContainsFunc(done, func(c *rpc.ExternalToolCompletedData) bool { return c.RequestID == d.RequestID }) {
			continue
		}
		value, _ := d.Arguments.(map[string]any)["value"].(string)
		if _, err := l.session.RPC.Tools.HandlePendingToolCall(l.ctx, &rpc.HandlePendingToolCallRequest{
			RequestID: d.RequestID, Result: rpc.ExternalToolStringResult(l.give(value)),
		}); err != nil {
			return err
		}
	}
	return nil
}

// turn brings one turn to its end, which may be over already.
func (l *life) turn(i int, begun bool) error {
	prompt := l.say(i).prompt
	if begun {
		if over, err := l.over(); over || err != nil {
			return err
		}
		prompt = "" // it was delivered to an earlier life
	} else if _, err := l.session.SendPrompt(l.ctx, prompt); err != nil {
		return err
	}
	return l.session.wait(l.ctx, func(events []copilot.SessionEvent) bool { return ended(events, prompt) })
}

// ended reports whether the session was idle after a prompt.
func ended(events []copilot.SessionEvent, prompt string) bool {
	said := prompt == ""
	for _, e := range events {
		switch d := e.Data.(type) {
		case *copilot.UserMessageData:
			said = said || d.Content == prompt
		case *copilot.SessionIdleData:
			if said {
				return true
			}
		}
	}
	return false
}

// over asks whether the session is at rest.
func (l *life) over() (bool, error) {
	c, err := l.home.tryPeek(l.ctx)
	if err != nil {
		return false, err
	}
	defer c.Close()
	st, err := c.Status(l.ctx, event.SessionID(l.id))
	return !st.Active, err
}

// judge looks at what the talker has in the end: every turn has its right answer,
// and every result was applied once.
func (k *talker) judge(l *ledger) (faults []string) {
	faults = append(faults, l.wrong...)
	i := 0
	for n, prompt := range l.prompts {
		if prompt != k.say(i).prompt && n > 0 {
			i++ // otherwise a killed client had said it, and the next one could not know
		}
		if want := k.say(i); prompt != want.prompt || !regexp.MustCompile(want.answer).MatchString(l.answers[n]) {
			faults = append(faults, fmt.Sprintf("prompt %d is %q and was answered %q, want %q", n, prompt, l.answers[n], want))
		}
	}
	handed := k.handed.asked()
	for _, result := range l.given("lookup") {
		i := slices.Index(handed, result)
		if i < 0 {
			faults = append(faults, fmt.Sprintf("the result %q was applied twice, or nobody gave it", result))
			continue
		}
		handed = slices.Delete(handed, i, i+1)
	}
	return faults
}

var errKilled = errors.New("killed")
