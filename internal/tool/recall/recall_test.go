package recall_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/memory/book"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/tool/recall"
)

// A fixture is the tool and a log.
type fixture struct {
	*testing.T
	log   *eventlog.Memory
	end   eventlog.End
	books *book.Set
	tool  *recall.Search
}

func newFixture(t *testing.T) *fixture {
	d := &fixture{T: t, log: eventlog.NewMemory(), books: book.NewSet(filepath.Join(t.TempDir(), "memory"))}
	d.tool = recall.New(d.log, d.books)
	return d
}

// record adds an event and returns its number.
func (d *fixture) record(p event.Payload) event.Seq {
	d.Helper()
	e, err := event.Encode(event.Head{ID: event.NewID(), Time: time.Now()}, p)
	if err == nil {
		d.end, err = d.log.Append(d.Context(), "s", eventlog.Batch{After: d.end, Events: []event.Event{e}})
	}
	if err != nil {
		d.Fatal(err)
	}
	return d.end.Seq
}

func (d *fixture) said(text string) event.Seq { return d.record(event.UserMessageData{Content: text}) }

// ask runs the tool.
func (d *fixture) ask(arguments string) string {
	d.Helper()
	r, err := d.tool.Run(d.Context(), tool.Call{Session: "s", Arguments: json.RawMessage(arguments)})
	if err != nil || r.Failed {
		d.Fatalf("%s: %+v, %v", arguments, r, err)
	}
	return r.Text
}

func TestMessagesOfASessionAreFound(t *testing.T) {
	d := newFixture(t)
	first := d.said("the Parrot is called Polly")
	d.record(event.ContextEpochData{EpochID: "e", Number: 1, From: 100}) // a compaction has removed the first input
	d.record(event.AssistantMessageData{Content: "polly, a parrot", ToolRequests: []event.ToolRequest{{ToolCallID: "c", Name: "grep", Arguments: json.RawMessage(`{"pattern":"parrot polly"}`)}}})
	d.record(event.ToolCompleteData{ToolCallID: "c", Success: true, Result: &event.ToolResult{Content: "zoo.txt: a parrot, Polly"}})
	d.said("something else")
	got := d.ask(`{"query":"POLLY parrot"}`)
	for _, want := range []string{
		"Nothing was found in memory.", fmt.Sprintf("[%d] user: the Parrot is called Polly\n", first),
		"[3] assistant: polly, a parrot\n", `[3] assistant calls grep: {"pattern":"parrot polly"}`, "[4] result of grep: zoo.txt: a parrot, Polly\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("it says\n%s\nwant %q", got, want)
		}
	}
	if strings.Contains(got, "something else") {
		t.Errorf("it says\n%s", got)
	}
	if got := d.ask(`{"query":"walrus"}`); !strings.Contains(got, "Nothing was found in this session.") {
		t.Errorf("it says %q", got)
	}
}

// A question need not have the words of its answer, and not all of them.
func TestNaturalQuestionsFindTheirAnswer(t *testing.T) {
	d := newFixture(t)
	answer := d.said("The staging database listens on port 5433.")
	for i := range 50 {
		d.said(fmt.Sprintf("Which of the tests use the database number %d?", i))
	}
	if got := d.ask(`{"query":"what port did I say the staging database uses?"}`); !strings.Contains(got, fmt.Sprintf("[%d] user: The staging database listens on port 5433.\n", answer)) {
		t.Errorf("it says\n%s", got)
	}
}

func TestUndoneMessagesAreNotFound(t *testing.T) {
	d := newFixture(t)
	d.said("a parrot")
	gone := d.said("a parrot that was taken back")
	d.record(event.HistoryHiddenData{From: gone, To: gone})
	for _, how := range []string{`{"query":"parrot"}`, `{"event":1}`} {
		if got := d.ask(how); !strings.Contains(got, "[1] user: a parrot\n") || strings.Contains(got, "taken back") {
			t.Errorf("%s says\n%s", how, got)
		}
	}
}

func TestASearchDoesNotFindItself(t *testing.T) {
	d := newFixture(t)
	d.record(event.AssistantMessageData{ToolRequests: []event.ToolRequest{{ToolCallID: "c", Name: "memory_search", Arguments: json.RawMessage(`{"query":"parrot"}`)}}})
	d.record(event.ToolCompleteData{ToolCallID: "c", Success: true, Result: &event.ToolResult{Content: "no parrot"}})
	if got := d.ask(`{"query":"parrot"}`); !strings.Contains(got, "Nothing was found in this session.") {
		t.Errorf("it says\n%s", got)
	}
}

func TestPagesAreSearched(t *testing.T) {
	d := newFixture(t)
	d.said("hello")
	b := d.books.For("", "")
	if _, err := b.Write("animals", "---\ntitle: Animals\n---\n\n- The parrot is called Polly. [old#3]\n", ""); err != nil {
		t.Fatal(err)
	}
	if got := d.ask(`{"query":"polly"}`); !strings.Contains(got, "In memory:\n"+b.Path("animals")+":5: - The parrot is called Polly. [old#3]\n") {
		t.Errorf("it says\n%s", got)
	}
}

func TestResultsAreLimitedAndSayHowToContinue(t *testing.T) {
	d := newFixture(t)
	for i := range 100 {
		d.said(fmt.Sprintf("number %d %s needle", i, strings.Repeat("x", 3000)))
	}
	got := d.ask(`{"query":"needle"}`)
	if len(got) > 20_000 || !strings.Contains(got, "80 matches that fit less are not shown") || !strings.Contains(got, "[100] user: ") {
		t.Errorf("%d bytes: %.300s", len(got), got)
	}
	read := d.ask(`{"event":7}`)
	if len(read) > 20_000 || !strings.HasPrefix(read, "[7] user: number 6") || !strings.HasSuffix(read, "There is more: read on from event 11.") {
		t.Errorf("%d bytes: %.60s … %s", len(read), read, read[len(read)-60:])
	}
	if got := d.ask(`{"event":101}`); got != "Nothing was said in this session from event 101 on." {
		t.Errorf("it says %q", got)
	}
}

func TestACallWithoutAQueryIsRefused(t *testing.T) {
	d := newFixture(t)
	for _, arguments := range []string{`{}`, `{"query":" "}`, `{"event":0}`, `{"event":"x"}`} {
		_, err := d.tool.Permission(t.Context(), tool.Call{Session: "s", Arguments: json.RawMessage(arguments)})
		var refused *tool.Refusal
		if !errors.As(err, &refused) {
			t.Errorf("%s: err = %v, want a refusal", arguments, err)
		}
	}
}
