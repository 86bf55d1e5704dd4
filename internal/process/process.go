// Package process runs commands that outlive whoever started them.
//
// Every command has a keeper: a small process of its own that reads the
// command's output, writes it to disk and records how it ended. The keeper does
// not need the daemon; a [Manager] that is opened later finds it again.
//
//   - A start is idempotent: one key is one process, however often it is asked
//     for, by however many callers, across any crash.
//   - A process that could not be started is never reported as started.
//   - A process is running and known, ended with its exact status and output, or
//     reported lost. It is never absent and never doubled.
//   - Output is kept in order of arrival, to the byte, within a quota. What does
//     not fit is dropped from the middle and counted; the command never notices.
//   - An ended process has all the output that it wrote: the end is announced
//     after the last byte is in the log and the record is synced.
//   - Nothing that is not ours is ever signalled, and every signal is written
//     down first.
//   - Who does not own a process cannot tell it from one that never was.
//
// Memory does not depend on how much a command prints. docs/PROCESSES.md has the
// files on disk and what cannot be promised.
package process

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// An ID names a process for life. It is made from owner and key, so it is the
// same for every attempt at one start.
type ID string

// An Owner is who a process belongs to: a session, with its tenant if there are
// several. Nobody else can see the process. It is never empty.
type Owner string

// A Spec says what to run.
type Spec struct {
	// Key makes the start idempotent, together with Owner. A second start with the
	// same key and the same Command, Args, Dir, Class, Stdin and kind of terminal
	// is the same process; if one of these differs, it is ErrConflict. Env,
	// Title, Limits and sizes may differ: the first start's are used.
	Key   string
	Owner Owner

	Command string   // for the shell; exclusive with Args
	Args    []string // program and arguments, without a shell; exclusive with Command
	Dir     string   // absolute working directory
	Env     []string // the whole environment, "NAME=value"; Options.Env if nil. It is not written to disk
	Title   string   // for people

	Class  Class
	TTY    *Size // a terminal of this size instead of pipes
	Stdin  bool  // keep standard input open for WriteStdin; otherwise it is empty
	Limits Limits
	Quota  int64 // bytes of disk for the output; Options.Quota if zero
}

// A Class says which limits apply.
type Class string

const (
	Job     Class = "job"     // has an end, and limits. The default
	Service Class = "service" // runs until it is stopped: no limits
)

// Size is the size of a terminal, in characters.
type Size struct{ Rows, Cols uint16 }

// Limits end a job that takes too much, with all its children. Zero is no limit.
// Memory and processes are those of the whole tree, looked at several times in a
// second.
type Limits struct {
	Time      time.Duration // from the start, also for children that live on
	Memory    int64         // resident bytes
	Processes int
}

// A State is where a process is in its life.
type State string

const (
	Starting      State = "starting"        // not known yet whether it starts
	Running       State = "running"         //
	Stopping      State = "stopping"        // asked to end, and not gone yet
	Exited        State = "exited"          // ended by itself, or by a signal that is not ours
	FailedToStart State = "failed_to_start" // nothing ever ran
	Killed        State = "killed"          // ended because of Stop, Signal or a limit
	Lost          State = "lost"            // how it ended is not known: its keeper was killed, or the machine restarted
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
	Args    []string // what was executed, with the shell if there is one
	Dir     string
	Title   string
	Class   Class
	TTY     bool
	Stdin   bool

	State   State
	Reason  string // why it failed to start, was killed or is lost; for people
	PID     int    // zero if it never ran. For people: it may be somebody else's by now
	Created time.Time
	Started time.Time // zero if it never ran
	Ended   time.Time // zero until it ended

	// Reading means that the process has a terminal, waits for somebody to type
	// something there, and has printed nothing since.
	Reading bool
	// Exit says how the process itself ended; nil if it has not or nobody knows.
	Exit *Exit
	// Lingering means that the process ended while children of it lived on.
	Lingering bool
	// Gone means that nothing of it is left: no child, and no more output.
	Gone bool
	// Survivors are processes of a lost command that could not be ended.
	Survivors []int

	Output Output
	Files  Files
	Seen   bool // MarkSeen was called after the end
	// Dropped means that the output was removed by retention; counts remain.
	Dropped bool
}

// Exit is how a process ended.
type Exit struct {
	Code   int    // the exit code, or 128+N for death by signal N
	Signal string // "SIGKILL", …; empty for an ordinary exit, also one with code 137
	Raw    uint32 // the status as wait(2) gave it
}

// Output counts what a process wrote.
type Output struct {
	Bytes   int64 // all that was written
	Stdout  int64 // of these, to standard output or the terminal
	Stderr  int64 // of these, to standard error
	Omitted int64 // of these, not kept: beyond the quota, or the disk was full
}

// Files says where the parts of a process are.
type Files struct {
	Dir    string // the folder of the process
	Output string // the first bytes of the output, as they were written; all of it if it is small
}

// A Stream is where output came from.
type Stream uint8

const (
	Both   Stream = iota // as a choice: in order of arrival
	Stdout               // also the output of a terminal
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

// A ReadRequest is a choice of output. Offsets count the bytes of both streams
// in order of arrival, from zero, and never change.
type ReadRequest struct {
	Offset int64  // where to begin
	Until  int64  // where to end; the end of the log if zero
	Limit  int    // at most so many bytes; 64 KiB if zero
	Stream Stream // only this one; offsets stay those of the whole log
	// Wait blocks until there is something to return or the process is gone.
	Wait bool
}

// A Chunk is a part of the output.
type Chunk struct {
	Data    []byte
	Runs    []Run // where Data came from, in order
	Next    int64 // the offset to go on from
	Omitted int64 // bytes that were asked for and not kept
	// End means that there is nothing after Next and never will be.
	End bool
}

// A Run is a piece of a Chunk that was read at one time from one stream.
type Run struct {
	Stream Stream
	Offset int64 // in the log
	Len    int   // in Data
	Time   time.Time
}

// A Line is one line of the output, with its line break if it has one.
type Line struct {
	Number int64 // from 1
	Offset int64
	Text   []byte
	Cut    int64 // bytes of the line that are not in Text
}

// An Input is something for a process to read.
type Input struct {
	// Key makes the write idempotent among the last few hundred of the process.
	// It may be empty.
	Key   string
	Data  []byte
	Close bool // nothing comes after Data; for a terminal that is end-of-file
}

// A Retention says what may be removed. What was not marked as seen stays, and
// so does what is not gone.
type Retention struct {
	Output time.Duration // keep output so long after the end
	Record time.Duration // keep key and status so long; longer than anybody may retry a start
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

// A StartError says that nothing was run, and why.
type StartError struct {
	ID     ID
	Reason string
}

func (e *StartError) Error() string { return "the command did not start: " + e.Reason }

// A CapError says that an owner has as much as it may have.
type CapError struct {
	What     string // "running processes" or "bytes of output"
	Has      int64
	Reserved int64 // of these bytes, for what running processes may print
	Wants    int64 // bytes that the refused process may print
	Cap      int64
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
