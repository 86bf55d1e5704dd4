package responses

import (
	"cmp"
	"encoding/json"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/remote"
)

// A builder is a remote.Decoder.
type builder struct {
	*remote.Draft
	items   map[int]*arriving // items by their index in the output
	refused bool

	plain   *plainReader
	scratch []byte
}

// arriving is an item that is arriving.
type arriving struct {
	part    *remote.Part // part of a text or of reasoning
	call    *remote.Call
	summary int  // index of the last part of the summary
	told    bool // true if pieces of it have arrived
	done    bool
	unknown bool // true if the item is of a type that we do not know: it is sent back as it came
}

func newBuilder(q *remote.Query, on func(model.Delta)) *builder {
	return &builder{Draft: remote.NewDraft(q, on), items: make(map[int]*arriving), plain: newPlainReader()}
}

// Event implements remote.Decoder.
func (b *builder) Event(data []byte) (remote.Progress, error) {
	if text, ok := b.plain.Append(b.scratch[:0], data); ok {
		b.scratch = text
		b.extendPlainly(text)
		return remote.Going, nil
	}
	if string(data) == "[DONE]" { // some servers end every stream with it
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
	case "response.created", "response.in_progress":
		if r := e.Response; r != nil {
			b.Model, b.ID = cmp.Or(r.Model, b.Model), cmp.Or(r.ID, b.ID)
		}
	case "response.output_item.added":
		return remote.Going, b.begin(e.OutputIndex, e.Item)
	case "response.output_item.done":
		return remote.Going, b.complete(e.OutputIndex, e.Item)
	case "response.completed", "response.incomplete", "response.failed":
		return b.end(e)
	case "error":
		return remote.Going, e.failure()
	default:
		b.extend(e)
		if e.Type == "" && e.Error != nil { // an error of a proxy
			return remote.Going, e.Error
		}
	}
	return remote.Going, nil
}

// extend adds a piece to an item.
func (b *builder) extend(e *event) {
	piece := string(e.Delta)
	switch e.Type {
	case textDelta:
		b.AddText(piece)
	case "response.refusal.delta":
		b.refused = true
		b.AddDeclined(piece)
		b.AddText(piece)
	case inputDelta:
		if a := b.items[e.OutputIndex]; a != nil && a.call != nil {
			b.AddArguments(a.call, piece)
		}
	case summaryDelta:
		b.summarize(e.OutputIndex, e.SummaryIndex)
		b.AddReasoning(piece)
	case "response.reasoning_text.delta":
		b.summarize(e.OutputIndex, 0)
		b.AddReasoning(piece)
	}
}

// extendPlainly is extend for a piece that the plainReader has read.
func (b *builder) extendPlainly(text []byte) {
	switch p := b.plain; p.kind {
	case textDelta:
		b.AddTextBytes(text)
	case inputDelta:
		if a := b.items[p.index]; a != nil && a.call != nil {
			b.AddArgumentsBytes(a.call, text)
		}
	case summaryDelta:
		b.summarize(p.index, p.summary)
		b.AddReasoningBytes(text)
	}
}

// summarize begins a paragraph if the next piece of an item's summary belongs to another
// part of the summary.
func (b *builder) summarize(index, summary int) {
	if a := b.items[index]; a != nil {
		if !a.told || summary != a.summary {
			b.BeginParagraph()
		}
		a.told, a.summary = true, summary
	}
}

// begin begins an item without its content.
func (b *builder) begin(index int, raw json.RawMessage) error {
	var got item
	if err := decode(raw, &got); err != nil {
		return err
	}
	if b.items[index] == nil {
		b.items[index] = b.arrive(&got)
	}
	return nil
}

func (b *builder) arrive(got *item) *arriving {
	switch got.Type {
	case "message":
		return &arriving{part: b.BeginText(got.ID, got.Phase)}
	case "function_call":
		a := &arriving{call: b.BeginCall(got.CallID, got.Name)}
		a.call.Part.ID = got.ID
		return a
	case "reasoning":
		return &arriving{part: b.Add(remote.Part{})}
	case "":
		return new(arriving)
	}
	return &arriving{part: b.Add(remote.Part{}), unknown: true}
}

