// Package screen draws on a terminal: finished lines, which the terminal keeps in its own
// scrollback, and below them a live region that changes.
//
//   - A line that was appended is written once, whole, and never touched again.
//   - Lines and the live region below them are written together, at most a screen at a
//     time, so that no state between two writes has a line twice or misses one.
//   - While an overlay is shown on the alternate screen, lines wait.
//   - Nothing waits for the terminal: a slow one gets fewer frames, and every line. What it
//     has not shown yet is known by its answers, if it gives any.
package screen

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/abide-run/abide/internal/tui/text"
)

// The control sequences that the screen writes.
const (
	beginUpdate = "\x1b[?2026h"
	endUpdate   = "\x1b[?2026l"
	hideCursor  = "\x1b[?25l"
	showCursor  = "\x1b[?25h"
	eraseLine   = "\x1b[2K"
	// eraseBelow erases from the beginning of a row. It is not at the first column when it
	// erases the rows below: from the first cell of the screen, tmux moves all rows to the
	// scrollback instead.
	eraseBelow   = "\x1b[2K\x1b[C\x1b[J\r"
	enterOverlay = "\x1b[?1049h\x1b[2J"
	leaveOverlay = "\x1b[?1049l"
	takeKeys     = "\x1b[?2004h\x1b[>1u" // pastes are marked, and keys with modifiers can be told apart
	returnKeys   = "\x1b[<u\x1b[?2004l"
)

// A Frame is what the live region shows.
type Frame struct {
	Lines []text.Line // lines that are wider than the terminal are cut
	Row   int         // row of the cursor
	Col   int         // column of the cursor
	// Overlay is shown on the alternate screen instead, if it is not nil. The cursor is
	// in it if Row is not negative.
	Overlay []text.Line
}

// Options are the settings of a screen.
type Options struct {
	Encoder text.Encoder
	// Rigid means that the terminal does not wrap lines again when its width changes.
	Rigid bool
	// Size returns the size of the terminal as it is now; it may be nil. A terminal has
	// another size before the program is told of it.
	Size func() (columns, rows int)
	// Settle is how long nothing is written after a change of the size. Where the lines of
	// the live region are is known only if the terminal has the size that it tells, and
	// tmux tells changes that follow each other after up to a quarter of a second.
	Settle time.Duration
	// Paced means that the terminal is asked what it has shown. Its answers have to be
	// passed to [Screen.Read].
	Paced bool
}

// A Screen is one terminal. Its methods may be called from any goroutine.
type Screen struct {
	w    io.Writer
	opts Options

	mu      sync.Mutex
	changed *sync.Cond
	columns int
	rows    int
	waiting []text.Line // lines that are not written yet
	frame   Frame       // newest frame
	dirty   bool        // true if something is not written yet
	raw     []byte      // sequences to pass to the terminal
	resized bool        // true if the size has changed since the last write
	settled time.Time   // when the size counts as settled
	paused  bool        // true while another program has the terminal
	closed  bool
	pace    pace
	err     error // error of the terminal

	// What the terminal shows. Only the goroutine of run, or pause and Close when it does
	// not write, use these.
	writing   bool
	drawn     []string    // encoded lines of the live region
	lines     []text.Line // the same lines
	row, col  int         // position of the cursor in it
	drawnCols int         // size of the terminal when it was drawn
	drawnRows int
	shownRow  int // position of the cursor in the frame that is drawn
	shownCol  int
	overlay   []string // encoded lines of the overlay; nil if none is shown
	started   bool

	done chan struct{}
}

// New returns the screen of a terminal of some columns and rows, and starts to draw.
func New(w io.Writer, columns, rows int, opts Options) *Screen {
	s := &Screen{w: w, opts: opts, columns: columns, rows: rows, drawnCols: columns, drawnRows: rows, done: make(chan struct{})}
	s.changed = sync.NewCond(&s.mu)
	go s.run() // Close waits for it
	return s
}

// Append adds finished lines above the live region.
func (s *Screen) Append(lines ...text.Line) {
	if len(lines) > 0 {
		s.change(func() { s.waiting = append(s.waiting, lines...) })
	}
}

// Draw shows a frame. A frame that was not written yet is replaced.
func (s *Screen) Draw(f Frame) { s.change(func() { s.frame = f }) }

