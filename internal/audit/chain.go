package audit

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/abide-run/abide/internal/audit/stored"
)

// A walk reads a session's log from its first event to its last, and decides what
// can be decided from the records alone: that positions have no gap (I1), and that
// the chain of hashes holds (I6). Each event that can be read goes to the rule sets.
type walk struct {
	*auditor
	scene *scene
	sets  *ruleSets
	seq   int64  // position of the last event
	hash  []byte // hash of the chain after that event
	lost  bool   // true if the hash before the next event is not known
	blind bool   // true if something could not be read: the rule sets get no more events
	bare  bool   // true if only the records are checked
}

// A segment is the part of a log that one session's records hold.
type segment struct {
	row, last int64
	own       bool
}

// errStop ends the reading of a segment.
var errStop = errors.New("the segment is over")

// run walks through the whole log.
func (w *walk) run(ctx context.Context) error {
	segments, err := w.lineage(ctx)
	if err != nil {
		return err
	}
	w.hash = make([]byte, sha256.Size)
	for _, seg := range segments {
		if err := w.segment(ctx, seg); err != nil {
			return err
		}
		if !seg.own {
			w.base(seg.last)
		}
	}
	row := w.scene.session
	if w.seq == row.Seq && !w.lost && !bytes.Equal(w.hash, row.Head) {
		w.scene.broken("chain.index", max(row.Seq, 1), "the index has another hash for event %d than the log", row.Seq)
	}
	return nil
}

// lineage returns where the events are, the oldest first.
func (w *walk) lineage(ctx context.Context) ([]segment, error) {
	row := w.scene.session
	segments := []segment{{row.Row, row.Seq, true}}
	if parent, found, err := w.folder.Session(ctx, row.Parent); err == nil && found && !parent.Deleted {
		w.scene.parent = parent.Name
	}
	for last := row.Shared; last > 0; last = min(last, row.Shared) {
		parent, found, err := w.folder.Session(ctx, row.Parent)
		if err != nil {
			return nil, err
		}
		if !found || parent.Row >= row.Row {
			w.scene.broken("fork.orphaned", w.scene.session.Shared+1, "the session is a fork of one that is gone, so its first %d events are lost", last)
			w.seq, w.lost, w.blind = last, true, true
			w.sets.order.lose()
			break
		}
		if parent.Seq < last {
			w.scene.broken("fork.beyond", w.scene.session.Shared+1, "the session shares %d events with a session that has %d", last, parent.Seq)
		}
		if row = parent; last > row.Shared {
			segments = append([]segment{{row.Row, last, false}}, segments...)
		}
	}
	return segments, nil
}

// base compares the hash that a fork is based on with that of its parent.
func (w *walk) base(at int64) {
	row := w.scene.session
	if at == row.Shared && w.seq == at && !w.lost && !bytes.Equal(w.hash, row.Base) {
		w.scene.broken("chain.base", row.Shared+1, "the index has another hash for the %d events that the fork shares than the parent", row.Shared)
	}
}

// segment walks through the records of a segment.
func (w *walk) segment(ctx context.Context, seg segment) error {
	w.scene.own = seg.own
	for r, err := range w.folder.Records(ctx, seg.row) {
		if err == nil {
			err = w.record(r, seg)
		}
		if errors.Is(err, errStop) {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			w.broken("store.unreadable", w.seq+1, "the events from %d on cannot be read: %v", w.seq+1, err)
			w.seq, w.lost = seg.last, true
			return nil
		}
	}
	if w.seq < seg.last {
		w.broken("order.missing", w.seq+1, "the log ends after event %d, and the index knows of %d events", w.seq, seg.last)
		w.seq, w.lost = seg.last, true
	}
	return nil
}

// broken notes something after which the rest is not understood.
func (w *walk) broken(rule string, seq int64, format string, args ...any) {
	w.scene.broken(rule, seq, format, args...)
	w.blind = true
}

