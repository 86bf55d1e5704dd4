package window

import "github.com/abide-run/abide/internal/model"

// A Source is the source of a reading.
type Source string

// The sources of a Reading.
const (
	FromUsage    Source = "usage"    // the provider's count of the last request, and an estimate of what was added since
	FromEstimate Source = "estimate" // an estimate by the length of the texts
)

// A Reading is the size of a request.
type Reading struct {
	System, Tools, Messages, Tail int // estimated tokens of each part
	// Tokens is the best estimate for the whole request. It does not include the
	// answer, for which [Limits] reserves tokens.
	Tokens int
	Source Source
}

// An Anchor is the size of a request that a provider has counted. It is stored with the
// usage of the request, so that a meter can continue from it after a restart.
type Anchor struct {
	Counted   int `json:"counted"`   // tokens that the provider counted
	Estimated int `json:"estimated"` // tokens that were estimated for the same request
	Messages  int `json:"messages"`  // number of messages
}

// A Meter measures requests. It learns from the counts of providers, and counts each
// message once. It belongs to one session and one goroutine.
type Meter struct {
	tally      tally
	tools      *model.Tools
	toolTokens int // tokens of tools

	anchor Anchor
	last   *model.Message // last message of the anchor's request; nil if there is no anchor
	rate   float64        // factor by which estimates are corrected; 1 if zero
}

// The limits of correcting estimates.
const (
	learnFrom   = 2000 // tokens of the smallest request to learn from: providers may add a prompt of their own
	mostLearned = 2.0  // largest factor after a count
	mostRefused = 4.0  // largest factor after a refusal
	refusedMore = 1.25 // smallest increase of the factor after a refusal
)

// Read measures a request.
func (m *Meter) Read(req *model.Request) Reading {
	m.tally.follow(req.Messages)
	if req.Tools != m.tools {
		m.tools, m.toolTokens = req.Tools, ofTools(req.Tools)
	}
	r := Reading{
		System: Tokens(req.System), Tools: m.toolTokens, Messages: m.tally.total(), Tail: Tokens(req.Tail),
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

// anchored reports whether the list begins with the messages of the anchor's request.
// A list that was compacted or rewound since does not.
func (m *Meter) anchored(list []*model.Message) bool {
	n := m.anchor.Messages
	return m.last != nil && n <= len(list) && list[n-1] == m.last
}

// Learn updates the meter with a provider's count of a request, and returns the new
// anchor. It does nothing if the provider does not count.
func (m *Meter) Learn(req *model.Request, u model.Usage) Anchor {
	counted := int(u.Input + u.CacheRead + u.CacheWrite)
	if counted <= 0 || len(req.Messages) == 0 {
		return Anchor{}
	}
	a := Anchor{Counted: counted, Estimated: m.Read(req).estimate(), Messages: len(req.Messages)}
	m.Restore(req.Messages, a)
	return a
}

// Restore sets the anchor. list is the current messages; it is nil if they do not begin
// with the counted ones any more, and then only the factor is learned.
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

// Refused updates the meter after a provider refused a request as larger than the
// limit. From then on, the same request is measured as above the limit. How far above is
// not known, so each refusal raises estimates by a clear amount.
func (m *Meter) Refused(req *model.Request, limit int) {
	estimate := m.Read(req).estimate()
	m.anchor, m.last = Anchor{}, nil
	if estimate > 0 {
		m.rate = min(max(refusedMore*max(m.rate, 1), float64(limit+1)/float64(estimate)), mostRefused)
	}
}

// Room returns the number of tokens, as [Of] estimates them, that the messages of a
// request may have if the whole request has to stay within the limit.
func (m *Meter) Room(r Reading, limit int) int {
	left := limit - m.scale(r.System+r.Tools+r.Tail)
	if left <= 0 {
		return 0
	}
	return int(float64(left) / max(m.rate, 1))
}

// scale multiplies an estimate by the factor, and rounds up.
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
