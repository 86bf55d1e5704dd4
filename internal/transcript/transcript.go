// Package transcript shapes what the model sees out of a session's log.
//
// Whatever the log holds, the messages it gives are valid for every provider:
// each call of an assistant is followed by exactly one result, in call order,
// and no result stands without its call.
//
// What the model sees is a view: after a compaction it begins with the head of the
// current epoch, and what came before is only in the log.
package transcript

import (
	"fmt"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/model"
)

// Interrupted is the result that the model reads for a call that has none.
const Interrupted = "The execution of this tool, or a previous tool was interrupted."

// A History is the conversation so far. Events are taken in as they come and
// only read when the messages are wanted, so that loading a long session does
// not pay for a conversation that nobody continues.
type History struct {
	unread  []event.Event
	entries []entry
	flat    []*model.Message // the head of the epoch, and the messages of all entries but the last
	flatted int              // how many entries flat covers

	epochs  []mark    // once the log was read, the newest alone: if that is hidden, the log is read anew
	current *epoch    // nil: everything is shown
	first   event.Seq // what came before is not held
	trimmed bool      // nothing before first is left among the entries
	short   bool      // more is shown than is held
}

// An entry is a message with the results of its calls.
type entry struct {
	seq     event.Seq
	message *model.Message
	results []*model.Message // one for each call; nil while there is none
	images  []*model.Message // that the calls gave, in call order
	asked   bool             // a person, or whoever stands for one, said it
}

// Add takes in the next event. Events that do not matter are ignored.
func (h *History) Add(e event.Event) {
	switch {
	case !e.Kind().Shapes:
		return
	case e.Type == event.ContextEpoch:
		h.opened(e)
	case e.Type == event.HistoryHidden:
		h.reopened(e)
	}
	h.unread = append(h.unread, e)
}

// Messages returns the conversation. The slice must not be changed.
func (h *History) Messages() ([]*model.Message, error) {
	if err := h.readAll(); err != nil {
		return nil, err
	}
	if h.flat == nil && h.current != nil && h.current.message != nil {
		h.flat = []*model.Message{h.current.message}
	}
	for h.flatted < len(h.entries)-1 { // all but the last are settled
		h.flat = h.entries[h.flatted].appendTo(h.flat)
		h.flatted++
	}
	settled := h.flat[:len(h.flat):len(h.flat)]
	if len(h.entries) == 0 {
		return settled, nil
	}
	return h.entries[len(h.entries)-1].appendTo(settled), nil
}

// readAll reads what was taken in since it was last wanted.
func (h *History) readAll() error {
	if h.short {
		return ErrShort
	}
	for i, e := range h.unread {
		if err := h.read(e); err != nil {
			h.unread = h.unread[i:]
			return err
		}
	}
	h.unread = nil
	return h.trim()
}

// appendTo writes the entry's messages, with a result for every call.
func (n *entry) appendTo(list []*model.Message) []*model.Message {
	list = append(list, n.message)
	for i, call := range n.message.Calls {
		result := n.results[i]
		if result == nil {
			result = &model.Message{Role: model.ToolRole, CallID: call.ID, Text: Interrupted, Failed: true}
		}
		list = append(list, result)
	}
	return append(list, n.images...)
}

func (h *History) read(e event.Event) error {
	switch e.Type {
	case event.UserMessage:
		return h.readUser(e)
	case event.AssistantMessage:
		return h.readAssistant(e)
	case event.ToolComplete:
		return h.readResult(e)
	case event.HookEnd:
		return h.readHook(e)
	case event.HistoryHidden:
		return h.hide(e)
	case event.ContextEpoch:
		_, err := event.As[event.ContextEpochData](e)
		return err
	case event.SystemNotification:
		d, err := event.As[event.SystemNotificationData](e)
		if err == nil {
			h.push(e.Seq, &model.Message{Role: model.User, Text: d.Content})
		}
		return err
	}
	return nil
}

func (h *History) readUser(e event.Event) error {
	d, err := event.As[event.UserMessageData](e)
	if err != nil {
		return err
	}
	text := d.TransformedContent
	if text == "" {
		head, err := e.Head()
		if err != nil {
			return err
		}
		text = Dated(d.Content, head.Time)
	}
	m := &model.Message{Role: model.User, Text: text}
	show(m, d.Attachments)
	h.push(e.Seq, m)
	h.entries[len(h.entries)-1].asked = d.Source == ""
	if d.Source == SourceSessionStart {
		h.putBeforeRequest()
	}
	return nil
}

func (h *History) readAssistant(e event.Event) error {
	d, err := event.As[event.AssistantMessageData](e)
	if err != nil {
		return err
	}
	m := &model.Message{Role: model.Assistant, Text: d.Content}
	for _, r := range d.ToolRequests {
		m.Calls = append(m.Calls, model.Call{ID: r.ToolCallID, Name: r.Name, Arguments: r.Arguments})
	}
	if d.ReasoningText != "" || d.ReasoningOpaque != "" || d.EncryptedContent != "" {
		m.Reasoning = &model.Reasoning{Text: d.ReasoningText, Opaque: d.ReasoningOpaque, Encrypted: d.EncryptedContent}
	}
	if m.Text == "" && len(m.Calls) == 0 {
		return nil // providers refuse empty answers
	}
	h.push(e.Seq, m)
	return nil
}

func (h *History) push(seq event.Seq, m *model.Message) {
	h.trimmed = h.trimmed && seq >= h.first
	h.entries = append(h.entries, entry{seq: seq, message: m, results: make([]*model.Message, len(m.Calls))})
}

// readResult gives a result to the newest answer that has such a call without
// one. A result that nobody waits for is not part of the conversation.
func (h *History) readResult(e event.Event) error {
	d, err := event.As[event.ToolCompleteData](e)
	if err != nil {
		return err
	}
	for i := len(h.entries) - 1; i >= h.flatted; i-- {
		n := &h.entries[i]
		for k, call := range n.message.Calls {
			if call.ID == d.ToolCallID && n.results[k] == nil {
				n.results[k] = &model.Message{Role: model.ToolRole, CallID: call.ID, Text: ResultText(d), Failed: !d.Success}
				n.addImages(call.ID, pictures(d))
				return nil
			}
		}
	}
	return nil
}

// ResultText is what the model reads of a finished call.
func ResultText(d event.ToolCompleteData) string {
	switch {
	case d.Result != nil:
		return d.Result.Content
	case d.Error == nil:
		return ""
	case d.Error.ForModel != "":
		return d.Error.ForModel
	case d.Error.Code == event.CodeInterrupted && d.Error.Message == "":
		return Interrupted
	}
	return d.Error.Message
}

// hide takes a range out of the conversation.
func (h *History) hide(e event.Event) error {
	d, err := event.As[event.HistoryHiddenData](e)
	if err != nil {
		return err
	}
	if d.From > d.To {
		return fmt.Errorf("event %d (%s): range %d to %d is empty", e.Seq, e.Type, d.From, d.To)
	}
	kept := h.entries[:0:0]
	for _, n := range h.entries {
		if n.seq < d.From || n.seq > d.To {
			kept = append(kept, n)
		}
	}
	h.entries, h.flat, h.flatted = kept, nil, 0
	return nil
}
