package api

import "github.com/abide-run/abide/internal/event"

// Our own methods about what people allow for longer than a session.
const (
	Rules      = "abide.rules"      // list it
	RuleRevoke = "abide.ruleRevoke" // take it back
)

// RulesResult is what is allowed always, and what in which place.
type RulesResult struct {
	Always    []ShownRule            `json:"always"`
	Locations map[string][]ShownRule `json:"locations"`
}

// A ShownRule is a rule and how it is written: "shell(git *)".
type ShownRule struct {
	event.Rule
	Text string `json:"text"`
}

// RevokeParams takes back the rule that is written so: one of a place, or one
// that holds always if no place is named.
type RevokeParams struct {
	Location string `json:"locationKey,omitempty"`
	Rule     string `json:"rule"`
}
