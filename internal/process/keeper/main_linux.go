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
	"github.com/abide-run/abide/internal/process/sys"
)

func init() {
	if len(os.Args) > 0 && os.Args[0] == Name {
		runtime.LockOSThread()
		syscall.Exit(keep())
	}
}

// A keeper is one command and all that there is to know about it.
type keeper struct {
	launch  record.Record
	dir     int    // descriptor of the process's folder
	spareUs func() // takes back what makes the system end the command first
	log     *output.Writer

	pid     int // of the command
	handle  int // readable when it has ended; -1 if that is known already
	start   uint64
	running bool                    // the command has not ended
	empty   bool                    // there is no child at all
	signals map[syscall.Signal]bool // sent by us
	reason  string                  // why it is being stopped; empty if it is not
	pause   time.Duration           // until the next round of killing

	outputs  [2]source
	stdin    int // descriptor to write to; -1 if there is none
	inputs   []*conn
	written  map[uint64]bool // keys of inputs
	order    []uint64
	terminal int // descriptor; -1 if there is none

	wake     int            // readable if there was a signal
	asked    chan os.Signal // TERM
	listener int
	conns    []*conn
	polled   []sys.PollFD

	limits struct {
		until     time.Time
		memory    int64
		processes int
	}
	round time.Time // when to kill
	look  time.Time // when to look at memory and processes
}

// A source is a descriptor that output comes from.
type source struct {
	fd     int
	stream output.Stream
	full   int // reads in a row that filled a pipe
}

// keep is the life of a keeper.
func keep() int {
	k := &keeper{handle: -1, stdin: -1, terminal: -1, listener: -1, outputs: [2]source{{fd: -1}, {fd: -1}}}
	k.signals, k.written = map[syscall.Signal]bool{}, map[uint64]bool{}
	sys.CloseOnExecFrom(LaunchFD) // the command must not have what is ours, or our parents'
	sys.SetName(Name)
	unready := k.getReady()
	first := newConn(LaunchFD)
	var err error
	if k.launch, err = first.await(); err == errGone {
		return 0 // nothing was run
	}
	if err == nil {
		err = k.takeOver(first.files)
	}
	if err != nil {
		return k.die("take the launch", err)
	}
	if unready != nil { // now there is a journal to say it in
		return k.die("get ready", unready)
	}
	if _, err := first.await(); err != nil {
		return 0 // the daemon is gone, or has thought better of it
	}
	if err := k.listen(); err != nil { // not before: the folder is being synced until then
		return k.die("listen", err)
	}
	k.fault("unclaimed")
	if won, err := k.claim(); !won {
		k.unlisten()
		if err != nil {
			return k.die("claim the process", err)
		}
		return 0
	}
	k.fault("claimed")
	syscall.SetNonblock(first.fd, true)
	first.watching = true
	k.conns = append(k.conns, first)
	if err := k.begin(); err != nil {
		k.note(record.New(Failed).With("reason", err.Error()), true)
		k.announce()
		k.unlisten()
		return 0
	}
	k.fault("executed")
	k.note(record.New(Started).WithInt("pid", int64(k.pid)).WithInt("start", int64(k.start)), false)
	k.announce()
	k.spareUs()
	k.obey(first) // what came with the launch
	k.loop()
	return 0
}

// getReady does what can be done before it is known what to keep.
func (k *keeper) getReady() error {
	if err := sys.AdoptOrphans(); err != nil {
		return err
	}
	return k.catchSignals()
}

// takeOver makes the folder and the journal that came with the launch ours.
func (k *keeper) takeOver(files []int) error {
	if len(files) != 2 {
		return errors.New("it came with " + strconv.Itoa(len(files)) + " files, not with folder and journal")
	}
	k.dir = files[0]
	defer syscall.Close(files[1])
	return syscall.Dup3(files[1], stateFD, 0)
}

// die leaves the reason in the journal.
func (k *keeper) die(what string, err error) int {
	os.Stderr.WriteString("keeper: " + what + ": " + err.Error() + "\n")
	return 1
}

// note writes to the journal, and to disk if it must survive the machine.
func (k *keeper) note(r record.Record, sync bool) bool {
	line := r.WithInt("time", time.Now().UnixNano()).Line()
	n, err := syscall.Write(stateFD, line)
	if sync {
		syscall.Fdatasync(stateFD)
	}
	return err == nil && n == len(line)
}

// claim makes the process this keeper's for ever, unless somebody else decided.
func (k *keeper) claim() (bool, error) {
	self, err := identity.Self()
	if err != nil {
		return false, err
	}
	r := record.New(Claimed).WithInt("pid", int64(self.PID)).WithInt("start", int64(self.Start)).
		With("boot", self.Boot).With("namespace", self.Namespace)
	won, err := Claim(k.dir, "claim."+strconv.Itoa(self.PID), r)
	if won && syscall.Faccessat(k.dir, SpecFile, 0, 0) != nil {
		// The daemon has decided that nothing happens, and is removing that decision
		// with everything else.
		return false, syscall.Unlinkat(k.dir, ClaimFile)
	}
	return won, err
}

// Claim writes a claim into a process's folder if there is none. Whoever is
// first decides, and the claim is whole from its first moment.
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

// catchSignals lets the loop wake up. HUP and INT are caught so that commands
// have them as usual even if the daemon was told to ignore them; XFSZ, so that
// a full disk is an error like any other.
func (k *keeper) catchSignals() error {
	var p [2]int
	if err := syscall.Pipe2(p[:], syscall.O_CLOEXEC|syscall.O_NONBLOCK); err != nil {
		return err
	}
	k.wake = p[0]
	k.asked = make(chan os.Signal, 1)
	caught := make(chan os.Signal, 8)
	signal.Notify(caught, syscall.SIGCHLD, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT, syscall.SIGXFSZ)
	go func() { // as long as the keeper
		for s := range caught {
			if s == syscall.SIGTERM {
				select {
				case k.asked <- s:
				default:
				}
			}
			syscall.Write(p[1], []byte{0})
		}
	}()
	return nil
}

// fault is where tests let the power fail: it kills the keeper or its daemon.
func (k *keeper) fault(point string) {
	switch k.launch.Get("fault") {
	case "keeper@" + point:
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case "daemon@" + point:
		syscall.Kill(os.Getppid(), syscall.SIGKILL)
		newConn(LaunchFD).await() // until it is dead
	}
}
