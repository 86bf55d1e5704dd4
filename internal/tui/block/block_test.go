package block_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/tui/block"
	"github.com/abide-run/abide/internal/tui/text"
)

// A session makes events.
type session struct {
	t    *testing.T
	seq  event.Seq
	list []event.Event
}

func (s *session) make(seq event.Seq, body event.Payload) event.Event {
	s.t.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		s.t.Fatal(err)
	}
	e, err := event.Parse(seq, fmt.Appendf(nil, `{"type":%q,"id":"%s","timestamp":"2026-01-02T03:04:%02d.000Z","parentId":null,"data":%s}`, body.Type(), event.NewID(), seq%60, data))
	if err != nil {
		s.t.Fatal(err)
	}
	return e
}

// stored adds a stored event, sent one that is only sent.
func (s *session) stored(body event.Payload) { s.seq++; s.list = append(s.list, s.make(s.seq, body)) }
func (s *session) sent(body event.Payload)   { s.list = append(s.list, s.make(0, body)) }

var options = block.Options{
	Describe: func(e event.Event) (string, string) { return "note", string(e.Type) },
	Asked: func(e event.Event) string {
		if e.Type != event.PermissionAsked {
			return ""
		}
		return "make all"
	},
}

func shown(lines []text.Line) string {
	var out []string
	for _, l := range lines {
		out = append(out, l.String())
	}
	return strings.Join(out, "\n")
}

// aTurn is a turn with everything in it.
func aTurn(t *testing.T) *session {
	s := &session{t: t}
	s.stored(event.UserMessageData{Content: "do it\x1b[2J"})
	s.sent(event.ModelCallStartData{})
	for _, piece := range []string{"I w", "ill **do** it", ".\n\n- one"} {
		s.sent(event.MessageDeltaData{MessageID: "m1", DeltaContent: piece})
	}
	s.stored(event.AssistantMessageData{MessageID: "m1", Content: "I will **do** it.\n\n- one", ReasoningText: "think\nhard", ToolRequests: []event.ToolRequest{}})
	s.stored(event.ToolStartData{ToolCallID: "c1", ToolName: "bash", Arguments: json.RawMessage(`{"command":"make all"}`)})
	s.stored(event.ToolStartData{ToolCallID: "c2", ToolName: "edit", Arguments: json.RawMessage(`{"path":"a.go"}`)})
	s.stored(event.PermissionAskedData{RequestID: "r1", ToolCallID: "c1"})
	s.stored(event.PermissionDoneData{RequestID: "r1", Result: event.PermissionResult{Kind: event.Approved}})
	s.stored(event.ToolCompleteData{ToolCallID: "c2", Success: true, Result: &event.ToolResult{Content: "ok", DetailedContent: "\ndiff --git a/a.go b/a.go\nindex 0..0 100644\n--- a/a.go\n+++ b/a.go\n@@ -1 +1 @@\n-old\n+new\n"}})
	s.stored(event.ToolCompleteData{ToolCallID: "c1", Success: true, Result: &event.ToolResult{Content: strings.Repeat("out\n", 9) + "\x1b]52;c;aGk=\alast"}})
	s.stored(event.SessionErrorData{Message: "broken"})
	s.stored(event.AbortData{Reason: "user_initiated"})
	s.stored(event.SessionIdleData{})
	return s
}

const aTurnShown = `
› do it<U+001B>[2J

∴ think (+1 lines)

I will do it.

• one
✓ allowed once: make all
✓ edit a.go  3.0s
@@ -1 +1 @@
-old
+new
✓ bash make all  5.0s
  … 4 lines: Ctrl-O shows them
  out
  out
  out
  out
  out
  <U+001B>]52;c;aGk=<U+0007>last
✗ broken

✗ stopped`

