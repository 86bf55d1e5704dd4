package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/abide-run/abide/bench/compare"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/eventlog/sqlite"
	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/provider"
	engine "github.com/abide-run/abide/internal/session"
)

// The measurement of parked turns.
const (
	parkedName = "wait: for models that do not answer"
	parkedTime = 20 * time.Second // time for which the waiting engine is watched
)

// parkedTurns describes a folder: the number of turns that wait for their model, and how the
// model has failed.
type parkedTurns struct {
	name  string
	turns int
	err   model.Error
}

var parkedFolders = []parkedTurns{
	{"none", 0, model.Error{}},
	{"10,000, until a time that the provider has named", 10_000, model.Error{Kind: model.KindRateLimit, Message: "later", RetryAfter: 6 * time.Hour}},
	{"10,000, and the provider is down", 10_000, model.Error{Kind: model.KindNetwork, Message: "down"}},
}

// nowhere is an endpoint at which nobody listens.
const nowhere = `{"type":"openai","baseUrl":"http://127.0.0.1:1/v1"}`

// measureParked measures the memory and the processor time of the built program while turns
// wait for their models and nothing else happens.
func measureParked(at place, only, abide string) (err error) {
	defer stopping(&err)
	if abide == "" || !strings.Contains(parkedName, only) {
		return nil
	}
	fmt.Printf("\n%s: the engine after its start, for %s\n", parkedName, parkedTime)
	t := compare.NewTable(os.Stdout, "turns", "resident", "peak", "CPU ms/s")
	for _, c := range parkedFolders {
		dir := got(os.MkdirTemp(at.dir, "parked-"))
		c.fill(filepath.Join(dir, "home"))
		resident, most, used := watchParked(binary{abide, dir})
		must(os.RemoveAll(dir))
		t.Row(c.name, mebibytes(resident), mebibytes(most), fmt.Sprintf("%.2f", used))
	}
	t.Print()
	return nil
}

// watchParked starts the program, lets it settle, and returns its memory in bytes and the
// milliseconds of processor time that it uses in a second.
func watchParked(b binary) (resident, most int64, used float64) {
	p := got(b.start("home"))
	defer p.stop()
	time.Sleep(parkedTime / 2)
	const tick = 10 * time.Millisecond // of /proc
	before := p.used()
	time.Sleep(parkedTime)
	ticks := float64(p.used() - before)
	return got(memory(p.pid(), "status", "VmRSS")), got(memory(p.pid(), "status", "VmHWM")), ticks * float64(tick.Milliseconds()) / parkedTime.Seconds()
}

// fill creates a folder with turns that are copies of a real one.
func (c parkedTurns) fill(home string) {
	must(os.MkdirAll(home, 0o700))
	if c.turns == 0 {
		return
	}
	events, info := c.parked()
	store := got(sqlite.Open(context.Background(), filepath.Join(home, "abide.db"), sqlite.Options{Sync: eventlog.Normal}))
	for i := range c.turns {
		appendAll(store, event.SessionID(fmt.Sprintf("parked-%06d", i)), events, info)
	}
	must(store.Close())
}

// parked returns the log of a session whose turn waits for its model, and its entry in the
// index.
func (c parkedTurns) parked() ([]event.Event, eventlog.Info) {
	ctx, store := context.Background(), eventlog.NewMemory()
	host := engine.New(store, engine.Options{Version: "bench", Retries: []time.Duration{time.Minute},
		Resolve: func(context.Context, provider.Choice) (engine.Endpoint, error) {
			return engine.Endpoint{Model: failingModel{c.err}, Name: "m"}, nil
		}})
	config := event.SessionConfiguredData{Model: "m", Provider: json.RawMessage(nowhere)}
	got(host.Create(ctx, "s", engine.Spec{Config: config}, nil))
	got(host.Send(ctx, "s", event.InputAcceptedData{Prompt: "hello"}))
	for got(store.Session(ctx, "s")).Info.Parked == nil {
		time.Sleep(time.Millisecond)
	}
	host.Close()
	var events []event.Event
	for e, err := range store.Read(ctx, "s", 0) {
		must(err)
		events = append(events, e)
	}
	return events, got(store.Session(ctx, "s")).Info
}

// A failingModel never answers.
type failingModel struct{ err model.Error }

func (m failingModel) Ask(context.Context, *model.Request, func(model.Delta)) (*model.Reply, error) {
	return nil, &m.err
}
