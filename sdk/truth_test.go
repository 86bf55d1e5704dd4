package sdk

import (
	"context"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/client"
	"github.com/abide-run/abide/internal/daemon/folder"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
)

// peek connects to the engine of the folder by its private socket. There has to
// be one.
func (h *home) peek() *client.Client {
	h.t.Helper()
	c, err := h.tryPeek(h.ctx)
	h.must(err)
	return c
}

func (h *home) tryPeek(ctx context.Context) (*client.Client, error) {
	f, err := folder.Open(h.dir)
	if err != nil {
		return nil, err
	}
	conn, err := f.Dial(ctx)
	if err != nil {
		return nil, err
	}
	c := client.New(conn, client.Options{})
	if _, err := c.Connect(ctx, f.Token()); err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// status tells how a session stands.
func (h *home) status(id string) api.StatusResult {
	h.t.Helper()
	c := h.peek()
	defer c.Close()
	st, err := c.Status(h.ctx, event.SessionID(id))
	h.must(err)
	return st
}

// A ledger is what the log says of a session that is at rest.
type ledger struct {
	kinds   map[event.Type]int
	results map[string][]event.ToolCompleteData // results by call
	names   map[string]string                   // names of the tools by call
	prompts []string                            // prompts in their order
	answers []string                            // the last words to each prompt
	wrong   []string
}

// audit checks what must be true of every session that is at rest, and returns
// what else there is to know.
func (h *home) audit(id string) *ledger {
	h.t.Helper()
	l, err := h.tryAudit(id)
	h.must(err)
	for _, wrong := range l.wrong {
		h.t.Errorf("session %s: %s", id, wrong)
	}
	if h.model.far != nil {
		h.model.far.mu.Lock()
		defer h.model.far.mu.Unlock()
		for _, fault := range h.model.far.faults {
			h.t.Errorf("the provider says: %s", fault)
		}
	}
	return l
}

func (h *home) tryAudit(id string) (*ledger, error) {
	c, err := h.tryPeek(h.ctx)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	l := &ledger{kinds: make(map[event.Type]int), results: make(map[string][]event.ToolCompleteData), names: make(map[string]string)}
	var end eventlog.End
	b := books{ledger: l, open: make(map[string]bool), inputs: make(map[string]int)}
	for e, err := range c.Events(h.ctx, event.SessionID(id), 0) {
		if err != nil {
			return nil, err
		}
		end = end.Next(e.Bytes)
		l.kinds[e.Type]++
		if err := b.take(e); err != nil {
			return nil, err
		}
	}
	b.close()
	v, err := c.Verify(h.ctx, event.SessionID(id))
	if err != nil {
		return nil, err
	}
	if v.Damage != nil || v.Events != end.Seq || v.Hash != hex.EncodeToString(end.Hash[:]) {
		l.fault("the chain does not verify: %+v", v)
	}
	st, err := c.Status(h.ctx, event.SessionID(id))
	if err == nil && (st.Active || st.Queued > 0 || len(st.Questions) > 0) {
		l.fault("it is not at rest: %+v", st)
	}
	return l, err
}

func (l *ledger) fault(format string, args ...any) {
	l.wrong = append(l.wrong, fmt.Sprintf(format, args...))
}

// books are a ledger in the making.
type books struct {
	*ledger
	open   map[string]bool // questions
	inputs map[string]int  // for each input, how often it was accepted less how often it was delivered
}

func (b *books) take(e event.Event) error {
	switch e.Type {
	case event.InputAccepted:
		d, err := event.As[event.InputAcceptedData](e)
		b.inputs[d.Prompt]++
		return err
	case event.UserMessage:
		d, err := event.As[event.UserMessageData](e)
		b.inputs[d.Content]--
		b.prompts, b.answers = append(b.prompts, d.Content), append(b.answers, "")
		return err
	case event.AssistantMessage:
		d, err := event.As[event.AssistantMessageData](e)
		if n := len(b.answers); n > 0 {
			b.answers[n-1] = d.Content
		}
		for _, r := range d.ToolRequests {
			b.names[r.ToolCallID] = r.Name
		}
		return err
	case event.PermissionAsked, event.ExternalAsked, event.UserInputAsked:
		return b.question(e, false)
	case event.PermissionDone, event.ExternalDone, event.UserInputDone:
		return b.question(e, true)
	case event.ToolComplete:
		d, err := event.As[event.ToolCompleteData](e)
		b.results[d.ToolCallID] = append(b.results[d.ToolCallID], d)
		return err
	}
	return nil
}

// question: each is asked once and closed once.
func (b *books) question(e event.Event, closes bool) error {
	var d struct{ RequestID string }
	if err := e.Decode(&d); err != nil {
		return err
	}
	if open, asked := b.open[d.RequestID]; asked != closes || open != closes {
		b.fault("event %d (%s) comes twice, or out of order", e.Seq, e.Type)
	}
	b.open[d.RequestID] = !closes
	return nil
}

func (b *books) close() {
	for id, open := range b.open {
		if open {
			b.fault("the question %s is open", id)
		}
	}
	for id, name := range b.names {
		if n := len(b.results[id]); n != 1 {
			b.fault("the call %s of %s has %d results", id, name, n)
		}
	}
	for prompt, n := range b.inputs {
		if n != 0 {
			b.fault("the input %q was not delivered once for each time that it was accepted", prompt)
		}
	}
}

// given are the results of a tool, in no order.
func (l *ledger) given(tool string) (texts []string) {
	for id, name := range l.names {
		for _, r := range l.results[id] {
			if name == tool && r.Result != nil {
				texts = append(texts, r.Result.Content)
			}
		}
	}
	slices.Sort(texts)
	return texts
}
