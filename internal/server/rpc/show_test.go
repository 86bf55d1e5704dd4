package rpc

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/jsonrpc"
)

// encoded is an event that is not stored, with an id of its own.
func encoded(t testing.TB, parent string, p event.Payload) event.Event {
	e, err := event.Encode(event.Head{ID: event.NewID(), Time: time.Now(), Parent: parent, Ephemeral: true}, p)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// taken takes an event apart as it is for a client.
func taken(e event.Event) (jsonrpc.Piece, bool) {
	return piece("s", e, []byte(`{"sessionId":"s","event":`))
}

// text decodes params of pieces that were joined.
func text(t *testing.T, pieces ...jsonrpc.Piece) string {
	b := bytes.Clone(pieces[0].Head)
	for _, p := range pieces {
		b = append(b, p.Text...)
	}
	var params api.EventParams
	if err := json.Unmarshal(append(b, pieces[0].Tail...), &params); err != nil {
		t.Fatalf("%s: %v", b, err)
	}
	e, err := event.Parse(0, params.Event)
	if err != nil {
		t.Fatal(err)
	}
	var d struct{ DeltaContent, InputDelta string }
	if err := e.Decode(&d); err != nil {
		t.Fatal(err)
	}
	return d.DeltaContent + d.InputDelta
}

func TestPiecesOfOneTextJoin(t *testing.T) {
	texts := []string{"word ", `"`, "\\", "\n\t\x00", "é€😀", "\u2028<&>", `"deltaContent":"`, `"}}`, `,"parentId":`, " "}
	kinds := map[string]func(text string) event.Payload{
		"message":   func(s string) event.Payload { return event.MessageDeltaData{MessageID: "m", DeltaContent: s} },
		"reasoning": func(s string) event.Payload { return event.ReasoningDeltaData{ReasoningID: "m", DeltaContent: s} },
		"call": func(s string) event.Payload {
			return event.ToolCallDeltaData{ToolCallID: `"inputDelta":"`, ToolName: "view", ToolType: "function", InputDelta: s}
		},
	}
	for name, said := range kinds {
		t.Run(name, func(t *testing.T) {
			var pieces []jsonrpc.Piece
			want := ""
			for _, s := range texts {
				p, ok := taken(encoded(t, "before", said(s)))
				if !ok {
					t.Fatalf("%q is no piece", s)
				}
				pieces, want = append(pieces, p), want+s
				if !bytes.Equal(p.Stream, pieces[0].Stream) || p.Lane != "s" {
					t.Errorf("%q belongs to %s in %s", s, p.Stream, p.Lane)
				}
				if got := text(t, pieces...); got != want {
					t.Errorf("joined they are %q, want %q", got, want)
				}
			}
		})
	}
}

func TestPiecesOfDifferentTextsDoNotJoin(t *testing.T) {
	streams := make(map[string]string)
	for name, e := range map[string]event.Event{
		"a message":        encoded(t, "before", event.MessageDeltaData{MessageID: "m"}),
		"another message":  encoded(t, "before", event.MessageDeltaData{MessageID: "n"}),
		"another parent":   encoded(t, "after", event.MessageDeltaData{MessageID: "m"}),
		"thoughts":         encoded(t, "before", event.ReasoningDeltaData{ReasoningID: "m"}),
		"a call":           encoded(t, "before", event.ToolCallDeltaData{ToolCallID: "m"}),
		"a call of a name": encoded(t, "before", event.ToolCallDeltaData{ToolCallID: "m", ToolName: "view"}),
	} {
		p, ok := taken(e)
		if other := streams[string(p.Stream)]; !ok || other != "" {
			t.Errorf("%s is a piece: %v; its stream %s is that of %q", name, ok, p.Stream, other)
		}
		streams[string(p.Stream)] = name
	}
}

func TestOnlyPiecesOfATextAreJoined(t *testing.T) {
	for _, p := range []event.Payload{
		event.StreamingDeltaData{TotalResponseSizeBytes: 1}, event.MessageStartData{MessageID: "m"},
		event.AssistantMessageData{Content: `"deltaContent":"x"}}`}, event.SessionIdleData{},
	} {
		if _, ok := taken(encoded(t, "before", p)); ok {
			t.Errorf("%s is taken for a piece", p.Type())
		}
	}
	if _, ok := taken(event.Event{Type: event.MessageDelta, Bytes: []byte(`{"type":"assistant.message_delta","data":{"deltaContent":"x","more":1}}`)}); ok {
		t.Error("an event whose text is not at its end is taken for a piece")
	}
}

func FuzzAnyTwoPiecesJoin(f *testing.F) {
	f.Add("a", "b")
	f.Add("\\", `"}}`)
	f.Fuzz(func(t *testing.T, a, b string) {
		pieces := make([]jsonrpc.Piece, 2)
		for i, s := range []string{a, b} {
			var ok bool
			if pieces[i], ok = taken(encoded(t, "", event.MessageDeltaData{MessageID: "m", DeltaContent: s})); !ok {
				t.Fatalf("%q is no piece", s)
			}
		}
		if got, want := text(t, pieces...), text(t, pieces[0])+text(t, pieces[1]); got != want {
			t.Errorf("joined they are %q, want %q", got, want)
		}
	})
}

func TestAHistoryIsTheStoredBytes(t *testing.T) {
	for _, stored := range [][]string{{}, {`{"type":"a" }`}, {`{"type":"a"}`, `{"type":"b","data":{"text":"<é>"}}`}} {
		var list []event.Event
		want := api.EventsResult{Events: []json.RawMessage{}}
		for _, b := range stored {
			list, want.Events = append(list, event.Event{Bytes: []byte(b)}), append(want.Events, json.RawMessage(b))
		}
		var got api.EventsResult
		if err := json.Unmarshal(eventsResult(list), &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("the history is %s, %v; want %s", got.Events, err, want.Events)
		}
	}
}

func TestEveryMethodWithLargeAnswersExists(t *testing.T) {
	for name := range bulk {
		if methods[name] == nil {
			t.Errorf("there is no method %s", name)
		}
	}
}
