package scripted_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/scripted"
	_ "github.com/abide-run/abide/internal/test/seedtest"
)

func user(text string) *model.Message { return &model.Message{Role: model.User, Text: text} }

func parse(t testing.TB, text string) *scripted.Model {
	t.Helper()
	return parseAt(t, "x.json", text)
}

func parseAt(t testing.TB, name, text string) *scripted.Model {
	t.Helper()
	m, err := scripted.Parse(name, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func request(messages ...*model.Message) *model.Request { return &model.Request{Messages: messages} }

func ask(t testing.TB, m *scripted.Model, req *model.Request) *model.Reply {
	t.Helper()
	reply, err := m.Ask(t.Context(), req, nil)
	if err != nil {
		t.Fatal(err)
	}
	return reply
}

func TestEveryConditionDecides(t *testing.T) {
	callA := &model.Message{Role: model.Assistant, Calls: []model.Call{{ID: "1", Name: "a"}, {ID: "2", Name: "b"}}}
	resultA := &model.Message{Role: model.ToolRole, CallID: "1", Text: "sunny"}
	resultB := &model.Message{Role: model.ToolRole, CallID: "2", Text: "windy"}
	notice := user("<system_notification>task 7 ended</system_notification>")
	hello := user("<current_datetime>now</current_datetime>\n\nHello there")
	first := request(hello)
	second := request(hello, callA, resultA, resultB)
	first.Model, first.Tools = "m1", &model.Tools{List: []model.Tool{{Name: "search"}}}
	second.Model = "m2"
	for _, tt := range []struct {
		when string
		yes  *model.Request
		no   *model.Request
	}{
		{`"user": "Hello there"`, first, request(user("hello there"))},
		{`"userContains": "lo th"`, first, request(user("other"))},
		{`"userMatches": "^Hel+o"`, first, request(user("say Hello"))},
		{`"userMessages": 1`, second, request(hello, callA, resultA, resultB, hello)},
		{`"step": 1`, first, second},
		{`"step": 2`, second, first},
		{`"results": 2`, second, first},
		{`"results": 0`, first, second},
		{`"resultContains": "wind"`, second, first},
		{`"resultContains": "wind"`, second, request(hello, callA, resultA)},
		{`"noticeContains": "task 7"`, request(hello, notice), first},
		{`"model": "m1"`, first, second},
		{`"tool": "search"`, first, second},
		{`"user": "Hello there", "step": 2`, second, first},
	} {
		m := parse(t, `{"rules": [{"when": {`+tt.when+`}, "reply": {"text": "yes"}}, {"reply": {"text": "no"}}]}`)
		if got := ask(t, m, tt.yes).Text; got != "yes" {
			t.Errorf("%s does not hold where it should", tt.when)
		}
		if got := ask(t, m, tt.no).Text; got != "no" {
			t.Errorf("%s holds where it should not", tt.when)
		}
	}
}

func TestTheFirstRuleThatHoldsWins(t *testing.T) {
	m := parse(t, `{"rules": [{"when": {"step": 1}, "reply": {"text": "one"}}, {"when": {"step": 1}, "reply": {"text": "two"}}]}`)
	if got := ask(t, m, request(user("a"))).Text; got != "one" {
		t.Errorf("reply = %q, want that of the first rule", got)
	}
}

func TestNoRuleSaysWhatWasAskedAndWhatThereIs(t *testing.T) {
	m := parse(t, `{"rules": [{"name": "weather", "when": {"userContains": "weather", "step": 1}, "reply": {"text": "sunny"}}]}`)
	_, err := m.Ask(t.Context(), request(user("What time is it?")), nil)
	var failed *model.Error
	if !errors.As(err, &failed) || failed.Kind != model.KindScenario || failed.Temporary() {
		t.Fatalf("err = %v, want a lasting one of kind scenario", err)
	}
	for _, want := range []string{"x.json", `step 1 of "What time is it?"`, `rule 1 "weather" (userContains "weather", step 1)`, "add a rule"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q does not contain %q", err, want)
		}
	}
}

func TestAReplyHasAllThatTheRuleGives(t *testing.T) {
	m := parse(t, `{"rules": [{"reply": {
		"deltas": ["Look", " at ", "{{user}}"],
		"calls": [{"tool": "a", "arguments": {"n": 12345678901234567890, "s": "<"}}, {"tool": "b"}, {"tool": "c", "arguments": "{broken"}],
		"usage": {"inputTokens": 1, "outputTokens": 2, "cacheReadTokens": 3, "cacheWriteTokens": 4, "reasoningTokens": 5},
		"finish": "length"}}]}`)
	var deltas []string
	req := request(user("me"))
	req.Model = "m"
	reply, err := m.Ask(t.Context(), req, func(d model.Delta) { deltas = append(deltas, d.Text+d.CallName+d.Arguments) })
	if err != nil {
		t.Fatal(err)
	}
	wantDeltas := []string{"Look", " at ", "me", `a{"n":12345678901234567890,"s":"<"}`, "b{}", "c{broken"}
	if diff := cmp.Diff(wantDeltas, deltas); diff != "" {
		t.Errorf("deltas: -want +got\n%s", diff)
	}
	want := &model.Reply{
		Text: "Look at me",
		Calls: []model.Call{
			{ID: reply.Calls[0].ID, Name: "a", Arguments: []byte(`{"n":12345678901234567890,"s":"<"}`)},
			{ID: reply.Calls[1].ID, Name: "b", Arguments: []byte(`{}`)},
			{ID: reply.Calls[2].ID, Name: "c", Arguments: []byte(`{broken`)},
		},
		Usage:  model.Usage{Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4, Reasoning: 5},
		Finish: "length",
		Model:  "m",
	}
	if diff := cmp.Diff(want, reply); diff != "" {
		t.Errorf("reply: -want +got\n%s", diff)
	}
}

func TestAReplyStaysAsItIsWhenAnotherIsMade(t *testing.T) {
	m := parse(t, `{"rules": [{"reply": {"calls": [{"tool": "a"}]}}]}`)
	one := ask(t, m, request(user("one")))
	id := one.Calls[0].ID
	if two := ask(t, m, request(user("two"))); one.Calls[0].ID != id || two.Calls[0].ID == id {
		t.Errorf("the ids are %s, then %s and %s", id, one.Calls[0].ID, two.Calls[0].ID)
	}
}

func TestWhatARuleLeavesOutIsAsUsual(t *testing.T) {
	m := parse(t, `{"rules": [{"when": {"step": 1}, "reply": {"calls": [{"tool": "a"}]}}, {"reply": {"text": ""}}]}`)
	instruction := user("12345678")
	called := ask(t, m, request(instruction))
	if called.Finish != "tool_calls" || called.Usage != (model.Usage{Input: 2, Output: 1}) {
		t.Errorf("reply = %+v, want finish tool_calls and an estimated usage", called)
	}
	said := ask(t, m, request(instruction, &model.Message{Role: model.Assistant, Calls: called.Calls}))
	if said.Finish != "stop" || said.Text != "" {
		t.Errorf("reply = %+v, want finish stop and no text", said)
	}
}

func TestPlaceholdersAreFilledOnce(t *testing.T) {
	m := parse(t, `{"rules": [{"reply": {"text": "{{user}} / {{result}} / {{results}} / {{ user }} / {{.x}} / {{"}}]}`)
	calls := &model.Message{Role: model.Assistant, Calls: []model.Call{{ID: "1", Name: "a"}, {ID: "2", Name: "b"}}}
	reply := ask(t, m, request(user("say {{result}}"), calls,
		&model.Message{Role: model.ToolRole, CallID: "2", Text: "B{{user}}"},
		&model.Message{Role: model.ToolRole, CallID: "1", Text: "A"}))
	want := "say {{result}} / B{{user}} / A\nB{{user}} / {{ user }} / {{.x}} / {{"
	if reply.Text != want {
		t.Errorf("text = %q, want %q", reply.Text, want)
	}
	if reply := ask(t, m, request(user("u"))); reply.Text != "u /  /  / {{ user }} / {{.x}} / {{" {
		t.Errorf("text without results = %q", reply.Text)
	}
}

func TestAnErrorIsWhatTheScenarioSays(t *testing.T) {
	for in, want := range map[string]model.Error{
		`{"status": 401}`:                      {Kind: model.KindAuth, Status: 401, Message: "the scenario fails this request with HTTP status 401 Unauthorized"},
		`{"status": 404}`:                      {Kind: model.KindNotFound, Status: 404, Message: "the scenario fails this request with HTTP status 404 Not Found"},
		`{"status": 408, "message": "m"}`:      {Kind: model.KindTimeout, Status: 408, Message: "m"},
		`{"status": 413, "message": "m"}`:      {Kind: model.KindOverflow, Status: 413, Message: "m"},
		`{"status": 422, "message": "m"}`:      {Kind: model.KindRequest, Status: 422, Message: "m"},
		`{"status": 429, "retryAfter": "90s"}`: {Kind: model.KindRateLimit, Status: 429, RetryAfter: 90 * time.Second, Message: "the scenario fails this request with HTTP status 429 Too Many Requests"},
		`{"status": 503, "message": "m"}`:      {Kind: model.KindOverloaded, Status: 503, Message: "m"},
		`{"status": 400, "kind": "overflow"}`:  {Kind: model.KindOverflow, Status: 400, Message: "the scenario fails this request with HTTP status 400 Bad Request"},
		`{"kind": "network"}`:                  {Kind: model.KindNetwork, Message: `the scenario fails this request with an error of kind "network"`},
	} {
		m := parse(t, `{"rules": [{"reply": {"error": `+in+`}}]}`)
		for range 2 {
			_, err := m.Ask(t.Context(), request(user("a")), nil)
			var got *model.Error
			if !errors.As(err, &got) || *got != want {
				t.Errorf("%s: err = %#v, want %#v", in, err, want)
			}
		}
	}
}

func TestAStreamCanBreakOff(t *testing.T) {
	m := parse(t, `{"rules": [{"reply": {"text": "one two three", "error": {"kind": "stream", "afterDeltas": 2}}}]}`)
	var got string
	reply, err := m.Ask(t.Context(), request(user("a")), func(d model.Delta) { got += d.Text })
	if err == nil || reply != nil || got != "one two " {
		t.Errorf("streamed %q, then %v and %v; want two words and an error", got, reply, err)
	}
}

const flaky = `{"witness": "attempts", "rules": [{"reply": {"text": "at last", "error": {"status": 503, "times": 2}}}]}`

// failures counts the attempts that fail before one succeeds. Each attempt is
// made by a model of its own, as after a restart.
func failures(t *testing.T, dir string, req *model.Request) int {
	t.Helper()
	for n := range 10 {
		m := parseAt(t, filepath.Join(dir, "flaky.json"), flaky)
		reply, err := m.Ask(t.Context(), req, nil)
		if err == nil && reply.Text == "at last" {
			return n
		}
		var failed *model.Error
		if !errors.As(err, &failed) || failed.Status != 503 {
			t.Fatalf("attempt %d: %+v, %v", n+1, reply, err)
		}
	}
	t.Fatal("ten attempts failed")
	return 0
}

func TestAWitnessCountsAttemptsAcrossRestarts(t *testing.T) {
	dir := t.TempDir()
	one, two, other := request(user("one")), request(user("two")), request(user("one"))
	other.Session = "another"
	for i, tt := range []struct {
		req  *model.Request
		want int
	}{{one, 2}, {one, 0}, {two, 2}, {other, 2}, {one, 0}} {
		if got := failures(t, dir, tt.req); got != tt.want {
			t.Errorf("request %d failed %d times, want %d", i+1, got, tt.want)
		}
	}
}

func TestAWitnessCountsEveryAttemptOnce(t *testing.T) {
	m := parseAt(t, filepath.Join(t.TempDir(), "flaky.json"), flaky)
	var mu sync.Mutex
	var attempts sync.WaitGroup
	failed := 0
	for range 16 {
		attempts.Go(func() {
			if _, err := m.Ask(t.Context(), request(user("a")), nil); err != nil {
				mu.Lock()
				defer mu.Unlock()
				failed++
			}
		})
	}
	attempts.Wait()
	if failed > 2 {
		t.Errorf("%d attempts failed, want at most 2", failed)
	}
}

func TestAWitnessThatCannotBeWrittenIsAnError(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "attempts"), 0o700); err != nil {
		t.Fatal(err)
	}
	m := parseAt(t, filepath.Join(dir, "flaky.json"), flaky)
	_, err := m.Ask(t.Context(), request(user("a")), nil)
	var failed *model.Error
	if !errors.As(err, &failed) || failed.Kind != model.KindScenario || !strings.Contains(err.Error(), "attempts") {
		t.Errorf("err = %v, want one of kind scenario that names the witness", err)
	}
}

func TestDelaysTakeTheirTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := parse(t, `{"rules": [{"reply": {"deltas": ["a", "b"], "delay": "2s", "deltaDelay": "300ms"}}]}`)
		start := time.Now()
		var at []time.Duration
		if _, err := m.Ask(t.Context(), request(user("a")), func(model.Delta) { at = append(at, time.Since(start)) }); err != nil {
			t.Fatal(err)
		}
		if want := []time.Duration{2300 * time.Millisecond, 2600 * time.Millisecond}; !slices.Equal(at, want) {
			t.Errorf("deltas came at %v, want %v", at, want)
		}
	})
}

func TestACancelledDelayEndsAtOnce(t *testing.T) {
	for _, delay := range []string{`"delay": "1h"`, `"deltaDelay": "1h"`} {
		synctest.Test(t, func(t *testing.T) {
			m := parse(t, `{"rules": [{"reply": {"text": "a", `+delay+`}}]}`)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			start := time.Now()
			_, err := m.Ask(ctx, request(user("a")), nil)
			if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
				t.Errorf("%s: err = %v after %v, want that of the context after 1s", delay, err, time.Since(start))
			}
		})
	}
}

func TestRepliesDependOnTheRequestAloneAndCallIDsAreUnique(t *testing.T) {
	m := parse(t, `{"rules": [
		{"when": {"userContains": "both", "step": 1}, "reply": {"text": "t", "calls": [{"tool": "a"}, {"tool": "a"}]}},
		{"when": {"userContains": "twice", "results": 0}, "reply": {"calls": [{"tool": "b", "arguments": {"x": 1}}]}},
		{"when": {"userContains": "twice", "results": 1}, "reply": {"calls": [{"tool": "b", "arguments": {"x": 1}}]}},
		{"reply": {"text": "{{user}} gave {{results}}"}}]}`)
	words := rapid.SampledFrom([]string{"both", "twice", "none", "<reminder>x</reminder>"})
	rapid.Check(t, func(rt *rapid.T) {
		var conversation []*model.Message
		seen := map[string]bool{}
		for range rapid.IntRange(1, 12).Draw(rt, "requests") {
			if n := len(conversation); n == 0 || conversation[n-1].Role == model.Assistant || rapid.Bool().Draw(rt, "steer") {
				conversation = append(conversation, user(words.Draw(rt, "words")))
			}
			reply := ask(t, m, request(conversation...))
			if again := ask(t, m, roundTrip(rt, request(conversation...))); !cmp.Equal(reply, again) {
				rt.Fatalf("the same request got %+v and %+v", reply, again)
			}
			conversation = append(conversation, &model.Message{Role: model.Assistant, Text: reply.Text, Calls: reply.Calls})
			for _, c := range reply.Calls {
				if seen[c.ID] {
					rt.Fatalf("call id %s was used before", c.ID)
				}
				seen[c.ID] = true
				text := fmt.Sprint(rapid.IntRange(0, 1).Draw(rt, "result"))
				conversation = append(conversation, &model.Message{Role: model.ToolRole, CallID: c.ID, Text: text})
			}
		}
	})
}

// roundTrip returns the request as it comes back from a store.
func roundTrip(t *rapid.T, req *model.Request) *model.Request {
	data, err := json.Marshal(req)
	if err != nil {
		t.Fatal(err)
	}
	back := new(model.Request)
	if err := json.Unmarshal(data, back); err != nil {
		t.Fatal(err)
	}
	return back
}
