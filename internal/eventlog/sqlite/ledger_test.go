package sqlite

import (
	"bytes"
	"errors"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
)

// toVersion6 makes a store one of version 6, which has no sums of costs.
const toVersion6 = "DROP TABLE moved; DROP TABLE costs; DROP TABLE uncounted; PRAGMA user_version = 6;"

// counted returns events of requests, each of which has the given number of tokens.
func counted(t *testing.T, input ...int64) (events []event.Event) {
	t.Helper()
	for _, n := range input {
		e, err := event.Encode(event.Head{ID: event.NewID(), Time: time.Now()}, event.AssistantUsageData{Model: "m", InputTokens: n, OutputTokens: 1})
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
	return events
}

// ask appends requests to a session.
func ask(t *testing.T, s *Store, id event.SessionID, after eventlog.End, input ...int64) eventlog.End {
	t.Helper()
	end, err := s.Append(t.Context(), id, eventlog.Batch{After: after, Events: counted(t, input...)})
	if err != nil {
		t.Fatal(err)
	}
	return end
}

// checkInput checks the tokens that the sums have, by session.
func checkInput(t *testing.T, s *Store, want map[event.SessionID]int64) {
	t.Helper()
	costs, err := s.Costs(t.Context(), eventlog.CostQuery{BySession: true})
	got := make(map[event.SessionID]int64)
	for _, c := range costs {
		got[c.Session] = c.Input
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("the sums are %v, %v; want %v", got, err, want)
	}
}

// countAll counts the sessions that are not counted, as the host does.
func countAll(t *testing.T, s *Store) (ids []event.SessionID) {
	t.Helper()
	ids, err := s.Uncounted(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		index, err := s.Session(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		var own []event.Event
		for e, err := range s.Read(t.Context(), id, index.Shared) {
			if err != nil {
				t.Fatal(err)
			}
			own = append(own, e)
		}
		if err := s.Recount(t.Context(), id, index.End, own); err != nil {
			t.Fatal(err)
		}
	}
	return ids
}

// A store of version 6 has sessions and no sums. Each session is counted once, also if it
// goes on before somebody asks.
func TestTheSessionsOfAnOlderStoreAreCountedOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "abide.db")
	s := open(t, path)
	end := ask(t, s, "a", eventlog.End{}, 1, 2)
	if _, err := s.Fork(t.Context(), "fork", "a", eventlog.Batch{After: end, Events: counted(t, 4)}); err != nil {
		t.Fatal(err)
	}
	ask(t, s, "gone", eventlog.End{}, 8)
	if err := s.Delete(t.Context(), "gone"); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	tamper(t, path, toVersion6)

	s = open(t, path)
	checkInput(t, s, map[event.SessionID]int64{})
	end = ask(t, s, "a", end, 16)
	ask(t, s, "new", eventlog.End{}, 32)
	if ids := countAll(t, s); !slices.Equal(ids, []event.SessionID{"a", "fork"}) {
		t.Errorf("the sessions %q were not counted", ids)
	}
	want := map[event.SessionID]int64{"a": 19, "fork": 4, "new": 32}
	checkInput(t, s, want)
	if ids := countAll(t, s); len(ids) > 0 {
		t.Errorf("the sessions %q are counted again", ids)
	}
	ask(t, s, "a", end, 64)
	want["a"] += 64
	checkInput(t, s, want)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, path)
	if ids := countAll(t, s); len(ids) > 0 {
		t.Errorf("the sessions %q are counted again by the next engine", ids)
	}
	checkInput(t, s, want)
}

// A damaged page of the sums costs no event, and no token: what it had is counted again.
func TestABrokenPageOfTheSumsCostsNothing(t *testing.T) {
	for _, table := range []string{"costs", "costs_root", "costs_day"} {
		for name, harm := range map[string]func(page []byte){
			"head":  func(page []byte) { copy(page, bytes.Repeat([]byte{0xff}, 16)) },
			"zeros": func(page []byte) { clear(page) },
		} {
			t.Run(table+"/"+name, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "abide.db")
				s := open(t, path)
				end := ask(t, s, "a", eventlog.End{}, 1, 2)
				ask(t, s, "b", eventlog.End{}, 4)
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				overwriteRoot(t, path, table, harm)
				s = open(t, path)
				ask(t, s, "a", end, 8)
				ask(t, s, "c", eventlog.End{}, 16)
				if err := s.Delete(t.Context(), "c"); err != nil {
					t.Fatal(err)
				}
				n := 0
				for _, err := range s.Read(t.Context(), "a", 0) {
					if n++; err != nil {
						t.Fatal(err)
					}
				}
				if n != 3 {
					t.Errorf("%d events of a are left", n)
				}
				countAll(t, s)
				checkInput(t, s, map[event.SessionID]int64{"": 16, "a": 11, "b": 4})
			})
		}
	}
}

// Whoever asks for the sums first is told that they have to be counted again.
func TestABrokenPageOfTheSumsIsNoticedByReading(t *testing.T) {
	path := filepath.Join(t.TempDir(), "abide.db")
	s := open(t, path)
	ask(t, s, "a", eventlog.End{}, 1, 2)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	overwriteRoot(t, path, "costs", func(page []byte) { clear(page) })
	s = open(t, path)
	if _, err := s.Costs(t.Context(), eventlog.CostQuery{}); !errors.Is(err, eventlog.ErrUncounted) {
		t.Errorf("the sums are read with %v, want %v", err, eventlog.ErrUncounted)
	}
	if ids := countAll(t, s); !slices.Equal(ids, []event.SessionID{"a"}) {
		t.Errorf("the sessions %q have to be counted", ids)
	}
	checkInput(t, s, map[event.SessionID]int64{"a": 3})
}

// The sums are in the transaction of the append: a kill between two would lose or double them.
func TestAnAppendAndItsSumsAreOneTransaction(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "abide.db"))
	before := s.commits.Load()
	end := ask(t, s, "a", eventlog.End{}, 1, 2)
	ask(t, s, "a", end, 4)
	if n := s.commits.Load() - before; n != 2 {
		t.Errorf("two appends made %d transactions", n)
	}
	checkInput(t, s, map[event.SessionID]int64{"a": 7})
}
