package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/abide-run/abide/bench/compare"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/eventlog/sqlite"
	notes "github.com/abide-run/abide/internal/memory"
	"github.com/abide-run/abide/internal/memory/book"
	"github.com/abide-run/abide/internal/memory/worker"
	"github.com/abide-run/abide/internal/model"
	engine "github.com/abide-run/abide/internal/session"
)

// What is measured about memory.
const (
	memoryName  = "memory: turns while idle sessions are consolidated"
	idleCount   = 1000 // sessions with work due, one of which always fails
	talkers     = 4    // who take turns all the time
	talkLength  = 100  // turns of one of their sessions
	memoryPairs = 10   // blocks with upkeep, and without
	mostTurns   = 1000 // of a session in a block without
)

// remembering measures turns while idle sessions are extracted and consolidated, one
// job at a time, beside the same turns while they are not, in alternating blocks. The
// blocks with upkeep last as long as their share of the work; those without have as
// many turns. In the end all is remembered but what fails, and no turn has waited for
// a job.
func remembering(at place, only string) (err error) {
	defer stopping(&err)
	if !strings.Contains(memoryName, only) {
		return nil
	}
	m := openRemembering(at, idleCount)
	defer m.close()
	on, off := m.measure(memoryPairs)
	fmt.Printf("\n%s: %d sessions, one of which always fails, beside %d that take turns\n", memoryName, idleCount, talkers)
	t := compare.NewTable(os.Stdout, "turns", "with ms, middle", "without ms, middle", "ratio (1.2)", "consolidated", "set aside or put off", "turns that waited (0)")
	done, failing := m.outcome()
	t.Row(len(on)+len(off), ms(on), ms(off), fmt.Sprintf("%.2f", float64(median(on))/float64(median(off))), done, failing, m.worker.Stats().Turns)
	t.Print()
	if done != idleCount-1 || failing != 1 || m.worker.Stats().Turns != 0 {
		return fmt.Errorf("%s: %d sessions were consolidated and %d failed, want %d and 1", memoryName, done, failing, idleCount-1)
	}
	return nil
}

func ms(list []time.Duration) string { return fmt.Sprintf("%.2f", median(list).Seconds()*1e3) }

func median(list []time.Duration) time.Duration {
	if len(list) == 0 {
		return 0
	}
	slices.Sort(list)
	return list[len(list)/2]
}

// noting is a model that answers at once, and notes something of every session.
type noting struct{}

func (noting) Ask(_ context.Context, req *model.Request, _ func(model.Delta)) (*model.Reply, error) {
	if req.Tools == nil || req.Tools.List[0].Name != notes.WriteExtracted {
		return &model.Reply{Text: "Yes.", Usage: model.Usage{Input: 10, Output: 1}}, nil
	}
	arguments := fmt.Appendf(nil, `{"decisions":[{"options":[],"chosen":"what was said in %s","rationale":""}],"discussions":[],"attempts":[],"requests":[]}`, req.Session)
	return &model.Reply{Calls: []model.Call{{ID: "c", Name: notes.WriteExtracted, Arguments: json.RawMessage(arguments)}}}, nil
}

// A remembered is an engine with sessions that have something to be remembered.
type remembered struct {
	store  *sqlite.Store
	host   *engine.Host
	worker *worker.Worker
	idle   []event.SessionID
	sound  string // a workspace
	talks  atomic.Int64
}

// rules have everything extracted and consolidated at once.
var rules = event.MemoryRules{ExtractThreshold: 1, IdleMs: 1}

// openRemembering makes the sessions. Nothing is done about them yet.
func openRemembering(at place, idle int) *remembered {
	dir := got(os.MkdirTemp(at.dir, "memory-"))
	m := &remembered{store: got(sqlite.Open(context.Background(), filepath.Join(dir, "abide.db"), sqlite.Options{}))}
	m.worker = worker.New(m.store, book.NewSet(filepath.Join(dir, "memory"), notes.Kinds...), worker.Options{Parallel: 1})
	m.host = engine.New(m.store, engine.Options{
		Resolve: func(_ context.Context, _ event.SessionConfiguredData, name string, _ []byte) (engine.Endpoint, error) {
			return engine.Endpoint{Model: noting{}, Name: name}, nil
		},
		Memory: m.worker.Session(), Version: "bench",
	})
	m.worker.SetHost(m.host)
	sound, damaged := workspaceIn(dir, "sound"), workspaceIn(dir, "damaged")
	must(os.WriteFile(filepath.Join(damaged, ".abide", "memory", notes.KindDecisions+".md"), []byte("---\nno end"), 0o644))
	for i := range idle {
		place := sound
		if i == idle/2 {
			place = damaged
		}
		m.idle = append(m.idle, m.create(fmt.Sprintf("idle-%04d", i), place, rules))
	}
	m.sound = sound
	return m
}

