package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/eventlog/group"
	"github.com/abide-run/abide/internal/eventlog/record"
)

// An addition is a batch that is prepared for storing: checked, hashed, joined and sealed.
type addition struct {
	id     event.SessionID
	after  eventlog.End
	end    eventlog.End
	body   []byte
	entry  entry
	jobs   []eventlog.JobChange
	sealed []eventlog.Secret
	events int
	costs  []eventlog.Cost
	family event.SessionID // session that it works for in the end, if it is made; itself if it is no agent
	right  right           // right to write to the session
	place  []byte          // column machine of the session, if it is made
}

// An entry is the part of a session's row that its Info decides. Nil values leave the old ones.
type entry struct {
	info, dir            []byte
	active, busy, listed *bool
}

func newEntry(i eventlog.Info) (entry, error) {
	text, err := json.Marshal(i)
	busy := i.Active || i.Questions > 0 || i.Tasks > 0
	return entry{info: text, dir: []byte(i.Dir), active: new(i.Attended()), busy: &busy, listed: &i.Listed}, err
}

// prepare prepares a batch, and seals its secrets.
func (s *Store) prepare(ctx context.Context, id event.SessionID, batch eventlog.Batch) (*addition, error) {
	end, err := batch.End()
	if err != nil {
		return nil, err
	}
	if size := batchSize(batch); size > maxBatch {
		return nil, fmt.Errorf("the events have %d MiB, and the database takes %d MiB at once: append fewer", size>>20, maxBatch>>20)
	}
	a := &addition{id: id, after: batch.After, end: end, body: record.Join(batch.Events), jobs: batch.Jobs, events: len(batch.Events), costs: eventlog.CostsIn(id, batch.Events), place: s.life.placeOf(batch.Info), family: familyOf(id, batch.Events)}
	if batch.Info != nil {
		if a.entry, err = newEntry(*batch.Info); err != nil {
			return nil, err
		}
	}
	a.sealed, err = s.sealing.Seal(ctx, id, batch.Secrets)
	return a, err
}

// maxBatch is the number of bytes of events that one append can have. The server takes a gibibyte
// at once, and loses the connection if it gets more.
const maxBatch = 900 << 20

func batchSize(b eventlog.Batch) (size int) {
	for _, e := range b.Events {
		size += len(e.Bytes) + 1
	}
	return size
}

// Append implements eventlog.Log.
func (s *Store) Append(ctx context.Context, id event.SessionID, batch eventlog.Batch) (eventlog.End, error) {
	a, err := s.prepare(ctx, id, batch)
	if err == nil {
		var first []event.Event
		if batch.After == (eventlog.End{}) {
			first = batch.Events
		}
		a.right, err = s.right(ctx, id, first)
		if errors.Is(err, eventlog.ErrNotFound) {
			err = eventlog.ErrConflict
		}
	}
	if err == nil {
		err = s.queue.Do(ctx, s.appending(a))
	}
	if err != nil {
		return eventlog.End{}, fmt.Errorf("append to %s after event %d: %w", id, batch.After.Seq, err)
	}
	s.era.noteEnd(id, a.end)
	return a.end, nil
}

// appending returns the op that stores an addition. Most are a single statement.
func (s *Store) appending(a *addition) *op {
	o := &op{Op: group.Op{Events: a.events}, stored: a.isStored}
	if len(a.jobs) == 0 && len(a.sealed) == 0 {
		o.statement, o.refused = a.statement, func() error { return s.whyRefused(a) }
		return o
	}
	o.apply = func(ctx context.Context, w *writing, tx pgx.Tx) error {
		text, args := a.statement(w)
		return s.store(ctx, tx, a, text, args)
	}
	return o
}

// store stores an addition with a statement, and then its jobs and secrets.
func (s *Store) store(ctx context.Context, tx pgx.Tx, a *addition, text string, args []any) error {
	var session int64
	err := tx.QueryRow(ctx, text, args...).Scan(&session)
	if errors.Is(err, pgx.ErrNoRows) {
		return refusal{s.reason(ctx, tx, a)}
	}
	if err != nil {
		return err
	}
	for _, c := range a.jobs {
		if err := changeJob(ctx, tx, session, c); err != nil {
			return err
		}
	}
	return putSecrets(ctx, tx, session, a.sealed)
}