// textMembers and callMembers are the members of items that are not the provider's own.
var (
	textMembers = []string{"type", "id", "status", "role", "content", "phase"}
	callMembers = []string{"type", "id", "status", "call_id", "name", "arguments"}
)

// complete adds what is missing of an item, from the complete item.
func (b *builder) complete(index int, raw json.RawMessage) error {
	var got item
	if err := decode(raw, &got); err != nil {
		return err
	}
	a := b.items[index]
	if a == nil {
		a = b.arrive(&got)
		b.items[index] = a
	}
	if a.done {
		return nil
	}
	a.done = true
	switch {
	case a.call != nil:
		a.call.Part.Own, _ = remote.OwnMembers(raw, callMembers) // it was decoded already
		if a.call.Empty() {
			b.AddArguments(a.call, got.Arguments)
		}
	case a.unknown:
		a.part.Raw = raw
	case a.part == nil:
	case got.Type == "message":
		a.part.Own, _ = remote.OwnMembers(raw, textMembers)
		b.completeText(a, &got)
	case got.Type == "reasoning":
		b.completeThought(a, &got, raw)
	}
	return nil
}

func (b *builder) completeText(a *arriving, got *item) {
	a.part.ID, a.part.Phase = cmp.Or(got.ID, a.part.ID), cmp.Or(got.Phase, a.part.Phase)
	told := a.part.Text > 0
	for _, c := range got.Content {
		b.refused = b.refused || c.Refusal != ""
		if !told {
			b.AddDeclined(c.Refusal)
			b.AddText(cmp.Or(c.Text, c.Refusal))
		}
	}
}

// completeThought keeps an item of reasoning if it is encrypted. Other reasoning cannot
// be sent back, because the provider stores nothing.
func (b *builder) completeThought(a *arriving, got *item, raw json.RawMessage) {
	if got.Encrypted != "" {
		a.part.Raw = raw
	}
	if a.told {
		return
	}
	for _, t := range append(got.Summary, got.Content...) {
		b.BeginParagraph()
		b.AddReasoning(t.Text)
	}
}

// end handles the last event, which contains the whole reply again.
func (b *builder) end(e *event) (remote.Progress, error) {
	if e.Response == nil {
		return remote.Going, remote.BadReply("its last event has no response")
	}
	if err := b.finish(e.Response); err != nil {
		return remote.Going, err
	}
	return remote.Over, nil
}

// Whole implements remote.Decoder.
func (b *builder) Whole(data []byte) error {
	var r response
	if err := decode(data, &r); err != nil {
		return err
	}
	if r.Error == nil && r.Output == nil {
		return remote.BadReply("it has no output")
	}
	return b.finish(&r)
}

func (b *builder) finish(r *response) error {
	b.Model, b.ID = cmp.Or(r.Model, b.Model), cmp.Or(r.ID, b.ID)
	if r.Usage != nil { // a response that failed may be billed, too
		b.Usage = r.Usage.model()
	}
	switch {
	case r.Error != nil:
		return r.Error
	case r.Status != "" && r.Status != "completed" && r.Status != "incomplete":
		return &remote.Failure{Message: "the response is " + r.Status}
	}
	for i, raw := range r.Output {
		if err := b.complete(i, raw); err != nil {
			return err
		}
	}
	b.Finish = b.finishOf(r)
	return nil
}

// finishOf returns the finish reason.
func (b *builder) finishOf(r *response) string {
	switch {
	case r.Incomplete.Reason == "max_output_tokens":
		return model.FinishLength
	case r.Status == "incomplete":
		return cmp.Or(r.Incomplete.Reason, "incomplete") // "content_filter" is the same word
	case b.HasCalls():
		return model.FinishCalls
	case b.refused:
		return model.FinishRefusal
	}
	return model.FinishStop
}

// Reply implements remote.Decoder. The outline of the reply is in its encrypted
// reasoning.
func (b *builder) Reply() *model.Reply {
	r := b.Draft.Reply()
	if outline := b.Outline(); outline != "" {
		if r.Reasoning == nil {
			r.Reasoning = new(model.Reasoning)
		}
		r.Reasoning.Encrypted = outline
	}
	return r
}
