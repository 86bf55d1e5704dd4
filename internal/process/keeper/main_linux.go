package keeper

import (
	"errors"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"github.com/abide-run/abide/internal/process/identity"
	"github.com/abide-run/abide/internal/process/output"
	"github.com/abide-run/abide/internal/process/record"
	"github.com/abide-run/abide/internal/process/sandbox/confine"
	"github.com/abide-run/abide/internal/process/sys"
)

func init() {
	if len(os.Args) > 0 && os.Args[0] == Name {
		runtime.LockOSThread()
		syscall.Exit(run())
	}
	if len(os.Args) > 0 && os.Args[0] == confine.StageName {
		runtime.LockOSThread()
		syscall.Exit(confine.RunStage())
	}
}

// A keeper is the state of a keeper process for one command.
type keeper struct {
	*common
	launch     record.Record
	dir        int    // descriptor of the process's folder
	landlock   int    // descriptor of the rules of the command until it is started; -1 if there are none
	restoreOOM func() // restores the OOM score of the keeper after the command was started
	log        *output.Writer

	pid       int    // process number of the command
	pidfd     int    // pidfd of the command; -1 if there is none or the command has ended
	start     uint64 // start time of the command, as in identity.Process
	running   bool   // true until the command has ended
	childless bool   // true if the keeper has no child process left
	exit      []byte // Exited record that is not in the journal yet
	free      bool   // true when the Ended record is in the journal

	outputs [2]source
	pipe    bool      // true if nothing of the standard output may be dropped
	held    []byte    // standard output of a pipe that could not be written to the log yet
	retryAt time.Time // time of the next attempt to write it
	polled  []sys.PollFD
	daemons
	inputs
	typing
	stopping
	resting

	limits
}

// A source is a descriptor that output comes from.
type source struct {
	fd     int
	stream output.Stream
	full   int // number of consecutive reads that filled the pipe; -1 if it was enlarged
}

// run is the main function of a keeper. It holds one command after the other, as
// long as the daemon that started it is there, and returns the exit code.
func run() int {
	sys.CloseOnExecFrom(launchFD) // the command must not inherit descriptors of the keeper or the daemon
	makePrivate()
	sys.SetName(Name)
	c, setupErr := setUp()
	first := newConn(launchFD)
	for {
		k := &keeper{common: c, pidfd: -1, landlock: -1, outputs: [2]source{{fd: -1}, {fd: -1}}}
		k.stdin, k.terminal, k.slave, k.listener = -1, -1, -1, -1
		k.sent, k.written = map[syscall.Signal]bool{}, map[uint64]bool{}
		if code, again := k.runCommand(first, setupErr); !again {
			return code
		}
	}
}

// runCommand holds one command until it has ended. It reports whether this keeper can
// hold another one.
func (k *keeper) runCommand(first *conn, setupErr error) (code int, again bool) {
	var err error
	if k.launch, err = first.awaitLaunch(); err == errGone {
		return 0, false // nothing was run
	}
	if err == nil {
		err = k.takeFiles(first.files)
		first.files = nil
	}
	if err != nil {
		return k.fail("take the launch", err), false
	}
	if setupErr != nil { // reported only now, because now there is a journal
		return k.fail("get ready", setupErr), false
	}
	if _, err := first.awaitRequest(); err != nil {
		return 0, false // the daemon is gone, or has cancelled the start
	}
	k.fault("unclaimed")
	if won, err := k.claim(); !won {
		if err != nil {
			return k.fail("claim the process", err), false
		}
		return 0, false
	}
	k.fault("claimed")
	syscall.SetNonblock(first.fd, true)
	first.watching, first.shown = true, true
	k.conns = append(k.conns, first)
	if err := k.begin(); err != nil {
		k.note(record.New(Failed).With("reason", err.Error()), true)
		k.reportChange()
		return 0, false
	}
	k.fault("executed")
	k.note(k.withGroup(record.New(Started).WithInt("pid", int64(k.pid)).WithInt("start", int64(k.start))), false)
	k.reportChange()
	k.restoreOOM()
	k.handleRequests(first) // requests may have come with the launch
	k.loop()
	return 0, k.free && k.release(first)
}

// release closes everything that belongs to the ended command, and reports to the
// daemon that the keeper is free. It returns false if the daemon is gone.
func (k *keeper) release(first *conn) bool {
	free := journalRecord(Free)
	for _, c := range k.conns {
		if c != first {
			syscall.Close(c.fd)
		}
	}
	k.closeStdin()
	for i := range k.outputs {
		if s := &k.outputs[i]; s.fd >= 0 {
			k.closeSource(s)
		}
	}
	if k.terminal >= 0 { // the slave first: its last close takes the terminal from the keeper's session
		syscall.Close(k.slave)
		syscall.Close(k.terminal)
	}
	syscall.Close(k.dir)
	syscall.Dup3(0, stateFD, 0) // closes the journal
	*first = conn{fd: first.fd, in: first.in, files: first.files, out: first.out, closed: first.closed}
	if first.closed || syscall.SetNonblock(first.fd, false) != nil {
		return false
	}
	first.sendLine(free)
	return !first.closed && len(first.out) == 0
}

