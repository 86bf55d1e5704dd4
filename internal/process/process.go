// Package process runs commands that outlive whoever started them.
//
// Every command has a keeper: a small process of its own that reads the
// command's output, writes it to disk and records how it ended. The keeper does
// not need the daemon; a [Manager] that is opened later finds it again.
//
//   - A start is idempotent: one key is one process, however often and by however
//     many callers the start is requested, also across crashes.
//   - A process that could not be started is never reported as started.
//   - A process is running and known, ended with its exact status and output, or
//     reported lost. It is never absent and never doubled.
//   - Output is kept in order of arrival, to the byte, within a quota. What does
//     not fit is dropped from the middle and counted; the command never notices.
//   - An ended process has all the output that it wrote: the end is announced
//     after the last byte is in the log and the record is synced.
//   - Only processes that belong to a command are ever signalled, and every signal
//     is written to the journal before it is sent.
//   - To a caller who does not own it, a process looks like one that never existed.
//
// Memory use does not depend on how much a command prints. docs/PROCESSES.md
// describes the files on disk and what cannot be promised.
package process

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/abide-run/abide/internal/process/keeper"
	"github.com/abide-run/abide/internal/process/sandbox"
)

// An ID names a process and is never given to another one. It is made from owner
// and key, so it is the same for every attempt at one start.
type ID string

// An Owner names the session that a process belongs to, with its tenant if there
// are several. Nobody else can see the process. An owner is never empty.
type Owner string

// A Spec says what to run.
type Spec struct {
	// Key makes the start idempotent, together with Owner. A second start with the
	// same key and the same Command, Args, Dir, Class, Stdin and kind of terminal
	// is the same process; if one of these differs, the start fails with
	// ErrConflict. Env, Title, Limits, sizes and how it is confined may differ: those
	// of the first start are used.
	Key   string
	Owner Owner

	Command string   // text that the shell runs; exclusive with Args
	Args    []string // program and arguments, without a shell; exclusive with Command
	Dir     string   // absolute working directory
	Env     []string // the whole environment, "NAME=value"; Options.Env if nil. It is never written to disk
	Title   string   // name that people see

	// Root is the folder that a confined command may change, as an absolute path without
	// links; Dir if empty. Writable are further folders of that kind. Profile says how the
	// command is confined: as the options of the manager say, or sealed.
	Root     string
	Writable []string
	Profile  sandbox.Profile
	Free     bool // true if the command is not confined: a person has allowed that
	// Require is true if the command must not be started where the whole profile cannot be
	// held, and Offline if it gets no network, whatever the options of the manager say.
	Require, Offline bool
	// Family names the session whose working directories the command has; Owner if empty. Only
	// a workspace that is served to other machines reads it.
	Family Owner
	// Repository is the repository of Root that a confined command may change, if it was
	// found before; it is looked for if nil.
	Repository *sandbox.Repository

	Class  Class
	TTY    *Size // size of the terminal that the command gets instead of pipes; nil for pipes
	Stdin  bool  // true if standard input stays open for WriteStdin; otherwise it is empty
	Limits Limits
	Quota  int64 // bytes of disk for the output; Options.Quota if zero
	// Pipe is true if the standard output is a stream of messages for one reader: nothing of
	// it is dropped but what was consumed, and the command waits when Quota bytes were not
	// consumed yet. It needs no terminal.
	Pipe bool
}

// A Class says what is expected of a command. Limits hold for both.
type Class string

const (
	OneShot Class = "job"     // a command that ends by itself; the default
	Service Class = "service" // a command that runs in the background, until it is stopped or ends
)

// Size is the size of a terminal, in characters.
type Size struct{ Rows, Cols uint16 }

// Limits are what a command may use before it is ended with all its children. Zero is
// no limit. Memory and processes are those of the whole tree. The system holds the limit
// of memory where [MemoryControl] says so; otherwise, and for processes, they are
// measured several times a second.
type Limits struct {
	Time      time.Duration // time from the start, also for children that outlive the command
	Memory    int64         // memory in bytes
	Processes int           // number of processes
}

// A State says how far a process has got, and how it ended.
type State string

const (
	Starting      State = "starting"        // the keeper has not reported yet whether the command runs
	Running       State = "running"         // the command runs
	Stopping      State = "stopping"        // the command was told to end and still runs
	Exited        State = "exited"          // the command ended by itself, or by a signal that this package did not send
	FailedToStart State = "failed_to_start" // the command could not be executed; nothing ran
	Killed        State = "killed"          // the command ended because of Stop, Signal or a limit
	Lost          State = "lost"            // the end of the command is unknown: its keeper was killed, or the machine restarted
)

// Ended reports whether the state is final.
func (s State) Ended() bool {
	return s == Exited || s == FailedToStart || s == Killed || s == Lost
}

// Info is what is known about a process.
type Info struct {
	ID      ID
	Key     string
	Owner   Owner
	Command string
	Args    []string // the executed program and its arguments, including the shell if there is one
	Dir     string
	Title   string
	Class   Class
	TTY     bool
	Stdin   bool
	Pipe    bool            // true if nothing of the standard output is dropped before it was consumed
	Profile sandbox.Profile // how the command is confined; empty if it is not
	Free    bool            // true if the command is not confined, and others here are

	State   State
	Reason  string // reason why the process failed to start, was killed or is lost; for people
	PID     int    // system's process number, zero if nothing ran. Only for display: the system may have given it to another process
	Created time.Time
	Started time.Time // zero if nothing ran
	Ended   time.Time // zero until the process ended

	// Reading is true while the process waits for somebody to type on its terminal
	// and prints nothing.
	Reading bool
	// Exit says how the process itself ended; nil while it runs or if that is unknown.
	Exit *Exit
	// Lingering is true if children of the process still ran when it ended.
	Lingering bool
	// Gone is true when the process and all its children have ended and all output
	// is in the log.
	Gone bool
	// Unkept is true if the keeper was killed and the machine was not restarted since. A
	// process of the command that hides from the search for survivors may still be
	// running, even if Gone is true.
	Unkept bool
	// Survivors are the process numbers of a lost command that could not be ended.
	Survivors []int

	Output Output
	Files  Files
	Seen   bool // true if MarkSeen was called after the end
	// Dropped is true if the output was removed; the counts remain.
	Dropped bool
}

