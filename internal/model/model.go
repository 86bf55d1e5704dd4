// Package model is the port to whoever answers: a language model behind a wire,
// or one of the two that ship in the binary.
//
// A [Model] makes one attempt at one request. It keeps nothing between requests
// and decides nothing about retries: the caller does, from the [Error].
package model

import (
	"context"
	"encoding/json"
	"slices"
	"sync/atomic"
	"time"
)

// A Model answers requests. It is safe for concurrent use.
type Model interface {
	// Ask makes one attempt. If on is not nil the reply is streamed, and each
	// piece is given to on as it arrives, in order, from the calling goroutine.
	// The reply is whole in any case. An error is an *Error, or that of ctx.
	Ask(ctx context.Context, req *Request, on func(Delta)) (*Reply, error)
}

// A Request is all that a model is told. Nothing in it may be changed once it
// was given to a Model.
type Request struct {
	Session  string // for the provider's caches and logs
	Model    string // the name on the wire
	System   string
	Tools    *Tools // nil for none
	Messages []*Message
	// Tail is volatile system-level state. It comes last, so that caches of
	// what stands before it stay valid.
	Tail            string
	ReasoningEffort string
	MaxOutput       int
	Headers         map[string]string
	// Can is what the model can do, if that is known better than by its name.
	Can *Capabilities
	// Forget leaves out the reasoning of earlier turns. It is what is left to
	// do after an error of KindReasoning.
	Forget bool
}

// A Role says who speaks.
type Role string

// The roles of messages. The system prompt is not a message.
const (
	User      Role = "user"
	Assistant Role = "assistant"
	ToolRole  Role = "tool" // the result of one call
)

// A Message is one entry of the history. It never changes, so that its wire
// form can be kept.
type Message struct {
	Role   Role
	Text   string
	Images []Image
	Calls  []Call // of an assistant
	CallID string // of a tool result: the call it answers; of an image: the call that gave it
	Failed bool   // of a tool result
	// Reasoning is what the provider wants back, byte for byte.
	Reasoning *Reasoning

	wire wire
	run  atomic.Pointer[run] // that ends with this message
}

// An Image is a picture in a message.
type Image struct {
	MediaType string
	Data      []byte
}

// Reasoning is a model's thinking: what a person may read, and what only the
// provider understands.
type Reasoning struct {
	Text      string
	Opaque    string // signed thoughts, of Anthropic Messages
	Encrypted string // encrypted items, of OpenAI Responses
}

// A Call is a tool call that a model made.
type Call struct {
	ID        string
	Name      string
	Arguments json.RawMessage // as the model wrote them; may be no JSON at all in a Reply
}

// A Tool is what a model may call.
type Tool struct {
	Name        string
	Description string
	Parameters  json.RawMessage // JSON schema; empty for none
}

// Tools is a fixed set of tools.
type Tools struct {
	List []Tool

	wire wire
}

// wire remembers the encoded form of a value that never changes. Only the last
// format is kept: a session rarely changes its provider.
type wire struct{ form atomic.Pointer[form] }

type form struct {
	format string
	before *Message
	bytes  []byte
}

// kept returns the encoded form, or nil if it is not remembered.
func (w *wire) kept(format string, before *Message) []byte {
	if f := w.form.Load(); f != nil && f.format == format && f.before == before {
		return f.bytes
	}
	return nil
}

func (w *wire) get(format string, before *Message, encode func() []byte) []byte {
	b := w.kept(format, before)
	if b == nil {
		b = encode()
		w.form.Store(&form{format, before, b})
	}
	return b
}

// An Encode makes the wire form of a message. That may depend on the message
// before it, which is nil for the first one: some wires join what others part.
type Encode func(before, m *Message) []byte

// Wire returns the message in the named format, encoding it the first time.
func (m *Message) Wire(format string, before *Message, encode Encode) []byte {
	return m.wire.get(format, before, func() []byte { return encode(before, m) })
}

// runLength is how many messages are joined. The last run of a history is on
// average half as long, and kept message by message.
const runLength = 64

// A run is messages that were sent one after the other, encoded and joined.
type run struct {
	format   string
	before   *Message
	messages []*Message
	bytes    []byte
}

