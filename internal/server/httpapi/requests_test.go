package httpapi

import (
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/workspace"
)

// FuzzRequests reads what clients could send: it is understood, or refused with a
// reason.
func FuzzRequests(f *testing.F) {
	for _, body := range []string{
		`{"command":"c","workdir":"/","env":{"A":"b"},"background":true,"key":"k","title":"t"}`,
		`{"signal":"kill"}`, `{}`, `null`, `[1]`, `{"command":" "}`, `{"env":{"=":""},"command":"c"}`, "\xff", `{"command":"c"}x`,
		"offset=1&tail=2", "wait=true&timeout=5", "limit=9&stream=stdout&encoding=base64", "offset=-1",
	} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if r, err := decodeStart(strings.NewReader(text)); err == nil {
			if strings.TrimSpace(r.Command) == "" {
				t.Errorf("an empty command was accepted")
			}
		} else if toAnswer(err).Status != 400 {
			t.Errorf("start: %v", err)
		}
		if name, err := decodeSignal(strings.NewReader(text)); err == nil && name == "" {
			t.Error("a signal without a name was accepted")
		}
		r := httptest.NewRequest("GET", "/x/output", nil)
		r.URL = &url.URL{Path: "/x/output", RawQuery: text}
		q, err := parseOutput(r, "me")
		if err == nil && (q.offset < 0 || q.limit < 1 || q.limit > workspace.MaxOutput || q.tail < 0 || q.wait < 0) {
			t.Errorf("%q became %+v", text, q)
		}
	})
}
