package window

import (
	"fmt"
	"time"

	"github.com/abide-run/abide/internal/model"
)

// Unknown is the window of a model of which nothing is known.
const Unknown = 128_000

// Limits is what a model's window holds.
type Limits struct {
	Window int // tokens of a request and its answer
	Output int // tokens that are reserved for the answer
}

// LimitsOf returns the limits of a model that is asked for answers of at most so
// many tokens; zero for the longest that it gives.
func LimitsOf(can model.Capabilities, maxOutput int) Limits {
	l := Limits{Window: can.Window, Output: maxOutput}
	if l.Window <= 0 {
		l.Window = Unknown
	}
	if l.Output <= 0 {
		l.Output = max(0, can.MaxOutput)
	}
	if l.Output >= l.Window {
		l.Output = l.Window / 2 // something has to be left for the question
	}
	return l
}

// Request is how many tokens a request may have: the window less what is
// reserved for the answer.
func (l Limits) Request() int { return l.Window - l.Output }

// Settings are what people and clients say about compaction. Nil is what was not
// said.
type Settings struct {
	Threshold        *int // tokens, before a run
	RequestThreshold *int // tokens, between two requests
	Retained         *int // tokens of the newest history that are kept as they are

	Enabled    *bool    // whether thresholds count at all
	Background *float64 // share of the limit above which one is prepared
	Exhaustion *float64 // share of the limit above which a request waits for it
}

// The shares that count if nobody says anything.
const (
	defaultBackground = 0.80
	defaultExhaustion = 0.95
)

// retainedShare is the part of a threshold that is kept as it is if nobody says
// how much.
const retainedShare = 16

// A Policy says when a session is compacted, in tokens. Zero switches a
// threshold off. Nothing switches the limit off.
type Policy struct {
	Limit      int
	Before     int // above it, compact before a run
	Between    int // above it, compact before any request
	Background int // above it, prepare while the request is made
	Retained   int // negative: a part of the threshold
}

// Policy settles what counts, and says what was written down but makes no sense.
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

// lower is the lower one of two thresholds, either of which may be off.
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
	if !(f >= 0 && f <= 1) { // also if it is no number
		w.add("%s is %v, which is not between 0 and 1: %v is taken instead", name, f, otherwise)
		f = otherwise
	}
	return int(f * float64(limit))
}

// Retain is how many tokens of the newest history are kept as they are when a
// threshold has fired; zero for one that was asked for by hand.
func (p Policy) Retain(threshold int) int {
	if p.Retained >= 0 {
		return p.Retained
	}
	return threshold / retainedShare
}

// A Point is where in its life a session stands.
type Point int

// The points at which a session is measured.
const (
	BeforeRun       Point = iota // an input was accepted, its first request comes next
	BetweenRequests              // another request of the same run comes next
)

// An Action is what a reading asks for.
type Action int

// The actions, from the mildest to the most urgent.
const (
	Go      Action = iota // make the request
	Prepare               // make the request, and compact beside it
	Compact               // compact first; if that fails, make the request all the same
	Must                  // the request does not fit: compact, or give up with a clear error
)

// A Verdict is what to do next, and which threshold says so.
type Verdict struct {
	Action    Action
	Threshold int
}

// Decide says what to do before the next request. The gate keeps thresholds from
// firing for nothing; the limit does not ask it.
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
