package remote

import "io"

// A body is a reader of several pieces, one after the other.
type body struct {
	parts [][]byte
	off   int // offset in the first of them
}

// NewBody returns a reader of the concatenation of the pieces.
func NewBody(parts [][]byte) io.ReadCloser { return &body{parts: parts} }

func size(parts [][]byte) int64 {
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	return int64(n)
}

// Read fills p from as many pieces as needed, so that short pieces do not cause short
// writes.
func (b *body) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) && len(b.parts) > 0 {
		took := copy(p[n:], b.parts[0][b.off:])
		n += took
		b.off += took
		if b.off == len(b.parts[0]) {
			b.parts, b.off = b.parts[1:], 0
		}
	}
	if n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (b *body) Close() error { return nil }
