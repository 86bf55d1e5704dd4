package turn_test

import (
	"testing"

	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/event"
)

// Settings that forbid to allow everything win, whoever has allowed it and when.
func TestNobodyCanAllowEverythingWhereThatIsForbidden(t *testing.T) {
	forbidden := &event.ManagedRules{NoBypass: true}
	for name, test := range map[string]struct {
		config event.SessionConfiguredData
		rules  event.ClientRules
		all    bool
	}{
		"by the configuration":                {event.SessionConfiguredData{Approve: approval.All}, event.ClientRules{}, true},
		"by a client":                         {event.SessionConfiguredData{}, event.ClientRules{AllowAll: true}, true},
		"forbidden, by the configuration":     {event.SessionConfiguredData{Approve: approval.All, Managed: forbidden}, event.ClientRules{}, false},
		"forbidden, by a client":              {event.SessionConfiguredData{Managed: forbidden}, event.ClientRules{AllowAll: true}, false},
		"forbidden, by a client in workspace": {event.SessionConfiguredData{Approve: approval.Workspace, Managed: forbidden}, event.ClientRules{AllowAll: true}, false},
	} {
		if w := newWriter(t).add(start, test.config, test.rules); w.state.AllowsAll() != test.all {
			t.Errorf("%s: everything is allowed: %v", name, !test.all)
		}
	}
}