// AppendWire appends the messages in the named format to pieces, in order. It
// does what Wire does for each of them, but keeps old history in few and long
// pieces: with thousands of messages it is the walk from one to the next that
// costs, not the copying. The first message follows before, which may be nil.
func AppendWire(pieces [][]byte, before *Message, messages []*Message, format string, encode Encode) [][]byte {
	for ; len(messages) >= runLength; messages = messages[runLength:] {
		pieces = append(pieces, joined(before, messages[:runLength], format, encode))
		before = messages[runLength-1]
	}
	for _, m := range messages {
		pieces = append(pieces, m.Wire(format, before, encode))
		before = m
	}
	return pieces
}

func joined(before *Message, messages []*Message, format string, encode Encode) []byte {
	last := messages[len(messages)-1]
	if r := last.run.Load(); r != nil && r.format == format && r.before == before && slices.Equal(r.messages, messages) {
		return r.bytes
	}
	r := &run{format: format, before: before, messages: slices.Clone(messages)}
	var pieces [runLength][]byte
	for i, m := range messages {
		if pieces[i] = m.wire.kept(format, before); pieces[i] == nil {
			pieces[i] = encode(before, m)
		}
		before = m
	}
	r.bytes = slices.Concat(pieces[:]...)
	last.run.Store(r)
	for _, m := range messages {
		m.wire.form.Store(nil) // it is in the run
	}
	return r.bytes
}

// Wire returns the tools in the named format, encoding them the first time.
func (t *Tools) Wire(format string, encode func(*Tools) []byte) []byte {
	return t.wire.get(format, nil, func() []byte { return encode(t) })
}

// A Delta is a piece of a reply that is arriving. Exactly one of Text,
// Reasoning and Arguments is set.
type Delta struct {
	Text      string
	Reasoning string
	Arguments string // of the call below
	CallID    string
	CallName  string
}

// A Reply is one whole answer.
type Reply struct {
	Text      string
	Calls     []Call
	Reasoning *Reasoning
	Usage     Usage
	Cost      *float64 // in US dollars; nil if there is no price
	Finish    string   // the provider's word: "stop", "tool_calls", "length", …
	Model     string   // who answered
	RequestID string
}

// Usage is what a request cost, in tokens.
type Usage struct {
	Input      int64 `json:"inputTokens"` // without what came from the cache
	Output     int64 `json:"outputTokens"`
	CacheRead  int64 `json:"cacheReadTokens"`
	CacheWrite int64 `json:"cacheWriteTokens"`
	Reasoning  int64 `json:"reasoningTokens"`
}

// Add sums two costs.
func (u Usage) Add(v Usage) Usage {
	return Usage{
		Input:      u.Input + v.Input,
		Output:     u.Output + v.Output,
		CacheRead:  u.CacheRead + v.CacheRead,
		CacheWrite: u.CacheWrite + v.CacheWrite,
		Reasoning:  u.Reasoning + v.Reasoning,
	}
}

// A Kind classifies what went wrong.
type Kind string

// The kinds of an Error.
const (
	KindAuth       Kind = "auth"       // the key is missing or refused
	KindNotFound   Kind = "not_found"  // no such model or endpoint
	KindRequest    Kind = "request"    // the provider rejects the request
	KindOverflow   Kind = "overflow"   // the request does not fit the model's window
	KindReasoning  Kind = "reasoning"  // the provider rejects reasoning that it gave earlier; see Request.Forget
	KindRateLimit  Kind = "rate_limit" // too many requests
	KindOverloaded Kind = "overloaded" // the provider has a problem (5xx)
	KindNetwork    Kind = "network"    // the provider could not be reached, or hung up
	KindStream     Kind = "stream"     // the reply broke off or was not understood
	KindTimeout    Kind = "timeout"    // nothing arrived for too long
	KindScenario   Kind = "scenario"   // a scripted model has no reply for this request
)

// An Error is a failed attempt. Its message is one sentence: what, why, and
// what to do.
type Error struct {
	Kind       Kind
	Status     int // HTTP status, if there was one
	Message    string
	RetryAfter time.Duration // what the provider asked for; zero if nothing
	Err        error
}

func (e *Error) Error() string { return e.Message }
func (e *Error) Unwrap() error { return e.Err }

// Temporary reports whether the same request may succeed later.
func (e *Error) Temporary() bool {
	switch e.Kind {
	case KindRateLimit, KindOverloaded, KindNetwork, KindStream, KindTimeout:
		return true
	}
	return false
}
