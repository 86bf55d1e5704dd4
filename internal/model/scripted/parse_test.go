package scripted_test

import (
	"errors"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/scripted"
)

// tour is a scenario with every key.
const tour = `{
  "about": "every key once",
  "witness": "attempts",
  "rules": [
    {
      "name": "a slow search that is refused twice",
      "when": {
        "user": "Find it", "userContains": "Find", "userMatches": "^Find (it|them)$", "userMessages": 1, "step": 1,
        "results": 0, "resultContains": "", "noticeContains": "", "model": "m", "tool": "search"
      },
      "reply": {
        "deltas": ["I look ", "for {{user}}."],
        "calls": [{"tool": "search", "arguments": {"for": "it"}}, {"tool": "wait"}, {"tool": "odd", "arguments": "{not JSON"}],
        "usage": {"inputTokens": 1, "outputTokens": 2, "cacheReadTokens": 3, "cacheWriteTokens": 4, "reasoningTokens": 5},
        "finish": "length",
        "delay": "1s",
        "deltaDelay": "10ms",
        "error": {"status": 429, "kind": "rate_limit", "message": "slow down", "retryAfter": "2s", "times": 2, "afterDeltas": 1}
      }
    },
    {"when": {"step": 2}, "reply": {"text": "{{result}}|{{results}}"}},
    {"reply": {"error": {"status": 500}}}
  ]
}`

func TestParseRefusesWhatItDoesNotUnderstandAndSaysWhere(t *testing.T) {
	rule := func(s string) string { return "{\"rules\": [\n  " + s + "\n]}" }
	reply := func(s string) string { return rule(`{"reply": {` + s + `}}`) }
	for _, tt := range []struct{ in, want string }{
		{``, "x.json:1:1: this is not JSON: unexpected end of JSON input"},
		{"{\n  \"rules\": [,]}", "x.json:2:13: this is not JSON: invalid character ','"},
		{`{"rules": []} {}`, "x.json:1:15: this is not JSON: invalid character '{'"},
		{`[]`, "x.json:1:1: an object must stand here"},
		{`{}`, "x.json:1:1: this scenario has no rules"},
		{`{"rules": {}}`, "x.json:1:11: a list must stand here"},
		{`{"rule": []}`, `x.json:1:2: unknown key "rule"; the nearest known key is "rules"`},
		{"{\"rules\": [\n\t{\"when\": {\"ü\": 1}}]}", `x.json:2:12: unknown key "ü"; the nearest known key is "step"`},
		{`{"about": "grüße", "rule": []}`, `x.json:1:20: unknown key "rule"; the nearest known key is "rules"`},
		{rule(`{"when": {"usr": "a"}}`), `x.json:2:13: unknown key "usr"; the nearest known key is "user"`},
		{rule(`{"when": {"USERMESSAGES": 1}}`), `x.json:2:13: unknown key "USERMESSAGES"; the nearest known key is "userMessages"`},
		{rule(`{"when": {"step": 1, "step": 1}}`), `x.json:2:24: key "step" stands here for the second time`},
		{rule(`{"when": {"step": 0}}`), "x.json:2:21: step: 0 is too small; the least is 1"},
		{rule(`{"when": {"step": "1"}}`), "x.json:2:21: step must be a whole number"},
		{rule(`{"when": {"results": 1.5}}`), "x.json:2:24: results must be a whole number"},
		{rule(`{"when": {"results": -1}}`), "x.json:2:24: results: -1 is too small; the least is 0"},
		{rule(`{"when": {"user": null}}`), "x.json:2:21: user must be a string"},
		{rule(`{"when": {"userMatches": "("}}`), "x.json:2:28: userMatches: error parsing regexp"},
		{rule(`{"when": {"userMatches": 1}}`), "x.json:2:28: userMatches must be a string with a regular expression"},
		{rule(`{"when": {}}`), `x.json:2:3: this rule has no "reply"`},
		{rule(`{"reply": {"text": "a"}}, {"reply": {"text": "b"}}`), "x.json:2:29: this rule is never reached, because rule 1 has no conditions"},
		{reply(``), "x.json:2:13: this reply says nothing"},
		{reply(`"calls": []`), "x.json:2:13: this reply says nothing"},
		{reply(`"text": "a", "deltas": ["b"]`), `x.json:2:13: this reply has "text" and "deltas"`},
		{reply(`"text": "{{users}}"`), "x.json:2:22: unknown placeholder {{users}}; the nearest known one is {{user}}"},
		{reply(`"deltas": ["a", "{{reslut}}"]`), "x.json:2:30: unknown placeholder {{reslut}}; the nearest known one is {{result}}"},
		{reply(`"text": "a", "delay": "soon"`), `x.json:2:36: delay: "soon" is no duration`},
		{reply(`"text": "a", "delay": 5`), `x.json:2:36: delay must be a duration in a string, such as "250ms"`},
		{reply(`"text": "a", "deltaDelay": "-1s"`), `x.json:2:41: deltaDelay: "-1s" is no duration`},
		{reply(`"calls": [{"arguments": {}}]`), `x.json:2:24: this call has no "tool"`},
		{reply(`"calls": [{"tool": "a", "arguments": [1]}]`), "x.json:2:51: arguments must be an object, or a string"},
		{reply(`"calls": [{"tool": "a", "arguments": null}]`), "x.json:2:51: arguments must be an object, or a string"},
		{reply(`"calls": [{"tool": "a", "id": "1"}]`), `unknown key "id"; the nearest known key is "tool"`},
		{reply(`"text": "a", "usage": {"inputTokens": -1}`), "inputTokens: -1 is too small"},
		{reply(`"error": {}`), `x.json:2:23: this error has neither "status" nor "kind"`},
		{reply(`"error": {"status": 200}`), "status: 200 is too small; the least is 400"},
		{reply(`"error": {"kind": "rate-limit"}`), `unknown kind "rate-limit"; the nearest known kind is "rate_limit"`},
		{reply(`"error": {"status": 500, "afterDeltas": 1}`), "this error comes after deltas, but there are none"},
		{reply(`"text": "a", "error": {"status": 500}`), "this reply always fails, so the rest of it is never sent"},
		{reply(`"error": {"status": 500, "times": 1}`), "this reply fails only some times, but says nothing then"},
		{reply(`"text": "a", "error": {"status": 500, "times": 1}`), `x.json:2:3: this rule fails only some times, but a retry is the same request: name a "witness"`},
	} {
		_, err := scripted.Parse("x.json", []byte(tt.in))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s\n got: %v\nwant: %s", tt.in, err, tt.want)
		}
	}
}

