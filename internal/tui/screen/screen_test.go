package screen_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/charmbracelet/x/vt"

	"github.com/abide-run/abide/internal/tui/screen"
	"github.com/abide-run/abide/internal/tui/text"
)

// An emulator is a terminal, and a look at it after each write.
type emulator struct {
	mu    sync.Mutex
	vt    *vt.Emulator
	after func()
	most  int // largest number of lines of a write
	shown []byte
	torn  int // number of writes with text that are not one synchronized update
}

func newEmulator(t *testing.T, columns, rows int) *emulator {
	e := &emulator{vt: vt.NewEmulator(columns, rows)}
	t.Cleanup(func() { e.vt.Close() })
	return e
}

func (e *emulator) Write(p []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.most = max(e.most, bytes.Count(p, []byte("\n"))+1)
	e.shown = append(e.shown, p...)
	update := bytes.HasPrefix(p, []byte("\x1b[?2026h")) && bytes.HasSuffix(p, []byte("\x1b[?2026l")) && bytes.Count(p, []byte("2026")) == 2
	if bytes.Contains(p, []byte("li")) && !update {
		e.torn++
	}
	n, err := e.vt.Write(p)
	if e.after != nil {
		e.after()
	}
	return n, err
}

// all returns the scrollback and the screen.
func (e *emulator) all() []string {
	var lines []string
	row := func(width int, cell func(x int) string) {
		var b strings.Builder
		for x := range width {
			b.WriteString(cell(x))
		}
		lines = append(lines, strings.TrimRight(b.String(), " "))
	}
	for y := range e.vt.ScrollbackLen() {
		row(e.vt.Width(), func(x int) string {
			if c := e.vt.ScrollbackCellAt(x, y); c != nil {
				return c.Content
			}
			return " "
		})
	}
	for y := range e.vt.Height() {
		row(e.vt.Width(), func(x int) string {
			if c := e.vt.CellAt(x, y); c != nil && c.Content != "" {
				return c.Content
			}
			return " "
		})
	}
	for len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// live returns a live region of some lines.
func live(n, rows int) screen.Frame {
	f := screen.Frame{Row: rows - 1, Col: 2}
	for i := range rows {
		f.Lines = append(f.Lines, text.Plain(fmt.Sprintf("live %d of %d", i, n)))
	}
	return f
}

// TestLinesAreThereOnceAndInOrder: in every state between two writes, the finished lines
// are a beginning of all lines, and only the live region is below them.
func TestLinesAreThereOnceAndInOrder(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {20, 5}, {40, 10}} {
		e := newEmulator(t, size[0], size[1])
		next := 0
		e.after = func() {
			at := 0
			for _, l := range e.all() {
				switch {
				case strings.HasPrefix(l, "line "):
					if l != fmt.Sprintf("line %d", at) {
						t.Errorf("%v: %q at %d", size, l, at)
					}
					at++
				case strings.HasPrefix(l, "live ") && at < next:
					t.Errorf("%v: the live region is above line %d", size, at)
				}
			}
			next = at
		}
		s := screen.New(e, size[0], size[1], screen.Options{})
		for i := range 300 {
			s.Append(text.Plain(fmt.Sprintf("line %d", i)))
			if i%7 == 0 {
				s.Draw(live(i, 1+i%(size[1]-2)))
			}
			if i%50 == 0 {
				s.Flush()
			}
		}
		s.Flush()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if e.most > size[1] {
			t.Errorf("%v: %d lines were written at once", size, e.most)
		}
		if e.torn > 0 {
			t.Errorf("%v: %d writes are not one update", size, e.torn)
		}
		if got := e.all(); len(got) != 300 || got[299] != "line 299" {
			t.Errorf("%v: %d lines are left, the last is %q", size, len(got), got[len(got)-1])
		}
	}
}

