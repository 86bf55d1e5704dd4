package cli

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/abide-run/abide/internal/event"
)

// stored makes an event of a payload.
func stored(t testing.TB, p event.Payload) event.Event {
	t.Helper()
	e, err := event.Encode(event.Head{ID: event.NewID(), Time: time.Unix(0, 0)}, p)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func gather(t testing.TB, o *outcome, payloads ...event.Payload) {
	t.Helper()
	for _, p := range payloads {
		if err := o.apply(stored(t, p)); err != nil {
			t.Fatal(err)
		}
	}
}

// Words of the tests below.
func message(input, delivery string) event.UserMessageData {
	return event.UserMessageData{InputID: input, Delivery: delivery}
}
func says(text string) event.AssistantMessageData { return event.AssistantMessageData{Content: text} }
func starts(id string) event.ToolStartData        { return event.ToolStartData{ToolCallID: id} }
func ends(id string) event.ToolCompleteData {
	return event.ToolCompleteData{ToolCallID: id, Success: true}
}
func asks(id string) event.PermissionAskedData {
	return event.PermissionAskedData{RequestID: "q" + id, ToolCallID: id, PermissionRequest: json.RawMessage("{}")}
}
func allows(id string) event.PermissionDoneData {
	return event.PermissionDoneData{RequestID: "q" + id, ToolCallID: id}
}

var (
	idle  = event.SessionIdleData{}
	abort = event.SessionIdleData{Aborted: true}
)

func TestTheOutcomeIsThatOfTheInputThatIsWaitedFor(t *testing.T) {
	type want struct {
		done, aborted bool
		answer        string
	}
	for name, c := range map[string]struct {
		input  string
		events []event.Payload
		want   want
	}{
		"an ordinary turn":                    {"mine", []event.Payload{message("mine", "idle"), says("A"), idle}, want{done: true, answer: "A"}},
		"not over yet":                        {"mine", []event.Payload{message("mine", "idle"), says("A")}, want{answer: "A"}},
		"several steps":                       {"mine", []event.Payload{message("mine", "idle"), says("A"), starts("1"), ends("1"), says("B"), idle}, want{done: true, answer: "B"}},
		"after the turn of another":           {"mine", []event.Payload{says("A"), message("mine", "queued"), says("B"), idle}, want{done: true, answer: "B"}},
		"idle before it is taken up":          {"mine", []event.Payload{idle, message("mine", "idle"), says("B"), idle}, want{done: true, answer: "B"}},
		"before the turn of another":          {"mine", []event.Payload{message("mine", "idle"), says("A"), message("other", "queued"), says("B"), idle}, want{done: true, answer: "A"}},
		"steered by another":                  {"mine", []event.Payload{message("mine", "idle"), message("other", "steering"), says("A"), idle}, want{done: true, answer: "A"}},
		"stopped":                             {"mine", []event.Payload{message("mine", "idle"), says("A"), abort}, want{done: true, aborted: true, answer: "A"}},
		"stopped before it is taken up":       {"mine", []event.Payload{says("A"), abort}, want{done: true, aborted: true, answer: "A"}},
		"all that is under way":               {"", []event.Payload{message("1", "idle"), says("A"), message("2", "queued"), says("B"), idle}, want{done: true, answer: "B"}},
		"more is accepted":                    {"", []event.Payload{message("1", "idle"), says("A"), idle, event.InputAcceptedData{}}, want{answer: "A"}},
		"taken back":                          {"", []event.Payload{message("1", "idle"), says("A"), idle, event.HistoryHiddenData{}}, want{}},
		"an answer that was before a fork":    {"", []event.Payload{message("1", "idle"), says("A"), event.SessionForkedData{}}, want{}},
		"an error that does not end the turn": {"mine", []event.Payload{message("mine", "idle"), event.SessionErrorData{}, says("A"), idle}, want{done: true, answer: "A"}},
	} {
		o := &outcome{}
		o.expect(c.input)
		gather(t, o, c.events...)
		if got := (want{o.done, o.aborted, o.answer}); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
		if o.failure != nil {
			t.Errorf("%s: it failed", name)
		}
	}
}

func TestAnErrorThatEndsTheTurnIsItsOutcome(t *testing.T) {
	o := &outcome{}
	gather(t, o, message("1", "idle"), event.SessionErrorData{ErrorType: "auth", EndsTurn: true}, idle)
	if code, _ := exitStatus(t.Context(), o.ending("s")); code != exitConfig {
		t.Errorf("exit code %d, want %d", code, exitConfig)
	}
	gather(t, o, message("2", "idle"), says("A"), idle)
	if err := o.ending("s"); err != nil {
		t.Errorf("the next turn failed, too: %v", err)
	}
}

func TestNothingIsWaitedForAsLongAsSomethingElseGoesOn(t *testing.T) {
	for name, c := range map[string]struct {
		events []event.Payload
		want   bool
	}{
		"nothing is asked":                 {[]event.Payload{starts("1")}, false},
		"all calls are asked":              {[]event.Payload{starts("1"), starts("2"), asks("1"), asks("2")}, true},
		"one call runs":                    {[]event.Payload{starts("1"), starts("2"), asks("2")}, false},
		"one call has ended":               {[]event.Payload{starts("1"), starts("2"), asks("2"), ends("1")}, true},
		"one was allowed and runs":         {[]event.Payload{starts("1"), starts("2"), asks("1"), asks("2"), allows("1")}, false},
		"one was allowed and ended":        {[]event.Payload{starts("1"), starts("2"), asks("1"), asks("2"), allows("1"), ends("1")}, true},
		"all were answered":                {[]event.Payload{starts("1"), asks("1"), allows("1"), ends("1")}, false},
		"the same question is shown twice": {[]event.Payload{starts("1"), asks("1"), asks("1")}, true},
		"another kind follows":             {[]event.Payload{starts("1"), asks("1"), allows("1"), event.ExternalAskedData{RequestID: "x", ToolCallID: "1"}}, true},
		"a person is asked":                {[]event.Payload{starts("1"), event.UserInputAskedData{RequestID: "x", ToolCallID: "1"}}, true},
		"a person answered":                {[]event.Payload{starts("1"), event.UserInputAskedData{RequestID: "x", ToolCallID: "1"}, event.UserInputDoneData{RequestID: "x"}}, false},
		"the turn is over":                 {[]event.Payload{starts("1"), asks("1"), message("2", "idle")}, false},
	} {
		o := &outcome{}
		gather(t, o, c.events...)
		if got := o.waiting(); got != c.want {
			t.Errorf("%s: waiting = %v, want %v", name, got, c.want)
		}
	}
}

func TestUsageIsThatOfTheTurn(t *testing.T) {
	o := &outcome{}
	cost := event.AssistantUsageData{Model: "m", InputTokens: 1, OutputTokens: 2, CacheReadTokens: 3, CacheWriteTokens: 4}
	gather(t, o, message("1", "idle"), cost, idle, message("2", "idle"), cost, cost, idle)
	if diff := cmp.Diff(usage{2, 4, 6, 8}, o.usage); diff != "" || o.steps != 2 || o.model != "m" {
		t.Errorf("%d steps of %s, usage: %s", o.steps, o.model, diff)
	}
}

func TestWhatNoProviderHasCountedIsNotFree(t *testing.T) {
	for name, test := range map[string]struct {
		used event.AssistantUsageData
		want *float64
	}{
		"counted":                {event.AssistantUsageData{InputTokens: 1, CostUSD: new(0.5)}, new(0.5)},
		"counted and free":       {event.AssistantUsageData{InputTokens: 1, CostUSD: new(0.0)}, new(0.0)},
		"not counted":            {event.AssistantUsageData{CostUSD: new(0.0)}, nil},
		"without a price":        {event.AssistantUsageData{InputTokens: 1}, nil},
		"billed by the provider": {event.AssistantUsageData{CostUSD: new(0.5)}, new(0.5)},
	} {
		o := &outcome{}
		gather(t, o, message("1", "idle"), test.used)
		if diff := cmp.Diff(test.want, o.cost.total()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestEveryKindOfFailureHasItsCode(t *testing.T) {
	for kind, want := range map[string]int{
		"auth": 3, "not_found": 3, "model": 3,
		"rate_limit": 4, "overloaded": 4, "network": 4, "stream": 4, "timeout": 4,
		"step_limit": 6, "loop": 6,
		"request": 1, "overflow": 1, "scenario": 1, "anything": 1,
	} {
		if got := failureCode(event.SessionErrorData{ErrorType: kind}); got != want {
			t.Errorf("%s: exit code %d, want %d", kind, got, want)
		}
	}
}

// Whatever a log holds, following it does no harm.
func FuzzOutcome(f *testing.F) {
	for _, p := range []event.Payload{message("1", "idle"), says("A"), starts("1"), asks("1"), allows("1"), ends("1"), idle, event.SessionErrorData{EndsTurn: true}} {
		f.Add(stored(f, p).Bytes)
	}
	f.Add([]byte(`{"type":"permission.requested"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := event.Parse(1, b)
		if err != nil {
			return
		}
		o := &outcome{}
		_ = o.apply(e)
		for _, q := range o.open {
			q.sentence()
			q.forJSON()
			q.typed("1")
		}
		describeEvent(e)
		if o.waiting() && len(o.open) == 0 {
			t.Error("it waits for nothing")
		}
	})
}

// The question of an agent is shown, and its calls are not: the call that started the
// agent waits for the answer.
func TestATurnWaitsForTheQuestionOfAnAgent(t *testing.T) {
	var o outcome
	gather(t, &o, message("", ""), starts("task"))
	if o.waiting() {
		t.Error("it waits before anything was asked")
	}
	for _, p := range []event.Payload{asks("c1"), asks("c2")} { // two calls of one agent
		if err := o.apply(stored(t, p).OfAgent("agent")); err != nil {
			t.Fatal(err)
		}
		if !o.waiting() {
			t.Error("it does not wait for the agent")
		}
	}
	gather(t, &o, starts("other"))
	if o.waiting() {
		t.Error("it waits although another call runs")
	}
	gather(t, &o, ends("other"))
	for _, p := range []event.Payload{allows("c1"), allows("c2")} {
		if err := o.apply(stored(t, p).OfAgent("agent")); err != nil {
			t.Fatal(err)
		}
	}
	if o.waiting() {
		t.Error("it waits after the answers")
	}
	gather(t, &o, ends("task"), starts("own"), asks("own"))
	if !o.waiting() {
		t.Error("it does not wait for its own question afterwards")
	}
}

// A no without a reason ends the turn, unless the model goes on all the same. A question
// that nobody answered was not refused.
func TestATurnThatEndsWithANoWasRefused(t *testing.T) {
	by := &event.Answered{Digest: "d"}
	denied := func(feedback string) event.PermissionDoneData {
		d := allows("1")
		d.Answer, d.Result = by, event.PermissionResult{Kind: event.DeniedByUser, Feedback: feedback}
		return d
	}
	yes, nobody := allows("1"), allows("1")
	yes.Answer, yes.Result.Kind = by, event.Approved
	nobody.Result.Kind = event.Cancelled
	for name, c := range map[string]struct {
		then                []event.Payload
		refused, unanswered bool
	}{
		"no":                     {[]event.Payload{denied(""), idle}, true, false},
		"no with a reason":       {[]event.Payload{denied("use dev"), idle}, false, false},
		"no, and the model goes": {[]event.Payload{denied(""), says("then not"), idle}, false, false},
		"yes":                    {[]event.Payload{yes, idle}, false, false},
		"nobody":                 {[]event.Payload{nobody, idle}, false, true},
		"a turn after it":        {[]event.Payload{denied(""), idle, message("2", "idle"), idle}, false, false},
	} {
		var o outcome
		gather(t, &o, append([]event.Payload{message("1", "idle"), says("let me"), starts("1"), asks("1")}, c.then...)...)
		_, refused := o.ending("s").(*turnRefused)
		if refused != c.refused || o.unanswered != c.unanswered || len(o.open) != 0 {
			t.Errorf("%s: refused %v, unanswered %v, open %d", name, refused, o.unanswered, len(o.open))
		}
	}
}

// The end of a question of the model says who answered it in a field of its own.
func TestAnAnsweredQuestionOfTheModelIsAnswered(t *testing.T) {
	for _, answer := range []*event.Answered{nil, {Digest: "d"}} {
		var o outcome
		gather(t, &o, message("1", "idle"), starts("1"), event.UserInputAskedData{RequestID: "q1", ToolCallID: "1", Question: "Q?"},
			event.UserInputDoneData{RequestID: "q1", Answer: answer})
		if o.unanswered != (answer == nil) || len(o.open) != 0 {
			t.Errorf("%+v: unanswered %v, open %d", answer, o.unanswered, len(o.open))
		}
	}
}
