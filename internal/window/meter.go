package window

import (
	"math"

	"github.com/abide-run/abide/internal/model"
)

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
	Counted   int   `json:"counted"`        // tokens that the provider counted
	Estimated int   `json:"estimated"`      // tokens that were estimated for the same request
	Messages  int   `json:"messages"`       // number of messages
	Rates     Rates `json:"rates,omitzero"` // what the counts so far have taught
}

// credible reports whether a count can be that of the whole request. Some servers count only
// what was not in their cache.
func (a Anchor) credible() bool {
	return a.Counted > 0 && a.Messages > 0 && float64(a.Counted) >= leastRate*float64(a.Estimated)
}

// A Meter measures requests. It learns from the counts of a provider, and counts each
// message once. It belongs to one session and one goroutine.
type Meter struct {
	tally        tally
	tools        *model.Tools
	toolTokens   int // tokens of tools
	toolText     letters
	system       string
	systemTokens int // tokens of system
	systemText   letters
	tailText     letters

	anchor Anchor
	last   *model.Message // last message of the anchor's request; nil if there is no anchor
	rates  Rates
	factor float64 // factor of all estimates after a refusal; 1 if zero
}

// The limits of learning.
const (
	learnFrom   = 2000 // tokens of the smallest request to learn from: providers may add a prompt of their own
	learnMore   = 200  // tokens of the smallest growth to learn from
	mostFactor  = 4.0  // largest factor after refusals
	refusedMore = 1.25 // smallest increase of the factor after a refusal
	caution     = 1.05 // factor of rates below one, as long as nothing of a request was counted
)

// Read measures a request.
func (m *Meter) Read(req *model.Request) Reading {
	m.follow(req)
	r := Reading{
		System: m.systemTokens, Tools: m.toolTokens, Messages: m.tally.total(), Tail: Tokens(req.Tail),
		Source: FromEstimate,
	}
	if !m.anchored(req.Messages) {
		r.Tokens = m.scale(m.careful().correct(r.estimate(), m.text()))
		return r
	}
	r.Tokens, r.Source = max(1, m.anchor.Counted+m.growth(r)), FromUsage
	return r
}

// growth returns how many tokens were added since the anchor.
func (m *Meter) growth(r Reading) int {
	n := m.anchor.Messages
	added := m.tally.total() - m.tally.before(n)
	more := m.rates.correct(added, m.tally.lettersBefore(len(m.tally.sums)).minus(m.tally.lettersBefore(n)))
	// What has changed beside that is the system prompt, the tools, the tail, and results
	// that were shortened.
	rest := float64(r.estimate()-m.anchor.Estimated-added) * m.rates.of(ascii)
	return m.scale(more + rest)
}

// follow counts what has changed since the last request.
func (m *Meter) follow(req *model.Request) {
	m.tally.follow(req.Messages)
	if req.Tools != m.tools {
		m.tools, m.toolTokens, m.toolText = req.Tools, ofTools(req.Tools), letters{}
		if req.Tools != nil {
			for _, t := range req.Tools.List {
				m.toolText.add(t.Name)
				m.toolText.add(t.Description)
				m.toolText.add(string(t.Parameters))
			}
		}
	}
	m.tailText = letters{}
	m.tailText.add(req.Tail)
	if req.System != m.system {
		m.system, m.systemTokens, m.systemText = req.System, Tokens(req.System), letters{}
		m.systemText.add(req.System)
	}
}

// fixedText returns what is written in the last request beside its messages.
func (m *Meter) fixedText() letters {
	all := m.tailText
	for i := range all {
		all[i] += m.systemText[i] + m.toolText[i]
	}
	return all
}

// text returns what is written in the last request.
func (m *Meter) text() letters {
	all := m.fixedText()
	for i, n := range m.tally.lettersBefore(len(m.tally.sums)) {
		all[i] += n
	}
	return all
}

// careful returns the rates for a request of which nothing was counted. Those that make
// estimates smaller are a little larger, because a request that is too large is refused.
func (m *Meter) careful() *Rates {
	careful := m.rates
	for i, rate := range careful {
		if rate > 0 && rate < 1 {
			careful[i] = min(1, rate*caution)
		}
	}
	return &careful
}

func (r Reading) estimate() int { return r.System + r.Tools + r.Messages + r.Tail }

