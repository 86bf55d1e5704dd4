package main

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/abide-run/abide/bench/compare"
	"github.com/abide-run/abide/bench/instant"
)

// A contender runs sessions in its own way.
type contender interface {
	// open makes a session. It returns when the first event was shown.
	open(stream bool) (session, error)
	// restart begins anew with what is stored: nothing is in memory, and nobody
	// is attached.
	restart() error
	close()
	// tallied is where the pieces of streams are counted.
	tallied() *tally
}

// A tally is how many pieces of streams the model said, and in how many they were
// shown.
type tally struct{ said, shown int }

func (t *tally) tallied() *tally { return t }

func (t *tally) String() string {
	return fmt.Sprintf("%d pieces for each 1,000 of the model", (t.shown*1000+t.said-1)/max(1, t.said))
}

// A session takes prompts, from one goroutine.
type session interface {
	// turn runs a turn to its end. It returns the pieces of a streamed answer.
	turn(prompt string) (pieces []string, err error)
	// leave detaches from the session.
	leave() error
	// back comes back to a session that is attached no more. It returns when
	// that was shown.
	back() error
}

// A workload is something that both sides are measured with.
type workload struct {
	name, unit string
	side       func(contender) compare.Side
}

var workloads = []workload{
	{"session.create to the first event", "session", opens{times: 20}.side},
	{"send to idle", "turn", load{sessions: 1, turns: 100}.side},
	{"send to idle, streamed", "turn", load{sessions: 1, turns: 100, stream: true}.side},
	{"turns, 50 sessions", "turn", load{sessions: 50, turns: 20}.side},
	{"turns, 50 sessions, streamed", "turn", load{sessions: 50, turns: 20, stream: true}.side},
	{"deltas, 1,000 in one answer", "delta", stream{instant.Prompt{Tokens: 1000, PerWrite: 1}}.side},
	{"deltas, 10,000 in one answer", "delta", stream{instant.Prompt{Tokens: 10_000, PerWrite: 1}}.side},
	{"resume of 1,000 turns", "resume", resumes{sessions: 3, history: 1000}.side},
}

// The prompt of a turn has about 200 bytes, its answer 50 tokens. Of a streamed
// one each token is a write of its own.
var (
	prompt = strings.Repeat("What do you think of it? ", 8)
	live   = prompt + instant.Prompt{Tokens: instant.Tokens, PerWrite: 1}.String()
)

// opens makes sessions, one after the other.
type opens struct{ times int }

func (o opens) side(c contender) compare.Side {
	var open []session
	return compare.Side{
		Block: func() int {
			for range o.times {
				open = append(open, got(c.open(false)))
			}
			return o.times
		},
		After: func() { must(leaveAll(open)); open = nil },
	}
}

func leaveAll(open []session) error {
	var errs []error
	for _, s := range open {
		errs = append(errs, s.leave())
	}
	return errors.Join(errs...)
}

// A load is so many sessions at once, each with so many turns in a block.
type load struct {
	sessions, turns int
	stream          bool
}

func (l load) side(c contender) compare.Side {
	var open []session
	return compare.Side{
		Before: func() {
			for range l.sessions {
				open = append(open, got(c.open(l.stream)))
			}
		},
		Block: func() int {
			must(l.run(open))
			return l.sessions * l.turns
		},
		After: func() { must(leaveAll(open)); open = nil },
	}
}

// run gives all sessions their turns.
func (l load) run(open []session) error {
	var running sync.WaitGroup
	errs := make([]error, len(open))
	for i, s := range open {
		running.Go(func() { errs[i] = l.runOne(s) })
	}
	running.Wait()
	return errors.Join(errs...)
}

func (l load) runOne(s session) error {
	words := prompt
	if l.stream {
		words = live
	}
	for range l.turns {
		pieces, err := s.turn(words)
		if err == nil && l.stream {
			err = whole(pieces, instant.Tokens)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// A stream is one answer that does not end soon.
type stream struct{ prompt instant.Prompt }

func (l stream) side(c contender) compare.Side {
	var open session
	return compare.Side{
		Before: func() { open = got(c.open(true)) },
		Block: func() int {
			pieces := got(open.turn(l.prompt.String()))
			must(whole(pieces, l.prompt.Tokens))
			t := c.tallied()
			t.said, t.shown = t.said+l.prompt.Tokens, t.shown+len(pieces)
			return l.prompt.Tokens
		},
		After: func() { must(open.leave()) },
	}
}

// whole makes sure that nothing of a stream is missing, and nothing came twice.
func whole(pieces []string, tokens int) error {
	if text := strings.Join(pieces, ""); text != strings.Repeat(instant.Token, tokens) {
		return fmt.Errorf("of %d tokens %d bytes arrived in %d pieces, want %d bytes", tokens, len(text), len(pieces), tokens*len(instant.Token))
	}
	return nil
}

// resumes comes back to long sessions that have to be read from the store. One
// that does not count is first: a process that has just begun is still busy with
// itself.
type resumes struct{ sessions, history int }

func (r resumes) side(c contender) compare.Side {
	var all []session
	for range r.sessions + 1 {
		s := got(c.open(false))
		for range r.history {
			got(s.turn(prompt))
		}
		all = append(all, s)
	}
	return compare.Side{
		Before: func() { must(c.restart()); must(all[0].back()) },
		Block: func() int {
			for _, s := range all[1:] {
				must(s.back())
			}
			return r.sessions
		},
		After: func() { must(leaveAll(all)) },
	}
}
