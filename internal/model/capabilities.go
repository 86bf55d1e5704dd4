package model

// Capabilities describe what a model can do and what it costs.
type Capabilities struct {
	Known     bool     // true if the rest is about this model, and not a default
	Window    int      // tokens that fit into a request and its reply together
	MaxOutput int      // tokens of the longest reply
	Vision    bool     // true if the model can see images
	Reasoning bool     // true if the model can reason before it answers
	Thinking  Thinking // form in which the model is told how much to reason
	Price     *Price   // nil if it is not known; then no cost is shown
}

// Thinking is the way in which a model is told how much to reason. Providers with only
// one way ignore it.
type Thinking int

// The values of Thinking.
const (
	ThinkByBudget Thinking = iota // the amount is a number of tokens
	ThinkByEffort                 // the amount is a word such as "high"
	ThinkAlways                   // the amount is a word, and reasoning cannot be turned off
)

// A Price is the price of a million tokens in US dollars.
type Price struct {
	Input      float64 `json:"input"`
	Output     float64 `json:"output"`
	CacheRead  float64 `json:"cacheRead"`
	CacheWrite float64 `json:"cacheWrite"`
	// CacheWrite1h is the price of writing to a cache that lasts an hour; twice that of
	// input if it is zero, as the only vendor that has such a cache asks for.
	CacheWrite1h float64 `json:"cacheWrite1h,omitempty"`
	// Long is the price of a whole request that sends more than LongFrom tokens; nil if
	// its length does not matter.
	Long     *Price `json:"long,omitempty"`
	LongFrom int64  `json:"longFrom,omitempty"`
}

// Cost returns the price of a request in US dollars. Reasoning is part of the output.
func (p Price) Cost(u Usage) float64 {
	const million = 1e6
	if p.Long != nil && u.Input+u.CacheRead+u.CacheWrite > p.LongFrom {
		return p.Long.Cost(u)
	}
	hour := p.CacheWrite1h
	if hour == 0 {
		hour = 2 * p.Input
	}
	return (float64(u.Input)*p.Input + float64(u.Output)*p.Output + float64(u.CacheRead)*p.CacheRead +
		float64(u.CacheWrite-u.CacheWrite1h)*p.CacheWrite + float64(u.CacheWrite1h)*hour) / million
}