// anchored reports whether the list begins with the messages of the anchor's request.
// A list that was compacted or rewound since does not.
func (m *Meter) anchored(list []*model.Message) bool {
	n := m.anchor.Messages
	return m.last != nil && n <= len(list) && list[n-1] == m.last
}

// Learn updates the meter with a provider's count of a request, and returns the new
// anchor. It does nothing if the provider does not count, or counts far too little.
func (m *Meter) Learn(req *model.Request, u model.Usage) Anchor {
	counted := int(u.Input + u.CacheRead + u.CacheWrite)
	if counted <= 0 || len(req.Messages) == 0 {
		return Anchor{}
	}
	a := Anchor{Counted: counted, Estimated: m.Read(req).estimate(), Messages: len(req.Messages)}
	if !a.credible() {
		return Anchor{}
	}
	m.learn(req, a)
	a.Rates = m.rates
	m.anchor, m.last = a, req.Messages[a.Messages-1]
	return a
}

// learn learns from a count: from what was added since the last one if that is enough to
// tell, because that holds nothing that the provider adds itself; else from all of it.
func (m *Meter) learn(req *model.Request, a Anchor) {
	if m.anchored(req.Messages) {
		n := m.anchor.Messages
		added := m.tally.lettersBefore(len(m.tally.sums)).minus(m.tally.lettersBefore(n))
		if more := a.Estimated - m.anchor.Estimated; more >= learnMore && m.tally.total()-m.tally.before(n) == more {
			m.rates.learn(a.Counted-m.anchor.Counted, more, added)
		}
		return
	}
	if a.Estimated >= learnFrom {
		m.rates.learn(a.Counted, a.Estimated, m.text())
	}
}

// Restore sets the anchor. list is the current messages; it is nil if they do not begin
// with the counted ones any more, and then only the rates are restored.
func (m *Meter) Restore(list []*model.Message, a Anchor) {
	m.anchor, m.last = Anchor{}, nil
	if !a.credible() {
		return
	}
	m.rates = a.Rates
	if a.Messages <= len(list) {
		m.anchor, m.last = a, list[a.Messages-1]
	}
	if a.Rates == (Rates{}) && a.Estimated >= learnFrom && a.Counted > a.Estimated { // earlier versions stored no rates
		for i := range m.rates {
			m.rates[i] = min(float64(a.Counted)/float64(a.Estimated), mostRate)
		}
	}
}

// Forget forgets what was counted and learned, because another model counts from now on.
func (m *Meter) Forget() { m.anchor, m.last, m.rates, m.factor = Anchor{}, nil, Rates{}, 0 }

// Refused updates the meter after a provider refused a request as larger than the
// limit. From then on, the same request is measured as above the limit. How far above is
// not known, so each refusal raises estimates by a clear amount.
func (m *Meter) Refused(req *model.Request, limit int) {
	m.anchor, m.last, m.rates = Anchor{}, nil, Rates{}
	estimate := m.Read(req).estimate()
	if estimate > 0 {
		m.factor = min(max(refusedMore*max(m.factor, 1), float64(limit+1)/float64(estimate)), mostFactor)
	}
}

// Room returns the number of tokens, as [Of] estimates them, that the messages of a
// request may have if the whole request has to stay within the limit. It takes them to be
// written like the messages of the request that was measured.
func (m *Meter) Room(r Reading, limit int) int {
	left := limit - m.scale(m.careful().correct(r.System+r.Tools+r.Tail, m.fixedText()))
	if left <= 0 {
		return 0
	}
	return int(float64(left) / (max(m.factor, 1) * m.rateOfMessages()))
}

// rateOfMessages returns how many tokens are counted for each estimated one of the present
// messages, with some caution: what a compaction writes may be in another script.
func (m *Meter) rateOfMessages() float64 {
	rate := 1.0
	for i := range m.rates {
		rate = max(rate, m.rates.of(i))
	}
	if plain := m.tally.total(); plain > 0 {
		is := m.rates.correct(plain, m.tally.lettersBefore(len(m.tally.sums))) / float64(plain)
		rate = min(rate, max(leastRate, refusedMore*is))
	}
	return rate
}

// scale multiplies a corrected estimate by the factor, and rounds up.
func (m *Meter) scale(corrected float64) int { return int(math.Ceil(corrected * max(m.factor, 1))) }
