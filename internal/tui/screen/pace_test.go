package screen_test

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/charmbracelet/x/vt"

	"github.com/abide-run/abide/internal/tui/screen"
	"github.com/abide-run/abide/internal/tui/text"
)

// A slowLine is a terminal behind a line that takes everything at once, and shows some bytes
// in each second.
type slowLine struct {
	*emulator
	mu     sync.Mutex
	more   *sync.Cond
	sent   []byte
	closed bool
	done   chan struct{}

	answering sync.WaitGroup
}

func newSlowLine(columns, rows, bytesPerSecond int, answer func([]byte)) *slowLine {
	l := &slowLine{emulator: &emulator{vt: vt.NewEmulator(columns, rows)}, done: make(chan struct{})}
	l.vt.SetScrollbackSize(10_000)
	l.more = sync.NewCond(&l.mu)
	if answer != nil {
		l.answering.Go(func() {
			buf := make([]byte, 256)
			for {
				n, err := l.vt.Read(buf)
				if err != nil {
					return
				}
				answer(buf[:n])
			}
		})
	}
	go func() {
		defer close(l.done)
		const part = 20 // parts of a second
		for {
			l.mu.Lock()
			for len(l.sent) == 0 && !l.closed {
				l.more.Wait()
			}
			n := min(len(l.sent), bytesPerSecond/part)
			now := l.sent[:n:n]
			l.sent = l.sent[n:]
			l.mu.Unlock()
			if n == 0 {
				return
			}
			time.Sleep(time.Second / part)
			_, _ = l.emulator.Write(now) // it is memory
		}
	}()
	return l
}

func (l *slowLine) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sent = append(l.sent, p...)
	l.more.Broadcast()
	return len(p), nil
}

// close shows what was sent, and ends the terminal.
func (l *slowLine) close() {
	l.mu.Lock()
	l.closed = true
	l.more.Broadcast()
	l.mu.Unlock()
	<-l.done
	_ = l.vt.InputPipe().(io.Closer).Close() // it is memory
	l.answering.Wait()
}

// shows reports whether a row of the screen contains a text.
func (l *slowLine) shows(s string) bool {
	l.emulator.mu.Lock()
	defer l.emulator.mu.Unlock()
	return strings.Contains(strings.Join(l.all(), "\n"), s)
}

// TestKeysAreShownSoonOnASlowLine: while much changes fifty times a second, and lines are
// finished, a terminal that shows 1 kB in a second shows a key within a second, and at the end
// every line once.
func TestKeysAreShownSoonOnASlowLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lines = 40
		var s *screen.Screen
		line := newSlowLine(80, 24, 1000, func(p []byte) { s.Read(p) })
		s = screen.New(line, 80, 24, screen.Options{Paced: true})
		var latest time.Duration
		pressed, typed, next := time.Time{}, "", 0
		for i := range 50 * 60 {
			rows := 10
			if s.Slow() {
				rows = 4
			}
			f := screen.Frame{Row: rows - 2, Col: 2 + len(typed)}
			for r := range rows - 2 {
				f.Lines = append(f.Lines, text.Plain(strings.Repeat(fmt.Sprintf("%d:%d ", i, r), 7)))
			}
			f.Lines = append(f.Lines, text.Plain("> "+typed), text.Plain("the status"))
			s.Draw(f)
			for next < lines && (next < lines/2 && i >= 75*next || i >= 75*lines/2) { // the second half at once
				s.Append(text.Plain(fmt.Sprintf("line %02d %s", next, strings.Repeat("x", 60))))
				next++
			}
			if pressed.IsZero() && i > 500 && i%97 == 0 {
				pressed, typed = time.Now(), fmt.Sprintf("key%d.", i)
			}
			if !pressed.IsZero() && line.shows("> "+typed) {
				latest = max(latest, time.Since(pressed))
				pressed = time.Time{}
			}
			time.Sleep(20 * time.Millisecond)
		}
		if latest == 0 || latest > time.Second {
			t.Errorf("a key is shown after %v", latest)
		}
		if !line.shows(fmt.Sprintf("line %02d", lines-1)) {
			t.Error("finished lines are not shown while the rest changes")
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		line.close()
		var shown, want []string
		for _, l := range line.all() {
			if strings.HasPrefix(l, "line ") {
				shown = append(shown, l[:7])
			}
		}
		for i := range lines {
			want = append(want, fmt.Sprintf("line %02d", i))
		}
		if a, b := strings.Join(shown, ","), strings.Join(want, ","); a != b {
			t.Errorf("shown are %s, want %s", a, b)
		}
		t.Logf("latest key after %v", latest)
	})
}

// TestATerminalThatSaysNothing is not waited for.
func TestATerminalThatSaysNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		line := newSlowLine(80, 24, 1_000_000, nil)
		go func() { _, _ = io.Copy(io.Discard, line.vt) }() // what it would answer is lost
		s := screen.New(line, 80, 24, screen.Options{Paced: true})
		began := time.Now()
		for i := range 2000 {
			s.Append(text.Plain(fmt.Sprintf("line %d", i)))
		}
		s.Flush()
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("it is waited for %v", took)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		line.close()
		if !strings.Contains(strings.Join(line.all(), "\n"), "line 1999") {
			t.Error("the last line is not shown")
		}
	})
}

// TestALongLineIsNotSlow: a terminal that is far away, and takes much, is not slow.
func TestALongLineIsNotSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s *screen.Screen
		line := newSlowLine(80, 24, 1_000_000, func(p []byte) {
			time.Sleep(600 * time.Millisecond)
			s.Read(p)
		})
		s = screen.New(line, 80, 24, screen.Options{Paced: true})
		for i := range 100 {
			s.Draw(live(i, 5))
			time.Sleep(33 * time.Millisecond)
		}
		began := time.Now()
		for i := range 1000 {
			s.Append(text.Plain(fmt.Sprintf("line %d %s", i, strings.Repeat("x", 60))))
		}
		s.Flush()
		if took := time.Since(began); took > 20*time.Second || s.Slow() {
			t.Errorf("1,000 lines take %v; it is slow: %t", took, s.Slow())
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		line.close()
	})
}
