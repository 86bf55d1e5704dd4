package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/abide-run/abide/internal/tui/text"
)

// A region is what a command shows below its output at a terminal while it waits: it is drawn
// again and again, and taken away before anything else is written. The terminal keeps nothing
// of it.
type region struct {
	tty     *os.File
	encoder text.Encoder
	lines   func(columns, rows int) []text.Line // called with mu held
	over    chan struct{}                       // closed when nothing is to be drawn any more
	drawing sync.WaitGroup

	mu      sync.Mutex
	newLine bool        // true if the cursor is at the beginning of a line
	drawn   []text.Line // what the terminal shows of it
	shown   string
}

// frameTime is the time between two pictures of a region.
const frameTime = 120 * time.Millisecond

// newRegion begins to draw what lines returns.
func newRegion(tty *os.File, lines func(columns, rows int) []text.Line) *region {
	r := &region{
		tty: tty, lines: lines, newLine: true, over: make(chan struct{}),
		encoder: text.Encoder{NoColour: os.Getenv("NO_COLOR") != "", ASCII: !knowsUTF8()},
	}
	r.drawing.Go(r.run)
	return r
}

// run draws until close.
func (r *region) run() {
	tick := time.NewTicker(frameTime)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			r.do(r.drawLocked)
		case <-r.over:
			return
		}
	}
}

// do calls f while nothing is drawn or written.
func (r *region) do(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
}

// close takes the region off the terminal for good.
func (r *region) close() {
	close(r.over)
	r.drawing.Wait()
	r.do(func() { _, _ = io.WriteString(r.tty, r.removalLocked()) }) // a terminal that is gone shows nothing
}

// drawLocked draws the region if it has changed, and if the line above it is complete.
func (r *region) drawLocked() {
	columns, rows := sizeOf(r.tty)
	if !r.newLine {
		return
	}
	var lines []text.Line
	shown := ""
	for i, l := range r.lines(columns, rows) {
		if i > 0 {
			shown += "\r\n"
		}
		l = l.Cut(columns - 1) // the cursor stays behind the last line
		lines = append(lines, l)
		shown += r.encoder.Encode(l)
	}
	if shown == r.shown {
		return
	}
	_, _ = io.WriteString(r.tty, r.removalLocked()+shown) // the output says if the terminal is gone
	r.drawn, r.shown = lines, shown
}

// removalLocked returns what takes the region off the terminal.
func (r *region) removalLocked() string {
	if len(r.drawn) == 0 {
		return ""
	}
	columns, _ := sizeOf(r.tty) // another one than before, if the terminal has wrapped the lines again
	up := -1
	for _, l := range r.drawn {
		up += l.Rows(columns)
	}
	r.drawn, r.shown = nil, ""
	if up > 0 {
		return fmt.Sprintf("\r\x1b[%dA\x1b[J", up)
	}
	return "\r\x1b[J"
}

// write writes output to the terminal in place of the region.
func (r *region) write(w io.Writer, b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	removal := r.removalLocked()
	n, err := w.Write(append([]byte(removal), b...))
	if len(b) > 0 {
		r.newLine = bytes.HasSuffix(b, []byte("\n"))
	}
	return max(0, n-len(removal)), err
}

// sizeOf returns the columns and rows of a terminal: 80 and 24 if it does not tell.
func sizeOf(tty *os.File) (columns, rows int) {
	columns, rows = 80, 24
	_ = control(tty, func(fd int) error { // it does not tell
		size, err := unix.IoctlGetWinsize(fd, unix.TIOCGWINSZ)
		if err == nil && size.Col > 0 && size.Row > 0 {
			columns, rows = int(size.Col), int(size.Row)
		}
		return err
	})
	return columns, rows
}