// record looks at the place and the hash of a record, and at its events.
func (w *walk) record(r stored.Record, seg segment) error {
	switch {
	case r.First > seg.last && seg.own:
		w.scene.broken("order.beyond", seg.last+1, "there is a record of event %d, and the index knows of %d events", r.First, seg.last)
		return errStop
	case r.First > seg.last:
		return errStop
	case r.First <= w.seq:
		w.broken("order.overlap", r.First, "there is a second record of event %d", r.First)
		return nil
	case r.First > w.seq+1:
		w.broken("order.gap", w.seq+1, "the events %d to %d are missing", w.seq+1, r.First-1)
		w.seq, w.lost = r.First-1, true
		w.sets.order.lose()
	}
	if len(r.Head) != sha256.Size {
		w.scene.broken("chain.length", r.First, "the record of event %d has a hash of %d bytes", r.First, len(r.Head))
	}
	for seq, line := range r.Lines() {
		if seq > seg.last {
			if seg.own {
				w.scene.broken("order.beyond", seg.last+1, "there is an event %d, and the index knows of %d events", seq, seg.last)
			}
			return errStop
		}
		w.event(seq, line)
	}
	if !w.lost && !bytes.Equal(w.hash, r.Head) {
		w.scene.broken("chain.broken", r.First, "the chain of hashes breaks in the record of the events %d to %d", r.First, w.seq)
	}
	w.hash, w.lost = append(w.hash[:0], r.Head...), len(r.Head) != sha256.Size
	return nil
}

// next is the chain's hash after one more event.
func next(hash []byte, seq int64, line []byte) []byte {
	digest := sha256.Sum256(line)
	h := sha256.New()
	h.Write(hash)
	h.Write(binary.BigEndian.AppendUint64(nil, uint64(seq)))
	h.Write(digest[:])
	return h.Sum(nil)
}

// event takes an event in.
func (w *walk) event(seq int64, line []byte) {
	before := w.hash
	w.hash, w.seq = next(w.hash, seq, line), seq
	w.progress(w.scene.own)
	if w.bare {
		return
	}
	e, err := stored.Decode(seq, line)
	if err != nil {
		w.broken("envelope.malformed", seq, "event %d is not an envelope: %v", seq, err)
		w.sets.order.lose()
		return
	}
	w.sets.order.envelope(w.scene, &e)
	k, known := kinds()[e.Type]
	if !known || k.sent {
		return
	}
	b, err := read(e.Data)
	if err != nil {
		w.broken("body.malformed", seq, "the body of event %d (%s) cannot be read: %v", seq, e.Type, err)
		return
	}
	if name := k.lacks(e.Data); name != "" {
		w.broken("body.lacks", seq, "the body of event %d (%s) has no %q", seq, e.Type, name)
		return
	}
	w.place(&e, b, before)
	if !w.blind {
		w.sets.fold(w.scene, &e, b)
		w.scene.take(&e, b)
	}
}

// place looks at the event with which a log, or a fork's own part, begins.
func (w *walk) place(e *stored.Event, b *body, before []byte) {
	row := w.scene.session
	switch {
	case e.Seq == 1 && e.Type != "session.start":
		w.broken("start.missing", 1, "the log begins with %s and not with session.start", e.Type)
	case e.Seq == 1 && b.Version != 1:
		w.scene.unknown("start.version", 1, "the log has version %d, which this abide does not know", b.Version)
		w.blind = true
	case !w.scene.own || row.Parent == 0 || e.Seq != row.Shared+1:
	case e.Type != "session.forked":
		w.broken("fork.unmarked", e.Seq, "the fork begins with %s and not with session.forked", e.Type)
	case b.Hash != hex.EncodeToString(before) && !w.lost:
		w.scene.broken("chain.fork", e.Seq, "event %d names another hash for what the fork shares than the parent has", e.Seq)
	}
}

// A ruleSets has what decides the invariants from the events of one session.
type ruleSets struct {
	order     *order
	calls     *calls
	questions *questions
	processes *processes
	news      *news
	stopped   *stopped
	decisions *decisions
	agents    *agents
}

func newRuleSets() *ruleSets {
	return &ruleSets{newOrder(), newCalls(), newQuestions(), newProcesses(), newNews(), newStopped(), newDecisions(), newAgents()}
}

// fold shows an event to all of them, before the scene takes it in.
func (r *ruleSets) fold(s *scene, e *stored.Event, b *body) {
	r.order.fold(s, e, b)
	r.calls.fold(s, e, b)
	r.questions.fold(s, e, b)
	r.processes.fold(s, e, b)
	r.news.fold(s, e, b)
	r.stopped.fold(s, e, b)
	r.decisions.fold(s, e, b)
	r.agents.fold(s, e, b)
}

// end tells those that look at what is open that the log is over.
func (r *ruleSets) end(s *scene) {
	r.calls.end(s)
	r.processes.end(s)
	r.stopped.end(s)
}

// sessionOf says which session a sentence is about, where its name says nothing.
func sessionOf(row int64) string { return fmt.Sprintf("number %d of the index", row) }
