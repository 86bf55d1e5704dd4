package memory

import (
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/window"
	"github.com/abide-run/abide/internal/window/render"
)

// An Entry is a message with its position in the raw log. Epochs do not matter
// here: what was compacted is still in the log.
type Entry struct {
	At event.Seq
	*model.Message
}

// A Batch is a part of the log that is extracted at once: the events after the
// last one that was extracted, up to To.
type Batch struct {
	From, To event.Seq
	// Texts are what the model reads: nearly always one. There are more if a
	// single step is too long for one.
	Texts []string
}

// bounds are how much is read of what tools did. What was said is read whole.
var bounds = render.Bounds{Arguments: 2000, Result: 2000}

// Next returns the next batch after a position, of at most so many tokens for each
// text, or false if there is none. The entries are those after the position, in
// the order of the conversation: each call with what it gave. A batch ends where a
// step does.
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
	return Batch{From: after + 1, To: to, Texts: render.Chunks(blocks[:end], room)}, true
}

// whole moves the end of a batch to where all that comes after it is after it in the
// log, too, and returns the last position before it. What a call gave can be later in
// the log than what was said meanwhile.
func whole(entries []Entry, end int) (int, event.Seq) {
	var to event.Seq
	for i := 0; i < len(entries) && (i < end || entries[i].At <= to || entries[i].CallID != ""); i++ {
		to, end = max(to, entries[i].At), max(end, i+1)
	}
	return end, to
}

// stepEnd is where the step ends that begins at i.
func stepEnd(entries []Entry, i int) int {
	for i++; i < len(entries) && entries[i].CallID != ""; i++ {
	}
	return i
}
