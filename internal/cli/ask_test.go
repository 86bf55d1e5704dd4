package cli

import (
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/event"
)

// permissionQuestion returns a permission request about a command.
func permissionQuestion(id, command string) question {
	return question{RequestID: id, CallID: "c" + id, Permission: &event.PermissionAskedData{
		RequestID: id, ToolCallID: "c" + id, PermissionRequest: []byte(`{"kind":"shell","fullCommandText":"` + command + `"}`),
	}}
}

// A line that was read for one question is handled when another one is shown. It is given
// to neither, and the question that is shown stays.
func TestALateLineIsGivenToNoQuestion(t *testing.T) {
	shown := permissionQuestion("2", "rm x")
	r := &runner{prompter: &prompter{shown: &shown}} // it has no client, so that an answer would panic
	if err := r.reply(t.Context(), typedLine{"y", permissionQuestion("1", "ls")}, true); err != nil || r.prompter.shown != &shown {
		t.Errorf("%v, and the question is %+v", err, r.prompter.shown)
	}
}

// Whoever waits for a line stops when no question is shown: what is typed then is for the
// shell.
func TestNothingIsReadWhileNoQuestionIsShown(t *testing.T) {
	p := &prompter{reading: true} // it has no terminal, so that a read would panic
	if line, more := p.take(); line != nil || more || p.reading {
		t.Errorf("%+v, more %v, reading %v", line, more, p.reading)
	}
}

func TestWhatAPersonIsToldOfAnOpenQuestion(t *testing.T) {
	one, two := permissionQuestion("r1", "ls"), permissionQuestion("r2", "pwd")
	input := question{RequestID: "r3", Input: &event.UserInputAskedData{Question: "Q?"}}
	for _, c := range []struct {
		err  needsInput
		want []string
		not  string
	}{
		{needsInput{session: "s", questions: []question{one}}, []string{"no terminal to ask at", "abide answer s r1 yes|no"}, "--resume"},
		{needsInput{session: "s", questions: []question{one}, left: true}, []string{"as long as it takes", "abide answer s r1 yes|no", "abide run --resume s"}, "no terminal"},
		{needsInput{session: "s", questions: []question{one, two}}, []string{"abide answer s REQUEST yes|no"}, "abide answer s r1"},
		{needsInput{session: "s", questions: []question{input}, unsent: true}, []string{"abide answer s TEXT", "The prompt was not sent"}, "r3 TEXT"},
	} {
		text := c.err.Error()
		for _, want := range c.want {
			if !strings.Contains(text, want) {
				t.Errorf("%q lacks %q", text, want)
			}
		}
		if strings.Contains(text, c.not) {
			t.Errorf("%q has %q", text, c.not)
		}
	}
}
