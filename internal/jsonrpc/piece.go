package jsonrpc

import "time"

// Pieces are sent in slots: there is one slot every pace. A piece that finds a free slot
// is sent at once. Otherwise it waits, and all pieces that wait are sent together in
// the next slot. Slots that nobody used can be used later, up to burst of them: the
// first pieces after a quiet time are not delayed.
const (
	pace  = 4 * time.Millisecond
	burst = 64
)

// A Piece is a notification that continues a text. Its params are Head, Text and Tail,
// one after the other.
//
// A message costs a peer far more to parse than the few letters of a piece. So a piece
// waits for a moment if pieces come faster than people read. While it waits, the text of
// the next piece of the same stream is appended to it.
type Piece struct {
	Lane   string // pieces of one lane keep their order; pieces of different lanes may be reordered
	Stream []byte // id, within the lane, of the text that the piece continues
	Head   []byte
	Text   []byte // contents of a JSON string, already escaped
	Tail   []byte
}

// TryPiece queues a piece if there is space for it now; its bytes are copied. Every
// letter arrives once and in order, but several pieces may share a frame, which has the
// head and tail of the first one. A message that is queued after a piece is sent after
// it.
func (c *Conn) TryPiece(method string, p Piece) bool {
	var scratch [96]byte
	return c.out.tryPiece(notifyHead(scratch[:0], method), p)
}

// waitingPiece is a piece that waits to be sent. The parts of its frame are body, which
// grows, and tail.
type waitingPiece struct {
	lane, stream string
	body, tail   []byte
}

// tryPiece queues a piece whose frame begins with start. The piece waits if there is no
// free slot, or if other pieces wait.
func (o *Outbox) tryPiece(start []byte, p Piece) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed || o.waiting > 0 || !o.fitsLocked(len(start)+len(p.Head)+len(p.Text)+len(p.Tail)) {
		return false
	}
	if len(o.pieces) == 0 && o.useSlotLocked(time.Now()) {
		o.addLocked([][]byte{start, p.Head, p.Text, p.Tail, closing})
		return true
	}
	o.addWaitingLocked(start, p)
	return true
}

// useSlotLocked uses the oldest slot that is free, and reports whether there is one.
func (o *Outbox) useSlotLocked(now time.Time) bool {
	if oldest := now.Add(-burst * pace); o.slot.Before(oldest) {
		o.slot = oldest
	}
	next := o.slot.Add(pace)
	if next.After(now) {
		return false
	}
	o.slot = next
	return true
}

// addWaitingLocked appends a piece to the last one that waits in its lane if both belong
// to the same stream. Otherwise the piece waits behind the others.
func (o *Outbox) addWaitingLocked(start []byte, p Piece) {
	if last := o.lastWaitingLocked(p.Lane); last != nil && last.stream == string(p.Stream) {
		last.body = append(last.body, p.Text...)
		o.held += len(p.Text)
		return
	}
	if len(o.pieces) == 0 {
		o.setDueAfterLocked(time.Until(o.slot.Add(pace)))
	}
	w := waitingPiece{lane: p.Lane, stream: string(p.Stream)}
	w.body = append(append(append(make([]byte, 0, 1024), start...), p.Head...), p.Text...)
	w.tail = append(append(make([]byte, 0, len(p.Tail)+len(closing)), p.Tail...), closing...)
	o.pieces = append(o.pieces, w)
	o.held += len(w.body) + len(w.tail)
}

// lastWaitingLocked returns the last piece that waits in a lane, or nil.
func (o *Outbox) lastWaitingLocked(lane string) *waitingPiece {
	for i := len(o.pieces) - 1; i >= 0; i-- {
		if o.pieces[i].lane == lane {
			return &o.pieces[i]
		}
	}
	return nil
}

// setDueAfterLocked makes the waiting pieces due after a while. Until Run takes them,
// they keep growing: a slow peer gets few large pieces.
func (o *Outbox) setDueAfterLocked(after time.Duration) {
	if o.dueTimer == nil {
		o.dueTimer = time.AfterFunc(after, func() {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.due = len(o.pieces) > 0
			o.work.Signal()
		})
		return
	}
	o.dueTimer.Reset(after)
}

// flushPiecesLocked moves the waiting pieces to the end of the queue.
func (o *Outbox) flushPiecesLocked() {
	if len(o.pieces) == 0 {
		return
	}
	o.dueTimer.Stop()
	for _, w := range o.pieces {
		o.queue = AppendFrame(o.queue, w.body, w.tail)
	}
	clear(o.pieces)
	o.pieces, o.held, o.due = o.pieces[:0], 0, false
}
