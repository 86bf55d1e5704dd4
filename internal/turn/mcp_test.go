package turn

import (
	"encoding/json"
	"testing"

	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/event"
)

// A yes to the question whether a server may ask the model is for one request, unless it says
// more.
func TestAServerMayAskTheModelForTheRestOfTheSession(t *testing.T) {
	var s State
	answer := func(sampling bool, action, content string) {
		s.MCP.fold(event.ElicitationAskedData{RequestID: "q", Source: "one", Sampling: sampling})
		s.MCP.fold(event.ElicitationDoneData{RequestID: "q", Action: action, Content: json.RawMessage(content)})
	}
	check := func(what string, want approval.Verdict) {
		t.Helper()
		if got := s.Sampling("one").Verdict; got != want || s.MCP.LetsSample() != (want == approval.Grant) {
			t.Errorf("%s: the verdict is %v, want %v", what, got, want)
		}
		if got := s.Sampling("two").Verdict; got != approval.Ask {
			t.Errorf("%s: the verdict about another server is %v", what, got)
		}
	}
	check("at first", approval.Ask)
	answer(true, Accept, `{}`)
	check("after a yes", approval.Ask)
	answer(true, Dismiss, `{"always":true}`)
	check("after a no", approval.Ask)
	answer(false, Accept, `{"always":true}`)
	check("after a form of the server itself", approval.Ask)
	answer(true, Accept, `{"always":true}`)
	check("after a yes for always", approval.Grant)
	s.MCP.fold(event.GrantsResetData{})
	check("after a reset", approval.Ask)
	answer(true, Accept, `{"always":true}`)
	s.Setup.Config.Permissions.Deny = []string{"mcp-sampling(one)"}
	if got := s.Sampling("one"); got.Verdict != approval.Deny {
		t.Errorf("with a rule that denies it: %+v", got)
	}
}
