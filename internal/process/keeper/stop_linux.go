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

// stopping is how far a keeper has come with ending its command.
type stopping struct {
	sent      map[syscall.Signal]bool // signals that the keeper has sent to the command
	reason    string                  // reason why the command is being stopped; empty if it is not
	termAt    time.Time               // time at which a command that was interrupted gets TERM
	afterTerm time.Duration           // time between TERM and KILL for a command that was interrupted
	killAt    time.Time               // time of the next round of KILL
	killPause time.Duration           // time until the round after it
}

func (k *keeper) grace() time.Duration { return time.Duration(k.launch.Int("grace")) }

// stop begins to end the command and all its descendants, with TERM and after the
// grace time with KILL. A second stop can only shorten the grace time.
func (k *keeper) stop(reason string, grace time.Duration) {
	deadline := time.Now().Add(grace)
	if !k.killAt.IsZero() {
		if deadline.Before(k.killAt) {
			k.killAt = deadline
		}
		return
	}
	if k.termAt.IsZero() {
		k.noteStopping(reason)
	}
	k.termAt = time.Time{}
	k.signalAll(syscall.SIGTERM)
	k.signalAll(syscall.SIGCONT) // a suspended process handles TERM only after this
	k.killAt, k.killPause = deadline, firstRound
}

// interrupt begins to end the command and all its descendants as Ctrl-C at a terminal
// would, with INT. If that does not help, a stop follows after the given time. A
// command that is being ended already is left alone.
func (k *keeper) interrupt(reason string, after time.Duration) {
	if !k.killAt.IsZero() || !k.termAt.IsZero() {
		return
	}
	k.noteStopping(reason)
	k.signalAll(syscall.SIGINT)
	k.signalAll(syscall.SIGCONT)
	k.termAt, k.afterTerm = time.Now().Add(after), after
}

// noteStopping records that the command is being ended, and why.
func (k *keeper) noteStopping(reason string) {
	if k.running {
		k.reason = reason
	}
	k.note(record.New(Stopping).With("reason", reason), false)
	k.reportChange()
}

// killRound sends KILL to all descendants. Processes may start children meanwhile,
// so rounds follow until there are none.
func (k *keeper) killRound(now time.Time) {
	k.signalAll(syscall.SIGKILL)
	k.killAt = now.Add(k.killPause)
	k.killPause = min(2*k.killPause, lastRound)
}

// signalGroup sends a signal to the process group of the command.
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
	return syscall.Kill(-k.pid, sig) // the number is not reused, because the command was not waited for yet
}

// signalAll sends a signal to every descendant of the keeper.
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

// SignalEach sends a signal to processes after note has recorded them. A process
// that has ended is left out, even if another one has its number now.
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