// Exit says how a process ended.
type Exit struct {
	Code   int    // the exit code, or 128+N for death by signal N
	Signal string // "SIGKILL", …; empty if the process exited by itself, even with code 137
	Raw    uint32 // the status as wait(2) gave it
}

// Output counts what a process wrote.
type Output struct {
	Bytes   int64 // bytes written to both streams
	Stdout  int64 // part of Bytes that went to standard output or the terminal
	Stderr  int64 // part of Bytes that went to standard error
	Omitted int64 // part of Bytes that was not kept: beyond the quota, or the disk was full
}

// Files are the paths of what is on disk about a process.
type Files struct {
	Dir    string // folder of the process
	Output string // file with the first bytes of the output; all of it if the output is small
}

// A Stream is one of the streams that a process writes to.
type Stream uint8

const (
	Both   Stream = iota // in a request: both streams, in order of arrival
	Stdout               // standard output, or the terminal
	Stderr
)

func (s Stream) String() string {
	switch s {
	case Stdout:
		return "stdout"
	case Stderr:
		return "stderr"
	}
	return "both"
}

// A ReadRequest says which part of the output to read. Offsets count the bytes of
// both streams in order of arrival, from zero, and never change.
type ReadRequest struct {
	Offset int64  // offset of the first byte
	Until  int64  // offset after the last byte; the end of the log if zero
	Limit  int    // maximum number of bytes; 64 KiB if zero
	Stream Stream // the only stream to read; offsets stay those of the whole log
	// Wait makes Read block until there is something to return or the process is gone.
	Wait bool
}

// A Chunk is a part of the output.
type Chunk struct {
	Data    []byte
	Runs    []Run // streams that Data came from, in order
	Next    int64 // offset to continue reading at
	Omitted int64 // number of requested bytes that were not kept
	// End is true if there is no output after Next and there never will be.
	End bool
}

// A Run is a piece of a Chunk that was read within MaxRun from one stream.
type Run struct {
	Stream Stream
	Offset int64     // offset in the log
	Len    int       // number of bytes in Data
	Time   time.Time // time at which the first byte of the run came
}

// MaxRun is the longest time between the first and the last byte of a run.
const MaxRun = time.Second

// MaxInput is how many bytes of an input are written at once: a longer one is several.
const MaxInput = keeper.MaxInput

// An Input is what WriteStdin writes to the standard input of a process.
type Input struct {
	// Key makes the write idempotent: a write with the key of one of the last few
	// hundred writes is not made again. It may be empty.
	Key   string
	Data  []byte
	Close bool // true to close standard input after Data; a terminal gets end-of-file
}

// A Retention says how long things are kept. Processes that were not marked as
// seen, or are not gone, are kept regardless.
type Retention struct {
	Output time.Duration // time for which output is kept after the end
	Record time.Duration // time for which key and status are kept; it must exceed the time in which a start may be retried
}

// Errors of this package. Use errors.Is.
var (
	ErrNotFound    = errors.New("no such process")
	ErrNoOwner     = errors.New("the owner is missing: say whose process it is")
	ErrConflict    = errors.New("the key belongs to another command: choose a new key")
	ErrInvalid     = errors.New("invalid")
	ErrClosed      = errors.New("the process manager is closed")
	ErrInUse       = errors.New("another program manages the processes of this folder")
	ErrEnded       = errors.New("the process has ended")
	ErrNoStdin     = errors.New("standard input is not open")
	ErrNoTerminal  = errors.New("the process has no terminal")
	ErrDropped     = errors.New("the output is not kept any more")
	ErrUnsupported = errors.New("durable commands need Linux")
)

// A StartError says that no command was run, and why.
type StartError struct {
	ID     ID
	Reason string
}

func (e *StartError) Error() string { return "the command did not start: " + e.Reason }

// A CapError says that a start was refused because its owner is at a cap.
type CapError struct {
	What     string // "running processes" or "bytes of output"
	Has      int64  // amount that the owner uses now
	Reserved int64  // part of Has that is reserved for what running processes may print
	Wants    int64  // bytes that the refused process may print
	Cap      int64  // the most that the owner may use
}

func (e *CapError) Error() string {
	if e.What == capProcesses {
		return fmt.Sprintf("%d processes are running, and %d is the most: stop one, or wait for one to end", e.Has, e.Cap)
	}
	var takes, ways []string
	if kept := e.Has - e.Reserved; kept > 0 {
		takes = append(takes, fmt.Sprintf("the output of earlier commands whose end nobody has seen takes %d bytes", kept))
		ways = append(ways, "look at the earlier ones")
	}
	if e.Reserved > 0 {
		takes = append(takes, fmt.Sprintf("%d bytes are reserved for what running commands may print", e.Reserved))
		ways = append(ways, "stop one that runs, or wait for one to end")
	}
	if len(ways) == 0 {
		ways = append(ways, "give it a smaller quota")
	}
	takes = append(takes, fmt.Sprintf("this one may print %d bytes", e.Wants))
	return fmt.Sprintf("%s, and %d is the most: %s", strings.Join(takes, ", "), e.Cap, strings.Join(ways, ", or "))
}

const (
	capProcesses = "running processes"
	capDisk      = "bytes of output"
)
