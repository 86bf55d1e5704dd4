package jsonrpc

import "time"

// The rate of pieces above which they are joined.
const (
	pace  = 4 * time.Millisecond // interval at which waiting pieces are sent together
	burst = 64                   // number of pieces that may be sent at once without waiting
)

// A Piece is a notification that continues a text. Its params are Head, Text and Tail,
// one after the other.
//
// Parsing a message costs a peer far more than the few letters of a piece. So pieces
// that come faster than people read wait for a moment, and the text of the next piece of
// the same stream is appended to a piece that waits.
type Piece struct {
	Lane   string // pieces of one lane keep their order; pieces of different lanes may be reordered
	Stream []byte // id of the text within the lane
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

// queuedPiece is a piece that waits to be sent.
type queuedPiece struct {
	lane, stream string
	body, tail   []byte
}

// tryPiece queues a piece whose frame begins with start. It is sent at once unless
// pieces come too fast.
func (o *Outbox) tryPiece(start []byte, p Piece) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed || o.waiting > 0 || !o.fitsLocked(len(start)+len(p.Head)+len(p.Text)+len(p.Tail)) {
		return false
	}
	if len(o.pieces) == 0 && o.inPaceLocked(time.Now()) {
		o.addLocked([][]byte{start, p.Head, p.Text, p.Tail, closing})
		return true
	}
	o.joinLocked(start, p)
	return true
}

// inPaceLocked reports whether pieces may be sent now, and counts them if so. After a
// quiet time a burst of pieces is allowed.
func (o *Outbox) inPaceLocked(now time.Time) bool {
	if earliest := now.Add(-burst * pace); o.paced.Before(earliest) {
		o.paced = earliest
	}
	next := o.paced.Add(pace)
	if next.After(now) {
		return false
	}
	o.paced = next
	return true
}

// joinLocked appends a piece to the last one that waits in its lane if both belong to
// the same stream. Otherwise the piece waits behind the others.
func (o *Outbox) joinLocked(start []byte, p Piece) {
	if last := o.lastLocked(p.Lane); last != nil && last.stream == string(p.Stream) {
		last.body = append(last.body, p.Text...)
		o.held += len(p.Text)
		return
	}
	if len(o.pieces) == 0 {
		o.releaseLocked(time.Until(o.paced.Add(pace)))
	}
	w := queuedPiece{lane: p.Lane, stream: string(p.Stream)}
	w.body = append(append(append(make([]byte, 0, 1024), start...), p.Head...), p.Text...)
	w.tail = append(append(make([]byte, 0, len(p.Tail)+len(closing)), p.Tail...), closing...)
	o.pieces = append(o.pieces, w)
	o.held += len(w.body) + len(w.tail)
}

// lastLocked returns the last piece that waits in a lane.
func (o *Outbox) lastLocked(lane string) *queuedPiece {
	for i := len(o.pieces) - 1; i >= 0; i-- {
		if o.pieces[i].lane == lane {
			return &o.pieces[i]
		}
	}
	return nil
}

// releaseLocked makes the waiting pieces due after a while. Until Run takes them, they
// keep growing: a slow peer gets few large pieces.
func (o *Outbox) releaseLocked(after time.Duration) {
	if o.release == nil {
		o.release = time.AfterFunc(after, func() {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.due = len(o.pieces) > 0
			o.work.Signal()
		})
		return
	}
	o.release.Reset(after)
}

// flushPiecesLocked moves the waiting pieces to the queue.
func (o *Outbox) flushPiecesLocked() {
	if len(o.pieces) == 0 {
		return
	}
	o.release.Stop()
	for _, w := range o.pieces {
		o.queue = AppendFrame(o.queue, w.body, w.tail)
	}
	clear(o.pieces)
	o.pieces, o.held, o.due = o.pieces[:0], 0, false
}
