package postgres

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/eventlog/postgres/postgrestest"
	"github.com/abide-run/abide/internal/test/seedtest"
)

// hasty servers find others dead soon, and never stop writing by themselves: the fences alone
// keep order. On a busy machine they bury each other all the time, which is the point.
var hasty = Pace{Beat: 50 * time.Millisecond, Suspend: time.Hour, Dead: 1500 * time.Millisecond}

// A cluster are servers that are replaced when they close.
type cluster struct {
	t   *testing.T
	url string

	mu      sync.Mutex
	servers []*Store
	zombies int // number of servers that were stopped from beating
	closed  int // number of servers that were found dead
}

// pick returns a server that is open.
func (c *cluster) pick(n int) *Store {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := n % len(c.servers)
	if c.servers[i].Err() != nil {
		c.closed++
		c.servers[i].Close()
		c.servers[i] = c.start(i)
	}
	return c.servers[i]
}

// start starts a server, again if it is found dead before its first beat.
func (c *cluster) start(i int) *Store {
	for {
		s, err := Join(c.t.Context(), c.url, eventlog.Options{KeyFile: keyFile()}, Server{Address: fmt.Sprint(i)}, hasty)
		if err == nil {
			return s
		}
		if !errors.Is(err, eventlog.ErrFenced) && !lost(err) {
			c.t.Errorf("a server does not start: %v", err)
			runtime.Goexit()
		}
		c.t.Logf("a server was found dead while it started: %v", err)
	}
}

// sawDead reports whether a server was found dead.
func (c *cluster) sawDead() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed > 0
}

// stopBeats makes a server a zombie, which goes on writing.
func (c *cluster) stopBeats(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.servers[n%len(c.servers)]; s.Err() == nil {
		c.zombies++
		s.life.stop()
	}
}

// A teller appends numbered messages to a session, each at any server, until it knows that they
// are stored.
type teller struct {
	id       event.SessionID
	acked    []string // messages that were acknowledged
	repeated int      // number of appends that failed, and were made again
	said     int      // number of messages
}

func (w *teller) tell(t *testing.T, c *cluster, text string, random *rand.Rand) {
	for {
		s := c.pick(random.IntN(1 << 20))
		end, last, err := claimed(t, s, w.id)
		if err == nil && last == text { // the append before was stored, and its reply was an error
			return
		}
		if err == nil {
			_, err = say(t, s, w.id, end, text)
		}
		switch {
		case err == nil:
			w.acked = append(w.acked, text)
			return
		case errors.Is(err, eventlog.ErrNotOwner), errors.Is(err, eventlog.ErrFenced), errors.Is(err, eventlog.ErrClosed), errors.Is(err, eventlog.ErrConflict):
			w.repeated++
		default:
			t.Errorf("%s: %v", w.id, err)
			return
		}
	}
}

// claimed claims a session and reads its end and its last message.
func claimed(t *testing.T, s *Store, id event.SessionID) (end eventlog.End, last string, err error) {
	if err := s.Claim(t.Context(), id); err != nil {
		return end, "", err
	}
	for e, err := range s.Read(t.Context(), id, 0) {
		if errors.Is(err, eventlog.ErrNotFound) {
			return end, "", nil
		}
		if err != nil {
			return end, "", err
		}
		end = end.Next(e.Bytes)
		info, err := event.As[event.SessionInfoData](e)
		if err != nil {
			return end, "", err
		}
		last = info.Message
	}
	return end, last, nil
}

// Servers that were taken for dead go on writing. What was acknowledged is stored once and in its
// order, wherever it was written.
func TestZombiesNeitherLoseNorRepeat(t *testing.T) {
	pg := postgrestest.Start(t)
	c := &cluster{t: t, url: pg.SchemaURL("zombies")}
	for i := range 3 {
		c.servers = append(c.servers, c.start(i))
	}
	t.Cleanup(func() {
		for _, s := range c.servers {
			s.Close()
		}
	})
	const sessions, messages = 4, 12
	tellers := make([]*teller, sessions)
	var wg sync.WaitGroup
	for i := range tellers {
		w := &teller{id: event.SessionID(fmt.Sprint("s", i))}
		tellers[i] = w
		random := rand.New(rand.NewPCG(seedtest.Seed(), uint64(i)))
		wg.Go(func() {
			// The first goes on until the others have noticed a zombie, which takes them a moment.
			for n := 0; n < messages || i == 0 && !c.sawDead() && !t.Failed(); n++ {
				w.tell(t, c, fmt.Sprint(n), random)
				w.said++
				if i == 0 && n < messages && n%4 == 0 {
					c.stopBeats(random.IntN(1 << 20))
				}
			}
		})
	}
	wg.Wait()
	reader := c.pick(0)
	repeated := 0
	for _, w := range tellers {
		repeated += w.repeated
		var want []string
		for n := range w.said {
			want = append(want, fmt.Sprint(n))
		}
		if got := said(t, reader, w.id); !slices.Equal(got, want) {
			t.Errorf("%s says %q; acknowledged were %q", w.id, got, w.acked)
		}
	}
	if c.zombies == 0 || c.closed == 0 {
		t.Errorf("%d zombies, %d servers were found dead", c.zombies, c.closed)
	}
	t.Logf("%d zombies, %d servers were found dead, %d writes were refused", c.zombies, c.closed, repeated)
}
