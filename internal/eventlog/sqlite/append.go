package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	lib "modernc.org/sqlite/lib"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/eventlog/group"
	"github.com/abide-run/abide/internal/eventlog/record"
)

// An addition is a batch that is prepared for storing. The caller of Append prepares
// it (checks, hashes, joins, encodes and seals), so that the writer only has to store it.
type addition struct {
	id     event.SessionID
	after  eventlog.End
	end    eventlog.End
	body   []byte
	active any // new value of the column; nil leaves the old one
	info   any // likewise
	jobs   []eventlog.JobChange
	sealed []eventlog.Secret // secrets to change, sealed
	events int

	costs     []eventlog.Cost // what the events say of the costs of model requests
	uncounted bool            // true if the sums are damaged, so that the session is counted later
}

// prepare prepares a batch, and seals its secrets.
func (s *Store) prepare(ctx context.Context, id event.SessionID, batch eventlog.Batch) (*addition, error) {
	a, err := newAddition(id, batch)
	if err == nil {
		a.sealed, err = s.sealing.Seal(ctx, id, batch.Secrets)
	}
	return a, err
}

func newAddition(id event.SessionID, batch eventlog.Batch) (*addition, error) {
	end, err := batch.End()
	if err == nil && end.Seq > maxSeq {
		err = fmt.Errorf("a session has room for %d events: fork it", maxSeq)
	}
	if err != nil {
		return nil, err
	}
	a := &addition{id: id, after: batch.After, end: end, body: record.Join(batch.Events), jobs: batch.Jobs, events: len(batch.Events), costs: eventlog.CostsIn(id, batch.Events)}
	if batch.Info != nil {
		text, err := json.Marshal(batch.Info)
		if err != nil {
			return nil, err
		}
		a.active, a.info = batch.Info.Attended(), string(text)
	}
	return a, nil
}

// Append implements eventlog.Log.
func (s *Store) Append(ctx context.Context, id event.SessionID, batch eventlog.Batch) (eventlog.End, error) {
	a, err := s.prepare(ctx, id, batch)
	if err != nil {
		return eventlog.End{}, fmt.Errorf("append to %s: %w", id, err)
	}
	err = s.withJobs(func(jobs bool) error {
		if !jobs {
			a.jobs = nil
		}
		return withCosts(a, func() error {
			return s.queue.Do(ctx, s.adding(a, func(w *writing) (record.Head, error) { return s.append(w, a) }))
		})
	})
	if err != nil {
		return eventlog.End{}, fmt.Errorf("append to %s after event %d: %w", id, batch.After.Seq, err)
	}
	return a.end, nil
}

// adding returns the op that stores an addition with the given function, which returns
// the new head of the session.
func (s *Store) adding(a *addition, store func(*writing) (record.Head, error)) *op {
	var now record.Head
	return &op{
		Op:     group.Op{Events: a.events},
		bytes:  len(a.body),
		fenced: true,
		apply:  func(w *writing) (err error) { now, err = store(w); return err },
		committed: func() {
			s.appends.Add(1)
			s.events.Add(int64(a.events))
			s.heads.set(a.id, now)
			s.search.touch(a.id)
		},
	}
}

// append stores an addition if the session ends at a.after.
func (s *Store) append(w *writing, a *addition) (record.Head, error) {
	if a.after == (eventlog.End{}) {
		return w.createSession(a, record.Head{})
	}
	h, known := s.heads.get(a.id)
	if !known {
		var err error
		if h, err = scanHead(a.id, w.find.QueryRow(string(a.id))); err != nil {
			return record.Head{}, w.refuse(a, err)
		}
	}
	done, err := w.extend.Exec(int64(a.end.Seq), a.end.Hash[:], w.now(), a.active, a.info,
		h.Session, int64(a.after.Seq), a.after.Hash[:])
	if err != nil {
		return record.Head{}, a.damaged(err)
	}
	if n, err := done.RowsAffected(); err != nil || n == 0 {
		return record.Head{}, w.refuse(a, err)
	}
	h.End = a.end
	return h, w.store(a, h)
}

// createSession creates a session that begins with an addition. It is a fork of from,
// unless from is the zero head.
func (w *writing) createSession(a *addition, from record.Head) (record.Head, error) {
	h := record.Head{End: a.end, Parent: from.Session, Shared: a.after.Seq, Base: a.after.Hash}
	var parent, base any
	if h.Parent != 0 {
		parent, base = h.Parent, h.Base[:]
	}
	if a.info == nil {
		a.active, a.info = false, "{}"
	}
	now := w.now()
	done, err := w.create.Exec(string(a.id), int64(a.end.Seq), a.end.Hash[:], now, now, parent, int64(h.Shared), base, a.active, a.info)
	if err != nil {
		return record.Head{}, a.damaged(err)
	}
	if n, err := done.RowsAffected(); err != nil || n == 0 {
		return record.Head{}, w.refuse(a, err)
	}
	if h.Session, err = done.LastInsertId(); err != nil {
		return record.Head{}, err
	}
	return h, w.store(a, h)
}

// store inserts the record of an addition, and its jobs and secrets. It fails if this
// process is fenced. A record that is already in its place is damage: the index does
// not know it.
func (w *writing) store(a *addition, h record.Head) error {
	done, err := w.insert.Exec(key(h.Session, a.after.Seq+1), a.end.Hash[:], a.body, w.generation)
	if code(err) == lib.SQLITE_CONSTRAINT {
		return &eventlog.Damage{Session: a.id, Seq: a.after.Seq + 1, Reason: record.Unknown}
	}
	if err != nil {
		return a.damaged(err)
	}
	if n, err := done.RowsAffected(); err != nil || n == 0 {
		return errors.Join(err, eventlog.ErrFenced)
	}
	for _, c := range a.jobs {
		if err := w.changeJob(h.Session, c); err != nil {
			return err
		}
	}
	if err := w.addCostsOf(a, h.Session); err != nil {
		return err
	}
	return w.putSecrets(h.Session, a.sealed)
}

// refuse returns the reason why an addition cannot be stored. That this process is
// fenced comes first: another process then decides where the session ends.
func (w *writing) refuse(a *addition, err error) error {
	if fenced := w.check(); fenced != nil {
		return fenced
	}
	if err == nil {
		var h record.Head
		if h, err = scanHead(a.id, w.find.QueryRow(string(a.id))); err == nil && h.Damage != nil {
			return refusal{h.Damage}
		}
	}
	if err == nil || errors.Is(err, eventlog.ErrNotFound) {
		return refusal{eventlog.ErrConflict}
	}
	return a.damaged(err)
}

// damaged turns SQLite's error for a corrupt page into a *eventlog.Damage.
func (a *addition) damaged(err error) error {
	if corrupt(err) {
		return &eventlog.Damage{Session: a.id, Seq: a.after.Seq + 1, Reason: brokenPage}
	}
	return err
}
