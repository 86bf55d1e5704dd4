package sqlite

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/memory/rank"
)

// findsAt checks which events of a session are found.
func findsAt(t *testing.T, s *Store, id event.SessionID, question string, most int, want ...event.Seq) {
	t.Helper()
	if at, ok := s.Find(t.Context(), id, rank.Terms(question), most); !ok || !slices.Equal(at, want) {
		t.Errorf("%q is found in %s at %d (%v), want %d", question, id, at, ok, want)
	}
}

// do appends events to a session.
func do(t *testing.T, s *Store, id event.SessionID, what ...event.Payload) {
	t.Helper()
	var b eventlog.Batch
	if was, err := s.Session(t.Context(), id); err == nil {
		b.After = was.End
	}
	for _, p := range what {
		e, err := event.Encode(event.Head{ID: event.NewID(), Time: time.Unix(0, 0)}, p)
		if err != nil {
			t.Fatal(err)
		}
		b.Events = append(b.Events, e)
	}
	if _, err := s.Append(t.Context(), id, b); err != nil {
		t.Fatal(err)
	}
}

func TestEventsOfASessionAreFoundByStems(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.db")
	s := open(t, path)
	do(t, s, "a",
		event.UserMessageData{Content: "The servers listen on port 5433."},
		event.AssistantMessageData{Content: "I look.", ToolRequests: []event.ToolRequest{{ToolCallID: "c", Name: "bash", Arguments: []byte(`{"command":"netstat"}`)}}},
		event.ToolCompleteData{ToolCallID: "c", Result: &event.ToolResult{Content: "Häuser: 日志保存, port 80"}},
		event.SystemNotificationData{Content: "The servers have ended."},
		event.ToolCompleteData{ToolCallID: "d", Error: &event.ToolError{Message: "no netstat here"}},
		event.SessionInfoData{Message: "a port that nobody said"},
	)
	do(t, s, "b", event.UserMessageData{Content: "Another port."})
	for range 2 { // the second time, nothing has to be taken in
		findsAt(t, s, "a", "Which server is it?", 10, 1, 4)
		findsAt(t, s, "a", "netstat", 10, 2, 5)
		findsAt(t, s, "a", "haus", 10, 3)
		findsAt(t, s, "a", "日志", 10, 3)
		findsAt(t, s, "a", "port servers", 1, 1) // it has both
		findsAt(t, s, "a", "port", 1, 3)         // of two, the newer
		findsAt(t, s, "a", "walrus", 10)
		findsAt(t, s, "b", "port", 10, 1)
	}
	if at, ok := s.Find(t.Context(), "c", []string{"port"}, 10); ok {
		t.Errorf("a session that does not exist has %d", at)
	}
	do(t, s, "a", event.UserMessageData{Content: "A new port."}, event.HistoryHiddenData{From: 3, To: 4})
	findsAt(t, s, "a", "port server", 10, 1, 7)
	if err := s.Delete(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(dump(t, filepath.Dir(path)), []byte("netstat")) {
		t.Error("a deleted result is left in the files")
	}
}

// An index of an earlier version has no stems, and is made again.
func TestAnIndexOfAnEarlierVersionIsMadeAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.db")
	s := open(t, path)
	speak(t, s, "a", "an apple")
	finds(t, s, "apple", "a")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	tamper(t, path+"-search", "DROP TABLE terms; PRAGMA user_version = 1")
	s = open(t, path)
	findsAt(t, s, "a", "apples", 10, 1)
	finds(t, s, "apple", "a")
}

// A session that is too long to be taken in at once is not found in part.
func TestASessionIsTakenInBeforeTheOthers(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "log.db"))
	for i := range 3 * partSessions {
		speak(t, s, event.SessionID(fmt.Sprint("other", i)), "an apple")
	}
	speak(t, s, "a", "a pear")
	findsAt(t, s, "a", "pears", 10, 1)
	s.search.mu.Lock()
	left := len(s.search.stale)
	s.search.mu.Unlock()
	if left == 0 {
		t.Error("all sessions were taken in for one of them")
	}
}
