package scripted

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/local"
)

// A reply is the reply of a rule.
type reply struct {
	text       *string  // nil if there is none
	deltas     []string // pieces of the text, instead of text
	calls      []model.Call
	usage      *model.Usage  // nil to estimate it
	finish     string        // empty for the usual value
	delay      time.Duration // time before the reply
	deltaDelay time.Duration // time before each piece
	failure    *failure      // nil if the reply never fails
}

// A failure is the failure of an attempt.
type failure struct {
	status      int
	kind        model.Kind
	message     string
	retryAfter  time.Duration
	times       int // number of attempts that fail; 0 for all
	afterDeltas int // number of deltas that are sent before the failure
}

// play streams the reply and returns it.
func (r *reply) play(ctx context.Context, a *asked, on func(model.Delta)) (*model.Reply, error) {
	pieces := r.pieces(a)
	if err := r.stream(ctx, pieces, on); err != nil {
		return nil, err
	}
	whole := r.whole(a, strings.Join(pieces, ""))
	if on != nil {
		for _, c := range whole.Calls {
			on(model.Delta{Arguments: string(c.Arguments), CallID: c.ID, CallName: c.Name})
		}
	}
	return whole, nil
}

// fail streams the pieces before the failure and returns the error.
func (r *reply) fail(ctx context.Context, a *asked, on func(model.Delta)) error {
	pieces := r.pieces(a)
	pieces = pieces[:min(r.failure.afterDeltas, len(pieces))]
	if err := r.stream(ctx, pieces, on); err != nil {
		return err
	}
	f := r.failure
	return &model.Error{Kind: f.kind, Status: f.status, Message: f.message, RetryAfter: f.retryAfter}
}

func (r *reply) stream(ctx context.Context, pieces []string, on func(model.Delta)) error {
	for _, piece := range pieces {
		if err := pause(ctx, r.deltaDelay); err != nil {
			return err
		}
		if on != nil {
			on(model.Delta{Text: piece})
		}
	}
	return ctx.Err()
}

// pieces returns the pieces of the reply's text, with the placeholders filled in.
func (r *reply) pieces(a *asked) []string {
	if r.text != nil {
		return local.Pieces(a.fill(*r.text))
	}
	var pieces []string
	for _, d := range r.deltas {
		if piece := a.fill(d); piece != "" {
			pieces = append(pieces, piece)
		}
	}
	return pieces
}

func (r *reply) whole(a *asked, text string) *model.Reply {
	whole := &model.Reply{Text: text, Calls: slices.Clone(r.calls), Finish: r.finish, Model: a.req.Model}
	local.Identify(a.req.Messages, whole.Calls)
	if whole.Finish == "" {
		whole.Finish = "stop"
		if len(whole.Calls) > 0 {
			whole.Finish = "tool_calls"
		}
	}
	if r.usage != nil {
		whole.Usage = *r.usage
	} else {
		whole.Usage = local.Estimate(a.req, whole)
	}
	return whole
}

// placeholders are the names that a text may contain in double braces.
var placeholders = map[string]func(*asked) string{
	"user":    func(a *asked) string { return a.turn.Instruction },
	"result":  (*asked).result,
	"results": (*asked).results,
}

