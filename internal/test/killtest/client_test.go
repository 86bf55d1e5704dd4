package killtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/daemon/folder"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/jsonrpc"
	"github.com/abide-run/abide/internal/turn"
)

// A client drives a session as a program would that knows only what was acknowledged
// to it.
type client struct {
	rpc          *jsonrpc.Conn
	ran          chan struct{} // closed when the connection is over
	recorder     *recorder
	number       int // number of the connection
	session      event.SessionID
	conversation conversation
	mayLose      bool // true if a question can be closed before it is answered
}

// A conversation is the parameters of a session and the prompts for it.
type conversation struct {
	open  api.OpenParams
	turns []exchange
}

// An exchange is a prompt that a client sends when the session is idle, and the
// expected answer.
type exchange struct {
	prompt string
	later  string // a second prompt, sent while the first question is open; none if empty
	mode   string // mode of the second prompt
	answer string
}

// connect makes a client on a connection to standard streams, which need no token.
func connect(ctx context.Context, rwc io.ReadWriteCloser, w *recorder, t conversation) (*client, error) {
	return connectWith(ctx, "", rwc, w, t)
}

// dial makes a client on a connection to the private socket of a folder. The client is nil
// if there is no connection.
func dial(ctx context.Context, dir string, w *recorder, t conversation) (*client, error) {
	f, err := folder.Open(dir)
	if err != nil {
		return nil, err
	}
	conn, err := f.Dial(ctx)
	if err != nil {
		return nil, errDied // the socket was there when the victim was ready
	}
	return connectWith(ctx, f.Token(), conn, w, t)
}

func connectWith(ctx context.Context, token string, rwc io.ReadWriteCloser, w *recorder, t conversation) (*client, error) {
	c := &client{recorder: w, number: w.addConnection(), session: t.open.SessionID, conversation: t, ran: make(chan struct{})}
	c.rpc = jsonrpc.New(rwc, jsonrpc.Options{Handler: jsonrpc.HandlerFunc(c.handle)})
	go func() { defer close(c.ran); _ = c.rpc.Run(context.Background()) }() // close waits for it
	return c, c.call(ctx, api.Connect, api.ConnectParams{Token: token}, nil)
}

func (c *client) close() {
	c.rpc.Close()
	<-c.ran
}

// handle handles the requests and notifications of the runtime.
func (c *client) handle(_ context.Context, req *jsonrpc.Request) (any, error) {
	switch req.Method {
	case api.SessionEvent:
		return nil, c.recorder.recordEvent(c.number, req.Params)
	case api.UserInput:
		return api.UserInputResult{Answer: "blue", WasFreeform: true}, nil
	}
	return nil, nil
}

// call makes a request, and repeats it once if the error says to try again. The error
// is errDied if the runtime is dead.
func (c *client) call(ctx context.Context, method string, params, result any) error {
	err := c.callOnce(ctx, method, params, result)
	if err != nil && strings.Contains(err.Error(), errRefused.Error()) {
		return c.callOnce(ctx, method, params, result)
	}
	return err
}

func (c *client) callOnce(ctx context.Context, method string, params, result any) error {
	c.recorder.update(func() { c.recorder.pending++ })
	err := c.rpc.Call(ctx, method, params, result)
	c.recorder.update(func() { c.recorder.pending-- })
	if errors.Is(err, jsonrpc.ErrClosed) {
		return errDied
	}
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	return nil
}

// drive drives the session to the end of the conversation.
func (c *client) drive(ctx context.Context) error {
	if err := c.open(ctx); err != nil {
		return err
	}
	done, err := c.turnsDone(ctx)
	if err != nil {
		return err
	}
	for _, x := range c.conversation.turns[done:] {
		if err := c.send(ctx, api.SendParams{Prompt: x.prompt}); err != nil {
			return err
		}
		if err := c.answerUntilIdle(ctx, x); err != nil {
			return err
		}
	}
	return nil
}

// turnsDone counts the turns that are over: all before the last one that was begun.
func (c *client) turnsDone(ctx context.Context) (int, error) {
	log, err := c.log(ctx)
	if err != nil {
		return 0, err
	}
	for n := len(c.conversation.turns) - 1; n > 0; n-- {
		if hasInput(log, c.conversation.turns[n].prompt) {
			return n, nil
		}
	}
	return 0, nil
}

// open creates the session, or resumes it if its creation was acknowledged.
func (c *client) open(ctx context.Context) error {
	method, params := api.SessionCreate, c.conversation.open
	if c.recorder.opened {
		method, params.ContinuePending = api.SessionResume, new(true)
	}
	if err := c.call(ctx, method, params, nil); err != nil {
		return err
	}
	c.recorder.update(func() { c.recorder.opened = true })
	return nil
}

// send sends an input to the session, unless the log has it already.
func (c *client) send(ctx context.Context, in api.SendParams) error {
	taken, err := c.isInLog(ctx, in.Prompt)
	if taken || err != nil {
		return err
	}
	if id, ok := c.recorder.sent[in.Prompt]; ok {
		return fmt.Errorf("the input %q was acknowledged as %s and is not in the log", in.Prompt, id)
	}
	var r api.SendResult
	in.SessionID = c.session
	if err := c.call(ctx, api.SessionSend, in, &r); err != nil {
		return err
	}
	c.recorder.update(func() { c.recorder.sent[in.Prompt] = r.MessageID })
	return nil
}

