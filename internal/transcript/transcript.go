// Package transcript builds the conversation that the model sees from a session's log.
//
// Whatever the log contains, the messages are valid for every provider: each call of an
// assistant is followed by exactly one result, in the order of the calls, and there is
// no result without its call.
//
// The conversation is a view of the log: after a compaction it begins with the head of
// the current epoch, and earlier messages are only in the log.
package transcript

import (
	"fmt"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/model"
)

// Interrupted is the result that the model reads for a call without a result.
const Interrupted = "The execution of this tool, or a previous tool was interrupted."

// A History is the conversation so far. Events are only decoded when the messages are
// needed, so that loading a long session costs little as long as nobody continues it.
type History struct {
	unread  []event.Event // events that were added and not decoded yet
	entries []entry       // decoded messages

	epoch   *epoch // current epoch; nil if there is none and all messages are shown
	trimmed bool   // true if entries has only messages that the epoch shows, shortened as it says
	short   bool   // true if messages are shown that are not in entries: the log has to be read again

	flat    []*model.Message // cached list of the head of the epoch and the messages of the first entries
	flatted int              // number of entries in flat
}

// An entry is a message with the results of its calls.
type entry struct {
	seq     event.Seq
	message *model.Message
	results []*model.Message // one for each call; nil while there is none
	images  []*model.Message // messages with the images that calls returned, in the order of the calls
	asked   bool             // true if it is a request of a person or a program
}

// Add adds the next event of the log. Events that do not change the conversation are
// ignored.
func (h *History) Add(e event.Event) {
	switch {
	case !e.Kind().Shapes:
		return
	case e.Type == event.ContextEpoch:
		h.openEpoch(e)
	case e.Type == event.HistoryHidden:
		h.closeEpoch(e)
	}
	h.unread = append(h.unread, e)
}

// Messages returns the conversation. The slice must not be changed.
func (h *History) Messages() ([]*model.Message, error) {
	if err := h.readAll(); err != nil {
		return nil, err
	}
	if h.flat == nil && h.epoch != nil && h.epoch.message != nil {
		h.flat = []*model.Message{h.epoch.message}
	}
	for h.flatted < len(h.entries)-1 { // only the last entry can still change
		h.flat = h.entries[h.flatted].appendTo(h.flat)
		h.flatted++
	}
	settled := h.flat[:len(h.flat):len(h.flat)]
	if len(h.entries) == 0 {
		return settled, nil
	}
	return h.entries[len(h.entries)-1].appendTo(settled), nil
}

// readAll decodes the events that were added since the last call.
func (h *History) readAll() error {
	if h.short {
		return errShort
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

// appendTo appends the entry's messages to list, with a result for every call.
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
	case event.AssistantUnfinished:
		return h.readUnfinished(e)
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
	return fmt.Errorf("event %d: %s shapes the conversation, and History.read has no case for it", e.Seq, e.Type)
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
	attachImages(m, d.Attachments)
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
	m := &model.Message{Role: model.Assistant, Text: newest(d)}
	for _, r := range d.ToolRequests {
		m.Calls = append(m.Calls, model.Call{ID: r.ToolCallID, Name: r.Name, Arguments: r.Arguments})
	}
	if d.ReasoningText != "" || d.ReasoningOpaque != "" || d.EncryptedContent != "" {
		m.Reasoning = &model.Reasoning{Text: d.ReasoningText, Opaque: d.ReasoningOpaque, Encrypted: d.EncryptedContent}
	}
	if m.Text == "" && len(m.Calls) == 0 || isDeclined(d) {
		return nil // providers refuse empty answers
	}
	h.push(e.Seq, m)
	return nil
}

func (h *History) push(seq event.Seq, m *model.Message) {
	h.trimmed = h.trimmed && seq >= h.first()
	h.entries = append(h.entries, entry{seq: seq, message: m, results: make([]*model.Message, len(m.Calls))})
}

// readResult sets the result of the newest call with that id that has none. A result
// without such a call is ignored.
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

// ResultText returns the text that the model reads as the result of a call.
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

// hide removes a range of events from the conversation.
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
