package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/abide-run/abide/bench/compare"
	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/eventlog/sqlite"
)

// The measurement of long sessions.
const longName = "long: reading a session"

var longLengths = []int{35_000, 70_000, 140_000}

// measureLong measures the time that the built program takes to export a session, to
// resume it, and to read its event log in pages. Twice as many events should take twice
// as long.
func measureLong(at place, only, abide string) (err error) {
	defer stopping(&err)
	if abide == "" || !strings.Contains(longName, only) {
		return nil
	}
	fmt.Printf("\n%s: the best of three, in s\n", longName)
	t := compare.NewTable(os.Stdout, "events", "export", "run --resume", "eventLog.read", "backward", "µs per event, each")
	for _, n := range longLengths {
		l := long{binary{abide, got(os.MkdirTemp(at.dir, "long-"))}}
		l.fill(n)
		times := []time.Duration{
			best(func() { l.run("sessions", "export", "s") }),
			best(func() { l.run("run", "--resume", "s", "Reply with exactly: HI") }),
		}
		for _, direction := range []string{"forward", "backward"} {
			p := got(l.start("home"))
			c := got(dial(p.port))
			must(c.Call(context.Background(), api.SessionResume, api.OpenParams{SessionID: "s"}, nil))
			times = append(times, best(func() { pages(c, direction, n) }))
			_ = c.Close()
			p.stop()
		}
		row := []any{n}
		var each []string
		for _, d := range times {
			row = append(row, fmt.Sprintf("%.2f", d.Seconds()))
			each = append(each, fmt.Sprintf("%.0f", float64(d.Microseconds())/float64(n)))
		}
		t.Row(append(row, strings.Join(each, "; "))...)
		must(os.RemoveAll(l.dir))
	}
	t.Print()
	return nil
}

// A long is a folder with a session that has many events.
type long struct{ binary }

// fill creates a session with one turn and many further events.
func (l long) fill(n int) {
	home := filepath.Join(l.dir, "home")
	must(os.MkdirAll(home, 0o700))
	events, info := asked(1 << 16)
	events = events[:1+slices.IndexFunc(events, func(e event.Event) bool { return e.Type == event.SessionIdle })]
	info.Active, info.Waiting, info.Questions = false, false, 0
	for i := len(events); i < n; i++ {
		events = append(events, got(event.Encode(event.Head{ID: event.NewID(), Time: time.Now()}, event.SessionInfoData{InfoType: "notification", Message: fmt.Sprintf("%d: %s", i, strings.Repeat("noted ", 30))})))
	}
	store := got(sqlite.Open(context.Background(), filepath.Join(home, "abide.db"), sqlite.Options{Sync: eventlog.Normal}))
	appendAll(store, "s", events, info)
	must(store.Close())
}

// run runs a command of the program, without a key for any model.
func (l long) run(args ...string) {
	cmd := exec.Command(l.path, args...)
	cmd.Dir = l.dir
	cmd.Env = []string{"ABIDE_HOME=" + filepath.Join(l.dir, "home"), "HOME=" + l.dir, "PATH=" + os.Getenv("PATH")}
	if _, err := cmd.Output(); err != nil {
		must(fmt.Errorf("abide %s: %w", strings.Join(args, " "), err))
	}
}

// pages reads the event log of the session.
func pages(c *caller, direction string, n int) {
	read := 0
	for cursor, more := "", true; more; {
		var r api.LogReadResult
		must(c.Call(context.Background(), api.EventLogRead, api.LogReadParams{SessionID: "s", Cursor: cursor, Direction: direction}, &r))
		read, cursor, more = read+len(r.Events), r.Cursor, r.HasMore
	}
	if read < n*9/10 {
		must(fmt.Errorf("%s: %d events were read of %d", direction, read, n))
	}
}

// best returns the shortest of three times.
func best(f func()) (least time.Duration) {
	for range 3 {
		before := time.Now()
		f()
		if d := time.Since(before); least == 0 || d < least {
			least = d
		}
	}
	return least
}
