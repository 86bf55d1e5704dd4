//lint:file-ignore SA1019 Sampling is going to be removed from the protocol, and servers of today use it.

package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// A Sample is what a server asks the model of the session (sampling).
type Sample struct {
	System      string
	Messages    []SampleMessage
	MaxTokens   int      // tokens that the answer may have at most
	Temperature *float64 // nil if the server does not say it
	Stop        []string // texts at which the answer ends
}

// A SampleMessage is a message of a Sample.
type SampleMessage struct {
	Role string // "user" or "assistant"
	Text string
}

// Sampled is the answer of the model.
type Sampled struct {
	Model, Text string
	Cut         bool // true if the answer has reached its limit
}

const (
	maxSamples       = 20       // requests that a server can make of the model for each call
	maxSampleSize    = 48 << 10 // bytes of a request: a person is shown all of it
	maxSampleParts   = 100      // messages of a request
	maxSampleTokens  = 8192     // tokens of an answer
	sampleMethod     = "sampling/createMessage"
	codeUserRejected = -1 // of a request that a person has refused, in the words of the protocol
)

// Declined is the error of a request of a server that was not carried out.
type Declined struct{ answer *jsonrpc.Error }

func (e *Declined) Error() string { return e.answer.Message }

func (e *Declined) Unwrap() error { return e.answer }

// declined returns the error of a request that is not carried out.
func declined(format string, args ...any) *Declined {
	return &Declined{&jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: fmt.Sprintf(format, args...)}}
}

// SampleRefused returns the error of a request of the model that a person or a rule has refused.
func SampleRefused(why string) error {
	return &Declined{&jsonrpc.Error{Code: codeUserRejected, Message: why}}
}

// told returns an error of ours as a server is told it. It says nothing about the connection.
func told(what string, err error) error {
	if errors.As(err, new(*Declined)) || errors.Is(err, context.Canceled) {
		return err
	}
	return declined("%s: %s", what, Why(err))
}

// maySample reports whether the server may ask the model: its configuration says so, and it
// belongs to one session.
func (c *client) maySample() bool {
	return c.config.Sampling && !c.set.in.Shared && c.set.events.Sample != nil
}

// samplingOff is what a server is told that may not ask the model.
const samplingOff = "the model cannot be asked: sampling is not switched on in the configuration of the server"

// refuseSampling answers requests of the model of a server that may not make any.
func refuseSampling(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, r sdk.Request) (sdk.Result, error) {
		if method == sampleMethod {
			return nil, declined(samplingOff)
		}
		return next(ctx, method, r)
	}
}

// codeUnsupported is the code of the error with which the SDK refuses to carry out what a server
// wants for a call.
const codeUnsupported = -31001

// asDeclined returns the error of a call that was not finished because what the server wants for
// it is not carried out; nil if an error is another one.
func asDeclined(err error) *Declined {
	if d, ok := errors.AsType[*Declined](err); ok {
		return d
	}
	answer, ok := errors.AsType[*jsonrpc.Error](err)
	switch {
	case !ok || answer.Code != codeUnsupported:
		return nil
	case strings.Contains(answer.Message, "CreateMessage"):
		return declined(samplingOff)
	}
	return &Declined{answer}
}

