package openai

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"io"
	"strings"

	"github.com/abide-run/abide/internal/model"
)

// A builder puts a reply together and tells about each piece.
type builder struct {
	req *model.Request
	on  func(model.Delta)

	text, reasoning strings.Builder
	calls           []*call
	taken           map[string]bool // ids of calls; made when the first call comes
	usage           model.Usage
	finish          string
	model           string
	requestID       string

	decoded int // events that were decoded in full
	plain   plainText
	scratch []byte // for the text of the others
}

// A call is a tool call that is arriving.
type call struct {
	choice, index int // what the provider calls it; index is -1 if it gives none
	theirs        string
	id, name      string
	arguments     strings.Builder
}

func newBuilder(req *model.Request, on func(model.Delta)) *builder {
	if on == nil {
		on = func(model.Delta) {}
	}
	return &builder{req: req, on: on}
}

// event adds an event of a stream. The first ones also say who answers, so they
// are decoded in full.
func (b *builder) event(data []byte) error {
	if b.model != "" || b.decoded > 1 {
		if content, ok := b.plain.content(b.scratch[:0], data); ok {
			b.scratch = content
			b.text.Write(content)
			b.tell(len(content))
			return nil
		}
	}
	b.decoded++
	c, err := decodeChunk(data)
	if err != nil {
		return err
	}
	return b.add(c)
}

// add adds a chunk of a stream.
func (b *builder) add(c *chunk) error {
	if err := b.start(c); err != nil {
		return err
	}
	for i := range c.Choices {
		one := &c.Choices[i]
		b.addPart(one, &one.Delta)
		for j := range one.Delta.Calls {
			b.addCall(one.Index, &one.Delta.Calls[j])
		}
	}
	return nil
}

// whole adds a reply that was not streamed. Each of its calls is a whole one,
// whatever it is called.
func (b *builder) whole(c *chunk) error {
	if err := b.start(c); err != nil {
		return err
	}
	if len(c.Choices) == 0 {
		return badReply{"its reply has no choices"}
	}
	for i := range c.Choices {
		one := &c.Choices[i]
		b.addPart(one, &one.Message)
		for j := range one.Message.Calls {
			p := &one.Message.Calls[j]
			b.extend(b.newCall(one.Index, p), p)
		}
	}
	return nil
}

// end checks that the model came to an end.
func (b *builder) end() error {
	if b.finish == "" {
		return io.ErrUnexpectedEOF
	}
	return nil
}

func (b *builder) reply() *model.Reply {
	r := &model.Reply{
		Text:      b.text.String(),
		Usage:     b.usage,
		Finish:    b.finish,
		Model:     cmp.Or(b.model, b.req.Model),
		RequestID: b.requestID,
	}
	for _, c := range b.calls {
		r.Calls = append(r.Calls, model.Call{ID: c.id, Name: c.name, Arguments: json.RawMessage(c.arguments.String())})
	}
	if b.reasoning.Len() > 0 {
		r.Reasoning = &model.Reasoning{Text: b.reasoning.String()}
	}
	return r
}

// start takes what stands beside the choices.
func (b *builder) start(c *chunk) error {
	if c.Error != nil {
		return c.Error
	}
	b.model = cmp.Or(b.model, c.Model)
	b.requestID = cmp.Or(b.requestID, c.ID)
	if c.Usage != nil {
		b.usage = c.Usage.model()
	}
	return nil
}

func (b *builder) addPart(c *choice, p *part) {
	b.finish = cmp.Or(c.Finish, b.finish)
	if thought := p.thinking(); thought != "" {
		b.reasoning.WriteString(thought)
		b.on(model.Delta{Reasoning: thought})
	}
	content := cmp.Or(string(p.Content), p.Refusal)
	b.text.WriteString(content)
	b.tell(len(content))
}

// tell gives away the last n bytes of the text. They share its memory, so that
// a long stream does not allocate for every piece.
func (b *builder) tell(n int) {
	if n > 0 {
		all := b.text.String()
		b.on(model.Delta{Text: all[len(all)-n:]})
	}
}

// addCall adds a piece of a call to the call it belongs to.
func (b *builder) addCall(choice int, p *callPart) {
	c := b.find(choice, p)
	if c == nil {
		c = b.newCall(choice, p)
	}
	b.extend(c, p)
}

func (b *builder) extend(c *call, p *callPart) {
	if name := p.Function.Name; name != c.name { // some repeat it with every piece
		c.name += name
	}
	if piece := string(p.Function.Arguments); piece != "" {
		c.arguments.WriteString(piece)
		b.on(model.Delta{Arguments: piece, CallID: c.id, CallName: c.name})
	}
}

// find returns the call that a piece goes on with, or nil if it begins one.
// The index should tell, but some providers leave it out and others give every
// call the same: then the id and the name do.
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

// begins reports whether a piece with the index of c is another call.
func (p *callPart) begins(c *call) bool {
	return p.ID != "" && c.theirs != "" && p.ID != c.theirs && p.Function.Name != ""
}

func (b *builder) newCall(choice int, p *callPart) *call {
	c := &call{choice: choice, index: -1, theirs: p.ID, id: b.uniqueID(p.ID)}
	if p.Index != nil {
		c.index = *p.Index
	}
	b.calls = append(b.calls, c)
	return c
}

// uniqueID returns id if no other call of the conversation has it. Some
// providers number the calls of each reply from zero, or give no ids at all.
func (b *builder) uniqueID(id string) string {
	if b.taken == nil {
		b.taken = make(map[string]bool)
		for _, m := range b.req.Messages {
			for _, c := range m.Calls {
				b.taken[c.ID] = true
			}
		}
	}
	if id == "" || b.taken[id] {
		id = "call_" + rand.Text()
	}
	b.taken[id] = true
	return id
}
