package cli

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/event"
)

// asking returns a permission request with these fields.
func asking(t *testing.T, fields map[string]any, more *event.PermissionMore) question {
	t.Helper()
	raw, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return question{RequestID: "r", CallID: "c", Permission: &event.PermissionAskedData{RequestID: "r", ToolCallID: "c", PermissionRequest: raw, Abide: more}}
}

func askingToRun(t *testing.T, command string) question {
	return asking(t, map[string]any{"kind": "shell", "fullCommandText": command}, nil)
}

// shownOn returns what a question shows on a terminal with a number of columns; zero for
// none.
func shownOn(q question, most int, how amount) string {
	s := &sheet{most: most}
	q.statementOn(s, "? ", how)
	q.detailsOn(s, how)
	q.changeOn(s, how)
	return s.String()
}

// A line break can begin another command, so that every place shows it.
func TestALineBreakInACommandIsSeenEverywhere(t *testing.T) {
	for command, want := range map[string]string{
		"ls # just list\nrm -rf x":            "ls # just list ⏎ rm -rf x",
		"ls #\rrm  -rf x":                     "ls #␍rm -rf x",
		"ls\n\n \n\trm x\n":                   "ls ⏎ rm x",
		"echo ⏎ \x1b[2K\u202e":                "echo <U+23CE> <U+001B>[2K<U+202E>",
		"a\u2028b\u0085c\vd":                  "a<U+2028>b<U+0085>c<U+000B>d",
		"ls" + strings.Repeat(" ", 100) + "x": "ls x",
	} {
		q := askingToRun(t, command)
		refused := outcome{open: []question{q}}
		refused.decided(event.PermissionDoneData{RequestID: "r", Result: event.PermissionResult{Kind: event.DeniedByUser}})
		for place, shown := range map[string]string{
			"one line":       inLine(command),
			"no terminal":    (&needsInput{session: "s", questions: []question{q}}).Error(),
			"what is listed": listed([]question{q}),
			"what is denied": refused.refused,
			"a call":         shortArguments(json.RawMessage(fmt.Sprintf(`{"command":%q}`, "x"))) + inLine(command),
		} {
			if !strings.Contains(shown, want) {
				t.Errorf("%s shows %q of %q, want %q", place, shown, command, want)
			}
		}
		if shown := (listedQuestion{q, "s"}).block(&sheet{}, "s", false); strings.ContainsAny(command, "\n\r") && !strings.Contains(shown, "may it run this command:\n│ ls") {
			t.Errorf("abide questions shows %q", shown)
		}
	}
}

// Whatever others write, no line of it passes for a line of the program.
func TestNoTextOfOthersPassesForAQuestion(t *testing.T) {
	const forged = "? may it run this command: ls\n  in /tmp\n  asked because x\n[y]es, once: "
	lines := strings.Repeat("\n", 45) + forged
	wide := strings.Repeat(" ", 37) + forged
	args, err := json.Marshal(map[string]string{"a": lines, "b": strings.Repeat("x ", 50) + forged})
	if err != nil {
		t.Fatal(err)
	}
	for name, q := range map[string]question{
		"command":        askingToRun(t, "rm x"+lines),
		"wide command":   askingToRun(t, "rm x"+strings.ReplaceAll(wide, "\n", strings.Repeat(" ", 40))),
		"file":           asking(t, map[string]any{"kind": "write", "fileName": "/w" + lines, "diff": "\ndiff --git a/w\n? b/w\n? \n--- a/w\n? may\n+++ b/w\n@@ -0,0 +1 @@\n+" + lines}, nil),
		"long file":      asking(t, map[string]any{"kind": "write", "fileName": "/w" + wide, "diff": "[x]\n" + forged, "protected": wide}, nil),
		"put back":       asking(t, map[string]any{"kind": "write", "putBack": true, "fileName": "/w" + lines, "diff": lines, "command": lines}, nil),
		"read":           asking(t, map[string]any{"kind": "read", "path": lines, "leadsTo": []string{lines}}, nil),
		"address":        asking(t, map[string]any{"kind": "url", "url": lines}, nil),
		"tool":           asking(t, map[string]any{"kind": "custom-tool", "toolName": lines, "args": json.RawMessage(args)}, nil),
		"server":         asking(t, map[string]any{"kind": "mcp", "toolName": "t", "serverName": lines, "args": lines}, nil),
		"unknown":        asking(t, map[string]any{"kind": "new", "x": wide}, nil),
		"reason":         asking(t, map[string]any{"kind": "shell", "fullCommandText": "ls"}, &event.PermissionMore{Reasons: []string{lines, wide}, Dir: "/" + lines, Commands: []event.CommandReading{{Words: []string{"ls", lines}}, {Join: "|", Words: []string{wide}}}}),
		"model question": {Input: &event.UserInputAskedData{Question: lines}},
		"plan":           {Plan: &event.ExitPlanAskedData{Summary: wide, PlanContent: lines}},
		"form":           {Form: &event.ElicitationAskedData{Message: lines}},
		"external":       {External: &event.ExternalAskedData{ToolName: lines, Arguments: args}},
	} {
		for _, most := range []int{40, 41, 42, 43, 44, 80, 0} {
			for _, how := range []amount{excerpts, whole} {
				shown := shownOn(q, most, how)
				for i, line := range strings.Split(shown, "\n") {
					if i > 0 && strings.HasPrefix(line, "?") || strings.HasPrefix(line, "[y]") || line == "  in /tmp" || line == "  asked because x" || most > 0 && columns(line) > most {
						t.Errorf("%s, %d columns: a line is %q in\n%s", name, most, line, shown)
					}
				}
			}
		}
	}
	if shown := shownOn(askingToRun(t, "rm x"+lines), 80, whole); !strings.Contains(shown, "│ rm x\n│ \n  … 43 more empty lines …\n│ ? may it") {
		t.Errorf("empty lines are shown as\n%s", shown)
	}
}

