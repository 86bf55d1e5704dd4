package plainjson

import "bytes"

// A Text reads one text from each of many similar values.
type Text struct {
	// Shape scans a whole value, and calls [Scanner.Text] at most once. It reports
	// false if the value contains anything of interest beside the text and what
	// Shape has stored. What it has stored is also true of the following values,
	// until Shape is called again.
	Shape func(*Scanner) bool

	scanner Scanner
	// The bytes before and after the last text. If they are the same in the next
	// value, only the text has to be read.
	before, after []byte
}

// Append appends the text of a value to dst.
func (t *Text) Append(dst, data []byte) ([]byte, bool) {
	if text, ok := t.sameAgain(dst, data); ok {
		return text, true
	}
	s := &t.scanner
	*s = Scanner{data: data, text: dst}
	t.before = t.before[:0] // the shape of the last value says nothing about this one
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

// sameAgain reads the text of a value that is otherwise the same as the last one.
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

// Once reports whether seen is false, and sets it. A Shape uses it for members that must
// not be repeated.
func Once(seen *bool) bool {
	first := !*seen
	*seen = true
	return first
}
