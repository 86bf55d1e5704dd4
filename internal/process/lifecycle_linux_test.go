package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/process/identity"
	"github.com/abide-run/abide/internal/process/keeper"
	"github.com/abide-run/abide/internal/process/record"
)

func TestTheExitStatusIsExact(t *testing.T) {
	m := open(t, t.TempDir(), Options{})
	tests := []struct {
		command string
		want    Exit
	}{
		{"true", Exit{0, "", 0}},
		{"exit 3", Exit{3, "", 3 << 8}},
		{"exit 255", Exit{255, "", 255 << 8}},
		{"exit 137", Exit{137, "", 137 << 8}},
		{"kill -9 $$", Exit{137, "SIGKILL", 9}},
		{"exit 143", Exit{143, "", 143 << 8}},
		{"kill -TERM $$", Exit{143, "SIGTERM", 15}},
		{"kill 0", Exit{143, "SIGTERM", 15}},
		{"trap '' TERM; kill 0; exit 5", Exit{5, "", 5 << 8}},
		{"kill -HUP $$", Exit{129, "SIGHUP", 1}}, // commands do not inherit ignored signals
		{"no-such-command", Exit{127, "", 127 << 8}},
	}
	for _, tt := range tests {
		info := run(t, m, spec(tt.command, tt.command))
		if info.State != Exited || info.Exit == nil || *info.Exit != tt.want || info.Reason != "" {
			t.Errorf("%s: %s %+v %q, want %+v", tt.command, info.State, info.Exit, info.Reason, tt.want)
		}
		if info.Ended.Before(info.Started) || info.Started.Before(info.Created) {
			t.Errorf("%s: created %v, started %v, ended %v", tt.command, info.Created, info.Started, info.Ended)
		}
	}
}

func TestAChildThatOutlivesTheShellIsNoted(t *testing.T) {
	m := open(t, t.TempDir(), Options{})
	path, pass := gate(t)
	id := start(t, m, spec("k", "(read x <"+path+"; echo late) & echo ok")).ID
	info, err := m.Wait(t.Context(), me, id)
	if err != nil || info.State != Exited || info.Exit.Code != 0 || !info.Lingering || info.Gone {
		t.Fatalf("%+v, %v", info, err)
	}
	if got := all(t, m, id, Both); got != "ok\n" {
		t.Errorf("output = %q", got)
	}
	pass()
	if got := awaitOutput(t, m, id, "late"); got != "ok\nlate\n" {
		t.Errorf("output = %q", got)
	}
	info, err = m.WaitGone(t.Context(), me, id)
	if err != nil || info.State != Exited || info.Exit.Code != 0 || !info.Lingering || info.Output.Bytes != 8 {
		t.Errorf("%+v, %v", info, err)
	}
}

func TestStopEndsTheWholeTree(t *testing.T) {
	for name, command := range map[string]string{
		"polite":            "echo ready; exec sleep 1000",
		"ignores TERM":      "trap '' TERM; echo ready; while :; do sleep 1000; done",
		"child ignores":     "(trap '' TERM; echo ready; sleep 1000; sleep 1000) & wait",
		"another session":   "setsid sh -c 'trap \"\" TERM; echo ready; sleep 1000; sleep 1000' & wait",
		"daemon":            "(setsid sh -c 'echo ready; exec sleep 1000' &) ",
		"daemon, redirects": "(setsid sh -c 'exec sleep 1000' >/dev/null 2>&1 </dev/null &) ; echo ready",
		"stopped":           "echo ready; kill -STOP $$",
		"many":              "for i in 1 2 3 4 5 6 7 8 9; do sleep 1000 & done; echo ready; wait",
		"no environment":    "env -i setsid sleep 1000 & echo ready",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := open(t, t.TempDir(), Options{})
			id := start(t, m, spec("k", command)).ID
			awaitOutput(t, m, id, "ready")
			info, err := m.Get(me, id)
			if err != nil {
				t.Fatal(err)
			}
			below := identity.Below(keeperOf(t, info))
			info, err = m.Stop(t.Context(), me, id)
			if err != nil || !info.Gone || !info.State.Ended() {
				t.Fatalf("%+v, %v", info, err)
			}
			for _, s := range below {
				if now, err := identity.StatOf(s.PID); err == nil && now.Start == s.Start {
					t.Errorf("process %+v is left", s)
				}
			}
			if again, err := m.Stop(t.Context(), me, id); err != nil || again.State != info.State {
				t.Errorf("stop again: %v, %v", again.State, err)
			}
			checkSignals(t, info)
		})
	}
}

