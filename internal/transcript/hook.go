package transcript

import (
	"encoding/json"
	"slices"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/model"
)

// SourceSessionStart is the source of a message that contains the additional context of
// the hook sessionStart.
const SourceSessionStart = "hook-sessionStart"

// putBeforeRequest moves the newest message before the request that started the turn, so
// that the model reads it first. The message also gets the position of the request, so
// that an epoch or a rewind never separates the two.
func (h *History) putBeforeRequest() {
	last := len(h.entries) - 1
	if last-1 < h.flatted || h.entries[last-1].message.Role != model.User {
		return
	}
	h.entries = slices.Clone(h.entries)
	h.entries[last].seq = h.entries[last-1].seq
	h.entries[last-1], h.entries[last] = h.entries[last], h.entries[last-1]
}

// readHook changes the arguments of calls that the hook preToolUse has changed.
// Otherwise the model would read a result that does not match its call.
func (h *History) readHook(e event.Event) error {
	d, err := event.As[event.HookEndData](e)
	if err != nil || d.Kind != event.HookPreToolUse || !d.Success {
		return err
	}
	for id, raw := range d.Outputs {
		if args := ModifiedArgs(raw); args != nil {
			h.rewriteCall(id, args)
		}
	}
	return nil
}

// ModifiedArgs returns the changed arguments in the output of preToolUse for a call, or
// nil if the output does not change them.
func ModifiedArgs(output json.RawMessage) json.RawMessage {
	var said struct {
		Args json.RawMessage `json:"modifiedArgs"`
	}
	if json.Unmarshal(output, &said) != nil || len(said.Args) == 0 || said.Args[0] != '{' {
		return nil
	}
	return said.Args
}

// rewriteCall changes the arguments of the newest call with that id that has no result.
// The message is copied, because earlier requests share it.
func (h *History) rewriteCall(id string, args json.RawMessage) {
	for i := len(h.entries) - 1; i >= h.flatted; i-- {
		n := &h.entries[i]
		for k, call := range n.message.Calls {
			if call.ID != id || n.results[k] != nil {
				continue
			}
			calls := slices.Clone(n.message.Calls)
			calls[k].Arguments = args
			n.message = &model.Message{Role: n.message.Role, Text: n.message.Text, Calls: calls, Reasoning: n.message.Reasoning}
			return
		}
	}
}
