package plainjson

import "bytes"

// A Text reads the texts of many values that look alike.
type Text struct {
	// Shape walks over a whole value, with [Scanner.Text] at most once. It
	// reports false if more counts in the value than the text and what Shape
	// remembers of it. That still holds for values after it, as long as Shape
	// is not called again.
	Shape func(*Scanner) bool

	scanner Scanner
	// What stood around the last text. The next value seldom differs in more
	// than the text, and then only that has to be read.
	before, after []byte
}

// Append appends the text of a value to dst.
func (t *Text) Append(dst, data []byte) ([]byte, bool) {
	if text, ok := t.sameAgain(dst, data); ok {
		return text, true
	}
	s := &t.scanner
	*s = Scanner{data: data, text: dst}
	t.before = t.before[:0] // Shape forgets what it knows of the last one
	if !t.Shape(s) {
		return dst, false
	}
	if s.space(); s.pos < len(data) {
		return dst, false
	}
	t.before = append(t.before[:0], data[:s.from]...)
	t.after = append(t.after[:0], data[s.to:]...)
	return s.text, true
}

// sameAgain reads a value that is like the last one around its text.
func (t *Text) sameAgain(dst, data []byte) ([]byte, bool) {
	if len(t.before) == 0 || !bytes.HasPrefix(data, t.before) {
		return dst, false
	}
	s := &t.scanner
	*s = Scanner{data: data, pos: len(t.before), text: dst}
	if !s.Text() || !bytes.Equal(data[s.pos:], t.after) {
		return dst, false
	}
	return s.text, true
}

// Once reports whether it is asked for the first time. A shape uses it for
// members that must not stand twice.
func Once(seen *bool) bool {
	first := !*seen
	*seen = true
	return first
}
