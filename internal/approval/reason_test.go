package approval_test

import (
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/event"
)

func TestAReasonNamesTheRulesThatFitBest(t *testing.T) {
	deny := []string{"create(/etc/**)", "create(/usr/**)", "edit(/etc/**)", "read(.env)", "bash(sudo *)"}
	for line, want := range map[string]string{
		"X=sudo; $X ls": "the rules bash(sudo *), ",
		"cat .e*":       "the rule",
	} {
		r := command(line)
		d := approval.Judge(approval.All, event.PermissionRules{Deny: deny}, nil, &r)
		if d.Verdict != approval.Ask || !strings.HasPrefix(d.Reason, want) || len(d.Rules) > 3 || strings.Contains(d.Reason, "written in another way") {
			t.Errorf("%s: %+v, want a reason that begins with %q", line, d, want)
		}
		if line == "cat .e*" && d.Rules[0] != "read(.env)" {
			t.Errorf("%s: %v", line, d.Rules)
		}
	}
}
