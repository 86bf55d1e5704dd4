package compact

import (
	"cmp"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/window"
)

// An Item is a message of the conversation.
type Item struct {
	*model.Message
	// Asked means that it is what a person asked for. It is not prose to be
	// summarised: it is kept in its own words.
	Asked bool
	Words string // what was asked, if that is not the text of the message
}

// words is what was asked.
func (it Item) words() string { return cmp.Or(it.Words, it.Text) }

// begins reports whether a conversation can begin with the item. What a call gave
// cannot stand without the call, and the reasoning that is signed with a call is
// in the same message.
func (it Item) begins() bool { return it.CallID == "" }

// tokens is the size of items.
func tokens(items []Item) (n int) {
	for _, it := range items {
		n += window.Of(it.Message)
	}
	return n
}

// unseen is where the items begin that the model has not seen yet: its newest
// calls, with what they gave and what was said meanwhile.
func unseen(items []Item) int {
	for i := len(items) - 1; i >= 0; i-- {
		if items[i].Role == model.Assistant {
			if len(items[i].Calls) > 0 {
				return i
			}
			break
		}
	}
	return len(items)
}

// plan returns where to cut: what comes before is summarised, the rest is kept as
// it is, at most so many tokens. Whatever the model has not seen yet is kept in
// any case. A rest never begins with what was said by a user: the head of the new
// epoch has that, in its own words.
func plan(items []Item, retain int) int {
	cut, kept := unseen(items), 0
	for i := len(items) - 1; i >= 0; i-- {
		if kept += window.Of(items[i].Message); kept > retain {
			break
		}
		if items[i].begins() {
			cut = min(cut, i)
		}
	}
	for cut < len(items) && items[cut].Role == model.User {
		cut++
	}
	return cut
}

// worth reports whether there is something to summarise: more than what people
// asked for, which is kept in its own words anyway.
func worth(items []Item) bool {
	for _, it := range items {
		if !it.Asked {
			return true
		}
	}
	return false
}

// Reduce returns a message without the bulk of what a call gave: at most so many
// bytes of it, and no pictures. Zero leaves it as it is, and so does a message
// that is not what a call gave.
func Reduce(m *model.Message, most int) *model.Message {
	if most <= 0 || m.CallID == "" || len(m.Text) <= most && len(m.Images) == 0 {
		return m
	}
	return &model.Message{Role: m.Role, CallID: m.CallID, Failed: m.Failed, Text: reduced(m, most)}
}
