package keeper

import (
	"slices"
	"syscall"
	"time"
	"unsafe"

	"github.com/abide-run/abide/internal/process/output"
	"github.com/abide-run/abide/internal/process/record"
	"github.com/abide-run/abide/internal/process/sys"
)

const (
	firstRound = 10 * time.Millisecond // first pause between rounds of KILL; each pause is twice as long as the last
	lastRound  = time.Second           // longest pause between rounds of KILL
	fullReads  = 8                     // number of consecutive full reads after which a pipe is enlarged
	bigPipe    = 1 << 20               // bytes of an enlarged pipe
)

// loop serves the command until it and all its children have ended.
func (k *keeper) loop() {
	for !k.ended() {
		k.wait()
		k.readOutputs()
		if k.ready(k.wake) || k.ready(k.pidfd) {
			k.reap()
		}
		k.writeInputs()
		k.serve()
		k.runTimers(time.Now())
	}
	k.recordEnd()
}

// ended reports whether the command and all its children have ended.
func (k *keeper) ended() bool { return !k.running && k.childless }

// wait blocks until there is something to do.
func (k *keeper) wait() {
	k.polled = k.polled[:0] // the slice is used again, because wait is called for every read of output
	k.poll(k.wake, sys.PollIn)
	k.poll(k.pidfd, sys.PollIn)
	k.poll(k.listener, sys.PollIn)
	for i := range k.outputs {
		if s := &k.outputs[i]; k.takes(s.stream) {
			k.poll(s.fd, sys.PollIn)
		}
	}
	if len(k.waiting) > 0 {
		k.poll(k.stdin, sys.PollOut)
	}
	for _, c := range k.conns {
		if e := c.events(); e != 0 { // a closed connection would always be ready
			k.poll(c.fd, e)
		}
	}
	if n, err := sys.Poll(k.polled, k.timeout(time.Now())); err != nil || n == 0 {
		k.polled = k.polled[:0]
	}
}

func (k *keeper) poll(fd int, events int16) {
	if fd >= 0 {
		k.polled = append(k.polled, sys.PollFD{FD: int32(fd), Events: events})
	}
}

// ready reports whether the last poll found a descriptor ready.
func (k *keeper) ready(fd int) bool {
	for i := range k.polled {
		if p := &k.polled[i]; int(p.FD) == fd && p.Revents != 0 {
			return true
		}
	}
	return false
}

