package jsonrpc

import "time"

// How fast pieces may come before they are joined.
const (
	pace  = 4 * time.Millisecond // pieces that wait leave together, this often
	burst = 64                   // so many may come at once without waiting
)

// A Piece is a notification that goes on with a text. Its params are Head, Text
// and Tail, one after the other.
//
// Taking a message apart costs a peer far more than the few letters of a piece
// are worth. So pieces that come faster than anybody reads wait a moment, and
// one that waits takes up the text of the next of its stream.
type Piece struct {
	Lane   string // pieces of one lane keep their order; those of different lanes may not
	Stream []byte // tells which text of the lane it is
	Head   []byte
	Text   []byte // within a JSON string
	Tail   []byte
}

// TryPiece queues a piece if there is room for it now; what it holds is copied.
// Every letter arrives, once and in order, but perhaps in a frame with others,
// which has the head and tail of the first of them. After whatever else is
// queued come only pieces that were queued later.
func (c *Conn) TryPiece(method string, p Piece) bool {
	var scratch [96]byte
	return c.out.tryPiece(notifyHead(scratch[:0], method), p)
}

// queuedPiece is a piece that has not left yet.
type queuedPiece struct {
	lane, stream string
	body, tail   []byte
}

// tryPiece queues a piece whose frame begins with start. It leaves at once
// unless pieces come too fast.
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

// inPaceLocked reports whether pieces may leave now, and counts that they do.
// Whoever was slow for a while may be fast for a burst.
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

// joinLocked adds a piece to the last one that waits in its lane, if it goes on
// with the same text, and lets it wait behind the others else.
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

// releaseLocked lets Run take the pieces that wait, after a while. Until it does
// they go on growing: a peer that is behind gets few large ones.
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

// flushPiecesLocked makes frames of the pieces that wait.
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
