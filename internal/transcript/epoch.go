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

// An epoch is an epoch that was opened and is not hidden. The model is shown its head and
// the messages from the position data.From on.
type epoch struct {
	seq     event.Seq // position at which it was opened
	data    event.ContextEpochData
	head    *compact.Head  // decoded head; nil if there is none, or if it was not decoded yet
	message *model.Message // the head as the model reads it; created once, because its encoded form is cached in it
}

// Epoch returns the current epoch, without its head, and false if there is none.
func (h *History) Epoch() (event.ContextEpochData, bool) {
	if h.epoch == nil {
		return event.ContextEpochData{}, false
	}
	d := h.epoch.data
	d.Head = nil
	return d, true
}

// Short reports whether the log has to be read again before Messages can succeed.
func (h *History) Short() bool { return h.short }

// first returns the position of the first message that is shown.
func (h *History) first() event.Seq {
	if h.epoch == nil {
		return 0
	}
	return h.epoch.data.From
}

// Load adds a whole log. It does not keep events that the current epoch does not show.
func (h *History) Load(events []event.Event) {
	h.epoch = newestEpoch(events)
	for _, e := range events {
		if e.Kind().Shapes && e.Type != event.ContextEpoch && (e.Seq >= h.first() || e.Type == event.HistoryHidden) {
			h.unread = append(h.unread, e)
		}
	}
}

// newestEpoch returns the newest epoch of a log that is not hidden, or nil.
func newestEpoch(events []event.Event) *epoch {
	var open []*epoch
	for _, e := range events {
		switch e.Type {
		case event.ContextEpoch:
			if d, err := event.As[event.ContextEpochData](e); err == nil {
				open = append(open, &epoch{seq: e.Seq, data: d})
			}
		case event.HistoryHidden:
			open = slices.DeleteFunc(open, func(p *epoch) bool { return p.hiddenBy(e) })
		}
	}
	if len(open) == 0 {
		return nil
	}
	return open[len(open)-1]
}

// hiddenBy reports whether the epoch was opened in the range that an event hides. Such a
// range always extends to the newest event.
func (p *epoch) hiddenBy(e event.Event) bool {
	d, err := event.As[event.HistoryHiddenData](e)
	return err == nil && p.seq >= d.From // read will report the error
}

// openEpoch makes a new epoch the current one. If it may show more than the one before,
// the log has to be read again.
func (h *History) openEpoch(e event.Event) {
	d, err := event.As[event.ContextEpochData](e)
	if err != nil {
		return // read will report the error
	}
	if d.From < h.first() || d.Kind == event.EpochUndo {
		h.short = true
	}
	h.epoch, h.trimmed = &epoch{seq: e.Seq, data: d}, false
	h.flat, h.flatted = nil, 0
}

// closeEpoch handles a hidden range. If the current epoch was opened in it, an earlier one
// is current again; only the log has that, so it has to be read again.
func (h *History) closeEpoch(e event.Event) {
	if h.epoch != nil && h.epoch.hiddenBy(e) {
		h.epoch, h.short = nil, true
	}
}

// trim applies the current epoch to the entries: it removes those that are not shown, and
// shortens results. It also decodes the head.
func (h *History) trim() error {
	if h.epoch == nil || h.trimmed {
		return nil
	}
	if err := h.epoch.decodeHead(); err != nil {
		return err
	}
	h.entries = slices.DeleteFunc(slices.Clone(h.entries), func(n entry) bool { return n.seq < h.first() })
	for _, r := range h.epoch.data.Reductions() {
		for i := range h.entries {
			if n := &h.entries[i]; n.seq <= r.Through {
				n.reduce(r.Most)
			}
		}
	}
	h.flat, h.flatted, h.trimmed = nil, 0, true
	return nil
}

// decodeHead sets head and message, unless the epoch has no head.
func (p *epoch) decodeHead() error {
	if p.data.Head == nil || p.message != nil {
		return nil
	}
	head := new(compact.Head)
	if err := json.Unmarshal(p.data.Head, head); err != nil {
		return fmt.Errorf("the head of the current epoch: %w", err)
	}
	p.head, p.message = head, head.Message()
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
	if h.epoch == nil {
		return nil, items, nil
	}
	return h.epoch.head, items, nil
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
