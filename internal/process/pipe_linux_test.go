package process

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/process/outlog"
)

// consume reads the standard output of a pipe up to a number of bytes, or to its end, and
// says so now and then.
func consume(t *testing.T, m *Manager, id ID, from int64, most int) (text string, next int64) {
	t.Helper()
	var b strings.Builder
	for next = from; b.Len() < most; {
		c, err := m.Read(t.Context(), me, id, ReadRequest{Offset: next, Wait: true})
		if err != nil {
			t.Fatal(err)
		}
		if c.Omitted > 0 {
			t.Fatalf("%d bytes before %d are missing", c.Omitted, c.Next)
		}
		b.WriteString(stdoutOf(c))
		if next = c.Next; c.End {
			return b.String(), next
		}
		if err := m.Consume(t.Context(), me, id, next); err != nil && !strings.Contains(err.Error(), "ended") {
			t.Fatal(err)
		}
	}
	return b.String(), next
}

// stdoutOf returns the standard output in a chunk.
func stdoutOf(c Chunk) string {
	var b strings.Builder
	at := 0
	for _, r := range c.Runs {
		if r.Stream == Stdout {
			b.Write(c.Data[at : at+r.Len])
		}
		at += r.Len
	}
	return b.String()
}

func TestAPipeDropsNothingAndWaitsForItsReader(t *testing.T) {
	dir := t.TempDir()
	m := open(t, dir, Options{})
	command, want := numbers(200000)
	s := spec("k", command)
	s.Quota, s.Pipe = 64<<10, true
	info, _, err := m.Start(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	first, next := consume(t, m, info.ID, 0, 300_000)
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	m = open(t, dir, Options{}) // the keeper has held the rest
	rest, _ := consume(t, m, info.ID, next, len(want))
	if first+rest != want {
		t.Errorf("%d and %d bytes of %d were read, or others", len(first), len(rest), len(want))
	}
	if info, err = m.WaitGone(t.Context(), me, info.ID); err != nil || info.Exit == nil || info.Exit.Code != 0 || info.Output.Bytes != int64(len(want)) {
		t.Errorf("%+v, %v", info, err)
	}
	if disk := outlog.Disk(info.Files.Dir); disk > 5*s.Quota {
		t.Errorf("%d bytes on disk", disk)
	}
}

// The command writes 10,000 lines to its standard error after its standard output is full:
// that is not waited for.
func TestAPipeThatIsFullStillTakesErrors(t *testing.T) {
	m := open(t, t.TempDir(), Options{})
	command, want := numbers(20000)
	s := spec("k", fmt.Sprintf("(%s) & seq 10000 >&2; echo done > done; wait", command))
	s.Quota, s.Pipe, s.Dir = 16<<10, true, t.TempDir()
	if err := syscall.Mkfifo(s.Dir+"/done", 0o600); err != nil {
		t.Fatal(err)
	}
	info, _, err := m.Start(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.ReadFile(s.Dir + "/done"); err != nil { // it is written when the errors were taken
		t.Fatal(err)
	}
	if info, err = m.Get(me, info.ID); err != nil || info.State != Running {
		t.Fatalf("%+v, %v", info, err)
	}
	// Both streams are read: what nobody consumes, errors too, keeps the log full. Errors were dropped.
	var b strings.Builder
	for next, end := int64(0), false; !end; {
		c, err := m.Read(t.Context(), me, info.ID, ReadRequest{Offset: next, Wait: true})
		if err != nil {
			t.Fatal(err)
		}
		b.WriteString(stdoutOf(c))
		next, end = c.Next, c.End
		_ = m.Consume(t.Context(), me, info.ID, next) // it may have ended
	}
	if b.String() != want {
		t.Errorf("%d bytes of %d were read, or others", b.Len(), len(want))
	}
}

func TestTheEndOfAPipeIsReadWhole(t *testing.T) {
	m := open(t, t.TempDir(), Options{})
	command, want := numbers(6000) // 48,000 bytes fit into the pipe of the system when the log is full
	s := spec("k", command)
	s.Quota, s.Pipe = 4096, true
	info := run(t, m, s)
	if got, _ := consume(t, m, info.ID, 0, len(want)+1); got != want {
		t.Errorf("%d bytes of %d were read, or others", len(got), len(want))
	}
}

func TestATerminalIsNoPipe(t *testing.T) {
	m := open(t, t.TempDir(), Options{})
	s := spec("k", "true")
	s.Pipe, s.TTY = true, &Size{}
	if _, _, err := m.Start(t.Context(), s); err == nil || !strings.Contains(err.Error(), "pipe") {
		t.Errorf("the start of a pipe with a terminal: %v", err)
	}
}

// A program that has nothing to do ends when no manager was there for a time, and one that has
// something to do does not.
func TestAProgramThatRestsEndsWithoutAManager(t *testing.T) {
	dir := t.TempDir()
	m := open(t, dir, Options{})
	run := func(key string) ID {
		s := spec(key, "cat")
		s.Stdin, s.Pipe = true, true
		info, _, err := m.Start(t.Context(), s)
		if err == nil {
			err = m.Rest(t.Context(), me, info.ID, 50*time.Millisecond)
		}
		if err != nil {
			t.Fatal(err)
		}
		return info.ID
	}
	busy, done, rests := run("busy"), run("done"), run("rests")
	for _, id := range []ID{busy, done} {
		if err := m.WriteStdin(t.Context(), me, id, Input{Key: "call", Data: []byte("x")}); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.Rest(t.Context(), me, done, 50*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	pids := make(map[ID]int)
	for _, id := range []ID{busy, done, rests} {
		info, err := m.Get(me, id)
		if err != nil || info.State != Running {
			t.Fatalf("%+v, %v while a manager is there", info, err)
		}
		pids[id] = info.PID
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	for _, id := range []ID{done, rests} {
		for syscall.Kill(pids[id], 0) == nil {
			time.Sleep(time.Millisecond)
		}
	}
	if err := syscall.Kill(pids[busy], 0); err != nil {
		t.Errorf("the one that has something to do: %v", err)
	}
	m = open(t, dir, Options{})
	info, err := m.WaitGone(t.Context(), me, rests)
	if err != nil || info.Exit == nil || info.Exit.Signal == "" {
		t.Errorf("%+v, %v", info, err)
	}
	if _, err := m.Stop(t.Context(), me, busy); err != nil {
		t.Error(err)
	}
}
