package rpc

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/turn"
)

func TestOnlyWhatWasShownIsRemembered(t *testing.T) {
	exact := event.Grant{Kind: "shell", Command: "'ls'; '*'"}
	prefix := event.Grant{Kind: "shell", Prefix: []string{"git", "status"}}
	for _, test := range []struct {
		name     string
		decision turn.Decision
		grants   []event.Grant
		want     string // the rules, or what is wrong
	}{
		{"what was shown", turn.Decision{}, []event.Grant{exact}, "shell(ls; '*')"},
		{"an offer", turn.Decision{Offer: "prefix"}, []event.Grant{exact}, "shell(git status *)"},
		{"an offer that there is not", turn.Decision{Offer: "everything"}, []event.Grant{exact}, `no offer "everything"`},
		{"a name that is a star", turn.Decision{Approval: json.RawMessage(`{"kind":"commands","commandIdentifiers":["*"]}`)}, []event.Grant{exact}, "shell(ls; '*')"},
		{"a program that runs code", turn.Decision{Approval: json.RawMessage(`{"kind":"commands","commandIdentifiers":["python3"]}`)}, []event.Grant{exact}, "shell(ls; '*')"},
		{"a name with which nothing else can be run", turn.Decision{Approval: json.RawMessage(`{"kind":"commands","commandIdentifiers":["git status"]}`)}, []event.Grant{exact}, "shell(ls; '*'), shell(git status *)"},
		{"a command that is not understood", turn.Decision{}, nil, "cannot be remembered"},
		{"a question of an older version", turn.Decision{}, []event.Grant{{Kind: "shell", Subject: "git status"}, {Kind: "shell", Subject: "python3"}}, "shell(git status *)"},
		{"a tool of a client", turn.Decision{}, []event.Grant{{Kind: "custom-tool", Subject: "act"}}, "act"},
		{"a file", turn.Decision{}, []event.Grant{{Kind: "write", Folder: "/w/a"}}, "write(/w/a)"},
	} {
		e, err := event.Encode(event.Head{ID: "e", Time: time.Now()}, event.PermissionAskedData{
			RequestID: "q", PermissionRequest: json.RawMessage(`{}`), Grants: test.grants,
			Abide: &event.PermissionMore{Offers: []event.Offer{{ID: "prefix", Grants: []event.Grant{prefix}}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		rules, err := covered([]event.Event{e}, "q", "/w", &test.decision)
		var got []string
		for _, r := range rules {
			if r.Grant == nil || r.Argument == nil || *r.Argument == "" {
				t.Errorf("%s: the rule %+v is made of text, or an older version would take it for everything", test.name, r)
			}
			got = append(got, turn.RuleText(r))
		}
		text := strings.Join(got, ", ")
		if err != nil {
			text = err.Error()
		}
		if err == nil && text != test.want || err != nil && !strings.Contains(text, test.want) {
			t.Errorf("%s: %s, want %s", test.name, text, test.want)
		}
		if rules, err := covered([]event.Event{e}, "another", "/w", &test.decision); len(rules) > 0 || err != nil {
			t.Errorf("%s: of another question: %v, %v", test.name, rules, err)
		}
	}
}

// TestWhereACommandIsRemembered: an approval for a place is for the folder that was shown,
// and one for always is for the working directory of every session.
func TestWhereACommandIsRemembered(t *testing.T) {
	for _, test := range []struct {
		name, kind, shown, want string
	}{
		{"for a place", turn.ApproveForLocation, "/w", "/w"},
		{"for always", turn.ApprovePermanently, "/w", ""},
		{"for always, in another folder", turn.ApprovePermanently, "/w/sub", "/w/sub"},
	} {
		e, err := event.Encode(event.Head{ID: "e", Time: time.Now()}, event.PermissionAskedData{
			RequestID: "q", PermissionRequest: json.RawMessage(`{}`), Grants: []event.Grant{{Kind: "shell", Command: "'make'", Dir: test.shown}},
			Abide: &event.PermissionMore{Dir: test.shown},
		})
		if err != nil {
			t.Fatal(err)
		}
		rules, err := covered([]event.Event{e}, "q", "/w", &turn.Decision{Kind: test.kind})
		if err != nil || len(rules) != 1 || rules[0].Grant.Dir != test.want {
			t.Errorf("%s: %+v, %v; want the folder %q", test.name, rules, err, test.want)
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
