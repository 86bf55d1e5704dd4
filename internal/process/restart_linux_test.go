package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/process/identity"
)

// The daemon is killed while commands run. They keep running, and the next daemon
// knows everything about them.
func TestCommandsOutliveTheirDaemon(t *testing.T) {
	dir := t.TempDir()
	path1, pass1 := gate(t)
	path2, pass2 := gate(t)
	command, count := counter(t)
	numbered, numberedWant := numbers(1 << 17) // one megabyte, printed a hundred times
	specs := []Spec{
		spec("ends meanwhile", "echo before; read x <"+path1+"; echo after; exit 6"),
		spec("prints a lot", "read x <"+path2+"; for i in $(seq 100); do "+numbered+"; done"),
		spec("ignores TERM", "trap '' TERM; echo ready; while :; do sleep 1000; done"),
		spec("daemonises", "(setsid sh -c 'exec sleep 1000' &); echo started"),
		spec("reads", "echo ready; while read x; do echo got $x; done; echo end"),
		spec("ended before", "echo gone; exit 137"),
		spec("killed before", "kill -9 $$"),
		spec("terminal", "echo ready; read x; echo got $x"),
		spec("counted", command),
	}
	specs[4].Stdin = true
	specs[7].Stdin, specs[7].TTY = true, &Size{}
	for i := range specs {
		specs[i].Quota = 16 << 20
	}
	v := startKillable(t, daemonOrders{Dir: dir, Specs: specs})
	v.await(len(specs))
	v.kill()
	pass1() // at this moment there is no daemon
	pass2()

	m := open(t, dir, Options{})
	if got, err := m.List(me); err != nil || len(got) != len(specs) {
		t.Fatalf("%d processes, %v", len(got), err)
	}
	for i, s := range specs { // a client repeats its starts after a crash
		info, attached, err := m.Start(t.Context(), s)
		if err != nil || !attached || info.ID != idOf(me, s.Key) {
			t.Fatalf("start %d again: attached %v, %v", i, attached, err)
		}
	}
	id := func(key string) ID { return idOf(me, key) }
	check := func(key string, state State, code int, signal, output string) {
		t.Helper()
		info, err := m.WaitGone(t.Context(), me, id(key))
		if err != nil || info.State != state || info.Exit == nil || info.Exit.Code != code || info.Exit.Signal != signal {
			t.Errorf("%s: %+v %+v, %v", key, info, info.Exit, err)
		}
		if got := all(t, m, id(key), Both); got != output {
			t.Errorf("%s: output is %d bytes, %.60q", key, len(got), got)
		}
	}
	check("ends meanwhile", Exited, 6, "", "before\nafter\n")
	check("ended before", Exited, 137, "", "gone\n")
	check("killed before", Exited, 137, "SIGKILL", "")
	check("counted", Exited, 0, "", "")
	if count() != 1 {
		t.Errorf("it ran %d times", count())
	}

	for _, in := range []Input{{Data: []byte("one\n")}, {Data: []byte("two\n")}, {Close: true}} {
		if err := m.WriteStdin(t.Context(), me, id("reads"), in); err != nil {
			t.Fatal(err)
		}
	}
	check("reads", Exited, 0, "", "ready\ngot one\ngot two\nend\n")
	awaitOutput(t, m, id("terminal"), "ready") // otherwise the echo of the input may come before it
	if err := m.WriteStdin(t.Context(), me, id("terminal"), Input{Data: []byte("yes\n")}); err != nil {
		t.Fatal(err)
	}
	check("terminal", Exited, 0, "", "ready\r\nyes\r\ngot yes\r\n")

	awaitOutput(t, m, id("ignores TERM"), "ready")
	if _, err := m.Stop(t.Context(), me, id("ignores TERM")); err != nil {
		t.Fatal(err)
	}
	check("ignores TERM", Killed, 137, "SIGKILL", "ready\n")
	if info, err := m.Wait(t.Context(), me, id("daemonises")); err != nil || !info.Lingering || info.Gone {
		t.Errorf("daemonises: %+v, %v", info, err)
	}
	if _, err := m.Stop(t.Context(), me, id("daemonises")); err != nil {
		t.Fatal(err)
	}
	check("daemonises", Exited, 0, "", "started\n")

	info, err := m.WaitGone(t.Context(), me, id("prints a lot"))
	total := int64(100 * len(numberedWant))
	if err != nil || info.State != Exited || info.Output.Bytes != total {
		t.Fatalf("%+v, %v", info, err)
	}
	var seen int64
	for r := (ReadRequest{Limit: 1 << 20}); r.Offset < total; {
		c, err := m.Read(t.Context(), me, info.ID, r)
		if err != nil {
			t.Fatal(err)
		}
		at := 0
		for _, run := range c.Runs {
			for i := range run.Len {
				if c.Data[at+i] != numberedWant[(run.Offset+int64(i))%int64(len(numberedWant))] {
					t.Fatalf("byte %d is %q", run.Offset+int64(i), c.Data[at+i])
				}
			}
			at += run.Len
		}
		seen += int64(len(c.Data)) + c.Omitted
		r.Offset = c.Next
	}
	if seen != total {
		t.Errorf("%d bytes seen or omitted, want %d", seen, total)
	}
}

