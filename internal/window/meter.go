package window

import "github.com/abide-run/abide/internal/model"

// A Source says where a reading comes from.
type Source string

// The sources of a Reading.
const (
	FromUsage    Source = "usage"    // what the provider counted, and what came since
	FromEstimate Source = "estimate" // the length of the texts
)

// A Reading is how full the window is.
type Reading struct {
	System, Tools, Messages, Tail int // tokens, as they are estimated
	// Tokens is how much of the window the request takes. The answer is not in
	// it: that has its own place, see [Limits].
	Tokens int
	Source Source
}

// An Anchor is a request that a provider has counted. It is stored with the
// usage of the request, so that a meter can go on after a restart.
type Anchor struct {
	Counted   int `json:"counted"`   // tokens, as the provider counted them
	Estimated int `json:"estimated"` // tokens, as they were estimated
	Messages  int `json:"messages"`  // how many there were
}

// A Meter tells how full the window is. It learns from what providers count, and
// counts each message once. It belongs to one session and one goroutine.
type Meter struct {
	tally  tally
	tools  *model.Tools
	ofThem int // the size of tools

	anchor Anchor
	last   *model.Message // the newest of the anchor; nil if there is no anchor
	rate   float64        // tokens for each estimated one; 1 if zero
}

// How far an estimate is corrected. A short request says little: a provider may
// add a prompt of its own.
const (
	learnFrom   = 2000
	mostLearned = 2.0
	mostRefused = 4.0
	refusedMore = 1.25 // by how much an estimate is raised at least
)

// Read measures a request.
func (m *Meter) Read(req *model.Request) Reading {
	m.tally.follow(req.Messages)
	if req.Tools != m.tools {
		m.tools, m.ofThem = req.Tools, ofTools(req.Tools)
	}
	r := Reading{
		System: Tokens(req.System), Tools: m.ofThem, Messages: m.tally.total(), Tail: Tokens(req.Tail),
		Source: FromEstimate,
	}
	estimate := r.estimate()
	if !m.anchored(req.Messages) {
		r.Tokens = m.scale(estimate)
		return r
	}
	r.Tokens = estimate
	if counted := m.anchor.Counted + m.scale(estimate-m.anchor.Estimated); counted >= estimate {
		r.Tokens, r.Source = counted, FromUsage
	}
	return r
}

func (r Reading) estimate() int { return r.System + r.Tools + r.Messages + r.Tail }

// anchored reports whether the list goes on from the request that was counted.
// One that was compacted, rewound or otherwise changed does not.
func (m *Meter) anchored(list []*model.Message) bool {
	n := m.anchor.Messages
	return m.last != nil && n <= len(list) && list[n-1] == m.last
}

// Learn takes in what a provider counted of a request. Nothing is learned from
// one that does not count.
func (m *Meter) Learn(req *model.Request, u model.Usage) Anchor {
	counted := int(u.Input + u.CacheRead + u.CacheWrite)
	if counted <= 0 || len(req.Messages) == 0 {
		return Anchor{}
	}
	a := Anchor{Counted: counted, Estimated: m.Read(req).estimate(), Messages: len(req.Messages)}
	m.Restore(req.Messages, a)
	return a
}

// Restore goes on from an anchor. The list is what the model sees now; if it is
// no longer what was counted, give nil, and only the rate is learned.
func (m *Meter) Restore(list []*model.Message, a Anchor) {
	m.anchor, m.last = Anchor{}, nil
	if a.Counted <= 0 || a.Messages <= 0 {
		return
	}
	if a.Messages <= len(list) {
		m.anchor, m.last = a, list[a.Messages-1]
	}
	if a.Estimated >= learnFrom {
		m.rate = min(max(1, float64(a.Counted)/float64(a.Estimated)), mostLearned)
	}
}

// Refused takes in that a provider found a request to be larger than the limit.
// The same request is beyond the limit from here on, however it was measured. By
// how much nobody knows: one that was close to the limit may have been far beyond
// it, so each refusal leaves clearly less room than the last.
func (m *Meter) Refused(req *model.Request, limit int) {
	estimate := m.Read(req).estimate()
	m.anchor, m.last = Anchor{}, nil
	if estimate > 0 {
		m.rate = min(max(refusedMore*max(m.rate, 1), float64(limit+1)/float64(estimate)), mostRefused)
	}
}

// Room is how many tokens the messages of a request may have, as [Of] estimates
// them, so that it stays within the limit together with all that is not messages.
func (m *Meter) Room(r Reading, limit int) int {
	left := limit - m.scale(r.System+r.Tools+r.Tail)
	if left <= 0 {
		return 0
	}
	return int(float64(left) / max(m.rate, 1))
}

// scale corrects an estimate, upwards.
func (m *Meter) scale(estimate int) int {
	if m.rate <= 1 || estimate <= 0 {
		return estimate
	}
	scaled := float64(estimate) * m.rate
	n := int(scaled)
	if scaled > float64(n) {
		n++
	}
	return n
}