// Send passes a sequence to the terminal, such as a bell.
func (s *Screen) Send(sequence string) {
	s.change(func() { s.raw = append(s.raw, sequence...) })
}

// Resize tells the size of the terminal. The next frame has to be made for it.
func (s *Screen) Resize(columns, rows int) {
	s.change(func() { s.resize(columns, rows) })
}

// resize notes the size of the terminal. Nothing is written until it has settled.
func (s *Screen) resize(columns, rows int) {
	if columns == s.columns && rows == s.rows || columns <= 0 || rows <= 0 {
		return
	}
	s.columns, s.rows, s.resized = columns, rows, true
	if s.opts.Settle > 0 {
		s.settled = time.Now().Add(s.opts.Settle)
		time.AfterFunc(s.opts.Settle, func() { s.change(func() {}) })
	}
}

// look compares the size of the terminal with the known one. It reports whether the size
// has settled.
func (s *Screen) look() bool {
	if s.opts.Size != nil {
		s.resize(s.opts.Size())
	}
	return !time.Now().Before(s.settled)
}

// Redraw draws everything again that is not in the scrollback.
func (s *Screen) Redraw() { s.change(func() { s.resized = true }) }

// change changes what is to be shown.
func (s *Screen) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	s.dirty = true
	s.changed.Broadcast()
}

// Err returns the error of the terminal; nil if there was none.
func (s *Screen) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Flush waits until everything is written that waits now.
func (s *Screen) Flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for (s.dirty || s.writing) && s.err == nil && !s.paused {
		s.changed.Wait()
	}
}

// Pause takes the live region off the terminal, so that another program can use it. Lines
// that are appended meanwhile wait.
func (s *Screen) Pause() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.paused {
		return
	}
	s.paused = true
	s.awaitWrite()
	s.awaitAnswer() // it would be typed for the other program
	for s.err == nil && !s.look() {
		s.changed.Wait() // a timer ends it
	}
	s.write(s.removal())
	s.dirty = true
	s.changed.Broadcast()
}

// Resume shows the live region again, where the cursor of the terminal is.
func (s *Screen) Resume() { s.change(func() { s.paused = false }) }

// awaitWrite waits for the end of a write that is under way.
func (s *Screen) awaitWrite() {
	for s.writing {
		s.changed.Wait()
	}
}

// Close writes what waits, removes the live region and leaves the cursor where it was.
func (s *Screen) Close() error {
	s.mu.Lock()
	s.closed = true
	s.changed.Broadcast()
	s.mu.Unlock()
	<-s.done
	return s.err
}

// run writes until the screen is closed.
func (s *Screen) run() {
	defer close(s.done)
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		for (!s.dirty || s.paused) && !s.closed && s.err == nil {
			s.changed.Wait()
		}
		if s.err == nil && !s.paused && !s.look() {
			s.changed.Wait() // a timer ends it
			continue
		}
		if until, held := s.pace.held(time.Now()); held && s.err == nil && !s.paused && !s.closed {
			timer := s.wake(until)
			s.changed.Wait()
			timer.Stop()
			continue
		}
		switch {
		case s.err != nil:
			return
		case s.closed && !s.paused && len(s.waiting) > 0:
			s.frame = Frame{}
			s.step()
		case s.closed:
			if !s.paused {
				s.write(append(s.removal(), s.raw...))
			}
			return
		default:
			s.step()
		}
		s.changed.Broadcast()
	}
}

// step writes one part of what waits.
func (s *Screen) step() {
	if s.shown() {
		s.dirty = false
		return
	}
	var b bytes.Buffer
	b.WriteString(beginUpdate)
	if !s.started {
		b.WriteString(takeKeys)
		s.started = true
	}
	b.Write(s.raw)
	s.raw = nil
	s.dirty = false
	if s.frame.Overlay != nil {
		s.drawOverlay(&b)
	} else {
		s.drawInline(&b)
	}
	b.WriteString(endUpdate)
	if s.opts.Paced && !s.closed {
		s.pace.ask(&b, time.Now())
	}
	s.write(b.Bytes())
}

