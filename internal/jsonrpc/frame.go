package jsonrpc

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
)

const (
	// DefaultMaxFrame is the default maximum size of the body of a frame.
	DefaultMaxFrame = 128 << 20

	maxHeader = 8 << 10  // maximum size of a header block, in bytes
	readAhead = 16 << 10 // number of bytes that are read at once
	firstRead = 64 << 10 // number of bytes allocated for a body before any of it arrives
)

// A FrameError is the reason why bytes are not a frame. The rest of the stream cannot
// be read either.
type FrameError struct{ Reason string }

func (e *FrameError) Error() string { return "malformed frame: " + e.Reason }

func frameErrorf(format string, args ...any) error {
	return &FrameError{Reason: fmt.Sprintf(format, args...)}
}

// A Reader splits a stream into the bodies of its frames.
type Reader struct {
	in  *bufio.Reader
	max int
}

// NewReader returns a reader of frames with bodies of at most max bytes;
// DefaultMaxFrame if max is zero.
func NewReader(r io.Reader, max int) *Reader {
	if max == 0 {
		max = DefaultMaxFrame
	}
	return &Reader{in: bufio.NewReaderSize(r, readAhead), max: max}
}

// SetMax changes the maximum size of the bodies of the following frames.
func (r *Reader) SetMax(max int) { r.max = max }

// Next returns the body of the next frame, in buf if it fits there. The error
// is io.EOF if the stream ends between frames, io.ErrUnexpectedEOF if it ends
// inside one, a *FrameError if it cannot be understood, and wraps ErrGone if
// the stream was cut off.
func (r *Reader) Next(buf []byte) ([]byte, error) {
	size, err := r.header()
	if err != nil {
		return nil, err
	}
	return r.body(buf[:0], size)
}

// header reads up to the blank line and returns the announced length.
func (r *Reader) header() (int, error) {
	size, room := 0, maxHeader
	for {
		line, err := r.in.ReadSlice('\n')
		if room -= len(line); room < 0 || errors.Is(err, bufio.ErrBufferFull) {
			return 0, frameErrorf("the header is longer than %d bytes", maxHeader)
		}
		if err != nil {
			return 0, cutOff(err, len(line) > 0 || room < maxHeader)
		}
		line = bytes.TrimSuffix(line[:len(line)-1], []byte{'\r'})
		if len(line) == 0 {
			break
		}
		if size, err = r.field(line, size); err != nil {
			return 0, err
		}
	}
	if size == 0 {
		return 0, frameErrorf("the header has no Content-Length")
	}
	return size, nil
}

// cutOff returns the error of a stream that ended: an end inside a frame is not an
// ordinary one.
func cutOff(err error, inside bool) error {
	if err == io.EOF && inside {
		return fmt.Errorf("the peer vanished in the middle of a frame: %w", io.ErrUnexpectedEOF)
	}
	return wrapGone(err)
}

// field reads one header line. Headers other than Content-Length are ignored.
func (r *Reader) field(line []byte, size int) (int, error) {
	name, value, ok := bytes.Cut(line, []byte{':'})
	if !ok {
		return 0, frameErrorf("%q is not a header; expected Content-Length: N", clip(line))
	}
	if !bytes.EqualFold(bytes.TrimSpace(name), []byte("Content-Length")) {
		return size, nil
	}
	if size != 0 {
		return 0, frameErrorf("Content-Length is given twice")
	}
	return r.length(bytes.TrimSpace(value))
}

func (r *Reader) length(value []byte) (int, error) {
	n, err := strconv.ParseUint(string(value), 10, 63)
	if errors.Is(err, strconv.ErrRange) || err == nil && n > uint64(r.max) {
		return 0, frameErrorf("%s bytes are more than the limit of %d; send less at once", clip(value), r.max)
	}
	if err != nil || n == 0 {
		return 0, frameErrorf("Content-Length %q is not a positive number", clip(value))
	}
	return int(n), nil
}

// clip shortens a text that an error quotes.
func clip(b []byte) []byte { return b[:min(len(b), 64)] }

// body reads size bytes. Memory grows with the bytes that arrive, not with the announced
// size.
func (r *Reader) body(buf []byte, size int) ([]byte, error) {
	if cap(buf) < size {
		buf = make([]byte, 0, min(size, firstRead))
	}
	for len(buf) < size {
		if len(buf) == cap(buf) {
			buf = slices.Grow(buf, min(len(buf), size-len(buf)))
		}
		n, err := io.ReadFull(r.in, buf[len(buf):min(cap(buf), size)])
		buf = buf[:len(buf)+n]
		if err != nil {
			return nil, cutOff(noPartial(err), true)
		}
	}
	return buf, nil
}

func noPartial(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return io.EOF
	}
	return err
}

// AppendFrame appends a frame whose body is the parts, joined.
func AppendFrame(dst []byte, parts ...[]byte) []byte {
	dst = append(dst, "Content-Length: "...)
	dst = strconv.AppendInt(dst, int64(joined(parts)), 10)
	dst = append(dst, "\r\n\r\n"...)
	for _, p := range parts {
		dst = append(dst, p...)
	}
	return dst
}

func joined(parts [][]byte) (n int) {
	for _, p := range parts {
		n += len(p)
	}
	return n
}
