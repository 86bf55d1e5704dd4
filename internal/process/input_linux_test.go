package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/abide-run/abide/internal/process/keeper"
	"github.com/abide-run/abide/internal/process/record"
)

func TestInputIsEmptyUnlessItIsAskedFor(t *testing.T) {
	m := open(t, t.TempDir(), Options{})
	info := run(t, m, spec("k", "cat; echo end"))
	if got := all(t, m, info.ID, Both); got != "end\n" {
		t.Errorf("output = %q", got)
	}
	id := start(t, m, spec("sleep", "exec sleep 1000")).ID
	if err := m.WriteStdin(t.Context(), me, id, Input{Data: []byte("x")}); !errors.Is(err, ErrNoStdin) {
		t.Errorf("WriteStdin: %v", err)
	}
	if err := m.Resize(t.Context(), me, id, Size{10, 10}); !errors.Is(err, ErrNoTerminal) {
		t.Errorf("Resize: %v", err)
	}
}

func TestInputArrivesWholeAndOnce(t *testing.T) {
	m := open(t, t.TempDir(), Options{})
	s := spec("k", "exec cat")
	s.Stdin = true
	id := start(t, m, s).ID
	big := bytes.Repeat([]byte("0123456789\x00\xff\n\"\\"), 20000) // several requests
	inputs := []Input{
		{Data: []byte("hello\n")},
		{Key: "a", Data: []byte("keyed\n")},
		{Key: "a", Data: []byte("keyed\n")}, // this input is repeated as if the answer was lost
		{Key: "b", Data: big},
		{Key: "b", Data: big},
		{Data: []byte("end\n"), Close: true},
	}
	for _, in := range inputs {
		if err := m.WriteStdin(t.Context(), me, id, in); err != nil {
			t.Fatal(err)
		}
	}
	info, err := m.WaitGone(t.Context(), me, id)
	want := "hello\nkeyed\n" + string(big) + "end\n"
	if got := all(t, m, id, Both); err != nil || info.Exit.Code != 0 || got != want {
		t.Errorf("%d bytes, want %d; %+v, %v", len(got), len(want), info, err)
	}
	if err := m.WriteStdin(t.Context(), me, id, inputs[0]); !errors.Is(err, ErrEnded) {
		t.Errorf("after the end: %v", err)
	}
}

func TestInputThatNobodyReadsBlocksNobodyElse(t *testing.T) {
	m := open(t, t.TempDir(), Options{})
	s := spec("k", "echo ready; exec sleep 1000")
	s.Stdin = true
	id := start(t, m, s).ID
	awaitOutput(t, m, id, "ready")
	if err := m.WriteStdin(t.Context(), me, id, Input{Data: make([]byte, keeper.MaxInput)}); err != nil {
		t.Fatal(err) // this input fits into the pipe and fills it
	}
	conn, err := m.procs[id].connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	conn.Write(record.New(keeper.Stdin).With("data", "more").Line())
	if err := m.Signal(t.Context(), me, id, syscall.SIGCONT); err != nil { // the keeper has read both inputs when it answers this
		t.Fatal(err)
	}
	conn.Close()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- m.WriteStdin(ctx, me, id, Input{Data: make([]byte, 1<<20)}) }()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v", err)
	}
	checkIdle(t, m, id)
	if info, err := m.Stop(t.Context(), me, id); err != nil || info.State != Killed {
		t.Errorf("%+v, %v", info, err)
	}

	s = spec("closed", "exec <&-; echo ready; exec sleep 1000")
	s.Stdin = true
	id = start(t, m, s).ID
	awaitOutput(t, m, id, "ready")
	if err := m.WriteStdin(t.Context(), me, id, Input{Data: []byte("x")}); !errors.Is(err, ErrNoStdin) {
		t.Errorf("into a closed input: %v", err)
	}
}

