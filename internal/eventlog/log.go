// Package eventlog keeps the events of every session, in order, for good.
//
//   - An append is durable when it returns: all of its events, or none.
//   - A session's events are numbered 1, 2, 3 without gaps, and never change.
//   - Appends name the end they follow, so of two writers one fails.
//   - Every event is chained to those before it; reading verifies what is read.
//
// Sessions are independent: nothing is promised about order between them, and
// damage to one is reported for that one alone.
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

// A Hash is a link of a session's chain.
type Hash [sha256.Size]byte

// An End is where a session's log stops: the last position and its link. The
// zero End is that of a session that does not exist yet.
type End struct {
	Seq  event.Seq
	Hash Hash
}

// Next returns the end after one more event:
//
//	h(n) = SHA-256(h(n-1) ‖ n ‖ SHA-256(bytes))     n as 8 bytes, big endian
//
// A link covers only the digest of the bytes, so that an event can be blanked
// without breaking the chain.
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
	After  End           // the end that the events follow
	Events []event.Event // encoded; their numbers are assigned by the log
	Info   *Info         // what the index says from now on; nil leaves it
	Jobs   []JobChange   // what becomes of rows of this session
	// Secrets are changed together with the log: whoever finds the events finds
	// the secrets that belong to them, and a batch that is refused changes none.
	Secrets []Secret
}

// A Secret is a value that is kept beside the log of a session, never in it.
type Secret struct {
	Name  string
	Value []byte // nil removes it
}

// End checks the batch and returns the end after it. A store calls it before
// anything else, so that what is stored can always be read back.
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

// Info is what the index knows of a session. All of it can be computed from
// the log; the index only saves reading it.
type Info struct {
	Name      string `json:"name,omitempty"`
	Summary   string `json:"summary,omitempty"` // the first line of the first message
	Dir       string `json:"dir,omitempty"`     // the working directory
	Client    string `json:"client,omitempty"`
	Listed    bool   `json:"listed,omitempty"` // has a user message
	Active    bool   `json:"active,omitempty"` // has an unfinished turn
	Questions int    `json:"questions,omitempty"`
	Tasks     int    `json:"tasks,omitempty"` // that go on in the background

	// Waiting means that what is unfinished only waits for an answer. Rows of
	// older versions do not say it, so that their sessions count as due.
	Waiting bool `json:"waiting,omitempty"`
	// Watch names the tasks, so that they can be watched without reading the log.
	// Rows of older versions have only their number.
	Watch []Task `json:"watch,omitempty"`
}

// A Task goes on in the background of a session: the key of the call that began
// it, and the last status that was reported.
type Task struct {
	Key  string `json:"key"`
	Last string `json:"last,omitempty"`
}

// Due reports whether an engine that starts has to read the session's log: there
// is something to do, or there are tasks that the index does not name.
func (i Info) Due() bool { return i.Active && !i.Waiting || i.Tasks > len(i.Watch) }

// Attended reports whether an engine that starts has to attend to the session:
// it is due, or has tasks to watch.
func (i Info) Attended() bool { return i.Due() || len(i.Watch) > 0 }

// Equal reports whether the index says the same.
func (i Info) Equal(other Info) bool { return reflect.DeepEqual(i, other) }

// A Session is a session as the index has it.
type Session struct {
	ID       event.SessionID
	End      End
	Created  time.Time
	Modified time.Time
	Parent   event.SessionID // the session it was forked from, if any
	Shared   event.Seq       // how many of the parent's events it shares
	Damage   *Damage         // set if the session is quarantined
	Info     Info
}

