package remote

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/abide-run/abide/internal/model"
)

// A Draft is a reply that is arriving. It passes each piece on to a callback, and
// records the order of the parts.
type Draft struct {
	Usage  model.Usage
	Finish string // see model.Reply
	Model  string // model that answers
	ID     string // the provider's id of the reply

	query           *Query
	on              func(model.Delta)
	text, reasoning strings.Builder
	declined        strings.Builder // see model.Reply
	size            int             // see Size
	excess          error           // see Excess
	calls           []*Call
	dropped         bool            // true if the calls were taken back
	taken           map[string]bool // ids of calls in the conversation; created with the first call
	parts           []*Part
	textPart        *Part // text part that pieces are added to
	apart           bool  // true if the next piece of reasoning begins a paragraph
}

// A Call is a tool call that is arriving.
type Call struct {
	ID, Name string
	Part     *Part

	answer    bool // true if the arguments are the answer of the model
	arguments strings.Builder
}

// Empty reports whether no piece of the arguments has arrived yet.
func (c *Call) Empty() bool { return c.arguments.Len() == 0 }

const (
	// maxCalls is the most calls that a reply may have. Models make some dozens at once.
	maxCalls = 1000
	// maxName is the longest name of a tool in a reply, in bytes. Providers allow 64 or 128.
	maxName = 1 << 10
)

// Size returns how much of the reply has arrived: the bytes of text, reasoning and arguments,
// and the number of calls. A stream that does not make it grow gives only signs of life.
func (d *Draft) Size() int { return d.size }

// Excess returns an error if the reply has more calls than any reply should have, or a call
// with a longer name; nil otherwise.
func (d *Draft) Excess() error { return d.excess }

// whole returns the arguments. If the reply was cut off before the first piece of them,
// it returns invalid JSON, so that the call fails instead of running without arguments.
func (c *Call) whole(cut bool) json.RawMessage {
	switch {
	case !c.Empty():
		return json.RawMessage(c.arguments.String())
	case cut:
		return json.RawMessage("{")
	}
	return json.RawMessage("{}")
}

// NewDraft returns an empty reply to q. on is called with each piece, unless it is nil.
func NewDraft(q *Query, on func(model.Delta)) *Draft {
	if on == nil {
		on = func(model.Delta) {}
	}
	return &Draft{query: q, on: on}
}

// AddText adds a piece of text.
func (d *Draft) AddText(piece string) {
	if piece != "" {
		d.size += len(piece)
		d.separateText()
		d.text.WriteString(piece)
		d.sendText(len(piece))
	}
}

// AddTextBytes adds a piece of text. The bytes are copied.
func (d *Draft) AddTextBytes(piece []byte) {
	if len(piece) > 0 {
		d.size += len(piece)
		d.separateText()
		d.text.Write(piece)
		d.sendText(len(piece))
	}
}

// sendText passes the last n bytes of the text to the callback. They share the memory of the
// text, so that a long stream does not allocate for every piece.
func (d *Draft) sendText(n int) {
	if d.textPart == nil {
		d.textPart = d.Add(Part{text: true})
	}
	d.textPart.Text += n
	all := d.text.String()
	d.on(model.Delta{Text: all[len(all)-n:]})
}

// separateText inserts a blank line if a text part begins after another one.
func (d *Draft) separateText() {
	if d.textPart != nil && d.textPart.apart && d.textPart.Text == 0 && d.text.Len() > 0 {
		d.text.WriteString(gap)
		d.textPart.Gap = len(gap)
		d.on(model.Delta{Text: gap})
	}
}

// gap is the blank line between two texts or paragraphs.
const gap = "\n\n"

// EndsWithText reports whether the last part is text.
func (d *Draft) EndsWithText() bool {
	return len(d.parts) > 0 && d.parts[len(d.parts)-1].kind() == partText
}

// BeginText begins another text part, with the provider's id and phase. The blank line
// before it is only for people: the provider gets its texts back without it.
func (d *Draft) BeginText(id, phase string) *Part {
	d.textPart = d.Add(Part{ID: id, Phase: phase, text: true, apart: true})
	return d.textPart
}

// AddReasoning adds a piece of the readable reasoning.
func (d *Draft) AddReasoning(piece string) {
	if piece != "" {
		d.size += len(piece)
		from := d.separateReasoning()
		d.reasoning.WriteString(piece)
		d.sendReasoning(from)
	}
}

// AddReasoningBytes adds a piece of the readable reasoning. The bytes are copied.
func (d *Draft) AddReasoningBytes(piece []byte) {
	if len(piece) > 0 {
		d.size += len(piece)
		from := d.separateReasoning()
		d.reasoning.Write(piece)
		d.sendReasoning(from)
	}
}

// separateReasoning inserts a blank line if a paragraph begins, and returns the offset of the
// piece that includes it.
func (d *Draft) separateReasoning() int {
	from := d.reasoning.Len()
	if d.apart && from > 0 {
		d.reasoning.WriteString(gap)
	}
	d.apart = false
	return from
}

func (d *Draft) sendReasoning(from int) { d.on(model.Delta{Reasoning: d.reasoning.String()[from:]}) }

