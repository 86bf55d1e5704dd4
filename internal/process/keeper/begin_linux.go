package keeper

import (
	"errors"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"github.com/abide-run/abide/internal/process/identity"
	"github.com/abide-run/abide/internal/process/output"
	"github.com/abide-run/abide/internal/process/sandbox/confine"
	"github.com/abide-run/abide/internal/process/sys"
)

// buf is the buffer for output and requests. It is not on the heap, so that it never
// causes a garbage collection.
var buf [128 << 10]byte

// begin starts the command.
func (k *keeper) begin() error {
	k.log = output.NewWriter(k.dir, k.launch.Int("quota"))
	if k.pipe = k.launch.Flag("pipe"); k.pipe {
		k.log = output.NewPipe(k.dir, k.launch.Int("quota"))
	}
	args, env := k.launch.All("arg"), k.launch.All("env")
	dir := k.launch.Get("dir")
	if err := checkDir(dir); err != nil {
		return err
	}
	program, err := lookUp(args[0], dir, env)
	if err != nil {
		return err
	}
	theirs, attr, err := k.openStreams()
	defer closeAll(theirs)
	if err != nil {
		return err
	}
	k.restoreOOM = setOOMScore(int(k.launch.Int("oom")))
	k.makeGroup(lookUpEnv(env, Marker))
	k.pid, err = k.fork(program, args, &syscall.ProcAttr{Dir: dir, Env: env, Files: theirs, Sys: attr})
	if err != nil {
		return explainStart(program, err)
	}
	s, err := identity.StatOf(k.pid)
	if err != nil {
		s.Start = 0 // without it, only this keeper can signal the command
	}
	k.start, k.running = s.Start, true
	if k.pidfd, err = sys.PidfdOpen(k.pid, 0); err != nil {
		k.pidfd = -1 // without it, SIGCHLD reports the end, a little later
	}
	k.setLimits(time.Now())
	k.noteActivity()
	return nil
}

// checkDir returns an error that says why a working directory cannot be used.
func checkDir(dir string) error {
	err := sys.IsFolder(dir)
	switch err {
	case nil:
		return nil
	case syscall.ENOENT:
		return errors.New("the working directory " + dir + " does not exist: choose another")
	case syscall.ENOTDIR:
		return errors.New("the working directory " + dir + " is not a folder: choose another")
	}
	return errors.New("the working directory " + dir + " cannot be used: " + err.Error())
}

// lookUp finds a program as a shell would, in the command's own PATH.
func lookUp(program, dir string, env []string) (string, error) {
	if contains(program, '/') {
		return absolute(dir, program), nil
	}
	for places := lookUpEnv(env, "PATH"); places != ""; {
		var place string
		place, places = cut(places, ':')
		found := absolute(dir, place) + "/" + program
		if info, err := os.Stat(found); err == nil && info.Mode().IsRegular() && syscall.Access(found, executable) == nil {
			return found, nil
		}
	}
	return "", errors.New("there is no program " + strconv.Quote(program) + " in PATH")
}

const executable = 1 // X_OK

// absolute makes a path absolute.
func absolute(dir, path string) string {
	if path == "" {
		return dir
	}
	if path[0] == '/' {
		return path
	}
	return dir + "/" + path
}

func contains(text string, c byte) bool {
	before, _ := cut(text, c)
	return before != text
}

// cut splits a text at the first c.
func cut(text string, c byte) (before, after string) {
	for i := range len(text) {
		if text[i] == c {
			return text[:i], text[i+1:]
		}
	}
	return text, ""
}

func lookUpEnv(env []string, name string) string {
	for i := len(env) - 1; i >= 0; i-- {
		if n, value := cut(env[i], '='); n == name {
			return value
		}
	}
	return ""
}

// explainStart returns an error that says why a program was not executed.
func explainStart(program string, err error) error {
	if _, ok := err.(errUnconfined); ok {
		return err
	}
	switch err {
	case syscall.ENOENT:
		return errors.New("the program " + program + ", or the interpreter that it names, does not exist")
	case syscall.EACCES:
		return errors.New("the program " + program + " may not be executed")
	case syscall.ENOEXEC:
		return errors.New("the program " + program + " has a format that this system does not execute")
	case syscall.E2BIG:
		return errors.New("command and environment are longer than this system allows: put the command into a file")
	}
	return errors.New("run " + program + ": " + err.Error())
}

// openStreams creates the command's descriptors 0, 1 and 2, and keeps their other ends.
func (k *keeper) openStreams() (theirs []uintptr, attr *syscall.SysProcAttr, err error) {
	if k.launch.Flag("tty") {
		return k.openTerminalStreams()
	}
	in, err := k.openInput()
	if err != nil {
		return nil, nil, err
	}
	theirs = append(theirs, uintptr(in))
	for i, stream := range []output.Stream{output.Stdout, output.Stderr} {
		ours, their, err := pipe()
		if err != nil {
			return theirs, nil, err
		}
		theirs = append(theirs, uintptr(their))
		k.outputs[i] = source{fd: ours, stream: stream}
		syscall.SetNonblock(ours, true)
	}
	return theirs, &syscall.SysProcAttr{Setpgid: true}, nil
}

