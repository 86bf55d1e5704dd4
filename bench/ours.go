package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog/sqlite"
	"github.com/abide-run/abide/internal/model/openai"
	"github.com/abide-run/abide/internal/model/provider"
	"github.com/abide-run/abide/internal/process"
	engine "github.com/abide-run/abide/internal/session"
)

// An ours is our engine without the protocol: real sessions in a real store that syncs
// every append.
type ours struct {
	store *sqlite.Store
	opts  engine.Options
	full  map[int]event.SessionID // sessions to fork, by their number of turns
	n     atomic.Int64
}

func newOurs(at place) (contender, error) {
	o, err := openOurs(at)
	if err != nil {
		return contender{}, err
	}
	m, err := o.addCommands(at)
	if err != nil {
		return contender{}, err
	}
	return contender{name: "abide", open: o.open, shell: o.openShell, close: func() {
		_, _ = m.Close(), o.store.Close()
	}}, nil
}

// addCommands lets sessions run commands.
func (o *ours) addCommands(at place) (*process.Manager, error) {
	m, err := process.Open(filepath.Join(at.dir, "processes"), process.Options{Shell: shell()})
	if err != nil {
		return nil, err
	}
	c := commandsOf(m, at.dir)
	o.opts.Tools, o.opts.Tasks = c.Tools(), c
	return m, nil
}

// openShell creates a session that may run every command.
func (o *ours) openShell() (session, error) {
	return o.create(event.SessionConfiguredData{WorkingDirectory: os.TempDir(), Approve: approval.All})
}

func openOurs(at place) (*ours, error) {
	store, err := sqlite.Open(context.Background(), filepath.Join(at.dir, "abide.db"), sqlite.Options{})
	if err != nil {
		return nil, err
	}
	client := openai.New(openai.Config{BaseURL: at.url, APIKey: "bench"})
	o := &ours{store: store, full: make(map[int]event.SessionID)}
	o.opts.Resolve = func(context.Context, provider.Choice) (engine.Endpoint, error) {
		return engine.Endpoint{Model: client, Name: "instant"}, nil
	}
	return o, nil
}

// open creates a session. A long history is created once, turn by turn, and then forked.
func (o *ours) open(history int) (session, error) {
	if history == 0 {
		return o.create(toolless)
	}
	if o.full[history] == "" {
		if err := o.fill(history); err != nil {
			return nil, err
		}
	}
	id := o.name()
	host := engine.New(o.store, o.opts)
	defer host.Close()
	if _, err := host.Fork(context.Background(), id, o.full[history], 0, ""); err != nil {
		return nil, err
	}
	s := o.start(id)
	_, err := s.turn(prompt, true) // encodes the history, as in a session that was used before
	return s, err
}

func (o *ours) name() event.SessionID { return event.SessionID(fmt.Sprintf("bench-%d", o.n.Add(1))) }

func (o *ours) fill(history int) error {
	s, err := o.create(toolless)
	if err != nil {
		return err
	}
	for range history {
		if _, err := s.turn(prompt, true); err != nil {
			return err
		}
	}
	o.full[history] = s.id
	return s.close()
}

// toolless is the configuration of a session without tools, like those of the floor.
var toolless = event.SessionConfiguredData{AvailableTools: []string{}}

// create creates a session.
func (o *ours) create(config event.SessionConfiguredData) (*ourSession, error) {
	s := o.start(o.name())
	_, err := s.host.Create(context.Background(), s.id, engine.Spec{Config: config}, nil)
	return s, err
}

// start opens a session in a new host, so that closing it removes it from memory.
func (o *ours) start(id event.SessionID) *ourSession {
	return &ourSession{ours: o, id: id, host: engine.New(o.store, o.opts), idle: make(chan error, 1)}
}

// An ourSession is a session with a client that may ask for streamed answers.
type ourSession struct {
	ours   *ours
	id     event.SessionID
	host   *engine.Host
	client *engine.Client
	pieces int
	failed error
	idle   chan error
}

// Event implements session.Viewer. It counts pieces and reports the end of a turn.
func (s *ourSession) Event(_ event.SessionID, e event.Event) bool {
	switch e.Type {
	case event.MessageDelta:
		s.pieces++
	case event.SessionError:
		s.failed = fmt.Errorf("%s", e.Bytes)
	case event.ToolComplete:
		if done, err := event.As[event.ToolCompleteData](e); err != nil || !done.Success {
			s.failed = fmt.Errorf("%s, %v", e.Bytes, err)
		}
	case event.SessionIdle:
		s.idle <- s.failed
	}
	return true
}

func (s *ourSession) turn(prompt string, stream bool) (int, error) {
	ctx := context.Background()
	if err := s.attach(ctx, stream); err != nil {
		return 0, err
	}
	s.pieces = 0
	if _, err := s.host.Send(ctx, s.id, event.InputAcceptedData{Prompt: prompt}); err != nil {
		return 0, err
	}
	err := <-s.idle
	return s.pieces, err
}

// attach attaches the client so that answers are streamed or not.
func (s *ourSession) attach(ctx context.Context, stream bool) error {
	if s.client != nil && s.client.Streaming == stream {
		return nil
	}
	if s.client != nil {
		s.host.Detach(s.id, s.client, false)
	}
	st, err := s.host.Status(ctx, s.id)
	if err != nil {
		return err
	}
	s.client = &engine.Client{Viewer: s, Streaming: stream}
	view, err := s.host.Attach(ctx, s.id, s.client, st.End.Seq)
	if err != nil {
		return err
	}
	return view.CatchUp(ctx)
}

func (s *ourSession) close() error {
	s.host.Close()
	return nil
}

func (s *ourSession) log() ([]byte, error) {
	var b bytes.Buffer
	err := s.host.Log.Export(context.Background(), s.id, &b)
	return b.Bytes(), err
}

// resume loads the session from the store and verifies it.
func (s *ourSession) resume() (session, error) {
	again := s.ours.start(s.id)
	_, err := again.host.Resume(context.Background(), s.id, engine.Resume{Quiet: true}, nil)
	return again, err
}
