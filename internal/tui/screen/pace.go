package screen

import (
	"bytes"
	"slices"
	"strings"
	"time"
)

// A terminal takes what is written long before it shows it, if it is behind a slow line.
// After each write the screen asks it whether it is well, which it answers in the order of
// what it was sent. So the screen knows what was not shown yet, and holds frames back: they
// would be old when they are shown, and keys would wait for them.
const askStatus = "\x1b[5n"

// statusAnswers are the answers that terminals give.
var statusAnswers = []string{"\x1b[0n", "\x1b[?0n"}

const (
	// leastWindow and mostWindow bound the bytes that may be written and not yet shown.
	leastWindow = 256
	mostWindow  = 1 << 20
	// firstWindow is what is written to a terminal of which nothing is known.
	firstWindow = 4 << 10
	// prompt is the time within which a terminal should have shown what was written.
	prompt = 250 * time.Millisecond
	// silence is the time after which a terminal does not answer any more. What was written
	// counts as shown then.
	silence = 5 * time.Second
	// shy is the time after which a terminal that has never answered is not asked again.
	shy = time.Second
)

// A pace is what is known of the speed of a terminal.
type pace struct {
	window  int       // bytes that may be written and not yet shown
	written int       // bytes written since the last answer
	asked   time.Time // when the terminal was asked; zero if it owes no answer
	at      int       // bytes that were written when it was asked
	answers bool      // true if it has answered before
	mute    bool      // true if it does not answer
	slow    bool      // true if it is behind a slow line
	read    string    // bytes that were read last, of which an answer may be a part

	least time.Duration // shortest time in which an answer has come
}

// held reports whether what is written now would be shown late, and until when to wait if no
// answer comes.
func (p *pace) held(now time.Time) (until time.Time, held bool) {
	if p.asked.IsZero() || p.written < p.window && !p.slow {
		return time.Time{}, false
	}
	until = p.asked.Add(silence)
	if !p.answers {
		until = p.asked.Add(shy)
	}
	if now.Before(until) {
		return until, true
	}
	p.mute, p.asked, p.written = !p.answers, time.Time{}, 0
	return time.Time{}, false
}

// ask adds the question to a write, unless one is open.
func (p *pace) ask(b *bytes.Buffer, now time.Time) {
	if p.window == 0 {
		p.window = firstWindow
	}
	if !p.mute && p.asked.IsZero() {
		b.WriteString(askStatus)
		p.asked, p.at = now, p.written+b.Len()
	}
	p.written += b.Len()
}

// answered takes an answer in: what was written before the question is shown.
func (p *pace) answered(now time.Time) {
	p.mute = false
	if p.asked.IsZero() {
		return
	}
	took := now.Sub(p.asked)
	if p.least = min(p.least, took); !p.answers {
		p.least = took
	}
	switch took -= p.least; { // a line may be long, and yet take much
	case took <= prompt && p.written >= p.window/2:
		p.window = min(2*p.window, mostWindow)
	case took > prompt:
		p.window = min(p.window, max(leastWindow, int(float64(p.at)*float64(prompt)/float64(took))))
	}
	p.slow = p.window < firstWindow/2
	p.answers, p.asked, p.written = true, time.Time{}, max(0, p.written-p.at)
}

// longestAnswer is the length of the longest of them.
const longestAnswer = 5

// Read looks for answers of the terminal in what is typed. They stay in it: no key is like them.
func (s *Screen) Read(typed []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range typed {
		s.pace.read = s.pace.read[max(0, len(s.pace.read)-longestAnswer+1):] + string(rune(b))
		if slices.ContainsFunc(statusAnswers, func(answer string) bool { return strings.HasSuffix(s.pace.read, answer) }) {
			s.pace.answered(time.Now())
			s.changed.Broadcast()
		}
	}
}

// Owes reports whether an answer of the terminal has not come yet. Nobody else may read from
// the terminal until then.
func (s *Screen) Owes() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.pace.asked.IsZero()
}

// Slow reports whether the terminal is behind a slow line, so that little should change.
func (s *Screen) Slow() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pace.slow
}

// awaitAnswer waits for the answer that the terminal owes, for a while.
func (s *Screen) awaitAnswer() {
	if s.pace.asked.IsZero() {
		return
	}
	until := time.Now().Add(shy)
	defer s.wake(until).Stop()
	for !s.pace.asked.IsZero() && s.err == nil && time.Now().Before(until) {
		s.changed.Wait()
	}
}

// wake wakes those who wait at a moment.
func (s *Screen) wake(at time.Time) *time.Timer {
	return time.AfterFunc(time.Until(at), func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.changed.Broadcast()
	})
}
