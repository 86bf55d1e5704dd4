package anthropictest

import (
	"encoding/json"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// with is a request with these messages.
func with(messages string) string { return `{"model":"m","max_tokens":1,"messages":` + messages + `}` }

const (
	user   = `{"role":"user","content":[{"type":"text","text":"hello"}]}`
	calls  = `{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"b","input":{}},{"type":"tool_use","id":"c","name":"b","input":{}}]}`
	mark   = `"cache_control":{"type":"ephemeral"}`
	marked = `{"type":"text","text":"x",` + mark + `}`
)

func result(id string) string { return `{"type":"tool_result","tool_use_id":"` + id + `"}` }

var requests = map[string]struct{ body, says string }{
	"right":                    {with(`[` + user + `]`), ""},
	"a text":                   {with(`[{"role":"user","content":"hello"}]`), ""},
	"calls and results":        {with(`[` + user + `,` + calls + `,{"role":"user","content":[` + result("a") + `,` + result("c") + `]}]`), ""},
	"no JSON":                  {`{`, "no request for a message"},
	"no limit":                 {`{"model":"m","messages":[` + user + `]}`, "max_tokens"},
	"no messages":              {with(`[]`), "at least one message"},
	"the assistant first":      {with(`[{"role":"assistant","content":"x"}]`), "messages.0"},
	"the user twice":           {with(`[` + user + `,` + user + `]`), "messages.1"},
	"nothing said":             {with(`[{"role":"user","content":[]}]`), "non-empty content"},
	"only spaces said":         {with(`[{"role":"user","content":[{"type":"text","text":" "}]}]`), "messages.0: content.0: text content blocks must be non-empty"},
	"an empty system prompt":   {`{"max_tokens":1,"system":[{"type":"text","text":""}],"messages":[` + user + `]}`, "system.0"},
	"no results":               {with(`[` + user + `,` + calls + `,` + user + `]`), "without tool_result"},
	"a result is missing":      {with(`[` + user + `,` + calls + `,{"role":"user","content":[` + result("a") + `]}]`), "without tool_result"},
	"results out of order":     {with(`[` + user + `,` + calls + `,{"role":"user","content":[` + result("c") + `,` + result("a") + `]}]`), "in this order"},
	"a result of nobody":       {with(`[{"role":"user","content":[` + result("a") + `]}]`), "unexpected tool_use_id"},
	"words before results":     {with(`[` + user + `,` + calls + `,{"role":"user","content":[{"type":"text","text":"x"},` + result("a") + `,` + result("c") + `]}]`), "without tool_result"},
	"an id with a dot":         {with(`[` + user + `,{"role":"assistant","content":[{"type":"tool_use","id":"a.b","name":"c","input":{}}]}]`), "pattern"},
	"input that is a text":     {with(`[` + user + `,{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"c","input":"{}"}]}]`), "object"},
	"a picture of the model":   {with(`[` + user + `,{"role":"assistant","content":[{"type":"image"}]}]`), "no blocks of type"},
	"a thought of the user":    {with(`[{"role":"user","content":[{"type":"thinking"}]}]`), "no blocks of type"},
	"a thought that is marked": {with(`[` + user + `,{"role":"assistant","content":[{"type":"thinking",` + mark + `}]}]`), "cannot have cache_control"},
	"five marks":               {with(`[{"role":"user","content":[` + strings.Repeat(marked+",", 4) + marked + `]}]`), "maximum of 4"},
	"four marks":               {with(`[{"role":"user","content":[` + strings.Repeat(marked+",", 3) + marked + `]}]`), ""},
	"a picture that is none":   {with(`[{"role":"user","content":[{"type":"image","source":{"data":"?"}}]}]`), "base64"},
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
