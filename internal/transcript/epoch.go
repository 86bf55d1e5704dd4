package transcript

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/window/compact"
)

// errShort means that an earlier part of the conversation is shown again which is not in
// memory: the log has to be read again.
var errShort = errors.New("an earlier part of the conversation is shown again: the log has to be read anew")

// A mark is an epoch that was opened and is not hidden.
type mark struct {
	seq  event.Seq
	data event.ContextEpochData // without Head, to save memory
}

// An epoch is the current epoch.
type epoch struct {
	raw     json.RawMessage // the head as JSON
	from    event.Seq       // position of the first message that is shown
	reduced []event.Reduction
	head    *compact.Head  // decoded head; nil if there is none, or if it was not decoded yet
	message *model.Message // the head as the model reads it; created once, because its encoded form is cached in it
}

// Epoch returns the current epoch, without its head, and false if there was none.
func (h *History) Epoch() (event.ContextEpochData, bool) {
	if len(h.epochs) == 0 {
		return event.ContextEpochData{}, false
	}
	return h.epochs[len(h.epochs)-1].data, true
}

// Short reports whether the log has to be read again before Messages can succeed.
func (h *History) Short() bool { return h.short }

// Load adds a whole log. It does not keep events that the current view does not show.
func (h *History) Load(events []event.Event) {
	var heads []json.RawMessage
	for _, e := range events {
		switch e.Type {
		case event.ContextEpoch:
			if d, err := event.As[event.ContextEpochData](e); err == nil {
				heads = append(heads, d.Head)
				h.mark(e.Seq, d)
			}
		case event.HistoryHidden:
			h.unmark(e)
			heads = heads[:len(h.epochs)] // only the newest epochs can be hidden
		}
	}
	if n := len(h.epochs); n > 0 {
		d := h.epochs[n-1].data
		d.Head = heads[n-1]
		h.epochs = slices.Clone(h.epochs[n-1:])
		h.enter(d)
	}
	for _, e := range events {
		if e.Kind().Shapes && e.Type != event.ContextEpoch && (e.Seq >= h.first || e.Type == event.HistoryHidden) {
			h.unread = append(h.unread, e)
		}
	}
}

func (h *History) mark(seq event.Seq, d event.ContextEpochData) {
	d.Head = nil
	h.epochs = append(h.epochs, mark{seq, d})
}

// unmark removes the epochs that were opened in a hidden range, and reports whether there
// were any: the current one is then among them.
func (h *History) unmark(e event.Event) bool {
	d, err := event.As[event.HistoryHiddenData](e)
	if err != nil {
		return false // read will report the error
	}
	before := len(h.epochs)
	for len(h.epochs) > 0 && h.epochs[len(h.epochs)-1].seq >= d.From {
		h.epochs = h.epochs[:len(h.epochs)-1]
	}
	return len(h.epochs) < before
}

// enter makes an epoch the current one.
func (h *History) enter(d event.ContextEpochData) {
	h.current = &epoch{raw: d.Head, from: d.From, reduced: d.Reductions()}
	h.first, h.trimmed = d.From, false
	h.flat, h.flatted = nil, 0
}

// openEpoch handles a new epoch. If it may show more than the last one, the log has to be
// read again.
func (h *History) openEpoch(e event.Event) {
	d, err := event.As[event.ContextEpochData](e)
	if err != nil {
		return // read will report the error
	}
	h.epochs = nil
	h.mark(e.Seq, d)
	if d.From < h.first || d.Kind == event.EpochUndo {
		h.short = true
	}
	h.enter(d)
}

// closeEpochs handles a hidden range. If the current epoch is in it, the one before is
// current again, and the log has to be read again.
func (h *History) closeEpochs(e event.Event) {
	if h.unmark(e) {
		h.short = true
	}
}

// trim decodes the head, removes entries that are not shown, and shortens results.
func (h *History) trim() error {
	if h.current == nil || h.trimmed {
		return nil
	}
	if h.current.raw != nil && h.current.message == nil {
		head := new(compact.Head)
		if err := json.Unmarshal(h.current.raw, head); err != nil {
			return fmt.Errorf("the head of the current epoch: %w", err)
		}
		h.current.head, h.current.message = head, head.Message()
	}
	h.entries = slices.DeleteFunc(slices.Clone(h.entries), func(n entry) bool { return n.seq < h.first })
	for i := range h.entries {
		for _, r := range h.current.reduced {
			if n := &h.entries[i]; n.seq <= r.Through {
				n.reduce(r.Most)
			}
		}
	}
	h.flat, h.flatted, h.trimmed = nil, 0, true
	return nil
}

// reduce shortens the results of the calls to at most the given number of bytes.
// Repeating it changes nothing.
func (n *entry) reduce(most int) {
	n.results = slices.Clone(n.results)
	for i, m := range n.results {
		if m != nil {
			n.results[i] = compact.Reduce(m, most)
		}
	}
	n.images = slices.Clone(n.images)
	for i, m := range n.images {
		n.images[i] = compact.Reduce(m, most)
	}
}

// An Item is a message of the conversation and its position in the log. A result has the
// position of the answer that made the call.
type Item struct {
	At event.Seq
	compact.Item
}

// Items returns the messages of the conversation with their positions, and separately
// the head of the epoch.
func (h *History) Items() (*compact.Head, []Item, error) {
	if err := h.readAll(); err != nil {
		return nil, nil, err
	}
	var items []Item
	for i := range h.entries {
		n := &h.entries[i]
		for k, m := range n.appendTo(nil) {
			item := Item{At: n.seq, Item: compact.Item{Message: m}}
			if item.Asked = n.asked && k == 0; item.Asked {
				item.Words = undated(m.Text)
			}
			items = append(items, item)
		}
	}
	if h.current == nil {
		return nil, items, nil
	}
	return h.current.head, items, nil
}

// undated removes the time that Dated has added.
func undated(text string) string {
	if rest, ok := strings.CutPrefix(text, dateOpen); ok {
		if _, said, ok := strings.Cut(rest, dateClose); ok {
			return said
		}
	}
	return text
}
