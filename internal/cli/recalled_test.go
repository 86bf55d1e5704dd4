package cli

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/event"
)

func TestWhatWasRecalledIsShownWithItsReason(t *testing.T) {
	reader := recalledReader{queries: make(map[string]string)}
	var list []recalledText
	for i, body := range []event.Payload{
		event.MemoryRecalledData{Text: "<memory>\n- be brief\x1b[31m\n</memory>", Pages: []string{"/m/requests.md"}, Parts: []event.MemoryPart{{Path: "/m/requests.md", Own: 1, Facts: 1, Of: 4}, {Path: "/m/decisions.md", Facts: 2, Of: 2}}},
		event.UserMessageData{Content: "hello"},
		event.UserMessageData{Content: "a skill", Source: "skill-x"},
		event.UserMessageData{Content: "which port?"},
		event.AssistantMessageData{ToolRequests: []event.ToolRequest{
			{ToolCallID: "a", Name: "memory_search", Arguments: json.RawMessage(`{"query":"port"}`)}, {ToolCallID: "b", Name: "grep", Arguments: json.RawMessage(`{"query":"port"}`)}, {ToolCallID: "c", Name: "memory_search", Arguments: json.RawMessage(`["rubbish"]`)},
		}},
		event.ToolCompleteData{ToolCallID: "a", Success: true, Result: &event.ToolResult{Content: "In memory:\nport 5433"}},
		event.ToolCompleteData{ToolCallID: "b", Success: true, Result: &event.ToolResult{Content: "no"}},
		event.ToolCompleteData{ToolCallID: "c", Error: &event.ToolError{Message: "no"}},
	} {
		e, err := event.Encode(event.Head{ID: event.NewID(), Time: time.Now()}, body)
		if err != nil {
			t.Fatal(err)
		}
		e.Seq = event.Seq(i + 1)
		r, ok, err := reader.read(e)
		if err != nil {
			t.Fatal(err)
		}
		if ok {
			list = append(list, r)
		}
	}
	var w strings.Builder
	if err := writeRecalled(&w, list); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"Turn 1: told at the beginning", "/m/requests.md: 1 line that people wrote, which always come first; the newest 1 of its 4 facts", "/m/decisions.md: all of its 2 facts",
		`Turn 2: the model has searched for "port" (event 6)`, "  | port 5433\n",
	} {
		if !strings.Contains(w.String(), want) {
			t.Errorf("%q is missing in\n%s", want, w.String())
		}
	}
	if len(list) != 2 || strings.Contains(w.String(), "\x1b") {
		t.Errorf("it shows\n%q", w.String())
	}
	w.Reset()
	if err := writeRecalled(&w, nil); err != nil || w.String() != "Nothing was recalled in this session.\n" {
		t.Errorf("of nothing it shows %q, %v", w.String(), err)
	}
}
