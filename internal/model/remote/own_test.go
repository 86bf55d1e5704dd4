package remote

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/abide-run/abide/internal/model"
)

func FuzzMembersAreOnlyKnownIfNoneIsLeft(f *testing.F) {
	for _, object := range []string{
		`{}`, ` {}`, `null`, `{"role":"assistant","content":"hello"}`, `{"content":null,"role":"x"}`,
		`{"role":"a","own":1}`, `{"own":{"role":1}}`, `{"content":{"own":1},"role":["own",{"own":2}]}`, `{"content":[],"own":""}`,
		`{"Role":"a"}`, `{"ro\u006ce":"a"}`, `{"content":"a\"own\",\"b","role":"\\"}`, `{"content":"},{\"own\":1"}`, `{ "role" : "a" , "content" : [ 1 , 2 ] , "x" : 3 }`,
	} {
		f.Add([]byte(object))
	}
	known := []string{"role", "content"}
	f.Fuzz(func(t *testing.T, object []byte) {
		var all map[string]json.RawMessage
		if json.Unmarshal(object, &all) != nil || !onlyKnown(object, known) {
			return
		}
		for name := range all {
			if !slices.Contains(known, name) {
				t.Errorf("%s has %q, and no member that is not known", object, name)
			}
		}
	})
}

func TestMembersThatAreNotKnownAreKept(t *testing.T) {
	for object, want := range map[string]string{
		`{"role":"a","content":"own"}`:        "",
		`{"role":"a","own":1}`:                `"own":1`,
		`{"content":["own"],"own":{"a":"b"}}`: `"own":{"a":"b"}`,
		`{"ROLE":"a","own":null}`:             "",
		`{"role":"a\"","own":"}"}`:            `"own":"}"`,
	} {
		own, err := OwnMembers([]byte(object), []string{"role", "content"})
		if got := string(own.Append(nil, "")); err != nil || got != want {
			t.Errorf("%s: got %s, %v; want %s", object, got, err, want)
		}
	}
}

func TestAClientEncodesASystemPromptOnceUntilItChanges(t *testing.T) {
	encoded := 0
	body := func(q *Query) [][]byte {
		return [][]byte{q.Beginning(q.Model, func() []byte { encoded++; return []byte(q.Model + ":" + q.System) })}
	}
	got := make(chan string, 6)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got <- string(b)
		w.WriteHeader(http.StatusTeapot)
	}))
	defer server.Close()
	c := New(Config{BaseURL: server.URL}, Wire{Name: "test", Body: body})
	for _, ask := range []model.Request{{Model: "a", System: "one"}, {Model: "a", System: "one"}, {Model: "b", System: "one"}, {Model: "b", System: "two"}, {Model: "b", System: "two"}, {Model: "b"}} {
		_, _ = c.Ask(t.Context(), &ask, nil) // the server refuses every request
	}
	for _, want := range []string{"a:one", "a:one", "b:one", "b:two", "b:two", "b:"} {
		if body := <-got; body != want {
			t.Errorf("a body is %q, want %q", body, want)
		}
	}
	if encoded != 4 {
		t.Errorf("the prompt was encoded %d times, want 4", encoded)
	}
}
