package anthropic

import (
	"cmp"
	"encoding/json"
	"io"
	"strings"

	"github.com/abide-run/abide/internal/lazyregexp"
	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/plainjson"
	"github.com/abide-run/abide/internal/model/remote"
)

// A builder is a remote.Decoder.
type builder struct {
	*remote.Draft
	query *remote.Query
	open  map[int]*arriving // blocks that are not complete yet, by index

	plain   *plainReader
	scratch []byte
}

// arriving is a block that is not complete yet.
type arriving struct {
	call  *remote.Call
	input json.RawMessage // arguments that came with the start of a call

	part                *remote.Part // part of a block of thinking, or of one that we do not know
	thinking, signature strings.Builder

	kind string        // type of a block that we do not know; empty if we do
	own  remote.Gather // members of the block that only the provider understands
	json strings.Builder
}

func newBuilder(q *remote.Query, on func(model.Delta)) *builder {
	return &builder{Draft: remote.NewDraft(q, on), query: q, open: make(map[int]*arriving), plain: newPlainReader()}
}

// Event implements remote.Decoder.
func (b *builder) Event(data []byte) (remote.Progress, error) {
	if text, ok := b.plain.Append(b.scratch[:0], data); ok {
		b.scratch = text
		b.extendPlainly(text)
		return remote.Going, nil
	}
	var e event
	if err := decode(data, &e); err != nil {
		return remote.Going, err
	}
	return b.add(&e)
}

func (b *builder) add(e *event) (remote.Progress, error) {
	switch e.Type {
	case "message_start":
		b.Model, b.ID = e.Message.Model, e.Message.ID
		e.Message.Usage.update(&b.Usage)
	case "content_block_start":
		return remote.Going, b.begin(e.Index, e.Block)
	case "content_block_delta":
		b.extend(e.Index, &e.Delta)
	case "content_block_stop":
		b.close(e.Index)
	case "message_delta":
		e.Usage.update(&b.Usage)
		if e.Delta.StopReason != "" {
			b.stop(e.Delta.StopReason, e.Delta.StopDetails)
			return remote.Finished, nil
		}
	case "message_stop":
		if b.Finish == "" {
			return remote.Going, io.ErrUnexpectedEOF
		}
		return remote.Over, nil
	case "error":
		return remote.Going, cmp.Or(e.Error, new(remote.Failure))
	default: // other events are ignored, unless a proxy reports an error
		if e.Error != nil {
			return remote.Going, e.Error
		}
	}
	return remote.Going, nil
}

// Whole implements remote.Decoder.
func (b *builder) Whole(data []byte) error {
	var m message
	if err := decode(data, &m); err != nil {
		return err
	}
	switch {
	case m.Error != nil:
		return m.Error
	case m.Content == nil:
		return remote.BadReply("it has no content")
	case m.StopReason == "":
		return io.ErrUnexpectedEOF
	}
	b.Model, b.ID = m.Model, m.ID
	m.Usage.update(&b.Usage)
	for i, raw := range m.Content {
		if err := b.begin(i, raw); err != nil {
			return err
		}
		if a := b.open[i]; a != nil && a.part != nil {
			if a.kind != "" || b.sendsBack(a) {
				a.part.Raw = raw
			}
			delete(b.open, i)
		}
		b.close(i)
	}
	b.stop(m.StopReason, m.StopDetails)
	return nil
}

// begin begins a block, which may have content already.
func (b *builder) begin(index int, raw json.RawMessage) error {
	var got block
	if err := decode(raw, &got); err != nil {
		return err
	}
	b.close(index)
	own, err := remote.OwnMembers(raw, blockMembers[got.Type])
	if err != nil {
		return remote.NotUnderstood(raw, err)
	}
	switch got.Type {
	case "":
	case "text":
		if !b.EndsWithText() {
			b.BeginText("", "").Own = own
		}
		b.AddText(got.Text)
	case "tool_use":
		b.open[index] = &arriving{call: b.BeginCall(got.ID, got.Name), input: got.Input}
		b.open[index].call.Part.Own = own
	case "redacted_thinking":
		b.Add(remote.Part{Raw: raw})
	case "thinking":
		b.BeginParagraph()
		a := &arriving{part: b.Add(remote.Part{})}
		b.open[index] = a
		a.own.Add(own)
		b.think(a, got.Thinking, got.Signature)
	default:
		a := &arriving{part: b.Add(remote.Part{}), kind: got.Type}
		b.open[index] = a
		a.own.Add(own)
	}
	return nil
}

