package process

import (
	"os/exec"
	"strings"
	"testing"
	"time"
)

// A program that asks for a password opens /dev/tty, whatever became of its streams.
func TestAPromptIsShownAfterTheStreamsAreClosed(t *testing.T) {
	path, open := gate(t)
	m := openManager(t)
	id := start(t, m, terminal("k", `echo begun; exec </dev/null >/dev/null 2>&1; read x <`+path+`; printf "Password: " >/dev/tty; read x </dev/tty; echo "got $x" >/dev/tty`)).ID
	awaitOutput(t, m, id, "begun")
	run(t, m, spec("clock", "sleep 0.1")) // the keeper has noticed by now that nobody has the terminal open
	open()
	awaitOutput(t, m, id, "Password: ")
	awaitReading(t, m, id, true)
	write(t, m, id, "secret\r")
	if info, err := m.WaitGone(t.Context(), me, id); err != nil || info.Exit == nil || info.Exit.Code != 0 {
		t.Errorf("%+v, %v", info, err)
	}
	awaitOutput(t, m, id, "got secret")
}

func openManager(t *testing.T) *Manager {
	return open(t, t.TempDir(), Options{Quiet: 5 * time.Millisecond})
}

// What a command prints just before its end is often not read yet when it ends.
func TestTheLastOutputOnATerminalIsKept(t *testing.T) {
	m := openManager(t)
	want := strings.Repeat("0123456789abcdef\r\n", 3000)
	for _, key := range strings.Fields("1 2 3 4 5 6 7 8 9 10") {
		id := run(t, m, terminal(key, `i=0; s=; while [ $i -lt 3000 ]; do s="${s}0123456789abcdef
"; i=$((i+1)); done; printf %s "$s"`)).ID
		if got := all(t, m, id, Both); got != want {
			t.Fatalf("run %s: %d bytes, want %d", key, len(got), len(want))
		}
	}
}

func TestAChildThatOutlivesItsCommandKeepsTheTerminal(t *testing.T) {
	path, open := gate(t)
	m := openManager(t)
	id := start(t, m, terminal("k", `(read x <`+path+`; echo later; echo on the terminal >/dev/tty) & echo end`)).ID
	if info, err := m.Wait(t.Context(), me, id); err != nil || info.State != Exited || !info.Lingering {
		t.Fatalf("%+v, %v", info, err)
	}
	checkIdle(t, m, id)
	open()
	info, err := m.WaitGone(t.Context(), me, id)
	if got := all(t, m, id, Both); err != nil || got != "end\r\nlater\r\non the terminal\r\n" {
		t.Errorf("%q, %+v, %v", got, info, err)
	}
}

// There is no shell that could let a command go on that was suspended.
func TestACommandIsNotSuspendedByItsTerminal(t *testing.T) {
	m := openManager(t)
	id := start(t, m, terminal("k", `kill -TSTP $$; echo went on; read x; echo "got $x"`)).ID
	awaitOutput(t, m, id, "went on")
	awaitReading(t, m, id, true)
	write(t, m, id, "\x1athis\r") // Ctrl-Z
	awaitOutput(t, m, id, "got this")
}

// One keeper has many commands, one after the other. A terminal of the last one must not be
// in the way of the next.
func TestAKeeperWithATerminalCanHaveAnother(t *testing.T) {
	m := openManager(t)
	keepers := map[int]bool{}
	for _, key := range strings.Fields("1 2 3") {
		info := run(t, m, terminal(key, `echo terminal >/dev/tty`))
		keepers[keeperOf(t, info)] = true
		if got := all(t, m, info.ID, Both); got != "terminal\r\n" {
			t.Errorf("run %s: %q", key, got)
		}
		info = run(t, m, spec("plain "+key, `echo none 2>&1 >/dev/tty`))
		keepers[keeperOf(t, info)] = true
		if got := all(t, m, info.ID, Both); strings.Contains(got, "none\n") && !strings.Contains(got, "/dev/tty") {
			t.Errorf("a command without a terminal has one: %q", got)
		}
	}
	if len(keepers) > 3 { // a spare one may be started at any time
		t.Errorf("there were %d keepers", len(keepers))
	}
}

func TestTheEndOfInputEndsAProgramInAnyLine(t *testing.T) {
	for name, tt := range map[string]struct{ command, typed, want string }{
		"nothing was typed":         {"cat; echo end", "", "end"},
		"a complete line":           {"cat; echo end", "abc\n", "abc\r\nend"},
		"a line that was begun":     {"cat; echo; echo end", "abc", "abc\r\nend"},
		"another key for the end":   {"stty eof ^X; echo ready; cat; echo; echo end", "abc", "abc\r\nend"},
		"lines, and one that begun": {"cat; echo; echo end", "one\ntwo", "two\r\nend"},
	} {
		t.Run(name, func(t *testing.T) {
			m := openManager(t)
			id := start(t, m, terminal("k", tt.command)).ID
			awaitReading(t, m, id, true)
			if tt.typed != "" {
				write(t, m, id, tt.typed)
			}
			if err := m.WriteStdin(t.Context(), me, id, Input{Close: true}); err != nil {
				t.Fatal(err)
			}
			info, err := m.WaitGone(t.Context(), me, id)
			if got := all(t, m, id, Both); err != nil || info.Exit == nil || info.Exit.Code != 0 || !strings.Contains(got, tt.want) {
				t.Errorf("%q, %+v, %v", got, info, err)
			}
		})
	}
}

func TestTheEndOfInputEndsALineEditor(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("skipped: a line editor, because there is no bash")
	}
	for _, typed := range []string{"", "echo $((6*7))"} {
		m := openManager(t)
		s := terminal("k", "")
		s.Args = []string{bash, "--norc", "--noprofile", "-i"}
		s.Env = []string{"TERM=xterm", "PS1=here> ", "PATH=/usr/bin:/bin"}
		id := start(t, m, s).ID
		awaitReading(t, m, id, true)
		if err := m.WriteStdin(t.Context(), me, id, Input{Data: []byte(typed), Close: true}); err != nil {
			t.Fatal(err)
		}
		if _, err := m.WaitGone(t.Context(), me, id); err != nil {
			t.Fatal(err)
		}
		if got := all(t, m, id, Both); typed != "" && !strings.Contains(got, "42") {
			t.Errorf("%q", got)
		}
	}
}