// Of a long command the beginning and the end are shown, with how much is between them and
// the programs that it runs. A person can see all of it, and it is not repeated unasked.
func TestALongCommandIsShownInPart(t *testing.T) {
	many := strings.Repeat("echo line\n", 999) + "rm x"
	for name, c := range map[string]struct{ command, says string }{
		"lines": {many, `… 960 lines, 9,600 bytes are not shown here: type d`},
		"bytes": {"echo " + strings.Repeat("x", 100_000) + " rm", `… 1 line, 95,912 bytes are not shown here: type d`},
	} {
		more := &event.PermissionMore{Commands: []event.CommandReading{{Words: []string{"echo", "a"}}, {Words: []string{"rm", "x"}}, {Words: []string{"echo", "b"}}}}
		q := asking(t, map[string]any{"kind": "shell", "fullCommandText": c.command}, more)
		p := &prompter{out: &printer{}}
		shown := p.text(q)
		for _, want := range []string{c.says, "│ echo ", "rm", "understood as 3 commands, of the programs:\n│ echo rm\n"} {
			if !strings.Contains(shown, want) {
				t.Errorf("%s: %q is not in\n%s", name, want, shown)
			}
		}
		if len(shown) > 5000 || len(p.again(q)) > 200 || len(p.help(q)) > 1000 || len((&needsInput{session: "s", questions: []question{q}}).Error()) > 5000 {
			t.Errorf("%s: %d bytes are shown, %d again, %d with the explanation", name, len(shown), len(p.again(q)), len(p.help(q)))
		}
		got := regexp.MustCompile(`(?m)^│ `).ReplaceAllString(p.all(q), "")
		if !strings.Contains(got, c.command) {
			t.Errorf("%s: %q does not show all of it", name, wordDiff)
		}
	}
}

// What a question does not carry is said, and whatever it carries can be seen.
func TestADiffSaysWhatItLeavesOut(t *testing.T) {
	const head = "\ndiff --git a/f b/f\ncreate file mode 100644\nindex 0000000..0000000\n--- a/dev/null\n+++ b/f\n@@ -0,0 +1,3 @@\n"
	long := "+" + strings.Repeat("A", 60_000)
	for name, c := range map[string]struct {
		diff           string
		contents       any
		excerpt, whole []string
		never          string
	}{
		"lines":     {head + "+a\n[545 more lines]\n", nil, []string{"the change is larger than can be shown: 545 lines are not shown"}, []string{"545 lines are not shown"}, "type d"},
		"bytes":     {head + "[3 lines with 3088890 bytes are not shown]\n", nil, []string{"3 lines with 3088890 bytes are not shown"}, nil, "type d"},
		"contents":  {head + "+a\n[1 more lines]\n", "a\nrm -rf x\n", []string{"larger than can be shown", "type d to see the whole content"}, []string{"the whole content that the file gets:\n│ a\n│ rm -rf x\n"}, ""},
		"long line": {head + "+first\n" + long + "\n+last\n", nil, []string{"│ +first\n│ +AAA", "bytes of this line are not shown: type d", "│ +last\n"}, []string{"│ " + long + "\n│ +last\n"}, "larger"},
		"same":      {"\ndiff --git a/f b/f\nindex 0000000..0000000 100644\n", "a\n", []string{"the file has this content already"}, []string{"the file has this content already"}, "larger"},
		"empty":     {"\ndiff --git a/f b/f\ncreate file mode 100644\nindex 0000000..0000000\n", "", []string{"the file is new and empty"}, nil, "already"},
	} {
		fields := map[string]any{"kind": "write", "fileName": "/f", "diff": c.diff}
		if c.contents != nil {
			fields["newFileContents"] = c.contents
		}
		q := asking(t, fields, nil)
		for how, wants := range map[amount][]string{excerpts: c.excerpt, whole: c.whole} {
			shown := shownOn(q, 0, how)
			for _, want := range wants {
				if !strings.Contains(shown, want) {
					t.Errorf("%s, %d: %q is not in\n%s", name, how, want, clip(shown, 3000))
				}
			}
			if c.never != "" && strings.Contains(shown, c.never) {
				t.Errorf("%s, %d: it says %q:\n%s", name, how, c.never, clip(shown, 3000))
			}
		}
	}
}

// A no to a change that was put back leaves it put back, and ends no turn.
func TestTheAnswersToAChangeThatWasPutBackAreExplained(t *testing.T) {
	q := asking(t, map[string]any{"kind": "write", "putBack": true, "fileName": "/f", "diff": "+x", "command": "make hooks"}, nil)
	shown := (&prompter{out: &printer{}}).text(q) + (&prompter{out: &printer{}}).help(q) + q.keys()
	for _, want := range []string{"│ make hooks", "yes, the change is made again", "no, the file stays as it was before the command; the turn goes on", "[n]o, leave it put back"} {
		if !strings.Contains(shown, want) {
			t.Errorf("%q is not in\n%s", want, shown)
		}
	}
	if strings.Contains(shown, "the turn ends") || strings.Contains(shown, "once") {
		t.Errorf("it says of a no what is not so:\n%s", shown)
	}
}
