package jsonrpc

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	oneWrite  = 64 << 10 // maximum size of one write, which must succeed within the stall time
	keepSpare = 64 << 10 // maximum size of a buffer that is kept while there is nothing to write
)

// An Outbox queues frames for a peer. Queueing waits only for space in the queue, never
// for the peer; one goroutine, Run, writes the queue in few writes.
type Outbox struct {
	w         io.WriteCloser
	limit     int
	stall     time.Duration
	maxUnread int // see Options.MaxUnread; no limit if zero

	mu      sync.Mutex
	work    sync.Cond // signals that there is something to write, or the end
	room    sync.Cond // signals that there is space, or the end
	queue   []byte    // frames that Run has not taken yet
	writing int       // number of bytes that Run has taken and the peer has not accepted
	waiting int       // number of goroutines that wait for space
	unread  []int     // sizes of the answers that wait for space
	drained chan struct{}
	failing bool // true if waiting for space fails
	closed  bool // true if nothing more can be queued

	pieces   []waitingPiece // pieces that wait; they follow the frames of the queue
	held     int            // number of bytes of the pieces that wait
	slot     time.Time      // last slot for pieces that was used; see pace
	due      bool           // true if Run may send the pieces that wait
	dueTimer *time.Timer    // timer that sets due; nil before the first piece waits

	stalled atomic.Bool
}

// NewOutbox returns an outbox that holds about limit bytes. A larger frame is accepted
// when the outbox is empty. If the peer accepts nothing for the stall time, w is closed;
// never if stall is zero.
func NewOutbox(w io.WriteCloser, limit int, stall time.Duration) *Outbox {
	o := &Outbox{w: w, limit: limit, stall: stall}
	o.work.L, o.room.L = &o.mu, &o.mu
	return o
}

// Put queues a frame whose body is the joined parts. It waits for space until ctx is
// done or the outbox ends.
func (o *Outbox) Put(ctx context.Context, parts ...[]byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.putLocked(ctx, parts)
}

func (o *Outbox) putLocked(ctx context.Context, parts [][]byte) error {
	if !o.fitsLocked(joined(parts)) {
		if err := o.waitLocked(ctx, joined(parts)); err != nil {
			return err
		}
	}
	if o.closed {
		return ErrClosed
	}
	o.addLocked(parts)
	return nil
}

// putAnswer is like Put, for an answer. Its error wraps ErrUnread if too many answers wait
// for space beside the largest, which may be as large as it is.
func (o *Outbox) putAnswer(parts ...[]byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	size := joined(parts)
	if o.fitsLocked(size) {
		return o.putLocked(context.Background(), parts)
	}
	all := append(o.unread, size)
	if most := slices.Max(all); o.maxUnread > 0 && sum(all)-most > o.maxUnread {
		return fmt.Errorf("%w: %d answers of %d MiB wait for it", ErrUnread, len(all), sum(all)>>20)
	}
	o.unread = all
	defer func() {
		at := slices.Index(o.unread, size)
		o.unread = slices.Delete(o.unread, at, at+1)
	}()
	return o.putLocked(context.Background(), parts)
}

func sum(sizes []int) (n int) {
	for _, size := range sizes {
		n += size
	}
	return n
}

// tryPut queues a frame if there is space now and no other goroutine waits for space.
func (o *Outbox) tryPut(parts ...[]byte) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed || o.waiting > 0 || !o.fitsLocked(joined(parts)) {
		return false
	}
	o.addLocked(parts)
	return true
}

// halfEmpty returns a channel that is closed when the outbox is at most half full, which may
// be now. The end of the outbox does not close it.
func (o *Outbox) halfEmpty() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.drained == nil {
		o.drained = make(chan struct{})
	}
	ch := o.drained
	o.signalDrainedLocked()
	return ch
}

// failWaiting makes all waits for space fail, now and later.
func (o *Outbox) failWaiting() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.failing = true
	o.room.Broadcast()
}

// Close lets Run return when the queue is written.
func (o *Outbox) Close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.failing, o.closed = true, true
	o.flushPiecesLocked()
	o.room.Broadcast()
	o.work.Signal()
}

// Run writes until the outbox is closed and empty, or a write fails. The error wraps
// ErrGone if the peer is gone, and ErrStalled if it has stopped reading.
func (o *Outbox) Run() error {
	defer o.Close()
	watch := time.AfterFunc(time.Hour, func() {
		o.stalled.Store(true)
		o.w.Close()
	})
	watch.Stop()
	var spare []byte
	for {
		batch := o.awaitBatch(spare)
		if batch == nil {
			return nil
		}
		if err := o.write(batch, watch); err != nil {
			return o.failure(err)
		}
		spare = batch[:0]
	}
}

// failure returns the reason of a failed write: a stall closes the stream, so the error
// of the write itself says less.
func (o *Outbox) failure(err error) error {
	if o.stalled.Load() {
		return o.stallError()
	}
	return wrapGone(err)
}

func (o *Outbox) stallError() error {
	return fmt.Errorf("%w: nothing was accepted for %v", ErrStalled, o.stall)
}

// awaitBatch waits for something to write, and takes the whole queue.
func (o *Outbox) awaitBatch(spare []byte) []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.queue) == 0 && !o.due {
		if o.closed {
			return nil
		}
		spare, o.queue = keepSmall(spare, keepSpare), keepSmall(o.queue, keepSpare)
		o.work.Wait()
	}
	if o.due {
		o.useSlotLocked(time.Now())
		o.flushPiecesLocked()
	}
	batch := o.queue
	o.queue, o.writing = keepSmall(spare, 2*o.limit), len(batch)
	return batch
}

// keepSmall returns a buffer for reuse, or nil if it is too large to keep.
func keepSmall(buf []byte, max int) []byte {
	if cap(buf) > max {
		return nil
	}
	return buf
}

func (o *Outbox) write(batch []byte, watch *time.Timer) error {
	for len(batch) > 0 {
		if o.stall > 0 {
			watch.Reset(o.stall)
		}
		n, err := o.w.Write(batch[:min(len(batch), oneWrite)])
		watch.Stop()
		if err != nil {
			return err
		}
		batch = batch[n:]
		o.accepted(n)
	}
	return nil
}

// accepted frees the space of n bytes that were written.
func (o *Outbox) accepted(n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.writing -= n
	o.signalDrainedLocked()
	if o.waiting > 0 {
		o.room.Broadcast()
	}
}

func (o *Outbox) signalDrainedLocked() {
	if o.drained != nil && o.queuedLocked() <= o.limit/2 {
		close(o.drained)
		o.drained = nil
	}
}

func (o *Outbox) fitsLocked(size int) bool {
	queued := o.queuedLocked()
	return queued == 0 || queued+size <= o.limit
}

// queuedLocked counts the bytes that the peer has not accepted.
func (o *Outbox) queuedLocked() int { return len(o.queue) + o.held + o.writing }

func (o *Outbox) waitLocked(ctx context.Context, size int) error {
	o.waiting++
	defer func() { o.waiting-- }()
	stop := context.AfterFunc(ctx, func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.room.Broadcast()
	})
	defer stop()
	for !o.fitsLocked(size) {
		if o.failing {
			return ErrClosed
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		o.room.Wait()
	}
	return nil
}

func (o *Outbox) addLocked(parts [][]byte) {
	o.flushPiecesLocked()
	o.queue = AppendFrame(o.queue, parts...)
	o.work.Signal()
}