// shown reports whether the terminal shows the newest frame already. Most changes of a
// chat are none on the screen, and what is not written cannot meet a change of the size.
func (s *Screen) shown() bool {
	if !s.started || s.resized || len(s.raw) > 0 || len(s.waiting) > 0 || s.overlay != nil || s.frame.Overlay != nil || s.columns != s.drawnCols || s.rows != s.drawnRows {
		return false
	}
	return s.frame.Row == s.shownRow && s.frame.Col == s.shownCol && slices.Equal(s.encode(s.fit(s.frame.Lines)), s.drawn)
}

// write writes to the terminal without holding the lock.
func (s *Screen) write(p []byte) {
	s.writing = true
	s.mu.Unlock()
	_, err := s.w.Write(p)
	s.mu.Lock()
	s.writing = false
	if err != nil && s.err == nil {
		s.err = err
	}
	s.changed.Broadcast()
}

// drawInline writes lines that wait, and the live region.
func (s *Screen) drawInline(b *bytes.Buffer) {
	if s.overlay != nil {
		b.WriteString(leaveOverlay)
		s.overlay = nil
	}
	b.WriteString(hideCursor)
	shown := s.fit(s.frame.Lines)
	lines := s.encode(shown)
	if s.typedAlone(b, shown, lines) {
		return
	}
	part := s.nextPart(len(lines))
	if len(part) > 0 || s.resized || s.columns != s.drawnCols || s.rows != s.drawnRows {
		s.top(b)
		b.WriteString(eraseBelow)
		for _, l := range part {
			b.WriteString(s.opts.Encoder.Encode(l))
			b.WriteString("\r\n")
		}
		for i, l := range lines {
			if i > 0 {
				b.WriteString("\r\n")
			}
			b.WriteString(l)
		}
		s.row = max(0, len(lines)-1)
	} else {
		s.difference(b, lines)
	}
	s.resized = false
	s.drawn, s.lines, s.drawnCols, s.drawnRows = lines, shown, s.columns, s.rows
	s.shownRow, s.shownCol = s.frame.Row, s.frame.Col
	s.place(b)
	s.dirty = s.dirty || len(s.waiting) > 0
}

// typedAlone writes the row of the cursor alone if more has changed and the terminal is slow:
// who types sees the keys first. It reports false if everything is to be written.
func (s *Screen) typedAlone(b *bytes.Buffer, shown []text.Line, lines []string) bool {
	row := s.frame.Row - (len(s.frame.Lines) - len(lines))
	if !s.pace.slow || s.resized || s.columns != s.drawnCols || s.rows != s.drawnRows || len(lines) != len(s.drawn) || row < 0 || row >= len(lines) || lines[row] == s.drawn[row] {
		return false
	}
	s.move(b, row)
	b.WriteString(eraseLine + lines[row])
	s.drawn[row], s.lines[row] = lines[row], shown[row]
	s.shownRow, s.shownCol = s.frame.Row, s.frame.Col
	s.place(b)
	s.dirty = true
	return true
}

// nextPart takes lines that wait: as many as fit above the live region, at least one. A slow
// terminal gets few at a time.
func (s *Screen) nextPart(live int) []text.Line {
	room, left := max(1, s.rows-live), math.MaxInt
	if s.pace.slow {
		left = s.pace.window
	}
	n := 0
	for n < len(s.waiting) {
		left -= s.waiting[n].Width()
		if room -= s.waiting[n].Rows(s.columns); (room < 0 || left < 0) && n > 0 {
			break
		}
		n++
	}
	part := s.waiting[:n]
	if s.waiting = s.waiting[n:]; len(s.waiting) == 0 {
		s.waiting = nil
	}
	return part
}

// fit returns the lines of the live region as they fit on the terminal. The line of the
// cursor has a cell below the cursor: where a terminal that wraps the line again puts a
// cursor behind its last cell, is not known.
func (s *Screen) fit(lines []text.Line) []text.Line {
	cut := max(0, len(lines)-max(1, s.rows-1))
	var fitting []text.Line
	for i, l := range lines[cut:] {
		l = l.Cut(s.columns)
		if missing := min(s.frame.Col+1, s.columns) - l.Width(); i == max(0, s.frame.Row-cut) && missing > 0 {
			l = append(l[:len(l):len(l)], text.Span{Text: strings.Repeat(" ", missing)})
		}
		fitting = append(fitting, l)
	}
	return fitting
}

