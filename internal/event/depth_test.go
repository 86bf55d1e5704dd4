package event_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/event"
)

// nested is JSON of so many levels.
func nested(open, inside, end string, levels int) string {
	return strings.Repeat(open, levels) + inside + strings.Repeat(end, levels)
}

func TestJSONFromOutsideHasALimitedDepth(t *testing.T) {
	braces := `"` + strings.Repeat(`{[\"`, 2*event.MaxDepth) + `"`
	for name, c := range map[string]struct {
		text  string
		ok    bool
		field string
	}{
		"nothing":            {``, true, ""},
		"arrays":             {nested(`[`, ``, `]`, event.MaxDepth), true, ""},
		"one too many":       {nested(`[`, ``, `]`, event.MaxDepth+1), false, ""},
		"objects":            {nested(`{"a":`, `1`, `}`, event.MaxDepth), true, ""},
		"a field":            {`{"a":1,"b":` + nested(`{"a":`, `1`, `}`, event.MaxDepth) + `}`, false, "b"},
		"beyond the decoder": {`{"a":` + nested(`[`, ``, `]`, 20000) + `}`, false, ""},
		"brackets in a text": {`{"a":` + braces + `}`, true, ""},
		"many, side by side": {`[` + strings.Repeat(`{},`, 5*event.MaxDepth) + `{}]`, true, ""},
		"after a text":       {`[` + braces + `,` + nested(`[`, ``, `]`, event.MaxDepth) + `]`, false, ""},
	} {
		err := event.CheckDepth([]byte(c.text))
		deep, is := errors.AsType[*event.DepthError](err)
		if is == c.ok || (err == nil) != c.ok || (is && deep.Field != c.field) {
			t.Errorf("%s: err = %v", name, err)
		}
		if both := event.CheckJSON([]byte(c.text)); (both == nil) != c.ok {
			t.Errorf("%s: CheckJSON = %v", name, both)
		}
	}
	for _, text := range []string{`{`, `{"a":}`, `nil`, ` `} {
		if event.CheckJSON([]byte(text)) == nil {
			t.Errorf("%q passes as JSON", text)
		}
	}
}

// What is encoded can be decoded, however deep its parts are: else it is not encoded.
func TestWhatCannotBeReadBackIsNotEncoded(t *testing.T) {
	refused := 0
	for levels := 9850; levels < 10010; levels++ {
		for _, p := range []event.Payload{
			event.ToolStartData{ToolCallID: "c", Arguments: json.RawMessage(nested(`{"a":`, `1`, `}`, levels))},
			event.UserMessageData{Attachments: []json.RawMessage{[]byte(nested(`[`, ``, `]`, levels))}},
		} {
			e, err := event.Encode(event.Head{ID: "i", Time: noon}, p)
			if err != nil {
				refused++
				continue
			}
			var back map[string]any
			if err := json.Unmarshal([]byte(`{"params":{"event":`+string(e.Bytes)+`}}`), &back); err != nil {
				t.Fatalf("%d levels were encoded as %s, and cannot be read: %v", levels, e.Type, err)
			}
		}
	}
	if refused == 0 {
		t.Error("everything was encoded")
	}
}