// sample asks the model for a server. The request belongs to the calls of the server that are
// under way: it ends with the last of them.
func (c *client) sample(ctx context.Context, r *sdk.CreateMessageWithToolsRequest) (*sdk.CreateMessageWithToolsResult, error) {
	key := c.questionKey(r.Params.Meta)
	q, err := sampleOf(r.Params)
	if err != nil {
		return nil, err
	}
	ctx, done, err := c.duringCalls(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	open := c.ask(1)
	defer c.ask(-1)
	if open > maxQuestions {
		return nil, declined("%d questions of the server are open, and no more can be", maxQuestions)
	}
	a, err := c.set.events.Sample(ctx, c.config.Name, key, q)
	if err != nil {
		return nil, told("the model could not be asked", err)
	}
	text, reason := cutAt(a.Text, q.Stop), "endTurn"
	switch {
	case text != a.Text:
		reason = "stopSequence"
	case a.Cut:
		reason = "maxTokens"
	}
	return &sdk.CreateMessageWithToolsResult{Role: "assistant", Model: a.Model, StopReason: reason, Content: []sdk.Content{&sdk.TextContent{Text: text}}}, nil
}

// cutAt returns a text up to the first of some others in it.
func cutAt(text string, stops []string) string {
	for _, s := range stops {
		if s != "" {
			text, _, _ = strings.Cut(text, s)
		}
	}
	return text
}

// sampleOf reads a request. Nothing of it is left out silently, because the server would take
// the answer for one to all of it.
func sampleOf(p *sdk.CreateMessageWithToolsParams) (Sample, error) {
	q := Sample{System: p.SystemPrompt, MaxTokens: maxSampleTokens, Stop: p.StopSequences}
	switch {
	case len(p.Tools) > 0:
		return q, declined("the model cannot be given tools by a server")
	case len(p.Messages) == 0 || len(p.Messages) > maxSampleParts:
		return q, declined("a request has 1 to %d messages", maxSampleParts)
	}
	if p.MaxTokens > 0 {
		q.MaxTokens = int(min(p.MaxTokens, maxSampleTokens))
	}
	if p.Temperature != 0 { // zero cannot be told from none
		q.Temperature = &p.Temperature
	}
	size := len(q.System)
	for _, m := range p.Messages {
		if m == nil || m.Role != "user" && m.Role != "assistant" {
			return q, declined("the role of a message is user or assistant")
		}
		to := SampleMessage{Role: string(m.Role)}
		for _, part := range m.Content {
			text, ok := part.(*sdk.TextContent)
			if !ok {
				return q, declined("a message can have nothing but text")
			}
			to.Text += text.Text
		}
		size += len(to.Text)
		q.Messages = append(q.Messages, to)
	}
	if size > maxSampleSize {
		return q, declined("a request has %d bytes at most", maxSampleSize)
	}
	return q, nil
}

// An allowance is how often a server may ask the model or a person, and for how long.
type allowance struct {
	samples int             // number of requests since the server was not used
	asked   int             // number of questions to a person since then
	calls   int             // number of times that it was used since then
	during  context.Context // ends when the server is not used any more; nil while it is not
	end     context.CancelCauseFunc
	begun   chan struct{} // closed when the server is used; nil if nobody waits for that
}

// errNotUsed is the cause with which requests of a server end that belong to calls that are over.
var errNotUsed = errors.New("no call of the server is under way any more")

// beginUseLocked notes that the server is used once more.
func (c *client) beginUseLocked() {
	a := &c.allowance
	if a.calls++; c.uses > 1 || !c.config.Sampling {
		return
	}
	a.during, a.end = context.WithCancelCause(context.Background())
	if a.begun != nil {
		close(a.begun)
		a.begun = nil
	}
}

// endUseLocked notes that the server is used once less.
func (c *client) endUseLocked() {
	if c.uses > 0 {
		return
	}
	if c.allowance.end != nil {
		c.allowance.end(errNotUsed)
	}
	c.allowance = allowance{begun: c.allowance.begun} // what was put without a call counts until the next one is over
}

// maxAsked is how many questions to a person a server can put for each call, also one after the
// other: each is stored.
const maxAsked = 64

// countQuestion counts a question to a person. It reports false if there were too many.
func (c *client) countQuestion() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.allowance.asked++
	return c.allowance.asked <= maxAsked*max(c.allowance.calls, 1)
}

// duringCalls returns a context that ends with the calls of the server that are under way. It
// counts a request. A call of an earlier engine is waited for until this one goes on with it.
func (c *client) duringCalls(ctx context.Context) (context.Context, func(), error) {
	counted := false
	for {
		c.mu.Lock()
		a := &c.allowance
		if c.uses == 0 && !c.journal.unfinished() {
			c.mu.Unlock()
			return nil, nil, declined("the model is asked for a call alone, and none is under way")
		}
		if !counted {
			if a.samples >= maxSamples*max(a.calls, 1) {
				c.mu.Unlock()
				return nil, nil, declined("the server has asked the model %d times for a call, and cannot ask more often", maxSamples)
			}
			a.samples++
			counted = true
		}
		if during := a.during; during != nil {
			c.mu.Unlock()
			ctx, cancel := context.WithCancelCause(ctx)
			stop := context.AfterFunc(during, func() { cancel(context.Cause(during)) })
			return ctx, func() { stop(); cancel(nil) }, nil
		}
		if a.begun == nil {
			a.begun = make(chan struct{})
		}
		begun := a.begun
		c.mu.Unlock()
		select {
		case <-begun:
		case <-ctx.Done():
			return nil, nil, context.Cause(ctx)
		}
	}
}