// encode returns lines as they are written.
func (s *Screen) encode(lines []text.Line) []string {
	var encoded []string
	for _, l := range lines {
		encoded = append(encoded, s.opts.Encoder.Encode(l))
	}
	return encoded
}

// top moves the cursor to the beginning of the live region.
func (s *Screen) top(b *bytes.Buffer) {
	b.WriteByte('\r')
	if up := s.above(); up > 0 {
		fmt.Fprintf(b, "\x1b[%dA", up)
	}
}

// above returns the number of rows of the live region above the cursor. A terminal whose
// width has changed has wrapped lines again.
func (s *Screen) above() int {
	if s.columns == s.drawnCols || s.opts.Rigid || s.columns <= 0 {
		return s.row
	}
	up := 0
	for _, l := range s.lines[:min(s.row, len(s.lines))] {
		up += l.Rows(s.columns)
	}
	if s.row < len(s.lines) {
		up += s.lines[s.row].RowOf(s.col, s.columns)
	}
	return up
}

// difference writes the lines of the live region that have changed.
func (s *Screen) difference(b *bytes.Buffer, lines []string) {
	for i, l := range lines {
		if i < len(s.drawn) && s.drawn[i] == l {
			continue
		}
		s.move(b, i)
		b.WriteString(eraseLine)
		b.WriteString(l)
	}
	if len(lines) < len(s.drawn) {
		s.move(b, len(lines))
		b.WriteString(eraseBelow)
	}
}

// move moves the cursor to the beginning of a row of the live region. Rows below its end
// are added.
func (s *Screen) move(b *bytes.Buffer, row int) {
	last := max(0, len(s.drawn)-1)
	b.WriteByte('\r')
	switch {
	case row < s.row:
		fmt.Fprintf(b, "\x1b[%dA", s.row-row)
	case row > s.row:
		if down := min(row, last) - s.row; down > 0 {
			fmt.Fprintf(b, "\x1b[%dB", down)
		}
		for range row - max(last, s.row) {
			b.WriteByte('\n')
		}
	}
	s.row = row
}

// place moves the cursor to its place in the live region and shows it.
func (s *Screen) place(b *bytes.Buffer) {
	row := min(max(0, s.frame.Row-(len(s.frame.Lines)-len(s.drawn))), max(0, len(s.drawn)-1))
	s.move(b, row)
	s.col = min(max(0, s.frame.Col), max(0, s.columns-1))
	if s.col > 0 {
		fmt.Fprintf(b, "\x1b[%dC", s.col)
	}
	if s.frame.Row >= 0 {
		b.WriteString(showCursor)
	}
}

// drawOverlay writes the overlay.
func (s *Screen) drawOverlay(b *bytes.Buffer) {
	whole := s.overlay == nil || s.resized
	if s.overlay == nil {
		b.WriteString(enterOverlay)
	} else if s.resized {
		b.WriteString("\x1b[2J")
	}
	b.WriteString(hideCursor)
	var lines []string
	for _, l := range s.frame.Overlay[:min(len(s.frame.Overlay), s.rows)] {
		lines = append(lines, s.opts.Encoder.Encode(l.Cut(s.columns)))
	}
	for len(lines) < s.rows {
		lines = append(lines, "")
	}
	for i, l := range lines {
		if whole || i >= len(s.overlay) || s.overlay[i] != l {
			fmt.Fprintf(b, "\x1b[%d;1H%s%s", i+1, eraseLine, l)
		}
	}
	if s.frame.Row >= 0 {
		fmt.Fprintf(b, "\x1b[%d;%dH%s", s.frame.Row+1, s.frame.Col+1, showCursor)
	}
	s.overlay = slices.Clip(lines)
	s.resized = false // the live region is drawn again for its own width: see above
}

// removal returns what takes the live region and the overlay off the terminal, and gives
// the keys back.
func (s *Screen) removal() []byte {
	var b bytes.Buffer
	if s.overlay != nil {
		b.WriteString(leaveOverlay)
		s.overlay = nil
	}
	s.top(&b)
	b.WriteString(eraseBelow + showCursor)
	if s.started {
		b.WriteString(returnKeys)
	}
	s.started = false
	s.drawn, s.lines, s.row, s.col = nil, nil, 0, 0
	s.drawnCols, s.drawnRows = s.columns, s.rows
	s.resized = true // nothing is drawn
	return b.Bytes()
}
