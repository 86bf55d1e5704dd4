package process

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/abide-run/abide/internal/process/cgroup"
	"github.com/abide-run/abide/internal/process/identity"
	"github.com/abide-run/abide/internal/process/record"
)

// much takes 100 MB at once, and ends well if it gets them.
const much = "head -c 100000000 /dev/zero | tail -c 100000000 | wc -c"

func TestALimitOfMemoryHoldsInTheBackgroundToo(t *testing.T) {
	m := open(t, t.TempDir(), Options{Limits: Limits{Memory: 30 << 20}})
	for _, class := range []Class{OneShot, Service} {
		s := spec(string(class), much+"; sleep 1000")
		s.Class = class
		info := run(t, m, s)
		if info.State != Killed || info.Reason != "memory limit" {
			t.Errorf("%s: %+v", class, info)
		}
		group := groupOf(t, info)
		if _, err := cgroup.Find(); err != nil {
			t.Logf("the keeper measures here: %v", err)
			continue
		}
		if group == "" {
			t.Errorf("%s: it has no control group", class)
		} else if _, err := os.Stat(group); err == nil {
			t.Errorf("%s: the group %s is left", class, group)
		}
	}
	s := spec("little", "echo fine")
	if info := run(t, m, s); info.State != Exited || info.Exit.Code != 0 {
		t.Errorf("a command that needs little: %+v", info)
	}
}

// groupOf returns the folder of the control group that the journal of a process names.
func groupOf(t *testing.T, info Info) (group string) {
	t.Helper()
	record.Each([]byte(journal(t, info)), func(r record.Record) {
		if r.Kind == "started" {
			group = r.Get("group")
		}
	})
	return group
}

// The system ends the process that takes too much before anybody could measure it.
func TestTheSystemHoldsTheMemoryOfAShortPeak(t *testing.T) {
	if _, err := cgroup.Find(); err != nil {
		t.Skipf("skipped: a short peak of memory, because %v", err)
	}
	m := open(t, t.TempDir(), Options{Limits: Limits{Memory: 30 << 20}})
	info := run(t, m, spec("k", much+"; exit 0"))
	if got := all(t, m, info.ID, Both); strings.Contains(got, "100000000") || info.Reason != "memory limit" {
		t.Errorf("it has printed %q: %+v", got, info)
	}
}

func TestProcessesWithoutAnEnvironmentAreFoundWithoutTheirKeeper(t *testing.T) {
	for name, tt := range map[string]struct {
		command string
		limits  Limits
	}{
		"the command itself": {command: "exec env -i sleep 1000"},
		"a child":            {command: "env -i sleep 1000; true"},
		"a grandchild":       {command: "env -i sh -c 'sleep 1000 & wait'; true"},
		"one that left":      {command: "setsid env -i sleep 1000 & wait", limits: Limits{Memory: 1 << 30}},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := cgroup.Find(); err != nil && tt.limits != (Limits{}) {
				t.Skipf("skipped: a process that left everything, because %v", err)
			}
			m := open(t, t.TempDir(), Options{})
			s := spec("k", tt.command)
			s.Limits = tt.limits
			info := start(t, m, s)
			pid := awaitSleeper(t, m, info)
			if err := syscall.Kill(keeperOf(t, info), syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			info, err := m.WaitGone(t.Context(), me, info.ID)
			if err != nil || info.State != Lost || alive(pid) {
				t.Errorf("%+v, %v, and the process runs: %v", info, err, alive(pid))
			}
			if group := groupOf(t, info); group != "" {
				if _, err := os.Stat(group); err == nil {
					t.Errorf("the group %s is left", group)
				}
			}
		})
	}
}

// awaitSleeper waits until the sleep of a command runs with an empty environment, and returns
// its number.
func awaitSleeper(t *testing.T, m *Manager, info Info) int {
	t.Helper()
	for t.Context().Err() == nil {
		for _, s := range identity.Below(keeperOf(t, info)) {
			line, _ := os.ReadFile("/proc/" + itoa(s.PID) + "/cmdline")
			env, err := os.ReadFile("/proc/" + itoa(s.PID) + "/environ")
			if strings.HasPrefix(string(line), "sleep\x00") && err == nil && !strings.Contains(string(env), "ABIDE_") {
				return s.PID
			}
		}
	}
	t.Fatal("it does not sleep")
	return 0
}
