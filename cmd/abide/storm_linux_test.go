package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/test/seedtest"
)

// A busySession is a session that clients use again and again, each at another server.
type busySession struct {
	name   string
	asks   bool          // true if a person is asked about every command
	pause  time.Duration // time that its commands take
	id     string        // empty before the first answer
	done   []string
	orders *rand.Rand
}

// order returns the servers of a client, which begins at any of them.
func (s *sharing) order(b *busySession) string {
	first := b.orders.IntN(len(s.addresses))
	return strings.Join(append(slices.Clone(s.addresses[first:]), s.addresses[:first]...), ",")
}

// A stormResult is what a client prints.
type stormResult struct {
	ID        string `json:"session_id"`
	Subtype   string `json:"subtype"`
	Questions []struct {
		ID string `json:"request_id"`
	} `json:"questions"`
}

// run runs a client of a session, and returns what it prints.
func (s *sharing) run(b *busySession, args ...string) (result stormResult, err error) {
	p := command(s.t, s.t.TempDir(), append([]string{"--server", s.order(b)}, args...)...)
	p.Env = append(p.Env, "ABIDE_TOKEN="+serversToken)
	out, err := p.Output()
	wrong := json.Unmarshal(out, &result)
	if wrong != nil || err != nil && result.Subtype != "needs_input" {
		return result, fmt.Errorf("abide %s: %w: %s %s", strings.Join(args, " "), errors.Join(err, wrong), out, p.stderr)
	}
	return result, nil
}

// turn has a session run a command that says so. If it asks a person, another client answers.
func (s *sharing) turn(b *busySession) error {
	text := fmt.Sprintf("%s-%d", b.name, len(b.done))
	args := []string{"run", "--model", "m", "--json"}
	if !b.asks {
		args = append(args, "--yolo")
	}
	if b.id != "" {
		args = append(args, "--resume", b.id)
	}
	result, err := s.run(b, append(args, fmt.Sprintf("Run `sleep %.1f; echo %s >> effects`", b.pause.Seconds(), text))...)
	if err == nil && b.asks {
		if len(result.Questions) != 1 {
			return fmt.Errorf("%s: there are %d questions", text, len(result.Questions))
		}
		_, err = s.run(b, "answer", "--json", result.ID, result.Questions[0].ID, "yes")
	}
	if err != nil {
		return fmt.Errorf("%s: %w", text, err)
	}
	b.id, b.done = result.ID, append(b.done, text)
	return nil
}

// liveServers returns the ids of the servers that are not dead.
func (s *sharing) liveServers() []string {
	return strings.Fields(s.db.Exec(s.t, "servers", "SELECT convert_from(id, 'UTF8') FROM servers WHERE NOT dead"))
}

// serverAt returns the id of the live server at an address.
func (s *sharing) serverAt(address string) string {
	return s.db.Exec(s.t, "servers", "SELECT convert_from(id, 'UTF8') FROM servers WHERE NOT dead AND address = '"+address+"'")
}

// isTakenOver reports whether a server is dead and owns nothing that something is due for.
func (s *sharing) isTakenOver(id string) bool {
	return s.db.Exec(s.t, "servers", `SELECT NOT EXISTS (SELECT 1 FROM servers WHERE NOT dead AND id = '`+id+`')
		AND NOT EXISTS (SELECT 1 FROM owners o JOIN sessions f ON f.name = o.name WHERE o.server = '`+id+`' AND f.active)`) == "t"
}

