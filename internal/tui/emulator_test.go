package tui

import (
	"bytes"
	"strings"
	"sync"
	"testing"

	tea "charm.land/bubbletea/v2"

	"github.com/abide-run/abide/internal/tui/text"
)

// A sink collects what an emulator sends.
type sink struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (s *sink) take(p []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buf.Write(p)
}

// drawn returns what a terminal shows after some output, and what it has sent.
func drawn(t *testing.T, columns, rows int, do func(e *emulator)) (picture, string) {
	t.Helper()
	var s sink
	e := newEmulator(columns, rows, s.take)
	do(e)
	p := e.picture()
	e.close()
	return p, s.buf.String()
}

// TestAPictureObeysNothing: whatever a program prints, its picture has no control character,
// and rows as wide as the terminal.
func TestAPictureObeysNothing(t *testing.T) {
	for _, out := range []string{
		"plain", "\x1b]52;c;aGk=\a\x1b]0;title\ax", "a\u202eb\u2066c", "\x1b[31;48;2;1;2;3mred\x1b[m", "日本語 wide", "e\u0301 \U0001f468\u200d\U0001f469\u200d\U0001f467 \u2764\ufe0f",
		"\x1b[8mhidden\x1b[m", "\x1bP1$r0m\x1b\\", "\x1b[999999999b", "\x1b[?1049h\x1b[5;5Hthere", "\x9b31mx\x85", "\xff\xfe", "\x1b[5;100Hend", "\x1b]8;;http://x\aa link\x1b]8;;\a", "x\x1b[70000b",
	} {
		p, _ := drawn(t, 20, 6, func(e *emulator) {
			if err := e.write([]byte(out)); err != nil {
				t.Errorf("%q: %v", out, err)
			}
		})
		if len(p.lines) != 6 {
			t.Errorf("%q: %d rows", out, len(p.lines))
		}
		for _, l := range p.lines {
			if l.Width() != 20 {
				t.Errorf("%q: a row of %d columns: %q", out, l.Width(), l.String())
			}
			for _, s := range l {
				if s.Text != text.Clean(s.Text) || strings.Trim(s.Style.Chosen, "0123456789;:") != "" {
					t.Errorf("%q: shows %q in %q", out, s.Text, s.Style.Chosen)
				}
			}
		}
		if strings.Contains(out, "hidden") && strings.Contains(p.lines[0].String(), "hidden") {
			t.Error("what is concealed is shown")
		}
	}
}

// TestColoursOfAProgram are kept, and left out where there are none.
func TestColoursOfAProgram(t *testing.T) {
	p, _ := drawn(t, 20, 2, func(e *emulator) { e.write([]byte("\x1b[1;38;5;208;44mx\x1b[my")) })
	if got := (text.Encoder{}).Encode(p.lines[0][:2]); got != "\x1b[1;38;5;208;44mx\x1b[my"+strings.Repeat(" ", 18) {
		t.Errorf("with colours: %q", got)
	}
	if got := (text.Encoder{NoColour: true}).Encode(p.lines[0][:1]); got != "\x1b[1mx\x1b[m" {
		t.Errorf("without colours: %q", got)
	}
}

// TestKeysOfAProgram: keys are sent in the form that the program has chosen.
func TestKeysOfAProgram(t *testing.T) {
	press := func(e *emulator) {
		for _, k := range []tea.Key{{Code: 'a', Text: "A", Mod: tea.ModShift}, {Code: tea.KeyUp}, {Code: tea.KeyEnter}, {Code: 'c', Mod: tea.ModCtrl}, {Code: 'x', Mod: tea.ModAlt}, {Code: 'é', Text: "é"}} {
			e.press(k)
		}
		e.paste("two\nlines")
	}
	if _, sent := drawn(t, 20, 2, press); sent != "A\x1b[A\r\x03\x1bxétwo\rlines" {
		t.Errorf("sent %q", sent)
	}
	_, sent := drawn(t, 20, 2, func(e *emulator) { e.write([]byte("\x1b[?1h\x1b[?2004h")); press(e) })
	if sent != "A\x1bOA\r\x03\x1bxé\x1b[200~two\rlines\x1b[201~" {
		t.Errorf("sent %q", sent)
	}
}

// TestOldQuestionsAreNotAnswered: a program that has asked its terminal something before
// somebody came has had its answer, or does not wait for it any more.
func TestOldQuestionsAreNotAnswered(t *testing.T) {
	p, sent := drawn(t, 20, 2, func(e *emulator) {
		if err := e.replay([]byte("ab\x1b[6n\x1b[c")); err != nil {
			t.Error(err)
		}
		e.write([]byte("c\x1b[6n"))
	})
	if sent != "\x1b[1;4R" || p.lines[0].String() != "abc" || p.row != 0 || p.col != 3 {
		t.Errorf("sent %q, shows %q with the cursor in %d, %d", sent, p.lines[0].String(), p.row, p.col)
	}
}