// A live region that gets lower leaves nothing of itself.
func TestALowerLiveRegionLeavesNothing(t *testing.T) {
	e := newEmulator(t, 40, 10)
	s := screen.New(e, 40, 10, screen.Options{})
	for _, rows := range []int{6, 2, 8, 1} {
		s.Draw(live(0, rows))
		s.Flush()
		if got := e.all(); len(got) != rows {
			t.Errorf("%d rows are left of %d:\n%s", len(got), rows, strings.Join(got, "\n"))
		}
	}
	s.Close()
}

// A sequence for the terminal itself, such as a bell, is sent once, also below an overlay.
func TestASequenceIsSentOnce(t *testing.T) {
	e := newEmulator(t, 40, 10)
	s := screen.New(e, 40, 10, screen.Options{})
	s.Draw(live(0, 2))
	s.Send("\x1b]9;first\a")
	s.Flush()
	s.Draw(screen.Frame{Overlay: live(0, 3).Lines, Row: -1})
	s.Send("\x1b]9;second\a")
	s.Close()
	for _, want := range []string{"\x1b]9;first\a", "\x1b]9;second\a"} {
		if n := bytes.Count(e.shown, []byte(want)); n != 1 {
			t.Errorf("%q was sent %d times", want, n)
		}
	}
}

// Who leaves at once loses none of the lines that wait.
func TestLinesThatWaitAreWrittenAtTheEnd(t *testing.T) {
	e := newEmulator(t, 40, 10)
	s := screen.New(e, 40, 10, screen.Options{})
	var lines []text.Line
	for i := range 5000 {
		lines = append(lines, text.Plain(fmt.Sprintf("line %d", i)))
	}
	s.Draw(live(0, 2))
	s.Append(lines...)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if got := e.all(); len(got) != 5000 || got[4999] != "line 4999" {
		t.Errorf("%d lines are left of 5000", len(got))
	}
}

// A line that is wider than the terminal is written whole, and counted for as many rows
// as it has.
func TestLongLinesAreNotCut(t *testing.T) {
	e := newEmulator(t, 10, 6)
	s := screen.New(e, 10, 6, screen.Options{})
	s.Draw(live(0, 2))
	for i := range 5 {
		s.Append(text.Plain(fmt.Sprintf("%d%s", i, strings.Repeat("x", 24))))
	}
	s.Flush()
	s.Close()
	if got, want := strings.Join(e.all(), ""), "0"+strings.Repeat("x", 24); !strings.HasPrefix(got, want+"1") {
		t.Errorf("shown: %s", got)
	}
}

func TestLinesWaitUnderAnOverlay(t *testing.T) {
	e := newEmulator(t, 40, 8)
	s := screen.New(e, 40, 8, screen.Options{})
	s.Append(text.Plain("before"))
	s.Draw(live(0, 2))
	s.Flush()
	s.Draw(screen.Frame{Overlay: []text.Line{text.Plain("overlay")}, Row: -1})
	s.Append(text.Plain("meanwhile"))
	s.Flush()
	if got := e.all(); !e.vt.IsAltScreen() || got[0] != "overlay" || strings.Contains(strings.Join(got, "\n"), "meanwhile") {
		t.Errorf("under the overlay: %q", got)
	}
	s.Draw(live(1, 2))
	s.Flush()
	if got, want := strings.Join(e.all(), "\n"), "before\nmeanwhile\nlive 0 of 1\nlive 1 of 1"; got != want {
		t.Errorf("after the overlay:\n%s", got)
	}
	s.Close()
	if got := strings.Join(e.all(), "\n"); got != "before\nmeanwhile" {
		t.Errorf("at the end:\n%s", got)
	}
}

// A terminal that gets another size, and may have forgotten what it showed, shows the whole
// overlay again, though no line of it has changed.
func TestAnOverlayIsDrawnAgainAfterAResize(t *testing.T) {
	e := newEmulator(t, 40, 8)
	s := screen.New(e, 40, 8, screen.Options{})
	overlay := screen.Frame{Overlay: live(0, 4).Lines, Row: -1}
	s.Draw(overlay)
	s.Flush()
	e.mu.Lock()
	e.vt.Resize(30, 6)
	e.vt.Write([]byte("\x1b[H\x1b[J"))
	e.mu.Unlock()
	s.Resize(30, 6)
	s.Draw(overlay)
	s.Flush()
	if got := e.all(); len(got) != 4 || got[0] != "live 0 of 0" {
		t.Errorf("shown:\n%s", strings.Join(got, "\n"))
	}
	s.Close()
}

