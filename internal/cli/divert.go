package cli

import (
	"bytes"
	"strconv"
	"strings"
	"sync"
)

// divertErrors passes what is written to stderr to the chat, line by line, until the
// returned function is called: it would be in the middle of the screen otherwise.
func (a *app) divertErrors(to chan<- string) (back func()) {
	before := a.err.w
	if terminal(a.err) == nil {
		return func() {} // what goes to a file goes on doing so
	}
	w := &lineWriter{to: to}
	a.err.redirect(w)
	return func() {
		a.err.redirect(before)
		_, _ = before.Write(w.rest) // the last words of a line
	}
}

// A lineWriter sends whole lines to a channel. Lines for which there is no room are
// dropped: nobody can read that many.
type lineWriter struct {
	mu   sync.Mutex
	to   chan<- string
	rest []byte
}

func (w *lineWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rest = append(w.rest, b...)
	for {
		line, rest, found := bytes.Cut(w.rest, []byte("\n"))
		if !found {
			return len(b), nil
		}
		w.rest = rest
		select {
		case w.to <- withoutTime(string(line)):
		default:
		}
	}
}

// withoutTime returns a line as a person in a chat reads it: of a line of the engine's log,
// what happened comes first, and when and how bad it is are left out.
func withoutTime(line string) string {
	_, rest, found := strings.Cut(line, " msg=")
	if !found || !strings.HasPrefix(line, "time=") {
		return line
	}
	said, about, _ := strings.Cut(rest, " ")
	if quoted, err := strconv.QuotedPrefix(rest); err == nil {
		said, about = rest[:len(quoted)], strings.TrimSpace(rest[len(quoted):])
		said, _ = strconv.Unquote(said) // it is quoted
	}
	if about == "" {
		return said
	}
	return said + " (" + about + ")"
}
