package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
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

// The measurements of starts.
const (
	waitingName   = "start: on sessions that wait for an answer"
	waitingStarts = 5
)

// waitingSessions describes a folder: the number of sessions that wait for an answer, and
// the size of their logs.
type waitingSessions struct {
	name     string
	sessions int
	bytes    int
	older    bool // true if the index is that of a version without eventlog.Info.Waiting
}

var folders = []waitingSessions{
	{"none", 0, 0, false},
	{"20,000 tiny", 20_000, 0, false},
	{"400 of 3 MB", 400, 3 << 20, false},
	{"20,000 tiny, older index", 20_000, 0, true},
	{"400 of 3 MB, older index", 400, 3 << 20, true},
}

// measureWaiting measures the memory of the built program when it starts on folders in
// which sessions wait for an answer. A start has ended when the program has used no
// processor time for a second. The result is the largest resident memory.
func measureWaiting(at place, only, abide string) (err error) {
	defer stopping(&err)
	if abide == "" || !strings.Contains(waitingName, only) {
		return nil
	}
	fmt.Printf("\n%s: the peak, the middle of %d starts\n", waitingName, waitingStarts)
	t := compare.NewTable(os.Stdout, "sessions", "first start", "peak", "least", "most", "ratio (2)")
	var none int64
	for _, c := range folders {
		dir := got(os.MkdirTemp(at.dir, "waiting-"))
		c.fill(filepath.Join(dir, "home"))
		first := peak(binary{abide, dir})
		var peaks []int64
		for range waitingStarts {
			peaks = append(peaks, peak(binary{abide, dir}))
		}
		must(os.RemoveAll(dir))
		slices.Sort(peaks)
		middle := peaks[len(peaks)/2]
		if c.sessions == 0 {
			none = middle
		}
		t.Row(c.name, mebibytes(first), mebibytes(middle), mebibytes(peaks[0]), mebibytes(peaks[len(peaks)-1]), fmt.Sprintf("%.2f", float64(middle)/float64(none)))
	}
	t.Print()
	return nil
}

// peak starts the program and returns its largest resident memory, in bytes.
func peak(b binary) int64 {
	p := got(b.start("home"))
	defer p.stop()
	for still, last := 0, time.Duration(-1); still < 4; {
		time.Sleep(250 * time.Millisecond)
		used := p.used()
		if still++; used != last {
			still, last = 0, used
		}
	}
	return got(memory(p.pid(), "status", "VmHWM"))
}

// used returns the processor time of the process so far, in clock ticks of /proc.
func (p *child) used() time.Duration {
	stat := string(got(os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.pid()))))
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')'):])
	var user, system int64
	got(fmt.Sscan(fields[12]+" "+fields[13], &user, &system))
	return time.Duration(user + system)
}

// fill creates a folder with sessions that are copies of a real one.
func (c waitingSessions) fill(home string) {
	must(os.MkdirAll(home, 0o700))
	if c.sessions == 0 {
		return
	}
	events, info := asked(c.bytes)
	if c.older {
		info.Waiting = false
	}
	store := got(sqlite.Open(context.Background(), filepath.Join(home, "abide.db"), sqlite.Options{Sync: eventlog.Normal}))
	for i := range c.sessions {
		appendAll(store, event.SessionID(fmt.Sprintf("waiting-%06d", i)), events, info)
	}
	must(store.Close())
}

// appendAll creates a session with the given events, a few in each append as a real
// session would.
func appendAll(store eventlog.Store, id event.SessionID, events []event.Event, info eventlog.Info) {
	var end eventlog.End
	for part := range slices.Chunk(events, 8) {
		end = got(store.Append(context.Background(), id, eventlog.Batch{After: end, Events: part, Info: &info}))
	}
}

// asked returns the log of a session that waits for the result of a client's tool, with
// about size bytes, and its entry in the index.
func asked(size int) ([]event.Event, eventlog.Info) {
	return recorded(func(host *engine.Host) {
		const words = 20 << 10 // bytes of a prompt, which is stored twice, and of its answer
		for range size / (3 * words) {
			runTurn(host, strings.Repeat("word ", words/5))
		}
		runTurn(host, "act")
	})
}

// recorded returns the log of session "s" with some turns of the echoModel, and its entry in
// the index.
func recorded(turns func(*engine.Host)) ([]event.Event, eventlog.Info) {
	ctx, store := context.Background(), eventlog.NewMemory()
	host := engine.New(store, engine.Options{Version: "bench",
		Resolve: func(context.Context, provider.Choice) (engine.Endpoint, error) {
			return engine.Endpoint{Model: echoModel{}, Name: builtIn}, nil
		}})
	defer host.Close()
	tools := []event.ExternalTool{{Name: "act", SkipPermission: true}}
	config := event.SessionConfiguredData{Infinite: &event.InfiniteSessions{Enabled: new(false)}} // a session with a compaction would not only wait
	got(host.Create(ctx, "s", engine.Spec{Config: config}, &engine.Client{Tools: tools}))
	turns(host)
	var events []event.Event
	for e, err := range store.Read(ctx, "s", 0) {
		must(err)
		events = append(events, e)
	}
	return events, got(store.Session(ctx, "s")).Info
}

// runTurn runs a turn until it ends or asks a question.
func runTurn(host *engine.Host, prompt string) {
	ctx := context.Background()
	changed := make(chan struct{}, 1)
	defer host.Clients.WatchList(&engine.Watcher{Tell: func(engine.Notice) {
		select {
		case changed <- struct{}{}:
		default: // the channel has an element already
		}
	}})()
	got(host.Send(ctx, "s", event.InputAcceptedData{Prompt: prompt}))
	for {
		if st := got(host.Status(ctx, "s")); !st.Active || len(st.Questions) > 0 {
			return
		}
		<-changed
	}
}

// builtIn is the model of the program that needs no key. It can continue sessions that
// the echoModel began.
const builtIn = "offline"

// echoModel is a model that repeats the prompt, or calls a tool if the prompt says so.
type echoModel struct{}

func (echoModel) Ask(_ context.Context, req *model.Request, _ func(model.Delta)) (*model.Reply, error) {
	said := req.Messages[len(req.Messages)-1].Text
	if strings.Contains(said, "word ") {
		return &model.Reply{Text: said}, nil
	}
	return &model.Reply{Calls: []model.Call{{ID: "c", Name: "act", Arguments: []byte("{}")}}}, nil
}
