package event

import "slices"

// ManagedRules are restrictions that a client has set for the life of a session. They
// hold over rules, grants, hooks and rule sets, and nothing takes them back.
type ManagedRules struct {
	Deny []string `json:"deny,omitempty"` // requests that are always denied
	Ask  []string `json:"ask,omitempty"`  // requests that a person is always asked about
	// Allow has the lists of what may be done without asking. Whatever one of them does
	// not allow is asked about.
	Allow    [][]string `json:"allow,omitempty"`
	NoBypass bool       `json:"noBypass,omitempty"` // true if the session cannot be set to allow everything
}

// With returns the restrictions of both. Either may be nil.
func (m *ManagedRules) With(more *ManagedRules) *ManagedRules {
	if m == nil || more == nil {
		if m == nil {
			return more
		}
		return m
	}
	all := &ManagedRules{Deny: slices.Clone(m.Deny), Ask: slices.Clone(m.Ask), Allow: slices.Clone(m.Allow), NoBypass: m.NoBypass || more.NoBypass}
	all.Deny = addMissing(all.Deny, more.Deny)
	all.Ask = addMissing(all.Ask, more.Ask)
	for _, list := range more.Allow {
		if !slices.ContainsFunc(all.Allow, func(is []string) bool { return slices.Equal(is, list) }) {
			all.Allow = append(all.Allow, list)
		}
	}
	return all
}

func addMissing(list, more []string) []string {
	for _, rule := range more {
		if !slices.Contains(list, rule) {
			list = append(list, rule)
		}
	}
	return list
}
