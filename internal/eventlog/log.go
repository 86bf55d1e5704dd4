// Package eventlog stores the events of every session, in order and permanently.
//
//   - An append is durable when it returns: all of its events, or none.
//   - A session's events are numbered 1, 2, 3 without gaps, and never change.
//   - An append names the end that it follows, so that one of two concurrent writers
//     fails.
//   - Every event is chained by a hash to the events before it; reading verifies it.
//
// Sessions are independent: nothing is promised about the order of events of different
// sessions, and damage to one session does not affect another.
package eventlog

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"time"

	"github.com/abide-run/abide/internal/event"
)

// A Hash is the hash of a session's chain after one of its events.
type Hash [sha256.Size]byte

// An End is the end of a session's log at some time: the last position, and the hash
// of the chain there. The zero End is that of a session that does not exist yet.
type End struct {
	Seq  event.Seq
	Hash Hash
}

// Next returns the end after one more event:
//
//	h(n) = SHA-256(h(n-1) ‖ n ‖ SHA-256(bytes))     n as 8 bytes, big endian
//
// The hash covers only the digest of the bytes, so that the content of an event can be
// removed without breaking the chain.
func (e End) Next(b []byte) End {
	digest := sha256.Sum256(b)
	var link [sha256.Size + 8 + sha256.Size]byte
	copy(link[:], e.Hash[:])
	binary.BigEndian.PutUint64(link[sha256.Size:], uint64(e.Seq+1))
	copy(link[sha256.Size+8:], digest[:])
	return End{Seq: e.Seq + 1, Hash: sha256.Sum256(link[:])}
}

// A Batch is what one append adds.
type Batch struct {
	After  End           // end that the events follow
	Events []event.Event // events to add; the log assigns their positions
	Info   *Info         // new entry of the index; nil leaves the old one
	Jobs   []JobChange   // changes to the jobs of the session
	// Secrets are changed in the same transaction as the log: a reader that finds
	// the events also finds their secrets, and a batch that fails changes none.
	Secrets []Secret
}

// A Secret is a value that is stored for a session outside its log. What a store writes to
// disk is sealed with a key that is not in the store, and bound to the session and the
// name: a copy of the store gives no secret away, and a value cannot be moved.
type Secret struct {
	Name  string
	Value []byte // nil removes the secret
}

// End checks the batch and returns the end after it. A store calls it first, so that
// it never stores anything that could not be read back.
func (b Batch) End() (End, error) {
	if len(b.Events) == 0 {
		return End{}, ErrEmpty
	}
	end := b.After
	for _, e := range b.Events {
		parsed, err := event.Parse(end.Seq+1, e.Bytes)
		if err != nil {
			return End{}, err
		}
		if parsed.Type != e.Type {
			return End{}, fmt.Errorf("event %d says that it is %s, its bytes say %s", parsed.Seq, e.Type, parsed.Type)
		}
		if bytes.IndexByte(e.Bytes, '\n') >= 0 {
			return End{}, fmt.Errorf("event %d (%s) has a line break outside a string: encode it compactly", parsed.Seq, e.Type)
		}
		end = end.Next(e.Bytes)
	}
	return end, nil
}

// Info is the entry of a session in the index. All of it can be computed from the
// log; the index saves reading the log.
type Info struct {
	Name      string `json:"name,omitempty"`
	Summary   string `json:"summary,omitempty"`   // first line of the first message
	Dir       string `json:"dir,omitempty"`       // working directory
	Client    string `json:"client,omitempty"`    // name of the client that created the session
	Listed    bool   `json:"listed,omitempty"`    // true if the session has a user message
	Active    bool   `json:"active,omitempty"`    // true if the session has an unfinished turn
	Questions int    `json:"questions,omitempty"` // number of open questions
	Tasks     int    `json:"tasks,omitempty"`     // number of tasks that run in the background

	// Waiting is true if the unfinished turn can only go on after a client has
	// answered a question. Entries of older versions lack it, so that their
	// sessions count as due.
	Waiting bool `json:"waiting,omitempty"`
	// Parked is set if the unfinished turn waits for a model that could not be reached:
	// nothing is to be done before its time has come, and the log need not be read.
	Parked *Parked `json:"parked,omitempty"`
	// Watch lists the tasks, so that they can be watched without reading the log.
	// Entries of older versions lack it, and only count the tasks.
	Watch []Task `json:"watch,omitempty"`
	// Workspace is where the files and processes are; nil if that is the machine of the
	// engine. It is in the index so that it is known without reading the log.
	Workspace *event.Workspace `json:"workspace,omitempty"`
}

