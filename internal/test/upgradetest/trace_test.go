package upgradetest

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/turn"
	"github.com/abide-run/abide/internal/window"
)

var update = flag.Bool("update", false, "write the traces in testdata anew")

// moments are the processes for which it is asked what comes next.
var moments = []struct {
	name string
	now  turn.Now
}{
	{"start", turn.Now{Running: never, Fresh: never, Asked: never, Verdict: measured(window.Go)}}, // it has just started
	{"busy", turn.Now{Asking: true, Restoring: true, Preparing: true, Compacting: true, Running: always, Fresh: always, Asked: always, Verdict: measured(window.Go)}},
	{"own", turn.Now{Running: never, Fresh: always, Asked: never, Compacting: true, Verdict: measured(window.Go)}}, // it has recorded all itself
	{"hooks", turn.Now{Hooks: true, Running: never, Fresh: never, Asked: always, Compacting: true, Verdict: measured(window.Go)}},
	{"full", turn.Now{Running: never, Fresh: never, Asked: always, Compacting: true, Verdict: measured(window.Must)}},
	{"fills", turn.Now{Running: never, Fresh: never, Asked: always, Compacting: true, Prepare: true, Verdict: measured(window.Prepare)}},
}

func never(string) bool  { return false }
func always(string) bool { return true }

func measured(a window.Action) *window.Verdict { return &window.Verdict{Action: a, Threshold: 1000} }

// trace says what comes next in each moment. What is the same as in the first moment
// is left out.
func trace(s *turn.State) string {
	first := describe(turn.Next(s, moments[0].now))
	line := first
	for _, m := range moments[1:] {
		if step := describe(turn.Next(s, m.now)); step != first {
			line += " | " + m.name + ": " + step
		}
	}
	return line
}

// describe is a step in words: its name, and what it is about.
func describe(step turn.Step) string {
	name := strings.TrimPrefix(fmt.Sprintf("%T", step), "turn.")
	switch step := step.(type) {
	case turn.Deliver:
		return fmt.Sprintf("%s %s %s", name, step.How, input(step.Input))
	case turn.Notify:
		for _, r := range step.Reports {
			name += fmt.Sprintf(" %d %s", r.Seq, r.Status)
		}
	case turn.Command:
		return name + " " + input(step.Input)
	case turn.StartStep:
		return name + " " + step.TurnID
	case turn.AskModel:
		return name + " " + step.TurnID
	case turn.EndStep:
		return name + " " + step.TurnID
	case turn.Intend:
		return name + calls(step.Calls...)
	case turn.Judge:
		return name + calls(step.Call)
	case turn.Begin:
		return name + calls(step.Call)
	case turn.RunTool:
		return name + calls(step.Call)
	case turn.Recover:
		return name + calls(step.Call)
	case turn.Conclude:
		return name + calls(step.Call)
	case turn.Restore:
		return fmt.Sprintf("%s %d to %d", name, step.Hidden.From, step.Hidden.To)
	case turn.StartHook:
		if step.Input.InputID != "" {
			name += " " + input(step.Input)
		}
		return name + " " + step.Kind + calls(step.Calls...)
	case turn.AskHook:
		return name + " " + step.Hook.Kind
	case turn.Say:
		return fmt.Sprintf("%s %s %s", name, step.Words.Source, quote(step.Words.Text))
	case turn.Fail:
		return fmt.Sprintf("%s %s %s", name, step.Failure.ErrorType, quote(step.Failure.Message))
	case turn.GiveUp:
		return fmt.Sprintf("%s %s %s", name, step.ErrorType, quote(step.Reason))
	case turn.Compact:
		return name + " " + step.Point
	}
	return name
}

func input(in event.InputAcceptedData) string {
	return strings.TrimSpace(fmt.Sprintf("%s %s %s", in.Kind, in.Mode, quote(in.Prompt)))
}

func calls(list ...*turn.Call) (text string) {
	for _, c := range list {
		text += " " + c.Request.Name + " " + c.Request.ToolCallID
	}
	return text
}

// quote shows the beginning of a text.
func quote(text string) string {
	if len(text) > 40 {
		text = text[:40]
	}
	return fmt.Sprintf("%q", text)
}