// BeginParagraph begins another paragraph of reasoning with the next piece.
func (d *Draft) BeginParagraph() { d.apart = true }

// BeginCall adds a call without arguments. The id is replaced if the conversation has it
// already, and the name becomes our name of the tool.
func (d *Draft) BeginCall(id, name string) *Call {
	c := &Call{ID: d.uniqueID(id), Name: d.toolName(name), Part: d.Add(Part{Call: true})}
	c.answer = d.IsAnswer(c)
	c.Part.hidden = c.answer
	d.calls = append(d.calls, c)
	d.size++
	if len(d.calls) > maxCalls {
		d.excess = BadReply(fmt.Sprintf("it has more than %d calls", maxCalls))
	}
	d.AddName(c, "")
	return c
}

// AddName adds a piece of the name of a call's tool.
func (d *Draft) AddName(c *Call, piece string) {
	if len(c.Name)+len(piece) > maxName {
		d.excess = BadReply(fmt.Sprintf("the name of a call is longer than %d bytes", maxName))
		return
	}
	c.Name += piece
}

// AddDeclined adds a piece of the reason for which the model declines.
func (d *Draft) AddDeclined(piece string) { d.declined.WriteString(piece) }

// AddArguments adds a piece of a call's arguments.
func (d *Draft) AddArguments(c *Call, piece string) {
	if piece != "" {
		d.size += len(piece)
		c.arguments.WriteString(piece)
		d.sendArguments(c, len(piece))
	}
}

// AddArgumentsBytes adds a piece of a call's arguments. The bytes are copied.
func (d *Draft) AddArgumentsBytes(c *Call, piece []byte) {
	if len(piece) > 0 {
		d.size += len(piece)
		c.arguments.Write(piece)
		d.sendArguments(c, len(piece))
	}
}

func (d *Draft) sendArguments(c *Call, n int) {
	all := c.arguments.String()
	if c.answer = c.answer || d.IsAnswer(c); c.answer {
		d.on(model.Delta{Text: all[len(all)-n:]})
		return
	}
	d.on(model.Delta{Arguments: all[len(all)-n:], CallID: c.ID, CallName: c.Name})
}

// DropCalls takes back all calls and their reasoning, so that the calls are not made.
func (d *Draft) DropCalls() { d.dropped = true }

// HasCalls reports whether there are calls.
func (d *Draft) HasCalls() bool { return len(d.calls) > 0 && !d.dropped }

// IsEmpty reports whether there is neither text nor a call.
func (d *Draft) IsEmpty() bool { return d.text.Len() == 0 && !d.HasCalls() }

// longestID is the longest id of a call that is kept, in bytes. It is in every record of the
// call, and no provider gets a longer one back anyway, see FitID.
const longestID = 256

// uniqueID returns id, or a new one if another call of the conversation has it, or it is
// empty or too long. Some providers number the calls of each reply from zero, or send no ids.
func (d *Draft) uniqueID(id string) string {
	if d.taken == nil {
		d.taken = make(map[string]bool)
		for _, m := range d.query.Messages {
			for _, c := range m.Calls {
				d.taken[c.ID] = true
			}
		}
	}
	if id == "" || len(id) > longestID || d.taken[id] {
		id = "call_" + rand.Text()
	}
	d.taken[id] = true
	return id
}

// toolName returns our name of a tool. It undoes FitName.
func (d *Draft) toolName(name string) string {
	if d.query.Tools == nil {
		return name
	}
	for _, t := range d.query.Tools.List {
		if t.Name != name && FitName(t.Name) == name {
			return t.Name
		}
	}
	return name
}

// Reply returns the reply as far as it has arrived.
func (d *Draft) Reply() *model.Reply {
	r := &model.Reply{Text: d.text.String(), Usage: d.Usage, Finish: d.Finish, Declined: d.declined.String(), Model: d.Model, RequestID: d.ID}
	for i, c := range d.calls {
		if d.dropped {
			break
		}
		if d.IsAnswer(c) {
			continue
		}
		cut := d.Finish == model.FinishLength && i == len(d.calls)-1
		r.Calls = append(r.Calls, model.Call{ID: c.ID, Name: c.Name, Arguments: c.whole(cut)})
	}
	d.answer(r)
	if d.reasoning.Len() > 0 {
		r.Reasoning = &model.Reasoning{Text: d.reasoning.String()}
	}
	return r
}

// IsAnswer reports whether a call is the model's answer in the form of a tool.
func (d *Draft) IsAnswer(c *Call) bool {
	return d.query.answerTool != "" && c.Name == d.query.answerTool
}

// answer makes the answer that the model gave by a tool the text of the reply. Beside
// calls it came too early: the model answers again when it has their results.
func (d *Draft) answer(r *model.Reply) {
	i := slices.IndexFunc(d.calls, d.IsAnswer)
	if i < 0 || d.dropped || len(r.Calls) > 0 {
		return
	}
	c := d.calls[i]
	r.Text = string(c.whole(d.Finish == model.FinishLength && i == len(d.calls)-1))
	if r.Finish == model.FinishCalls {
		r.Finish = model.FinishStop
	}
}