// blockMembers are the members of blocks that are not the provider's own, by the type of
// the block.
var blockMembers = map[string][]string{
	"text": {"type", "text"}, "tool_use": {"type", "id", "name", "input"}, "thinking": {"type", "thinking", "signature"},
}

// sendsBack reports whether thinking is sent back. The provider refuses it without its
// signature, which a stream that was cut off lacks.
func (b *builder) sendsBack(a *arriving) bool {
	return a.signature.Len() > 0 || b.query.As().NeedsThoughts != ""
}

func (b *builder) think(a *arriving, piece, signature string) {
	a.thinking.WriteString(piece)
	a.signature.WriteString(signature)
	b.AddReasoning(piece)
}

// extend adds a piece to a block. A piece of text is accepted without a block.
func (b *builder) extend(index int, d *delta) {
	a := b.open[index]
	switch {
	case d.Type == "text_delta":
		b.AddText(d.Text)
	case a == nil:
	case a.kind != "":
		a.json.WriteString(d.PartialJSON)
		a.own.Add(d.Own)
	case a.part != nil:
		a.own.Add(d.Own)
		b.think(a, d.Thinking, d.Signature)
	case a.call != nil:
		b.AddArguments(a.call, d.PartialJSON)
	}
}

// extendPlainly is extend for a piece that the plainReader has read.
func (b *builder) extendPlainly(text []byte) {
	a := b.open[b.plain.index]
	switch {
	case b.plain.piece == textPiece:
		b.AddTextBytes(text)
	case a == nil:
	case a.kind != "":
		if b.plain.piece == inputPiece {
			a.json.Write(text)
		}
	case b.plain.piece == thoughtPiece && a.part != nil:
		a.thinking.Write(text)
		b.AddReasoningBytes(text)
	case b.plain.piece == inputPiece && a.call != nil:
		b.AddArgumentsBytes(a.call, text)
	}
}

// close completes a block. The arguments of a call usually arrive in pieces; some
// providers send them with the start of the block.
func (b *builder) close(index int) {
	a := b.open[index]
	if a == nil {
		return
	}
	delete(b.open, index)
	switch {
	case a.kind != "":
		a.part.Raw = a.unknown()
	case a.part != nil:
		if b.sendsBack(a) {
			a.part.Raw = thought(a.thinking.String(), a.signature.String(), a.own.Members())
		}
	case a.call.Empty() && isObject(a.input) && !emptyObject.Match(a.input):
		b.AddArguments(a.call, string(a.input))
	}
}

var emptyObject = lazyregexp.New(`^\s*{\s*}\s*$`)

// thought returns the JSON of a whole block of thinking.
func thought(thinking, signature string, own remote.Members) json.RawMessage {
	raw := plainjson.AppendString([]byte(`{"type":"thinking","thinking":`), thinking)
	raw = plainjson.AppendString(append(raw, `,"signature":`...), signature)
	return append(own.Append(raw, ","), '}')
}

// unknown returns the JSON of a whole block of a type that we do not know.
func (a *arriving) unknown() json.RawMessage {
	own := a.own.Members()
	if own == nil {
		return nil // there was too much of it
	}
	if input := a.json.String(); json.Valid([]byte(input)) {
		own["input"] = json.RawMessage(input)
	}
	return append(own.Append([]byte{'{'}, ""), '}')
}

// finishes maps stop reasons to the finish reasons of package model.
var finishes = map[string]string{
	"end_turn": model.FinishStop, "stop_sequence": model.FinishStop, "tool_use": model.FinishCalls,
	"max_tokens": model.FinishLength, "model_context_window_exceeded": model.FinishLength,
	"refusal": model.FinishRefusal, "pause_turn": model.FinishPause,
}

// stop records the stop reason. If the model declined to answer, the calls of the reply
// are dropped.
func (b *builder) stop(reason string, details stopDetails) {
	b.Finish = cmp.Or(finishes[reason], reason)
	if reason != "refusal" {
		return
	}
	b.DropCalls()
	b.AddDeclined(details.Explanation)
	if b.IsEmpty() {
		b.AddText(cmp.Or(details.Explanation, "The model declined to answer."))
	}
}

// Reply implements remote.Decoder. The outline of the reply is in its opaque reasoning.
func (b *builder) Reply() *model.Reply {
	r := b.Draft.Reply()
	if outline := b.Outline(); outline != "" {
		if r.Reasoning == nil {
			r.Reasoning = new(model.Reasoning)
		}
		r.Reasoning.Opaque = outline
	}
	return r
}
