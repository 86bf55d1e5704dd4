package compact

import (
	"cmp"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/window"
)

// An Item is a message of the conversation.
type Item struct {
	*model.Message
	Asked bool   // true if it is a request of a person, which is kept in its own words and not summarised
	Words string // words of the person, if they are not the whole text of the message
}

// words returns the words of the person.
func (it Item) words() string { return cmp.Or(it.Words, it.Text) }

// begins reports whether a conversation can begin with the item. A result cannot come
// without its call. Reasoning that is signed with a call is in the same message.
func (it Item) begins() bool { return it.CallID == "" }

// tokens returns the size of items.
func tokens(items []Item) (n int) {
	for _, it := range items {
		n += window.Of(it.Message)
	}
	return n
}

// unseen returns the index of the first item that the model has not seen: the one after
// its newest answer. Calls are not separated from their results, so an answer with calls
// counts as unseen itself.
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

// unseenWords returns the index of the first item after the newest answer and the results
// of its calls. From there on, there are only requests and notices that the model has not
// seen.
func unseenWords(items []Item) int {
	i := unseen(items)
	for i < len(items) && (items[i].Role == model.Assistant || !items[i].begins()) {
		i++
	}
	return afterRequest(items, i)
}

// afterRequest returns i+1 if the item at i is the only request since the newest answer,
// else i. The head of the new epoch contains such a request in full, so it need not be
// kept as an item. If there are several requests, the head may shorten the older ones; if
// there is no answer, the newest request of the present head is one of them.
func afterRequest(items []Item, i int) int {
	if 0 < i && i < len(items) && items[i].Asked && !anyAsked(items[i+1:]) {
		return i + 1
	}
	return i
}

// plan returns the index of the first item that is kept as it is; the items before it are
// summarised. At most retain tokens are kept, plus all items that the model has not seen,
// which are never summarised. The first kept item is not a user message that the model
// has seen, because the head of the new epoch contains the requests.
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

// worthSummarising reports whether there is something to summarise: an item that is not a request of
// a person.
func worthSummarising(items []Item) bool {
	for _, it := range items {
		if !it.Asked {
			return true
		}
	}
	return false
}

// Reduce returns a result of a call with at most the given number of bytes and without
// images. Other messages are returned unchanged, and so is every message if most is zero.
func Reduce(m *model.Message, most int) *model.Message {
	if most <= 0 || m.CallID == "" || len(m.Text) <= most && len(m.Images) == 0 {
		return m
	}
	return &model.Message{Role: m.Role, CallID: m.CallID, Failed: m.Failed, Text: reduced(m, most)}
}
