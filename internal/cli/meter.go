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

// newMeter returns a meter for things of a kind, like events.
func (a *app) newMeter(unit string) *meter {
	return &meter{progress: a.newProgress(), unit: unit, next: time.Now().Add(meterPause)}
}

func (m *meter) tell(done, total int64) {
	now := time.Now()
	if m.quiet || !now.After(m.next) {
		return
	}
	m.next = now.Add(meterPause)
	text := fmt.Sprintf("%s of %s %s, %d%%", grouped(int(done)), grouped(int(total)), m.unit, done*100/max(total, 1))
	if terminal(m.err) == nil {
		m.say(faint, text)
		return
	}
	m.shown = true
	m.err.printf("\r\x1b[K%s", m.paint.in(faint, text))
}

// end removes the line from a terminal.
func (m *meter) end() {
	if m.shown {
		m.err.printf("\r\x1b[K")
	}
}
