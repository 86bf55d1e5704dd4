package session_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog/sqlite"
	"github.com/abide-run/abide/internal/model/offline"
	"github.com/abide-run/abide/internal/model/provider"
	"github.com/abide-run/abide/internal/session"
)

// idleViewer tells when a session is idle.
type idleViewer chan struct{}

func (c idleViewer) Event(_ event.SessionID, e event.Event) bool {
	if e.Type == event.SessionIdle {
		c <- struct{}{}
	}
	return true
}

func BenchmarkPlainTurn(b *testing.B) {
	store, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "abide.db"), sqlite.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	host := session.New(store, session.Options{
		Resolve: func(context.Context, provider.Choice) (session.Endpoint, error) {
			return session.Endpoint{Model: offline.Model{}, Name: offline.Name}, nil
		},
	})
	defer host.Close()
	idle := make(idleViewer, 1)
	view, err := host.Create(b.Context(), "s", session.Spec{}, &session.Client{Viewer: idle})
	if err != nil {
		b.Fatal(err)
	}
	if err := view.CatchUp(b.Context()); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := host.Send(b.Context(), "s", event.InputAcceptedData{Prompt: "Reply with exactly: a short answer of some words that a model could give"}); err != nil {
			b.Fatal(err)
		}
		<-idle
	}
}
