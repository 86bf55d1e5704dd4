package audit_test

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/audit"
	"github.com/abide-run/abide/internal/event"
)

// largeEvents is how many events a large log has. ABIDE_AUDIT_EVENTS=1000000 measures
// what docs and notes tell of.
func largeEvents(t *testing.T) int {
	text := os.Getenv("ABIDE_AUDIT_EVENTS")
	if text == "" {
		return 30_000
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// grow repeats the last turn of a session until its log has so many events. Each
// turn is one record, as the engine would have made it.
func (l *script) grow(events int) {
	l.f.t.Helper()
	from := l.at("input.accepted", 4)
	if l.get(l.end()).Type != "session.idle" {
		l.f.t.Fatal("the log does not end with a turn")
	}
	turn := l.events[from-1:]
	parent, hash, seq := l.last(), l.f.head(l.session), l.end()
	tx, err := l.f.db.Begin()
	if err != nil {
		l.f.t.Fatal(err)
	}
	for seq < int64(events) {
		var body []string
		first, n := seq+1, strconv.FormatInt(seq, 10)
		for _, e := range turn {
			again := *e
			again.ID = event.NewID()
			again.Data = renewed(e.Data, n)
			line := again.line(parent)
			if isListed(e.Type) {
				parent = again.ID
			}
			seq++
			body, hash = append(body, line), chain(hash, seq, line)
		}
		if _, err := tx.Exec("INSERT INTO records (key, head, body) VALUES (?, ?, ?)", l.row<<32|first, hash, []byte(strings.Join(body, "\n"))); err != nil {
			l.f.t.Fatal(err)
		}
	}
	if _, err := tx.Exec("UPDATE sessions SET seq = ?, head = ? WHERE id = ?", seq, hash, l.row); err != nil {
		l.f.t.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		l.f.t.Fatal(err)
	}
}

// last is the id of the last event that clients are shown.
func (l *script) last() (id string) {
	for _, e := range l.events {
		if isListed(e.Type) {
			id = e.ID
		}
	}
	return id
}

func (f *folder) head(session string) (head []byte) {
	f.t.Helper()
	if err := f.db.QueryRow("SELECT head FROM sessions WHERE name = ?", session).Scan(&head); err != nil {
		f.t.Fatal(err)
	}
	return head
}

// renewed is a body with ids of its own.
func renewed(data object, n string) object {
	again := object{}
	for key, value := range data {
		if key == "inputId" || key == "interactionId" || key == "key" || key == "toolCallId" {
			value = fmt.Sprint(value, n)
		}
		if list, ok := value.([]any); ok && key == "toolRequests" {
			var requests []any
			for _, r := range list {
				requests = append(requests, map[string]any(renewed(r.(map[string]any), n)))
			}
			value = requests
		}
		again[key] = value
	}
	return again
}

// most is how much memory an audit may hold, however long the log is: some bytes
// for each request of the session at hand are in it.
const most = 48 << 20

func TestMemoryDoesNotGrowWithTheLog(t *testing.T) {
	f := newFolder(t)
	f.script("back").grow(largeEvents(t))
	var stats runtime.MemStats
	peak, looks := uint64(0), 0
	began, spent := time.Now(), cpuTime(t)
	r := f.audit(audit.Options{Progress: func(int64, int64) {
		if looks++; looks%8 == 0 {
			runtime.GC()
			runtime.ReadMemStats(&stats)
			peak = max(peak, stats.HeapAlloc)
		}
	}})
	for _, found := range r.Findings[:min(len(r.Findings), 5)] {
		t.Errorf("%+v", found)
	}
	if peak > most {
		t.Errorf("%d bytes are held, want at most %d", peak, most)
	}
	t.Logf("%d events in %v, CPU %v, at most %d KiB held", r.Events, time.Since(began).Round(time.Millisecond), (cpuTime(t) - spent).Round(time.Millisecond), peak>>10)
}

// cpuTime returns what this process has spent so far. On a machine that does other things, too,
// only that can be compared.
func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
