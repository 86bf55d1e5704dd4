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
	*life
	launch  record.Record
	dir     int    // descriptor of the process's folder
	spareUs func() // takes back what makes the system end the command first
	log     *output.Writer

	pid     int // of the command
	handle  int // readable when it has ended; -1 if that is known already
	start   uint64
	running bool                    // the command has not ended
	empty   bool                    // there is no child at all
	sent    map[syscall.Signal]bool // by us
	reason  string                  // why it is being stopped; empty if it is not
	pause   time.Duration           // until the next round of killing
	exit    []byte                  // how it ended, if that is not in the journal yet
	free    bool                    // nothing is left of it, and that is recorded

	outputs  [2]source
	stdin    int // descriptor to write to; -1 if there is none
	inputs   []*conn
	written  map[uint64]bool // keys of inputs
	order    []uint64
	terminal int           // descriptor; -1 if there is none
	reading  bool          // the command waits for somebody to type
	column   bool          // the last line on the terminal is not complete
	calm     time.Duration // until the next look whether it does

	orphan   bool // who started us is gone: the next daemon has to find us
	listener int  // descriptor; -1 if there is none
	conns    []*conn
	polled   []sys.PollFD

	limits struct {
		until     time.Time
		memory    int64
		processes int
	}
	round time.Time // when to kill
	look  time.Time // when to look at memory and processes
	again time.Time // when to try to listen once more
	sense time.Time // when to look whether the command waits for somebody to type
}

// A source is a descriptor that output comes from.
type source struct {
	fd     int
	stream output.Stream
	full   int // reads in a row that filled a pipe
}

// keep is the life of a keeper: one command after the other, for as long as
// whoever started it is there.
func keep() int {
	sys.CloseOnExecFrom(LaunchFD) // the command must not have what is ours, or our parents'
	sys.SetName(Name)
	l, unready := getReady()
	first := newConn(LaunchFD)
	for {
		k := &keeper{life: l, handle: -1, stdin: -1, terminal: -1, listener: -1, outputs: [2]source{{fd: -1}, {fd: -1}}}
		k.sent, k.written = map[syscall.Signal]bool{}, map[uint64]bool{}
		if code, again := k.keepOne(first, unready); !again {
			return code
		}
	}
}

// keepOne stays with one command. It reports whether this keeper can have another.
func (k *keeper) keepOne(first *conn, unready error) (code int, again bool) {
	var err error
	if k.launch, err = first.awaitLaunch(); err == errGone {
		return 0, false // nothing was run
	}
	if err == nil {
		err = k.takeOver(first.files)
		first.files = nil
	}
	if err != nil {
		return k.die("take the launch", err), false
	}
	if unready != nil { // now there is a journal to say it in
		return k.die("get ready", unready), false
	}
	if _, err := first.await(); err != nil {
		return 0, false // the daemon is gone, or has thought better of it
	}
	k.fault("unclaimed")
	if won, err := k.claim(); !won {
		if err != nil {
			return k.die("claim the process", err), false
		}
		return 0, false
	}
	k.fault("claimed")
	syscall.SetNonblock(first.fd, true)
	first.watching = true
	k.conns = append(k.conns, first)
	if err := k.begin(); err != nil {
		k.note(record.New(Failed).With("reason", err.Error()), true)
		k.announce()
		return 0, false
	}
	k.fault("executed")
	k.note(record.New(Started).WithInt("pid", int64(k.pid)).WithInt("start", int64(k.start)), false)
	k.announce()
	k.spareUs()
	k.obey(first) // what came with the launch
	k.loop()
	return 0, k.free && k.letGo(first)
}

// letGo closes all that belongs to a command of which nothing is left, and offers
// to keep another. It reports whether there is somebody to offer it to.
func (k *keeper) letGo(first *conn) bool {
	free := journalled(Free)
	for _, c := range k.conns {
		if c != first {
			syscall.Close(c.fd)
		}
	}
	k.closeStdin()
	for i := range k.outputs {
		if s := &k.outputs[i]; s.fd >= 0 {
			k.shut(s)
		}
	}
	if k.terminal >= 0 {
		syscall.Close(k.terminal)
	}
	syscall.Close(k.dir)
	syscall.Dup3(0, stateFD, 0) // the journal is not ours any more
	*first = conn{fd: first.fd, in: first.in, files: first.files, out: first.out, closed: first.closed}
	if first.closed || syscall.SetNonblock(first.fd, false) != nil {
		return false
	}
	first.sendLine(free)
	return !first.closed && len(first.out) == 0
}

// A life is what a keeper has whatever it keeps.
type life struct {
	self  identity.Process
	wake  int            // readable if there was a signal
	asked chan os.Signal // TERM
}

// getReady does what can be done before it is known what to keep.
func getReady() (*life, error) {
	l := new(life)
	err := sys.AdoptOrphans()
	if err == nil {
		l.self, err = identity.Self()
	}
	if err == nil {
		err = l.catchSignals()
	}
	return l, err
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
func (k *keeper) note(r record.Record, sync bool) bool { return k.noteLines(dated(r), sync) }

func dated(r record.Record) []byte { return r.WithInt("time", time.Now().UnixNano()).Line() }

func (k *keeper) noteLines(line []byte, sync bool) bool {
	n, err := syscall.Write(stateFD, line)
	if sync {
		syscall.Fdatasync(stateFD)
	}
	return err == nil && n == len(line)
}

// claim makes the process this keeper's for ever, unless somebody else decided.
// Who claims it is in the journal before that gets the name of the claim: so the
// claim is whole from its first moment, and no file has to be made for it.
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
		// The daemon has decided that nothing happens, and is removing that decision
		// with everything else.
		return false, syscall.Unlinkat(k.dir, ClaimFile)
	}
	return true, nil
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
func (l *life) catchSignals() error {
	var p [2]int
	if err := syscall.Pipe2(p[:], syscall.O_CLOEXEC|syscall.O_NONBLOCK); err != nil {
		return err
	}
	l.wake, l.asked = p[0], make(chan os.Signal, 1)
	caught := make(chan os.Signal, 8)
	signal.Notify(caught, syscall.SIGCHLD, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT, syscall.SIGXFSZ)
	go func() { // as long as the keeper
		for s := range caught {
			if s == syscall.SIGTERM {
				select {
				case l.asked <- s:
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
