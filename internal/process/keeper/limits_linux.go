package keeper

import (
	"os"
	"syscall"
	"time"

	"github.com/abide-run/abide/internal/process/cgroup"
	"github.com/abide-run/abide/internal/process/identity"
	"github.com/abide-run/abide/internal/process/record"
)

// limits is what a command may use, and how a keeper holds it to that.
type limits struct {
	until         time.Time     // time at which the command is ended; zero for never
	memory        int64         // bytes; zero for no limit
	processes     int           // number of processes; zero for no limit
	group         *cgroup.Group // the group in which the system holds the memory; nil if the keeper measures it
	checkLimitsAt time.Time     // time of the next check of memory and processes
}

const (
	lookEvery   = 100 * time.Millisecond // pause between checks of memory and processes, if they are limited
	memoryLimit = "memory limit"
)

func (k *keeper) setLimits(now time.Time) {
	if d := k.launch.Int("limit_time"); d > 0 {
		k.until = now.Add(time.Duration(d))
	}
	k.memory = k.launch.Int("limit_memory")
	k.limits.processes = int(k.launch.Int("limit_processes"))
	if k.memory > 0 || k.limits.processes > 0 {
		k.checkLimitsAt = now.Add(lookEvery)
	}
}

// makeGroup makes a group for a command whose memory is limited. Where there can be none,
// the keeper measures.
func (k *keeper) makeGroup(name string) {
	memory := k.launch.Int("limit_memory")
	if memory <= 0 {
		return
	}
	if place, err := cgroup.Find(); err == nil {
		k.group, _ = place.Make("abide-"+name, memory)
	}
}

// enterGroup puts what this thread starts next into the group. The returned function is
// called after the start.
func (k *keeper) enterGroup(attr *syscall.SysProcAttr) (leave func()) {
	if k.group == nil {
		return func() {}
	}
	leave, err := k.group.Enter(attr)
	if err != nil {
		k.removeGroup()
	}
	return leave
}

// withGroup adds the group to the record of the start: if the keeper is killed, the processes
// of the command are found by it.
func (k *keeper) withGroup(r record.Record) record.Record {
	if k.group == nil {
		return r
	}
	return r.With("group", k.group.Dir)
}

func (k *keeper) removeGroup() {
	if k.group != nil {
		k.group.Remove() // a group that stays costs little, and takes nobody's name
		k.group = nil
	}
}

// exceeded reports whether the system has ended a process because of the limit of memory.
func (k *keeper) exceeded() bool { return k.group != nil && k.group.Exceeded() }

// checkLimits stops a command that exceeds its limits of memory or processes.
func (k *keeper) checkLimits() {
	if k.reason != "" {
		return
	}
	if k.exceeded() {
		k.stop(memoryLimit, k.grace())
		return
	}
	if k.limits.processes == 0 && k.group != nil {
		return
	}
	processes, pages := 0, int64(0)
	for _, s := range identity.Below(os.Getpid()) {
		if s.State != 'Z' {
			processes++
			pages += s.Pages
		}
	}
	switch {
	case k.limits.processes > 0 && processes > k.limits.processes:
		k.stop("process limit", k.grace())
	case k.memory > 0 && k.group == nil && pages*int64(os.Getpagesize()) > k.memory:
		k.stop(memoryLimit, k.grace())
	}
}
