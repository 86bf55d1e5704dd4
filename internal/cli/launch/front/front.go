// Package front is the program of the launcher (see package launch). Its init function
// recognises the commands that may become the engine of other processes; it starts the
// program once more and never returns. Only the real program imports this package.
//
// In a container the program may be the first process, which inherits the orphans of all
// others. Then it starts itself once more too, whatever the command, and does nothing but
// wait for them: see asInit.
//
// If the program cannot be started again, init returns, and this process does everything
// by itself.
package front

import (
	"os"
	"os/signal"
	"syscall"

	"github.com/abide-run/abide/internal/cli/launch"
	"github.com/abide-run/abide/internal/process/sys"
)

func init() {
	makePrivate()
	if isStage(os.Args) {
		return
	}
	if os.Getpid() == 1 {
		if code, ok := asInit(); ok {
			syscall.Exit(code)
		}
		return
	}
	if _, launched := launch.Socket(); launched || !needsLauncher(os.Args) {
		return
	}
	if code, ok := run(); ok {
		syscall.Exit(code)
	}
}

// isStage reports whether this process is a stage of a sealed command. It is the first
// process of its namespace and waits for the others itself. A process between it and its
// keeper would hold the pipe open on which the keeper waits for the start.
func isStage(args []string) bool { return len(args) > 0 && args[0] == sys.StageName }

// dumpableVariable is the environment variable that lets debuggers and measuring programs
// of the same user look into the processes of this program.
const dumpableVariable = "ABIDE_DUMPABLE"

// makePrivate keeps other processes of the user out of this one: a command that was allowed
// must not read keys in its memory, or in the environment that it was started with. The
// launcher has the same environment as the program. Where it cannot be done, there is
// nothing else to do.
func makePrivate() {
	if os.Getenv(dumpableVariable) == "" {
		_ = sys.SetDumpable(false)
	}
}

// commands are the words that name a command, and whether the command may become the
// engine of other processes and end before them. abide serve is there to stay.
var commands = map[string]bool{
	"--headless": true, "-p": true, "--prompt": true,
	"run": true, "answer": true, "questions": true, "rules": true, "abort": true, "sessions": true, "session": true,
	"compact": true, "context": true, "cost": true, "ps": true, "logs": true, "attach": true, "stop": true, "servers": true, "memory": true, "mcp": true, "jobs": true, "status": true, "doctor": true,

	"serve": false, "demo": false, "open": false, "workspace": false, "models": false, "config": false, "trust": false, "audit": false,
	"backup": false, "restore": false, "vacuum": false, "move": false,
	"completion": false, "man": false, "version": false, "help": false, "--help": false, "-h": false, "--version": false,
	"__complete": false, "__completeNoDesc": false,
}

// needsLauncher reports whether the first word that names a command is one that needs a
// launcher. SDKs may give --headless after other flags.
func needsLauncher(args []string) bool {
	for _, arg := range args[min(1, len(args)):] {
		if needs, known := commands[arg]; known {
			return needs
		}
	}
	return false
}

// forwarded are the signals that the launcher passes on. A signal from the terminal
// reaches the program by itself as well.
var forwarded = []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT}

// run starts the program, and returns its exit code when it has ended or left. It reports
// false if the program could not be started.
func run() (code int, ok bool) {
	signals := make(chan os.Signal, 16)
	for _, s := range forwarded {
		if !signal.Ignored(s) {
			signal.Notify(signals, s)
		}
	}
	pid, socket, err := start()
	if err != nil {
		signal.Reset()
		return 0, false
	}
	go func() { // ends with the process
		for s := range signals {
			syscall.Write(socket, []byte{byte(s.(syscall.Signal))}) // a program that has ended needs no signal
		}
	}()
	if code, left := awaitLeave(socket); left {
		return code, true
	}
	return mirror(wait(pid)), true
}

// awaitLeave waits until the program leaves, and returns the exit code of the command, or
// until the program ends, which closes the socket.
func awaitLeave(socket int) (code int, left bool) {
	b := make([]byte, 1)
	for {
		switch n, err := syscall.Read(socket, b); {
		case n == 1:
			return int(b[0]), true
		case err != syscall.EINTR:
			return 0, false
		}
	}
}

// start starts the program with the streams, the arguments and the environment of this
// process, and returns the socket to it. Other descriptors keep their numbers.
func start() (pid, socket int, err error) {
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		return 0, 0, err
	}
	syscall.CloseOnExec(pair[0])
	defer syscall.Close(pair[1])
	text := launch.Text(pair[1])
	if text == "" { // the program would not find its launcher, and start another one
		syscall.Close(pair[0])
		return 0, 0, syscall.ENOTSUP
	}
	pid, err = syscall.ForkExec(executable(), os.Args, &syscall.ProcAttr{
		Env:   append(os.Environ(), launch.Variable+"="+text),
		Files: []uintptr{0, 1, 2},
	})
	if err != nil {
		syscall.Close(pair[0])
	}
	return pid, pair[0], err
}

// executable returns the path of this program. On Linux it is right even if the file was
// replaced meanwhile.
func executable() string {
	const self = "/proc/self/exe"
	if _, err := os.Lstat(self); err == nil {
		return self
	}
	path, _ := os.Executable() // without a path the start fails
	return path
}

// wait waits for the end of a child.
func wait(pid int) (status syscall.WaitStatus) {
	for {
		if _, err := syscall.Wait4(pid, &status, 0, nil); err != syscall.EINTR {
			return status
		}
	}
}

// mirror returns the exit code of the program. If a signal has killed the program, this
// process is killed by the same one.
func mirror(status syscall.WaitStatus) int {
	if !status.Signaled() {
		return status.ExitStatus()
	}
	signal.Reset()
	syscall.Kill(os.Getpid(), status.Signal())
	return 128 + int(status.Signal()) // the signal is ignored
}
