package keeper

import (
	"os"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"github.com/abide-run/abide/internal/process/identity"
	"github.com/abide-run/abide/internal/process/record"
	"github.com/abide-run/abide/internal/process/sys"
)

const (
	lastLook   = 10 * time.Second // longest pause between checks of a quiet command; each pause is twice as long as the last
	maxThreads = 64               // number of threads of a process that are checked
)

// typing is what a keeper knows of the terminal of its command.
type typing struct {
	terminal       int           // descriptor of the terminal; -1 if there is none
	slave          int           // descriptor of the command's end of the terminal; -1 if there is none
	partial        bool          // true if a line was begun by typing and not ended
	reading        bool          // true while the command waits for somebody to type
	midLine        bool          // true if the last line on the terminal is not complete
	readingPause   time.Duration // pause before the next check whether the command waits
	checkReadingAt time.Time     // time of that check
}

// noteActivity is called when something was printed or typed. It schedules the check whether
// a command with a terminal waits for somebody to type.
func (k *keeper) noteActivity() {
	if k.terminal < 0 {
		return
	}
	k.readingPause = time.Duration(k.launch.Int("quiet"))
	k.checkReadingAt = time.Now().Add(k.readingPause)
	k.setReading(false)
}

// checkReading checks whether the command waits for somebody to type. If it does, no
// further check is needed until something is typed or printed; otherwise the next
// check follows after a longer pause.
func (k *keeper) checkReading(now time.Time) {
	k.checkReadingAt = time.Time{}
	if k.stdin < 0 {
		return // nobody can type
	}
	k.setReading(k.isReading())
	if !k.reading {
		k.readingPause = min(2*k.readingPause, max(lastLook, k.readingPause))
		k.checkReadingAt = now.Add(k.readingPause)
	}
}

func (k *keeper) setReading(yes bool) {
	if k.reading == yes {
		return
	}
	k.reading = yes
	for _, c := range k.conns {
		if c.watching && !c.closed {
			c.send(record.New(Reading).WithFlag("yes", yes))
		}
	}
}

// isReading reports whether a process in the terminal's foreground is blocked reading
// from it. A line editor switches the terminal to raw mode and waits for several
// descriptors at once; it counts as reading while its prompt stands on an incomplete
// line.
func (k *keeper) isReading() bool {
	front, name := k.foreground()
	edits := k.isRaw() && k.midLine
	for _, s := range identity.Below(os.Getpid()) {
		if s.Group == front && s.State == 'S' && blocked(s.PID, name, edits) {
			return true
		}
	}
	return false
}

// foreground returns the process group in the foreground of the terminal, and the
// name of the terminal.
func (k *keeper) foreground() (group int, name string) {
	var n, g int32
	if sys.Ioctl(k.terminal, syscall.TIOCGPGRP, unsafe.Pointer(&g)) != nil || sys.Ioctl(k.terminal, syscall.TIOCGPTN, unsafe.Pointer(&n)) != nil {
		return -1, ""
	}
	return int(g), "/dev/pts/" + strconv.Itoa(int(n))
}

func (k *keeper) isRaw() bool {
	t, err := k.settings()
	return err == nil && t.Lflag&syscall.ICANON == 0
}

// settings returns how the terminal treats what is typed.
func (k *keeper) settings() (t syscall.Termios, err error) {
	err = sys.Ioctl(k.terminal, syscall.TCGETS, unsafe.Pointer(&t))
	return t, err
}

// resume lets a command go on that Ctrl-Z has suspended: there is no shell at its terminal
// that could.
func (k *keeper) resume(pid int, stopped syscall.Signal) {
	if pid == k.pid && k.terminal >= 0 && stopped == syscall.SIGTSTP && !k.sent[syscall.SIGTSTP] {
		k.signalGroup(syscall.SIGCONT)
	}
}

// noteTyped notes whether the last line that was typed is complete.
func (k *keeper) noteTyped(text []byte) {
	switch text[len(text)-1] {
	case '\n', '\r', endOfFile:
		k.partial = false
	default:
		k.partial = true
	}
}

const endOfFile = 4 // Ctrl-D

// endKeys returns what has to be typed to end the input. The end-of-file character only
// completes a line that was begun; a second one is the end. A program in raw mode gets
// the keys themselves, and a line editor ends only on an empty line.
func (k *keeper) endKeys() []byte {
	eof := byte(endOfFile)
	t, err := k.settings()
	raw := err == nil && t.Lflag&syscall.ICANON == 0
	if err == nil && !raw && t.Cc[syscall.VEOF] != 0 {
		eof = t.Cc[syscall.VEOF]
	}
	switch {
	case !k.partial:
		return []byte{eof}
	case raw:
		return []byte{'\r', eof}
	}
	return []byte{eof, eof}
}

// blocked reports whether a thread of a process waits to read a terminal.
func blocked(pid int, terminal string, edits bool) bool {
	at := "/proc/" + strconv.Itoa(pid)
	dir, err := os.Open(at + "/task")
	if err != nil {
		return false
	}
	defer dir.Close()
	threads, _ := dir.Readdirnames(maxThreads)
	for _, thread := range threads {
		line, err := sys.ReadFile(at + "/task/" + thread + "/syscall")
		if err != nil {
			continue // the thread has ended, or belongs to another user
		}
		call, first, ok := parseCall(string(line))
		switch {
		case !ok:
		case slices.Contains(reads, call) && isTerminal(at, first, terminal),
			edits && slices.Contains(polls, call) && isTerminal(at, 0, terminal):
			return true
		}
	}
	return false
}

// parseCall parses the number of the system call that a thread is in, and its first
// argument.
func parseCall(line string) (call, first uint64, ok bool) {
	number, rest := cut(line, ' ')
	argument, _ := cut(rest, ' ')
	call, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return 0, 0, false // the thread is in no system call
	}
	first, err = strconv.ParseUint(argument, 0, 64)
	return call, first, err == nil
}

func isTerminal(process string, fd uint64, terminal string) bool {
	name, err := os.Readlink(process + "/fd/" + strconv.FormatUint(fd, 10))
	return err == nil && (name == terminal || name == "/dev/tty")
}

// Numbers of the system calls that read, and of those that wait for descriptors.
var (
	reads = []uint64{syscall.SYS_READ, syscall.SYS_READV}
	polls = append([]uint64{syscall.SYS_PPOLL, syscall.SYS_PSELECT6, syscall.SYS_EPOLL_PWAIT, epollPwait2}, oldPolls()...)
)

const epollPwait2 = 441

// oldPolls returns the numbers of system calls that only amd64 has.
func oldPolls() []uint64 {
	if runtime.GOARCH != "amd64" {
		return nil
	}
	return []uint64{7, 23, 232} // poll, select, epoll_wait
}
