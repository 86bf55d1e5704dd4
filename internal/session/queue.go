package session

import (
	"context"
	"errors"
	"slices"

	"github.com/abide-run/abide/internal/event"
)

// errPaused means that the queue is paused already.
var errPaused = errors.New("queue_already_paused: somebody holds the queue already; let it go first")

// Queues changes the queues of sessions.
type Queues struct{ host *Host }

// A Queue is a session's queue while it is changed.
type Queue struct {
	Items []event.InputAcceptedData

	running bool // true while a turn is running
	paused  bool
	tx      *txn
	change  event.QueueChangedData
	changed bool
}

// find returns the place of an input in the queue, or -1.
func (q *Queue) find(id string) int {
	return slices.IndexFunc(q.Items, func(in event.InputAcceptedData) bool { return in.InputID == id })
}

// Clear empties the queue.
func (q *Queue) Clear() { q.changed, q.Items = q.changed || len(q.Items) > 0, nil }

// Remove takes an input out and reports whether it was there.
func (q *Queue) Remove(id string) bool {
	i := q.find(id)
	if i >= 0 {
		q.Items, q.changed = slices.Delete(q.Items, i, i+1), true
	}
	return i >= 0
}

// Move puts an input elsewhere and reports whether that changed anything.
func (q *Queue) Move(id string, to int) bool {
	i := q.find(id)
	if i < 0 {
		return false
	}
	in := q.Items[i]
	to = max(0, min(to, len(q.Items)-1))
	q.Items = slices.Insert(slices.Delete(q.Items, i, i+1), to, in)
	q.changed = q.changed || i != to
	return i != to
}

// Edit changes what an input says and reports whether that changed anything.
func (q *Queue) Edit(id, prompt, display string) bool {
	i := q.find(id)
	if i < 0 || (q.Items[i].Prompt == prompt && q.Items[i].DisplayPrompt == display) {
		return false
	}
	q.change.Edited, q.changed = &event.QueueEdit{InputID: id, Prompt: prompt, DisplayPrompt: display}, true
	return true
}

// Steer makes an input part of the running turn. It reports false if no turn is
// running.
func (q *Queue) Steer(id string) bool {
	i := q.find(id)
	if i < 0 || !q.running || q.Items[i].Kind != "" {
		return false
	}
	q.change.Steer, q.changed = id, true
	return true
}

// Pause pauses the queue, or lets it go on.
func (q *Queue) Pause(paused bool) error {
	if paused && q.paused {
		return errPaused
	}
	if paused != q.paused {
		q.change.Paused, q.changed = &paused, true
	}
	return nil
}

// Insert adds an input at a place, and returns its id.
func (q *Queue) Insert(in event.InputAcceptedData, at int) (string, error) {
	in.InputID, in.Mode = event.NewID(), event.ModeQueue
	if err := q.tx.record(in); err != nil {
		return "", err
	}
	q.Items = slices.Insert(q.Items, max(0, min(at, len(q.Items))), in)
	q.change.Added, q.changed = in.InputID, true
	return in.InputID, nil
}

// Duplicate adds the same input once more, after itself.
func (q *Queue) Duplicate(id string) (string, error) {
	i := q.find(id)
	if i < 0 {
		return "", ErrPosition
	}
	in := q.Items[i]
	in.Key = ""
	return q.Insert(in, i+1)
}

// Change changes a session's queue. A change with the key of an earlier one is not
// made again: the outcome of the earlier one is returned, which is the id of the
// input that it added, if any.
func (qs Queues) Change(ctx context.Context, id event.SessionID, key string, f func(*Queue) error) (before string, err error) {
	err = qs.host.change(ctx, id, func(tx *txn) error {
		if before = tx.State.Sent(key); before != "" {
			return nil
		}
		q := &Queue{Items: slices.Clone(tx.State.Queue.Inputs), running: tx.State.Turn != nil, paused: tx.State.Queue.Paused, tx: tx}
		if err := f(q); err != nil || !q.changed {
			return err
		}
		q.change.Key = key
		q.change.Order = make([]string, len(q.Items))
		for i, in := range q.Items {
			q.change.Order[i] = in.InputID
		}
		tx.send(event.Empty(event.PendingMessagesModified))
		return tx.record(q.change)
	})
	return before, err
}