// A Log is an append-only record of events. It is safe for concurrent use.
type Log interface {
	// Append adds a batch and returns the new end. The error is ErrConflict if
	// the session does not end at batch.After, ErrEmpty if the batch has no
	// events, and a *Damage if the session is quarantined. An append after the
	// zero End makes the session.
	//
	// ctx is looked at before the batch is handed over, not after: an error
	// means that nothing was stored. Only ErrClosed leaves it open: if the
	// disk failed during a commit, opening the store anew tells. The store
	// keeps the bytes of the events; nobody may change them.
	Append(ctx context.Context, id event.SessionID, batch Batch) (End, error)

	// Read yields the events after the given position that exist now, each
	// checked against the chain. It ends with a *Damage where the chain breaks.
	// What comes before the position is neither read nor verified: the chain is
	// followed from the link that is stored there. A session is verified by
	// reading it from position 0.
	Read(ctx context.Context, id event.SessionID, after event.Seq) iter.Seq2[event.Event, error]

	// ReadFrom yields the events after an end that the caller has verified
	// before. The error is ErrConflict if the session never had that end.
	ReadFrom(ctx context.Context, id event.SessionID, after End) iter.Seq2[event.Event, error]

	// EndAt returns the end that the session had after n events, so that a reader
	// who knows only a position can go on with ReadFrom. The error is ErrConflict
	// if there are fewer events.
	EndAt(ctx context.Context, id event.SessionID, n event.Seq) (End, error)
}

// A Store is a log with an index of its sessions, and their jobs.
type Store interface {
	Log
	Jobs

	// Session returns what the index knows, or ErrNotFound.
	Session(ctx context.Context, id event.SessionID) (Session, error)

	// Sessions yields all sessions, the last modified first. Deleted ones that
	// live on in their forks are left out.
	Sessions(ctx context.Context) iter.Seq2[Session, error]

	// Active yields the sessions that an engine has to attend to when it starts,
	// the last modified first. Those that only wait for an answer are not among
	// them.
	Active(ctx context.Context) iter.Seq2[Session, error]

	// Reindex corrects what the index says of a session that ends at the given
	// end: an older version may have known less. If the session has moved on,
	// nothing changes. It does not count as a modification.
	Reindex(ctx context.Context, id event.SessionID, at End, info Info) error

	// Fork makes child share the events of parent up to the given end and adds
	// the batch after it. The error is ErrConflict if child exists or the
	// parent's chain has another hash at that position.
	Fork(ctx context.Context, child, parent event.SessionID, batch Batch) (End, error)

	// Delete removes a session. Events that a fork shares stay until the last
	// such fork is deleted; so long the id is taken, and appending to it is a
	// conflict. The error is ErrNotFound if there is none.
	Delete(ctx context.Context, id event.SessionID) error

	// Quarantine marks a session as damaged: it can be read up to the damage
	// and forked before it, but not appended to. Forks made before are theirs
	// alone to judge. A nil damage lifts the mark: the log itself is not changed
	// by either, so a session that is still damaged is found to be so again.
	Quarantine(ctx context.Context, id event.SessionID, d *Damage) error

	// PutSecrets keeps values beside the log that belong to no event, all or
	// none. Secrets go when their session is deleted, and are not forked.
	PutSecrets(ctx context.Context, id event.SessionID, secrets ...Secret) error
	// Secret returns a kept value, or nil.
	Secret(ctx context.Context, id event.SessionID, name string) ([]byte, error)

	// Close waits for appends under way. Whatever comes later gets ErrClosed.
	Close() error
	// Closed returns a channel that is closed when the store takes no more appends,
	// because of Close or because it could not go on. Err says which.
	Closed() <-chan struct{}
	// Err returns why the store takes no more appends, and nil while it does.
	Err() error
}

var (
	// ErrConflict means that the session has moved on since the caller looked.
	ErrConflict = errors.New("the session has moved on")
	// ErrEmpty means that a batch has no events.
	ErrEmpty = errors.New("the batch has no events")
	// ErrNotFound means that there is no such session.
	ErrNotFound = errors.New("no such session")
	// ErrClosed means that the store was closed, or closed itself after a
	// failed sync.
	ErrClosed = errors.New("the log is closed")
	// ErrGone means that what the store keeps its log in is not there any more: it
	// was deleted, moved, replaced, or its disk was unmounted. What is written then
	// reaches nobody who opens the store later.
	ErrGone = errors.New("was deleted, moved or unmounted while it was open")
	// ErrFenced means that another process has taken the store over.
	ErrFenced = errors.New("another process has taken the log over")
)

// A Damage tells where a session's log cannot be trusted.
type Damage struct {
	Session event.SessionID
	Seq     event.Seq // the first position that is damaged
	Reason  string
}

func (d *Damage) Error() string {
	return fmt.Sprintf("session %s is damaged at event %d: %s", d.Session, d.Seq, d.Reason)
}
