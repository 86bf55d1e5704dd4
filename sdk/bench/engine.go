package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/daemon/folder"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog/sqlite"
	"github.com/abide-run/abide/internal/model/openai"
	"github.com/abide-run/abide/internal/model/provider"
	"github.com/abide-run/abide/internal/project/instructions"
	host "github.com/abide-run/abide/internal/session"
	"github.com/abide-run/abide/internal/tool/builtin"
	"github.com/abide-run/abide/internal/turn"
	"github.com/abide-run/abide/internal/workspace"
	"github.com/abide-run/abide/internal/workspace/local"
)

// An engine is abide in this process, without a protocol. It does for a turn what
// that of the program does.
type engine struct {
	path   string // path of its store
	config event.SessionConfiguredData
	opts   host.Options
	n      atomic.Int64
	tally

	store *sqlite.Store
	host  *host.Host
}

func newEngine(dir, url string) (*engine, error) {
	files := local.New(dir, nil).Files
	client := openai.New(openai.Config{BaseURL: url, APIKey: "bench"})
	e := &engine{path: filepath.Join(dir, "engine.db")}
	e.opts = host.Options{
		ToolsOf:      func(h *host.Host) turn.Catalog { return builtin.New(h.Skills, h.Agents) },
		Files:        func(event.SessionID) (workspace.Files, error) { return files, nil },
		OnDisk:       folder.OnDisk,
		Instructions: instructions.Rules{}.Read,
		Folder:       func(id event.SessionID) string { return filepath.Join(dir, string(id)) },
		Resolve: func(context.Context, provider.Choice) (host.Endpoint, error) {
			return host.Endpoint{Model: client, Name: "instant"}, nil
		},
	}
	here, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	e.config = event.SessionConfiguredData{Model: "instant", WorkingDirectory: here, AvailableTools: []string{}}
	if e.config.SystemMessage, err = json.Marshal(brief); err != nil {
		return nil, err
	}
	if e.config.Provider, err = json.Marshal(api.Provider{BaseURL: url}); err != nil {
		return nil, err
	}
	return e, e.start()
}

func (e *engine) start() (err error) {
	if e.store, err = sqlite.Open(context.Background(), e.path, sqlite.Options{}); err == nil {
		e.host = host.New(e.store, e.opts)
	}
	return err
}

func (e *engine) restart() error {
	e.close()
	return e.start()
}

func (e *engine) close() {
	e.host.Close()
	e.store.Close()
}

func (e *engine) open(stream bool) (session, error) {
	s := &engineSession{engine: e, id: event.SessionID(fmt.Sprintf("bench-%d", e.n.Add(1))), follower: newFollower()}
	s.client = &host.Client{Viewer: s, Streaming: stream}
	spec := host.Spec{Config: e.config, Env: os.Environ(), Keys: secret}
	spec.Config.Streaming = stream
	view, err := e.host.Create(context.Background(), s.id, spec, s.client)
	return s, s.shown(view, err)
}

// secret is the key of the provider, which the engine has to keep as it keeps that
// of a program.
var secret = &provider.Keys{Own: &provider.Secret{APIKey: "bench"}}

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
	var d event.MessageDeltaData
	switch e.Type {
	case event.MessageDelta:
		d, _ = event.As[event.MessageDeltaData](e) // it was made here
	case event.SessionError:
		s.fail(fmt.Errorf("%s", e.Bytes))
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
	view, err := s.host.Resume(context.Background(), s.id, host.Resume{Spec: host.Spec{Config: s.config, Keys: secret}}, s.client)
	return s.shown(view, err)
}
