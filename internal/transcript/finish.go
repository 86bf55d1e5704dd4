package transcript

import (
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/model"
)

// newest returns the text of an answer without the parts that are in the conversation
// already.
func newest(d event.AssistantMessageData) string {
	return d.Content[min(max(d.Earlier, 0), len(d.Content)):]
}

// isDeclined reports whether an answer was refused. It is not shown to the model: providers
// that have refused an answer refuse every conversation that contains it.
func isDeclined(d event.AssistantMessageData) bool {
	return d.Failure != nil && (d.Failure.ErrorType == event.ErrorRefusal || d.Failure.ErrorType == event.ErrorFilter)
}

// readUnfinished adds an answer with which the model is to go on, and what it is told about
// it.
func (h *History) readUnfinished(e event.Event) error {
	d, err := event.As[event.AssistantUnfinishedData](e)
	if err != nil {
		return err
	}
	if d.Action != event.ActionAgain && d.Content != "" {
		m := &model.Message{Role: model.Assistant, Text: d.Content}
		if d.ReasoningText != "" || d.ReasoningOpaque != "" || d.EncryptedContent != "" {
			m.Reasoning = &model.Reasoning{Text: d.ReasoningText, Opaque: d.ReasoningOpaque, Encrypted: d.EncryptedContent}
		}
		h.push(e.Seq, m)
	}
	if d.Instruction != "" {
		h.push(e.Seq, &model.Message{Role: model.User, Text: d.Instruction})
	}
	return nil
}