// The blocks are the same whether the events come live, with pieces, or from the log.
func TestBlocksAreThoseOfTheLog(t *testing.T) {
	s := aTurn(t)
	live, read := block.New(options), block.New(options)
	var a, b []text.Line
	for _, e := range s.list {
		a = append(a, live.Add(e, 80)...)
		if e.Seq > 0 {
			b = append(b, read.Add(e, 80)...)
		}
		if again := live.Add(e, 80); e.Seq > 0 && len(again) > 0 {
			t.Errorf("event %d is shown twice", e.Seq)
		}
	}
	if shown(a) != shown(b) || shown(a) != aTurnShown {
		t.Errorf("live:\n%s\nfrom the log:\n%s\nwant:\n%s", shown(a), shown(b), aTurnShown)
	}
	if got := live.Live(80, 20, time.Now()); len(got) > 0 {
		t.Errorf("after the turn something is under way:\n%s", shown(got))
	}
}

func TestLiveShowsTheEndOfWhatIsUnderWay(t *testing.T) {
	s := &session{t: t}
	s.sent(event.ReasoningDeltaData{DeltaContent: "thinking about it"})
	c := block.New(options)
	add := func() {
		for _, e := range s.list {
			c.Add(e, 40)
		}
		s.list = nil
	}
	add()
	if got := shown(c.Live(40, 5, time.Now())); got != "∴ thinking about it" {
		t.Errorf("thoughts: %q", got)
	}
	for i := range 30 {
		s.sent(event.MessageDeltaData{MessageID: "m", DeltaContent: fmt.Sprintf("paragraph %d\n\n", i)})
	}
	add()
	if got := shown(c.Live(40, 3, time.Now())); got != "paragraph 28\n\nparagraph 29" {
		t.Errorf("answer: %q", got)
	}
	s.sent(event.MessageDeltaData{MessageID: "other", DeltaContent: "anew"})
	add()
	if got := shown(c.Live(40, 3, time.Now())); got != "anew" {
		t.Errorf("an attempt that broke off is still shown: %q", got)
	}
	s.stored(event.AssistantMessageData{MessageID: "other", Content: "anew"})
	s.stored(event.ToolStartData{ToolCallID: "c", ToolName: "bash", Arguments: json.RawMessage(`{"command":"sleep 9\nls"}`)})
	add()
	c.Calls()[0].SetTail("10%\r20%\r30%\nsecond\x1b[A\n")
	now := c.Calls()[0].Started.Add(65 * time.Second)
	if got := shown(c.Live(60, 5, now)); got != "▸ bash sleep 9 ⏎ ls  1m05s\n  30%\n  second<U+001B>[A" {
		t.Errorf("call:\n%s", got)
	}
}

func TestUnfoldedShowsEverything(t *testing.T) {
	unfolded := options
	unfolded.Unfolded = true
	c := block.New(unfolded)
	var lines []text.Line
	for _, e := range aTurn(t).list {
		lines = append(lines, c.Add(e, 80)...)
	}
	got := shown(lines)
	for _, want := range []string{"∴ think\n  hard", "  command:\nmake all", strings.Repeat("out\n", 9)} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in:\n%s", want, got)
		}
	}
}

// A message of a person that is very long is shown by its ends.
func TestALongMessageIsFolded(t *testing.T) {
	s := &session{t: t}
	s.stored(event.UserMessageData{Content: "first\n" + strings.Repeat("line\n", 5000) + "last"})
	s.stored(event.UserMessageData{Content: strings.Repeat("x", 5<<20)})
	c := block.New(options)
	lines := c.Add(s.list[0], 80)
	if got := shown(lines); len(lines) > 60 || !strings.Contains(got, "first") || !strings.Contains(got, "last") || !strings.Contains(got, "more lines") {
		t.Errorf("%d lines:\n%s", len(lines), got)
	}
	if lines := c.Add(s.list[1], 80); len(shown(lines)) > 20_000 {
		t.Errorf("%d bytes are shown", len(shown(lines)))
	}
}

// A blank line of a message has no margin: it would be copied with it.
func TestABlankLineIsBlank(t *testing.T) {
	s := &session{t: t}
	s.stored(event.UserMessageData{Content: "one\n\ntwo"})
	lines := block.New(options).Add(s.list[0], 80)
	if len(lines) != 4 || lines[2].Width() != 0 || lines[3].String() != "  two" {
		t.Errorf("shown as %q", lines)
	}
}
