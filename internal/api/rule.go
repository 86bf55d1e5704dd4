package api

import "github.com/abide-run/abide/internal/event"

// The methods of abide about permissions that outlast a session.
const (
	Rules      = "abide.rules"      // list the rules
	RuleRevoke = "abide.ruleRevoke" // revoke a rule
)

// RulesResult lists the rules that apply everywhere, and those of each location.
type RulesResult struct {
	Always    []ShownRule            `json:"always"`
	Locations map[string][]ShownRule `json:"locations"`
}

// A ShownRule is a rule with its text, such as "shell(git *)".
type ShownRule struct {
	event.Rule
	Text string `json:"text"`
}

// RevokeParams revokes the rule with a text: a rule of a location, or one that applies
// everywhere if no location is named.
type RevokeParams struct {
	Location string `json:"locationKey,omitempty"`
	Rule     string `json:"rule"`
}