// Servers are killed, stand still until they are dead, lose their connections and their database, while
// sessions work on every one of them and their clients change servers. Every command runs once, every turn
// is answered, every log is intact, and no more requests to the model are made again than were cut off.
func TestServersInAStorm(t *testing.T) {
	provider := newCountingProvider(t)
	s := shareLog(t, 3, "OPENAI_BASE_URL="+provider.url)
	random := rand.New(rand.NewPCG(seedtest.Seed(), 0))
	var taken []time.Duration // how long the takeovers took; each may repeat the requests that were under way
	note := func(began time.Time) { taken = append(taken, time.Since(began)) }
	faults := []func(i int){
		func(i int) { // killed, and started again
			id, began := s.serverAt(s.addresses[i]), time.Now()
			s.programs[i].kill()
			s.until("the sessions of a killed server are taken over", func() bool { return s.isTakenOver(id) })
			note(began)
			s.start(i)
		},
		func(i int) { // stands still
			id, began := s.serverAt(s.addresses[i]), time.Now()
			must(t, syscall.Kill(s.programs[i].pid(), syscall.SIGSTOP))
			s.until("the sessions of a server that stands still are taken over", func() bool { return s.isTakenOver(id) })
			note(began)
			must(t, syscall.Kill(s.programs[i].pid(), syscall.SIGCONT))
		},
		func(int) { // the database crashes
			s.db.Down(t, syscall.SIGQUIT)
			s.db.Up(t)
		},
		func(int) { // all connections to the database are cut
			s.db.Exec(t, "servers", "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'abide%'")
		},
	}
	sessions := make([]*busySession, 6)
	stop := make(chan struct{})
	var work, begun sync.WaitGroup
	for i := range sessions {
		b := &busySession{name: fmt.Sprint("s", i), asks: i%2 == 1, pause: time.Duration(i/2) * 700 * time.Millisecond, orders: rand.New(rand.NewPCG(seedtest.Seed(), uint64(i)+1))}
		sessions[i] = b
		begun.Add(1)
		first := sync.OnceFunc(begun.Done)
		work.Go(func() {
			defer first()
			for {
				err := s.turn(b)
				first()
				if err != nil {
					t.Error(err)
					return
				}
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	begun.Wait() // a session is not begun while a server sleeps through the time that its workspace has to answer
	soak := time.Now()
	if os.Getenv("ABIDE_SOAK") != "" {
		soak = soak.Add(10 * time.Minute)
	}
	for round := 0; (round == 0 || time.Now().Before(soak)) && !t.Failed(); round++ {
		for _, n := range random.Perm(len(faults)) {
			faults[n](random.IntN(len(s.addresses)))
			s.until("all servers live", func() bool { return len(s.liveServers()) == len(s.addresses) })
		}
	}
	close(stop)
	work.Wait()
	s.judge(sessions)
	if again, most := provider.repeated(), len(taken)*len(sessions); again > most {
		t.Errorf("%d requests were made again, and crashes have cut off %d at most", again, most)
	} else {
		t.Logf("%d requests to the model, %d of them again", provider.about(""), again)
	}
	slices.Sort(taken)
	t.Logf("takeovers: %d, median %v, worst %v", len(taken), taken[len(taken)/2].Round(time.Millisecond), taken[len(taken)-1].Round(time.Millisecond))
}

// repeated returns how many requests were made that had been made before.
func (p *countingProvider) repeated() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.asked) - len(slices.Compact(slices.Sorted(slices.Values(p.asked))))
}

// judge compares what the sessions were told with what has happened.
func (s *sharing) judge(sessions []*busySession) {
	t := s.t
	t.Helper()
	effects, err := os.ReadFile(filepath.Join(s.there.there, "src", "effects"))
	must(t, err)
	times := make(map[string]int)
	for line := range bytes.Lines(effects) {
		times[strings.TrimSpace(string(line))]++
	}
	turns := 0
	for _, b := range sessions {
		for _, text := range b.done {
			if times[text] != 1 {
				t.Errorf("the command of %s has run %d times", text, times[text])
			}
			delete(times, text)
			turns++
		}
		if got := s.says("sessions", "verify", b.id); !strings.Contains(got, "intact") {
			t.Errorf("session %s is\n%s", b.name, got)
		}
	}
	for text, n := range times {
		if n != 1 {
			t.Errorf("the command of %s, which nobody was told of, has run %d times", text, n)
		}
	}
	t.Logf("%d turns of %d sessions", turns, len(sessions))
}
