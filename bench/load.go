package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/abide-run/abide/bench/compare"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	engine "github.com/abide-run/abide/internal/session"
)

const (
	loadName  = "load: a session of 1000 turns"
	loadTurns = 1000
	loadTimes = 5 // loads in a block
)

// measureLoads measures the cost of loading a session from disk. The floor reads the same
// events from a file and verifies their chain, but decodes none of them. The allocated
// bytes show how much is decoded.
func measureLoads(at place, only string, pairs int) (err error) {
	if !strings.Contains(loadName, only) {
		return nil
	}
	defer stopping(&err)
	at = at.below("load")
	o := got(openOurs(at))
	defer func() { _ = o.store.Close() }()
	l := newLoader(at, o, loadTurns)
	r := compare.Alternate(pairs, blocks("ours", l.load), blocks("floor", l.verify))
	fmt.Printf("\n%s and %d events, %d KB; for each load the best block; the middle block\n", loadName, l.end.Seq, l.size/1000)
	t := compare.NewTable(os.Stdout, "load", "µs", "CPU µs", "allocations", "allocated KB", "allocated/log")
	for _, side := range []struct {
		of   compare.Series
		once func()
	}{{r.A, l.load}, {r.B, l.verify}} {
		bytes := allocated(side.once)
		t.Row(side.of.Name, side.of.Wall(), side.of.CPU(), perTurn(side.of), bytes/1000, fmt.Sprintf("%.2f", float64(bytes)/float64(l.size)))
	}
	t.Row("ratio", r.Wall(), r.CPU(), "", "", "")
	t.Print()
	return nil
}

// blocks returns a side that does the same a few times in each block.
func blocks(name string, once func()) compare.Side {
	return compare.Side{Name: name, Block: func() int {
		for range loadTimes {
			once()
		}
		return loadTimes
	}}
}

// allocated returns the number of bytes that a function allocates.
func allocated(once func()) int {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	once()
	runtime.ReadMemStats(&after)
	return int(after.TotalAlloc - before.TotalAlloc)
}

// A loader has a session in a store, and the same events in a file.
type loader struct {
	ours *ours
	id   event.SessionID
	path string
	size int // bytes of the events
	end  eventlog.End
}

func newLoader(at place, o *ours, turns int) *loader {
	must(o.fill(turns))
	l := &loader{ours: o, id: o.full[turns], path: filepath.Join(at.dir, "events.jsonl")}
	var lines bytes.Buffer
	for e, err := range o.store.Read(context.Background(), l.id, 0) {
		must(err)
		l.size += len(e.Bytes)
		lines.Write(e.Bytes)
		lines.WriteByte('\n')
	}
	must(os.WriteFile(l.path, lines.Bytes(), 0o600))
	l.end = got(o.store.Session(context.Background(), l.id)).End
	return l
}

// load loads the session into a new host.
func (l *loader) load() {
	host := engine.New(l.ours.store, l.ours.opts)
	defer host.Close()
	if st := got(host.Status(context.Background(), l.id)); st.End != l.end {
		must(fmt.Errorf("%s: loaded up to %d, want %d", loadName, st.End.Seq, l.end.Seq))
	}
}

// verify reads the file and verifies the chain.
func (l *loader) verify() {
	f := got(os.Open(l.path))
	defer func() { _ = f.Close() }()
	var end eventlog.End
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		end = end.Next(lines.Bytes())
	}
	if must(lines.Err()); end != l.end {
		must(fmt.Errorf("%s: verified up to %d, want %d", loadName, end.Seq, l.end.Seq))
	}
}
