package cli

import (
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A calmWriter prints the output of commands to a terminal. It passes on text and colours, and
// leaves out everything else that speaks to the terminal: a command cannot move the cursor
// away, change modes, titles, the clipboard or the screen. Close ends colours that are left.
//
// Sequences may come in several parts. One that is never completed ends with its line, so
// that it hides nothing that follows.
type calmWriter struct {
	w       io.Writer
	rest    []byte // first bytes of a character whose others have not come yet
	state   calmState
	style   []byte // parameters of a control sequence so far
	colored bool   // true if a colour was set since the start
}

// A calmState says what the next character belongs to.
type calmState int

const (
	inText     calmState = iota
	inEscape             // a sequence that began with ESC
	inControl            // a control sequence: ESC [
	inString             // a text for the terminal: a title, the clipboard
	endsString           // such a text, after an ESC that may end it
)

// maxStyle is the most bytes of the parameters of a control sequence.
const maxStyle = 64

func (c *calmWriter) Write(data []byte) (int, error) {
	text := append(c.rest, data...)
	var out []byte
	for len(text) > 0 && (utf8.FullRune(text) || len(text) >= utf8.UTFMax) {
		r, size := utf8.DecodeRune(text)
		text = text[size:]
		out = c.next(out, r)
	}
	c.rest = slices.Clone(text)
	if _, err := c.w.Write(out); err != nil {
		return 0, err
	}
	return len(data), nil
}

// Close prints what is left of a character, and ends colours.
func (c *calmWriter) Close() error {
	var out []byte
	if len(c.rest) > 0 && c.state == inText {
		out = utf8.AppendRune(out, utf8.RuneError)
	}
	if c.rest = nil; c.colored {
		out = append(out, "\x1b[0m"...)
	}
	_, err := c.w.Write(out)
	return err
}

// next appends what a character adds to what is printed.
func (c *calmWriter) next(out []byte, r rune) []byte {
	switch {
	case r == '\n': // whatever is open ends here
		c.state = inText
		return append(out, '\n')
	case r == 0x18, r == 0x1a: // terminals drop a sequence at CAN and SUB
		c.state = inText
		return out
	}
	switch c.state {
	case inEscape:
		c.escape(r)
	case inControl:
		return c.control(out, r)
	case inString, endsString:
		c.skip(r)
	default:
		return c.text(out, r)
	}
	return out
}

func (c *calmWriter) text(out []byte, r rune) []byte {
	switch {
	case r == 0x1b:
		c.state = inEscape
	case r == 0x9b:
		c.state, c.style = inControl, c.style[:0]
	case strings.ContainsRune("\u0090\u0098\u009d\u009e\u009f", r):
		c.state = inString
	case r == '\t', r == '\r', r == '\b':
		return append(out, byte(r))
	case unicode.IsControl(r):
	case unicode.Is(unicode.Bidi_Control, r):
		return utf8.AppendRune(out, utf8.RuneError)
	default:
		return utf8.AppendRune(out, r)
	}
	return out
}

// escape handles the character after ESC, and those between them and the last one of a
// sequence.
func (c *calmWriter) escape(r rune) {
	switch {
	case r == '[':
		c.state, c.style = inControl, c.style[:0]
	case strings.ContainsRune("]PX^_", r):
		c.state = inString
	case r < 0x20 || r > 0x2f && r != 0x1b: // the last character of a short sequence
		c.state = inText
	}
}

// control handles a character of a control sequence. Only those that set colours are printed.
func (c *calmWriter) control(out []byte, r rune) []byte {
	switch {
	case r == 0x1b:
		c.state = inEscape
	case r >= 0x40 && r <= 0x7e:
		c.state = inText
		if r == 'm' && len(c.style) <= maxStyle && strings.Trim(string(c.style), "0123456789;:") == "" {
			c.colored = true
			out = append(append(append(out, "\x1b["...), c.style...), 'm')
		}
	case r < 0x20 || r > 0x7e:
	case len(c.style) <= maxStyle:
		c.style = append(c.style, byte(r))
	}
	return out
}

// skip handles a character of a text for the terminal, which is not printed.
func (c *calmWriter) skip(r rune) {
	switch {
	case r == 0x07, r == 0x9c, c.state == endsString && r == '\\':
		c.state = inText
	case r == 0x1b:
		c.state = endsString
	case c.state == endsString: // another sequence has begun
		c.state = inEscape
		c.escape(r)
	}
}
