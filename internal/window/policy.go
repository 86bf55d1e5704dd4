package window

import (
	"fmt"
	"time"

	"github.com/abide-run/abide/internal/model"
)

// unknownWindow is the window that is assumed of an unknown model, in tokens.
const unknownWindow = 128_000

// Limits are the limits of a model's window.
type Limits struct {
	Window int // tokens of a request and its answer together
	Output int // tokens that are reserved for the answer
}

// LimitsOf returns the limits of a model that is asked for answers of at most maxOutput
// tokens; zero means the model's maximum.
func LimitsOf(can model.Capabilities, maxOutput int) Limits {
	l := Limits{Window: can.Window, Output: maxOutput}
	if l.Window <= 0 {
		l.Window = unknownWindow
	}
	if l.Output <= 0 {
		l.Output = max(0, can.MaxOutput)
	}
	if l.Output >= l.Window {
		l.Output = l.Window / 2 // half of the window is left for the request
	}
	return l
}

// Request returns the number of tokens that a request may have: the window minus what is
// reserved for the answer.
func (l Limits) Request() int { return l.Window - l.Output }

// Settings are the settings of compaction by people and clients. A field that is nil
// was not set.
type Settings struct {
	Threshold        *int // tokens above which a session is compacted before a turn
	RequestThreshold *int // tokens above which it is compacted between two requests
	Retained         *int // tokens of the newest messages that are kept as they are

	Enabled    *bool    // false turns all thresholds off
	Background *float64 // share of the limit above which a compaction runs beside the turn
	Exhaustion *float64 // share of the limit above which a request waits for a compaction
}

// The default shares.
const (
	defaultBackground = 0.80
	defaultExhaustion = 0.95
)

// retainedShare is the divisor of a threshold that gives the default of Retained.
const retainedShare = 16

// A Policy says when a session is compacted, in tokens of a request. A threshold of zero
// is off. The limit is never off.
type Policy struct {
	Limit      int // tokens that a request may have
	Before     int // threshold for compacting before a turn
	Between    int // threshold for compacting before any request
	Background int // threshold for compacting beside the turn
	Retained   int // tokens of the newest messages that are kept as they are; a share of the threshold if negative
}

// Policy returns the policy that follows from the settings, and a warning for each
// setting that makes no sense.
func (s Settings) Policy(l Limits) (Policy, []string) {
	p := Policy{Limit: l.Request(), Retained: -1}
	var w warnings
	if s.Retained != nil {
		p.Retained = w.tokens("compact_retained_tokens", *s.Retained, p.Limit)
	}
	if s.Enabled != nil && !*s.Enabled {
		return p, w
	}
	if s.Threshold != nil {
		p.Before = w.tokens("compact_threshold", *s.Threshold, p.Limit)
	}
	p.Background = w.share("backgroundCompactionThreshold", s.Background, defaultBackground, p.Limit)
	switch {
	case s.RequestThreshold == nil:
		p.Between = w.share("bufferExhaustionThreshold", s.Exhaustion, defaultExhaustion, p.Limit)
	case s.Exhaustion == nil:
		p.Between = w.tokens("compact_request_threshold", *s.RequestThreshold, p.Limit)
	default:
		p.Between = lower(w.tokens("compact_request_threshold", *s.RequestThreshold, p.Limit),
			w.share("bufferExhaustionThreshold", s.Exhaustion, 0, p.Limit))
	}
	if p.Before > p.Between && p.Between > 0 {
		w.add("compact_threshold (%d) is above compact_request_threshold (%d): the second one comes first", p.Before, p.Between)
	}
	return p, w
}

// lower returns the lower of two thresholds, each of which may be off.
func lower(a, b int) int {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

type warnings []string

func (w *warnings) add(format string, args ...any) { *w = append(*w, fmt.Sprintf(format, args...)) }

func (w *warnings) tokens(name string, n, limit int) int {
	switch {
	case n < 0:
		w.add("%s is %d, which is negative: it is taken as 0, which switches it off", name, n)
		return 0
	case n > limit:
		w.add("%s is %d, but a request has room for %d tokens: that is taken instead", name, n, limit)
		return limit
	}
	return n
}

func (w *warnings) share(name string, share *float64, otherwise float64, limit int) int {
	f := otherwise
	if share != nil {
		f = *share
	}
	if !(f >= 0 && f <= 1) { // also true of NaN
		w.add("%s is %v, which is not between 0 and 1: %v is taken instead", name, f, otherwise)
		f = otherwise
	}
	return int(f * float64(limit))
}

// Retain returns the number of tokens of the newest messages that a compaction keeps as
// they are. threshold is the one that was reached, or zero for a compaction by hand.
func (p Policy) Retain(threshold int) int {
	if p.Retained >= 0 {
		return p.Retained
	}
	return threshold / retainedShare
}

// A Point is the time at which a session is measured.
type Point int

// The points at which a session is measured.
const (
	BeforeRun       Point = iota // the first request of a turn comes next
	BetweenRequests              // a later request of a turn comes next
)

// An Action is what to do before a request.
type Action int

// The actions, from the least to the most urgent.
const (
	Go      Action = iota // make the request
	Prepare               // make the request, and compact at the same time
	Compact               // compact first; if that fails, make the request all the same
	Must                  // the request does not fit: compact, or give up with a clear error
)

// A Verdict is the action to take, and the threshold that was reached.
type Verdict struct {
	Action    Action
	Threshold int
}

// Decide returns what to do before the next request. A closed gate turns the thresholds
// off, but not the limit.
func (p Policy) Decide(at Point, r Reading, g Gate, now time.Time) Verdict {
	over := func(threshold int) bool { return threshold > 0 && r.Tokens > threshold }
	switch {
	case r.Tokens > p.Limit:
		return Verdict{Must, p.Limit}
	case !g.Open(r.Tokens, p.Limit, now):
		return Verdict{}
	case over(p.Between):
		return Verdict{Compact, p.Between}
	case at == BeforeRun && over(p.Before):
		return Verdict{Compact, p.Before}
	case over(p.Background):
		return Verdict{Prepare, p.Background}
	}
	return Verdict{}
}
