package process

import (
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// awaitReading blocks until Info.Reading of a process has the wanted value.
func awaitReading(t *testing.T, m *Manager, id ID, want bool) {
	t.Helper()
	p := m.procs[id]
	for {
		_, changed := p.now()
		switch info := p.info(); {
		case info.Reading == want:
			return
		case info.State.Ended():
			t.Fatalf("it ended: %+v", info)
		}
		select {
		case <-changed:
		case <-t.Context().Done():
			t.Fatal("nobody noticed")
		}
	}
}

func terminal(key, command string) Spec {
	s := spec(key, command)
	s.TTY, s.Stdin = &Size{24, 80}, true
	return s
}

func write(t *testing.T, m *Manager, id ID, text string) {
	t.Helper()
	if err := m.WriteStdin(t.Context(), me, id, Input{Data: []byte(text)}); err != nil {
		t.Fatal(err)
	}
}

// It does not matter what is on the terminal, only what the processes in its
// foreground do.
func TestACommandThatReadsItsTerminalIsNoticed(t *testing.T) {
	tests := map[string]string{
		"an end that could be anything": `printf "name> "; read x; echo "got $x"; sleep 1000`,
		"nothing":                       `read x; echo "got $x"; sleep 1000`,
		"a whole line":                  `echo hello; read x; echo "got $x"; sleep 1000`,
		"a secret":                      `stty -echo; printf "Password: "; read x; echo "got $x"; sleep 1000`,
		"a child":                       `sh -c 'printf "? "; read x; echo "got $x"'; sleep 1000`,
		"the terminal by its name":      `read x </dev/tty; echo "got $x"; sleep 1000`,
	}
	for name, command := range tests {
		t.Run(name, func(t *testing.T) {
			m := open(t, t.TempDir(), Options{Quiet: 5 * time.Millisecond})
			id := start(t, m, terminal("k", command)).ID
			awaitReading(t, m, id, true)
			write(t, m, id, "this\n")
			awaitReading(t, m, id, false)
			awaitOutput(t, m, id, "got this")
		})
	}
}

func TestALineEditorIsNoticed(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("skipped: a line editor, because there is no bash")
	}
	m := open(t, t.TempDir(), Options{Quiet: 5 * time.Millisecond})
	s := terminal("k", "")
	s.Args = []string{bash, "--norc", "--noprofile", "-i"}
	s.Env = []string{"TERM=xterm", "PS1=here> ", "PATH=/usr/bin:/bin"}
	id := start(t, m, s).ID
	awaitReading(t, m, id, true)
	write(t, m, id, "echo $((6*7)); exec sleep 1000\n")
	awaitReading(t, m, id, false)
	awaitOutput(t, m, id, "42")
}

func TestACommandThatDoesNotReadIsNotReportedAsReading(t *testing.T) {
	path, _ := gate(t)
	piped := spec("a pipe", `printf "Password: "; read x`)
	piped.Stdin = true
	deaf := terminal("no input", `printf "Password: "; sleep 1000`)
	deaf.Stdin = false
	m := open(t, t.TempDir(), Options{Quiet: 5 * time.Millisecond})
	for _, s := range []Spec{
		terminal("at work", `printf "Password: "; sleep 1000`),
		terminal("reads something else", `printf "> "; read x <`+path),
		terminal("reads in the background", `set -m; cat & printf "# "; sleep 1000`),
		piped, deaf,
	} {
		start(t, m, s)
	}
	if bash, err := exec.LookPath("bash"); err == nil {
		keys := terminal("a server that listens to keys", "")
		keys.Args = []string{bash, "--norc", "--noprofile", "-i"}
		keys.Env = []string{"TERM=dumb", `PS1=ready\n`, "PATH=/usr/bin:/bin"}
		awaitOutput(t, m, start(t, m, keys).ID, "\n")
		download := terminal("a download", "")
		download.Args = []string{bash, "-c", `printf "45%%"; read -t 1000 -u 3 x 3<>` + path}
		awaitOutput(t, m, start(t, m, download).ID, "45%")
	}
	run(t, m, spec("clock", "sleep 0.3")) // enough time for many checks
	for _, p := range m.procs {
		if p.info().Reading {
			t.Errorf("%s: it does not wait for anybody to type", p.start.spec.Key)
		}
	}
}

// The keeper reports to a new daemon too that the command waits, although it has
// reported it before.
func TestReadingIsKnownAfterARestart(t *testing.T) {
	m := open(t, t.TempDir(), Options{Quiet: 5 * time.Millisecond})
	id := start(t, m, terminal("k", `printf "name> "; read x; echo "got $x"`)).ID
	awaitReading(t, m, id, true)
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	m = open(t, m.dir, Options{})
	awaitReading(t, m, id, true)
	write(t, m, id, "this\n")
	if info, err := m.WaitGone(t.Context(), me, id); err != nil || info.Reading || info.Exit == nil || info.Exit.Code != 0 {
		t.Errorf("%+v, %v", info, err)
	}
}

func TestACommandWithoutStdinIsNotReportedAsReading(t *testing.T) {
	m := open(t, t.TempDir(), Options{Quiet: 5 * time.Millisecond})
	id := start(t, m, terminal("k", `read x; trap "" HUP; read y; sleep 1000`)).ID
	awaitReading(t, m, id, true)
	if err := m.WriteStdin(t.Context(), me, id, Input{Close: true}); err != nil {
		t.Fatal(err)
	}
	awaitReading(t, m, id, false)
	run(t, m, spec("clock", "sleep 0.1"))
	if m.procs[id].info().Reading {
		t.Error("it waits for what nobody can type any more")
	}
	if err := m.Signal(t.Context(), me, id, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}