// Parked is the wait of a turn for its model.
type Parked struct {
	At       int64  `json:"at"`                 // time at which the wait began, in milliseconds since 1970
	WaitMs   int64  `json:"waitMs"`             // time until the model is asked again
	LeftMs   int64  `json:"leftMs"`             // time after which the turn gives the model up
	Told     bool   `json:"told,omitempty"`     // true if the provider said how long to wait
	Endpoint string `json:"endpoint,omitempty"` // place that could not be reached
}

// A Task is a task that runs in the background of a session.
type Task struct {
	Key  string `json:"key"`            // key of the call that began it
	Last string `json:"last,omitempty"` // last status that was reported
	Stop bool   `json:"stop,omitempty"` // true if the task is to be ended
}

// Due reports whether a daemon that starts has to read the session's log, because there
// is something to do, or because there are tasks that the index does not list.
func (i Info) Due() bool { return i.Active && !i.Waiting && i.Parked == nil || i.Tasks > len(i.Watch) }

// Attended reports whether a daemon that starts has to do something for the session:
// it is due, waits for a model, or has tasks to watch.
func (i Info) Attended() bool { return i.Due() || i.Parked != nil || len(i.Watch) > 0 }

// Equal reports whether two entries are the same.
func (i *Info) Equal(other *Info) bool { return reflect.DeepEqual(i, other) }

// A Session is a session as the index describes it.
type Session struct {
	ID       event.SessionID
	End      End
	Created  time.Time
	Modified time.Time
	Parent   event.SessionID // session that it was forked from; empty if it is no fork
	Shared   event.Seq       // number of events that it shares with the parent
	Damage   *Damage         // damage for which the session is quarantined; nil if it is not
	Row      int64           // number that the store gave it; it orders sessions that were modified at the same time
	Info     Info
}

// A Log is an append-only record of events. It is safe for concurrent use.
type Log interface {
	// Append adds a batch and returns the new end. The error is ErrConflict if
	// the session does not end at batch.After, ErrEmpty if the batch has no
	// events, and a *Damage if the session is quarantined. An append after the
	// zero End creates the session.
	//
	// An error means that nothing was stored: ctx is only checked before the batch
	// is handed to the writer. The one exception is ErrClosed after the disk failed
	// during a commit: whether the batch was stored is then known after the store
	// was opened again. The store keeps the bytes of the events; they must not be
	// changed afterwards.
	Append(ctx context.Context, id event.SessionID, batch Batch) (End, error)

	// Read yields the events after the given position that exist now, and checks
	// each against the chain. It ends with a *Damage where the chain breaks.
	// Events before the position are neither read nor verified: Read trusts the
	// hash that is stored there. To verify a session, read it from position 0.
	Read(ctx context.Context, id event.SessionID, after event.Seq) iter.Seq2[event.Event, error]

	// ReadFrom yields the events after an end that the caller has verified
	// already. The error is ErrConflict if the session never had that end.
	ReadFrom(ctx context.Context, id event.SessionID, after End) iter.Seq2[event.Event, error]

	// EndAt returns the end that the session had after n events, for readers that
	// know only a position and want to continue with ReadFrom. The error is
	// ErrConflict if there are fewer events.
	EndAt(ctx context.Context, id event.SessionID, n event.Seq) (End, error)
}

