package transcript_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/model"
	_ "github.com/abide-run/abide/internal/test/seedtest"
	"github.com/abide-run/abide/internal/transcript"
)

func encode(t testing.TB, seq event.Seq, p event.Payload) event.Event {
	t.Helper()
	e, err := event.Encode(event.Head{ID: event.NewID(), Time: time.Unix(0, 0)}, p)
	if err != nil {
		t.Fatal(err)
	}
	e.Seq = seq
	return e
}

// checkPairing fails if a provider would refuse the messages.
func checkPairing(t rapid.TB, list []*model.Message) {
	t.Helper()
	for i := 0; i < len(list); i++ {
		m := list[i]
		if m.Role == model.ToolRole {
			t.Fatalf("message %d: a result without its call", i)
		}
		if m.Role == model.Assistant && m.Text == "" && len(m.Calls) == 0 {
			t.Fatalf("message %d: an empty answer", i)
		}
		for _, call := range m.Calls {
			i++
			if i == len(list) || list[i].Role != model.ToolRole || list[i].CallID != call.ID {
				t.Fatalf("message %d: call %s is not followed by its result", i, call.ID)
			}
		}
	}
}

// anything draws events that no sane session would have.
func anything(t *rapid.T) event.Payload {
	call := rapid.SampledFrom([]string{"a", "b", "c", "d"})
	switch rapid.IntRange(0, 3).Draw(t, "kind") {
	case 0:
		return event.UserMessageData{Content: "u"}
	case 1:
		d := event.AssistantMessageData{Content: rapid.SampledFrom([]string{"", "text"}).Draw(t, "text")}
		for _, id := range rapid.SliceOfNDistinct(call, 0, 3, rapid.ID).Draw(t, "calls") {
			d.ToolRequests = append(d.ToolRequests, event.ToolRequest{ToolCallID: id, Name: "t", Arguments: json.RawMessage("{}")})
		}
		return d
	case 2:
		return event.ToolCompleteData{ToolCallID: call.Draw(t, "id"), Success: true, Result: &event.ToolResult{Content: "r"}}
	default:
		from := rapid.IntRange(1, 20).Draw(t, "from")
		return event.HistoryHiddenData{From: event.Seq(from), To: event.Seq(rapid.IntRange(from, 20).Draw(t, "to"))}
	}
}

func TestEveryCallHasItsResultWhateverTheLogHolds(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var h, late transcript.History
		n := rapid.IntRange(0, 20).Draw(rt, "events")
		for i := range n {
			e := encode(t, event.Seq(i+1), anything(rt))
			h.Add(e)
			late.Add(e)
			list, err := h.Messages()
			if err != nil {
				rt.Fatal(err)
			}
			checkPairing(rt, list)
		}
		list, err := late.Messages()
		if err != nil {
			rt.Fatal(err)
		}
		checkPairing(rt, list)
	})
}

func TestResultsAreInCallOrder(t *testing.T) {
	var h transcript.History
	h.Add(encode(t, 1, event.AssistantMessageData{ToolRequests: []event.ToolRequest{
		{ToolCallID: "x", Name: "t"}, {ToolCallID: "y", Name: "t"}, {ToolCallID: "z", Name: "t"}}}))
	for i, id := range []string{"z", "x"} {
		h.Add(encode(t, event.Seq(i+2), event.ToolCompleteData{ToolCallID: id, Success: true, Result: &event.ToolResult{Content: "result of " + id}}))
	}
	list, err := h.Messages()
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, m := range list[1:] {
		got += fmt.Sprintf("%s: %s\n", m.CallID, m.Text)
	}
	if want := "x: result of x\ny: " + transcript.Interrupted + "\nz: result of z\n"; got != want {
		t.Errorf("results = %q, want %q", got, want)
	}
}

func TestSettledMessagesKeepTheirIdentity(t *testing.T) {
	var h transcript.History
	h.Add(encode(t, 1, event.UserMessageData{Content: "one"}))
	h.Add(encode(t, 2, event.AssistantMessageData{Content: "two"}))
	before, _ := h.Messages()
	h.Add(encode(t, 3, event.UserMessageData{Content: "three"}))
	after, _ := h.Messages()
	for i := range before {
		if before[i] != after[i] {
			t.Errorf("message %d was made anew: its wire form is encoded again", i)
		}
	}
}

