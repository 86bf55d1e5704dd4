package openai

import (
	"cmp"
	"io"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/remote"
)

// A builder is a remote.Decoder.
type builder struct {
	*remote.Draft
	query *remote.Query
	calls []*call

	own     remote.Gather // members of the message that only the provider understands
	refused bool          // true if the model said why it does not answer

	thoughtsIn string // member in which reasoning comes; empty before the first piece
	plain      *plainReader
	scratch    []byte // buffer for the text that the plainReader has read
}

// A call is a tool call that is arriving, with the provider's numbers and id.
type call struct {
	*remote.Call
	choice, index int // index is -1 if the provider sends none
	theirs        string
	own           remote.Gather // members of the call that only the provider understands
}

func newBuilder(q *remote.Query, on func(model.Delta)) *builder {
	return &builder{Draft: remote.NewDraft(q, on), query: q, plain: newPlainReader()}
}

// Event implements remote.Decoder.
func (b *builder) Event(data []byte) (remote.Progress, error) {
	if string(data) == "[DONE]" {
		return remote.Over, b.end()
	}
	err := b.addEvent(data)
	if b.Finish != "" {
		return remote.Finished, err
	}
	return remote.Going, err
}

func (b *builder) addEvent(data []byte) error {
	if content, ok := b.plain.Append(b.scratch[:0], data); ok {
		b.scratch = content
		b.addPlainly(content)
		return nil
	}
	c, err := decodeChunk(data)
	if err != nil {
		return err
	}
	return b.add(c)
}

// end returns an error if the stream ended before the reply was complete.
func (b *builder) end() error {
	if b.Finish == "" {
		return io.ErrUnexpectedEOF
	}
	return nil
}

// add adds a chunk of a stream.
func (b *builder) add(c *chunk) error {
	if err := b.start(c); err != nil {
		return err
	}
	for i := range c.Choices {
		one := &c.Choices[i]
		if err := one.failed(); err != nil {
			return err
		}
		b.addPart(one, &one.Delta)
		for j := range one.Delta.Calls {
			if err := b.Excess(); err != nil { // finding the call of a piece takes longer with every call
				return err
			}
			b.addCall(one.Index, &one.Delta.Calls[j])
		}
	}
	return nil
}

// addPlainly is add for a chunk that the plainReader has read.
func (b *builder) addPlainly(text []byte) {
	p := b.plain
	if b.Model == "" {
		b.Model = string(p.model)
	}
	if b.ID == "" {
		b.ID = string(p.id)
	}
	p.id, p.model = nil, nil // the memory of the chunk is used again
	if p.counted {
		b.count(&p.usage)
	}
	b.Finish = cmp.Or(p.finish, b.Finish)
	switch p.piece {
	case textPiece:
		b.AddTextBytes(text)
	case thoughtPiece:
		if b.thoughtsIn == "" && len(text) > 0 {
			b.thoughtsIn = p.thoughts
		}
		b.AddReasoningBytes(text)
	case callPiece:
		part := callPart{Index: &p.call}
		c := b.find(p.choice, &part)
		if c == nil {
			c = b.newCall(p.choice, &part)
		}
		b.AddArgumentsBytes(c.Call, text)
	}
}

// Whole implements remote.Decoder. Each call in the reply is complete, even if several
// have the same id.
func (b *builder) Whole(data []byte) error {
	c, err := decodeChunk(data)
	if err != nil {
		return err
	}
	if err := b.start(c); err != nil {
		return err
	}
	if len(c.Choices) == 0 {
		return remote.BadReply("it has no choices")
	}
	for i := range c.Choices {
		one := &c.Choices[i]
		if err := one.failed(); err != nil {
			return err
		}
		b.addPart(one, &one.Message)
		for j := range one.Message.Calls {
			p := &one.Message.Calls[j]
			b.extend(b.newCall(one.Index, p), p)
		}
	}
	return nil
}

// start reads the members of a chunk beside the choices.
func (b *builder) start(c *chunk) error {
	if c.Error != nil {
		return c.Error
	}
	b.Model = cmp.Or(b.Model, c.Model)
	b.ID = cmp.Or(b.ID, c.ID)
	if c.Usage != nil {
		b.count(c.Usage)
	}
	return nil
}

func (b *builder) count(u *usage) {
	if u := u.model(); u != (model.Usage{}) { // some servers end with a usage that says nothing, after one that does
		b.Usage = u
	}
}

func (b *builder) addPart(c *choice, p *part) {
	b.Finish = cmp.Or(finishOf(c.Finish), b.Finish)
	b.refused = b.refused || p.Refusal != ""
	if piece, member := p.thinking(); piece != "" {
		b.thoughtsIn = cmp.Or(b.thoughtsIn, member)
		b.AddReasoning(piece)
	}
	b.own.Add(p.Extra)
	b.AddText(cmp.Or(p.Content.Text, p.Refusal))
	b.AddDeclined(p.Refusal)
}

// addCall adds a piece of a call to its call.
func (b *builder) addCall(choice int, p *callPart) {
	c := b.find(choice, p)
	if c == nil {
		c = b.newCall(choice, p)
	}
	b.extend(c, p)
}

func (b *builder) extend(c *call, p *callPart) {
	if name := p.Function.Name; name != c.Name { // some providers repeat the name with every piece
		b.AddName(c.Call, name)
	}
	c.own.Add(p.Extra)
	b.AddArguments(c.Call, string(p.Function.Arguments))
}

// find returns the call that a piece continues, or nil if it begins a new one. The index
// should identify the call, but some providers do not send it and others send the same
// one for every call. The id and the name decide then.
func (b *builder) find(choice int, p *callPart) *call {
	for i := len(b.calls) - 1; i >= 0; i-- {
		c := b.calls[i]
		switch {
		case p.Index != nil && c.choice == choice && c.index == *p.Index:
			if p.begins(c) {
				return nil
			}
			return c
		case p.Index == nil && p.ID != "" && c.theirs == p.ID:
			return c
		case p.Index == nil && p.ID == "" && p.Function.Name == "":
			return c
		}
	}
	return nil
}

// begins reports whether a piece with the same index as c begins another call.
func (p *callPart) begins(c *call) bool {
	return p.ID != "" && c.theirs != "" && p.ID != c.theirs && p.Function.Name != ""
}

func (b *builder) newCall(choice int, p *callPart) *call {
	c := &call{Call: b.BeginCall(p.ID, ""), choice: choice, index: -1, theirs: p.ID}
	if p.Index != nil {
		c.index = *p.Index
	}
	b.calls = append(b.calls, c)
	return c
}
