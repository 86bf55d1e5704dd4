package cli

import (
	"fmt"
	"time"
)

// meterPause is how long a command takes before it says how far it is, and between two
// times that it does.
const meterPause = 2 * time.Second

// A meter says on stderr how far a command is that takes long: on a terminal in one line.
type meter struct {
	*progress
	unit  string
	next  time.Time
	shown bool
}

// newMeter returns a meter for things of a kind, like events. A command with several stages
// needs no kind.
func (a *app) newMeter(unit string) *meter {
	return &meter{progress: a.newProgress(), unit: unit, next: time.Now().Add(meterPause)}
}

// tell says how many things are done, unless it did a moment ago.
func (m *meter) tell(done, total int64) {
	m.show(func() string {
		return fmt.Sprintf("%s of %s %s, %d%%", grouped(int(done)), grouped(int(total)), m.unit, done*100/max(total, 1))
	})
}

// stage says how far a part of the command is, unless it did a moment ago.
func (m *meter) stage(name string, done, total int64) {
	m.show(func() string {
		if total <= 0 {
			return fmt.Sprintf("%s: %s", name, grouped(int(done)))
		}
		return fmt.Sprintf("%s: %d%%", name, done*100/total)
	})
}

func (m *meter) show(text func() string) {
	now := time.Now()
	if m.quiet || now.Before(m.next) {
		return
	}
	m.next = now.Add(meterPause)
	if terminal(m.err) == nil {
		m.say(faint, text())
		return
	}
	m.shown = true
	m.err.printf("\r\x1b[K%s", m.paint.in(faint, clip(text(), width(m.err)-1)))
}

// end removes the line from a terminal.
func (m *meter) end() {
	if m.shown {
		m.err.printf("\r\x1b[K")
	}
}
