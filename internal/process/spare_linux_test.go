package process

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/process/keeper"
	"github.com/abide-run/abide/internal/process/record"
	"github.com/abide-run/abide/internal/process/sandbox"
)

// spareOf returns the spare keeper of a manager after a start.
func spareOf(t *testing.T, m *Manager) *keeperProcess {
	t.Helper()
	m.work.Wait() // the spare keeper is started by then
	if m.spareKeeper == nil {
		t.Fatal("there is no spare keeper")
	}
	return m.spareKeeper
}

func TestTheNextCommandGetsTheSpareKeeper(t *testing.T) {
	m := open(t, t.TempDir(), Options{})
	if m.spareKeeper != nil {
		t.Error("there is a spare keeper before the first command")
	}
	run(t, m, spec("1", "true"))
	spare := spareOf(t, m)
	info := run(t, m, spec("2", "echo hello"))
	c, err := m.procs[info.ID].readClaim()
	if err != nil || int(c.Int("pid")) != spare.child.Pid {
		t.Errorf("the keeper is %v, not the spare one, %d; err = %v", c, spare.child.Pid, err)
	}
	if got := all(t, m, info.ID, Both); got != "hello\n" {
		t.Errorf("it printed %q", got)
	}
}

// keptBy returns the process number of the keeper that holds, or held, a process.
func keptBy(t *testing.T, m *Manager, id ID) int {
	t.Helper()
	c, err := m.procs[id].readClaim()
	if err != nil {
		t.Fatal(err)
	}
	return int(c.Int("pid"))
}

func descriptors(t *testing.T, pid int) int {
	t.Helper()
	open, err := os.ReadDir("/proc/" + itoa(pid) + "/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(open)
}

// A keeper that holds a second command has no descriptor left of the first one, and
// no input or signal of the first one affects the second.
func TestAKeeperStartsAnewWithEveryCommand(t *testing.T) {
	stdin, tty, limited := spec("stdin", "cat"), spec("tty", "cat"), spec("limited", "cat")
	stdin.Stdin, tty.Stdin, limited.Stdin = true, true, true
	tty.TTY = &Size{24, 80}
	limited.Class, limited.Limits = OneShot, Limits{Time: time.Hour, Memory: 1 << 40, Processes: 100}
	m := open(t, t.TempDir(), Options{})
	fds := make(map[int]int) // number of descriptors of each keeper after its first command
	checkDescriptors := func(id ID) {
		t.Helper()
		pid := spareOf(t, m).child.Pid
		if pid != keptBy(t, m, id) {
			return // the machine is slow, and another keeper is the spare one by now
		}
		now := descriptors(t, pid)
		first, known := fds[pid]
		if !known {
			fds[pid] = now
		} else if now != first {
			t.Errorf("the keeper has %d descriptors, and after its first command it had %d", now, first)
		}
	}
	checkDescriptors(run(t, m, spec("first", "true")).ID)
	for _, s := range []Spec{stdin, tty, limited} {
		spare := spareOf(t, m).child.Pid
		id := start(t, m, s).ID
		if err := m.WriteStdin(t.Context(), me, id, Input{Key: "same", Data: []byte(s.Key + "\n")}); err != nil {
			t.Fatal(err)
		}
		awaitOutput(t, m, id, s.Key)
		if err := m.Signal(t.Context(), me, id, syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if info, err := m.WaitGone(t.Context(), me, id); err != nil || info.State != Killed || keptBy(t, m, id) != spare {
			t.Errorf("%s: %+v, %v", s.Key, info, err)
		}
		checkDescriptors(id)
		next := run(t, m, spec("after "+s.Key, "kill -TERM $$"))
		if next.State != Exited || next.Exit.Signal != "SIGTERM" {
			t.Errorf("after %s: %s, %+v: the signal was not ours", s.Key, next.State, next.Exit)
		}
	}
}

// A request for a command that has just ended must not reach the next command, and
// its sender must not wait for an answer.
func TestALateRequestDoesNotReachTheNextCommand(t *testing.T) {
	m := open(t, t.TempDir(), Options{})
	k := spareAfter(t, m, "first")
	ours, theirs, err := socketPair()
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	if err := sendFiles(k.conn, record.New(keeper.Meet).Line(), theirs); err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	ours.Write(record.New(keeper.Stop).With("reason", "late").Line())
	if _, err := k.conn.Write(record.New(keeper.Arm).Line()); err != nil {
		t.Fatal(err)
	}
	info := run(t, m, spec("second", "echo hello"))
	if info.State != Exited || keptBy(t, m, info.ID) != k.child.Pid {
		t.Errorf("the next command is %+v", info)
	}
	if n, err := ours.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Errorf("%d bytes of an answer, err = %v", n, err)
	}
}

// spareAfter runs a command and returns the spare keeper.
func spareAfter(t *testing.T, m *Manager, key string) *keeperProcess {
	t.Helper()
	run(t, m, spec(key, "true"))
	return spareOf(t, m)
}

func TestSpareFoldersAreUsedAndRemovedOnClose(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, sparePrefix+"OLD"), 0o700); err != nil { // left by a daemon that was killed
		t.Fatal(err)
	}
	m := open(t, dir, Options{})
	spareAfter(t, m, "first")
	if len(m.spareDirs) != SpareDirs {
		t.Fatalf("there are %d spare folders", len(m.spareDirs))
	}
	made := m.spareDirs[len(m.spareDirs)-1]
	if !made.synced {
		t.Fatalf("the spare folder for the next command is %+v", made)
	}
	spareAfter(t, m, "second")
	if _, err := os.Stat(filepath.Join(dir, filepath.Base(made.path))); made.path != m.procs[idOf(me, "second")].dir || err != nil {
		t.Errorf("the spare folder is now %s, err = %v", made.path, err)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if left := namesIn(t, dir); len(left) != 2 {
		t.Errorf("%v is left", left)
	}
}

