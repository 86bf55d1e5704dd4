// Package model is the port to language models: those of providers, which are reached
// over HTTP, and the two that are part of the program.
//
// A [Model] makes one attempt at one request. It keeps no state between requests and
// never retries: the caller decides that from the [Error].
package model

import (
	"context"
	"encoding/json"
	"slices"
	"sync/atomic"
	"time"
	"unique"
)

// A Model answers requests. It is safe for concurrent use.
type Model interface {
	// Ask makes one attempt. If on is not nil the reply is streamed: on is called
	// with each piece as it arrives, in order, from the calling goroutine. The
	// returned reply is whole in both cases. The error is an *Error, or that of ctx.
	Ask(ctx context.Context, req *Request, on func(Delta)) (*Reply, error)
}

// A Request is everything that a model is told. It must not be changed after it was
// given to a Model.
type Request struct {
	Session  string // id of the session, for the provider's caches and logs
	Model    string // name of the model that the provider knows
	System   string // system prompt
	Tools    *Tools // nil for none
	Messages []*Message
	// Tail is text about the current state of the session, at the level of the
	// system prompt. It changes often, so it comes last: caches of everything
	// before it stay valid.
	Tail            string
	ReasoningEffort string            // amount of reasoning; the provider's default if empty
	MaxOutput       int               // tokens that the reply may have; the default of the provider if zero
	Schema          *Schema           // form that the answer must have; nil if it is free
	Calling         Calling           // whether the answer may call tools
	Temperature     *float64          // randomness of the reply; the default of the provider if nil
	TopP            *float64          // share of the likely tokens that is drawn from; the default of the provider if nil
	Headers         map[string]string // further HTTP headers
	// Can overrides what is known of the model by its name; nil if nothing does.
	Can *Capabilities
	// Forget leaves out the reasoning of earlier replies. It is for repeating a
	// request that failed with KindReasoning.
	Forget bool
}

// Calling says whether an answer may call tools. Tools that must not be called are sent all
// the same, because the provider has them in its cache.
type Calling byte

// The values of Calling.
const (
	MayCall       Calling = iota
	ShouldNotCall         // calls are forbidden if that leaves the provider's cache valid
	MustNotCall           // calls are forbidden
)

// A Role is the author of a message.
type Role string

// The roles of messages. The system prompt is not a message.
const (
	User      Role = "user"
	Assistant Role = "assistant"
	ToolRole  Role = "tool" // the result of one call
)

// A Message is one entry of the history. It never changes, so that its encoded form
// can be cached.
type Message struct {
	Role      Role
	Text      string
	Images    []Image
	Documents []Document
	Calls     []Call     // calls that a message of the assistant asks for
	CallID    string     // call that a tool result answers, or that returned the images of a user message
	Failed    bool       // true if a tool result is a failure
	Reasoning *Reasoning // reasoning of the assistant, which the provider wants back byte for byte

	wire wire
	run  atomic.Pointer[run] // cached run that ends with this message
}

// An Image is a picture in a message.
type Image struct {
	MediaType string
	Data      []byte
}

// A Document is a file that the model reads. Providers take PDF alone.
type Document struct {
	Name      string // name of the file, without its folder
	MediaType string
	Data      []byte
}

// PDF is the media type of the documents that providers take.
const PDF = "application/pdf"

// Reasoning is the reasoning of a model: text for people, and data that only the
// provider understands.
type Reasoning struct {
	Text      string
	Opaque    string // signed thinking of Anthropic Messages
	Encrypted string // encrypted items of OpenAI Responses
}

// A Call is a tool call that a model asks for.
type Call struct {
	ID        string
	Name      string
	Arguments json.RawMessage // bytes that the model wrote; in a Reply they may be invalid JSON
}

// A Tool describes a tool to a model.
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

// wire caches the encoded form of a value that never changes. It holds only the form
// in the last format, because a session rarely changes its provider.
type wire struct{ form atomic.Pointer[form] }

// A form is an encoded value.
type form struct {
	format string
	before *Message // message before it, which the encoding may depend on
	bytes  []byte
}

// kept returns the cached form, or nil if there is none.
func (w *wire) kept(format string, before *Message) []byte {
	if f := w.form.Load(); f != nil && f.format == format && f.before == before {
		return f.bytes
	}
	return nil
}