// A reader that follows gets the output that was printed while there was no daemon,
// and then new output.
func TestFollowingGoesOnAfterARestart(t *testing.T) {
	dir := t.TempDir()
	path1, pass1 := gate(t)
	path2, pass2 := gate(t)
	v := startKillable(t, daemonOrders{Dir: dir, Specs: []Spec{spec("k", "echo 1; read x <"+path1+"; echo 2; read x <"+path2+"; echo 3")}})
	v.await(1)
	v.kill()
	pass1()
	m := open(t, dir, Options{})
	awaitOutput(t, m, idOf(me, "k"), "1\n2\n")
	done := make(chan Info)
	go func() {
		info, err := m.Wait(t.Context(), me, idOf(me, "k"))
		if err != nil {
			t.Error(err)
		}
		done <- info
	}()
	pass2()
	if got := awaitOutput(t, m, idOf(me, "k"), "3"); got != "1\n2\n3\n" {
		t.Errorf("output = %q", got)
	}
	if info := <-done; info.State != Exited {
		t.Errorf("%+v", info)
	}
}

// A machine that shuts down sends TERM to every process.
func TestAKeeperThatIsAskedToEndStopsItsCommand(t *testing.T) {
	m := open(t, t.TempDir(), Options{Grace: time.Minute}) // a shell needs time to run its trap
	id := start(t, m, spec("k", "exec 2>/dev/null; trap 'echo bye; exit 9' TERM; echo ready; while :; do sleep 0.05; done")).ID
	awaitOutput(t, m, id, "ready")
	info, _ := m.Get(me, id)
	for _, sig := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM} {
		if err := syscall.Kill(keeperOf(t, info), sig); err != nil {
			t.Fatal(err)
		}
	}
	info, err := m.WaitGone(t.Context(), me, id)
	if err != nil || info.State != Killed || info.Exit.Code != 9 || !strings.Contains(info.Reason, "shut down") {
		t.Errorf("%+v, %v", info, err)
	}
	if got := all(t, m, id, Both); got != "ready\nbye\n" {
		t.Errorf("output = %q", got)
	}
}

func TestAProcessOfAnotherOwnerLooksUnknown(t *testing.T) {
	m := open(t, t.TempDir(), Options{})
	theirs := start(t, m, spec("k", "exec sleep 1000")).ID
	unknown := idOf("nobody", "nothing")
	for name, call := range map[string]func(Owner, ID) error{
		"Get":        func(o Owner, id ID) error { _, err := m.Get(o, id); return err },
		"Wait":       func(o Owner, id ID) error { _, err := m.Wait(t.Context(), o, id); return err },
		"WaitGone":   func(o Owner, id ID) error { _, err := m.WaitGone(t.Context(), o, id); return err },
		"Read":       func(o Owner, id ID) error { _, err := m.Read(t.Context(), o, id, ReadRequest{}); return err },
		"Tail":       func(o Owner, id ID) error { _, err := m.Tail(o, id, 1, Both); return err },
		"View":       func(o Owner, id ID) error { _, _, err := m.View(o, id, Both); return err },
		"WriteStdin": func(o Owner, id ID) error { return m.WriteStdin(t.Context(), o, id, Input{}) },
		"Resize":     func(o Owner, id ID) error { return m.Resize(t.Context(), o, id, Size{1, 1}) },
		"Signal":     func(o Owner, id ID) error { return m.Signal(t.Context(), o, id, syscall.SIGKILL) },
		"Stop":       func(o Owner, id ID) error { _, err := m.Stop(t.Context(), o, id); return err },
		"MarkSeen":   m.MarkSeen,
		"Forget":     m.Forget,
	} {
		foreign, missing := call("intruder", theirs), call("intruder", unknown)
		if !errors.Is(foreign, ErrNotFound) || strings.ReplaceAll(foreign.Error(), string(theirs), "") != strings.ReplaceAll(missing.Error(), string(unknown), "") {
			t.Errorf("%s: %v, but for an unknown one %v", name, foreign, missing)
		}
		if err := call("", theirs); !errors.Is(err, ErrNoOwner) {
			t.Errorf("%s without an owner: %v", name, err)
		}
	}
	if got, err := m.List("intruder"); err != nil || len(got) != 0 {
		t.Errorf("List: %v, %v", got, err)
	}
	if _, err := m.List(""); !errors.Is(err, ErrNoOwner) {
		t.Errorf("List without an owner: %v", err)
	}
	if _, err := m.Find("intruder", "k"); !errors.Is(err, ErrNotFound) {
		t.Errorf("Find: %v", err)
	}
	if info, err := m.Get(me, theirs); err != nil || info.State != Running {
		t.Errorf("%+v, %v", info, err)
	}
}

