package turn_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/turn"
)

// A step is what the model calls in a step, and what it finds.
type step struct{ tool, arguments, result, digest string }

// stepsUntilStopped returns after how many steps the turn is stopped, or the maximum.
func stepsUntilStopped(t *testing.T, most int, made func(i int) step) (int, string) {
	t.Helper()
	w := newWriter(t).add(start, accepted, message)
	for i := range most {
		if stop, ok := turn.Next(w.state, nothing).(turn.GiveUp); ok {
			loaded := turn.New("s")
			if err := loaded.Load(w.events); err != nil {
				t.Fatal(err)
			}
			if again, ok := turn.Next(loaded, nothing).(turn.GiveUp); !ok || again != stop {
				t.Errorf("after loading, next = %+v, want %+v", again, stop)
			}
			return i, stop.Reason
		}
		s := made(i)
		w.add(asked, event.AssistantMessageData{ToolRequests: []event.ToolRequest{{ToolCallID: "c", Name: s.tool, Arguments: json.RawMessage(s.arguments)}}},
			intended("c"), event.ToolCompleteData{ToolCallID: "c", Success: true, Digest: s.digest, Result: &event.ToolResult{Content: s.result}}, ended)
	}
	return most, ""
}

func TestCallsThatFindNothingNewAreALoop(t *testing.T) {
	at := time.Date(2026, 11, 15, 17, 32, 58, 0, time.UTC)
	process := func(i int) string { return fmt.Sprintf("p%016d", i) }
	for name, made := range map[string]func(i int) step{
		"a task id": func(i int) step {
			return step{tool: "bash", arguments: `{"command":"npm start"}`, result: fmt.Sprintf(`{"task_id":"%s","wall_duration_ms":%d,"message":"It runs as task %[1]s."}`, process(i), 3+i)}
		},
		"a path of the session": func(i int) step {
			return step{tool: "save", arguments: `{}`, result: "saved to /data/sessions/" + event.NewID() + "/files/x"}
		},
		"a date": func(i int) step {
			return step{tool: "t", arguments: `{}`, result: at.Add(time.Duration(i) * time.Second).Format(time.RFC3339Nano)}
		},
		"a time of day": func(i int) step {
			return step{tool: "t", arguments: `{}`, result: at.Add(time.Duration(i) * time.Second).Format(time.UnixDate)}
		},
		"seconds of 1970": func(i int) step { return step{tool: "t", arguments: `{}`, result: fmt.Sprint(at.Unix() + int64(i))} },
		"a duration": func(i int) step {
			return step{tool: "t", arguments: `{}`, result: fmt.Sprintf("FAIL pkg %d.%03ds", i, i)}
		},
		"a long duration": func(i int) step {
			return step{tool: "t", arguments: `{}`, result: fmt.Sprintf("running for %dm%ds", i, i)}
		},
		"a duration, said": func(i int) step {
			return step{tool: "t", arguments: `{}`, result: fmt.Sprintf("still running after %d seconds", 7*i)}
		},
		"the order of arguments": func(i int) step {
			return step{tool: "t", arguments: []string{`{"a":1,"b":2}`, `{"b":2,"a":1}`}[i%2], result: "same"}
		},
		"blanks between arguments": func(i int) step {
			return step{tool: "t", arguments: `{"a":` + strings.Repeat(" ", i) + `1}`, result: "same"}
		},
		"blanks in a command": func(i int) step {
			return step{tool: "client_shell", arguments: `{"command":"npm ` + strings.Repeat(" ", i) + `test"}`, result: "same"}
		},
		"comments of a command": func(i int) step {
			return step{tool: "client_shell", arguments: fmt.Sprintf(`{"command":"for f in a; do cat $f; done # try %d"}`, i), result: "same"}
		},
		"empty lines and quotes of a command": func(i int) step {
			return step{tool: "client_shell", arguments: []string{`{"command":"ls -la"}`, `{"command":"\n'ls'\t-la ;\n"}`, `{"command":"ls \"-la\""}`}[i%3], result: "same"}
		},
		"blanks around a value": func(i int) step {
			return step{tool: "t", arguments: `{"path":"a.go` + strings.Repeat(" ", i) + `","x":{"y":[" b"]}}`, result: "same"}
		},
		"keys without a value": func(i int) step {
			return step{tool: "t", arguments: []string{`{"a":1}`, `{"a":1,"b":null}`, `{"a":1.0}`}[i%3], result: "same"}
		},
		"what the tool leaves out": func(i int) step {
			return step{tool: "bash", arguments: fmt.Sprintf(`{"command":"x","description":"try %d"}`, i), result: fmt.Sprint("try ", i), digest: "same"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			if n, _ := stepsUntilStopped(t, 37, made); n != turn.MaxRepeats {
				t.Errorf("stopped after %d steps, want %d", n, turn.MaxRepeats)
			}
		})
	}
}

func TestStepsThatTakeTurnsAreALoop(t *testing.T) {
	for cycle := 2; cycle <= 4; cycle++ {
		n, reason := stepsUntilStopped(t, 100, func(i int) step {
			return step{tool: "t", arguments: fmt.Sprintf(`{"i":%d}`, i%cycle), result: fmt.Sprintf("in %dms", i)}
		})
		if n != cycle*turn.MaxRepeats || !strings.Contains(reason, fmt.Sprintf("the same %d steps with the same results 12 times in a row", cycle)) {
			t.Errorf("a cycle of %d steps is stopped after %d: %q", cycle, n, reason)
		}
	}
}

func TestProgressIsNoLoop(t *testing.T) {
	for name, made := range map[string]func(i int) step{
		"a number": func(i int) step {
			return step{tool: "t", arguments: `{}`, result: fmt.Sprintf("%d of 50 tests failed", 50-i)}
		},
		"a percentage":    func(i int) step { return step{tool: "t", arguments: `{}`, result: fmt.Sprintf("%d%%", i)} },
		"other arguments": func(i int) step { return step{tool: "t", arguments: fmt.Sprintf(`{"page":%d}`, i), result: "same"} },
		"blanks in quotes": func(i int) step {
			return step{tool: "t", arguments: `{"command":"echo 'a` + strings.Repeat(" ", i) + `b'"}`, result: "same"}
		},
		"blanks in a text of several lines": func(i int) step {
			return step{tool: "t", arguments: `{"text":"a\n` + strings.Repeat(" ", i) + `"}`, result: "same"}
		},
		"a digest": func(i int) step { return step{tool: "t", arguments: `{}`, result: "same", digest: fmt.Sprint(i)} },
		"edits between tests": func(i int) step {
			if i%2 == 0 {
				return step{tool: "edit", arguments: fmt.Sprintf(`{"text":"attempt number %d"}`, i), result: "done"}
			}
			return step{tool: "bash", arguments: `{"command":"go test"}`, result: "FAIL 0.1s"}
		},
		"a pause": func(i int) step {
			if i%turn.MaxRepeats == turn.MaxRepeats-1 {
				return step{tool: "other", arguments: fmt.Sprintf(`{"i":%d}`, i), result: "x"}
			}
			return step{tool: "t", arguments: `{}`, result: "same"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			if n, reason := stepsUntilStopped(t, 50, made); n != 50 {
				t.Errorf("stopped after %d steps: %s", n, reason)
			}
		})
	}
}
