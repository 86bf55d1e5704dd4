package cli

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/abide-run/abide/internal/cli/launch"
	"github.com/abide-run/abide/internal/daemon/folder"
)

// A launcher is the process that a shell or an SDK waits for. The command is over when
// it ends; this process may go on.
type launcher struct {
	socket    *os.File
	inherited []int // descriptors that keepFromChildren returned

	mu   sync.Mutex
	left bool // true when this process has left the launcher
}

// findLauncher returns the launcher of this process, or nil. When this process leaves it,
// it closes the inherited descriptors.
func findLauncher(inherited []int) *launcher {
	fd, ok := launch.Socket()
	if !ok {
		return nil
	}
	return &launcher{socket: os.NewFile(uintptr(fd), "launcher"), inherited: inherited}
}

// join returns the signals that this process gets and those that its launcher gets. A
// signal to both, such as one from a terminal, comes once. If the launcher is killed,
// SIGKILL comes: the command was killed.
func (l *launcher) join(own <-chan os.Signal) <-chan os.Signal {
	if l == nil {
		return own
	}
	joined, passed := make(chan os.Signal, cap(own)), make(chan os.Signal)
	go l.read(passed)
	go func() { // ends with the process
		counts := newSignalCounts()
		for {
			var s os.Signal
			var isNew bool
			select {
			case s = <-own:
				isNew = counts.add(s, 0, time.Now())
			case s = <-passed:
				isNew = counts.add(s, 1, time.Now())
			}
			if isNew {
				joined <- s
			}
		}
	}()
	return joined
}

// read reads the signals that the launcher gets, until the launcher has ended.
func (l *launcher) read(to chan<- os.Signal) {
	b := make([]byte, 1)
	for {
		if _, err := io.ReadFull(l.socket, b); err != nil {
			break
		}
		to <- syscall.Signal(b[0])
	}
	l.mu.Lock()
	killed := !l.left
	l.mu.Unlock()
	if killed {
		to <- syscall.SIGKILL
	}
}

// signalCounts counts signals from two sources, this process and its launcher. A signal
// that was sent to both is counted by both.
type signalCounts struct {
	from [2]map[os.Signal]int
	seen map[os.Signal]int
	last map[os.Signal]time.Time
}

func newSignalCounts() *signalCounts {
	return &signalCounts{[2]map[os.Signal]int{{}, {}}, map[os.Signal]int{}, map[os.Signal]time.Time{}}
}

// sameSignal is the time within which a signal that comes twice was sent once: programs
// such as timeout(1) send it to a process and then to its group.
const sameSignal = 50 * time.Millisecond

// add counts a signal, and reports whether it is another one than those that were
// counted before.
func (n *signalCounts) add(s os.Signal, source int, now time.Time) bool {
	n.from[source][s]++
	if n.from[source][s] <= n.seen[s] {
		return false
	}
	n.seen[s] = n.from[source][s]
	isNew := now.Sub(n.last[s]) > sameSignal
	n.last[s] = now
	return isNew
}

// errNoLauncher means that nothing can end the command but the end of this process.
var errNoLauncher = errors.New("this process has no launcher")

// leave ends the command with an exit code, and this process goes on without a terminal,
// the files that it was started with, and a working directory. What it logs is written to a file in dir.
func (l *launcher) leave(code int, dir string) error {
	if l == nil {
		return errNoLauncher
	}
	l.mu.Lock()
	l.left = true
	l.mu.Unlock()
	if err := detach(dir); err != nil {
		return err
	}
	for _, fd := range l.inherited {
		syscall.Close(fd)
	}
	_, err := l.socket.Write([]byte{byte(code)})
	if errors.Is(err, syscall.EPIPE) { // the launcher was killed: the command is over
		err = nil
	}
	return errors.Join(err, l.socket.Close())
}

// keepFromChildren returns the descriptors beyond the standard streams that whoever has
// started this process has left open in it, such as the pipe or the lock of a script, and
// keeps processes that this one starts from inheriting them: a keeper would have them open
// for as long as its command runs. The files that this process has opened by itself are
// not among them.
func keepFromChildren() (inherited []int) {
	open, _ := os.ReadDir("/dev/fd") // without it, there is nothing to be done
	for _, entry := range open {
		fd, err := strconv.Atoi(entry.Name())
		if err != nil || fd <= 2 {
			continue
		}
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			unix.CloseOnExec(fd)
			inherited = append(inherited, fd)
		}
	}
	return inherited
}

// detach takes this process away from its terminal, its standard streams and its working
// directory.
func detach(dir string) error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	log, err := openEngineLog(filepath.Join(dir, folder.EngineLogName))
	if err != nil {
		return err
	}
	defer log.Close()
	for fd, to := range []*os.File{null, null, log} {
		if err := duplicate(int(to.Fd()), fd); err != nil {
			return err
		}
	}
	syscall.Setsid() // fails if this process leads a group, which is then its own
	return os.Chdir("/")
}