// get returns the cached form, encoding it if there is none.
func (w *wire) get(format string, before *Message, encode func() []byte) []byte {
	b := w.kept(format, before)
	if b == nil {
		b = encode()
		w.form.Store(&form{format, before, b})
	}
	return b
}

// An Encode encodes a message. The result may depend on the message before it, which
// is nil for the first one: some formats join messages that others separate.
type Encode func(before, m *Message) []byte

// Wire returns the message in the named format. It encodes the message only once.
func (m *Message) Wire(format string, before *Message, encode Encode) []byte {
	return m.wire.get(format, before, func() []byte { return encode(before, m) })
}

// runLength is the number of messages that are joined into a run. The messages after
// the last whole run are cached one by one.
const runLength = 64

// A run is a number of consecutive messages, encoded and joined.
type run struct {
	format   string
	before   *Message
	messages []*Message
	bytes    []byte
}

// AppendWire appends the messages in the named format to pieces, in order. The result
// is the same as of calling Wire for each message, but old messages are cached in few
// long pieces: with thousands of messages, visiting each of them costs more than copying
// the bytes. before is the message before the first one, and may be nil.
func AppendWire(pieces [][]byte, before *Message, messages []*Message, format string, encode Encode) [][]byte {
	format = unique.Make(format).Value() // all messages have the same string, so that comparing it reads no memory
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

// joined returns the encoded run of the messages, encoding it if it is not cached.
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
		m.wire.form.Store(nil) // the run contains it
	}
	return r.bytes
}

// Wire returns the tools in the named format. It encodes them only once.
func (t *Tools) Wire(format string, encode func(*Tools) []byte) []byte {
	return t.wire.get(format, nil, func() []byte { return encode(t) })
}

// A Delta is a piece of a reply that is arriving. Exactly one of Text,
// Reasoning and Arguments is set.
type Delta struct {
	Text      string
	Reasoning string
	Arguments string // piece of the arguments of the call below
	CallID    string
	CallName  string
}

// A Reply is one whole answer of a model.
type Reply struct {
	Text      string
	Calls     []Call
	Reasoning *Reasoning
	Usage     Usage
	Cost      *float64 // price in US dollars; nil if it is not known
	Finish    string   // reason that the model stopped: FinishStop and the others, or a word of the provider
	Declined  string   // reason of the provider for a refusal; empty if it gave none
	Model     string   // model that answered, as the provider names it
	Another   bool     // true if that is known to be another model than the one that was asked
	RequestID string   // id that the provider gave the request
}

// Usage is the cost of a request in tokens.
type Usage struct {
	Input      int64 `json:"inputTokens"` // tokens of the request that did not come from the cache
	Output     int64 `json:"outputTokens"`
	CacheRead  int64 `json:"cacheReadTokens"`
	CacheWrite int64 `json:"cacheWriteTokens"`
	Reasoning  int64 `json:"reasoningTokens"`
	// CacheWrite1h is the part of CacheWrite that is cached for an hour.
	CacheWrite1h int64 `json:"cacheWrite1hTokens,omitempty"`
}

// Add returns the sum of two costs.
func (u Usage) Add(v Usage) Usage {
	return Usage{
		Input:      u.Input + v.Input,
		Output:     u.Output + v.Output,
		CacheRead:  u.CacheRead + v.CacheRead,
		CacheWrite: u.CacheWrite + v.CacheWrite,
		Reasoning:  u.Reasoning + v.Reasoning,

		CacheWrite1h: u.CacheWrite1h + v.CacheWrite1h,
	}
}

// A Kind is a kind of failure.
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
	KindNetwork    Kind = "network"    // the provider could not be reached, or closed the connection
	KindStream     Kind = "stream"     // the reply broke off or was not understood
	KindTimeout    Kind = "timeout"    // nothing arrived for too long
	KindScenario   Kind = "scenario"   // a scripted model has no reply for this request
)

// An Error is the failure of an attempt. Its message names the thing, the reason and
// the way out in one sentence.
type Error struct {
	Kind       Kind
	Status     int // HTTP status; zero if there was none
	Message    string
	RetryAfter time.Duration // time that the provider wants us to wait; zero if it did not say
	Garbled    bool          // true if there was an answer, and it cannot be one of a model
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
