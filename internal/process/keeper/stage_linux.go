package keeper

import (
	"errors"
	"syscall"

	"github.com/abide-run/abide/internal/process/record"
	"github.com/abide-run/abide/internal/process/sandbox/confine"
	"github.com/abide-run/abide/internal/process/sys"
)

// forkStage starts a command in namespaces of its own: a stage arranges them and executes
// the command. It returns when the command runs.
func (k *keeper) forkStage(program string, args []string, attr *syscall.ProcAttr) (int, error) {
	sealed := k.launch.Flag("sealed")
	namespaces, err := confine.Namespaces(sealed)
	if err != nil {
		return 0, errUnconfined{err}
	}
	namespaces.Setpgid, namespaces.Foreground, namespaces.Ctty = attr.Sys.Setpgid, attr.Sys.Foreground, attr.Sys.Ctty
	orders, feed, err := pipe()
	if err != nil {
		return 0, err
	}
	failures, report, err := pipe()
	if err != nil {
		closeAll([]uintptr{uintptr(orders), uintptr(feed)})
		return 0, err
	}
	files := append(append([]uintptr{}, attr.Files...), uintptr(orders), uintptr(report))
	if k.landlock >= 0 {
		files = append(files, uintptr(k.landlock))
	}
	env := []string{"GOMAXPROCS=2", "GOGC=10", Marker + "=" + lookUpEnv(attr.Env, Marker)}
	defer k.enterGroup(namespaces)()
	open := namespaces.UidMappings != nil && syscall.Geteuid() != 0
	if open { // otherwise the file of the child that takes the users of the namespace belongs to root
		sys.SetDumpable(true)
	}
	pid, err := syscall.ForkExec("/proc/self/exe", []string{confine.StageName}, &syscall.ProcAttr{Env: env, Files: files, Sys: namespaces})
	if open {
		sys.SetDumpable(false)
	}
	syscall.Close(orders)
	syscall.Close(report)
	defer syscall.Close(failures)
	if err != nil {
		syscall.Close(feed)
		return 0, errUnconfined{errors.New("make namespaces: " + err.Error())}
	}
	r := record.New(confine.Stage).With("program", program).WithAll("arg", args).WithAll("env", attr.Env).With("dir", attr.Dir).
		WithFlag("landlock", k.landlock >= 0).WithFlag("sealed", sealed).With("root", k.launch.Get("root")).
		WithAll("empty", k.launch.All("empty")).WithAll("hidden", k.launch.All("hidden"))
	writeAll(feed, r.Line())
	syscall.Close(feed)
	if reason := readAll(failures); len(reason) > 0 {
		var status syscall.WaitStatus
		syscall.Wait4(pid, &status, 0, nil)
		return 0, errUnconfined{errors.New(string(reason))}
	}
	return pid, nil
}

// writeAll writes to a pipe. If its reader is gone, the other pipe says why.
func writeAll(fd int, text []byte) {
	for len(text) > 0 {
		n, err := syscall.Write(fd, text)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return
		}
		text = text[n:]
	}
}

func readAll(fd int) (text []byte) {
	for b := make([]byte, 1024); ; {
		n, err := syscall.Read(fd, b)
		if err == syscall.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			return text
		}
		text = append(text, b[:n]...)
	}
}
