package model

// Capabilities is what a model can do and what it costs.
type Capabilities struct {
	Known     bool // what follows is of this model, not of any
	Window    int  // tokens that fit into a request and its reply
	MaxOutput int  // tokens of the longest reply
	Vision    bool
	Reasoning bool
	Thinking  Thinking
	Price     *Price // nil if it is not known: then no cost is shown
}

// Thinking says how a model that reasons is told how much to think. Providers
// that have only one way ignore it.
type Thinking int

// The ways of being told.
const (
	ThinkByBudget Thinking = iota // a number of tokens
	ThinkByEffort                 // a word, and the model decides
	ThinkAlways                   // as by effort, and thinking cannot be turned off
)

// A Price is in US dollars for a million tokens.
type Price struct {
	Input      float64 `json:"input"`
	Output     float64 `json:"output"`
	CacheRead  float64 `json:"cacheRead"`
	CacheWrite float64 `json:"cacheWrite"`
}

// Cost is what a usage costs in US dollars. Reasoning is part of the output.
func (p Price) Cost(u Usage) float64 {
	const million = 1e6
	return (float64(u.Input)*p.Input + float64(u.Output)*p.Output +
		float64(u.CacheRead)*p.CacheRead + float64(u.CacheWrite)*p.CacheWrite) / million
}