// checkSignals checks that the journal has every signal, with the number and the start
// time of each receiver.
func checkSignals(t *testing.T, info Info) {
	t.Helper()
	n := 0
	record.Each([]byte(journal(t, info)), func(r record.Record) {
		if r.Kind == keeper.Signal {
			n++
			if len(r.All("start")) != len(r.All("pid"))+len(r.All("group")) || len(r.All("start")) == 0 || r.Int("signal") == 0 {
				t.Errorf("a signal without an address: %v", r)
			}
		}
	})
	if n == 0 {
		t.Error("no signal is in the journal")
	}
}

func TestOnlyACommandThatStopEndedIsKilled(t *testing.T) {
	m := open(t, t.TempDir(), Options{Grace: time.Minute}) // a shell needs time to run its trap
	id := start(t, m, spec("polite", "trap 'exit 7' TERM; echo ready; while :; do sleep 0.05; done")).ID
	awaitOutput(t, m, id, "ready")
	info, err := m.Stop(t.Context(), me, id)
	if err != nil || info.State != Killed || info.Exit.Code != 7 || info.Exit.Signal != "" || info.Reason != "stopped" {
		t.Errorf("%+v %+v, %v", info, info.Exit, err)
	}
	info = run(t, m, spec("done", "exit 4"))
	if info, err := m.Stop(t.Context(), me, info.ID); err != nil || info.State != Exited || info.Exit.Code != 4 {
		t.Errorf("stopped after the end: %+v, %v", info, err)
	}
	id = start(t, m, spec("lingers", "sleep 1000 & exit 4")).ID
	if _, err := m.Wait(t.Context(), me, id); err != nil {
		t.Fatal(err)
	}
	if info, err := m.Stop(t.Context(), me, id); err != nil || info.State != Exited || info.Exit.Code != 4 || !info.Lingering || !info.Gone {
		t.Errorf("children stopped after the end: %+v, %v", info, err)
	}
}

// A Stop races with the command's own end. The journal has one end, and it is either
// of the two.
func TestAStopThatRacesTheEndHasOneOutcome(t *testing.T) {
	m := open(t, t.TempDir(), Options{})
	for i := range 20 {
		id := start(t, m, spec(fmt.Sprint(i), "exit 4")).ID
		stopped, err := m.Stop(t.Context(), me, id)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(journal(t, stopped), " exited "); n != 1 || !stopped.Gone {
			t.Errorf("%d ends: %s", n, journal(t, stopped))
		}
		if stopped.State == Exited && stopped.Exit.Code != 4 || stopped.State != Exited && stopped.State != Killed {
			t.Errorf("%+v %+v", stopped, stopped.Exit)
		}
	}
}

