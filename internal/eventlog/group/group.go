// Package group commits the changes to a store in groups.
//
//   - If nobody is committing, the caller that adds a change commits it itself, together with
//     those that have arrived by then, so that a single writer needs no other goroutine. What
//     arrives during that commit is committed next, in groups, by a new goroutine.
//   - Only one group is committed at a time.
//   - Nothing waits for a group to grow: under load, enough changes arrive while one is synced.
//   - Every change gets an outcome, also while the queue is being shut.
package group

import (
	"context"
	"runtime"
	"sync"
)

// MaxEvents is the number of events after which a group takes no more changes. It limits how
// long the first append of a group waits for the last.
const MaxEvents = 512

// An Op is the part of a change that the queue uses. A store embeds it in the type of its
// changes.
type Op struct {
	Events int  // number of events that the change adds
	Alone  bool // true if the change is committed without others
	Err    error

	result chan error // receives Err once
}

func (o *Op) op() *Op { return o }

// A Change is a pointer to a struct that embeds an Op.
type Change interface{ op() *Op }

// A Queue holds the changes that wait to be committed. It takes changes until it is shut.
type Queue[C Change] struct {
	commit func(group []C) // commits changes and sets the Err of each

	mu   sync.Mutex
	idle sync.Cond // signals that busy became false
	ops  []C
	busy bool // true while a goroutine commits

	closing chan struct{} // closed when the queue takes no more changes
	once    sync.Once
	cause   error // reason for which it is shut; set before closing is closed
}

// New returns a queue that is empty. The function commits a group and sets the Err of each of
// its changes. It is never called by two goroutines at the same time, and must not panic.
func New[C Change](commit func(group []C)) *Queue[C] {
	q := &Queue[C]{commit: commit, closing: make(chan struct{})}
	q.idle.L = &q.mu
	return q
}

// Do commits a change and waits for the outcome. ctx is only checked at the start: if it is
// over, or the queue is shut, nothing is changed.
func (q *Queue[C]) Do(ctx context.Context, c C) error {
	o := c.op()
	o.result = make(chan error, 1)
	q.mu.Lock()
	if err := q.Open(ctx); err != nil {
		q.mu.Unlock()
		return err
	}
	q.ops = append(q.ops, c)
	ours := !q.busy
	q.busy = true
	q.mu.Unlock()
	if ours {
		runtime.Gosched() // lets callers that are about to append join the group
		q.commitGroup(q.take())
		if q.more() {
			go q.commitRest() // WaitIdle waits for it
		}
	}
	return <-o.result
}

// commitGroup commits changes and sends each its outcome.
func (q *Queue[C]) commitGroup(group []C) {
	q.commit(group)
	for _, c := range group {
		o := c.op()
		o.result <- o.Err
	}
}

// commitRest commits groups until the queue is empty.
func (q *Queue[C]) commitRest() {
	for more := true; more; more = q.more() {
		q.commitGroup(q.take())
	}
}

// take removes the next group from the queue.
func (q *Queue[C]) take() []C {
	q.mu.Lock()
	defer q.mu.Unlock()
	n, events := 0, 0
	for n < len(q.ops) && events < MaxEvents {
		o := q.ops[n].op()
		if o.Alone {
			n = max(n, 1)
			break
		}
		events += o.Events
		n++
	}
	group := q.ops[:n:n]
	q.ops = q.ops[n:]
	return group
}

// more reports whether changes wait. If none do, the queue is no longer busy.
func (q *Queue[C]) more() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.ops) > 0 {
		return true
	}
	q.ops, q.busy = nil, false
	q.idle.Broadcast()
	return false
}

// WaitIdle waits until no goroutine is committing.
func (q *Queue[C]) WaitIdle() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.busy {
		q.idle.Wait()
	}
}

// Load returns the number of changes that wait, and whether a goroutine is committing others.
func (q *Queue[C]) Load() (waiting int, busy bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.ops), q.busy
}

// Shut makes the queue refuse everything from now on. Only the first cause is kept.
func (q *Queue[C]) Shut(cause error) {
	q.once.Do(func() {
		q.cause = cause
		close(q.closing)
	})
}

// Open returns the reason for which the queue takes no changes, or that of ctx, or nil.
func (q *Queue[C]) Open(ctx context.Context) error {
	select {
	case <-q.closing:
		return q.cause
	default:
		return ctx.Err()
	}
}

// Closed returns a channel that is closed when the queue is shut.
func (q *Queue[C]) Closed() <-chan struct{} { return q.closing }

// Err returns the reason for which the queue is shut, or nil.
func (q *Queue[C]) Err() error { return q.Open(context.Background()) }