func TestTheModelReadsTheTransformedContent(t *testing.T) {
	var h transcript.History
	h.Add(encode(t, 1, event.UserMessageData{Content: "short", TransformedContent: "long"}))
	if list, _ := h.Messages(); list[0].Text != "long" {
		t.Errorf("text = %q, want the transformed content", list[0].Text)
	}
}

func TestSystemPrompt(t *testing.T) {
	config := event.SessionConfiguredData{WorkingDirectory: "/w", Instructions: "Be kind."}
	plain, err := transcript.System(config, transcript.Around{}, "From the project.", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ message, want string }{
		{`{"content":"More."}`, plain + "\n\nMore."},
		{`{"mode":"append","content":"More."}`, plain + "\n\nMore."},
		{`{"mode":"replace","content":"All."}`, "All."},
	} {
		config.SystemMessage = json.RawMessage(test.message)
		if got, err := transcript.System(config, transcript.Around{}, "From the project.", "", nil); got != test.want || err != nil {
			t.Errorf("%s: %q, %v", test.message, got, err)
		}
	}
	config.SystemMessage = json.RawMessage(`{"mode":1}`)
	if _, err := transcript.System(config, transcript.Around{}, "From the project.", "", nil); err == nil {
		t.Error("a mode that is a number was taken")
	}
}

func TestImagesFollowTheResultsInCallOrder(t *testing.T) {
	var h transcript.History
	h.Add(encode(t, 1, event.UserMessageData{Content: "look", TransformedContent: "look"}))
	h.Add(encode(t, 2, event.AssistantMessageData{ToolRequests: []event.ToolRequest{
		{ToolCallID: "x", Name: "view"}, {ToolCallID: "y", Name: "view"}, {ToolCallID: "z", Name: "view"}}}))
	for i, id := range []string{"z", "y", "x"} {
		r := &event.ToolResult{Content: "Viewed " + id}
		if id != "y" {
			r.Binary = json.RawMessage(`[{"type":"image","data":"AQI=","mimeType":"image/png","description":"Image ` + id + `"},{"type":"other","data":"AQ=="}]`)
		}
		h.Add(encode(t, event.Seq(i+3), event.ToolCompleteData{ToolCallID: id, Success: true, Result: r}))
	}
	list, err := h.Messages()
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, m := range list {
		got += fmt.Sprintf("%s %s %d\n", m.Role, m.Text, len(m.Images))
	}
	want := "user look 0\nassistant  0\ntool Viewed x 0\ntool Viewed y 0\ntool Viewed z 0\nuser Image x 1\nuser Image z 1\n"
	if got != want {
		t.Errorf("messages:\n%swant:\n%s", got, want)
	}
	if img := list[5].Images[0]; img.MediaType != "image/png" || string(img.Data) != "\x01\x02" {
		t.Errorf("image = %+v", img)
	}
}

func TestAModelWithoutVisionGetsNoImages(t *testing.T) {
	image := []model.Image{{MediaType: "image/png", Data: []byte{1}}}
	list := []*model.Message{
		{Role: model.User, Text: "what is this?", Images: image},
		{Role: model.ToolRole, CallID: "c", Text: "Viewed."},
		{Role: model.User, CallID: "c", Text: "Image file at path /w/a.png", Images: image},
		{Role: model.Assistant, Text: "a picture"},
	}
	got := ""
	for _, m := range transcript.Unseen(list) {
		got += fmt.Sprintf("%s %s %d\n", m.Role, m.Text, len(m.Images))
	}
	if want := "user what is this? 0\ntool Viewed. 0\nassistant a picture 0\n"; got != want {
		t.Errorf("messages:\n%swant:\n%s", got, want)
	}
	if plain := list[3:]; &transcript.Unseen(plain)[0] != &plain[0] {
		t.Error("messages without images were copied")
	}
}

