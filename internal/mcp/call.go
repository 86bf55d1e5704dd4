package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/abide-run/abide/internal/event"
)

// Unavailable is the error of a request to a server that is not connected.
type Unavailable struct {
	Server string
	Status Status
	Reason string
}

func (e *Unavailable) Error() string {
	text := fmt.Sprintf("the MCP server %s is not connected (%s)", e.Server, e.Status)
	if e.Reason != "" {
		text += ": " + e.Reason
	}
	switch e.Status {
	case Disabled:
		return text + "; enable it to use it"
	case Stopped:
		return text + "; start it to use it"
	case NeedsAuth:
		return text + "; a person has to log in: abide mcp login " + e.Server
	}
	return text
}

// Answered reports whether an error is the answer of a server to a request.
func Answered(err error) bool {
	var answer *jsonrpc.Error
	return errors.As(err, &answer) && !errors.Is(err, sdk.ErrConnectionClosed)
}

// A Silence is the error of a call that took too long.
type Silence struct {
	Idle bool // true if there was no progress either
	Time time.Duration
}

func (e *Silence) Error() string {
	if e.Idle {
		return fmt.Sprintf("the server has told nothing for %v", e.Time)
	}
	return fmt.Sprintf("the call took longer than %v", e.Time)
}

// A Request is a call of a tool.
type Request struct {
	Server, Tool string
	Key          string // key of the call, the same for each attempt; [Set.Settle] is called with it when its result is stored. It may be empty
	Again        bool   // true if an earlier attempt may have made the call
	Arguments    json.RawMessage
	Meta         map[string]any
	Progress     func(done, total float64, message string) // may be nil
}

// call calls a tool. The time that the call may take without progress begins anew with each
// sign of progress, and stands still while a person is asked.
func (c *client) call(ctx context.Context, conn *sdk.ClientSession, q Request) (*sdk.CallToolResult, error) {
	if inner := c.shares(); inner != nil {
		return inner.call(ctx, conn, q)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	idle := c.limit(c.config.Idle(), func() { cancel(&Silence{true, c.config.Idle()}) })
	defer idle.stop()
	longest := c.limit(c.config.Longest(), func() { cancel(&Silence{false, c.config.Longest()}) })
	defer longest.stop()
	token := cmp.Or(q.Key, event.NewID())
	c.mu.Lock()
	pipe := c.pipe
	if c.conn != conn {
		pipe = nil
	}
	c.mu.Unlock()
	switch {
	case pipe != nil:
		if err := pipe.begin(token, q.Again && !c.config.MayRepeat(q.Tool)); err != nil {
			return nil, err
		}
		if q.Key == "" {
			defer pipe.settle(token)
		}
	case q.Again && !c.config.MayRepeat(q.Tool):
		return nil, ErrUnknown
	}
	c.mu.Lock()
	c.calls[token] = &call{idle.renew, q.Progress}
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.calls, token)
		c.mu.Unlock()
	}()
	p := &sdk.CallToolParams{Name: q.Tool, Meta: make(sdk.Meta)}
	for name, value := range q.Meta {
		p.Meta[name] = value
	}
	p.Meta["progressToken"] = token
	if len(q.Arguments) > 0 {
		p.Arguments = q.Arguments
	}
	result, err := conn.CallTool(ctx, p)
	switch {
	case err == nil:
		return result, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case asDeclined(err) != nil:
		return nil, asDeclined(err)
	case Answered(err), errors.Is(err, errLogin):
		return nil, err
	case pipe != nil && !pipe.isOver(err):
		return nil, fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	c.lose(conn)
	return nil, err
}

// ErrUnreadable means that a server has answered a call with something that is no result.
var ErrUnreadable = errors.New("the answer is no result")

// lose gives up a connection that does not work: the next call waits for a new one.
func (c *client) lose(conn *sdk.ClientSession) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn == conn && c.set.ctx.Err() == nil {
		c.conn = nil
		c.set.work.Go(func() { conn.Close() })
	}
}

// A limit ends something after a time that can be renewed.
type limit struct {
	mu    sync.Mutex
	timer *time.Timer
	time  time.Duration
}

// limit calls f after a time. While a person is asked, the time begins anew.
func (c *client) limit(d time.Duration, f func()) *limit {
	l := &limit{time: d}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timer = time.AfterFunc(d, func() {
		if c.isAsking() {
			l.renew()
			return
		}
		f()
	})
	return l
}

func (l *limit) renew() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timer.Reset(l.time)
}

func (l *limit) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timer.Stop()
}
