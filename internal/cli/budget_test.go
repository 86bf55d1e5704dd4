package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/turn"
)

func TestARunEndsWithTheCodeOfALimitWhenItsBudgetIsReached(t *testing.T) {
	reached := event.ElicitationAskedData{RequestID: "b", Message: "Go on?", Budget: &event.BudgetReached{}}
	answered := event.ElicitationDoneData{RequestID: "b", Action: turn.Accept}
	for name, c := range map[string]struct {
		events []event.Payload
		code   int // 0 if the run goes on
	}{
		"between two requests":          {[]event.Payload{reached}, exitLimit},
		"while an agent works":          {[]event.Payload{starts("1"), reached}, exitLimit},
		"answered":                      {[]event.Payload{reached, answered}, 0},
		"answered, and then a call":     {[]event.Payload{reached, answered, starts("1")}, 0},
		"answered, and then a question": {[]event.Payload{reached, answered, starts("1"), asks("1")}, exitNeedsInput},
		"another form":                  {[]event.Payload{event.ElicitationAskedData{RequestID: "f"}}, 0},
	} {
		r := &runner{answered: make(map[string]bool)}
		gather(t, &r.seen, message("i", "idle"))
		gather(t, &r.seen, c.events...)
		if !r.waiting() {
			if c.code != 0 {
				t.Errorf("%s: the run goes on", name)
			}
			continue
		}
		if code, _ := exitStatus(t.Context(), r.needs(false)); code != c.code {
			t.Errorf("%s: the run ends with %d, want %d", name, code, c.code)
		}
	}
	if code := failureCode(event.SessionErrorData{ErrorType: turn.ErrorBudget}); code != exitLimit {
		t.Errorf("a turn that may not go on ends with %d", code)
	}
}

func TestTheAnswerToABudgetIsYesOrNo(t *testing.T) {
	q := question{Form: &event.ElicitationAskedData{Budget: &event.BudgetReached{}}}
	for text, want := range map[string]string{"yes": turn.Accept, "Y": turn.Accept, "ok.": turn.Accept, "no": turn.Dismiss, "cancel": turn.Cancel, "{}": "", "10": "", "": "", "maybe later": ""} {
		if filled, err := q.fillIn(text); filled.Action != want || (err != nil) != (want == "") {
			t.Errorf("%q answers %q, %v; want %q", text, filled.Action, err, want)
		}
	}
}

func TestTheLimitsOfARun(t *testing.T) {
	for name, c := range map[string]struct{ cost, tokens, want string }{
		"none":              {"", "", "{}"},
		"both":              {"2.5", "1000", `{"sessionCostUsd":2.5,"sessionTokens":1000}`},
		"nothing":           {"0", "0", `{"sessionCostUsd":0,"sessionTokens":0}`},
		"negative money":    {"-1", "", ""},
		"negative tokens":   {"", "-1", ""},
		"no number":         {"NaN", "", ""},
		"endless":           {"inf", "", ""},
		"words":             {"five", "", ""},
		"a part of a token": {"", "1.5", ""},
		"too many tokens":   {"", "99999999999999999999", ""},
	} {
		f := &runFlags{maxCost: c.cost, maxTokens: c.tokens}
		r, err := f.limit()
		if got, _ := json.Marshal(r); c.want != "" && (err != nil || string(got) != c.want) {
			t.Errorf("%s: %s, %v; want %s", name, got, err, c.want)
		}
		if code, _ := exitStatus(t.Context(), err); c.want == "" && code != exitUsage {
			t.Errorf("%s: the exit code is %d", name, code)
		}
	}
}

// The question is in words of the program alone, so nothing stands below it.
func TestTheQuestionOfABudgetIsShownWithoutAnEmptyText(t *testing.T) {
	d := turn.AskBudget("b", event.BudgetReached{Limits: event.BudgetRules{SessionTokens: new(int64(50))}, Spent: event.BudgetRules{SessionTokens: new(int64(0))}, Raised: event.BudgetRules{SessionTokens: new(int64(3600))}})
	q := question{RequestID: "b", Form: &d}
	p := &prompter{out: &printer{}}
	for _, shown := range []string{p.text(q), p.again(q)} {
		if strings.Contains(shown, "│") || strings.Contains(shown, "the same as above") || !strings.HasSuffix(strings.TrimSpace(shown), "3600 tokens.") {
			t.Errorf("shown as %q", shown)
		}
	}
}
