package remote

import (
	"bytes"
	"errors"
	"io"
	"sync"
)

// events reads server-sent events. It knows all three line ends, comments,
// data of several lines and a byte order mark, and allocates nothing for a line
// unless it is longer than any before.
type events struct {
	r     io.Reader
	err   error // of r, to be reported after what it gave
	limit int

	buf    []byte
	start  int  // of what was not used yet
	end    int  // of what was read
	seen   int  // bytes after start that hold no line end
	fresh  bool // nothing was used yet
	skipLF bool // the last line ended with a CR: a LF after it belongs to it

	data []byte // of the current event
}

const (
	firstBuffer = 32 << 10
	keptBuffer  = 128 << 10 // longer ones are not kept for other streams
)

var errLineTooLong = errors.New("the reply has a line of more than 32 MiB")

var idleEvents = sync.Pool{New: func() any { return &events{buf: make([]byte, firstBuffer)} }}

func newEvents(r io.Reader) *events {
	s := idleEvents.Get().(*events)
	*s = events{r: r, limit: replyLimit, buf: s.buf, data: s.data[:0], fresh: true}
	return s
}

// release gives the buffers back. Nothing that next returned is valid after it.
func (s *events) release() {
	if len(s.buf)+cap(s.data) <= keptBuffer {
		s.r = nil
		idleEvents.Put(s)
	}
}

// next returns the data of the next event, valid until it is called again. At
// the end of the stream an event needs no empty line after it.
func (s *events) next() ([]byte, error) {
	s.data = s.data[:0]
	lines := 0
	for {
		line, err := s.line()
		switch {
		case err == io.EOF && lines > 0:
			return s.data, nil
		case err != nil:
			return nil, err
		case len(line) == 0 && lines > 0:
			return s.data, nil
		}
		value, ok := dataOf(line)
		if !ok {
			continue
		}
		if lines > 0 {
			s.data = append(s.data, '\n')
		}
		if lines++; len(s.data)+len(value) > s.limit {
			return nil, errLineTooLong
		}
		s.data = append(s.data, value...)
	}
}

// dataOf returns the value if the line is a data field.
func dataOf(line []byte) ([]byte, bool) {
	value, ok := bytes.CutPrefix(line, []byte("data"))
	if !ok || len(value) == 0 {
		return nil, ok
	}
	if value[0] != ':' {
		return nil, false
	}
	return bytes.TrimPrefix(value[1:], []byte(" ")), true
}

// line returns the next line without its end.
func (s *events) line() ([]byte, error) {
	for {
		if line, ok := s.cut(); ok {
			return line, nil
		}
		if s.err == io.EOF && s.start < s.end {
			line := s.buf[s.start:s.end]
			s.start, s.seen = s.end, 0
			return line, nil
		}
		if s.err != nil {
			return nil, s.err
		}
		if err := s.fill(); err != nil {
			return nil, err
		}
	}
}

// cut takes a line that is in the buffer.
func (s *events) cut() ([]byte, bool) {
	if s.start == s.end {
		return nil, false
	}
	if s.fresh && !s.skipMark() {
		return nil, false
	}
	if s.skipLF {
		s.skipLF = false
		if s.buf[s.start] == '\n' {
			s.start++
		}
	}
	text := s.buf[s.start:s.end]
	rest := text[s.seen:]
	at := bytes.IndexByte(rest, '\n')
	if at >= 0 {
		rest = rest[:at]
	}
	if cr := bytes.IndexByte(rest, '\r'); cr >= 0 {
		at, s.skipLF = cr, true
	}
	if at < 0 {
		s.seen = len(text)
		return nil, false
	}
	at += s.seen
	s.start, s.seen = s.start+at+1, 0
	return text[:at], true
}

const byteOrderMark = "\xEF\xBB\xBF"

// skipMark passes over a byte order mark at the very beginning. It reports
// false if what is there may be half of one.
func (s *events) skipMark() bool {
	text := s.buf[s.start:s.end]
	if len(text) < len(byteOrderMark) && s.err == nil && bytes.HasPrefix([]byte(byteOrderMark), text) {
		return false
	}
	s.fresh = false
	if bytes.HasPrefix(text, []byte(byteOrderMark)) {
		s.start += len(byteOrderMark)
	}
	return true
}

// fill reads more, behind what is there.
func (s *events) fill() error {
	if s.start > 0 {
		s.end = copy(s.buf, s.buf[s.start:s.end])
		s.start = 0
	}
	if s.end == len(s.buf) {
		if s.end >= s.limit {
			return errLineTooLong
		}
		s.buf = append(s.buf, make([]byte, len(s.buf))...)
	}
	for range 100 {
		var n int
		n, s.err = s.r.Read(s.buf[s.end:])
		if s.end += n; n > 0 || s.err != nil {
			return nil
		}
	}
	return io.ErrNoProgress
}
