// Package text reads files as UTF-8 text, whatever is in them.
//
// A file that begins with a byte order mark of UTF-16 is decoded. The byte order mark of
// UTF-8 is removed. Each byte that is not UTF-8 becomes U+FFFD.
package text

import (
	"bufio"
	"bytes"
	"io"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Byte order marks at the start of a file.
const (
	markUTF8    = "\xef\xbb\xbf"
	markUTF16LE = "\xff\xfe"
	markUTF16BE = "\xfe\xff"
	LongestMark = 3 // maximum bytes of a mark
)

// IsUTF16 reports whether a file with this beginning is UTF-16.
func IsUTF16(start []byte) bool {
	return bytes.HasPrefix(start, []byte(markUTF16LE)) || bytes.HasPrefix(start, []byte(markUTF16BE))
}

// TrimMark returns a text in UTF-8 without byte order mark.
func TrimMark(text []byte) []byte { return bytes.TrimPrefix(text, []byte(markUTF8)) }

// Reader returns a reader of the decoded text of a file, without byte order mark.
func Reader(r io.Reader) (io.Reader, error) {
	b := bufio.NewReaderSize(r, 1<<16)
	start, err := b.Peek(LongestMark)
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

// A utf16Reader decodes UTF-16. An unpaired surrogate becomes U+FFFD, and so does an odd
// byte at the end.
type utf16Reader struct {
	in   *bufio.Reader
	big  bool
	out  []byte // decoded bytes that are not read yet
	back []rune // unit that was read too early; the next one to return
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

// fill decodes the next part.
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
		u.err = nil // the next call gets the error again
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

// Valid returns bytes as valid UTF-8.
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

// Cut returns the longest beginning of a text that has at most most bytes and splits no
// character.
func Cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most]
}
