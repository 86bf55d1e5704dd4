package process

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// counter returns a command with a side effect, and a function that returns how often
// the command has run.
func counter(t *testing.T) (command string, count func() int) {
	file := filepath.Join(t.TempDir(), "count")
	return "echo x >> " + file, func() int {
		text, _ := os.ReadFile(file)
		return strings.Count(string(text), "x")
	}
}

func TestOneKeyIsOneProcess(t *testing.T) {
	m := open(t, t.TempDir(), Options{})
	command, count := counter(t)
	s := spec("k", command+"; exec sleep 1000")
	var all sync.WaitGroup
	var mu sync.Mutex
	pids, fresh := map[int]bool{}, 0
	for range 16 {
		all.Go(func() {
			info, attached, err := m.Start(t.Context(), s)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			pids[info.PID] = true
			if !attached {
				fresh++
			}
			if info.State != Running {
				t.Errorf("state = %s", info.State)
			}
		})
	}
	all.Wait()
	if len(pids) != 1 || fresh != 1 {
		t.Errorf("%d processes, %d of them new: %v", len(pids), fresh, pids)
	}
	info, attached, err := m.Start(t.Context(), s)
	if err != nil || !attached || !pids[info.PID] {
		t.Errorf("a later start: %v, attached %v, %v", info.PID, attached, err)
	}
	if _, err := m.Stop(t.Context(), me, info.ID); err != nil {
		t.Error(err)
	}
	info, attached, err = m.Start(t.Context(), s)
	if err != nil || !attached || info.State != Killed {
		t.Errorf("a start after the end: %v, attached %v, %v", info.State, attached, err)
	}
	if n := count(); n > 1 {
		t.Errorf("it ran %d times", n)
	}
}

func TestAnotherCommandWithTheSameKeyIsAConflict(t *testing.T) {
	m := open(t, t.TempDir(), Options{})
	run(t, m, spec("k", "true"))
	for name, change := range map[string]func(*Spec){
		"command": func(s *Spec) { s.Command = "false" },
		"args":    func(s *Spec) { s.Command, s.Args = "", []string{"true"} },
		"dir":     func(s *Spec) { s.Dir = "/" },
		"class":   func(s *Spec) { s.Class = Service },
		"tty":     func(s *Spec) { s.TTY = &Size{} },
		"stdin":   func(s *Spec) { s.Stdin = true },
	} {
		s := spec("k", "true")
		change(&s)
		if _, _, err := m.Start(t.Context(), s); !errors.Is(err, ErrConflict) {
			t.Errorf("another %s: %v", name, err)
		}
	}
	other := spec("k", "false")
	other.Owner = "somebody else"
	if _, attached, err := m.Start(t.Context(), other); err != nil || attached {
		t.Errorf("another owner's key: attached %v, %v", attached, err)
	}
	same := spec("k", "true")
	same.Title, same.Env, same.Quota = "title", []string{"A=b"}, 1<<20
	if _, attached, err := m.Start(t.Context(), same); err != nil || !attached {
		t.Errorf("another environment: attached %v, %v", attached, err)
	}
}

func TestWhatDoesNotStartIsNeverReportedAsStarted(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	os.WriteFile(file, []byte("text"), 0o600)
	bad := filepath.Join(dir, "bad")
	os.WriteFile(bad, []byte("#!/no/such/interpreter\n"), 0o700)
	tests := []struct {
		name, reason string
		change       func(*Spec)
	}{
		{"no directory", "does not exist", func(s *Spec) { s.Dir = "/no/such/dir" }},
		{"a file as directory", "is not a folder", func(s *Spec) { s.Dir = file }},
		{"no program", `no program "no-such-program" in PATH`, func(s *Spec) { s.Command, s.Args = "", []string{"no-such-program"} }},
		{"no program at a path", "does not exist", func(s *Spec) { s.Command, s.Args = "", []string{"/no/such/program"} }},
		{"no program at all in PATH", "in PATH", func(s *Spec) { s.Command, s.Args, s.Env = "", []string{"sh"}, []string{"PATH="} }},
		{"not executable", "may not be executed", func(s *Spec) { s.Command, s.Args = "", []string{file} }},
		{"no interpreter", "interpreter", func(s *Spec) { s.Command, s.Args = "", []string{bad} }},
	}
	for _, terminal := range []bool{false, true} {
		m := open(t, t.TempDir(), Options{})
		for _, tt := range tests {
			s := spec(tt.name, "true")
			tt.change(&s)
			if terminal {
				s.TTY = &Size{}
			}
			for attempt := range 2 {
				info, attached, err := m.Start(t.Context(), s)
				var failed *StartError
				if !errors.As(err, &failed) || !strings.Contains(failed.Reason, tt.reason) || attached != (attempt > 0) {
					t.Fatalf("%s: attached %v, %v", tt.name, attached, err)
				}
				if info.State != FailedToStart || info.PID != 0 || !info.Started.IsZero() || !info.Gone {
					t.Errorf("%s: %+v", tt.name, info)
				}
			}
			if info, err := m.Wait(t.Context(), me, idOf(me, tt.name)); err != nil || info.State != FailedToStart {
				t.Errorf("%s: Wait: %v, %v", tt.name, info.State, err)
			}
		}
		// A shell that does not exist is an error of the start too.
		again := open(t, m.dir+"2", Options{Shell: "/no/such/shell"})
		if _, _, err := again.Start(t.Context(), spec("k", "true")); err == nil {
			t.Error("a missing shell: started")
		}
	}
}