// A Store is a log with an index of its sessions, and with their jobs, secrets and costs.
type Store interface {
	Log
	Jobs
	Ledger

	// Session returns the session as the index describes it, or ErrNotFound.
	Session(ctx context.Context, id event.SessionID) (Session, error)

	// Sessions yields the sessions that a query selects, the last modified first.
	// Sessions that were deleted and are only kept for their forks are left out.
	// They are read in parts, so a caller that stops early costs little.
	//
	// A session that exists before the listing and changes during it is not missed:
	// if it has left the part that is still to be read, it comes at the end. A
	// listing that was continued with Query.After may yield such a session again.
	// Sessions that are created meanwhile are left out.
	Sessions(ctx context.Context, q Query) iter.Seq2[Session, error]

	// Search finds messages in the sessions that have a user message. What it has not
	// searched, it counts: nothing is left out in silence. The error is ErrNoWord if
	// the text has no word.
	Search(ctx context.Context, q Search) (Found, error)

	// Active yields the sessions for which a daemon that starts has to do
	// something (see [Info.Attended]), the last modified first. Sessions that only
	// wait for an answer are left out.
	Active(ctx context.Context) iter.Seq2[Session, error]

	// Reindex replaces the entry of a session that ends at the given end, because
	// an older version may have written less into it. If the session has another
	// end by now, nothing changes. It does not count as a modification.
	Reindex(ctx context.Context, id event.SessionID, at End, info Info) error

	// Fork makes child share the events of parent up to the given end and adds
	// the batch after it. The error is ErrConflict if child exists or the
	// parent's chain has another hash at that position.
	Fork(ctx context.Context, child, parent event.SessionID, batch Batch) (End, error)

	// Delete removes a session. Events that a fork shares stay until the last
	// such fork is deleted; until then the id is in use, and appending to it fails
	// with ErrConflict. The error is ErrNotFound if there is no such session.
	Delete(ctx context.Context, id event.SessionID) error

	// Quarantine marks a session as damaged: it can be read up to the damage
	// and forked before it, but not appended to. Its existing forks are not marked.
	// A nil damage removes the mark. The log itself is not changed: a session that
	// is still damaged is found to be so again when it is read.
	Quarantine(ctx context.Context, id event.SessionID, d *Damage) error

	// PutSecrets stores secrets that belong to no event, all of them or none.
	// Secrets are deleted with their session, and a fork does not get them.
	PutSecrets(ctx context.Context, id event.SessionID, secrets ...Secret) error
	// Secret returns the value of a secret, or nil if there is none. The error is
	// ErrSealed if the value cannot be opened: nothing else of the session is affected,
	// and the secret can be replaced or removed.
	Secret(ctx context.Context, id event.SessionID, name string) ([]byte, error)

	// Close waits for appends that have begun. Later calls get ErrClosed.
	Close() error
	// Closed returns a channel that is closed when the store accepts no more
	// appends, because of Close or because of a failure. Err says which.
	Closed() <-chan struct{}
	// Err returns the reason why the store accepts no more appends, and nil as long
	// as it does.
	Err() error
}

var (
	// ErrConflict means that the session has changed since the caller read it.
	ErrConflict = errors.New("the session has moved on")
	// ErrEmpty means that a batch has no events.
	ErrEmpty = errors.New("the batch has no events")
	// ErrNotFound means that there is no such session.
	ErrNotFound = errors.New("no such session")
	// ErrClosed means that the store was closed, or closed itself after a
	// failed sync.
	ErrClosed = errors.New("the log is closed")
	// ErrGone means that a file of the store was deleted, moved or replaced, or that
	// its disk was unmounted. Anything written after that would be lost for the next
	// process that opens the store.
	ErrGone = errors.New("was deleted, moved or unmounted while it was open")
	// ErrSealed means that the stored value of a secret cannot be opened, because the key
	// is missing or another one, or because the value was changed or moved.
	ErrSealed = errors.New("the stored secret cannot be opened")
	// ErrFenced means that another process has taken the store over.
	ErrFenced = errors.New("another process has taken the log over")
	// ErrNotOwner means that another server writes to the session. The store itself goes on.
	ErrNotOwner = errors.New("another server works on the session")
)

// An Owned is the error for a write to a session that another live server works on.
type Owned struct {
	Session event.SessionID
	Server  string // id of that server
	Address string // where the other servers reach it
}

func (o *Owned) Error() string {
	return fmt.Sprintf("session %s is worked on by the server at %s", o.Session, o.Address)
}

// Is makes an Owned an ErrNotOwner.
func (o *Owned) Is(target error) bool { return target == ErrNotOwner }

// A Fence is what a server shows to change something of a session elsewhere. That of a later owner is
// greater.
type Fence struct {
	Family event.SessionID // the session that works for a person; its agents have the same fence
	Era    int64           // counts what may have lost numbers of the database
	Number int64           // number of the claim
}

// An Away is the error for a write to a session whose files and commands are with a server that
// does not run.
type Away struct {
	Session event.SessionID
	Machine string // id of the data folder of that server
}

func (a *Away) Error() string {
	return fmt.Sprintf("the files and commands of session %s are on the machine of another server, which does not run (its data folder has the id %s): here the session can be read and forked; it goes on when that server is back", a.Session, a.Machine)
}

// Is makes an Away an ErrNotOwner.
func (a *Away) Is(target error) bool { return target == ErrNotOwner }

// A Damage is the error for a session whose log is damaged.
type Damage struct {
	Session event.SessionID
	Seq     event.Seq // first position that is damaged
	Reason  string
}

func (d *Damage) Error() string {
	return fmt.Sprintf("session %s is damaged at event %d: %s", d.Session, d.Seq, d.Reason)
}
