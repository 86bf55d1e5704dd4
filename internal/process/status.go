package process

import (
	"syscall"
	"time"

	"github.com/abide-run/abide/internal/process/keeper"
	"github.com/abide-run/abide/internal/process/output"
	"github.com/abide-run/abide/internal/process/record"
	"golang.org/x/sys/unix"
)

// A status is the state of a process that results from its journal so far.
type status struct {
	state     State
	reason    string
	pid       int
	pidStart  uint64 // start time of the process that has the number pid, as in identity.Process; zero if it is unknown
	group     string // folder of the command's control group; empty if it has none
	started   time.Time
	ended     time.Time
	exit      *Exit
	lingering bool
	gone      bool
	lost      bool // true if the keeper ended before the process was gone
	seen      bool
	dropped   bool
	totals    *output.Totals // counts of the complete output; nil until the process is gone
	kept      int64          // number of bytes of the output that are on disk
}

// apply applies a record to the status. Unknown kinds are skipped: they may come from
// a newer keeper.
func (s *status) apply(r record.Record) {
	at := time.Unix(0, r.Int("time"))
	switch r.Kind {
	case keeper.Started:
		if s.state == Starting {
			s.state, s.pid, s.started = Running, int(r.Int("pid")), at
			s.pidStart, s.group = uint64(r.Int("start")), r.Get("group")
		}
	case keeper.Failed:
		if s.state == Starting {
			s.state, s.reason, s.ended, s.gone, s.totals = FailedToStart, r.Get("reason"), at, true, &output.Totals{}
		}
	case keeper.Stopping:
		if !s.state.Ended() {
			s.state, s.reason = Stopping, r.Get("reason")
		}
	case keeper.Exited:
		s.applyExit(r, at)
	case keeper.Lost:
		s.lost = true
		if !s.state.Ended() {
			s.state, s.reason, s.ended = Lost, r.Get("reason"), at
		}
	case keeper.Ended:
		s.gone = true
		if !s.lost {
			s.totals = &output.Totals{Bytes: r.Int("bytes"), Stdout: r.Int("stdout"), Lines: r.Int("lines")}
			s.kept = r.Int("kept")
		}
	case keeper.Seen:
		s.seen = true
	case keeper.Dropped:
		s.dropped = true
	}
}

func (s *status) applyExit(r record.Record, at time.Time) {
	if s.state.Ended() {
		return
	}
	s.state, s.reason, s.ended, s.lingering = Exited, "", at, r.Flag("lingering")
	if why := r.Get("killed"); why != "" {
		s.state, s.reason = Killed, why
	}
	s.exit = exitOf(uint32(r.Int("status")))
	if s.reason == "signal" {
		s.reason += " " + s.exit.Signal
	}
}

// exitOf decodes a status as wait(2) returns it.
func exitOf(raw uint32) *Exit {
	status := syscall.WaitStatus(raw)
	if status.Signaled() {
		return &Exit{Code: 128 + int(status.Signal()), Signal: signalName(status.Signal()), Raw: raw}
	}
	return &Exit{Code: int(raw >> 8 & 0xff), Raw: raw}
}

// signalName returns "SIGKILL" and the like. Real-time signals have no names.
func signalName(sig syscall.Signal) string {
	if name := unix.SignalName(sig); name != "" {
		return name
	}
	return "SIG" + itoa(int(sig))
}
