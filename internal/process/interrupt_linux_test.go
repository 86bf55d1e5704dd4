package process

import (
	"context"
	"errors"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/process/identity"
	"github.com/abide-run/abide/internal/process/keeper"
	"github.com/abide-run/abide/internal/process/record"
)

// sentSignals returns the signals that the group of a command was sent, in order.
func sentSignals(t *testing.T, info Info) (sent []syscall.Signal) {
	t.Helper()
	record.Each([]byte(journal(t, info)), func(r record.Record) {
		if r.Kind == keeper.Signal && r.Get("group") != "" && syscall.Signal(r.Int("signal")) != syscall.SIGCONT {
			sent = append(sent, syscall.Signal(r.Int("signal")))
		}
	})
	return slices.Compact(sent)
}

func TestInterruptBeginsWithINTAndEndsTheWholeTree(t *testing.T) {
	const INT, TERM, KILL = syscall.SIGINT, syscall.SIGTERM, syscall.SIGKILL
	for name, c := range map[string]struct {
		command string
		sent    []syscall.Signal
		code    int
	}{
		"polite":           {"echo ready; exec sleep 1000", []syscall.Signal{INT}, 130},
		"cleans up":        {"trap 'exit 7' INT; echo ready; while :; do sleep 0.05; done", []syscall.Signal{INT}, 7},
		"ignores INT":      {"trap '' INT; echo ready; exec sleep 1000", []syscall.Signal{INT, TERM}, 143},
		"ignores both":     {"trap '' INT TERM; echo ready; while :; do sleep 1000; done", []syscall.Signal{INT, TERM, KILL}, 137},
		"another session":  {"setsid sh -c 'trap \"\" INT TERM; echo ready; sleep 1000; sleep 1000' & wait", nil, 130},
		"stopped":          {"echo ready; kill -STOP $$", []syscall.Signal{INT}, 130},
		"leaves a process": {"sleep 1000 & echo ready", nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			patience := 100 * time.Millisecond
			if name == "cleans up" { // its shell needs time to run the trap
				patience = time.Minute
			}
			m := open(t, t.TempDir(), Options{Patience: patience})
			id := start(t, m, spec("k", c.command)).ID
			awaitOutput(t, m, id, "ready")
			if c.code == 0 { // its shell ends by itself
				if _, err := m.wait(t.Context(), me, id, func(s *status) bool { return s.exit != nil }); err != nil {
					t.Fatal(err)
				}
			}
			info, err := m.Get(me, id)
			if err != nil {
				t.Fatal(err)
			}
			below := identity.Below(keeperOf(t, info))
			info, err = m.Interrupt(t.Context(), me, id)
			if err != nil || !info.Gone || info.Exit == nil {
				t.Fatalf("%+v, %v", info, err)
			}
			for _, s := range below {
				if now, err := identity.StatOf(s.PID); err == nil && now.Start == s.Start {
					t.Errorf("process %+v is left", s)
				}
			}
			if sent := sentSignals(t, info); c.sent != nil && !slices.Equal(sent[:min(len(sent), len(c.sent))], c.sent) {
				t.Errorf("the command was sent %v, want %v", sent, c.sent)
			}
			if info.Exit.Code != c.code || info.State == Killed != (c.sent != nil || name == "another session") {
				t.Errorf("%s, exit code %d, want %d", info.State, info.Exit.Code, c.code)
			}
			if again, err := m.Interrupt(t.Context(), me, id); err != nil || again.State != info.State {
				t.Errorf("interrupted again: %v, %v", again.State, err)
			}
		})
	}
}

// askToEnd interrupts a command that ignores INT, and returns when its keeper was asked.
func askToEnd(t *testing.T, m *Manager, command string) Info {
	t.Helper()
	id := start(t, m, spec("k", command)).ID
	awaitOutput(t, m, id, "ready")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { // it ends when ctx is cancelled
		_, err := m.Interrupt(ctx, me, id)
		ended <- err
	}()
	info, err := m.wait(t.Context(), me, id, func(s *status) bool { return s.state == Stopping })
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Fatalf("the wait for the end: %v", err)
	}
	return info
}

func TestAnInterruptGoesOnWithoutItsDaemon(t *testing.T) {
	dir := t.TempDir()
	m := open(t, dir, Options{Patience: 100 * time.Millisecond})
	info := askToEnd(t, m, "trap '' INT TERM; echo ready; while :; do sleep 1000; done")
	below := identity.Below(keeperOf(t, info))
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	awaitAll(t.Context(), below)
	m = open(t, dir, Options{})
	info, err := m.WaitGone(t.Context(), me, info.ID)
	if err != nil || info.State != Killed || info.Exit.Signal != "SIGKILL" || info.Reason != "interrupted" {
		t.Errorf("%+v %+v, %v", info, info.Exit, err)
	}
}

func TestAStopHurriesAnInterrupt(t *testing.T) {
	m := open(t, t.TempDir(), Options{Patience: time.Hour})
	info := askToEnd(t, m, "trap '' INT; echo ready; exec sleep 1000")
	info, err := m.Stop(t.Context(), me, info.ID)
	if err != nil || info.State != Killed || info.Exit.Signal != "SIGTERM" {
		t.Errorf("%+v %+v, %v", info, info.Exit, err)
	}
}
