package killtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/model/offline"
	"github.com/abide-run/abide/internal/model/remote/remotetest"
	"github.com/abide-run/abide/internal/test/seedtest"
)

// newRand returns the random source of a round, and logs the seed that repeats it.
func newRand(t *testing.T, round int) *rand.Rand {
	t.Helper()
	seed := seedtest.Seed() + uint64(round) - 1
	t.Logf("ABIDE_SEED=%d gives the same choices again", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// soak calls f once as a test of its own, or again and again for as long as
// ABIDE_SOAK says.
func soak(t *testing.T, f func(t *testing.T, r *rand.Rand)) {
	var length time.Duration
	if text := os.Getenv("ABIDE_SOAK"); text != "" {
		var err error
		if length, err = time.ParseDuration(text); err != nil {
			t.Fatalf("ABIDE_SOAK: %v", err)
		}
	}
	for begun, round := time.Now(), 1; round == 1 || time.Since(begun) < length; round++ {
		if !t.Run(strconv.Itoa(round), func(t *testing.T) { f(t, newRand(t, round)) }) {
			return
		}
	}
}

// randomTurns makes a conversation for the offline model, in which no two prompts
// are the same.
func randomTurns(r *rand.Rand, n int) []exchange {
	turns := make([]exchange, n)
	for i := range turns {
		turns[i] = kinds[r.IntN(len(kinds))](i)
	}
	return turns
}

// kinds are the kinds of exchanges in a random conversation.
var kinds = []func(i int) exchange{
	func(i int) exchange {
		return exchange{prompt: fmt.Sprintf("Reply with exactly: %d", i), answer: fmt.Sprint(i)}
	},
	func(i int) exchange {
		return exchange{
			prompt: fmt.Sprintf("Call pure with value 'a%d' and keyed with value 'b%[1]d' and once with value 'c%[1]d', then reply with all results", i),
			answer: fmt.Sprintf("pure a%d\nkeyed b%[1]d\nonce c%[1]d", i),
		}
	},
	func(i int) exchange {
		return exchange{prompt: fmt.Sprintf("Call once with value 'ask %d' and lookup with value 'x%[1]d'", i), answer: fmt.Sprintf("once ask %d\nfound x%[1]d", i)}
	},
	func(i int) exchange {
		return exchange{prompt: fmt.Sprintf("Use lookup with value 'y%d', then reply with the result", i), answer: fmt.Sprintf("found y%d", i)}
	},
	func(i int) exchange {
		return exchange{prompt: fmt.Sprintf("Ask me: how are you, for the time number %d?", i), answer: "User responded: blue"}
	},
	later(event.ModeSteer), later(event.ModeQueue), later(event.ModeInterrupt),
}

func later(mode string) func(i int) exchange {
	return func(i int) exchange {
		return exchange{
			prompt: fmt.Sprintf("Use lookup with value 'z%d'", i),
			later:  fmt.Sprintf("Reply with exactly: later %d", i), mode: mode, answer: fmt.Sprintf("later %d", i),
		}
	}
}

// want returns the answers that a conversation should get.
func (t conversation) want() (all []string) {
	for _, x := range t.turns {
		all = append(all, x.answer)
	}
	return all
}

// A clientGroup is a number of clients of one victim, each with a session of its own.
type clientGroup struct {
	t            *testing.T
	ctx          context.Context
	instructions instructions
	clients      []*groupClient
}

type groupClient struct {
	conversation conversation
	recorder     *recorder
	source       *modelSource
	out          outcome
}

// newGroupClients makes clients with random conversations, over one wire after the
// other.
func newGroupClients(t *testing.T, r *rand.Rand, n, turns int) (all []*groupClient) {
	flawless := func(int) remotetest.Fault { return nil }
	for i := range n {
		w := offlineSource(t, scenario{})
		if i%4 < 3 {
			w = []*wire{anthropic, responses, chat}[i%4].to(t, offline.Model{}, flawless)
		}
		id := event.SessionID("s" + strconv.Itoa(i))
		all = append(all, &groupClient{conversation: conversation{w.open(id), randomTurns(r, turns)}, recorder: newRecorder(), source: w})
	}
	return all
}

func newClientGroup(t *testing.T, clients []*groupClient) *clientGroup {
	base := newRun(t, conversation{})
	c := &clientGroup{t: t, ctx: base.ctx, instructions: base.instructions, clients: clients}
	c.instructions.OneByOne, c.instructions.Checked = false, true
	return c
}

// runUntilKilled drives all clients until the victim is killed after a number of
// events, or until the clients are done, which it reports.
func (c *clientGroup) runUntilKilled(events int64) (done bool) {
	c.t.Helper()
	p := start(c.t, c.instructions, ignoreReport)
	c.awaitStart(p)
	var left atomic.Int64
	left.Store(events)
	var talking sync.WaitGroup
	errs := make([]error, len(c.clients))
	for i, m := range c.clients {
		m.recorder.onEvent = func() {
			if left.Add(-1) == 0 {
				p.kill()
			}
		}
		talking.Go(func() { errs[i] = c.talk(m) })
	}
	talking.Wait()
	end := p.leave
	if left.Load() <= 0 {
		end = p.wasKilled
	}
	for _, err := range append(errs, end()) {
		if err != nil && !errors.Is(err, errDied) {
			c.t.Fatal(err, p.stderrText())
		}
	}
	return left.Load() > 0
}

// awaitStart waits until the victim answers on its standard streams: from then on
// other clients can connect to the private socket.
func (c *clientGroup) awaitStart(p *process) {
	c.t.Helper()
	cl, err := connect(c.ctx, stdio{p}, newRecorder(), conversation{})
	c.t.Cleanup(cl.close)
	if err != nil {
		c.t.Fatal(p.endError("it did not start"))
	}
}

// talk drives one client to the end of its conversation.
func (c *clientGroup) talk(m *groupClient) error {
	cl, err := dial(c.ctx, c.instructions.Dir, m.recorder, m.conversation)
	if cl != nil {
		defer cl.close()
	}
	if err == nil {
		err = cl.drive(c.ctx)
	}
	if err == nil {
		r := &run{ctx: c.ctx, instructions: c.instructions, recorder: m.recorder}
		m.out, err = r.collect(cl)
	}
	return err
}

func TestKilledAtRandomNothingIsLostOrRepeated(t *testing.T) {
	t.Parallel()
	soak(t, func(t *testing.T, r *rand.Rand) {
		c := newClientGroup(t, newGroupClients(t, r, 4, 9))
		kills := 0
		for !c.runUntilKilled(1 + r.Int64N(90)) {
			kills++
		}
		t.Logf("killed %d times", kills)
		for _, m := range c.clients {
			judgeRun(t, m.source, m.out, expected{answers: m.conversation.want()})
		}
	})
}
