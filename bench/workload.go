package main

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/abide-run/abide/bench/compare"
	"github.com/abide-run/abide/bench/instant"
)

// A workload is something that contenders can be measured with.
type workload struct {
	name  string
	unit  string // unit that the cost is counted for
	side  func(contender) compare.Side
	pairs int // least number of pairs, for workloads with short blocks
}

// The workloads. Sessions are new for every block, so that all blocks start
// with the same history.
var workloads = []workload{
	{"plain turn, 20 turns of history", "turn", load{sessions: 1, turns: 40, history: 20, stream: true, live: true}.side, 0},
	{"plain turn, 1000 turns of history", "turn", load{sessions: 1, turns: 40, history: 1000, stream: true, live: true}.side, 0},
	{"turn in one piece, 20 turns of history", "turn", load{sessions: 1, turns: 40, history: 20}.side, 0},
	{"turn in one piece, 1000 turns of history", "turn", load{sessions: 1, turns: 40, history: 1000}.side, 0},
	{"turn in one write, 20 turns of history", "turn", load{sessions: 1, turns: 40, history: 20, stream: true}.side, 0},
	{"plain turn, 10 busy sessions", "turn", load{sessions: 10, turns: 20, history: 5, stream: true, live: true}.side, 0},
	{"plain turn, 50 busy sessions", "turn", load{sessions: 50, turns: 5, history: 5, stream: true, live: true}.side, 0},
	{"long stream, one chunk per write", "chunk", longStream{instant.Prompt{Tokens: 20_000, PerWrite: 1}}.side, 0},
	{"long stream, 64 KiB per write", "chunk", longStream{instant.Prompt{Tokens: 20_000}}.side, 0},
	{"resume of 1000 turns", "resume", (&resumes{history: 1000, times: 10}).side, 0},
	{"command: a turn with one echo", "turn", commandTurns(3).side, 60},
}

// The prompt of a turn has about 200 bytes, its answer 50 tokens. A plain turn is streamed
// with one write for each token, as real models do.
var (
	prompt = strings.Repeat("What do you think of it? ", 8)
	live   = prompt + instant.Prompt{Tokens: instant.Tokens, PerWrite: 1}.String()
	answer = strings.Repeat(instant.Token, instant.Tokens)
)

// A load is a number of concurrent sessions, each with a number of turns in a block.
type load struct {
	sessions, turns, history int
	stream                   bool
	live                     bool // true if the model makes one write for each token
}

func (l load) side(c contender) compare.Side {
	var open []session
	return compare.Side{
		Name: c.name,
		Before: func() {
			for range l.sessions {
				open = append(open, got(c.open(l.history)))
			}
		},
		Block: func() int {
			must(l.run(open))
			return l.sessions * l.turns
		},
		After: func() {
			for _, s := range open {
				must(s.close())
			}
			open = nil
		},
	}
}

// run runs the turns of all sessions.
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
	if l.live {
		words = live
	}
	for range l.turns {
		pieces, err := s.turn(words, l.stream)
		if err == nil && l.stream {
			err = checkPieces(pieces, instant.Tokens)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// A longStream is one very long streamed answer. Its cost is counted for each chunk.
type longStream struct{ prompt instant.Prompt }

func (l longStream) side(c contender) compare.Side {
	var open session
	return compare.Side{
		Name:   c.name,
		Before: func() { open = got(c.open(0)) },
		Block: func() int {
			pieces := got(open.turn(l.prompt.String(), true))
			must(checkPieces(pieces, l.prompt.Tokens))
			return pieces
		},
		After: func() { must(open.close()) },
	}
}

// resumes repeatedly opens a session that was closed. Both contenders read the same bytes:
// the log that the first of them wrote.
type resumes struct {
	history, times int
	log            []byte
}

// A logger is a session that can return its log.
type logger interface{ log() ([]byte, error) }

// A copier is a session that can be created from a log.
type copier interface{ copy(log []byte) error }

func (r *resumes) side(c contender) compare.Side {
	s := got(c.open(r.history))
	if l, ok := s.(logger); ok {
		r.log = got(l.log())
	}
	if l, ok := s.(copier); ok && r.log != nil {
		must(l.copy(r.log))
	}
	must(s.close())
	return compare.Side{Name: c.name, Block: func() int {
		for range r.times {
			must(got(s.resume()).close())
		}
		return r.times
	}}
}

// commandTurns is a number of turns in each of which the model calls one command. Several
// processes take part, and on a busy machine each may have to wait for a processor, so
// there are many short blocks.
type commandTurns int

func (n commandTurns) side(c contender) compare.Side {
	if c.shell == nil {
		must(errors.ErrUnsupported)
	}
	var open session
	turn := func() {
		must(checkPieces(got(open.turn(prompt+instant.Run("echo hello").String(), true)), instant.Tokens))
	}
	return compare.Side{
		Name: c.name,
		Before: func() {
			open = got(c.shell())
			turn() // the first turn of a session does more
		},
		Block: func() int {
			for range n {
				turn()
			}
			return int(n)
		},
		After: func() { must(open.close()) },
	}
}

// checkPieces returns an error unless the expected number of pieces arrived.
func checkPieces(pieces, want int) error {
	if pieces != want {
		return fmt.Errorf("a stream of %d chunks arrived in %d pieces", want, pieces)
	}
	return nil
}

// measure runs the workload with two contenders in alternating blocks.
func (w workload) measure(a, b contender, pairs int) (r compare.Result, err error) {
	defer stopping(&err)
	return compare.Alternate(max(pairs, w.pairs), w.side(a), w.side(b)), nil
}

// stopped is the value with which must panics.
type stopped struct{ err error }

// stopping recovers from a panic of must and sets err. It has to be deferred.
func stopping(err *error) {
	switch failed := recover().(type) {
	case nil:
	case stopped:
		*err = failed.err
	default:
		panic(failed)
	}
}

// must panics if err is not nil, because figures of failed work mean nothing.
func must(err error) {
	if err != nil {
		panic(stopped{err})
	}
}

func got[T any](value T, err error) T {
	must(err)
	return value
}