// The statements that store an addition have three parts. The first one, moved, makes or changes
// the row of the session if it is allowed to, and the others depend on it.
const (
	extending = `WITH moved AS (
		UPDATE sessions SET seq = $2::bigint, head = $3::bytea, modified = greatest($4::bigint, modified + 1), active = coalesce($5::boolean, active), info = coalesce($6::bytea, info),
			dir = coalesce($7::bytea, dir), busy = coalesce($8::boolean, busy), listed = coalesce($9::boolean, listed)
		WHERE name = $1::bytea AND seq = $12::bigint - 1 AND head = $13::bytea AND NOT deleted AND damaged IS NULL AND %s = $11::bigint%s
		RETURNING id)`
	creating = `WITH moved AS (
		INSERT INTO sessions (name, seq, head, created, modified, active, info, dir, busy, listed, parent, shared, base, family, machine)
		SELECT $1::bytea, $2::bigint, $3::bytea, $4::bigint, $4::bigint, coalesce($5::boolean, false), coalesce($6::bytea, '{}'::bytea), coalesce($7::bytea, ''::bytea), coalesce($8::boolean, false), coalesce($9::boolean, false), $13::bigint, $12::bigint - 1, $14::bytea, $15::bytea, $16::bytea
		WHERE %s = $11::bigint%s
		ON CONFLICT (name) DO NOTHING RETURNING id)`
	storing   = `, stored AS (INSERT INTO records (session, first, head, body) SELECT id, $12::bigint, $3::bytea, $10::bytea FROM moved)`
	returning = ` SELECT id FROM moved`
)

// arguments returns the arguments that extending and creating share.
func (a *addition) arguments(w *writing) []any {
	e := a.entry
	return []any{[]byte(a.id), int64(a.end.Seq), a.end.Hash[:], w.now(), e.active, e.info, e.dir, e.busy, e.listed, a.body, w.generation, int64(a.after.Seq + 1)}
}

// statement returns the statement that stores an addition, without its jobs and secrets.
func (a *addition) statement(w *writing) (string, []any) {
	if a.after == (eventlog.End{}) {
		return a.creation(w, nil)
	}
	return a.counting(w, extending, append(a.arguments(w), a.after.Hash[:]))
}

// creation returns the statement that makes a session. It is a fork if it has a parent.
func (a *addition) creation(w *writing, parent *int64) (string, []any) {
	var base []byte
	if parent != nil {
		base = a.after.Hash[:]
	}
	return a.counting(w, creating, append(a.arguments(w), parent, base, a.agentOf(), a.place))
}

// agentOf returns the family of an agent; nil for any other session.
func (a *addition) agentOf() []byte {
	if a.family == a.id {
		return nil
	}
	return []byte(a.family)
}

// counting completes a statement: with its fence, and with the costs of the addition if there are
// some.
func (a *addition) counting(w *writing, moved string, args []any) (string, []any) {
	held := ""
	if a.right.fence != 0 {
		args = append(args, []byte(a.right.family), a.right.fence)
		held = holding(len(args)-1, len(args))
	}
	moved = fmt.Sprintf(moved, w.current, held)
	if len(a.costs) == 0 {
		return moved + storing + returning, args
	}
	text := fmt.Sprintf(`, counted AS (INSERT INTO costs (session, %s) SELECT $1, %s FROM moved, %s%s)`, costColumns, costColumns, unnestCosts(len(args)+1), onSameCost)
	return moved + storing + text + returning, append(args, costArrays(a.costs)...)
}

// whyRefused returns the reason why a statement has stored nothing.
func (s *Store) whyRefused(a *addition) error {
	return s.explain(s.reason(context.Background(), s.reading, a))
}

// reason returns the reason why an addition cannot be stored. That another server owns the session
// comes first: it then decides where the session ends.
func (s *Store) reason(ctx context.Context, q querier, a *addition) error {
	if err := s.fenced(ctx, q, a.right); err != nil {
		return err
	}
	return whyRefused(ctx, q, a)
}

func whyRefused(ctx context.Context, q querier, a *addition) error {
	h, err := findHead(ctx, q, a.id)
	switch {
	case err == nil && h.Damage != nil && a.after != (eventlog.End{}):
		return h.Damage
	case err == nil || errors.Is(err, eventlog.ErrNotFound):
		return eventlog.ErrConflict
	}
	return err
}

// isStored reports whether the chain of the session passes through the end of an addition. Nobody
// else can have stored an event with its id.
func (a *addition) isStored(ctx context.Context, conn *pgx.Conn) (bool, error) {
	h, err := findHead(ctx, conn, a.id)
	if errors.Is(err, eventlog.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return reaches(ctx, conn, h, a.end)
}

// reaches reports whether the chain of a session passes through an end.
func reaches(ctx context.Context, conn *pgx.Conn, h record.Head, want eventlog.End) (bool, error) {
	if h.End.Seq < want.Seq {
		return false, nil
	}
	end, err := record.EndAt(ctx, rows{conn}, h, want.Seq)
	if _, damaged := errors.AsType[*record.Fault](err); damaged {
		return false, nil
	}
	return end == want, err
}