func TestAFolderThatIsInTheWayIsLeftAlone(t *testing.T) {
	m := open(t, t.TempDir(), Options{})
	at := filepath.Join(m.dir, string(idOf(me, "k")))
	if err := os.Mkdir(at, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, _, err := m.Start(t.Context(), spec("k", "true")); !errors.Is(err, os.ErrExist) {
		t.Errorf("err = %v", err)
	}
	if left := namesIn(t, m.dir); len(left) != 1 || left[0] != filepath.Base(at) {
		t.Errorf("%v is left", left)
	}
}

func TestASpareKeeperThatWasKilledIsReplaced(t *testing.T) {
	m := open(t, t.TempDir(), Options{})
	run(t, m, spec("1", "true"))
	dead := spareOf(t, m)
	if err := dead.child.Kill(); err != nil {
		t.Fatal(err)
	}
	dead.conn.Read(make([]byte, 1)) // returns when the keeper is dead
	if info := run(t, m, spec("2", "exit 3")); info.Exit == nil || info.Exit.Code != 3 {
		t.Errorf("the next command is %+v", info)
	}
	if alive(dead.child.Pid) {
		t.Error("it is alive")
	}
	if err := syscall.Kill(dead.child.Pid, 0); err != syscall.ESRCH {
		t.Errorf("nobody waited for it: %v", err)
	}
}

func TestCloseEndsTheSpareKeeper(t *testing.T) {
	m := open(t, t.TempDir(), Options{})
	run(t, m, spec("1", "true"))
	pid := spareOf(t, m).child.Pid
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, 0); err != syscall.ESRCH {
		t.Errorf("it is there: %v", err)
	}
}

// A daemon that abandons a process removes its claim with the rest of the folder. A
// keeper that claims the folder after that must not run the command.
func TestAKeeperThatComesTooLateRunsNothing(t *testing.T) {
	m := open(t, t.TempDir(), Options{})
	command, count := counter(t)
	s, err := m.opts.complete(spec("k", command))
	if err != nil {
		t.Fatal(err)
	}
	p := m.newProc(idOf(me, "k"), startInfo{spec: s, time: time.Now(), boot: m.boot, marker: "m"})
	r, err := p.claimDir()
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	k, err := startKeeper()
	if err != nil {
		t.Fatal(err)
	}
	if err := sendFiles(k.conn, m.opts.launch(p.start, s, sandbox.Confinement{Env: s.Env}).Line(), r.dir, r.state); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(p.path(keeper.SpecFile)); err != nil { // the first step of discard
		t.Fatal(err)
	}
	if _, err := k.conn.Write(record.New(keeper.Go).Line()); err != nil {
		t.Fatal(err)
	}
	k.child.Wait()
	k.conn.Close()
	if n := count(); n != 0 {
		t.Errorf("the command ran %d times", n)
	}
	if _, err := p.readClaim(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("there is a claim: %v", err)
	}
	m.discard(p.id)
	if left := namesIn(t, m.dir); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}
