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

// The items of a conversation have three parts, oldest first:
//
//	seen by the model    newest step                  news
//	request, …, answer | answer with calls, results | requests and notices
//
// The model has not seen the results of the newest step, nor the news: neither is
// summarised. The newest step is empty if the newest answer has no calls.

// newestStep returns the index of the first item of the newest step.
func newestStep(items []Item) int {
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

// news returns the index of the first item of the news.
func news(items []Item) int {
	i := newestStep(items)
	for i < len(items) && (items[i].Role == model.Assistant || !items[i].begins()) {
		i++
	}
	return i
}

// skipRequest returns i+1 if the item at i is a request, and the only one since the newest
// answer; otherwise it returns i. Such a request need not be kept as an item, because the
// head of the new epoch contains it in full. Of several requests the head would contain
// only the newest one in full. Without an answer (then i is zero) the newest request of
// the present head is one of them.
func skipRequest(items []Item, i int) int {
	if 0 < i && i < len(items) && items[i].Asked && !anyAsked(items[i+1:]) {
		return i + 1
	}
	return i
}

// keptNews returns the index of the first item of the news that is kept, if nothing before
// the news is kept.
func keptNews(items []Item) int { return skipRequest(items, news(items)) }

// plan returns the index of the first item that is kept as it is; the items before it are
// summarised. The newest step and the news are always kept, and as many items before them
// as fit into retain tokens together with them. What is kept does not begin with a user
// message that the model has seen: the head of the new epoch contains the requests.
func plan(items []Item, retain int) int {
	step := newestStep(items)
	cut := min(step, newestWithin(items, retain))
	for cut < step && items[cut].Role == model.User {
		cut++
	}
	if cut == step {
		return skipRequest(items, cut)
	}
	return cut
}

// newestWithin returns the index of the oldest item that has at most the given number of
// tokens together with all items after it, and with which a conversation can begin. If
// there is none, it returns len(items).
func newestWithin(items []Item, tokens int) int {
	first := len(items)
	for i := len(items) - 1; i >= 0; i-- {
		if tokens -= window.Of(items[i].Message); tokens < 0 {
			break
		}
		if items[i].begins() {
			first = i
		}
	}
	return first
}

// worthSummarising reports whether there is something to summarise: an item that is not a
// request of a person.
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
