package turn

import (
	"slices"

	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/event"
)

// managed returns the restrictions that a client has set for the life of the session.
func (s *State) managed() event.ManagedRules {
	if m := s.Setup.Config.Managed; m != nil {
		return *m
	}
	return event.ManagedRules{}
}

// mustAsk reports whether a person has to be asked about a request, whatever rules,
// grants and hooks allow.
func (s *State) mustAsk(ask *approval.Request) bool {
	if ask.Protected != "" {
		return true
	}
	m := s.managed()
	if len(m.Ask) > 0 && judgeBy(event.PermissionRules{Ask: m.Ask}, ask, true) == approval.Ask {
		return true
	}
	return slices.ContainsFunc(m.Allow, func(list []string) bool {
		return judgeBy(event.PermissionRules{Allow: list}, ask, false) == approval.Ask
	})
}

// judgeBy judges a request by some rules alone.
func judgeBy(rules event.PermissionRules, ask *approval.Request, allowed bool) approval.Verdict {
	alone := *ask
	alone.Allowed = allowed
	return approval.Judge(approval.AskAlways, rules, nil, &alone).Verdict
}