// timeout returns the time until something is due; a negative time is for ever.
func (k *keeper) timeout(now time.Time) time.Duration {
	var next time.Time
	for _, t := range [...]time.Time{k.until, k.termAt, k.killAt, k.checkLimitsAt, k.listenAt, k.checkReadingAt, k.retryAt, k.endAt} {
		if !t.IsZero() && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	if next.IsZero() {
		return -1
	}
	return max(next.Sub(now), 0)
}

// readOutputs moves the available output to the log. If both streams have output, it
// first checks how much standard error has, then reads standard output, then that
// much of standard error. So what was written to standard output before something on
// standard error comes before it in the log.
func (k *keeper) readOutputs() {
	out, err := &k.outputs[0], &k.outputs[1]
	if err.fd < 0 || !k.ready(err.fd) {
		if out.fd >= 0 && k.ready(out.fd) {
			k.read(out, len(buf))
		}
		return
	}
	there := k.available(err)
	if out.fd >= 0 {
		k.readUpTo(out, k.available(out))
	}
	k.readUpTo(err, max(there, 1)) // a stream that is ready without output has ended
}

// read moves output from a source to the log with one system call, at most most
// bytes. It returns the number of bytes.
func (k *keeper) read(s *source, most int) int {
	n, err := syscall.Read(s.fd, buf[:min(most, len(buf))])
	switch {
	case err == syscall.EINTR || err == syscall.EAGAIN:
		return 0
	case n <= 0: // the end, which a terminal reports as EIO
		k.closeSource(s)
		return 0
	}
	k.store(s.stream, buf[:n], time.Now())
	if !k.pipe { // it would only hold more that its reader has no space for
		s.enlargePipe(n)
	}
	k.midLine = buf[n-1] != '\n'
	k.noteActivity()
	k.reportSize()
	return n
}

// takes reports whether output of a stream is read now. The standard output of a pipe waits in
// the command while its reader is behind or the disk is full.
func (k *keeper) takes(s output.Stream) bool {
	return !k.pipe || s != output.Stdout || len(k.held) == 0 && !k.log.Full()
}

// store moves output to the log. What cannot be kept is dropped and counted, except the
// standard output of a pipe: that is held back, and written later.
func (k *keeper) store(s output.Stream, p []byte, now time.Time) {
	switch {
	case !k.pipe:
		k.log.Append(s, p, now.UnixMicro())
	case s != output.Stdout && (k.log.Full() || len(k.held) > 0):
		k.log.Skip(s, p)
	case s != output.Stdout:
		k.log.Append(s, p, now.UnixMicro())
	case len(k.held) > 0: // at the end of the command everything is read
		k.held = append(k.held, p...)
	default:
		if n := k.log.Write(s, p, now.UnixMicro()); n < len(p) {
			k.held, k.retryAt = slices.Clone(p[n:]), now.Add(lastRound)
		}
	}
}

// storeHeld tries again to write what was held back. At the end of the command there is no
// other time: what cannot be written then is dropped and counted.
func (k *keeper) storeHeld(now time.Time, last bool) {
	if k.retryAt = (time.Time{}); len(k.held) == 0 {
		return
	}
	k.held = k.held[k.log.Write(output.Stdout, k.held, now.UnixMicro()):]
	switch {
	case len(k.held) == 0:
		k.held = nil
	case last:
		k.log.Skip(output.Stdout, k.held)
		k.held = nil
	default:
		k.retryAt = now.Add(lastRound)
	}
	k.reportSize()
}

// closeSource stops reading a source. A terminal stays open, because a child may open it
// again.
func (k *keeper) closeSource(s *source) {
	if s.fd != k.terminal {
		syscall.Close(s.fd)
	}
	s.fd = -1
}

// enlargePipe enlarges the pipe of a command that prints a lot, which saves system calls.
// Only such pipes are enlarged, because the system limits the memory of all pipes of
// a user.
func (s *source) enlargePipe(n int) {
	if s.full < 0 || n < 64<<10 {
		s.full = min(s.full, 0)
		return
	}
	if s.full++; s.full == fullReads {
		sys.Fcntl(s.fd, sys.ResizePipe, bigPipe)
		s.full = -1
	}
}

// available returns how many bytes can be read now. For a terminal that is unknown, and
// it returns the size of a big pipe.
func (k *keeper) available(s *source) int {
	if s.fd == k.terminal {
		return bigPipe
	}
	var n int32
	sys.Ioctl(s.fd, syscall.TIOCINQ, unsafe.Pointer(&n))
	return int(n)
}

// readUpTo reads n bytes, or fewer if the source has no more.
func (k *keeper) readUpTo(s *source, n int) {
	for n > 0 && s.fd >= 0 {
		m := k.read(s, n)
		if m == 0 {
			return
		}
		n -= m
	}
}

// drainAll reads all output that is available now. Children may write more later.
func (k *keeper) drainAll() {
	for i := range k.outputs {
		if s := &k.outputs[i]; s.fd >= 0 {
			k.readUpTo(s, k.available(s))
		}
	}
	k.storeHeld(time.Now(), k.childless)
}

// reap waits for the children that ended.
func (k *keeper) reap() {
	var b [64]byte
	syscall.Read(k.wake, b[:])
	select {
	case <-k.terminate:
		k.stop("its keeper was asked to end, as when the machine is shut down", k.grace())
	default:
	}
	var main *syscall.WaitStatus
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG|syscall.WUNTRACED, nil)
		if err == syscall.EINTR {
			continue
		}
		if pid <= 0 {
			k.childless = err == syscall.ECHILD
			break
		}
		switch {
		case status.Stopped():
			k.resume(pid, status.StopSignal())
		case pid == k.pid:
			main = &status
		}
	}
	if main != nil {
		k.recordExit(*main)
	}
}

// recordExit records how the command ended, after it has read all output.
func (k *keeper) recordExit(status syscall.WaitStatus) {
	k.running = false
	syscall.Close(k.pidfd)
	k.pidfd = -1
	k.drainAll()
	r := k.withCounts(record.New(Exited)).WithInt("status", int64(status)).WithFlag("lingering", !k.childless)
	if k.reason == "" && k.exceeded() {
		k.reason = memoryLimit
	}
	if k.reason == "" && status.Signaled() && k.sent[status.Signal()] {
		k.reason = "signal"
	}
	if k.reason != "" {
		r = r.With("killed", k.reason)
	}
	if k.exit = withTime(r); k.childless {
		return // the Ended record follows at once: both are written and synced together
	}
	k.noteLines(k.exit, true)
	k.exit = nil
	k.reportChange()
}

// recordEnd records that the command and all its children have ended.
func (k *keeper) recordEnd() {
	k.drainAll()
	k.log.Close()
	k.free = k.noteLines(append(k.exit, withTime(k.withCounts(record.New(Ended)))...), true)
	k.removeGroup()
	k.unlisten()
	k.reportSize()
	k.reportChange()
}

// withCounts adds the counts of the output so far to a record.
func (k *keeper) withCounts(r record.Record) record.Record {
	t := k.log.Totals()
	return r.WithInt("bytes", t.Bytes).WithInt("stdout", t.Stdout).WithInt("lines", t.Lines).WithInt("kept", k.log.Kept())
}

// runTimers does everything that is due.
func (k *keeper) runTimers(now time.Time) {
	if due(k.until, now) {
		k.until = time.Time{}
		k.stop("time limit", k.grace())
	}
	if due(k.endAt, now) {
		k.after, k.endAt = 0, time.Time{}
		k.stop("nobody has used it", k.grace())
	}
	if due(k.checkLimitsAt, now) {
		k.checkLimitsAt = now.Add(lookEvery)
		k.checkLimits()
	}
	if due(k.termAt, now) {
		k.stop(k.reason, k.afterTerm)
	}
	if due(k.killAt, now) {
		k.killRound(now)
	}
	if due(k.retryAt, now) {
		k.storeHeld(now, false)
	}
	if due(k.checkReadingAt, now) {
		k.checkReading(now)
	}
}

func due(t, now time.Time) bool { return !t.IsZero() && !t.After(now) }
