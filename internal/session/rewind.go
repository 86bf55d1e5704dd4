package session

import (
	"context"
	"fmt"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/workspace"
)

// An Undo restores the files that calls have changed, for the calls whose keys the
// function undone accepts. With look, it changes nothing and returns what it would
// do.
type Undo func(ctx context.Context, id event.SessionID, undone func(key string) bool, look bool) ([]event.RestoredFile, error)

// A Rewind says what is taken back.
type Rewind struct {
	EventID   string
	KeepFiles bool // true if files stay as they are
	Look      bool // true to see what would be done, without doing it
}

// A Rewound tells what was taken back.
type Rewound struct {
	Events int // number of events that are no longer shown
	Files  []event.RestoredFile
}

// Rewind takes back everything from an event on: the model and clients do not see it
// any more, and files are restored. Nothing is deleted from the log. A second rewind
// to the same event changes nothing.
func (h *Host) Rewind(ctx context.Context, id event.SessionID, r Rewind) (Rewound, error) {
	if r.Look {
		return h.previewRewind(ctx, id, r)
	}
	if err := h.checkRestores(ctx, id, r); err != nil {
		return Rewound{}, err
	}
	var done Rewound
	var files chan event.FilesRestoredData
	err := h.changeAny(ctx, id, func(tx *txn) error {
		from, n, err := tx.findShown(ctx, r.EventID)
		if err != nil || n == 0 {
			return err
		}
		done.Events = n
		files, err = tx.rewind(r, from, n)
		return err
	})
	if err != nil || files == nil {
		return done, err
	}
	select {
	case d := <-files:
		done.Files = d.Files
		if d.Error != "" {
			err = fmt.Errorf("the conversation was taken back, but files were not: %s", d.Error)
		}
		return done, err
	case <-ctx.Done():
		return done, context.Cause(ctx)
	case <-h.ctx.Done():
		return done, context.Cause(h.ctx)
	}
}

// checkRestores fails if files are to be restored in a workspace elsewhere that is away:
// once the rewind is recorded, they would be skipped.
func (h *Host) checkRestores(ctx context.Context, id event.SessionID, r Rewind) error {
	if r.KeepFiles || h.opts.Undo == nil {
		return nil
	}
	elsewhere := false
	err := h.inspectAny(ctx, id, func(tx *txn) error {
		elsewhere = tx.State.Setup.Config.Workspace != nil
		return nil
	})
	if err != nil || !elsewhere {
		return err
	}
	err = h.withFiles(ctx, id, func(ctx context.Context, files workspace.Files) error {
		_, err := files.Folders(ctx)
		return err
	})
	if err != nil {
		return fmt.Errorf("nothing was taken back, because files cannot be restored now: %w; try again when the workspace is back, or keep the files as they are", err)
	}
	return nil
}

func (h *Host) previewRewind(ctx context.Context, id event.SessionID, r Rewind) (Rewound, error) {
	var done Rewound
	var hidden event.HistoryHiddenData
	err := h.inspectAny(ctx, id, func(tx *txn) (err error) {
		hidden.From, done.Events, err = tx.findShown(ctx, r.EventID)
		hidden.To = tx.State.Seq
		return err
	})
	if err == nil && done.Events > 0 && !r.KeepFiles {
		done.Files, err = h.undoFiles(ctx, id, hidden, true) // beside the session: the workspace may not answer
	}
	return done, err
}

// rewind records that a range is taken back. If files are restored, the outcome is
// sent to the returned channel.
func (tx *txn) rewind(r Rewind, from event.Seq, events int) (chan event.FilesRestoredData, error) {
	if tx.State.Active() {
		if err := tx.abort(event.AbortFor("rewind")); err != nil {
			return nil, err
		}
		if err := tx.recordIdle(); err != nil {
			return nil, err
		}
	}
	if _, err := tx.cancelCompaction(event.CauseStale, errStale, anyCompaction); err != nil {
		return nil, err
	}
	var files chan event.FilesRestoredData
	hidden := event.HistoryHiddenData{From: from, To: tx.State.Seq, Reason: "rewind", Files: !r.KeepFiles && tx.s.host.opts.Undo != nil}
	if hidden.Files {
		files = tx.s.restoring.expect(hidden.To)
		tx.onFailure = append(tx.onFailure, func() { delete(tx.s.restoring.waiting, hidden.To) })
	}
	tx.send(event.SnapshotRewindData{UpToEventID: r.EventID, EventsRemoved: events})
	return files, tx.record(hidden)
}

