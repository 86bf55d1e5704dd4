package compact_test

import (
	"encoding/json"
	"fmt"
	"strings"

	"pgregory.net/rapid"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/window"
	"github.com/abide-run/abide/internal/window/compact"
)

func asked(text string) compact.Item {
	return compact.Item{Message: &model.Message{Role: model.User, Text: text}, Asked: true}
}

func answered(text string) compact.Item {
	return compact.Item{Message: &model.Message{Role: model.Assistant, Text: text}}
}

// called is an answer that makes calls, with what they gave.
func called(results ...string) []compact.Item {
	m := &model.Message{Role: model.Assistant, Reasoning: &model.Reasoning{Opaque: "signed"}}
	items := []compact.Item{{Message: m}}
	for i, text := range results {
		id := fmt.Sprintf("call-%d", i)
		m.Calls = append(m.Calls, model.Call{ID: id, Name: "bash", Arguments: json.RawMessage(`{"command":"make"}`)})
		items = append(items, compact.Item{Message: &model.Message{Role: model.ToolRole, CallID: id, Text: text, Failed: i%2 == 1}})
	}
	return items
}

// aStep draws what may come next in a conversation.
func aStep(t *rapid.T) []compact.Item {
	words := func(most int) string {
		return strings.Repeat(rapid.SampledFrom([]string{"word ", "Wörter\n", "</summary>", "漢字"}).Draw(t, "words"), rapid.IntRange(1, most).Draw(t, "many"))
	}
	switch rapid.IntRange(0, 6).Draw(t, "step") {
	case 0:
		item := asked(words(300))
		if rapid.IntRange(0, 9).Draw(t, "picture") == 0 {
			item.Images = []model.Image{{MediaType: "image/png", Data: []byte("p")}}
		}
		return []compact.Item{item}
	case 1:
		return []compact.Item{{Message: &model.Message{Role: model.User, Text: "[notice] " + words(20)}}}
	case 2:
		return []compact.Item{answered(words(200))}
	case 3:
		seen := called("viewed")
		return append(seen, compact.Item{Message: &model.Message{Role: model.User, CallID: "call-0", Text: "a picture", Images: make([]model.Image, 1)}})
	}
	var results []string
	for range rapid.IntRange(1, 3).Draw(t, "calls") {
		results = append(results, words(2000))
	}
	return called(results...)
}

func aConversation(t *rapid.T) (items []compact.Item) {
	items = append(items, asked("begin"))
	for range rapid.IntRange(0, 15).Draw(t, "steps") {
		items = append(items, aStep(t)...)
	}
	return items
}

// aReply draws what a summariser may say, or how it may fail.
func aReply(t *rapid.T) (*model.Reply, error) {
	switch rapid.IntRange(0, 7).Draw(t, "reply") {
	case 0:
		return &model.Reply{}, nil
	case 1:
		return &model.Reply{Text: "cut off", Finish: "length"}, nil
	case 2:
		return nil, &model.Error{Kind: model.KindOverflow, Message: "too long"}
	case 3:
		return nil, &model.Error{Kind: model.KindAuth, Message: "no key"}
	case 4:
		return &model.Reply{Text: strings.Repeat("endless ", 20_000)}, nil
	case 5:
		return &model.Reply{Calls: []model.Call{{Name: "bash", Arguments: json.RawMessage(`{}`)}}}, nil
	}
	return &model.Reply{Calls: []model.Call{{Name: compact.WriteSummary, Arguments: json.RawMessage(`{"text":"All is well."}`)}}}, nil
}

func messages(items []compact.Item) (list []*model.Message) {
	for _, it := range items {
		list = append(list, it.Message)
	}
	return list
}

func size(list []*model.Message) (n int) {
	for _, m := range list {
		n += window.Of(m)
	}
	return n
}

// epochView returns what the model sees of an epoch: its head, and the messages after it.
// The first kept messages existed when the epoch was opened; of results among them, at
// most the given number of bytes is shown.
func epochView(head *compact.Head, after []*model.Message, kept, most int) []*model.Message {
	list := make([]*model.Message, 0, len(after)+1)
	if head != nil {
		list = append(list, head.Message())
	}
	for i, m := range after {
		if i < kept {
			m = compact.Reduce(m, most)
		}
		list = append(list, m)
	}
	return list
}

// view returns what the model sees after a compaction.
func view(items []compact.Item, r *compact.Result) []*model.Message {
	after := messages(items[r.Cut:])
	return epochView(r.Head, after, len(after), r.Most)
}

// checkPairing fails if a provider would refuse the messages.
func checkPairing(t rapid.TB, list []*model.Message) {
	t.Helper()
	known := map[string]bool{}
	for i := 0; i < len(list); i++ {
		m := list[i]
		if m.Role == model.ToolRole || m.CallID != "" && !known[m.CallID] {
			t.Fatalf("message %d: what a call gave, without the call", i)
		}
		for _, call := range m.Calls {
			i++
			if i == len(list) || list[i].Role != model.ToolRole || list[i].CallID != call.ID {
				t.Fatalf("message %d: call %s is not followed by its result", i, call.ID)
			}
			known[call.ID] = true
		}
	}
}
