package cli

import (
	"encoding/json"
	"fmt"
	"strings"
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
		{whole, "go ahead", unclear}, {whole, "Do it!", unclear}, {whole, "looks good to me", unclear}, {whole, "sure thing", unclear}, {whole, "no problem", unclear}, {whole, "why not?", unclear}, {whole, "sounds good, go for it", unclear}, {whole, "that's fine", unclear}, {whole, "of course", unclear}, {whole, "I approve", unclear}, {plan, "go ahead", unclear},
		{whole, "do not do it", "reject: do not do it"}, {whole, "don't do it", "reject: don't do it"}, {whole, "not good", "reject: not good"}, {whole, "no way", "reject: no way"}, {whole, "go ahead with tests first", "reject: go ahead with tests first"}, {whole, "no, do it with sed", "reject: no, do it with sed"}, {whole, "not sure", "reject: not sure"}, {whole, "no good", "reject: no good"},
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
		filled, err := question{}.fillIn(text)
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

// twoFiles is a change of two files, as a question carries it.
const twoFiles = "\ndiff --git a/w/one b/w/one\ncreate file mode 100644\nindex 0000000..0000000\n--- a/dev/null\n+++ b/w/one\n@@ -0,0 +1 @@\n+1\n" +
	"\ndiff --git a/w/two b/w/two\nindex 0000000..0000000 100644\n--- a/w/two\n+++ b/w/two\n@@ -1 +1 @@\n-diff --git\n+2\n"

func TestADiffNamesItsFilesAndNothingThatIsNotKnown(t *testing.T) {
	one, _, _ := strings.Cut(twoFiles[1:], "\n\n")
	for _, c := range []struct{ diff, want string }{
		{"", ""},
		{one, "│ @@ -0,0 +1 @@\n│ +1\n"}, // the question names the file
		{twoFiles, "│ --- a/dev/null\n│ +++ b/w/one\n│ @@ -0,0 +1 @@\n│ +1\n│ --- a/w/two\n│ +++ b/w/two\n│ @@ -1 +1 @@\n│ -diff --git\n│ +2\n"},
	} {
		var got sheet
		if got.diff(c.diff, 0); got.String() != c.want {
			t.Errorf("%q is shown as\n%s\nwant\n%s", c.diff, got.String(), c.want)
		}
	}
}

// Characters that nobody sees are named, wherever a question is shown.
func TestNothingInAQuestionIsInvisible(t *testing.T) {
	for text, want := range map[string]string{
		"rm a\u200bb": "rm a<U+200B>b", "rm\u00a0x": "rm<U+00A0>x", "a\u3164b": "a<U+3164>b", "a\ufe0fb": "a<U+FE0F>b",
		"a\U000e0041b": "a<U+E0041>b", "é 漢\t'\n": "é 漢\t'\n",
	} {
		if got := reveal(text); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
	raw, err := json.Marshal(map[string]string{"kind": "shell", "fullCommandText": "rm\u00a0a\u200bb"})
	if err != nil {
		t.Fatal(err)
	}
	q := question{RequestID: "r", Permission: &event.PermissionAskedData{PermissionRequest: raw}}
	for name, shown := range map[string]string{
		"abide questions": listedQuestion{q, "s"}.block(&sheet{}, "s", false),
		"the prompt":      (&prompter{out: &printer{}}).text(q),
		"no terminal":     (&needsInput{session: "s", questions: []question{q}}).Error(),
	} {
		if !strings.Contains(shown, "rm<U+00A0>a<U+200B>b") {
			t.Errorf("%s shows %q", name, shown)
		}
	}
}
