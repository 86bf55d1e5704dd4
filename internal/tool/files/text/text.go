// Package text reads files as text: whatever is in them, what comes out is
// UTF-8.
//
// A file that begins with the mark of UTF-16 is decoded. The mark of UTF-8 is
// left out. Bytes that are not UTF-8 become U+FFFD, one each, when a text is
// shown; nothing here writes them back.
package text

import (
	"bufio"
	"bytes"
	"io"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// The marks at the start of a file.
const (
	markUTF8     = "\xef\xbb\xbf"
	markUTF16LE  = "\xff\xfe"
	markUTF16BE  = "\xfe\xff"
	longestMark  = 3
	sampleLength = 8 << 10
)

// IsUTF16 reports whether a file that begins like this is UTF-16.
func IsUTF16(start []byte) bool {
	return bytes.HasPrefix(start, []byte(markUTF16LE)) || bytes.HasPrefix(start, []byte(markUTF16BE))
}

// Reader reads a file as text: decoded, and without the mark at its start.
func Reader(r io.Reader) (io.Reader, error) {
	b := bufio.NewReaderSize(r, 1<<16)
	start, err := b.Peek(longestMark)
	if err != nil && err != io.EOF {
		return nil, err
	}
	switch {
	case IsUTF16(start):
		_, err := b.Discard(2)
		return &utf16Reader{in: b, big: start[0] == markUTF16BE[0]}, err
	case bytes.HasPrefix(start, []byte(markUTF8)):
		_, err := b.Discard(len(markUTF8))
		return b, err
	}
	return b, nil
}

// A utf16Reader decodes UTF-16. A half of a pair without the other becomes
// U+FFFD, and so does an odd byte at the end.
type utf16Reader struct {
	in   *bufio.Reader
	big  bool
	out  []byte // decoded and not yet read
	back []rune // read too far
	err  error
}

func (u *utf16Reader) Read(p []byte) (int, error) {
	for len(u.out) == 0 && u.err == nil {
		u.fill()
	}
	if len(u.out) == 0 {
		return 0, u.err
	}
	n := copy(p, u.out)
	u.out = u.out[n:]
	return n, nil
}

// fill decodes some more.
func (u *utf16Reader) fill() {
	u.out = u.out[:0]
	for len(u.out) < 1<<12 && u.err == nil {
		if c := u.next(); u.err == nil {
			u.out = utf8.AppendRune(u.out, c)
		}
	}
}

// next returns the next character.
func (u *utf16Reader) next() rune {
	c := u.unit()
	if u.err != nil || !utf16.IsSurrogate(c) {
		return c
	}
	low := u.unit()
	if u.err != nil {
		u.err = nil // comes again at the next call
		return utf8.RuneError
	}
	if r := utf16.DecodeRune(c, low); r != utf8.RuneError {
		return r
	}
	u.back = append(u.back, low)
	return utf8.RuneError
}

// unit returns the next 16 bits.
func (u *utf16Reader) unit() rune {
	if len(u.back) > 0 {
		c := u.back[0]
		u.back = u.back[:0]
		return c
	}
	a, err := u.in.ReadByte()
	if err != nil {
		u.err = err
		return 0
	}
	b, err := u.in.ReadByte()
	if err == io.EOF {
		return utf8.RuneError
	}
	if u.err = err; u.big {
		a, b = b, a
	}
	return rune(a) | rune(b)<<8
}

// Binary reports whether a file that begins like this is no text.
func Binary(start []byte) bool {
	start = start[:min(len(start), sampleLength)]
	return !IsUTF16(start) && bytes.IndexByte(start, 0) >= 0
}

// Valid returns bytes as UTF-8.
func Valid(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	var s strings.Builder
	s.Grow(len(b) + 32)
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		s.WriteRune(r)
		b = b[n:]
	}
	return s.String()
}

// Cut returns the longest start of a text that has at most so many bytes and
// splits no character.
func Cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most]
}
