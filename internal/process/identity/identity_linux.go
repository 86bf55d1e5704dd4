package identity

import (
	"os"
	"strconv"
	"syscall"

	"github.com/abide-run/abide/internal/process/sys"
)

// Self returns the calling process.
func Self() (Process, error) { return Of(os.Getpid()) }

// Of returns the process that has the number pid now.
func Of(pid int) (Process, error) {
	boot, namespace, err := here()
	if err != nil {
		return Process{}, err
	}
	s, err := StatOf(pid)
	return Process{pid, s.Start, boot, namespace}, err
}

// here returns the boot ID and the PID namespace of this program.
func here() (boot, namespace string, err error) {
	id, err := sys.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", "", err
	}
	namespace, err = os.Readlink("/proc/self/ns/pid")
	return string(id[:max(len(id)-1, 0)]), namespace, err
}

// Boot returns the boot ID and the PID namespace of this program as one text. A
// process number has a meaning only together with both.
func Boot() (string, error) {
	boot, namespace, err := here()
	return boot + " " + namespace, err
}

// StatOf returns what /proc says about the process that has the number pid now.
func StatOf(pid int) (Stat, error) {
	line, err := sys.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return Stat{}, err
	}
	return parseStat(string(line))
}

// Open returns a pidfd, which means this process even after its number is given to
// another one. The error is syscall.ESRCH if the process is gone.
func (p Process) Open() (fd int, err error) {
	boot, namespace, err := here()
	if err != nil {
		return -1, err
	}
	if p.PID <= 0 || boot != p.Boot || namespace != p.Namespace {
		return -1, syscall.ESRCH
	}
	return OpenStarted(p.PID, p.Start)
}

// OpenStarted is Open for a process of this boot and PID namespace.
func OpenStarted(pid int, start uint64) (fd int, err error) {
	fd, err = sys.PidfdOpen(pid, sys.PidfdNonblock)
	if err != nil {
		return -1, err
	}
	// The pidfd may belong to another process that has the number now. It is the
	// right one if the start times agree.
	if s, err := StatOf(pid); err != nil || s.Start != start {
		syscall.Close(fd)
		return -1, syscall.ESRCH
	}
	return fd, nil
}

// Ended reports whether the process of a pidfd has ended.
func Ended(fd int) bool {
	n, err := sys.Poll([]sys.PollFD{{FD: int32(fd), Events: sys.PollIn}}, 0)
	return err == nil && n > 0
}

// All returns every process that this program can see.
func All() []Stat {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	var all []Stat
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if s, err := StatOf(pid); err == nil {
			all = append(all, s)
		}
	}
	return all
}

// Below returns the descendants of a process, parents first, including those that
// ended and were not waited for.
func Below(pid int) []Stat { return descendants(All(), pid) }

// Marked returns the running processes that have a variable ("NAME=value") in their
// environment; children inherit it.
func Marked(variable string) []Stat {
	var marked []Stat
	for _, s := range All() {
		if s.State != 'Z' && hasVariable(s.PID, variable) {
			marked = append(marked, s)
		}
	}
	return marked
}

// Related returns the running processes that have a variable in their environment, that a
// function knows, or that are the process with a number and a start time or in the group
// that it leads, and the descendants of all of these.
func Related(variable string, known func(Stat) bool, pid int, start uint64) []Stat {
	all := All()
	leads := false // a group is that of the process only as long as the process is there
	for _, s := range all {
		leads = leads || s.PID == pid && s.Start == start && start != 0
	}
	return related(all, func(s Stat) bool {
		return leads && (s.PID == pid || s.Group == pid) || known(s) || hasVariable(s.PID, variable)
	})
}

func hasVariable(pid int, variable string) bool {
	env, err := sys.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return false
	}
	for rest := string(env); rest != ""; {
		end := index(rest, 0)
		if end < 0 {
			end = len(rest)
		}
		if rest[:end] == variable {
			return true
		}
		rest = rest[min(end+1, len(rest)):]
	}
	return false
}
