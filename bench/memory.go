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
	"github.com/abide-run/abide/internal/model/provider"
	engine "github.com/abide-run/abide/internal/session"
)

// The parameters of the measurement of memory.
const (
	memoryName     = "memory: turns while idle sessions are consolidated"
	idleCount      = 1000 // number of sessions with jobs that are due, one of which always fails
	busySessions   = 4    // number of sessions in which turns run all the time
	turnsOfSession = 100  // number of turns after which a new session is used
	memoryPairs    = 10   // number of pairs of blocks with and without jobs
	mostTurns      = 1000 // number of turns of a session in a block without jobs, at most
)

// measureMemory compares turns while idle sessions are extracted and consolidated, one job
// at a time, with the same turns without that, in alternating blocks. A block with jobs
// lasts until its share of the jobs is done; the block after it has as many turns. In the
// end everything is remembered except what fails, and no turn has waited for a job.
func measureMemory(at place, only string) (err error) {
	defer stopping(&err)
	if !strings.Contains(memoryName, only) {
		return nil
	}
	m := openRemembering(at, idleCount)
	defer m.close()
	on, off := m.measure(memoryPairs)
	fmt.Printf("\n%s: %d sessions, one of which always fails, beside %d that take turns\n", memoryName, idleCount, busySessions)
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

// extractingModel is a model that answers at once, and extracts one finding from every
// session.
type extractingModel struct{}

func (extractingModel) Ask(_ context.Context, req *model.Request, _ func(model.Delta)) (*model.Reply, error) {
	if req.Tools == nil || req.Tools.List[0].Name != notes.WriteExtracted {
		return &model.Reply{Text: "Yes.", Usage: model.Usage{Input: 10, Output: 1}}, nil
	}
	arguments := fmt.Appendf(nil, `{"decisions":[{"options":[],"chosen":"what was said in %s","rationale":""}],"discussions":[],"attempts":[],"requests":[]}`, req.Session)
	return &model.Reply{Calls: []model.Call{{ID: "c", Name: notes.WriteExtracted, Arguments: json.RawMessage(arguments)}}}, nil
}

// A remembered is a host with sessions that have something to remember.
type remembered struct {
	store  *sqlite.Store
	host   *engine.Host
	worker *worker.Worker
	idle   []event.SessionID
	sound  string // workspace whose memory can be written
	talks  atomic.Int64
}

// rules are memory rules with which everything is extracted and consolidated at once.
var rules = event.MemoryRules{ExtractThreshold: 1, IdleMs: 1}

// openRemembering creates the sessions. Their jobs do not run yet.
func openRemembering(at place, idle int) *remembered {
	dir := got(os.MkdirTemp(at.dir, "memory-"))
	m := &remembered{store: got(sqlite.Open(context.Background(), filepath.Join(dir, "abide.db"), sqlite.Options{}))}
	m.worker = worker.New(m.store, book.NewSet(filepath.Join(dir, "memory"), notes.Kinds...), worker.Options{Parallel: 1})
	m.host = engine.New(m.store, engine.Options{
		Resolve: func(_ context.Context, as provider.Choice) (engine.Endpoint, error) {
			return engine.Endpoint{Model: extractingModel{}, Name: as.Model}, nil
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

// create creates a session and runs a turn in it.
func (m *remembered) create(name, dir string, rules event.MemoryRules) event.SessionID {
	id := event.SessionID(name)
	client := &engine.Client{Viewer: silentViewer{}}
	got(m.host.Create(context.Background(), id, engine.Spec{Config: event.SessionConfiguredData{WorkingDirectory: dir, Model: "noting", Memory: rules}}, client))
	m.turn(id)
	m.host.Detach(id, client, false)
	return id
}

type silentViewer struct{}

func (silentViewer) Event(event.SessionID, event.Event) bool { return true }

// turn runs a turn to its end.
func (m *remembered) turn(id event.SessionID) {
	idle := make(chan struct{}, 1)
	defer m.host.Clients.WatchList(&engine.Watcher{Tell: func(n engine.Notice) {
		if n.Session.ID == id && !n.Session.Info.Active {
			select {
			case idle <- struct{}{}:
			default: // the channel has an element already
			}
		}
	}})()
	got(m.host.Send(context.Background(), id, event.InputAcceptedData{Prompt: "Is everything all right with the thing that we talked about?"}))
	for got(m.host.Status(context.Background(), id)).Active {
		<-idle
	}
}

// measure runs turns in alternating blocks, with and without jobs, and returns the time
// of each turn.
func (m *remembered) measure(pairs int) (on, off []time.Duration) {
	all := int64(2 * len(m.idle)) // an extraction and a consolidation for each
	for i := range pairs {
		want := all * int64(i+1) / int64(pairs)
		m.worker.Start()
		with := m.runTurns(func(int) bool { return i < pairs-1 && m.jobsDone() < want || i == pairs-1 && !m.over() })
		m.worker.Stop()
		on = append(on, with...)
		each := min(len(with)/busySessions, mostTurns)
		off = append(off, m.runTurns(func(n int) bool { return n < each })...)
	}
	return on, off
}

// jobsDone returns the number of jobs that were done.
func (m *remembered) jobsDone() int64 { return m.worker.Stats().Done }

// over reports whether all jobs are done except those that failed.
func (m *remembered) over() bool {
	return !slices.ContainsFunc(got(m.host.Memory.Jobs(context.Background(), "")), func(j eventlog.Job) bool { return j.Attempts == 0 })
}

// runTurns runs turns in several sessions as long as more returns true, and returns the
// time of each turn.
func (m *remembered) runTurns(more func(n int) bool) []time.Duration {
	var mu sync.Mutex
	var all []time.Duration
	var failed error
	var wg sync.WaitGroup
	for range busySessions {
		wg.Go(func() {
			err := error(nil)
			defer func() { mu.Lock(); defer mu.Unlock(); failed = errors.Join(failed, err) }()
			defer stopping(&err)
			var own []time.Duration
			var id event.SessionID
			for n := 0; more(n); n++ {
				if n%turnsOfSession == 0 { // a very long session would make turns slow
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

// outcome returns the number of sessions that were consolidated, and of jobs that failed.
func (m *remembered) outcome() (done, failing int) {
	for _, j := range got(m.host.Memory.Jobs(context.Background(), "")) {
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

// isDone reports whether a session was consolidated: its last event says so.
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
