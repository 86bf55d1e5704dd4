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
	"github.com/abide-run/abide/internal/eventlog/sqlite"
	"github.com/abide-run/abide/internal/memory/book"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/tool/recall"
)

// A fixture is the tool and a log.
type fixture struct {
	*testing.T
	log   eventlog.Store
	end   eventlog.End
	books *book.Set
	tool  *recall.Search
}

// inEachStore runs a test with a store that has an index of sessions, and with one that has to
// read them.
func inEachStore(t *testing.T, test func(d *fixture)) {
	for name, open := range map[string]func() (eventlog.Store, error){
		"read": func() (eventlog.Store, error) { return eventlog.NewMemory(), nil },
		"indexed": func() (eventlog.Store, error) {
			return sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "log.db"), sqlite.Options{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			log, err := open()
			if err != nil {
				t.Fatal(err)
			}
			defer log.Close()
			d := &fixture{T: t, log: log, books: book.NewSet(filepath.Join(t.TempDir(), "memory"))}
			d.tool = recall.New(d.log, d.books)
			test(d)
		})
	}
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
	inEachStore(t, func(d *fixture) {
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
				d.Errorf("it says\n%s\nwant %q", got, want)
			}
		}
		if strings.Contains(got, "something else") {
			d.Errorf("it says\n%s", got)
		}
		if got := d.ask(`{"query":"walrus"}`); !strings.Contains(got, "Nothing was found in this session.") {
			d.Errorf("it says %q", got)
		}
	})
}

// A question need not have the words of its answer, and not all of them.
func TestNaturalQuestionsFindTheirAnswer(t *testing.T) {
	inEachStore(t, func(d *fixture) {
		answer := d.said("The staging database listens on port 5433.")
		for i := range 50 {
			d.said(fmt.Sprintf("Which of the tests use the database number %d?", i))
		}
		if got := d.ask(`{"query":"what port did I say the staging database uses?"}`); !strings.Contains(got, fmt.Sprintf("[%d] user: The staging database listens on port 5433.\n", answer)) {
			d.Errorf("it says\n%s", got)
		}
	})
}

func TestUndoneMessagesAreNotFound(t *testing.T) {
	inEachStore(t, func(d *fixture) {
		d.said("a parrot")
		gone := d.said("a parrot that was taken back")
		d.record(event.HistoryHiddenData{From: gone, To: gone})
		for _, how := range []string{`{"query":"parrot"}`, `{"event":1}`} {
			if got := d.ask(how); !strings.Contains(got, "[1] user: a parrot\n") || strings.Contains(got, "taken back") {
				d.Errorf("%s says\n%s", how, got)
			}
		}
	})
}

func TestASearchDoesNotFindItself(t *testing.T) {
	inEachStore(t, func(d *fixture) {
		d.record(event.AssistantMessageData{ToolRequests: []event.ToolRequest{{ToolCallID: "c", Name: "memory_search", Arguments: json.RawMessage(`{"query":"parrot"}`)}}})
		d.record(event.ToolCompleteData{ToolCallID: "c", Success: true, Result: &event.ToolResult{Content: "no parrot"}})
		if got := d.ask(`{"query":"parrot"}`); !strings.Contains(got, "Nothing was found in this session.") {
			d.Errorf("it says\n%s", got)
		}
	})
}

func TestPagesAreSearched(t *testing.T) {
	inEachStore(t, func(d *fixture) {
		d.said("hello")
		b := d.books.For("", "")
		if _, err := b.Write("animals", "---\ntitle: Animals\n---\n\n- The parrot is called Polly. [old#3]\n", ""); err != nil {
			d.Fatal(err)
		}
		if got := d.ask(`{"query":"polly"}`); !strings.Contains(got, "In memory:\n"+b.Path("animals")+":5: - The parrot is called Polly. [old#3]\n") {
			d.Errorf("it says\n%s", got)
		}
	})
}

func TestResultsAreLimitedAndSayHowToContinue(t *testing.T) {
	inEachStore(t, func(d *fixture) {
		for i := range 100 {
			d.said(fmt.Sprintf("number %d %s needle", i, strings.Repeat("x", 3000)))
		}
		got := d.ask(`{"query":"needle"}`)
		if len(got) > 20_000 || !strings.Contains(got, "80 matches that fit less are not shown") || !strings.Contains(got, "[100] user: ") {
			d.Errorf("%d bytes: %.300s", len(got), got)
		}
		read := d.ask(`{"event":7}`)
		if len(read) > 20_000 || !strings.HasPrefix(read, "[7] user: number 6") || !strings.HasSuffix(read, "There is more: read on from event 11.") {
			d.Errorf("%d bytes: %.60s … %s", len(read), read, read[len(read)-60:])
		}
		if got := d.ask(`{"event":101}`); got != "Nothing was said in this session from event 101 on." {
			d.Errorf("it says %q", got)
		}
	})
}

func TestACallWithoutAQueryIsRefused(t *testing.T) {
	inEachStore(t, func(d *fixture) {
		for _, arguments := range []string{`{}`, `{"query":" "}`, `{"event":0}`, `{"event":"x"}`} {
			_, err := d.tool.Permission(d.Context(), tool.Call{Session: "s", Arguments: json.RawMessage(arguments)})
			var refused *tool.Refusal
			if !errors.As(err, &refused) {
				d.Errorf("%s: err = %v, want a refusal", arguments, err)
			}
		}
	})
}

// The forms of a word are one, in results of tools as in messages, however many events are
// between an answer and a question.
func TestAnAnswerIsFoundAmongManyEvents(t *testing.T) {
	inEachStore(t, func(d *fixture) {
		d.record(event.AssistantMessageData{ToolRequests: []event.ToolRequest{{ToolCallID: "c", Name: "bash", Arguments: json.RawMessage(`{"command":"ss -l"}`)}}})
		for i := range 40 { // the result of a slow command comes late
			d.record(event.SystemNotificationData{Content: fmt.Sprintf("agent %d has ended", i)})
		}
		d.record(event.ToolCompleteData{ToolCallID: "c", Success: true, Result: &event.ToolResult{Content: "Häuser im Hafen: lauscht auf 5433"}})
		for i := range 300 {
			d.said(fmt.Sprintf("And the harbour of town %d, has it houses?", i))
		}
		if index, ok := d.log.(eventlog.Finder); ok {
			if at, ok := index.Find(d.Context(), "s", []string{"5433"}, 10); !ok || len(at) != 1 {
				d.Errorf("the index has the answer at %d, %v", at, ok)
			}
		}
		got := d.ask(`{"query":"Welches Haus ist am Hafen?"}`)
		if !strings.Contains(got, "[42] result of bash: Häuser im Hafen: lauscht auf 5433\n") || strings.Contains(got, "harbour") {
			d.Errorf("it says\n%s", got)
		}
		got = d.ask(`{"query":"which towns have a harbour?"}`)
		if strings.Count(got, "\n[") != 20 || !strings.Contains(got, "town 299,") {
			d.Errorf("it says\n%s", got)
		}
	})
}
