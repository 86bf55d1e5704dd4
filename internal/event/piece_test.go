package event_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/event"
)

// textOf returns the text of a piece as a reader of the whole event gets it.
func textOf(t *testing.T, b []byte, field string) string {
	t.Helper()
	var e struct{ Data map[string]json.RawMessage }
	var text string
	if err := json.Unmarshal(b, &e); err != nil {
		t.Fatalf("%s: %v", b, err)
	}
	if err := json.Unmarshal(e.Data[field], &text); err != nil {
		t.Fatalf("%s in %s: %v", field, b, err)
	}
	return text
}

// checkPiece checks a piece against a decoder: its parts are the event, and its text is
// that of the field that grows.
func checkPiece(t *testing.T, e event.Event, p event.Piece) {
	t.Helper()
	if whole := string(p.Head) + string(p.Text) + event.PieceEnd; whole != string(e.Bytes) {
		t.Errorf("the parts are %q, want %q", whole, e.Bytes)
	}
	if !bytes.HasSuffix(p.Head, p.Stream) || !bytes.HasPrefix(p.Stream, []byte(`,"parentId":`)) {
		t.Errorf("the stream %q is not the end of the head %q", p.Stream, p.Head)
	}
	var text string
	if err := json.Unmarshal([]byte(`"`+string(p.Text)+`"`), &text); err != nil {
		t.Errorf("the text %q is no JSON: %v", p.Text, err)
	}
	if want := textOf(t, e.Bytes, e.Kind().Grows); text != want {
		t.Errorf("the text is %q, want %q of %s", text, want, e.Bytes)
	}
}

// lastText returns the last field of a kind's body if it is a text, and not the id of
// something; empty otherwise.
func lastText(t *testing.T, kind event.Type) string {
	t.Helper()
	body := bodyOf(t, kind)
	fields := fieldsOf(t, kind)
	if len(fields) == 0 {
		return ""
	}
	last := fields[len(fields)-1]
	if of, _ := reflect.TypeOf(body).FieldByName(last.goName); of.Type.Kind() != reflect.String || strings.HasSuffix(last.name, "Id") {
		return ""
	}
	return last.name
}

// TestEveryPieceWithATextIsCut holds the column Grows of the table against the bodies:
// the field is the last one that is encoded, whatever the others hold.
func TestEveryPieceWithATextIsCut(t *testing.T) {
	for _, k := range event.Kinds() {
		if k.Grows != "" && !k.Piece {
			t.Errorf("%s grows and is no piece", k.Type)
		}
		if !k.Piece {
			continue
		}
		if last := lastText(t, k.Type); last != "" && k.Grows == "" {
			t.Errorf("%s is a piece that ends with the text %s, and its pieces are never joined: give its row Grows: %[2]q; a field that is no text but the id of something is named …Id", k.Type, last)
		}
		e, err := event.Encode(event.Head{ID: event.NewID(), Time: noon, Parent: "before"}, bodyWith(t, k, "a \"quote\" \\"))
		if err != nil {
			t.Fatal(err)
		}
		p, ok := e.CutPiece()
		if ok != (k.Grows != "") {
			t.Errorf("%s grows by %q, and is cut: %v", k.Type, k.Grows, ok)
		}
		if ok {
			checkPiece(t, e, p)
			agent := e.OfAgent("child")
			if p, ok = agent.CutPiece(); !ok {
				t.Errorf("%s of an agent is not cut", k.Type)
			}
			checkPiece(t, agent, p)
		}
	}
}

// bodyWith returns a body of a kind whose strings are all the same text.
func bodyWith(t *testing.T, k event.Kind, text string) event.Payload {
	t.Helper()
	quoted, _ := json.Marshal(text) // a string can always be encoded
	members := `"messageId":` + string(quoted) + `,"reasoningId":` + string(quoted) + `,"toolCallId":` + string(quoted) +
		`,"toolName":` + string(quoted) + `,"toolType":` + string(quoted) + `,"deltaContent":` + string(quoted) + `,"inputDelta":` + string(quoted)
	e, err := event.Parse(0, []byte(`{"type":"`+string(k.Type)+`","id":"i","timestamp":"2026-11-15T12:00:00.000Z","parentId":null,"data":{`+members+`}}`))
	if err != nil {
		t.Fatal(err)
	}
	body, err := e.Body()
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// FuzzCutPiece holds the cut against a decoder, for texts that we encode and for events
// that are written in any other way.
func FuzzCutPiece(f *testing.F) {
	f.Add("word ", "call", []byte(`{"deltaContent":"x"}`))
	f.Add("\\", `","inputDelta":"`, []byte(`{"deltaContent":"x","more":"y"}`))
	f.Add(`"}}`, `"deltaContent":"`, []byte(`{"a":{"deltaContent":"x"},"b":"y"}`))
	f.Add("\u2028<&>", "\x00\xff", []byte(`{"deltaContent":"}`))
	f.Add("", "", []byte(`{"deltaContent":"a","deltaContent":"b"}`))
	f.Add("é", "", []byte(` { "deltaContent" : "x" } `))
	f.Fuzz(func(t *testing.T, text, id string, data []byte) {
		for _, body := range []event.Payload{
			event.MessageDeltaData{MessageID: id, DeltaContent: text},
			event.ReasoningDeltaData{ReasoningID: id, DeltaContent: text},
			event.ToolCallDeltaData{ToolCallID: id, ToolName: id, ToolType: id, InputDelta: text},
		} {
			e, err := event.Encode(event.Head{ID: "i", Time: noon, Parent: "before"}, body)
			if err != nil {
				t.Fatal(err)
			}
			p, ok := e.CutPiece()
			if !ok {
				t.Fatalf("%s is not cut", e.Bytes)
			}
			checkPiece(t, e, p)
		}
		b := []byte(`{"type":"assistant.message_delta","id":"i","timestamp":"2026-11-15T12:00:00.000Z","parentId":null,"ephemeral":true,"data":` + string(data) + `}`)
		e, err := event.Parse(0, b)
		if err != nil {
			return
		}
		if p, ok := e.CutPiece(); ok && json.Valid(data) {
			checkPiece(t, e, p)
		}
	})
}

func TestPiecesAreWrittenAsPackageJSONWritesThem(t *testing.T) {
	texts := []string{"", "word ", "~ !", "größer", "\u2028", "<a> & b", "a\nb", `a"b`, `a\b`, "\xff", "\ufffd"}
	for c := range 256 {
		texts = append(texts, "a"+string([]byte{byte(c)})+"b")
	}
	for _, text := range texts {
		for _, body := range []event.Payload{
			event.MessageDeltaData{MessageID: "m", DeltaContent: text},
			event.MessageDeltaData{MessageID: text, DeltaContent: "a"},
			event.ReasoningDeltaData{ReasoningID: "r", DeltaContent: text},
			event.ReasoningDeltaData{ReasoningID: text, DeltaContent: "a"},
			event.ToolCallDeltaData{ToolCallID: "c", InputDelta: text},
		} {
			var want bytes.Buffer
			enc := json.NewEncoder(&want)
			enc.SetEscapeHTML(false)
			if err := enc.Encode(body); err != nil {
				t.Fatal(err)
			}
			if got, err := encode(t, event.Head{ID: "i", Time: noon}, body).Data(); err != nil || string(got)+"\n" != want.String() {
				t.Errorf("%T is written as %s, %v, want %s", body, got, err, &want)
			}
		}
	}
}