// common is the state of a keeper process that is the same for all its commands.
type common struct {
	self      identity.Process
	wake      int            // descriptor that is readable after a signal
	terminate chan os.Signal // receives SIGTERM: the keeper was asked to end
}

// setUp does what can be done before the launch is received.
func setUp() (*common, error) {
	c := new(common)
	err := sys.AdoptOrphans()
	if err == nil {
		c.self, err = identity.Self()
	}
	if err == nil {
		err = c.catchSignals()
	}
	return c, err
}

// takeFiles stores the descriptors of the folder, the journal and the rules of the command
// that came with the launch.
func (k *keeper) takeFiles(files []int) error {
	want := 2
	if k.launch.Flag("landlock") {
		want = 3
	}
	if len(files) != want {
		return errors.New("it came with " + strconv.Itoa(len(files)) + " files, not with " + strconv.Itoa(want) + ": folder, journal and the rules of the command")
	}
	k.dir = files[0]
	if want == 3 {
		k.landlock = files[2]
	}
	defer syscall.Close(files[1])
	return syscall.Dup3(files[1], stateFD, 0)
}

// fail writes an error to the journal and returns the exit code.
func (k *keeper) fail(what string, err error) int {
	os.Stderr.WriteString("keeper: " + what + ": " + err.Error() + "\n")
	return 1
}

// note appends a record to the journal, and syncs it if it must survive a crash of
// the machine.
func (k *keeper) note(r record.Record, sync bool) bool { return k.noteLines(withTime(r), sync) }

func withTime(r record.Record) []byte { return r.WithInt("time", time.Now().UnixNano()).Line() }

func (k *keeper) noteLines(line []byte, sync bool) bool {
	n, err := syscall.Write(stateFD, line)
	if sync {
		syscall.Fdatasync(stateFD)
	}
	return err == nil && n == len(line)
}

// claim claims the process for this keeper, unless there is a claim already. It
// appends the claim to the journal, and then links the journal to the name of the
// claim file. So the claim is complete as soon as it exists, and needs no new file.
func (k *keeper) claim() (won bool, err error) {
	r := record.New(Claimed).WithInt("pid", int64(k.self.PID)).WithInt("start", int64(k.self.Start)).
		With("boot", k.self.Boot).With("namespace", k.self.Namespace)
	if !k.note(r, false) {
		return false, syscall.ENOSPC
	}
	switch err := sys.Link(k.dir, StateFile, ClaimFile); err {
	case nil:
	case syscall.EEXIST:
		return false, nil
	default:
		return false, err
	}
	if syscall.Faccessat(k.dir, SpecFile, 0, 0) != nil {
		// The daemon has abandoned the process, and is removing the folder with its
		// own claim.
		return false, syscall.Unlinkat(k.dir, ClaimFile)
	}
	return true, nil
}

// Claim writes a claim into the folder of a process if there is none. The first
// claim wins. It is complete as soon as it exists.
func Claim(dir int, temporary string, r record.Record) (won bool, err error) {
	fd, err := syscall.Openat(dir, temporary, syscall.O_WRONLY|syscall.O_CREAT|syscall.O_TRUNC|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return false, err
	}
	defer syscall.Unlinkat(dir, temporary)
	defer syscall.Close(fd)
	line := r.Line()
	if n, err := syscall.Write(fd, line); err != nil || n < len(line) {
		return false, syscall.ENOSPC
	}
	err = sys.Link(dir, temporary, ClaimFile)
	if err == syscall.EEXIST {
		return false, nil
	}
	return err == nil, err
}

// catchSignals makes signals wake the loop. HUP and INT are caught so that commands
// get their default action even if the daemon ignores them. XFSZ is caught so that a
// write beyond the file size limit is an ordinary error.
func (c *common) catchSignals() error {
	var p [2]int
	if err := syscall.Pipe2(p[:], syscall.O_CLOEXEC|syscall.O_NONBLOCK); err != nil {
		return err
	}
	c.wake, c.terminate = p[0], make(chan os.Signal, 1)
	caught := make(chan os.Signal, 8)
	signal.Notify(caught, syscall.SIGCHLD, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT, syscall.SIGXFSZ)
	go func() { // runs as long as the keeper
		for s := range caught {
			if s == syscall.SIGTERM {
				select {
				case c.terminate <- s:
				default:
				}
			}
			syscall.Write(p[1], []byte{0})
		}
	}()
	return nil
}

// fault kills the keeper or its daemon if a test asked for that at this point.
func (k *keeper) fault(point string) {
	switch k.launch.Get("fault") {
	case "keeper@" + point:
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case "daemon@" + point:
		syscall.Kill(os.Getppid(), syscall.SIGKILL)
		newConn(launchFD).awaitRequest() // returns when the daemon is dead
	}
}