func TestSignalsReachTheGroup(t *testing.T) {
	m := open(t, t.TempDir(), Options{})
	id := start(t, m, spec("k", "trap 'echo usr1' USR1; echo ready; while :; do sleep 1000 & wait; done")).ID
	awaitOutput(t, m, id, "ready")
	if err := m.Signal(t.Context(), me, id, syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	awaitOutput(t, m, id, "usr1")
	if err := m.Signal(t.Context(), me, id, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	info, err := m.Wait(t.Context(), me, id)
	if err != nil || info.State != Killed || info.Exit.Signal != "SIGKILL" || info.Reason != "signal SIGKILL" {
		t.Errorf("%+v %+v, %v", info, info.Exit, err)
	}
	if err := m.Signal(t.Context(), me, id, syscall.SIGKILL); !errors.Is(err, ErrEnded) {
		t.Errorf("a signal after the end: %v", err)
	}
	for _, sig := range []syscall.Signal{-1, 0, 65, 1000} {
		if err := m.Signal(t.Context(), me, id, sig); !errors.Is(err, ErrInvalid) {
			t.Errorf("signal %d: %v", sig, err)
		}
	}
}

func TestLimitsEndAJob(t *testing.T) {
	m := open(t, t.TempDir(), Options{})
	for name, tt := range map[string]struct {
		command string
		limits  Limits
	}{
		"time limit":    {"exec sleep 1000", Limits{Time: 20 * time.Millisecond}},
		"process limit": {"for i in 1 2 3 4 5 6; do sleep 1000 & done; wait", Limits{Processes: 3}},
		"memory limit":  {"x=$(head -c 50000000 /dev/zero | tr '\\0' x); sleep 1000", Limits{Memory: 20 << 20}},
	} {
		s := spec(name, tt.command)
		s.Limits = tt.limits
		info := run(t, m, s)
		if info.State != Killed || info.Reason != name || info.Exit == nil {
			t.Errorf("%s: %+v", name, info)
		}
	}
}

func TestATimeLimitIsForChildrenToo(t *testing.T) {
	m := open(t, t.TempDir(), Options{Limits: Limits{Time: 20 * time.Millisecond}})
	info := Info{State: Killed}
	for limit := 20 * time.Millisecond; info.State == Killed; limit *= 2 { // on a slow machine a short limit ends the shell itself
		s := spec(limit.String(), "sleep 1000 & exit 0")
		s.Limits.Time = limit
		info = run(t, m, s)
	}
	if info.State != Exited || info.Exit.Code != 0 || !info.Lingering {
		t.Errorf("%+v", info)
	}
	service := spec("service", "exec sleep 1000")
	service.Class = Service
	if info := run(t, m, service); info.State != Killed || info.Reason != "time limit" {
		t.Errorf("a command in the background: %+v", info)
	}
}

func TestACommandInheritsNothingOfTheDaemon(t *testing.T) {
	m := open(t, t.TempDir(), Options{})
	s := spec("k", "ls /proc/$$/fd; env | sort")
	s.Env = append(s.Env, "PWD=/old", "ABIDE_PROCESS=of the command that started this program")
	info := run(t, m, s)
	want := "0\n1\n2\nABIDE_PROCESS=" + m.procs[info.ID].start.marker + "\nPATH=/usr/local/bin:/usr/bin:/bin\nPWD=/tmp\n"
	if got := all(t, m, info.ID, Both); got != want {
		t.Errorf("descriptors and environment are %q, want %q", got, want)
	}
	if text, _ := os.ReadFile(filepath.Join(info.Files.Dir, keeper.SpecFile)); strings.Contains(string(text), "/usr/bin") {
		t.Errorf("the environment is on disk: %s", text)
	}
}

func TestCommandsHaveLowerPriorityAndHigherOOMScore(t *testing.T) {
	m := open(t, t.TempDir(), Options{})
	own, _ := syscall.Getpriority(syscall.PRIO_PROCESS, 0)
	info := run(t, m, spec("k", "nice; cat /proc/self/oom_score_adj; cat /proc/$PPID/oom_score_adj"))
	want := fmt.Sprintf("%d\n300\n", min(20-own+5, 19))
	if got := all(t, m, info.ID, Both); !strings.HasPrefix(got, want) || got == want+"300\n" {
		t.Errorf("nice, its memory score and its keeper's are %q, want %q and less", got, want)
	}
}

// When a keeper is killed it is unknown how the command ended: the process is reported
// lost, and its remaining processes are ended.
func TestAProcessWithoutItsKeeperIsLost(t *testing.T) {
	for _, closed := range []bool{false, true} {
		for name, command := range map[string]string{
			"plain":           "echo ready; exec sleep 1000",
			"tree":            "trap '' TERM; sleep 1000 & echo ready; sleep 1000; sleep 1000",
			"another session": "setsid sleep 1000 & echo ready; sleep 1000",
		} {
			t.Run(fmt.Sprint(name, " closed:", closed), func(t *testing.T) {
				t.Parallel()
				m := open(t, t.TempDir(), Options{})
				id := start(t, m, spec("k", command)).ID
				awaitOutput(t, m, id, "ready")
				info, _ := m.Get(me, id)
				pid := keeperOf(t, info)
				if closed {
					m.Close()
				}
				syscall.Kill(pid, syscall.SIGKILL)
				if closed {
					var status syscall.WaitStatus
					syscall.Wait4(pid, &status, 0, nil) // the keeper is a child of the test program
					m = open(t, m.dir, Options{})
				}
				info, err := m.WaitGone(t.Context(), me, id)
				if err != nil || info.State != Lost || info.Exit != nil || !strings.Contains(info.Reason, "killed") || !info.Unkept || len(info.Survivors) > 0 {
					t.Errorf("%+v, %v", info, err)
				}
				if got := all(t, m, id, Both); got != "ready\n" {
					t.Errorf("output = %q", got)
				}
				if _, attached, err := m.Start(t.Context(), spec("k", command)); err != nil || !attached {
					t.Errorf("start again: attached %v, %v", attached, err)
				}
				checkSignals(t, info)
			})
		}
	}
}

// TestALostCommandDoesNotOutliveItsManager: a manager that closes while it waits for the
// processes of a lost command to end leaves none behind.
func TestALostCommandDoesNotOutliveItsManager(t *testing.T) {
	m := open(t, t.TempDir(), Options{Grace: time.Hour})
	id := start(t, m, spec("k", "trap '' TERM; echo ready; while :; do sleep 1; done")).ID
	awaitOutput(t, m, id, "ready")
	info, _ := m.Get(me, id)
	p, err := m.find(me, id)
	if err != nil {
		t.Fatal(err)
	}
	syscall.Kill(keeperOf(t, info), syscall.SIGKILL)
	for t.Context().Err() == nil && len(info.Survivors) == 0 {
		if info, err = m.Get(me, id); err != nil || info.Gone {
			t.Fatalf("%+v, %v", info, err)
		}
	}
	m.Close()
	for len(p.survivors()) > 0 { // the system takes a moment
		if t.Context().Err() != nil {
			t.Fatal("a process is left")
		}
	}
}

func TestAChildThatLostItsKeeperIsEndedToo(t *testing.T) {
	m := open(t, t.TempDir(), Options{})
	id := start(t, m, spec("k", "sleep 1000 & exit 3")).ID
	info, err := m.Wait(t.Context(), me, id)
	if err != nil {
		t.Fatal(err)
	}
	syscall.Kill(keeperOf(t, info), syscall.SIGKILL)
	info, err = m.WaitGone(t.Context(), me, id)
	if err != nil || info.State != Exited || info.Exit.Code != 3 || !info.Lingering {
		t.Errorf("%+v, %v", info, err)
	}
}

// writeForged creates the folder of a process whose keeper has the identity who.
func writeForged(t *testing.T, dir string, who identity.Process) startInfo {
	t.Helper()
	s, err := (&Options{Shell: "/bin/sh", Quota: 1 << 20}).complete(spec("k", "true"))
	if err != nil {
		t.Fatal(err)
	}
	boot, err := bootID()
	if err != nil {
		t.Fatal(err)
	}
	b := startInfo{spec: s, time: time.Now(), boot: boot, marker: "forged"}
	at := filepath.Join(dir, string(idOf(me, "k")))
	os.MkdirAll(at, 0o700)
	claimed := record.New(keeper.Claimed).WithInt("pid", int64(who.PID)).WithInt("start", int64(who.Start)).With("boot", who.Boot).With("namespace", who.Namespace)
	started := record.New(keeper.Started).WithInt("pid", int64(who.PID)).WithInt("start", int64(who.Start))
	for file, r := range map[string]record.Record{keeper.SpecFile: b.record(), keeper.ClaimFile: claimed, keeper.StateFile: started} {
		if err := os.WriteFile(filepath.Join(at, file), r.Line(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

func TestAReusedNumberIsNeverSignalled(t *testing.T) {
	bystander := exec.Command("sleep", "1000")
	bystander.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := bystander.Start(); err != nil {
		t.Fatal(err)
	}
	defer bystander.Wait()
	defer bystander.Process.Kill()
	now, err := identity.Of(bystander.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*identity.Process){
		"an earlier process":    func(p *identity.Process) { p.Start-- },
		"before a restart":      func(p *identity.Process) { p.Boot = "another" },
		"in another container":  func(p *identity.Process) { p.Namespace = "pid:[1]" },
		"a number out of range": func(p *identity.Process) { p.PID = -p.PID },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			was := now
			change(&was)
			writeForged(t, dir, was)
			m := open(t, dir, Options{})
			info, err := m.WaitGone(t.Context(), me, idOf(me, "k"))
			if err != nil || info.State != Lost {
				t.Errorf("%+v, %v", info, err)
			}
			if _, err := m.Stop(t.Context(), me, info.ID); err != nil {
				t.Error(err)
			}
			if err := m.Signal(t.Context(), me, info.ID, syscall.SIGKILL); !errors.Is(err, ErrEnded) {
				t.Errorf("Signal: %v", err)
			}
			if strings.Contains(journal(t, info), "signal") {
				t.Errorf("somebody was signalled: %s", journal(t, info))
			}
			if !alive(bystander.Process.Pid) {
				t.Fatal("the bystander is dead")
			}
		})
	}
}

// Claims are not synced. After a restart of the machine it is unknown whether there
// was one.
func TestAStartBeforeARestartOfTheMachineIsLost(t *testing.T) {
	dir := t.TempDir()
	b := writeForged(t, dir, identity.Process{})
	at := filepath.Join(dir, string(idOf(me, "k")))
	b.boot = "another"
	os.WriteFile(filepath.Join(at, keeper.SpecFile), b.record().Line(), 0o600)
	os.Remove(filepath.Join(at, keeper.ClaimFile))
	os.WriteFile(filepath.Join(at, keeper.StateFile), nil, 0o600)
	for range 2 { // the result is the same at the next start
		m := open(t, dir, Options{})
		info, err := m.WaitGone(t.Context(), me, idOf(me, "k"))
		if err != nil || info.State != Lost || info.Unkept || !strings.Contains(info.Reason, "restarted") {
			t.Errorf("%+v, %v", info, err)
		}
		m.Close()
	}
}

func TestASpecThatIsNotWholeWasNeverBegun(t *testing.T) {
	dir := t.TempDir()
	b := writeForged(t, dir, identity.Process{})
	at := filepath.Join(dir, string(idOf(me, "k")))
	os.WriteFile(filepath.Join(at, keeper.SpecFile), b.record().Line()[:20], 0o600)
	os.Remove(filepath.Join(at, keeper.ClaimFile))
	os.WriteFile(filepath.Join(dir, "notes.txt"), nil, 0o600) // a file of somebody else
	os.Mkdir(filepath.Join(dir, "folder"), 0o700)
	m := open(t, dir, Options{})
	if left := m.All(); len(left) != 0 {
		t.Errorf("%+v", left)
	}
	entries := namesIn(t, dir)
	if len(entries) != 2 {
		t.Errorf("%v are left", entries)
	}
}

func TestDamagedFilesAreReportedAndOtherProcessesLoad(t *testing.T) {
	dir := t.TempDir()
	m := open(t, dir, Options{})
	run(t, m, spec("sound", "echo hello"))
	m.Close()
	b := writeForged(t, dir, identity.Process{PID: 1})
	at := filepath.Join(dir, string(idOf(me, "k")))
	os.Remove(filepath.Join(at, keeper.StateFile))
	m = open(t, dir, Options{})
	if info, err := m.Find(me, "k"); err != nil || info.State != Lost || !info.Gone || !strings.Contains(info.Reason, "damaged") {
		t.Errorf("%+v, %v", info, err)
	}
	if info, err := m.Find(me, "sound"); err != nil || info.State != Exited || all(t, m, info.ID, Both) != "hello\n" {
		t.Errorf("%+v, %v", info, err)
	}
	m.Close()
	os.WriteFile(filepath.Join(at, keeper.SpecFile), b.record().Line()[:20], 0o600)
	m = open(t, dir, Options{})
	if len(m.All()) != 1 {
		t.Errorf("%+v", m.All())
	}
	if _, _, err := m.Start(t.Context(), spec("k", "true")); err == nil {
		t.Error("it was begun before, and was begun again")
	}
	if _, err := os.Stat(at); err != nil {
		t.Errorf("its folder: %v", err)
	}
}

func TestWaitingEndsWithItsContext(t *testing.T) {
	m := open(t, t.TempDir(), Options{})
	id := start(t, m, spec("k", "exec sleep 1000")).ID
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("why")
	done := make(chan error, 3)
	go func() { _, err := m.Wait(ctx, me, id); done <- err }()
	go func() { _, err := m.WaitGone(ctx, me, id); done <- err }()
	go func() { _, err := m.Read(ctx, me, id, ReadRequest{Wait: true}); done <- err }()
	cancel(why)
	for range 3 {
		if err := <-done; !errors.Is(err, why) {
			t.Errorf("err = %v", err)
		}
	}
	go func() { _, err := m.Wait(context.Background(), me, id); done <- err }()
	go func() { _, err := m.Read(context.Background(), me, id, ReadRequest{Wait: true}); done <- err }()
	m.Close()
	for range 2 {
		if err := <-done; !errors.Is(err, ErrClosed) {
			t.Errorf("err = %v", err)
		}
	}
	open(t, m.dir, Options{}) // its cleanup ends the command
}
