package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/abide-run/abide/bench/floor"
	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/openai"
)

// A place is the folder in which contenders store files, and the URL of the model.
type place struct{ dir, url string }

// A contender runs sessions in its own way.
type contender struct {
	name  string
	open  func(history int) (session, error) // returns a new session with the given number of earlier turns
	shell func() (session, error)            // returns a new session that runs commands; nil if the contender cannot
	close func()
}

// A session takes prompts, from one goroutine.
type session interface {
	// turn runs a turn to its end. If stream is true, it returns the number of
	// pieces in which the answer arrived.
	turn(prompt string, stream bool) (pieces int, err error)
	close() error
	// resume opens the session again after it was closed.
	resume() (session, error)
}

// contenders are compared with the floor, one after the other.
var contenders = []func(place) (contender, error){newOurs, newWire}

// newFloor returns the floor as a contender.
func newFloor(at place) (contender, error) {
	dir, err := os.MkdirTemp(at.dir, "floor-")
	client := floor.NewClient(at.url)
	n := 0
	return contender{
		name:  "floor",
		close: client.Close,
		open: func(history int) (session, error) {
			n++
			s := floorSession{client: client, dir: dir, name: fmt.Sprint(n)}
			var err error
			if s.Session, err = client.Create(s.dir, s.name); err != nil {
				return nil, err
			}
			return s, s.Fill(history, prompt, answer)
		},
		shell: func() (session, error) {
			n++
			s, err := client.Create(dir, fmt.Sprint(n))
			return floorShell{floorSession{Session: s}}, err
		},
	}, err
}

type floorSession struct {
	*floor.Session
	client    *floor.Client
	dir, name string
}

func (s floorSession) turn(prompt string, stream bool) (int, error) {
	return s.Turn(context.Background(), prompt, stream)
}

func (s floorSession) close() error { return s.Close() }

func (s floorSession) copy(log []byte) error {
	return os.WriteFile(filepath.Join(s.dir, s.name), log, 0o600)
}

func (s floorSession) resume() (session, error) {
	var err error
	s.Session, err = s.client.Open(s.dir, s.name)
	return s, err
}

// A floorShell is a session in which the model may call commands.
type floorShell struct{ floorSession }

func (s floorShell) turn(prompt string, _ bool) (int, error) {
	return s.CommandTurn(context.Background(), shell(), prompt)
}

// newWire returns the floor with our client for Chat Completions instead of its own, which
// measures the client and nothing else.
func newWire(at place) (contender, error) {
	files, err := newFloor(at)
	client := openai.New(openai.Config{BaseURL: at.url, APIKey: "bench"})
	return contender{
		name:  "wire",
		close: files.close,
		open: func(history int) (session, error) {
			file, err := files.open(history)
			if err != nil {
				return nil, err
			}
			s := &wireSession{floorSession: file.(floorSession), model: client}
			s.request = model.Request{Model: "instant", System: "You are a helpful assistant."}
			for range history {
				s.remember(model.User, prompt)
				s.remember(model.Assistant, answer)
			}
			_, err = client.Ask(context.Background(), &s.request, nil) // encodes the history, as in a session that was used before
			return s, err
		},
	}, err
}

type wireSession struct {
	floorSession
	model   model.Model
	request model.Request
}

func (s *wireSession) remember(role model.Role, text string) {
	s.request.Messages = append(s.request.Messages, &model.Message{Role: role, Text: text})
}

func (s *wireSession) turn(prompt string, stream bool) (pieces int, err error) {
	s.remember(model.User, prompt)
	if err := s.Append("user", prompt); err != nil {
		return 0, err
	}
	var on func(model.Delta)
	if stream {
		on = func(model.Delta) { pieces++ }
	}
	reply, err := s.model.Ask(context.Background(), &s.request, on)
	if err != nil {
		return 0, err
	}
	s.remember(model.Assistant, reply.Text)
	return pieces, s.Append("assistant", reply.Text)
}

// resume is not supported, because it has nothing to do with the client.
func (s *wireSession) resume() (session, error) { return nil, errors.ErrUnsupported }
