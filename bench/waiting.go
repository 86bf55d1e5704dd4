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
	engine "github.com/abide-run/abide/internal/session"
)

// What is measured about starts.
const (
	waitingName   = "start: on sessions that wait for an answer"
	waitingStarts = 5
)

// waiters are how many sessions wait in a folder, and how long their logs are.
type waiters struct {
	name     string
	sessions int
	bytes    int
	older    bool // the index is one of a version that did not say that they only wait
}

var folders = []waiters{
	{"none", 0, 0, false},
	{"20,000 tiny", 20_000, 0, false},
	{"400 of 3 MB", 400, 3 << 20, false},
	{"20,000 tiny, older index", 20_000, 0, true},
	{"400 of 3 MB, older index", 400, 3 << 20, true},
}

// waiting weighs starts of the built program on folders in which sessions wait for
// an answer. A start is over when the program has used no processor time for a
// second; its weight is what was resident at most.
func waiting(at place, only, abide string) (err error) {
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

// peak starts the program and returns how many bytes were resident at most.
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
	return got(memory(p.cmd.Process.Pid, "status", "VmHWM"))
}

// used is the processor time of the process so far, in the clock ticks of /proc.
func (p *child) used() time.Duration {
	stat := string(got(os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))))
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')'):])
	var user, system int64
	got(fmt.Sscan(fields[12]+" "+fields[13], &user, &system))
	return time.Duration(user + system)
}

// fill makes a folder with sessions that are copies of a real one.
func (c waiters) fill(home string) {
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

// appendAll makes a session of events, a few at a time as a session would.
func appendAll(store eventlog.Store, id event.SessionID, events []event.Event, info eventlog.Info) {
	var end eventlog.End
	for part := range slices.Chunk(events, 8) {
		end = got(store.Append(context.Background(), id, eventlog.Batch{After: end, Events: part, Info: &info}))
	}
}

// asked is the log of a session that waits for the result of a client's tool, of
// about so many bytes, and what the index says of it.
func asked(size int) ([]event.Event, eventlog.Info) {
	ctx, store := context.Background(), eventlog.NewMemory()
	host := engine.New(store, engine.Options{Version: "bench",
		Resolve: func(context.Context, event.SessionConfiguredData, string, []byte) (engine.Endpoint, error) {
			return engine.Endpoint{Model: repeating{}, Name: builtIn}, nil
		}})
	defer host.Close()
	tools := []event.ExternalTool{{Name: "act", SkipPermission: true}}
	config := event.SessionConfiguredData{Infinite: &event.InfiniteSessions{Enabled: new(false)}} // a compaction would be something to do
	got(host.Create(ctx, "s", engine.Spec{Config: config}, &engine.Client{Tools: tools}))
	const words = 20 << 10 // of a prompt, which is stored twice, and of its answer
	for range size / (3 * words) {
		take(host, strings.Repeat("word ", words/5))
	}
	take(host, "act")
	var events []event.Event
	for e, err := range store.Read(ctx, "s", 0) {
		must(err)
		events = append(events, e)
	}
	return events, got(store.Session(ctx, "s")).Info
}

// take takes a turn, to its end or to its question.
func take(host *engine.Host, prompt string) {
	ctx := context.Background()
	changed := make(chan struct{}, 1)
	defer host.WatchList(&engine.Watcher{Tell: func(engine.Notice) {
		select {
		case changed <- struct{}{}:
		default: // it is told already
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

// builtIn is the model that the program has without any key: it can go on with what
// the repeating one began.
const builtIn = "offline"

// repeating is a model that says what it is told, and calls a tool if it is told
// to act.
type repeating struct{}

func (repeating) Ask(_ context.Context, req *model.Request, _ func(model.Delta)) (*model.Reply, error) {
	said := req.Messages[len(req.Messages)-1].Text
	if strings.Contains(said, "word ") {
		return &model.Reply{Text: said}, nil
	}
	return &model.Reply{Calls: []model.Call{{ID: "c", Name: "act", Arguments: []byte("{}")}}}, nil
}
