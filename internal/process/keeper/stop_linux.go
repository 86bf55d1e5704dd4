package keeper

import (
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/abide-run/abide/internal/process/identity"
	"github.com/abide-run/abide/internal/process/record"
	"github.com/abide-run/abide/internal/process/sys"
)

func (k *keeper) grace() time.Duration { return time.Duration(k.launch.Int("grace")) }

// stop begins to end the command and everything below it. A second stop can
// only be faster.
func (k *keeper) stop(reason string, grace time.Duration) {
	deadline := time.Now().Add(grace)
	if !k.round.IsZero() {
		if deadline.Before(k.round) {
			k.round = deadline
		}
		return
	}
	if k.running {
		k.reason = reason
	}
	k.note(record.New(Stopping).With("reason", reason), false)
	k.announce()
	k.signalAll(syscall.SIGTERM)
	k.signalAll(syscall.SIGCONT) // who was stopped could not hear the first one
	k.round, k.pause = deadline, firstRound
}

// killRound kills whoever is left. Children may be made while it looks, so there
// is another round until there are none.
func (k *keeper) killRound(now time.Time) {
	k.signalAll(syscall.SIGKILL)
	k.round = now.Add(k.pause)
	k.pause = min(2*k.pause, lastRound)
}

// signalGroup sends a signal to the command's group.
func (k *keeper) signalGroup(sig syscall.Signal) error {
	if !k.running {
		return syscall.ESRCH
	}
	r := record.New(Signal).WithInt("signal", int64(sig)).
		WithInt("group", int64(k.pid)).WithInt("start", int64(k.start))
	if !k.note(r, false) {
		return syscall.ENOSPC
	}
	k.sent[sig] = true
	return syscall.Kill(-k.pid, sig) // the number is ours: the command was not waited for yet
}

// signalAll sends a signal to every process below us.
func (k *keeper) signalAll(sig syscall.Signal) {
	group := 0
	if k.signalGroup(sig) == nil {
		group = k.pid
	}
	var others []identity.Stat
	for _, s := range identity.Below(os.Getpid()) {
		if s.State != 'Z' && (group == 0 || s.Group != group) {
			others = append(others, s)
		}
	}
	SignalEach(others, sig, func(r record.Record) bool { return k.note(r, false) })
}

// SignalEach sends a signal to processes after note has written down which. One
// that is not what it was any more is left alone.
func SignalEach(to []identity.Stat, sig syscall.Signal, note func(record.Record) bool) {
	if len(to) == 0 {
		return
	}
	r := record.New(Signal).WithInt("signal", int64(sig))
	for _, s := range to {
		r = r.With("pid", strconv.Itoa(s.PID)).With("start", strconv.FormatUint(s.Start, 10))
	}
	if !note(r) {
		return
	}
	for _, s := range to {
		if fd, err := identity.OpenStarted(s.PID, s.Start); err == nil {
			sys.PidfdSendSignal(fd, sig)
			syscall.Close(fd)
		}
	}
}
