package session_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/session"
)

// store puts a session into a store as its index would describe it.
func storeSession(t *testing.T, s eventlog.Store, id event.SessionID, info eventlog.Info) {
	t.Helper()
	info.Listed = true
	e, err := event.Encode(event.Head{ID: event.NewID(), Time: time.Now()}, event.SessionInfoData{Message: "x"})
	if err == nil {
		_, err = s.Append(t.Context(), id, eventlog.Batch{Events: []event.Event{e}, Info: &info})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestOldSessionsExpire checks what a retention deletes: only what is old, and nothing
// that somebody may still need.
func TestOldSessionsExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := eventlog.NewMemory()
		kept := map[event.SessionID]string{
			"unfinished": "it is unfinished", "waiting": "it waits for an answer", "running": "a command of it is running",
			"damaged": "it is damaged", "named": "it has a name", "excluded": "it is excluded",
		}
		for id, info := range map[event.SessionID]eventlog.Info{
			"old": {}, "excluded": {}, "damaged": {}, "unfinished": {Active: true}, "waiting": {Active: true, Waiting: true, Questions: 1},
			"running": {Tasks: 1}, "named": {Name: "mine"},
		} {
			storeSession(t, store, id, info)
		}
		if err := store.Quarantine(t.Context(), "damaged", &eventlog.Damage{Seq: 1, Reason: "a test"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(91 * 24 * time.Hour)
		storeSession(t, store, "new", eventlog.Info{})
		h := session.New(store, session.Options{})
		defer h.Close()
		r := session.Age{Before: time.Now().Add(-90 * 24 * time.Hour), Except: []event.SessionID{"excluded"}}
		found := 0
		for v, err := range h.Retention.Old(t.Context(), r) {
			if found++; err != nil || v.Keep != kept[v.Session.ID] {
				t.Errorf("%s is kept because %q, %v; want %q", v.Session.ID, v.Keep, err, kept[v.Session.ID])
			}
		}
		if found != len(kept)+1 {
			t.Errorf("%d sessions are old, want %d", found, len(kept)+1)
		}
		if n, err := h.Retention.Expire(t.Context(), r); n != 1 || err != nil {
			t.Errorf("%d sessions were deleted, %v; want 1", n, err)
		}
		for s, err := range store.Sessions(t.Context(), eventlog.Query{}) {
			if err != nil || s.ID == "old" {
				t.Errorf("session %s is left, %v", s.ID, err)
			}
			delete(kept, s.ID)
		}
		if len(kept) > 0 {
			t.Errorf("%v were deleted", kept)
		}
	})
}

// TestASessionThatIsUsedMeanwhileIsKept uses a session between the verdict and the
// deletion.
func TestASessionThatIsUsedMeanwhileIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := eventlog.NewMemory()
		h := session.New(store, session.Options{})
		defer h.Close()
		before := time.Now().Add(time.Hour)
		time.Sleep(2 * time.Hour)
		storeSession(t, store, "s", eventlog.Info{})
		keep, err := h.Retention.Delete(t.Context(), "s", session.Age{Before: before})
		if err != nil || keep != "it was used meanwhile" {
			t.Errorf("kept because %q, %v", keep, err)
		}
		if _, err := store.Session(t.Context(), "s"); err != nil {
			t.Error(err)
		}
	})
}