// isInLog reports whether the log has an input.
func (c *client) isInLog(ctx context.Context, prompt string) (bool, error) {
	log, err := c.log(ctx)
	return hasInput(log, prompt), err
}

func hasInput(log []event.Event, prompt string) bool {
	for _, e := range log {
		if e.Type != event.InputAccepted {
			continue
		}
		if d, err := event.As[event.InputAcceptedData](e); err == nil && d.Prompt == prompt {
			return true
		}
	}
	return false
}

// log reads all stored events, including hidden ones.
func (c *client) log(ctx context.Context) ([]event.Event, error) {
	var log []event.Event
	for {
		var r api.ReadResult
		if err := c.call(ctx, api.Events, api.ReadParams{SessionID: c.session, After: event.Seq(len(log))}, &r); err != nil {
			return nil, err
		}
		if r.Damage != "" {
			return nil, errors.New(r.Damage)
		}
		for _, b := range r.Events {
			e, err := event.Parse(event.Seq(len(log)+1), b)
			if err != nil {
				return nil, err
			}
			log = append(log, e)
		}
		if !r.More {
			return log, nil
		}
	}
}

// awaitLastEvent waits until the client was shown the last event of the log that is
// not hidden.
func (c *client) awaitLastEvent(ctx context.Context, log []event.Event) error {
	last := ""
	for _, e := range log {
		if head, err := e.Head(); err == nil && !e.Type.Hidden() {
			last = head.ID
		}
	}
	err := c.recorder.waitUntil(ctx, c.rpc.Done(), func() bool { return c.recorder.wasShown([]string{last}) })
	if err != nil {
		return fmt.Errorf("the client was not shown event %s: %w", last, err)
	}
	return nil
}

// answerUntilIdle answers questions until the session is idle.
func (c *client) answerUntilIdle(ctx context.Context, x exchange) error {
	news := []event.Type{event.PermissionAsked, event.ExternalAsked, event.ElicitationAsked, event.SessionIdle}
	for {
		var known int
		c.recorder.update(func() { known = c.recorder.count(c.number, news...) })
		if err := c.answerAll(ctx, x); err != nil {
			return err
		}
		var r api.StatusResult
		if err := c.call(ctx, api.Status, api.SessionParams{SessionID: c.session}, &r); err != nil {
			return err
		}
		if !r.Active {
			return nil
		}
		err := c.recorder.waitUntil(ctx, c.rpc.Done(), func() bool { return c.recorder.count(c.number, news...) > known })
		if err != nil {
			return err
		}
	}
}

// answerAll answers the questions that are open.
func (c *client) answerAll(ctx context.Context, x exchange) error {
	var r api.QuestionsResult
	if err := c.call(ctx, api.Questions, api.SessionParams{SessionID: c.session}, &r); err != nil {
		return err
	}
	for _, q := range r.Questions {
		if x.later != "" {
			if err := c.send(ctx, api.SendParams{Prompt: x.later, Mode: x.mode}); err != nil || x.mode == event.ModeInterrupt {
				return err // an interruption closes the question
			}
		}
		if err := c.answer(ctx, q); err != nil {
			return err
		}
	}
	return nil
}

// answer answers a question. Questions to a person arrive as requests of the runtime,
// which handle answers.
func (c *client) answer(ctx context.Context, q api.Question) error {
	e, err := event.Parse(0, q.Event)
	if err != nil {
		return err
	}
	var asked struct {
		RequestID         string
		Arguments         json.RawMessage
		ElicitationSource string
	}
	if err := e.Decode(&asked); err != nil {
		return err
	}
	switch e.Type {
	case event.PermissionAsked:
		return c.answerOnce(ctx, api.AnswerPermission, api.AnswerPermissionParams{
			SessionID: c.session, RequestID: asked.RequestID, Result: json.RawMessage(`{"kind":"approve-once"}`),
		}, asked.RequestID)
	case event.ExternalAsked:
		value, err := valueOf(asked.Arguments)
		if err != nil {
			return err
		}
		result, _ := json.Marshal("found " + value) // a string
		return c.answerOnce(ctx, api.AnswerTool, api.AnswerToolParams{SessionID: c.session, RequestID: asked.RequestID, Result: result}, asked.RequestID)
	case event.ElicitationAsked:
		accepted := api.ElicitationResult{Action: turn.Accept} // otherwise the budget is reached
		if asked.ElicitationSource != "" {
			accepted.Content = json.RawMessage(`{"colour":"green"}`)
		}
		return c.answerOnce(ctx, api.AnswerElicitation, api.AnswerElicitationParams{
			SessionID: c.session, RequestID: asked.RequestID, Result: accepted,
		}, asked.RequestID)
	}
	return nil
}

// answerOnce answers a question that has no other answer, and checks that it wins.
func (c *client) answerOnce(ctx context.Context, method string, params any, requestID string) error {
	if c.recorder.answered[requestID] {
		return fmt.Errorf("the answer to %s was acknowledged, and the question is open again", requestID)
	}
	var r api.Success
	if err := c.call(ctx, method, params, &r); err != nil {
		return err
	}
	if !r.Success && c.mayLose {
		return nil
	}
	if !r.Success {
		return fmt.Errorf("%s: the question %s was open, and its only answer did not win", method, requestID)
	}
	c.recorder.update(func() { c.recorder.answered[requestID] = true })
	return nil
}
