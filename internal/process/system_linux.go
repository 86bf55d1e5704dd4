package process

import (
	"context"
	"fmt"
	"math"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/abide-run/abide/internal/process/cgroup"
	"github.com/abide-run/abide/internal/process/identity"
	"github.com/abide-run/abide/internal/process/keeper"
	"github.com/abide-run/abide/internal/process/record"
	"golang.org/x/sys/unix"
)

type stat = identity.Stat

func bootID() (string, error) { return identity.Boot() }

func tryLock(f *os.File) error {
	for patience := lockPatience; ; patience -= lockPause {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err != unix.EWOULDBLOCK:
			return err
		case patience <= 0:
			return ErrInUse
		}
		time.Sleep(lockPause)
	}
}

// A daemon that is killed while it starts a keeper leaves the lock to the new
// process for a moment, until that process executes the keeper. So tryLock tries
// again for a while.
const (
	lockPatience = time.Second
	lockPause    = 5 * time.Millisecond
)

// unlock releases the lock, also where a child process has inherited the file.
func unlock(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_UN) }

// reserveDisk reserves disk space for a file without making it longer. On a file
// system that cannot reserve space it does nothing.
func reserveDisk(f *os.File, n int64) error {
	err := unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, n)
	if err == unix.EOPNOTSUPP || err == unix.ENOSYS {
		return nil
	}
	return err
}

func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// socketPair returns both ends of a new connection; the second is for a keeper.
func socketPair() (*net.UnixConn, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	theirs := os.NewFile(uintptr(fds[1]), "keeper")
	f := os.NewFile(uintptr(fds[0]), "daemon")
	defer f.Close()
	ours, err := net.FileConn(f)
	if err != nil {
		theirs.Close()
		return nil, nil, err
	}
	return ours.(*net.UnixConn), theirs, nil
}

// sendFiles sends a text, and files along with its first byte.
func sendFiles(conn *net.UnixConn, text []byte, files ...*os.File) error {
	fds := make([]int, len(files))
	for i, f := range files {
		fds[i] = int(f.Fd())
	}
	n, _, err := conn.WriteMsgUnix(text, unix.UnixRights(fds...), nil)
	if err == nil && n < len(text) {
		_, err = conn.Write(text[n:])
	}
	return err
}

// hungUp reports whether the other end of a connection is closed.
func hungUp(conn *net.UnixConn) bool {
	gone := true
	if raw, err := conn.SyscallConn(); err == nil {
		raw.Control(func(fd uintptr) {
			_, _, err := unix.Recvfrom(int(fd), make([]byte, 1), unix.MSG_PEEK|unix.MSG_DONTWAIT)
			gone = err != unix.EAGAIN
		})
	}
	return gone
}

// dial connects to the socket of the keeper, and shows it the open journal: commands in a
// sandbox can connect too, but not open it. It names the folder by its descriptor, because
// the path may be longer than the path of a socket may be.
func (p *proc) dial() (*net.UnixConn, error) {
	dir, err := os.Open(p.dir)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	path := "/proc/self/fd/" + itoa(int(dir.Fd())) + "/" + keeper.SocketFile
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	journal, err := os.Open(filepath.Join(p.dir, keeper.StateFile))
	if err == nil {
		// The record asks for nothing: keepers of older versions do not answer it either.
		err = sendFiles(conn, record.New(keeper.Arm).WithInt("at", math.MaxInt64).Line(), journal)
		journal.Close()
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

func claim(dir string, r record.Record) (won bool, err error) {
	d, err := os.Open(dir)
	if err != nil {
		return false, err
	}
	defer d.Close()
	return keeper.Claim(int(d.Fd()), "claim.daemon", r)
}

// claimant returns the process that a claim names.
func claimant(c record.Record) identity.Process {
	return identity.Process{
		PID: int(c.Int("pid")), Start: uint64(c.Int("start")), Boot: c.Get("boot"), Namespace: c.Get("namespace"),
	}
}

// awaitEnd blocks until a process has ended. It fails only if ctx ends first.
func awaitEnd(ctx context.Context, who identity.Process) error {
	fd, err := who.Open()
	if err != nil {
		return nil // the process is gone
	}
	err = awaitFD(ctx, fd)
	if err == nil { // the process is our child if this program has opened the folder before
		unix.Wait4(who.PID, nil, unix.WNOHANG, nil)
	}
	return err
}

// awaitFD blocks until the process of a pidfd has ended, and closes the pidfd.
func awaitFD(ctx context.Context, fd int) error {
	f := os.NewFile(uintptr(fd), "pidfd")
	defer f.Close()
	defer context.AfterFunc(ctx, func() { f.SetReadDeadline(time.Unix(1, 0)) })()
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	if err := raw.Read(func(fd uintptr) bool { return identity.Ended(int(fd)) }); err != nil {
		return context.Cause(ctx)
	}
	return nil
}

// awaitAll blocks until all processes have ended or ctx ends.
func awaitAll(ctx context.Context, all []stat) {
	for _, s := range all {
		if fd, err := identity.OpenStarted(s.PID, s.Start); err == nil {
			awaitFD(ctx, fd)
		}
	}
}

func marked(variable string) []stat { return identity.Marked(variable) }

// belonging returns the running processes that belong to a command: see survivors.
func belonging(variable, group string, pid int, start uint64) []stat {
	in := map[int]bool{}
	if group != "" {
		for _, member := range cgroup.Processes(group) {
			in[member] = true
		}
	}
	return identity.Related(variable, func(s stat) bool { return in[s.PID] }, pid, start)
}

// MemoryControl says who holds the limit of memory of commands on this system: a control
// group, or the keeper, which measures.
func MemoryControl() (held string, err error) {
	p, err := cgroup.Find()
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("control groups, version %d", p.Version), nil
}

func signalEach(to []stat, sig unix.Signal, note func(record.Record) bool) {
	keeper.SignalEach(to, sig, note)
}

// failHere tells a test that a step is done, and kills the daemon if the test asked for
// that at this point.
func (m *Manager) failHere(point string) {
	if m.opts.AtStep != nil {
		m.opts.AtStep(point)
	}
	if m.opts.fault == "daemon@"+point {
		unix.Kill(os.Getpid(), unix.SIGKILL)
		select {}
	}
}
