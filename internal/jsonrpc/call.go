package jsonrpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
)

// Call sends a request and waits for the answer, which is decoded into result unless
// that is nil; a *json.RawMessage gets the bytes unchanged. Nil params are sent as {}.
// The error is an *Error if the peer answered with one, and wraps ErrClosed if the
// connection ended. If ctx is done first, the request is cancelled with $/cancelRequest.
func (c *Conn) Call(ctx context.Context, method string, params, result any) error {
	raw, err := encode(params, emptyObject)
	if err != nil {
		return err
	}
	id, answer, err := c.reserveCall()
	if err == nil {
		defer c.forgetCall(id)
		err = c.out.Put(ctx, callHead(id, method), raw.bytes, closing)
	}
	raw.free()
	if err != nil {
		return c.failed("call", method, err)
	}
	select {
	case m := <-answer:
		return m.decode(method, result)
	case <-ctx.Done():
		c.TryNotify(cancelMethod, []byte(`{"id":`), strconv.AppendInt(nil, id, 10), closing)
		return fmt.Errorf("call %s: %w", method, context.Cause(ctx))
	case <-c.done:
	}
	select {
	case m := <-answer: // the answer came just before the end
		return m.decode(method, result)
	default:
		return c.failed("call", method, ErrClosed)
	}
}

// failed adds the method to an error, and the reason of the end if the connection is
// closed.
func (c *Conn) failed(verb, method string, err error) error {
	if over := c.Err(); over != nil && errors.Is(err, ErrClosed) {
		err = over
	}
	return fmt.Errorf("%s %s: %w", verb, method, err)
}

// reserveCall reserves an id for a call and a channel for its answer.
func (c *Conn) reserveCall() (int64, <-chan Message, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return 0, nil, ErrClosed
	}
	c.lastCall++
	answer := make(chan Message, 1)
	c.calls[c.lastCall] = answer
	return c.lastCall, answer, nil
}

func (c *Conn) forgetCall(id int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.calls, id)
}

// deliverAnswer passes an answer on to the call that waits for it. Late and second answers
// are dropped.
func (c *Conn) deliverAnswer(m Message) {
	id, err := strconv.ParseInt(string(m.ID), 10, 64)
	if err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if answer := c.calls[id]; answer != nil {
		answer <- m
		delete(c.calls, id)
	}
}

// decode reads an answer.
func (m Message) decode(method string, result any) error {
	if fault := m.Failure(); fault != nil {
		return fault
	}
	switch result := result.(type) {
	case nil:
		return nil
	case *json.RawMessage:
		*result = m.Result
		return nil
	}
	if err := json.Unmarshal(m.Result, result); err != nil {
		return fmt.Errorf("call %s: the answer does not fit: %w", method, err)
	}
	return nil
}

// Notify sends a notification. It waits for space in the outbox; its error wraps
// ErrClosed if the connection ended.
func (c *Conn) Notify(method string, params any) error {
	raw, err := encode(params, emptyObject)
	if err != nil {
		return err
	}
	defer raw.free()
	var scratch [96]byte
	if err := c.out.Put(context.Background(), notifyHead(scratch[:0], method), raw.bytes, closing); err != nil {
		return c.failed("notify", method, err)
	}
	return nil
}

// TryNotify queues a notification if there is space for it now. The joined fragments are
// its params; they are copied. If it returns false, wait for Drained before the next
// attempt.
func (c *Conn) TryNotify(method string, params ...[]byte) bool {
	var scratch [96]byte
	var few [8][]byte
	parts := append(few[:0], notifyHead(scratch[:0], method))
	if len(params) == 0 {
		parts = append(parts, emptyObject)
	}
	parts = append(parts, params...)
	return c.out.tryPut(append(parts, closing)...)
}

// Drained returns a channel that is closed when the outbox is at most half full, which
// may be now. Wait for Done as well.
func (c *Conn) Drained() <-chan struct{} { return c.out.halfEmpty() }

func callHead(id int64, method string) []byte {
	head := append(make([]byte, 0, 96), `{"jsonrpc":"2.0","id":`...)
	head = strconv.AppendInt(head, id, 10)
	head = append(head, `,"method":`...)
	head = appendText(head, method)
	return append(head, `,"params":`...)
}

func notifyHead(head []byte, method string) []byte {
	head = append(head, `{"jsonrpc":"2.0","method":`...)
	head = appendText(head, method)
	return append(head, `,"params":`...)
}

// appendText appends a JSON string. Names of methods need no escapes.
func appendText(dst []byte, s string) []byte {
	for i := range len(s) {
		if s[i] < ' ' || s[i] == '"' || s[i] == '\\' || s[i] >= 0x7f {
			quoted, _ := json.Marshal(s) // a string cannot fail
			return append(dst, quoted...)
		}
	}
	dst = append(dst, '"')
	dst = append(dst, s...)
	return append(dst, '"')
}
