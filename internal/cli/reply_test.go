package cli

import (
	"fmt"
	"testing"

	"github.com/abide-run/abide/internal/event"
)

func TestWordsAndWhatTheyAnswer(t *testing.T) {
	grant := []event.Grant{{Kind: "shell", Command: "'ls'"}}
	offers := []event.Offer{{ID: event.OfferOnce}, {ID: event.OfferCommand, Grants: grant}, {ID: event.OfferPrefix, Grants: grant}}
	asked := func(offers ...event.Offer) question {
		return question{Permission: &event.PermissionAskedData{Abide: &event.PermissionMore{Offers: offers}}}
	}
	whole, once, old := asked(offers...), asked(offers[:1]...), question{Permission: &event.PermissionAskedData{Grants: grant}}
	plan := question{Plan: &event.ExitPlanAskedData{Actions: []string{event.PlanAutopilot, event.PlanExitOnly}, Recommended: event.PlanAutopilot}}
	const unclear = "unclear"
	for _, test := range []struct {
		q          question
		text, want string
	}{
		{whole, "y", "approve-once"}, {whole, "YES", "approve-once"}, {whole, "ok.", "approve-once"}, {whole, "okay!", "approve-once"}, {whole, "approve", "approve-once"}, {whole, "once", "approve-once"},
		{whole, "n", "reject"}, {whole, "No.", "reject"}, {whole, "reject", "reject"},
		{whole, "c", "approve-for-session command"}, {whole, "command", "approve-for-session command"}, {whole, "p", "approve-for-session prefix"},
		{whole, "approve-session", "approve-for-session command"}, {whole, "approve-here", "approve-for-location command"}, {whole, "approve-always:prefix", "approve-permanently prefix"},
		{whole, "use port 80", "reject: use port 80"}, {whole, "no, use port 80", "reject: no, use port 80"}, {whole, "n ever", "reject: n ever"},
		{whole, "yes please", unclear}, {whole, "ok go on", unclear}, {whole, "approve it", unclear}, {whole, "a", unclear}, {whole, "always", unclear}, {whole, "?", unclear}, {whole, "", unclear}, {whole, "nope", unclear},
		{whole, "f", unclear}, {whole, "approve-here:folder", unclear}, {whole, "approve-here:once", unclear},
		{once, "y", "approve-once"}, {once, "c", unclear}, {once, "approve-session", unclear}, {once, "approve-always", unclear},
		{old, "ok", "approve-once"}, {old, "approve-session", unclear},
		{plan, "ok", "plan autopilot"}, {plan, "exit_only", "plan exit_only"}, {plan, "no", "no plan"}, {plan, "dig deeper", "no plan: dig deeper"}, {plan, "yes but", unclear}, {plan, "fleet", unclear},
	} {
		if got := meaning(test.q, test.text); got != test.want {
			t.Errorf("%q means %q, want %q", test.text, got, test.want)
		}
	}
	for text, want := range map[string]string{`{"a":1}`: "accept", "no": "decline", "cancel": "cancel", "null": unclear, "[1]": unclear, "yes": unclear} {
		filled, err := fillIn(text)
		if got := filled.Action; got != want && !(err != nil && want == unclear) {
			t.Errorf("%q makes of a form %q, %v; want %q", text, got, err, want)
		}
	}
}

// meaning returns what a text answers.
func meaning(q question, text string) string {
	if q.Plan != nil {
		r, err := q.judgePlan(text)
		switch {
		case err != nil:
			return "unclear"
		case *r.Approved:
			return "plan " + r.SelectedAction
		case r.Feedback != "":
			return "no plan: " + r.Feedback
		}
		return "no plan"
	}
	d, err := q.decide(text)
	switch {
	case err != nil:
		return "unclear"
	case d.Feedback != "":
		return d.Kind + ": " + d.Feedback
	case d.Offer != "":
		return fmt.Sprintf("%s %s", d.Kind, d.Offer)
	}
	return d.Kind
}

func TestShortIDsNameOneQuestion(t *testing.T) {
	of := func(session event.SessionID, request string) listedQuestion {
		return listedQuestion{question{RequestID: request}, session}
	}
	list := []listedQuestion{
		of("0198c2f1-77aa-7000-8000-000000000001", "0198c2f1-77ab-7000-8000-000000000001"),
		of("0198c2f1-77aa-7000-8000-000000000002", "0198c2f1-77ac-7000-8000-000000000001"),
		of("0198c2f1-77aa-7000-8000-000000000002", "0198c2f1-77ac-7000-9000-000000000001"),
		of("mine", "r"),
	}
	want := []string{
		"0198c2f1-77aa-7000-8000-000000000001",
		"0198c2f1-77aa-7000-8000-000000000002 0198c2f1-77ac-7000-8", "0198c2f1-77aa-7000-8000-000000000002 0198c2f1-77ac-7000-9",
		"mine",
	}
	for i, got := range shortIDs(list) {
		if got != want[i] {
			t.Errorf("question %d is named %q, want %q", i, got, want[i])
		}
	}
}
