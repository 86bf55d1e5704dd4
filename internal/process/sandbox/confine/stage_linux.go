package confine

import (
	"errors"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"unsafe"

	"github.com/abide-run/abide/internal/process/record"
	"github.com/abide-run/abide/internal/process/sys"
)

// A stage is this same program, started again in new namespaces: it arranges what the
// command sees there, takes its own rights away, and executes the command. Namespaces have
// to be arranged from inside.

// StageName is the name of a stage: its argument zero.
const StageName = sys.StageName

// Stage is the kind of the record that tells a stage what to do:
//
//	program, arg, env, dir  the command
//	landlock                the rules of the command are open
//	sealed                  the stage is process 1 of its namespace; otherwise only the network is new
//	root                    folder that stays writable
//	empty                   folders that are replaced by empty ones that can be written
//	hidden                  files and folders that are replaced by empty ones that cannot
const Stage = "stage"

// Descriptors of a stage.
const (
	OrdersFD   = 3 // record that says what to do
	FailuresFD = 4 // where the stage writes why the command was not executed; closed when it was
	RulesFD    = 5 // rules of Landlock
)

// RunStage is the main function of a stage. It returns the exit code of the command.
func RunStage() int {
	syscall.CloseOnExec(OrdersFD)
	syscall.CloseOnExec(FailuresFD)
	syscall.CloseOnExec(RulesFD)
	o, err := readOrders()
	if err == nil {
		err = raiseLoopback()
	}
	code := 1
	switch {
	case err != nil:
	case o.Flag("sealed"):
		code, err = runSealed(o)
	default:
		err = runOffline(o)
	}
	if err != nil {
		syscall.Write(FailuresFD, []byte(err.Error()))
	}
	return code
}

func readOrders() (record.Record, error) {
	var text []byte
	buf := make([]byte, 64<<10)
	for {
		n, err := syscall.Read(OrdersFD, buf)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return record.Record{}, errors.New("read the orders: " + err.Error())
		}
		if n == 0 {
			break
		}
		text = append(text, buf[:n]...)
	}
	if len(text) > 0 {
		text = text[:len(text)-1] // the line break
	}
	return record.Parse(text)
}

// Requests of network interfaces.
const (
	getFlags = 0x8913
	setFlags = 0x8914
	up       = 1
)

// raiseLoopback switches the loopback interface of the new network on.
func raiseLoopback() error {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return errors.New("make a socket in the new network: " + err.Error())
	}
	defer syscall.Close(fd)
	request := struct {
		name  [16]byte
		flags uint16
		rest  [22]byte
	}{name: [16]byte{'l', 'o'}}
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), getFlags, uintptr(unsafe.Pointer(&request)))
	if errno == 0 {
		request.flags |= up
		_, _, errno = syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), setFlags, uintptr(unsafe.Pointer(&request)))
	}
	if errno != 0 {
		return errors.New("switch on the loopback interface: " + errno.Error())
	}
	return nil
}

// runOffline executes a command that has a network of its own. It returns only if that
// fails.
func runOffline(o record.Record) error {
	runtime.LockOSThread()
	if err := syscall.Chdir(o.Get("dir")); err != nil {
		return errors.New("enter " + o.Get("dir") + ": " + err.Error())
	}
	if err := Apply(Rules{Landlock: rulesOf(o), Sockets: LocalSockets}); err != nil {
		return err
	}
	err := syscall.Exec(o.Get("program"), o.All("arg"), o.All("env"))
	return errors.New("run " + o.Get("program") + ": " + err.Error())
}

func rulesOf(o record.Record) int {
	if o.Flag("landlock") {
		return RulesFD
	}
	return -1
}

// runSealed runs a command and waits for it as process 1 of its namespace. When it returns,
// the kernel ends what the command has left behind.
func runSealed(o record.Record) (int, error) {
	caught := make(chan os.Signal, 1) // signals are for the command; nobody reads them here
	signal.Notify(caught)
	if err := arrange(o); err != nil {
		return 1, err
	}
	rules, err := sealedRules(o)
	if err != nil {
		return 1, err
	}
	pid, err := startSealed(o, rules)
	if err != nil {
		return 1, err
	}
	syscall.Close(FailuresFD)
	for i := range 3 { // the command alone decides when its streams end
		syscall.Close(i)
	}
	for {
		var status syscall.WaitStatus
		ended, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return 1, nil
		case ended == pid && status.Signaled():
			return 128 + int(status.Signal()), nil
		case ended == pid:
			return status.ExitStatus(), nil
		}
	}
}

// startSealed executes the command from a thread that ends with the start.
func startSealed(o record.Record, rules int) (pid int, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if err = Apply(Rules{Landlock: rules, Sockets: LocalSockets}); err != nil {
			return
		}
		pid, err = syscall.ForkExec(o.Get("program"), o.All("arg"), &syscall.ProcAttr{Dir: o.Get("dir"), Env: o.All("env"), Files: []uintptr{0, 1, 2}})
		if err != nil {
			err = errors.New("run " + o.Get("program") + " in " + o.Get("dir") + ": " + err.Error())
		}
	}()
	<-done
	return pid, err
}
