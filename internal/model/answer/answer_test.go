package answer_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/answer"
)

type form struct {
	Text string   `json:"text"`
	List []string `json:"list"`
}

func TestRead(t *testing.T) {
	for raw, want := range map[string]*form{
		`{"text":"a"}`:             {Text: "a"},
		` {"list":["b"]} `:         {List: []string{"b"}},
		`"{\"text\":\"a\"}"`:       {Text: "a"},
		`[{"text":"a"}]`:           {Text: "a"},
		`"[{\"text\":\"a\"}]"`:     {Text: "a"},
		`[{"text":"a"},{}]`:        nil,
		`{"text":"a"} {}`:          nil,
		`{"text":1}`:               nil,
		`{"summary":"a"}`:          nil,
		`{"text":"a"`:              nil,
		`null`:                     nil,
		``:                         nil,
		`"text"`:                   nil,
		`{"text":"a"}{"text":"b"}`: nil,
	} {
		var got form
		called, err := answer.Read(&model.Reply{Calls: []model.Call{{Name: "other"}, {Name: "hand_in", Arguments: json.RawMessage(raw)}}}, "hand_in", &got)
		if !called || (err == nil) != (want != nil) || want != nil && !reflect.DeepEqual(got, *want) {
			t.Errorf("%s: %+v, %v, %v; want %+v", raw, got, called, err, want)
		}
	}
	if called, err := answer.Read(&model.Reply{Calls: []model.Call{{Name: "other"}}}, "hand_in", nil); called || err != nil {
		t.Error("another tool was taken for it")
	}
}

func TestTheLastCallCounts(t *testing.T) {
	calls := []model.Call{{Name: "hand_in", Arguments: json.RawMessage(`{"text":1}`)}, {Name: "hand_in", Arguments: json.RawMessage(`{"text":"last"}`)}}
	var got form
	if _, err := answer.Read(&model.Reply{Calls: calls}, "hand_in", &got); err != nil || got.Text != "last" {
		t.Errorf("%+v, %v", got, err)
	}
}

func FuzzArgumentsNeverPanicAndStayTheSame(f *testing.F) {
	for _, seed := range []string{`{"text":"a"}`, `"{}"`, `[{"list":[]}]`, `[[[{}]]]`, `{"text":"\ud800"}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		read := func(raw []byte) (form, error) {
			var v form
			_, err := answer.Read(&model.Reply{Calls: []model.Call{{Name: "hand_in", Arguments: raw}}}, "hand_in", &v)
			return v, err
		}
		v, err := read(raw)
		if err != nil {
			return
		}
		again, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if w, err := read(again); err != nil || !reflect.DeepEqual(v, w) {
			t.Fatalf("%s became %+v, and that %+v (%v)", raw, v, w, err)
		}
	})
}