// findShown returns the position of an event, and how many events clients are shown
// from there on. The count is zero if the event was taken back before.
func (tx *txn) findShown(ctx context.Context, eventID string) (event.Seq, int, error) {
	if err := tx.exists(); err != nil {
		return 0, 0, err
	}
	shown, err := tx.s.host.Log.Messages(ctx, tx.s.id)
	if err != nil {
		return 0, 0, err
	}
	for i, e := range shown {
		if head, err := e.Head(); err == nil && head.ID == eventID {
			return e.Seq, len(shown) - i, nil
		}
	}
	for e, err := range tx.s.host.Log.Events(ctx, tx.s.id, 0) {
		if err != nil {
			return 0, 0, err
		}
		if head, err := e.Head(); err == nil && head.ID == eventID && e.Kind().Listed() {
			return e.Seq, 0, nil
		}
	}
	return 0, 0, fmt.Errorf("event %s: %w", eventID, ErrPosition)
}

// restoring is the activity of restoring files after a rewind.
type restoring struct {
	now *event.HistoryHiddenData // the rewind whose files are restored; nil if none are
	// waiting has the channels of those who wait for the outcome, by the position of
	// the rewind. They stay after a stop, because the files are restored again until
	// that is recorded.
	waiting map[event.Seq]chan event.FilesRestoredData
}

func (r *restoring) busy() bool { return r.now != nil }

func (r *restoring) stop(error) { r.now = nil }

// abort changes nothing: a rewind restores all its files.
func (r *restoring) abort(*txn, event.AbortData) error { return nil }

// expect returns a channel for the outcome of a rewind.
func (r *restoring) expect(hidden event.Seq) chan event.FilesRestoredData {
	if r.waiting == nil {
		r.waiting = make(map[event.Seq]chan event.FilesRestoredData)
	}
	c := make(chan event.FilesRestoredData, 1)
	r.waiting[hidden] = c
	return c
}

// finish sends the outcome of a rewind to whoever waits for it.
func (r *restoring) finish(hidden event.Seq, d event.FilesRestoredData) {
	if c := r.waiting[hidden]; c != nil {
		c <- d
		delete(r.waiting, hidden)
	}
}

// endWaiting tells everyone who waits that there will be no outcome.
func (r *restoring) endWaiting(cause error) {
	for hidden := range r.waiting {
		r.finish(hidden, event.FilesRestoredData{Error: cause.Error()})
	}
}

// startRestoring restores the files of a rewind as soon as the transaction is stored.
func (s *Session) startRestoring(tx *txn, hidden event.HistoryHiddenData) {
	now := &hidden
	s.restoring.now = now
	tx.afterCommit = append(tx.afterCommit, func() {
		s.spawn(func() {
			s.calls.unfinished.Wait() // a call that was stopped must not write afterwards
			var d event.FilesRestoredData
			files, err := s.host.undoFiles(s.host.ctx, s.id, hidden, false)
			if d.Files = notNil(files); err != nil {
				d.Error = err.Error()
			}
			s.post(func(tx *txn) error { return tx.recordRestored(now, d) })
		})
	})
}

// recordRestored records the outcome of restoring files, unless that was stopped.
func (tx *txn) recordRestored(hidden *event.HistoryHiddenData, d event.FilesRestoredData) error {
	if tx.s.restoring.now != hidden {
		return nil
	}
	tx.s.restoring.now = nil
	if len(tx.State.Rewind.Restore) == 0 || tx.State.Rewind.Restore[0] != *hidden || tx.s.host.ctx.Err() != nil {
		return nil
	}
	tx.afterCommit = append(tx.afterCommit, func() { tx.s.restoring.finish(hidden.To, d) })
	return tx.record(d)
}

// undoFiles undoes what the calls of a range did to files.
func (h *Host) undoFiles(ctx context.Context, id event.SessionID, hidden event.HistoryHiddenData, look bool) ([]event.RestoredFile, error) {
	if h.opts.Undo == nil {
		return nil, nil
	}
	keys := make(map[string]bool)
	for e, err := range h.store.Read(ctx, id, hidden.From-1) {
		if err != nil {
			return nil, err
		}
		if e.Seq > hidden.To {
			break
		}
		if e.Type != event.ToolBegun {
			continue
		}
		d, err := event.As[event.ToolBegunData](e)
		if err != nil {
			return nil, err
		}
		keys[d.Key] = true
	}
	return h.opts.Undo(ctx, id, func(key string) bool { return keys[key] }, look)
}
