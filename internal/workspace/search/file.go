package search

import (
	"bytes"
	"errors"
	"io"

	"github.com/abide-run/abide/internal/workspace/text"
)

const (
	windowSize = 256 << 10 // bytes that are searched at a time
	maxLine    = 8 << 20   // maximum bytes of a line; a longer one is searched in pieces
	maxWhole   = 16 << 20  // maximum bytes of a file that is searched as a whole, for a pattern that crosses lines
)

// ErrTooLarge means that a file is too large for a pattern that crosses lines.
var ErrTooLarge = errors.New("it is too large to be searched with a pattern that crosses lines")

// A Line is a line that is shown. Its text is only valid during the call.
type Line struct {
	Number int64 // number of the line; the first is 1
	Text   []byte
	Match  bool // true if the line matches; otherwise it is shown for context
	More   bool // true if the match began on an earlier line
}

// A Query says what to search for in a file.
type Query struct {
	Size          int64 // size of the file, if it is known
	Before, After int   // lines of context
	First         bool  // true to stop at the first match
	// Show is called with the lines, in order, until it returns false. Matches are
	// counted to the end in any case. It may be nil.
	Show func(Line) bool
}

// A Report is the result of the search of a file.
type Report struct {
	Count  int64 // number of lines that match, or of matches if they can cross lines
	Binary bool  // true if the file has a NUL byte, and was not searched
}

// File searches a file.
func (s *Searcher) File(r io.Reader, q Query) (Report, error) {
	f := &scan{Searcher: s, Query: q, in: r, line: 1}
	f.buf = f.buf[:0]
	if err := f.begin(); err != nil {
		return Report{}, err
	}
	for !f.Binary && f.search() {
		if err := f.fill(); err != nil {
			return Report{}, err
		}
	}
	if f.Binary {
		f.Count = 0
	}
	return f.Report, nil
}

// A scan is the state of the search of one file. A part of the file is in the searcher's
// buffer.
type scan struct {
	*Searcher
	Query
	Report
	in   io.Reader
	read int64
	eof  bool

	from  int   // end of the part that was searched and is kept for context
	shown int   // end of the lines that were shown, or need not be
	mark  int   // start of a line
	line  int64 // number of that line
	after int   // number of lines that are still to be shown after a match
}

// begin reads the first part, and decodes the file if it is UTF-16.
func (f *scan) begin() error {
	if err := f.fill(); err != nil || !text.IsUTF16(f.buf) {
		f.from = len(markUTF8) * bytes.Count(f.buf[:min(len(f.buf), len(markUTF8))], markUTF8)
		f.shown, f.mark = f.from, f.from
		return err
	}
	decoded, err := text.Reader(io.MultiReader(bytes.NewReader(bytes.Clone(f.buf)), f.in))
	if err != nil {
		return err
	}
	f.in, f.buf, f.eof, f.Size = decoded, f.buf[:0], false, 0
	return f.fill()
}

var markUTF8 = []byte("\xef\xbb\xbf")

// fill reads until the buffer has complete lines, or the file ends.
func (f *scan) fill() error {
	for room := f.window; !f.eof; room *= 2 {
		if cap(f.buf)-f.from < room {
			f.buf = append(make([]byte, 0, f.from+room), f.buf...)
		}
		if err := f.readTo(f.from + room); err != nil {
			return err
		}
		fresh := f.buf[f.from:]
		switch {
		case f.eof:
		case f.multiline && len(fresh) >= maxWhole:
			return ErrTooLarge
		case f.multiline:
			continue
		case len(fresh) >= maxLine, bytes.LastIndexByte(fresh, '\n') >= 0:
			return nil
		}
	}
	return nil
}

// readTo reads until the buffer has length bytes, or the file ends.
func (f *scan) readTo(length int) error {
	for len(f.buf) < length {
		n, err := f.in.Read(f.buf[len(f.buf):length])
		f.buf = f.buf[:len(f.buf)+n]
		f.read += int64(n)
		if err == io.EOF || f.Size > 0 && f.read == f.Size {
			f.eof = true
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// search searches the complete lines in the buffer and reports whether more has to be
// read.
func (f *scan) search() bool {
	end := len(f.buf)
	if !f.eof {
		if i := bytes.LastIndexByte(f.buf[f.from:], '\n'); i >= 0 {
			end = f.from + i + 1
		}
	}
	if f.Binary = bytes.IndexByte(f.buf[f.from:], 0) >= 0; f.Binary {
		return false
	}
	for f.from < end {
		start, stop, ok := f.next(f.buf[f.from:end])
		if !ok {
			break
		}
		f.Count++
		if f.First {
			return false
		}
		f.match(f.from+start, f.from+stop)
		f.from = min(f.from+stop+1, end)
	}
	f.showAfter(end)
	f.from = end
	f.keep()
	return !f.eof
}

// match shows the rest of the lines after the last match, the lines before this match,
// and the match.
func (f *scan) match(start, end int) {
	if f.Show == nil {
		return
	}
	f.showAfter(start)
	f.show(max(f.shown, f.lineBefore(start, f.Before)), start, f.Before, false)
	f.shown, _ = f.show(start, end, maxWhole, true)
	f.after = f.After
}

// showAfter shows the lines after a match, up to end.
func (f *scan) showAfter(end int) {
	if f.after > 0 {
		stop, n := f.show(f.shown, end, f.after, false)
		f.shown, f.after = stop, f.after-n
	}
}

// show shows at most most lines between two positions. It returns where it stopped and
// the number of lines.
func (f *scan) show(start, end, most int, match bool) (stop, lines int) {
	for f.Show != nil && lines < most && (start < end || match && start == end) {
		f.line += int64(bytes.Count(f.buf[f.mark:start], newline))
		f.mark = start
		_, stop := lineAt(f.buf, start, start)
		if !f.Show(Line{f.line, f.buf[start:stop], match, match && lines > 0}) {
			f.Show = nil
		}
		start, lines = stop+1, lines+1
	}
	return min(start, len(f.buf)), lines
}

var newline = []byte("\n")

// lineBefore returns the start of the line that is the given number of lines before a line.
func (f *scan) lineBefore(start, lines int) int {
	for ; lines > 0 && start > 0; lines-- {
		start = bytes.LastIndexByte(f.buf[:start-1], '\n') + 1
	}
	return start
}

// keep removes the searched part from the buffer, except lines that may be needed for
// context.
func (f *scan) keep() {
	if f.eof {
		return
	}
	first := f.from
	if f.Show != nil {
		if first = f.lineBefore(f.from, f.Before); f.from-first > maxLine {
			first = f.from // the lines are too long to keep
		}
		f.line += int64(bytes.Count(f.buf[f.mark:max(f.mark, first)], newline))
		f.mark = max(f.mark, first)
	}
	f.buf = append(f.buf[:0], f.buf[first:]...)
	f.from, f.shown, f.mark = f.from-first, max(0, f.shown-first), max(0, f.mark-first)
}
