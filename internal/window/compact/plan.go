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

// unseen returns the index of the first item that the model has not seen: what
// came after its newest answer. Calls are not separated from what they gave, so
// an answer with calls is among the unseen items itself.
func unseen(items []Item) int {
	for i := len(items) - 1; i >= 0; i-- {
		if items[i].Role != model.Assistant {
			continue
		}
		if len(items[i].Calls) > 0 {
			return i
		}
		return i + 1
	}
	return 0
}

// unseenWords returns the index of the first item after the newest answer and
// what its calls gave: requests and notices that the model has not seen.
func unseenWords(items []Item) int {
	i := unseen(items)
	for i < len(items) && (items[i].Role == model.Assistant || !items[i].begins()) {
		i++
	}
	return afterRequest(items, i)
}

// afterRequest returns the index after the item at i if that is the only request
// since the newest answer. The head of the new epoch has such a request in full, so
// it need not be kept a second time. Of several requests the head may shorten the
// older ones; without an answer the newest of the present head is one of them.
func afterRequest(items []Item, i int) int {
	if 0 < i && i < len(items) && items[i].Asked && !anyAsked(items[i+1:]) {
		return i + 1
	}
	return i
}

// plan returns where to cut: what comes before is summarised, the rest is kept as
// it is, at most so many tokens. Whatever the model has not seen yet is never
// summarised. A rest does not begin with a message of the user role that the model
// has seen: the head of the new epoch has the requests, in their own words.
func plan(items []Item, retain int) int {
	fresh := unseen(items)
	cut, kept := fresh, 0
	for i := len(items) - 1; i >= 0; i-- {
		if kept += window.Of(items[i].Message); kept > retain {
			break
		}
		if items[i].begins() {
			cut = min(cut, i)
		}
	}
	for cut < fresh && items[cut].Role == model.User {
		cut++
	}
	if cut == fresh {
		return afterRequest(items, cut)
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
