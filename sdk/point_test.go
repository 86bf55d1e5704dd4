package sdk

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
)

// The server is killed when the program was shown its first event, its second,
// and so on to the last; then another program comes to another server and talks
// to the end. The worlds take turns, unless there is time for both.
func TestKilledAtEveryEventTheTurnEndsAsIfNothingHadHappened(t *testing.T) {
	t.Parallel()
	for i, name := range []string{"words", "tool", "two tools", "question"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for first, world := range []string{"offline", "wire"} {
				t.Run(world, func(t *testing.T) {
					t.Parallel()
					mind := worlds[world]
					events := killedAt(t, mind(t), exchanges[i], 0)
					for n := 1; n <= events; n++ {
						if n%2 != first && os.Getenv("ABIDE_CROWD") == "" {
							continue
						}
						t.Run(fmt.Sprintf("event %d", n), func(t *testing.T) {
							t.Parallel()
							killedAt(t, mind(t), exchanges[i], n)
						})
					}
				})
			}
		})
	}
}

// killedAt lets a talker live, and kills its server when it was shown so many
// events; never if that is 0. It returns how many it was shown.
func killedAt(t *testing.T, m mind, say func(int) exchange, kill int) int {
	h := newHome(t, m)
	k := newTalker(h, "session")
	k.say, k.enough = say, func(turns int) bool { return turns == 1 }
	var shown atomic.Int64
	ctx, cancel := context.WithCancelCause(h.ctx)
	defer cancel(nil)
	server := h.serve()
	p := server.connect()
	err := k.live(ctx, p, func(n int) {
		shown.Store(int64(n))
		if n == kill {
			cancel(errKilled)
			server.end()
		}
	})
	if errors.Is(err, errKilled) {
		p.die()
		server.end()
		err = k.live(h.ctx, h.serve().connect(), nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	l := h.audit(k.id)
	for _, fault := range k.judge(l) {
		t.Error(fault)
	}
	if len(l.answers) != 1 {
		t.Errorf("there were %d turns", len(l.answers))
	}
	return int(shown.Load())
}
