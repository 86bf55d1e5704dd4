package rpc

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/turn"
)

func TestOnlyWhatARuleCanTellIsRemembered(t *testing.T) {
	for _, test := range []struct {
		name, request string
		grants        []event.Grant
		want          string // the rules, or what is wrong
	}{
		{"commands", `{"kind":"shell","canOfferSessionApproval":true}`, []event.Grant{{Kind: "shell", Subject: "git push"}, {Kind: "shell", Subject: "ls"}}, "shell(git push *), shell(ls *)"},
		{"a command that is not fully known", `{"kind":"shell","canOfferSessionApproval":false}`, []event.Grant{{Kind: "shell", Subject: "$CMD"}}, "cannot be remembered"},
		{"a command that writes to a file", `{"kind":"shell","canOfferSessionApproval":true,"hasWriteFileRedirection":true}`, []event.Grant{{Kind: "shell", Subject: "ls"}}, "cannot be remembered"},
		{"a tool of a client", `{"kind":"custom-tool"}`, []event.Grant{{Kind: "custom-tool", Subject: "act"}}, "act"},
		{"all writing", `{"kind":"write"}`, []event.Grant{{Kind: "write"}}, "write"},
	} {
		e, err := event.Encode(event.Head{ID: "e", Time: time.Now()}, event.PermissionAskedData{RequestID: "q", PermissionRequest: json.RawMessage(test.request), Grants: test.grants})
		if err != nil {
			t.Fatal(err)
		}
		rules, err := covered([]event.Event{e}, "q")
		var got []string
		for _, r := range rules {
			got = append(got, turn.RuleText(r))
		}
		text := strings.Join(got, ", ")
		if err != nil {
			text = err.Error()
		}
		if !strings.Contains(text, test.want) || (err != nil) != strings.HasPrefix(test.want, "cannot") {
			t.Errorf("%s: %s, want %s", test.name, text, test.want)
		}
		if rules, err := covered([]event.Event{e}, "another"); len(rules) > 0 || err != nil {
			t.Errorf("%s: of another question: %v, %v", test.name, rules, err)
		}
	}
}

func TestTheLongPartOfAResultIsNamed(t *testing.T) {
	long := strings.Repeat("x", maxPart+1)
	for want, r := range map[string]turn.ExternalResult{
		"result.sessionLog":          {Log: long},
		"result.contents":            {Contents: json.RawMessage(long)},
		"result.binaryResultsForLlm": {Binary: json.RawMessage(long)},
		"result.error":               {Error: long},
		"error":                      {Error: long, Thrown: true},
	} {
		if err := fits(r); err == nil || !strings.HasPrefix(err.Error(), want+": 32 MB") {
			t.Errorf("%s: %v", want, err)
		}
	}
	if err := fits(turn.ExternalResult{Text: long, Log: long[1:]}); err != nil { // a text is kept in a file
		t.Error(err)
	}
}