// openInput creates descriptor 0 of a command without a terminal.
func (k *keeper) openInput() (int, error) {
	if !k.launch.Flag("stdin") {
		return syscall.Open("/dev/null", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	}
	their, ours, err := pipe()
	if err != nil {
		return -1, err
	}
	syscall.SetNonblock(ours, true)
	k.stdin = ours
	return their, nil
}

// openTerminalStreams creates a terminal that stays until the keeper closes it. The keeper
// keeps the command's end of it open: otherwise the terminal would hang up when a command
// closes its own, and nobody could open /dev/tty any more. The keeper leads the session of
// the terminal: if the command did, its end would hang up the terminal too, and the system
// would discard what was not read yet.
func (k *keeper) openTerminalStreams() ([]uintptr, *syscall.SysProcAttr, error) {
	master, slave, err := openTerminal()
	if err == nil {
		k.terminal = master
		k.slave, err = sys.Duplicate(slave)
	}
	if err == nil {
		err = sys.Ioctl(slave, syscall.TIOCSCTTY, nil)
	}
	if err != nil {
		return nil, nil, errors.New("open a terminal: " + err.Error())
	}
	k.outputs[0] = source{fd: master, stream: output.Stdout}
	k.resize(uint16(k.launch.Int("rows")), uint16(k.launch.Int("cols")))
	in := slave
	if k.launch.Flag("stdin") {
		k.stdin = master
	} else if in, err = syscall.Open("/dev/null", syscall.O_RDONLY|syscall.O_CLOEXEC, 0); err != nil {
		return []uintptr{uintptr(slave)}, nil, err
	}
	return []uintptr{uintptr(in), uintptr(slave), uintptr(slave)}, &syscall.SysProcAttr{Foreground: true, Ctty: slave}, nil
}

// openTerminal creates a pseudo-terminal and returns both its ends; the command gets
// the second.
func openTerminal() (master, slave int, err error) {
	master, err = syscall.Open("/dev/ptmx", syscall.O_RDWR|syscall.O_NOCTTY|syscall.O_CLOEXEC|syscall.O_NONBLOCK, 0)
	if err != nil {
		return -1, -1, err
	}
	var locked, n int32
	if err := sys.Ioctl(master, syscall.TIOCSPTLCK, unsafe.Pointer(&locked)); err != nil {
		return -1, -1, err
	}
	if err := sys.Ioctl(master, syscall.TIOCGPTN, unsafe.Pointer(&n)); err != nil {
		return -1, -1, err
	}
	slave, err = syscall.Open("/dev/pts/"+strconv.Itoa(int(n)), syscall.O_RDWR|syscall.O_NOCTTY|syscall.O_CLOEXEC, 0)
	return master, slave, err
}

func (k *keeper) resize(rows, cols uint16) error {
	size := [4]uint16{rows, cols} // the other two are sizes in pixels, which are unknown
	return sys.Ioctl(k.terminal, syscall.TIOCSWINSZ, unsafe.Pointer(&size))
}

func pipe() (read, write int, err error) {
	var p [2]int
	err = syscall.Pipe2(p[:], syscall.O_CLOEXEC)
	return p[0], p[1], err
}

func closeAll(fds []uintptr) {
	for i, fd := range fds {
		if i == 0 || fd != fds[i-1] {
			syscall.Close(int(fd))
		}
	}
}

// fork executes a program with a lower priority than the keeper's, and confined if the
// launch says so. On Linux both belong to a thread, are inherited, and cannot be taken
// back. So fork changes a new thread, which then ends.
func (k *keeper) fork(program string, args []string, attr *syscall.ProcAttr) (pid int, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if now, err := syscall.Getpriority(syscall.PRIO_PROCESS, 0); err == nil {
			syscall.Setpriority(syscall.PRIO_PROCESS, 0, min(20-now+int(k.launch.Int("nice")), 19))
		}
		if k.launch.Flag("offline") {
			pid, err = k.forkStage(program, args, attr)
			return
		}
		defer k.enterGroup(attr.Sys)() // a confined thread could not
		if k.launch.Flag("confined") {
			if err = confine.Apply(confine.Rules{Landlock: k.landlock}); err != nil {
				err = errUnconfined{err}
				return
			}
		}
		pid, err = syscall.ForkExec(program, args, attr)
	}()
	<-done
	if k.landlock >= 0 {
		syscall.Close(k.landlock)
		k.landlock = -1
	}
	return pid, err
}

// errUnconfined means that a command was not started because it could not be confined.
type errUnconfined struct{ reason error }

func (e errUnconfined) Error() string {
	return "the sandbox cannot hold this command: " + e.reason.Error()
}
