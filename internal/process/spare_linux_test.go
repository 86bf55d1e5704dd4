package process

import (
	"errors"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/process/keeper"
	"github.com/abide-run/abide/internal/process/record"
)

// spareOf returns the keeper that a manager has in reserve after a start.
func spareOf(t *testing.T, m *Manager) *newKeeper {
	t.Helper()
	m.work.Wait() // until it is hired
	if m.spare == nil {
		t.Fatal("there is no spare keeper")
	}
	return m.spare
}

func TestTheNextCommandHasTheSpareKeeper(t *testing.T) {
	m := open(t, t.TempDir(), Options{})
	if m.spare != nil {
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

func TestASpareKeeperThatWasKilledIsReplaced(t *testing.T) {
	m := open(t, t.TempDir(), Options{})
	run(t, m, spec("1", "true"))
	dead := spareOf(t, m)
	if err := dead.child.Kill(); err != nil {
		t.Fatal(err)
	}
	dead.conn.Read(make([]byte, 1)) // until it is dead
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

// A daemon that decides that nothing has happened removes that decision with the
// rest of the folder. A keeper that tries to claim it then must not believe that
// it has won.
func TestAKeeperThatComesTooLateRunsNothing(t *testing.T) {
	m := open(t, t.TempDir(), Options{})
	command, count := counter(t)
	s, err := m.opts.complete(spec("k", command))
	if err != nil {
		t.Fatal(err)
	}
	p := m.newProc(idOf(me, "k"), birth{spec: s, time: time.Now(), boot: m.boot, marker: "m"})
	if err := errors.Join(os.Mkdir(p.dir, 0o700), p.write()); err != nil {
		t.Fatal(err)
	}
	k, err := startKeeper()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.launch(k, m.opts.launch(p.birth, s).Line()); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(p.path(keeper.SpecFile)); err != nil { // as discard does first
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
	if left, err := os.ReadDir(m.dir); len(left) > 0 || err != nil {
		t.Errorf("%v is left, err = %v", left, err)
	}
}