// standing is how a session stands beside what comes next.
func standing(s *turn.State) string {
	list := []string{s.Mode(), s.Setup.Model}
	note := func(is bool, word string) {
		if is {
			list = append(list, word)
		}
	}
	note(s.Active(), "active")
	note(s.AllowsAll(), "allows all")
	note(s.Queue.Paused, "paused")
	note(s.Queue.Halted, "halted")
	note(s.Life.Suspended, "suspended")
	note(s.Life.Aborted, "aborted")
	note(s.Life.Entry != "", s.Life.Entry)
	note(s.Context.Measured.Stale, "measured before")
	for _, count := range []struct {
		word string
		n    int
	}{
		{"questions", len(s.Questions())}, {"queue", len(s.Queue.Inputs)}, {"exchanges", len(s.Exchanges.Open)}, {"hooks", len(s.Hooks.Open)},
		{"tasks", len(s.Tasks.Open)}, {"reports", len(s.Tasks.Reports)}, {"grants", len(s.Permission.Grants)}, {"restore", len(s.Rewind.Restore)},
		{"todos", len(s.OpenTodos())}, {"skills", len(s.UsableSkills())}, {"unloaded", len(s.Unloaded())}, {"epochs", s.Context.Epochs},
		{"working", len(builtins.Working(s))}, {"turns", int(s.About.Totals.Turns)}, {"steps", int(s.About.Totals.Steps)},
		{"extracted", int(s.Memory.Pointer)}, {"found", int(s.Memory.Waiting)}, {"consolidated", int(s.Memory.Through)}, {"measured", s.Context.Measured.Counted},
	} {
		note(count.n > 0, fmt.Sprintf("%s %d", count.word, count.n))
	}
	if s.Turn != nil {
		note(s.Context.Compactions > 0, fmt.Sprintf("waited for %d compactions", s.Context.Compactions))
		note(s.Turn.Stop, "last step")
		note(s.Context.Full != "", "full")
	}
	return strings.Join(list, ", ")
}

// traceLog folds a session's log and has a line for each event, with how the session
// stands where that has changed.
func traceLog(t *testing.T, l log) string {
	t.Helper()
	var out strings.Builder
	fmt.Fprintf(&out, "# %s\n", l.index.ID)
	s, last := turn.New(l.index.ID), ""
	for _, e := range l.events {
		if err := s.Fold(e); err != nil {
			t.Fatalf("session %s, event %d (%s): %v", l.index.ID, e.Seq, e.Type, err)
		}
		fmt.Fprintf(&out, "%d %s: %s", e.Seq, e.Type, trace(s))
		if is := standing(s); is != last {
			fmt.Fprintf(&out, " # %s", is)
			last = is
		}
		out.WriteByte('\n')
	}
	return out.String()
}

func TestNextSaysWhatItSaidOfOldLogs(t *testing.T) {
	eachFolder(t, func(t *testing.T, name, archive string) {
		var got strings.Builder
		for _, l := range readLogs(t, archive) {
			got.WriteString(traceLog(t, l))
		}
		golden := filepath.Join("testdata", name+".trace")
		if *update {
			if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatalf("%v: write the trace of the new folder with -update, and see that no other one changes", err)
		}
		compareTraces(t, golden, string(want), got.String())
	})
}

// compareTraces shows which lines differ, under the name of their session. Both have
// a line for each event, so that lines of the same number belong together.
func compareTraces(t *testing.T, golden, want, got string) {
	t.Helper()
	var diff strings.Builder
	was, is := strings.Split(want, "\n"), strings.Split(got, "\n")
	session := ""
	for i := range max(len(was), len(is)) {
		before, after := at(was, i), at(is, i)
		if strings.HasPrefix(before, "# ") {
			session = before + "\n"
		}
		if before != after {
			fmt.Fprintf(&diff, "%s-%s\n+%s\n", session, before, after)
			session = ""
		}
	}
	if diff.Len() > 0 {
		t.Errorf("%s differs (-as it was +as it is); if every line is meant, run with -update:\n%s", golden, diff.String())
	}
}

func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return ""
}
