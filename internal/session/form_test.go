package session_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/eventlog/sqlite"
	"github.com/abide-run/abide/internal/session"
	"github.com/abide-run/abide/internal/session/sessiontest"
	"github.com/abide-run/abide/internal/turn"
)

// What a person types as a secret reaches the program that asked, also after a restart, and
// is neither in the log nor in the files of the store.
func TestASecretInAFormIsNotInTheLog(t *testing.T) {
	dir := t.TempDir()
	store, err := sqlite.Open(t.Context(), filepath.Join(dir, "abide.db"), sqlite.Options{Sync: eventlog.Normal})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	b := sessiontest.On(t, store, session.Options{})
	b.Start()
	v := b.Create("s", &session.Client{Forms: true})
	form := event.ElicitationAskedData{Message: "Who?", Key: "k", Schema: []byte(`{"type":"object","properties":{"name":{"type":"string"},"password":{"type":"string","format":"password"}}}`)}
	keep := func() bool { return true }
	lost, leave := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { _, err := b.Host.Questions.Elicit(lost, "s", form, keep); over <- err }()
	e, _ := v.Await(t, 0, event.ElicitationAsked)
	d, _ := event.As[event.ElicitationAskedData](e)
	leave()
	<-over
	const typed = `{"name":"Mona","password":"typed-4711"}`
	if won, err := b.Host.Questions.FillIn(t.Context(), "s", d.RequestID, "a", turn.Filled{Action: turn.Accept, Content: json.RawMessage(typed)}); !won || err != nil {
		t.Fatal(won, err)
	}
	for range 2 {
		filled, err := b.Host.Questions.Elicit(t.Context(), "s", form, keep)
		if err != nil || string(filled.Content) != typed {
			t.Errorf("filled %+v, %v", filled, err)
		}
		b.Restart()
	}
	for e, err := range store.Read(t.Context(), "s", 0) {
		if err != nil || bytes.Contains(e.Bytes, []byte("4711")) {
			t.Errorf("event %s, %v", e.Bytes, err)
		}
		if done, err := event.As[event.ElicitationDoneData](e); e.Type == event.ElicitationDone && (err != nil || string(done.Content) != `{"name":"Mona","password":"(removed)"}`) {
			t.Errorf("the log has %s, %v", done.Content, err)
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) < 3 {
		t.Fatal(files, err)
	}
	for _, path := range files {
		if text, err := os.ReadFile(path); err != nil || bytes.Contains(text, []byte("4711")) {
			t.Errorf("%s holds what was typed: %v", path, err)
		}
	}
}