func TestCapsOfAnOwnerAreEnforced(t *testing.T) {
	m := open(t, t.TempDir(), Options{MaxRunning: 2, Quota: 1 << 20, MaxDisk: 3 << 20})
	first := start(t, m, spec("1", "exec sleep 1000"))
	start(t, m, spec("2", "sleep 1000 & exit 0")) // a lingering process counts
	var full *CapError
	if _, _, err := m.Start(t.Context(), spec("3", "true")); !errors.As(err, &full) || full.Has != 2 || full.Cap != 2 || full.What != capProcesses {
		t.Errorf("err = %v", err)
	}
	if _, attached, err := m.Start(t.Context(), spec("1", "exec sleep 1000")); err != nil || !attached {
		t.Errorf("the same again: attached %v, %v", attached, err)
	}
	other := spec("3", "true")
	other.Owner = "another"
	if _, _, err := m.Start(t.Context(), other); err != nil {
		t.Errorf("another owner: %v", err)
	}
	if _, err := m.Stop(t.Context(), me, first.ID); err != nil {
		t.Fatal(err)
	}
	run(t, m, spec("3", "head -c 900000 /dev/zero"))
	big := run(t, m, spec("4", "head -c 900000 /dev/zero"))
	if _, _, err := m.Start(t.Context(), spec("5", "true")); !errors.As(err, &full) || full.What != capDisk || full.Cap != 3<<20 {
		t.Errorf("err = %v", err)
	}
	if err := m.MarkSeen(me, big.ID); err != nil {
		t.Fatal(err)
	}
	run(t, m, spec("5", "true")) // the output that was seen is dropped
	if _, err := m.Tail(me, big.ID, 1, Both); !errors.Is(err, ErrDropped) {
		t.Errorf("Tail: %v", err)
	}
	if _, err := m.Tail(me, idOf(me, "3"), 1, Both); err != nil {
		t.Errorf("what was not seen: %v", err)
	}
}

// The error of a full disk share names what fills it, because the ways out differ:
// nobody can drop the output of a running command.
func TestADiskCapErrorNamesWhatFillsIt(t *testing.T) {
	const mib = 1 << 20
	earlier, reserved := "whose end nobody has seen takes 900000 bytes", "reserved for what running commands may print"
	tests := []struct {
		name      string
		commands  []string
		max       int64
		says      []string
		saysNot   string
		has, held int64
	}{
		{"running", []string{"exec sleep 1000", "exec sleep 1000"}, 2 * mib, []string{reserved, "stop one that runs"}, earlier, 2 * mib, 2 * mib},
		{"ended", []string{"head -c 900000 /dev/zero"}, 1 * mib, []string{earlier, "look at the earlier ones"}, reserved, 900000, 0},
		{"both", []string{"head -c 900000 /dev/zero", "exec sleep 1000"}, 2 * mib, []string{earlier, reserved}, "smaller", mib + 900000, mib},
		{"nothing", nil, mib - 1, []string{"this one may print 1048576 bytes", "a smaller quota"}, "earlier", 0, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			m := open(t, t.TempDir(), Options{Quota: mib, MaxDisk: test.max})
			for _, command := range test.commands {
				if id := start(t, m, spec(command+fmt.Sprint(len(m.procs)), command)).ID; strings.HasPrefix(command, "head") {
					m.WaitGone(t.Context(), me, id)
				}
			}
			_, _, err := m.Start(t.Context(), spec("more", "true"))
			var full *CapError
			if !errors.As(err, &full) || full.Has != test.has || full.Reserved != test.held || full.Wants != mib || full.Cap != test.max {
				t.Fatalf("%v, %+v", err, full)
			}
			for _, words := range test.says {
				if !strings.Contains(err.Error(), words) {
					t.Errorf("%q does not say %q", err, words)
				}
			}
			if strings.Contains(err.Error(), test.saysNot) {
				t.Errorf("%q says %q", err, test.saysNot)
			}
		})
	}
}