// An input that is sent again while nobody has read it yet arrives once, although both wait for
// room: a client that gives up waiting comes back with the same key.
func TestInputThatIsSentAgainBeforeItIsReadArrivesOnce(t *testing.T) {
	m := open(t, t.TempDir(), Options{})
	gate := filepath.Join(t.TempDir(), "gate")
	if err := syscall.Mkfifo(gate, 0o600); err != nil {
		t.Fatal(err)
	}
	id := start(t, m, withStdin(spec("k", "echo ready; read go < "+gate+"; exec cat"))).ID
	awaitOutput(t, m, id, "ready")
	fill := bytes.Repeat([]byte("x"), keeper.MaxInput)
	if err := m.WriteStdin(t.Context(), me, id, Input{Data: fill}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		conn, err := m.procs[id].connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		conn.Write(record.New(keeper.Stdin).With("data", "once\n").With("key", "again/0").Line())
		conn.Close()
		if err := m.Signal(t.Context(), me, id, syscall.SIGCONT); err != nil { // the keeper has the input when it answers this
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(gate, []byte("go\n"), 0); err != nil {
		t.Fatal(err)
	}
	if err := m.WriteStdin(t.Context(), me, id, Input{Close: true}); err != nil {
		t.Fatal(err)
	}
	info, err := m.WaitGone(t.Context(), me, id)
	if got, want := all(t, m, id, Both), "ready\n"+string(fill)+"once\n"; err != nil || got != want {
		t.Errorf("%d bytes, want %d; %+v, %v", len(got), len(want), info, err)
	}
}

// An input that could not be delivered is not taken for delivered when it is sent again.
func TestInputThatFailedFailsAgain(t *testing.T) {
	m := open(t, t.TempDir(), Options{})
	id := start(t, m, withStdin(spec("k", "exec <&-; echo ready; exec sleep 1000"))).ID
	awaitOutput(t, m, id, "ready")
	for range 2 {
		if err := m.WriteStdin(t.Context(), me, id, Input{Key: "a", Data: []byte("x")}); !errors.Is(err, ErrNoStdin) {
			t.Errorf("into a closed input: %v", err)
		}
	}
}

func TestACommandWithATerminalSeesATerminal(t *testing.T) {
	m := open(t, t.TempDir(), Options{})
	s := spec("k", "stty size; tty -s <&1 && echo terminal; while read x; do stty size <&1; echo got $x; done; echo end")
	s.TTY, s.Stdin = &Size{Rows: 30, Cols: 100}, true
	id := start(t, m, s).ID
	awaitOutput(t, m, id, "30 100\r\nterminal\r\n")
	if err := m.Resize(t.Context(), me, id, Size{40, 120}); err != nil {
		t.Fatal(err)
	}
	if err := m.WriteStdin(t.Context(), me, id, Input{Data: []byte("one\n")}); err != nil {
		t.Fatal(err)
	}
	if got := awaitOutput(t, m, id, "got one"); !strings.Contains(got, "40 120") {
		t.Errorf("output = %q", got)
	}
	if err := m.Resize(t.Context(), me, id, Size{0, 120}); !errors.Is(err, ErrInvalid) {
		t.Errorf("no rows: %v", err)
	}
	if err := m.WriteStdin(t.Context(), me, id, Input{Close: true}); err != nil {
		t.Fatal(err)
	}
	info, err := m.WaitGone(t.Context(), me, id)
	if got := all(t, m, id, Stdout); err != nil || info.Exit.Code != 0 || !strings.HasSuffix(got, "end\r\n") || info.Output.Stderr != 0 {
		t.Errorf("%q, %+v, %v", got, info, err)
	}

	s = spec("big", "seq 100000 | tail -c 300000; exit 3")
	s.TTY = &Size{}
	info = run(t, m, s)
	if got := all(t, m, info.ID, Stdout); info.Exit.Code != 3 || !strings.HasSuffix(got, "99999\r\n100000\r\n") || len(got) < 300000 {
		t.Errorf("%d bytes, ending %q", len(got), got[max(0, len(got)-20):])
	}
}

// checkIdle checks that the keeper sleeps: while another command runs from start to
// end, the keeper uses almost no processor time.
func checkIdle(t *testing.T, m *Manager, id ID) {
	t.Helper()
	info, err := m.Get(me, id)
	if err != nil {
		t.Fatal(err)
	}
	before := ticks(t, keeperOf(t, info))
	done := run(t, m, spec("a while", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; cat /proc/$$/stat"))
	work := ticksOf(all(t, m, done.ID, Stdout))
	if used := ticks(t, keeperOf(t, info)) - before; used > work/4 {
		t.Errorf("the keeper is busy: it used %d ticks, a command that only works %d", used, work)
	}
}

// ticks returns the processor time that a process has used.
func ticks(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	return ticksOf(string(text))
}

func ticksOf(stat string) int {
	f := strings.Fields(stat)
	user, _ := strconv.Atoi(f[13])
	system, _ := strconv.Atoi(f[14])
	return user + system
}
