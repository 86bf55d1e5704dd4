package remote

import (
	"bytes"
	"errors"
	"io"
	"sync"
)

// events reads server-sent events. It supports all three line ends, comments, data of
// several lines and a byte order mark. It only allocates for a line that is longer than
// all before.
type events struct {
	r     io.Reader
	err   error // error of r, which is returned after the data before it
	limit int   // largest size of a line

	buf    []byte
	start  int  // start of the data in buf that was not used yet
	end    int  // end of the data in buf
	seen   int  // number of bytes after start that are known to contain no line end
	fresh  bool // true until the first data is used
	skipLF bool // true if the last line ended with CR, so that a LF after it is skipped

	data []byte // data of the current event
}

const (
	firstBuffer = 32 << 10
	keptBuffer  = 128 << 10 // larger buffers are not reused
)

var errLineTooLong = errors.New("the reply has a line of more than 32 MiB")

var idleEvents = sync.Pool{New: func() any { return &events{buf: make([]byte, firstBuffer)} }}

func newEvents(r io.Reader) *events {
	s := idleEvents.Get().(*events)
	*s = events{r: r, limit: replyLimit, buf: s.buf, data: s.data[:0], fresh: true}
	return s
}

// release returns the buffers to the pool. Data that next returned is invalid after it.
func (s *events) release() {
	if len(s.buf)+cap(s.data) <= keptBuffer {
		s.r = nil
		idleEvents.Put(s)
	}
}

// next returns the data of the next event, which is valid until next is called again.
// The last event of a stream needs no empty line after it.
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

// dataOf returns the value of a data field, or false if the line is not one.
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

// cut returns the next line in the buffer, or false if it is not complete.
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

// skipMark skips a byte order mark at the start of the stream. It reports false if the
// data so far may be the first part of one.
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

// fill reads more data into the buffer.
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
