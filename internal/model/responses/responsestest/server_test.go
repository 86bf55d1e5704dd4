package responsestest

import (
	"encoding/json"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// with is a request with these items.
func with(items string) string { return `{"model":"m","store":false,"input":[` + items + `]}` }

const (
	user = `{"type":"message","role":"user","content":[{"type":"input_text","text":"hello"}]}`
	call = `{"type":"function_call","call_id":"a","name":"b","arguments":"{}"}`
	done = `{"type":"function_call_output","call_id":"a","output":"x"}`
)

var requests = map[string]struct{ body, says string }{
	"right":                {with(user), ""},
	"a call and its end":   {with(user + `,` + call + `,` + done), ""},
	"reasoning":            {with(user + `,{"type":"reasoning","id":"rs","summary":[{"type":"summary_text","text":"a"}],"encrypted_content":"b"},` + call + `,` + done), ""},
	"a result in parts":    {with(call + `,{"type":"function_call_output","call_id":"a","output":[{"type":"input_image","image_url":"data:image/png;base64,cG5n"}]}`), ""},
	"no JSON":              {`{`, "no request for a response"},
	"something is stored":  {`{"model":"m","input":[]}`, "store"},
	"no result":            {with(user + `,` + call), "no tool output found"},
	"a result of nobody":   {with(done), "no tool call found"},
	"two results":          {with(call + `,` + done + `,` + done), "input[2]"},
	"reasoning by name":    {with(`{"type":"reasoning","id":"rs","summary":[]}`), "not persisted"},
	"an unknown item":      {with(`{"type":"spell"}`), `no items of type "spell"`},
	"an unknown role":      {with(`{"type":"message","role":"wizard"}`), `role "wizard"`},
	"a picture elsewhere":  {with(`{"type":"message","role":"user","content":[{"type":"input_image","image_url":"https://x/y.png"}]}`), "data URL"},
	"content is a number":  {with(`{"type":"message","role":"user","content":7}`), "no request"},
	"a picture is nothing": {with(`{"type":"message","role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,?"}]}`), "base64"},
}

func TestWhatTheProviderWouldRefuseIsRefused(t *testing.T) {
	for name, test := range requests {
		t.Run(name, func(t *testing.T) {
			_, _, err := decodeRequest([]byte(test.body))
			if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
				t.Errorf("err = %v, want %q", err, test.says)
			}
		})
	}
}

func FuzzAnyRequestIsReadOrRefused(f *testing.F) {
	for _, r := range requests {
		f.Add([]byte(r.body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		req, _, err := decodeRequest(body)
		if (req == nil) == (err == nil) {
			t.Errorf("decoding %q gave %v and %v", body, req, err)
		}
		if err == nil && !json.Valid(body) {
			t.Errorf("%q was taken for a request", body)
		}
	})
}
