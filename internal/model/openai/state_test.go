package openai

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/profile"
	"github.com/abide-run/abide/internal/model/remote"
)

// answered returns the message that a whole reply becomes.
func answered(t *testing.T, q *remote.Query, reply string) *model.Message {
	t.Helper()
	b := newBuilder(q, nil)
	if err := b.Whole([]byte(reply)); err != nil {
		t.Fatal(err)
	}
	r := b.Reply()
	return &model.Message{Role: model.Assistant, Text: r.Text, Calls: r.Calls, Reasoning: r.Reasoning}
}

const ownReply = `{"choices":[{"message":{"content":"x","new_thing":{"a":[1,"<b>"]},"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}},` +
	`{"id":"b","function":{"name":"g","arguments":"{}"},"sealed":"s+/="}]},"finish_reason":"tool_calls"}]}`

func TestOnlyTheSameHostAndModelGetsTheirOwnMembersBack(t *testing.T) {
	from := remote.Query{Request: &model.Request{Model: "m"}, Host: "a.example"}
	m := answered(t, &from, ownReply)
	const message, call = `"new_thing":{"a":[1,"<b>"]}`, `"sealed":"s+/="`
	mistral, _ := profile.Named("mistral")
	for name, test := range map[string]struct {
		q    remote.Query
		want bool
	}{
		"the same":                       {remote.Query{Request: &model.Request{Model: "m"}, Host: "a.example"}, true},
		"another model":                  {remote.Query{Request: &model.Request{Model: "n"}, Host: "a.example"}, false},
		"another host":                   {remote.Query{Request: &model.Request{Model: "m"}, Host: "b.example"}, false},
		"without what was refused":       {remote.Query{Request: &model.Request{Model: "m", Forget: true}, Host: "a.example"}, false},
		"a beginning of the model":       {remote.Query{Request: &model.Request{Model: "m2"}, Host: "a.example"}, false},
		"the same again, from the cache": {remote.Query{Request: &model.Request{Model: "m"}, Host: "a.example"}, true},
	} {
		test.q.Messages = []*model.Message{m}
		body := bytes.Join(fragments(&test.q), nil)
		if !json.Valid(body) || bytes.Contains(body, []byte(message)) != test.want || bytes.Contains(body, []byte(call)) != test.want {
			t.Errorf("%s: %s", name, body)
		}
	}
	if m := answered(t, &remote.Query{Request: &model.Request{Model: "m"}, Host: "a.example", Profile: mistral}, ownReply); m.Reasoning != nil {
		t.Errorf("what a strict provider would refuse is kept: %+v", m.Reasoning)
	}
}

func TestTooMuchStateIsNotKept(t *testing.T) {
	q := &remote.Query{Request: &model.Request{Model: "m"}, Host: "a.example"}
	m := answered(t, q, `{"choices":[{"message":{"content":"x","huge":"`+strings.Repeat("y", 5<<20)+`"}}]}`)
	if m.Text != "x" || m.Reasoning != nil {
		t.Errorf("the reply keeps %d bytes", len(m.Reasoning.Opaque))
	}
}
