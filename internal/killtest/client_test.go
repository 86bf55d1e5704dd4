package killtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/jsonrpc"
)

// A client drives a session as a program would that knows what was acknowledged
// to it, and nothing else of what happened.
type client struct {
	rpc     *jsonrpc.Conn
	ran     chan struct{} // closed when the connection is over
	witness *witness
	number  int // of the connection
	session event.SessionID
	talk    talk
}

// A talk is what a client wants of a session.
type talk struct {
	open  api.OpenParams
	turns []exchange
}

// An exchange is what a client says when the session is idle, and what the last
// answer should be.
type exchange struct {
	prompt string
	later  string // said while the first question is open; nothing if empty
	mode   string // how that is to be treated
	answer string
}

// connect makes a client of a connection.
func connect(ctx context.Context, rwc io.ReadWriteCloser, w *witness, t talk) (*client, error) {
	c := &client{witness: w, number: w.connected(), session: t.open.SessionID, talk: t, ran: make(chan struct{})}
	c.rpc = jsonrpc.New(rwc, jsonrpc.Options{Handler: jsonrpc.HandlerFunc(c.handle)})
	go func() { defer close(c.ran); _ = c.rpc.Run(context.Background()) }() // close waits for it
	return c, c.call(ctx, api.Connect, nil, nil)
}

func (c *client) close() {
	c.rpc.Close()
	<-c.ran
}

// handle takes what the runtime sends.
func (c *client) handle(_ context.Context, req *jsonrpc.Request) (any, error) {
	switch req.Method {
	case api.SessionEvent:
		return nil, c.witness.showed(c.number, req.Params)
	case api.UserInput:
		return api.UserInputResult{Answer: "blue", WasFreeform: true}, nil
	}
	return nil, nil
}

// call asks the runtime, and once more if it was told to try again. That the
// runtime has died is errDied.
func (c *client) call(ctx context.Context, method string, params, result any) error {
	err := c.callOnce(ctx, method, params, result)
	if err != nil && strings.Contains(err.Error(), errRefused.Error()) {
		return c.callOnce(ctx, method, params, result)
	}
	return err
}

func (c *client) callOnce(ctx context.Context, method string, params, result any) error {
	c.witness.note(func() { c.witness.asking++ })
	err := c.rpc.Call(ctx, method, params, result)
	c.witness.note(func() { c.witness.asking-- })
	if errors.Is(err, jsonrpc.ErrClosed) {
		return errDied
	}
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	return nil
}

// drive brings the talk to its end.
func (c *client) drive(ctx context.Context) error {
	if err := c.open(ctx); err != nil {
		return err
	}
	done, err := c.done(ctx)
	if err != nil {
		return err
	}
	for _, x := range c.talk.turns[done:] {
		if err := c.send(ctx, api.SendParams{Prompt: x.prompt}); err != nil {
			return err
		}
		if err := c.untilIdle(ctx, x); err != nil {
			return err
		}
	}
	return nil
}

// done counts the turns that are over: all before the last one that was begun.
func (c *client) done(ctx context.Context) (int, error) {
	log, err := c.log(ctx)
	if err != nil {
		return 0, err
	}
	for n := len(c.talk.turns) - 1; n > 0; n-- {
		if isTaken(log, c.talk.turns[n].prompt) {
			return n, nil
		}
	}
	return 0, nil
}

// open makes the session, or comes back to it.
func (c *client) open(ctx context.Context) error {
	method, params := api.SessionCreate, c.talk.open
	if c.witness.opened {
		method, params.ContinuePending = api.SessionResume, new(true)
	}
	if err := c.call(ctx, method, params, nil); err != nil {
		return err
	}
	c.witness.note(func() { c.witness.opened = true })
	return nil
}

// send gives the session an input, unless it has it: then it is acknowledged,
// or in the log.
func (c *client) send(ctx context.Context, in api.SendParams) error {
	taken, err := c.taken(ctx, in.Prompt)
	if taken || err != nil {
		return err
	}
	if id, ok := c.witness.sent[in.Prompt]; ok {
		return fmt.Errorf("the input %q was acknowledged as %s and is not in the log", in.Prompt, id)
	}
	var r api.SendResult
	in.SessionID = c.session
	if err := c.call(ctx, api.SessionSend, in, &r); err != nil {
		return err
	}
	c.witness.note(func() { c.witness.sent[in.Prompt] = r.MessageID })
	return nil
}

// taken reports whether an input is in the log.
func (c *client) taken(ctx context.Context, prompt string) (bool, error) {
	log, err := c.log(ctx)
	return isTaken(log, prompt), err
}

func isTaken(log []event.Event, prompt string) bool {
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

// log reads what is stored, hidden events too.
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

// sawTheEnd waits until the client was shown the last event of the log that
// clients are shown.
func (c *client) sawTheEnd(ctx context.Context, log []event.Event) error {
	last := ""
	for _, e := range log {
		if head, err := e.Head(); err == nil && !e.Type.Hidden() {
			last = head.ID
		}
	}
	err := c.witness.until(ctx, c.rpc.Done(), func() bool { return c.witness.hasSeen([]string{last}) })
	if err != nil {
		return fmt.Errorf("the client was not shown event %s: %w", last, err)
	}
	return nil
}

// untilIdle answers questions until nothing is left to do.
func (c *client) untilIdle(ctx context.Context, x exchange) error {
	news := []event.Type{event.PermissionAsked, event.ExternalAsked, event.SessionIdle}
	for {
		var known int
		c.witness.note(func() { known = c.witness.count(c.number, news...) })
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
		err := c.witness.until(ctx, c.rpc.Done(), func() bool { return c.witness.count(c.number, news...) > known })
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

// answer answers a question. One to a person is put to it by the runtime.
func (c *client) answer(ctx context.Context, q api.Question) error {
	e, err := event.Parse(0, q.Event)
	if err != nil {
		return err
	}
	var asked struct {
		RequestID string
		Arguments json.RawMessage
	}
	if err := e.Decode(&asked); err != nil {
		return err
	}
	switch e.Type {
	case event.PermissionAsked:
		return c.won(ctx, api.AnswerPermission, api.AnswerPermissionParams{
			SessionID: c.session, RequestID: asked.RequestID, Result: json.RawMessage(`{"kind":"approve-once"}`),
		}, asked.RequestID)
	case event.ExternalAsked:
		value, err := valueOf(asked.Arguments)
		if err != nil {
			return err
		}
		result, _ := json.Marshal("found " + value) // a string
		return c.won(ctx, api.AnswerTool, api.AnswerToolParams{SessionID: c.session, RequestID: asked.RequestID, Result: result}, asked.RequestID)
	}
	return nil
}

// won gives an answer, which nobody else gives.
func (c *client) won(ctx context.Context, method string, params any, requestID string) error {
	if c.witness.answered[requestID] {
		return fmt.Errorf("the answer to %s was acknowledged, and the question is open again", requestID)
	}
	var r api.Success
	if err := c.call(ctx, method, params, &r); err != nil {
		return err
	}
	if !r.Success {
		return fmt.Errorf("%s: the question %s was open, and its only answer did not win", method, requestID)
	}
	c.witness.note(func() { c.witness.answered[requestID] = true })
	return nil
}
