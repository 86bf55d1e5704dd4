package identity

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
)

// alive reports whether a process exists and has not ended.
func alive(p Process) bool {
	fd, err := p.Open()
	if err != nil {
		return false
	}
	defer syscall.Close(fd)
	return !Ended(fd)
}

func TestAProcessIsToldApartFromOthersWithItsNumber(t *testing.T) {
	self, err := Self()
	if err != nil || self.PID != os.Getpid() || !alive(self) {
		t.Fatalf("%+v, %v", self, err)
	}
	for _, change := range []func(*Process){
		func(p *Process) { p.PID = 0 },
		func(p *Process) { p.PID = -p.PID },
		func(p *Process) { p.Start++ },
		func(p *Process) { p.Boot += "x" },
		func(p *Process) { p.Namespace += "x" },
	} {
		other := self
		change(&other)
		if fd, err := other.Open(); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("%+v was opened: %d, %v", other, fd, err)
		}
	}
}

func TestAnEndedProcessIsNotAlive(t *testing.T) {
	cmd := exec.Command("sleep", "1000")
	cmd.Env = []string{"MARK=here"}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p, err := Of(cmd.Process.Pid)
	if err != nil || !alive(p) {
		t.Fatalf("%+v, %v", p, err)
	}
	has := func(all []Stat) bool {
		return slices.ContainsFunc(all, func(s Stat) bool { return s.PID == p.PID && s.Start == p.Start })
	}
	if !has(All()) || !has(Below(os.Getpid())) {
		t.Error("it is not among all, or not below us")
	}
	cmd.Process.Kill()
	cmd.Wait()
	if alive(p) || has(All()) {
		t.Error("it is alive after its end")
	}
}

func TestMarkedFindsTheVariableAndNoPartOfIt(t *testing.T) {
	cmd := exec.Command("sleep", "1000")
	mark := fmt.Sprintf("MARK=%d", os.Getpid())
	cmd.Env = []string{"OTHER=" + mark, mark}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	if found := Marked(mark); len(found) != 1 || found[0].PID != cmd.Process.Pid {
		t.Errorf("%+v", found)
	}
	if found := Marked(mark[:len(mark)-1]); len(found) != 0 {
		t.Errorf("%+v", found)
	}
}

func FuzzStat(f *testing.F) {
	f.Add("598 (sleep) S 30882 598 598 0 -1 4194560 100 0 0 0 0 0 0 0 20 0 1 0 1503106 5812224 220 18446744073709551615")
	f.Add("1 () ) (x) Z 0 1 1 0 -1 0 0 0 0 0 0 0 0 0 0 0 1 0 9 0 0")
	f.Fuzz(func(t *testing.T, line string) {
		s, err := parseStat(line)
		if err == nil && (s.PID <= 0 || s.Parent < 0 || s.Pages < 0) {
			t.Errorf("%q is %+v", line, s)
		}
	})
}

func TestTheNameOfAProcessCannotForgeOtherFields(t *testing.T) {
	s, err := parseStat("7 (a) R 1 1 1) S 5 6 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 99 0 3 0\n")
	if want := (Stat{7, 'S', 5, 6, 7, 99, 3}); err != nil || s != want {
		t.Errorf("%+v, %v, want %+v", s, err, want)
	}
}