func TestTheCursorIsInTheLiveRegion(t *testing.T) {
	e := newEmulator(t, 40, 10)
	s := screen.New(e, 40, 10, screen.Options{})
	s.Append(text.Plain("one"), text.Plain("two"))
	f := live(0, 4)
	f.Row, f.Col = 2, 7
	s.Draw(f)
	s.Flush()
	if p := e.vt.CursorPosition(); p.X != 7 || p.Y != 4 {
		t.Errorf("the cursor is at %v", p)
	}
	f.Row = 1
	s.Draw(f)
	s.Flush()
	if p := e.vt.CursorPosition(); p.Y != 3 {
		t.Errorf("the cursor is at %v", p)
	}
	s.Close()
}

// A pause gives the terminal to another program, and nothing is written meanwhile.
func TestPauseGivesTheTerminalAway(t *testing.T) {
	e := newEmulator(t, 40, 10)
	s := screen.New(e, 40, 10, screen.Options{})
	s.Append(text.Plain("before"))
	s.Draw(live(0, 3))
	s.Flush()
	s.Pause()
	s.Append(text.Plain("meanwhile"))
	s.Draw(live(1, 3))
	if got := strings.Join(e.all(), "\n"); got != "before" {
		t.Errorf("while it is paused:\n%s", got)
	}
	fmt.Fprint(e, "output of another program\r\n")
	s.Resume()
	s.Flush()
	s.Close()
	if got := strings.Join(e.all(), "\n"); got != "before\noutput of another program\nmeanwhile" {
		t.Errorf("at the end:\n%s", got)
	}
	for taken, returned := range map[string]string{"\x1b[?2004h": "\x1b[?2004l", "\x1b[>1u": "\x1b[<u"} { // how keys arrive
		if a, b := bytes.Count(e.shown, []byte(taken)), bytes.Count(e.shown, []byte(returned)); a != 2 || b != 2 {
			t.Errorf("%q was set %d times, and %q %d times", taken, a, returned, b)
		}
	}
}

// A terminal that takes its time gets the newest frame and every line, and whoever draws
// does not wait for it.
func TestASlowTerminalGetsFewerFramesAndEveryLine(t *testing.T) {
	e := newEmulator(t, 40, 10)
	gate := make(chan struct{})
	var once sync.Once
	e.after = func() { once.Do(func() { <-gate }) }
	s := screen.New(e, 40, 10, screen.Options{})
	s.Draw(live(0, 2))
	for i := range 1000 {
		s.Draw(live(i, 2))
		if i%100 == 0 {
			s.Append(text.Plain(fmt.Sprintf("line %d", i)))
		}
	}
	close(gate)
	s.Flush()
	got := strings.Join(e.all(), "\n")
	for i := 0; i < 1000; i += 100 {
		if strings.Count(got, fmt.Sprintf("line %d\n", i)) != 1 {
			t.Errorf("line %d is not there once:\n%s", i, got)
		}
	}
	if !strings.HasSuffix(got, "live 1 of 999") {
		t.Errorf("not the newest frame:\n%s", got)
	}
	s.Close()
}

type brokenTerminal struct{}

func (brokenTerminal) Write([]byte) (int, error) { return 0, errors.New("gone") }

func TestATerminalThatIsGoneEndsTheScreen(t *testing.T) {
	s := screen.New(brokenTerminal{}, 40, 10, screen.Options{})
	s.Append(text.Plain("x"))
	s.Flush()
	if s.Err() == nil || s.Close() == nil {
		t.Error("no error")
	}
}