// fill replaces placeholders by their values, in one pass: placeholders inside a value
// are not replaced.
func (a *asked) fill(text string) string {
	if !strings.Contains(text, "{{") {
		return text
	}
	var pairs []string
	for name, value := range placeholders {
		pairs = append(pairs, "{{"+name+"}}", value(a))
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// fields returns the keys of "reply".
func (r *reply) fields() fields {
	return fields{
		"text":       r.readText,
		"deltas":     func(in *reader, key string) error { return in.list(func() error { return r.readDelta(in, key) }) },
		"calls":      func(in *reader, key string) error { return in.list(func() error { return r.readCall(in) }) },
		"usage":      r.readUsage,
		"finish":     into(&r.finish),
		"delay":      intoDuration(&r.delay),
		"deltaDelay": intoDuration(&r.deltaDelay),
		"error":      r.readFailure,
	}
}

func (r *reply) readText(in *reader, key string) error {
	text, err := in.template(key)
	r.text = &text
	return err
}

func (r *reply) readDelta(in *reader, key string) error {
	text, err := in.template(key)
	r.deltas = append(r.deltas, text)
	return err
}

func (r *reply) readCall(in *reader) error {
	at := in.next()
	c := model.Call{Arguments: json.RawMessage("{}")}
	err := in.object(fields{
		"tool":      into(&c.Name),
		"arguments": func(in *reader, key string) error { return readArguments(in, key, &c) },
	})
	if err == nil && c.Name == "" {
		err = in.errorf(at, `this call has no "tool": name the tool to call`)
	}
	r.calls = append(r.calls, c)
	return err
}

// readArguments reads the arguments of a call. An object is used as it is. Of a string
// the text is used, so that a scenario can contain malformed arguments.
func readArguments(in *reader, key string, c *model.Call) error {
	at := in.next()
	value, raw, err := decode[any](in, key)
	if err != nil {
		return err
	}
	switch v := value.(type) {
	case map[string]any:
		c.Arguments = compact(raw)
	case string:
		c.Arguments = json.RawMessage(v)
	default:
		return in.errorf(at, "%s must be %s", key, kindOfValue(nil))
	}
	return nil
}

func (r *reply) readUsage(in *reader, _ string) error {
	r.usage = new(model.Usage)
	return in.object(fields{
		"inputTokens":      intoInt[count](&r.usage.Input),
		"outputTokens":     intoInt[count](&r.usage.Output),
		"cacheReadTokens":  intoInt[count](&r.usage.CacheRead),
		"cacheWriteTokens": intoInt[count](&r.usage.CacheWrite),
		"reasoningTokens":  intoInt[count](&r.usage.Reasoning),
	})
}

func (r *reply) readFailure(in *reader, _ string) error {
	at := in.next()
	f := new(failure)
	r.failure = f
	err := in.object(fields{
		"status":      intoInt[httpError](&f.status),
		"kind":        func(in *reader, key string) error { return readKind(in, key, f) },
		"message":     into(&f.message),
		"retryAfter":  intoDuration(&f.retryAfter),
		"times":       intoInt[ordinal](&f.times),
		"afterDeltas": intoInt[count](&f.afterDeltas),
	})
	if err != nil {
		return err
	}
	return f.complete(in, at)
}

// kinds are the kinds of errors that a scenario can contain.
var kinds = []model.Kind{
	model.KindAuth, model.KindNotFound, model.KindRequest, model.KindOverflow, model.KindRateLimit,
	model.KindOverloaded, model.KindNetwork, model.KindStream, model.KindTimeout,
}

func readKind(in *reader, key string, f *failure) error {
	at := in.next()
	kind, _, err := decode[string](in, key)
	if err != nil {
		return err
	}
	f.kind = model.Kind(kind)
	if !slices.Contains(kinds, f.kind) {
		return in.errorf(at, "unknown kind %q; the nearest known kind is %q", kind, nearest(kind, kinds))
	}
	return nil
}

// complete sets the fields that the file does not contain.
func (f *failure) complete(in *reader, at int) error {
	switch {
	case f.kind == "" && f.status == 0:
		return in.errorf(at, `this error has neither "status" nor "kind": give one of them`)
	case f.kind == "":
		f.kind = kindOf(f.status)
	}
	if f.message == "" {
		f.message = fmt.Sprintf("the scenario fails this request with %s", f.word())
	}
	return nil
}

// word describes the failure for the error message.
func (f *failure) word() string {
	if f.status != 0 {
		return strings.TrimSpace(fmt.Sprintf("HTTP status %d %s", f.status, http.StatusText(f.status)))
	}
	return fmt.Sprintf("an error of kind %q", f.kind)
}

// kindOf returns the kind of error that an HTTP status usually means.
func kindOf(status int) model.Kind {
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return model.KindAuth
	case status == http.StatusNotFound:
		return model.KindNotFound
	case status == http.StatusRequestTimeout:
		return model.KindTimeout
	case status == http.StatusRequestEntityTooLarge:
		return model.KindOverflow
	case status == http.StatusTooManyRequests:
		return model.KindRateLimit
	case status >= 500:
		return model.KindOverloaded
	}
	return model.KindRequest
}
