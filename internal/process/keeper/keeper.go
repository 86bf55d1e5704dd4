// Package keeper is the program of the keeper: the process that holds a command from
// its start to its end. A keeper is this same executable, started again under another
// name. The init function of this package recognises the name and never returns, so
// that a keeper runs before the rest of the program is initialised. Therefore this
// package imports little, and every program that starts keepers imports it.
//
// A keeper claims its process, starts the command, writes its output to the log,
// passes input to it, enforces stops and limits, and records the end. It does not
// need a daemon: if the daemon that started it is gone, the keeper listens for the
// next one on a socket in the folder of the process, and its journal there has the
// rest. If a keeper is killed, its claim remains and its journal has no end; then the
// process is lost.
//
// When a command and its children have ended, the keeper can hold another command,
// but only for the daemon that started it, and only if the end is in the journal.
//
// Everything happens on one thread, in the order in which the system reports it.
package keeper

// Name is the name of a keeper: its argument zero.
const Name = "abide-keeper"

// Descriptors of a keeper. It is started with the launch socket only, and may wait on
// it for a long time. The launch brings the folder of the process and its journal.
// The journal becomes standard error, so that an error or a panic of the keeper is
// written there too.
const (
	launchFD = 3 // socket to the daemon that started the keeper
	stateFD  = 2 // the journal
)

// Files in the folder of a process.
const (
	SpecFile   = "spec"  // the spec of the process
	ClaimFile  = "claim" // record of who decided whether the command is run; it never changes
	StateFile  = "state" // the journal: what happened, in order
	SocketFile = "sock"  // socket on which the keeper listens if its daemon is gone
)

// Marker is the name of the environment variable by which the processes of a command
// are found when their keeper is gone.
const Marker = "ABIDE_PROCESS"

// MaxInput is the maximum number of bytes of input in one request.
const MaxInput = 64 << 10

// Kinds of records between a keeper and its daemon.
const (
	Launch  = "launch"  // to the keeper: what to run. Only on the launch socket
	Go      = "go"      // to the keeper: run it, the spec is on disk. Only on the launch socket
	Watch   = "watch"   // to the keeper: report changes on this connection
	Meet    = "meet"    // to the keeper: serve the connection that comes with this record
	Arm     = "arm"     // to the keeper: report once that there is output after an offset
	Stdin   = "stdin"   // to the keeper: write to the standard input of the command
	Consume = "consume" // to the keeper: the output before an offset is not needed any more. Only for a pipe
	Rest    = "rest"    // to the keeper: the command has nothing to do until the next input with a key, and is ended when no daemon was there for a time. Never if the time is zero
	Resize  = "resize"  // to the keeper: change the size of the terminal
	Signal  = "signal"  // to the keeper: send a signal. Also in the journal, before the signal is sent
	Stop    = "stop"    // to the keeper: end the command and its children

	OK      = "ok"      // from the keeper: the request was carried out
	Refused = "refused" // from the keeper: the request was not carried out, and why
	Changed = "changed" // from the keeper: the journal has new records, synced up to an offset
	Free    = "free"    // from the keeper: as Changed, and the command is gone: launch another. Only on the launch socket
	Size    = "size"    // from the keeper: there is new output
	Reading = "reading" // from the keeper: whether the command waits for somebody to type
)

// Kinds of records in a journal and a claim.
const (
	Claimed   = "claimed"   // a keeper has claimed the process: it may run the command
	Abandoned = "abandoned" // a daemon found no claim and made its own: the command was not run and never will be
	Started   = "started"   // the command runs
	Failed    = "failed"    // the command could not be executed
	Stopping  = "stopping"  // the command is being ended
	Exited    = "exited"    // the command ended; children may still run
	Ended     = "ended"     // the command and its children have ended
	Lost      = "lost"      // written by a daemon: the keeper was killed
	Seen      = "seen"      // written by a daemon: the end was reported
	Dropped   = "dropped"   // written by a daemon: the output was removed
)