func workspaceIn(dir, name string) string {
	path := filepath.Join(dir, name)
	must(os.MkdirAll(filepath.Join(path, ".abide", "memory"), 0o755))
	return path
}

// create makes a session that has taken a turn.
func (m *remembered) create(name, dir string, rules event.MemoryRules) event.SessionID {
	id := event.SessionID(name)
	client := &engine.Client{Viewer: unwatched{}}
	got(m.host.Create(context.Background(), id, engine.Spec{Config: event.SessionConfiguredData{WorkingDirectory: dir, Model: "noting", Memory: rules}}, client))
	m.turn(id)
	m.host.Detach(id, client, false)
	return id
}

type unwatched struct{}

func (unwatched) Event(event.SessionID, event.Event) bool { return true }

// turn takes a turn, to its end.
func (m *remembered) turn(id event.SessionID) {
	idle := make(chan struct{}, 1)
	defer m.host.WatchList(&engine.Watcher{Tell: func(n engine.Notice) {
		if n.Session.ID == id && !n.Session.Info.Active {
			select {
			case idle <- struct{}{}:
			default: // it is told already
			}
		}
	}})()
	got(m.host.Send(context.Background(), id, event.InputAcceptedData{Prompt: "Is everything all right with the thing that we talked about?"}))
	for got(m.host.Status(context.Background(), id)).Active {
		<-idle
	}
}

// measure takes turns in alternating blocks, with and without upkeep.
func (m *remembered) measure(pairs int) (on, off []time.Duration) {
	all := int64(2 * len(m.idle)) // an extraction and a consolidation each
	for i := range pairs {
		want := all * int64(i+1) / int64(pairs)
		m.worker.Start()
		with := m.traffic(func(int) bool { return i < pairs-1 && m.settled() < want || i == pairs-1 && !m.over() })
		m.worker.Stop()
		on = append(on, with...)
		each := min(len(with)/talkers, mostTurns)
		off = append(off, m.traffic(func(n int) bool { return n < each })...)
	}
	return on, off
}

// settled counts jobs that are over.
func (m *remembered) settled() int64 { return m.worker.Stats().Done }

// over reports whether nothing is left but what has failed.
func (m *remembered) over() bool {
	return !slices.ContainsFunc(got(m.host.Jobs(context.Background(), "")), func(j eventlog.Job) bool { return j.Attempts == 0 })
}

// traffic takes turns in several sessions for as long as is wanted, and returns how
// long each has taken.
func (m *remembered) traffic(more func(n int) bool) []time.Duration {
	var mu sync.Mutex
	var all []time.Duration
	var failed error
	var wg sync.WaitGroup
	for range talkers {
		wg.Go(func() {
			err := error(nil)
			defer func() { mu.Lock(); defer mu.Unlock(); failed = errors.Join(failed, err) }()
			defer stopping(&err)
			var own []time.Duration
			var id event.SessionID
			for n := 0; more(n); n++ {
				if n%talkLength == 0 { // a turn should not be slow because it is the ten thousandth
					id = m.create(fmt.Sprintf("busy-%d", m.talks.Add(1)), m.sound, event.MemoryRules{})
				}
				before := time.Now()
				m.turn(id)
				own = append(own, time.Since(before))
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, own...)
		})
	}
	wg.Wait()
	must(failed)
	return all
}

// outcome counts the sessions that were consolidated, and the jobs that have failed.
func (m *remembered) outcome() (done, failing int) {
	for _, j := range got(m.host.Jobs(context.Background(), "")) {
		if j.Attempts > 0 {
			failing++
		}
	}
	for _, id := range m.idle {
		if got(m.isDone(id)) {
			done++
		}
	}
	return done, failing
}

// isDone reports whether a session was consolidated: that is the last that happened.
func (m *remembered) isDone(id event.SessionID) (bool, error) {
	s, err := m.store.Session(context.Background(), id)
	if err != nil {
		return false, err
	}
	for e, err := range m.store.Read(context.Background(), id, s.End.Seq-1) {
		if err != nil || e.Type == event.MemoryConsolidated {
			return err == nil, err
		}
	}
	return false, nil
}

func (m *remembered) close() {
	m.worker.Stop()
	m.host.Close()
	must(m.store.Close())
}
