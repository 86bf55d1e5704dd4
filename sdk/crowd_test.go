package sdk

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	copilot "github.com/github/copilot-sdk/go"
)

// size is how many clients there are, and how often each of them is killed.
func size(t *testing.T) (clients, kills int) {
	clients, kills = 20, 3
	if text := os.Getenv("ABIDE_CROWD"); text != "" {
		if _, err := fmt.Sscanf(text, "%dx%d", &clients, &kills); err != nil {
			t.Fatalf("ABIDE_CROWD: %q is not like 200x10", text)
		}
	}
	return clients, kills
}

// seed makes the choices of a run, the same ones each time unless ABIDE_SEED says otherwise.
func seed(t *testing.T) uint64 {
	seed := uint64(1)
	switch text := os.Getenv("ABIDE_SEED"); text {
	case "":
	case "random":
		seed = uint64(time.Now().UnixNano())
	default:
		given, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("ABIDE_SEED: %v", err)
		}
		seed = given
	}
	t.Logf("ABIDE_SEED=%d gives the same choices again", seed)
	return seed
}

// Many clients talk, each in a session of its own, and are killed at any event:
// some lose their connection, some the process that they started. Each of them
// has all its answers in the end, and no result twice.
func TestACrowdOfClientsThatDieAllTheTime(t *testing.T) {
	t.Parallel()
	clients, kills := size(t)
	chosen := seed(t)
	for world, mind := range worlds {
		t.Run(world, func(t *testing.T) { // one after the other: the crowd is large enough
			h := newHome(t, mind(t))
			if os.Getenv("ABIDE_CROWD") != "" {
				h.ctx = t.Context() // it takes its time
			}
			server := h.serve()
			var talking sync.WaitGroup
			for i := range clients {
				m := &mortal{talker: newTalker(h, fmt.Sprintf("session-%d", i)), server: server, kills: kills, chance: rand.New(rand.NewPCG(chosen, uint64(i)))}
				talking.Go(func() { m.judge(t, m.exist()) })
			}
			talking.Wait()
		})
	}
}

// A mortal is a talker that is killed so many times before it has had enough.
type mortal struct {
	*talker
	server *server
	kills  int
	chance *rand.Rand
	died   int
}

// exist lives again and again.
func (m *mortal) exist() error {
	topics := m.chance.Perm(len(exchanges))
	m.say = func(i int) exchange { return exchanges[topics[i%len(topics)]](i) }
	m.enough = func(int) bool { return m.died == m.kills }
	for {
		err := m.once()
		if err == nil || !errors.Is(err, errKilled) {
			return err
		}
		m.died++
	}
}

// once is a life that ends after some events, unless it is the last one.
func (m *mortal) once() error {
	ctx, cancel := context.WithCancelCause(m.home.ctx)
	defer cancel(nil)
	door, end := m.server.door(), 0
	if m.chance.IntN(8) == 0 {
		door = m.home.own()
	}
	if m.died < m.kills {
		end = 1 + m.chance.IntN(40)
	}
	p, err := m.enter(door)
	defer p.die()
	if err != nil {
		return err
	}
	return m.live(ctx, p, func(n int) {
		if n == end {
			cancel(errKilled)
		}
	})
}

// enter starts a program. In a crowd of that size it can take longer to be let in
// than the SDK wants to wait: then it tries again.
func (m *mortal) enter(door copilot.RuntimeConnection) (*program, error) {
	for {
		p, err := m.home.tryProgram(door)
		var slow net.Error
		if !errors.As(err, &slow) || !slow.Timeout() || m.home.ctx.Err() != nil {
			return p, err
		}
		p.die()
	}
}

// judge looks at what is left.
func (m *mortal) judge(t *testing.T, err error) {
	if err != nil {
		t.Errorf("%s, after %d deaths: %v", m.id, m.died, err)
		return
	}
	l, err := m.home.tryAudit(m.id)
	if err != nil {
		t.Errorf("%s: %v", m.id, err)
		return
	}
	for _, fault := range m.talker.judge(l) {
		t.Errorf("%s: %s", m.id, fault)
	}
}