func TestNothingIsRemovedBeforeItWasSeen(t *testing.T) {
	m := open(t, t.TempDir(), Options{})
	ended := run(t, m, spec("ended", "echo output; exit 3"))
	running := start(t, m, spec("running", "exec sleep 1000"))
	lingering := start(t, m, spec("lingering", "sleep 1000 & exit 0"))
	if _, err := m.Wait(t.Context(), me, lingering.ID); err != nil {
		t.Fatal(err)
	}
	if err := m.MarkSeen(me, running.ID); err == nil {
		t.Error("the end of a running process was seen")
	}
	if err := m.MarkSeen(me, lingering.ID); err != nil {
		t.Error(err)
	}
	for _, id := range []ID{ended.ID, running.ID, lingering.ID} {
		if err := m.Forget(me, id); err == nil {
			t.Errorf("%s was forgotten", id)
		}
	}
	if err := m.Sweep(Retention{}); err != nil {
		t.Fatal(err)
	}
	if got, _ := m.List(me); len(got) != 3 {
		t.Fatalf("%d processes are left", len(got))
	}
	if got := all(t, m, ended.ID, Both); got != "output\n" {
		t.Errorf("output = %q", got)
	}
	if err := m.MarkSeen(me, ended.ID); err != nil {
		t.Fatal(err)
	}
	if err := m.Sweep(Retention{Output: 1 << 50, Record: 1 << 50}); err != nil || all(t, m, ended.ID, Both) != "output\n" {
		t.Errorf("a sweep too early: %v", err)
	}
	if err := m.Forget(me, ended.ID); err != nil {
		t.Fatal(err)
	}
	check := func(m *Manager) {
		t.Helper()
		info, attached, err := m.Start(t.Context(), spec("ended", "echo output; exit 3"))
		if err != nil || !attached || info.Exit.Code != 3 || !info.Dropped || !info.Seen || info.Output.Bytes != 7 {
			t.Errorf("%+v, %v", info, err)
		}
		if _, err := m.Read(t.Context(), me, ended.ID, ReadRequest{}); !errors.Is(err, ErrDropped) {
			t.Errorf("Read: %v", err)
		}
	}
	check(m)
	m.Close()
	m = open(t, m.dir, Options{})
	check(m)
	if err := m.Sweep(Retention{}); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Get(me, ended.ID); !errors.Is(err, ErrNotFound) {
		t.Errorf("after its record was removed: %v", err)
	}
	if _, err := os.Stat(filepath.Join(m.dir, string(ended.ID))); !os.IsNotExist(err) {
		t.Errorf("its folder: %v", err)
	}
}

func TestManyCommandsLeaveNothingBehind(t *testing.T) {
	m := open(t, t.TempDir(), Options{MaxRunning: 1000, MaxDisk: 1 << 50})
	run(t, m, spec("warm up", "true"))
	files := openFiles(t)
	before := map[int]bool{} // processes of other tests, which leave keepers running on purpose
	for _, s := range identity.All() {
		before[s.PID] = true
	}
	const n = 200
	errs := make(chan error, n)
	for i := range n {
		go func() {
			info, _, err := m.Start(t.Context(), spec(fmt.Sprint(i), fmt.Sprintf("echo %d; exit %d", i, i%100)))
			if err == nil {
				info, err = m.WaitGone(t.Context(), me, info.ID)
			}
			if err == nil && (info.State != Exited || info.Exit.Code != i%100 || info.Output.Bytes != int64(len(fmt.Sprintln(i)))) {
				err = fmt.Errorf("%d: %+v", i, info)
			}
			errs <- err
		}()
	}
	for range n {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	m.Close() // waits for all keepers
	for _, s := range identity.All() {
		if s.Parent == os.Getpid() && !before[s.PID] {
			t.Errorf("a child is left: %+v", s)
		}
	}
	if now := openFiles(t); now > files-1 { // the folder is closed too
		t.Errorf("%d files are open, %d were", now, files)
	}
	again, err := Open(m.dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	for _, info := range again.All() {
		entries, _ := os.ReadDir(info.Files.Dir)
		for _, e := range entries {
			switch name, _, _ := strings.Cut(e.Name(), "."); name {
			case "spec", "claim", "state", "out", "idx":
				if name == "claim" && e.Name() != "claim" {
					t.Errorf("%s is left", e.Name())
				}
			default:
				t.Errorf("%s is left", e.Name())
			}
		}
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}
