package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/abide-run/abide/bench/compare"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/eventlog/sqlite"
	"github.com/abide-run/abide/internal/memory/book"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/tool/recall"
)

// The parameters of the measurement of memory_search in one very long session.
const (
	millionName   = "find: memory_search in a session of 1,000,000 events"
	millionEvents = 1_000_000
	millionBatch  = 20 // events of one append
	millionTimes  = 5  // times that each question is asked
)

// A millionQuestion is a question to a long session.
type millionQuestion struct{ name, text string }

// The questions: one about what only one event has, one about what a thousand have, and one
// whose words are everywhere.
var millionQuestions = []millionQuestion{
	{"a fact that was said once", "Which port does the staging database use?"},
	{"a word of 1,000 events", "What about milestone?"},
	{"words of most events", "Which lines did the build print?"},
}

// measureMillion fills a session and asks memory_search, with the index of the store and without.
func measureMillion(at place, only string) error {
	if only == "" || !strings.Contains(millionName, only) {
		return nil // it takes minutes, so it has to be asked for
	}
	dir, err := os.MkdirTemp(at.dir, "million")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	store, err := sqlite.Open(ctx, filepath.Join(dir, "log.db"), sqlite.Options{Sync: eventlog.Normal})
	if err != nil {
		return err
	}
	began := time.Now()
	err = fillMillion(ctx, store, millionEvents)
	filled := time.Since(began)
	if err == nil {
		began = time.Now()
		err = awaitIndex(ctx, store)
	}
	if err == nil {
		fmt.Printf("\n%s; %d events were written in %.0f s, and taken into the index in %.0f s, which is otherwise done in the background\n", millionName, millionEvents, filled.Seconds(), time.Since(began).Seconds())
		err = askMillion(ctx, store, dir)
	}
	return errors.Join(err, store.Close())
}

// fillMillion writes the events of a long session: turns of a message, a call, its result and an
// answer.
func fillMillion(ctx context.Context, store eventlog.Store, events int) error {
	var end eventlog.End
	for n := 0; n < events; {
		b := eventlog.Batch{After: end}
		for range min(millionBatch, events-n) {
			e, err := event.Encode(event.Head{ID: event.NewID(), Time: time.Now()}, millionEvent(n))
			if err != nil {
				return err
			}
			b.Events = append(b.Events, e)
			n++
		}
		var err error
		if end, err = store.Append(ctx, "s", b); err != nil {
			return err
		}
	}
	return nil
}

func millionEvent(n int) event.Payload {
	call := fmt.Sprint("call", n/4)
	switch {
	case n == 1000:
		return event.UserMessageData{Content: "By the way: the staging database listens on port 5433."}
	case n%1000 == 4:
		return event.UserMessageData{Content: fmt.Sprintf("Milestone %d is reached, go on.", n/1000)}
	case n%4 == 0:
		return event.UserMessageData{Content: fmt.Sprintf("Go on with part %d of the build.", n/4)}
	case n%4 == 1:
		return event.AssistantMessageData{Content: "I build it.", ToolRequests: []event.ToolRequest{{ToolCallID: call, Name: "bash", Arguments: json.RawMessage(fmt.Sprintf(`{"command":"make part%d"}`, n/4))}}}
	case n%4 == 2:
		return event.ToolCompleteData{ToolCallID: call, Success: true, Result: &event.ToolResult{Content: strings.Repeat(fmt.Sprintf("the build printed line %d of part %d\n", n%77, n/4), 8)}}
	}
	return event.AssistantMessageData{Content: fmt.Sprintf("Part %d is built, and its tests are green.", n/4)}
}

// awaitIndex has the store take all events into its index.
func awaitIndex(ctx context.Context, store *sqlite.Store) error {
	for {
		found, err := store.Search(ctx, eventlog.Search{Text: "staging", Patience: time.Second})
		if err != nil || found.Behind == 0 {
			return err
		}
	}
}

// A plainLog hides the index of a store.
type plainLog struct{ eventlog.Log }

func askMillion(ctx context.Context, store *sqlite.Store, dir string) error {
	books := book.NewSet(filepath.Join(dir, "memory"))
	t := compare.NewTable(os.Stdout, "question", "with the index ms", "by reading the log ms")
	for i, q := range millionQuestions {
		indexed, text, err := askOften(ctx, recall.New(store, books), q.text, millionTimes)
		if err != nil {
			return err
		}
		if i > 0 { // reading takes as long for every question
			t.Row(q.name, fmt.Sprintf("%.1f", indexed.Seconds()*1000), "")
			continue
		}
		if !strings.Contains(text, "port 5433") {
			return fmt.Errorf("%q finds %q", q.text, text)
		}
		read, _, err := askOften(ctx, recall.New(plainLog{store}, books), q.text, 1)
		if err != nil {
			return err
		}
		t.Row(q.name, fmt.Sprintf("%.1f", indexed.Seconds()*1000), fmt.Sprintf("%.0f", read.Seconds()*1000))
	}
	t.Print()
	return nil
}

// askOften asks a question several times, and returns the middle of the times and the answer.
func askOften(ctx context.Context, search *recall.Search, question string, times int) (time.Duration, string, error) {
	arguments, err := json.Marshal(map[string]string{"query": question})
	if err != nil {
		return 0, "", err
	}
	var took []time.Duration
	var text string
	for range times {
		began := time.Now()
		r, err := search.Run(ctx, tool.Call{Session: "s", Arguments: arguments})
		if err != nil {
			return 0, "", err
		}
		took, text = append(took, time.Since(began)), r.Text
	}
	slices.Sort(took)
	return took[len(took)/2], text, nil
}
