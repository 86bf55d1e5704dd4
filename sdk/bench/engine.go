package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/model/openai"
	host "github.com/abide-run/abide/internal/session"
	"github.com/abide-run/abide/internal/sqlite"
)

// An engine is abide in this process, without a protocol.
type engine struct {
	store *sqlite.Store
	opts  host.Options
	host  *host.Host
	n     atomic.Int64
}

func newEngine(dir, url string) (*engine, error) {
	store, err := sqlite.Open(context.Background(), filepath.Join(dir, "engine.db"), sqlite.Options{})
	if err != nil {
		return nil, err
	}
	client := openai.New(openai.Config{BaseURL: url, APIKey: "bench"})
	e := &engine{store: store}
	e.opts.Resolve = func(context.Context, event.SessionConfiguredData, string, []byte) (host.Endpoint, error) {
		return host.Endpoint{Model: client, Name: "instant"}, nil
	}
	e.host = host.New(store, e.opts)
	return e, nil
}

func (e *engine) restart() error {
	e.host.Close()
	e.host = host.New(e.store, e.opts)
	return nil
}

func (e *engine) close() {
	e.host.Close()
	e.store.Close()
}

func (e *engine) open(stream bool) (session, error) {
	s := &engineSession{engine: e, id: event.SessionID(fmt.Sprintf("bench-%d", e.n.Add(1))), follower: newFollower()}
	s.client = &host.Client{Viewer: s, Streaming: stream}
	view, err := e.host.Create(context.Background(), s.id, host.Spec{Env: os.Environ(), Provider: secret}, s.client)
	return s, s.shown(view, err)
}

// secret is the key of the provider, which the engine has to keep as it keeps that
// of a program.
var secret = []byte(`{"apiKey":"bench"}`)

type engineSession struct {
	*engine
	*follower
	id     event.SessionID
	client *host.Client
}

// shown waits for the first event that the client is shown.
func (s *engineSession) shown(view *host.View, err error) error {
	if err == nil {
		err = view.CatchUp(context.Background())
	}
	if err == nil {
		<-s.first
	}
	return err
}

// Event takes what the engine shows.
func (s *engineSession) Event(_ event.SessionID, e event.Event) bool {
	var d struct{ DeltaContent string }
	switch e.Type {
	case event.MessageDelta:
		if err := e.Decode(&d); err != nil {
			return false
		}
	case event.SessionError:
		s.fail(fmt.Errorf("%s", json.RawMessage(e.Bytes)))
	}
	s.take(string(e.Type), d.DeltaContent)
	return true
}

func (s *engineSession) turn(prompt string) ([]string, error) {
	return s.follow(func() error {
		_, err := s.host.Send(context.Background(), s.id, event.InputAcceptedData{Prompt: prompt})
		return err
	})
}

func (s *engineSession) leave() error {
	s.host.Detach(s.id, s.client, false)
	return nil
}

func (s *engineSession) back() error {
	s.follower = newFollower()
	view, err := s.host.Resume(context.Background(), s.id, host.Resume{Spec: host.Spec{Provider: secret}}, s.client)
	return s.shown(view, err)
}