// TestACallIsReadWithTheArgumentsThatAHookGaveIt: what a hook says counts as it
// does for the call itself.
func TestACallIsReadWithTheArgumentsThatAHookGaveIt(t *testing.T) {
	for _, test := range []struct {
		end  event.HookEndData
		want string
	}{
		{event.HookEndData{Kind: event.HookPreToolUse, Success: true, Outputs: map[string]json.RawMessage{"a": json.RawMessage(`{"modifiedArgs":{"x":2}}`)}}, `{"x":2}`},
		{event.HookEndData{Kind: event.HookPreToolUse, Success: true, Outputs: map[string]json.RawMessage{"b": json.RawMessage(`{"modifiedArgs":{"x":2}}`)}}, `{"x":1}`},
		{event.HookEndData{Kind: event.HookPreToolUse, Success: true, Outputs: map[string]json.RawMessage{"a": json.RawMessage(`{"modifiedArgs":"x"}`)}}, `{"x":1}`},
		{event.HookEndData{Kind: event.HookPreToolUse, Success: true, Outputs: map[string]json.RawMessage{"a": json.RawMessage(`{"modifiedArgs":null}`)}}, `{"x":1}`},
		{event.HookEndData{Kind: event.HookPreToolUse, Outputs: map[string]json.RawMessage{"a": json.RawMessage(`{"modifiedArgs":{"x":2}}`)}}, `{"x":1}`},
		{event.HookEndData{Kind: event.HookPostToolUse, Success: true, Outputs: map[string]json.RawMessage{"a": json.RawMessage(`{"modifiedArgs":{"x":2}}`)}}, `{"x":1}`},
	} {
		var h transcript.History
		h.Add(encode(t, 1, event.UserMessageData{Content: "go"}))
		h.Add(encode(t, 2, event.AssistantMessageData{Content: "I go.", ReasoningOpaque: "signed", ToolRequests: []event.ToolRequest{
			{ToolCallID: "a", Name: "act", Arguments: json.RawMessage(`{"x":1}`)}, {ToolCallID: "c", Name: "act", Arguments: json.RawMessage(`{"x":3}`)}}}))
		before, err := h.Messages()
		if err != nil {
			t.Fatal(err)
		}
		h.Add(encode(t, 3, test.end))
		h.Add(encode(t, 4, event.ToolCompleteData{ToolCallID: "a", Success: true, Result: &event.ToolResult{Content: "r"}}))
		after, err := h.Messages()
		if err != nil {
			t.Fatal(err)
		}
		m := after[1]
		if string(m.Calls[0].Arguments) != test.want || string(m.Calls[1].Arguments) != `{"x":3}` || m.Text != "I go." || m.Reasoning == nil || m.Reasoning.Opaque != "signed" {
			t.Errorf("%+v: the model reads %+v, want %s", test.end, m, test.want)
		}
		if string(before[1].Calls[0].Arguments) != `{"x":1}` {
			t.Errorf("a request that was made has changed: %s", before[1].Calls[0].Arguments)
		}
	}
}

// TestWhatASessionBeginsWithIsReadFirst also takes an epoch and a rewind that
// begin with the request: they show or hide both.
func TestWhatASessionBeginsWithIsReadFirst(t *testing.T) {
	words := event.UserMessageData{Content: "context", TransformedContent: "context", Source: transcript.SourceSessionStart}
	talk := []event.Payload{
		event.UserMessageData{Content: "old", TransformedContent: "old"}, event.AssistantMessageData{Content: "yes"},
		event.UserMessageData{Content: "new", TransformedContent: "new"}, words, event.AssistantMessageData{Content: "well"},
	}
	for _, test := range []struct {
		more []event.Payload
		want string
	}{
		{nil, "[old yes context new well]"},
		{[]event.Payload{event.HistoryHiddenData{From: 3, To: 5}}, "[old yes]"},
		{[]event.Payload{event.HistoryHiddenData{From: 5, To: 5}}, "[old yes context new]"},
		{[]event.Payload{event.ContextEpochData{From: 3}}, "[context new well]"},
		{[]event.Payload{event.ContextEpochData{From: 5}}, "[well]"},
	} {
		var h, loaded transcript.History
		var events []event.Event
		for i, p := range append(talk[:len(talk):len(talk)], test.more...) {
			e := encode(t, event.Seq(i+1), p)
			events = append(events, e)
			h.Add(e)
		}
		loaded.Load(events)
		for name, h := range map[string]*transcript.History{"live": &h, "loaded": &loaded} {
			list, err := h.Messages()
			var texts []string
			for _, m := range list {
				texts = append(texts, m.Text)
			}
			if got := fmt.Sprint(texts); err != nil || got != test.want {
				t.Errorf("%s, %+v: %s, %v, want %s", name, test.more, got, err, test.want)
			}
		}
		if _, items, err := h.Items(); err != nil || len(items) > 1 && items[0].Text == "context" && items[0].At != items[1].At {
			t.Errorf("items %+v, %v", items, err)
		}
	}
}
