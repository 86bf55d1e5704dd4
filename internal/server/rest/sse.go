package rest

import (
	"bytes"
	"errors"
	"net/http"
	"strconv"
	"time"
)

const (
	// heartbeat is the interval of comments, so that no proxy takes a stream for dead.
	heartbeat = 15 * time.Second
	// stall is how long a reader may take nothing before its stream is ended, or less by up to
	// heartbeat. It can come back with the last position that it has seen.
	stall = time.Minute
)

// Patient returns a writer that gives the reader of a long answer time for each part of it,
// instead of for the whole. One that takes nothing for so long is gone.
func Patient(w http.ResponseWriter) http.ResponseWriter {
	return &patientWriter{w, http.NewResponseController(w)}
}

type patientWriter struct {
	http.ResponseWriter
	control *http.ResponseController
}

func (w *patientWriter) Write(b []byte) (int, error) {
	_ = w.control.SetWriteDeadline(time.Now().Add(stall)) // a server without deadlines has none
	return w.ResponseWriter.Write(b)
}

func (w *patientWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// A sender writes a stream of events until a write fails.
type sender struct {
	w       http.ResponseWriter
	control *http.ResponseController
	buf     []byte
	err     error
	moved   time.Time // when the deadline of writes was moved
}

// errHead ends a stream of which only the head was asked for.
var errHead = errors.New("only the head was asked for")

// startStream begins a stream. The proxies that know the header pass it on piece by piece.
func startStream(w http.ResponseWriter, r *http.Request) *sender {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	s := &sender{w: w, control: http.NewResponseController(w)}
	if r.Method == http.MethodHead {
		s.err = errHead
	}
	s.comment("here it comes")
	s.flush()
	return s
}

func (s *sender) comment(text string) {
	s.buf = append(append(append(s.buf, ": "...), text...), "\n\n"...)
}

// id begins a frame with the place at which a reader that saw it goes on.
func (s *sender) id(n int64) {
	s.buf = append(strconv.AppendInt(append(s.buf, "id: "...), n, 10), '\n')
}

// frame adds an event, whose data is the parts one after the other.
func (s *sender) frame(name string, parts ...[]byte) {
	s.buf = append(append(append(s.buf, "event: "...), name...), "\ndata: "...)
	for _, part := range parts {
		s.data(part)
	}
	s.buf = append(s.buf, "\n\n"...)
}

// data adds data, each line of it as a line of the frame.
func (s *sender) data(b []byte) {
	for {
		i := lineEnd(b)
		if i < 0 {
			s.buf = append(s.buf, b...)
			return
		}
		s.buf = append(append(s.buf, b[:i]...), "\ndata: "...)
		b = b[i+1:]
	}
}

// lineEnd returns where a line of data ends, or -1. Most data is one line, so both bytes are
// searched for by themselves, which is several times as fast as looking for either.
func lineEnd(b []byte) int {
	end := bytes.IndexByte(b, '\n')
	if end < 0 {
		return bytes.IndexByte(b, '\r')
	}
	if earlier := bytes.IndexByte(b[:end], '\r'); earlier >= 0 {
		return earlier
	}
	return end
}

// flush sends what was added. The deadline of writes is moved with every heartbeat, and not
// with every write, which would cost more than the write needs beside the system call.
func (s *sender) flush() {
	if len(s.buf) == 0 || s.err != nil {
		return
	}
	if now := time.Now(); now.Sub(s.moved) >= heartbeat {
		s.moved = now
		_ = s.control.SetWriteDeadline(now.Add(stall)) // a server without deadlines has none
	}
	if _, s.err = s.w.Write(s.buf); s.err == nil {
		s.err = s.control.Flush()
	}
	s.buf = s.buf[:0]
	if cap(s.buf) > maxBehind {
		s.buf = nil // a burst is over
	}
}
