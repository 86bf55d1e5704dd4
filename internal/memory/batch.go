package memory

import (
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/window"
	"github.com/abide-run/abide/internal/window/render"
)

// An Entry is a message with its position in the log. Epochs are ignored: messages that
// were compacted are still in the log.
type Entry struct {
	At    event.Seq
	Asked bool // true if a person or a program has said it
	*model.Message
}

// A Batch is a part of the log that is extracted at once. It begins after the last event
// that was extracted before.
type Batch struct {
	From, To event.Seq // first and last position
	Texts    []string  // texts that the model reads; more than one only if a single step is too long
	Users    Sources   // positions of the messages of users; nil if they are not known
}

// bounds limit the text of calls and their results. Messages are read in full.
var bounds = render.Bounds{Arguments: 2000, Result: 2000}

// Next returns the next batch after a position, or false if there is none. Each text has
// at most room tokens. entries are the messages after the position, in the order of the
// conversation, with each result after its call. A batch ends at the end of a step.
func Next(after event.Seq, entries []Entry, room int) (Batch, bool) {
	if len(entries) == 0 {
		return Batch{}, false
	}
	list := make([]*model.Message, len(entries))
	for i, e := range entries {
		list[i] = e.Message
	}
	blocks := render.Blocks(list, func(i int) int64 { return int64(entries[i].At) }, bounds)
	end, used := 0, 0
	for end < len(entries) {
		next := stepEnd(entries, end)
		for _, block := range blocks[end:next] {
			used += window.Tokens(block)
		}
		if used > room && end > 0 {
			break
		}
		end = next
	}
	end, to := whole(entries, end)
	b := Batch{From: after + 1, To: to, Texts: render.Chunks(blocks[:end], room), Users: Sources{}}
	for _, e := range entries[:end] {
		if e.Asked {
			b.Users = append(b.Users, e.At)
		}
	}
	return b, true
}

// whole extends a batch until all later entries also have later positions in the log, and
// returns its new end and its last position. That is necessary because a result can be
// later in the log than a message that came during the call.
func whole(entries []Entry, end int) (int, event.Seq) {
	var to event.Seq
	for i := 0; i < len(entries) && (i < end || entries[i].At <= to || entries[i].CallID != ""); i++ {
		to, end = max(to, entries[i].At), max(end, i+1)
	}
	return end, to
}

// stepEnd returns the end of the step that begins at i.
func stepEnd(entries []Entry, i int) int {
	for i++; i < len(entries) && entries[i].CallID != ""; i++ {
	}
	return i
}
