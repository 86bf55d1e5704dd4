// Package keeper is the process that stays with a command from its first moment
// to its last. It is our own program started again under another name, and
// taken over here, in init, before the rest of the program is initialised: so
// this package imports little, and every program that starts keepers imports
// it.
//
// A keeper claims its process, starts the command, reads its output into the
// log, passes input on, carries out stops and limits, and records the end. It
// needs nobody: without the daemon that started it, it listens on a socket in the
// process's folder for the next, and its journal there says the rest. If a keeper is killed its claim
// remains and its journal has no end; that is how a process is lost.
//
// When nothing is left of a command, its keeper can have another: but only from
// the daemon that started it, and only if the end is in the journal.
//
// Everything happens on one thread, in the order in which the system tells it.
package keeper

// Name is what a keeper is called: its first argument.
const Name = "abide-keeper"

// Descriptors of a keeper. It is started with the first alone, and may wait there
// long before there is anything to keep. With the launch come the folder of the
// process and its journal, which becomes standard error, so that the keeper's last
// words are there too.
const (
	LaunchFD = 3 // the socket to whoever starts it
	stateFD  = 2
)

// Files in the folder of a process.
const (
	SpecFile   = "spec"  // what was asked for
	ClaimFile  = "claim" // who decided about it, once and for ever
	StateFile  = "state" // what happened, in order
	SocketFile = "sock"  // where a keeper listens whose daemon is gone
)

// Marker is the variable by which the processes of a command are found when
// their keeper is gone.
const Marker = "ABIDE_PROCESS"

// MaxInput is how many bytes of input go into one request.
const MaxInput = 64 << 10

// Kinds of records between a keeper and its daemon.
const (
	Launch = "launch" // to the keeper: what to run. Only on the launch socket
	Go     = "go"     // to the keeper: run it, all that has to be on disk is. Only there, too
	Watch  = "watch"  // to the keeper: tell me of changes
	Meet   = "meet"   // to the keeper: here is another connection
	Arm    = "arm"    // to the keeper: tell me once there is output after an offset
	Stdin  = "stdin"
	Resize = "resize"
	Signal = "signal" // also in the journal, before the signal is sent
	Stop   = "stop"

	OK      = "ok"
	Refused = "refused"
	Changed = "changed" // the journal has something new, up to an offset: what comes after it may not be on disk
	Free    = "free"    // as changed, and nothing is left of the command: launch another. Only on the launch socket
	Size    = "size"    // the output has something new
	Reading = "reading" // whether the command waits for somebody to type
)

// Kinds of records in a journal and a claim.
const (
	Claimed   = "claimed"   // by a keeper
	Abandoned = "abandoned" // by a daemon that found no keeper: nothing was run and nothing will be
	Started   = "started"
	Failed    = "failed"
	Stopping  = "stopping"
	Exited    = "exited"
	Ended     = "ended" // nothing is left of it
	Lost      = "lost"  // by a daemon
	Seen      = "seen"  // by a daemon
	Dropped   = "dropped"
)
