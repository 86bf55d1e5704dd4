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

	"github.com/abide-run/abide/internal/daemon/folder"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/model/offline"
	"github.com/abide-run/abide/internal/model/remote/remotetest"
)

// chance returns a source of chance, and says how to have the same again.
func chance(t *testing.T, round int) *rand.Rand {
	t.Helper()
	seed := uint64(time.Now().UnixNano()) + uint64(round)
	if text := os.Getenv("ABIDE_SEED"); text != "" {
		given, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("ABIDE_SEED: %v", err)
		}
		seed = given
	}
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
		if !t.Run(strconv.Itoa(round), func(t *testing.T) { f(t, chance(t, round)) }) {
			return
		}
	}
}

// randomTurns makes a conversation of the offline model. No two prompts of it
// are the same.
func randomTurns(r *rand.Rand, n int) []exchange {
	turns := make([]exchange, n)
	for i := range turns {
		turns[i] = kinds[r.IntN(len(kinds))](i)
	}
	return turns
}

// kinds are what can be talked about.
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

// want are the answers that a talk should get.
func (t talk) want() (all []string) {
	for _, x := range t.turns {
		all = append(all, x.answer)
	}
	return all
}

// A crowd are clients of one victim, each with a session of its own.
type crowd struct {
	t       *testing.T
	ctx     context.Context
	orders  orders
	members []*member
}

type member struct {
	talk    talk
	witness *witness
	world   *world
	out     outcome
}

// newMembers makes clients that have something to talk about, over one wire
// after the other.
func newMembers(t *testing.T, r *rand.Rand, n, turns int) (all []*member) {
	flawless := func(int) remotetest.Fault { return nil }
	for i := range n {
		w := offlineWorld(t, scenario{})
		if i%4 < 3 {
			w = []*wire{anthropic, responses, chat}[i%4].to(t, offline.Model{}, flawless)
		}
		id := event.SessionID("s" + strconv.Itoa(i))
		all = append(all, &member{talk: talk{w.open(id), randomTurns(r, turns)}, witness: newWitness(), world: w})
	}
	return all
}

func newCrowd(t *testing.T, members []*member) *crowd {
	base := newRun(t, talk{})
	c := &crowd{t: t, ctx: base.ctx, orders: base.orders, members: members}
	c.orders.InTurn = false
	return c
}

// live lets all clients talk with a victim until it is killed, after so many
// events, or until they are done, which it reports.
func (c *crowd) live(events int64) (done bool) {
	c.t.Helper()
	p := start(c.t, c.orders, nobody)
	c.knock(p)
	var left atomic.Int64
	left.Store(events)
	var talking sync.WaitGroup
	errs := make([]error, len(c.members))
	for i, m := range c.members {
		m.witness.each = func() {
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
			c.t.Fatal(err, p.said())
		}
	}
	return left.Load() > 0
}

// knock waits until the victim answers on its standard streams: then others can
// come by the private socket.
func (c *crowd) knock(p *process) {
	c.t.Helper()
	cl, err := connect(c.ctx, stdio{p}, newWitness(), talk{})
	c.t.Cleanup(cl.close)
	if err != nil {
		c.t.Fatal(p.ended("it did not start"))
	}
}

// talk lets one client talk to the end.
func (c *crowd) talk(m *member) error {
	f, err := folder.Open(c.orders.Dir)
	if err != nil {
		return err
	}
	conn, err := f.Dial(c.ctx)
	if err != nil {
		return errDied // the socket was there when the victim was ready
	}
	cl, err := connect(c.ctx, conn, m.witness, m.talk)
	defer cl.close()
	if err == nil {
		err = cl.drive(c.ctx)
	}
	if err == nil {
		r := &run{ctx: c.ctx, orders: c.orders, witness: m.witness}
		m.out, err = r.collect(cl)
	}
	return err
}

func TestKilledAtRandomNothingIsLostOrRepeated(t *testing.T) {
	t.Parallel()
	soak(t, func(t *testing.T, r *rand.Rand) {
		c := newCrowd(t, newMembers(t, r, 4, 9))
		kills := 0
		for !c.live(1 + r.Int64N(90)) {
			kills++
		}
		t.Logf("killed %d times", kills)
		for _, m := range c.members {
			judgeRun(t, m.world, m.out, words{answers: m.talk.want()})
		}
	})
}