func TestAnInvalidSpecIsReported(t *testing.T) {
	m := open(t, t.TempDir(), Options{})
	tests := []struct {
		name, want string
		change     func(*Spec)
	}{
		{"no owner", "owner", func(s *Spec) { s.Owner = "" }},
		{"no key", "key", func(s *Spec) { s.Key = "" }},
		{"a long key", "key", func(s *Spec) { s.Key = strings.Repeat("k", 5000) }},
		{"no command", "command", func(s *Spec) { s.Command = "" }},
		{"spaces", "command", func(s *Spec) { s.Command = " \n\t" }},
		{"both", "command", func(s *Spec) { s.Args = []string{"true"} }},
		{"an empty program", "command", func(s *Spec) { s.Command, s.Args = "", []string{""} }},
		{"NUL", "command", func(s *Spec) { s.Command = "echo \x00" }},
		{"a megabyte", "put it into a file", func(s *Spec) { s.Command = "true " + strings.Repeat("x", 1<<20) }},
		{"no dir", "working directory", func(s *Spec) { s.Dir = "" }},
		{"relative dir", "working directory", func(s *Spec) { s.Dir = "tmp" }},
		{"NUL dir", "working directory", func(s *Spec) { s.Dir = "/tmp\x00" }},
		{"environment", "environment", func(s *Spec) { s.Env = []string{"novalue"} }},
		{"NUL environment", "environment", func(s *Spec) { s.Env = []string{"A=\x00"} }},
		{"class", "class", func(s *Spec) { s.Class = "other" }},
		{"negative limits", "limits", func(s *Spec) { s.Limits.Time = -1 }},
		{"quota", "quota", func(s *Spec) { s.Quota = 1 }},
		{"negative quota", "quota", func(s *Spec) { s.Quota = -1 }},
	}
	for _, tt := range tests {
		s := spec("k", "true")
		tt.change(&s)
		_, _, err := m.Start(t.Context(), s)
		if !errors.Is(err, ErrInvalid) && !errors.Is(err, ErrNoOwner) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	if left := m.All(); len(left) != 0 {
		t.Errorf("%d processes are left", len(left))
	}
}

func TestAStartThatIsCancelledBeforeItBeganLeavesNothing(t *testing.T) {
	m := open(t, t.TempDir(), Options{})
	command, count := counter(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := m.Start(ctx, spec("k", command)); !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v", err)
	}
	if _, err := m.Find(me, "k"); !errors.Is(err, ErrNotFound) {
		t.Errorf("Find: %v", err)
	}
	entries := namesIn(t, m.dir)
	if len(entries) != 0 {
		t.Errorf("%v are left", entries)
	}
	run(t, m, spec("k", command))
	if n := count(); n != 1 {
		t.Errorf("it ran %d times", n)
	}
}

func TestTwoManagersCannotHaveOneFolder(t *testing.T) {
	m := open(t, t.TempDir(), Options{})
	if _, err := Open(m.dir, Options{}); !errors.Is(err, ErrInUse) {
		t.Errorf("err = %v", err)
	}
	m.Close()
	if _, _, err := m.Start(t.Context(), spec("k", "true")); !errors.Is(err, ErrClosed) {
		t.Errorf("Start after Close: %v", err)
	}
	open(t, m.dir, Options{})
}

// Daemon or keeper is killed at each point of a start. There is one process or none,
// never two, and a start that did not happen is never reported as started.
func TestAStartThatIsKilledHappensOnceOrNotAtAll(t *testing.T) {
	tests := []struct {
		fault  string
		begun  bool // true if the start that was killed ran the command
		exited bool // true if it is known how the command ended
	}{
		{"daemon@unsynced", false, false},
		{"daemon@synced", false, false},
		{"daemon@unclaimed", true, true}, // either result is possible: the keeper and the next daemon both try to claim it
		{"daemon@claimed", true, true},
		{"daemon@executed", true, true},
		{"keeper@unclaimed", false, false},
		{"keeper@claimed", true, false},
		{"keeper@executed", true, false},
	}
	for _, tt := range tests {
		t.Run(tt.fault, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			command, count := counter(t)
			s := spec("k", command)
			v := startKillable(t, daemonOrders{Dir: dir, Fault: tt.fault, Specs: []Spec{s}})
			said := v.said()
			if strings.HasPrefix(tt.fault, "daemon") && said != "" {
				t.Fatalf("the dead daemon said %q", said)
			}
			v.kill()
			if !tt.begun && strings.HasPrefix(said, "started") {
				t.Errorf("it said %q", said)
			}

			m := open(t, dir, Options{})
			found, err := m.Find(me, "k")
			if tt.fault == "daemon@unclaimed" {
				tt.begun = err == nil
			}
			if tt.begun != (err == nil) {
				t.Fatalf("after the restart: %v, %v", found.State, err)
			}
			info, attached, err := m.Start(t.Context(), s)
			if err != nil || attached != tt.begun {
				t.Fatalf("start again: attached %v, %v", attached, err)
			}
			if info, err = m.WaitGone(t.Context(), me, info.ID); err != nil {
				t.Fatal(err)
			}
			switch n := count(); {
			case tt.begun && !tt.exited:
				if info.State != Lost || info.Exit != nil || info.Reason == "" || n > 1 {
					t.Errorf("%d runs, %+v", n, info)
				}
			case info.State != Exited || info.Exit.Code != 0 || n != 1:
				t.Errorf("%d runs, %+v", n, info)
			}
		})
	}
}
