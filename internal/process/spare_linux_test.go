package process

import (
	"syscall"
	"testing"
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