func TestParseTakesEveryKey(t *testing.T) {
	if _, err := scripted.Parse("tour.json", []byte(tour)); err != nil {
		t.Error(err)
	}
}

func TestLoadNamesAMissingFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none.json")
	_, err := scripted.Load(path)
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), path) {
		t.Errorf("err = %v, want one that names %s", err, path)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(tour))
	f.Add([]byte(`{"rules":[{"reply":{"text":"{{user}}"}}]}`))
	f.Add([]byte(`{"rules":[{"when":{"step":1},"reply":{"calls":[{"tool":"a","arguments":"b"}]}}]}`))
	f.Add([]byte(`{"rules":[{"reply":{"error":{"kind":"stream","afterDeltas":1},"deltas":["a"]}}]}`))
	place := regexp.MustCompile(`^x\.json:\d+:\d+: `)
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := scripted.Parse("x.json", data)
		if err != nil {
			if !place.MatchString(err.Error()) {
				t.Fatalf("error without a place: %v", err)
			}
			return
		}
		if regexp.MustCompile(`[wW]itness|[dD]elay|\\u`).Match(data) {
			return // such a script would write files or wait
		}
		req := &model.Request{Messages: []*model.Message{{Role: model.User, Text: "Find it"}}}
		reply, err := m.Ask(t.Context(), req, nil)
		again, errAgain := m.Ask(t.Context(), req, nil)
		if !cmp.Equal(reply, again) || (err == nil) != (errAgain == nil) || (err == nil) == (reply == nil) {
			t.Fatalf("the same request got %+v, %v and %+v, %v", reply, err, again, errAgain)
		}
	})
}
