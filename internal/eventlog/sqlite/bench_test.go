package sqlite

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
)

// half is what one of the two appends of a plain turn adds: three or four
// events with envelopes of about 250 bytes, and 400 bytes of text in the turn.
func half(n int) []event.Event {
	var events []event.Event
	for i := range n {
		words := strings.Repeat("word ", 12)
		if i == 0 {
			words = strings.Repeat("word ", 40)
		}
		e, err := event.Encode(
			event.Head{ID: event.NewID(), Time: time.Now(), Parent: event.NewID()},
			event.UserMessageData{Content: words, InteractionID: event.NewID()})
		if err != nil {
			panic(err)
		}
		events = append(events, e)
	}
	return events
}

// turn appends what a plain turn appends.
func turn(ctx context.Context, s eventlog.Log, id event.SessionID, end eventlog.End) (eventlog.End, error) {
	end, err := s.Append(ctx, id, eventlog.Batch{After: end, Events: half(3), Info: &eventlog.Info{Name: "bench", Active: true}})
	if err != nil {
		return end, err
	}
	return s.Append(ctx, id, eventlog.Batch{After: end, Events: half(4), Info: &eventlog.Info{Name: "bench"}})
}

func BenchmarkTurn(b *testing.B) {
	for _, sync := range []eventlog.Sync{eventlog.Full, eventlog.Normal} {
		for _, writers := range []int{1, 64} {
			b.Run(fmt.Sprintf("sync=%s/writers=%d", strings.ToUpper(sync.String()), writers), func(b *testing.B) { benchmarkTurns(b, sync, writers) })
		}
	}
}

func benchmarkTurns(b *testing.B, mode eventlog.Sync, writers int) {
	s, err := Open(b.Context(), filepath.Join(b.TempDir(), "abide.db"), Options{Sync: mode})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	b.ReportAllocs()
	before := cpuTime()
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			var end eventlog.End
			for i := w; i < b.N; i += writers {
				var err error
				if end, err = turn(b.Context(), s, event.SessionID(fmt.Sprint("session-", w)), end); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	stats := s.Stats()
	b.ReportMetric(float64(cpuTime()-before)/1e3/float64(b.N), "cpu-µs/turn")
	b.ReportMetric(float64(stats.Events)/b.Elapsed().Seconds(), "events/s")
	b.ReportMetric(float64(stats.Events)/float64(stats.Commits), "events/sync")
}

// BenchmarkRead reads a session of 1,000 turns, and the same bytes from a file.
func BenchmarkRead(b *testing.B) {
	dir := b.TempDir()
	s, err := Open(b.Context(), filepath.Join(dir, "abide.db"), Options{Sync: eventlog.Normal})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	var end eventlog.End
	for range 1000 {
		if end, err = turn(b.Context(), s, "s", end); err != nil {
			b.Fatal(err)
		}
	}
	var lines bytes.Buffer
	for e, err := range s.Read(b.Context(), "s", 0) {
		if err != nil {
			b.Fatal(err)
		}
		lines.Write(e.Bytes)
		lines.WriteByte('\n')
	}
	file := filepath.Join(dir, "events.jsonl")
	if err := os.WriteFile(file, lines.Bytes(), 0o600); err != nil {
		b.Fatal(err)
	}
	b.Run("store", func(b *testing.B) {
		b.SetBytes(int64(lines.Len()))
		b.ReportAllocs()
		best, before := time.Hour, cpuTime()
		for b.Loop() {
			start := time.Now()
			n := 0
			for _, err := range s.Read(b.Context(), "s", 0) {
				if err != nil {
					b.Fatal(err)
				}
				n++
			}
			if n != 7000 {
				b.Fatal(n)
			}
			best = min(best, time.Since(start))
		}
		b.ReportMetric(float64(best)/1e3, "best-µs")
		b.ReportMetric(float64(cpuTime()-before)/1e3/float64(b.N), "cpu-µs/op")
	})
	b.Run("file", func(b *testing.B) {
		b.SetBytes(int64(lines.Len()))
		for b.Loop() {
			all, err := os.ReadFile(file)
			if err != nil {
				b.Fatal(err)
			}
			n := 0
			for range bytes.Lines(all) {
				n++
			}
			if n != 7000 {
				b.Fatal(n)
			}
		}
	})
}

// BenchmarkReadTail reads what the last append added, as a follower does.
func BenchmarkReadTail(b *testing.B) {
	s, err := Open(b.Context(), filepath.Join(b.TempDir(), "abide.db"), Options{Sync: eventlog.Normal})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	var before, end eventlog.End
	for range 200 {
		before = end
		if end, err = turn(b.Context(), s, "s", end); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		for _, err := range s.ReadFrom(b.Context(), "s", before) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}
