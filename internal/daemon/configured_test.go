package daemon

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/catalog"
	"github.com/abide-run/abide/internal/model/provider"
)

func ptr[T any](v T) *T { return &v }

func limited(models map[string]provider.Limits) provider.Provider {
	return provider.Provider{Type: "openai", Abide: &provider.Settings{Models: models}}
}

func TestWhatIsWrittenDownGoesBeforeWhatTheNameTells(t *testing.T) {
	known, _ := catalog.Lookup("gpt-4.1")
	overridden := known
	overridden.Window, overridden.MaxOutput, overridden.Vision, overridden.Reasoning = 1000, 100, false, true
	overridden.Price = &model.Price{Input: 1, Output: 2, CacheRead: 0.1, CacheWrite: 1}
	for name, test := range map[string]struct {
		model  string
		limits provider.Limits
		want   model.Capabilities
	}{
		"nothing":          {"gpt-4.1", provider.Limits{}, known},
		"unknown":          {"mine", provider.Limits{}, catalog.Unknown},
		"all of it":        {"gpt-4.1", provider.Limits{Window: 1000, MaxOutput: 100, Vision: ptr(false), Reasoning: ptr(true), Input: ptr(1.0), Output: ptr(2.0), CacheRead: ptr(0.1)}, overridden},
		"a small window":   {"mine", provider.Limits{Window: 8192}, model.Capabilities{Window: 8192, MaxOutput: 4096}},
		"that it reasons":  {"mine", provider.Limits{Reasoning: ptr(true)}, model.Capabilities{Known: true, Window: 128_000, MaxOutput: 16_384, Reasoning: true}},
		"half a price":     {"mine", provider.Limits{Input: ptr(1.0)}, catalog.Unknown},
		"a price for free": {"mine", provider.Limits{Input: ptr(0.0), Output: ptr(0.0)}, model.Capabilities{Window: 128_000, MaxOutput: 16_384, Price: &model.Price{}}},
		"a price":          {"mine", provider.Limits{Input: ptr(1.0), Output: ptr(2.0)}, model.Capabilities{Window: 128_000, MaxOutput: 16_384, Price: &model.Price{Input: 1, Output: 2, CacheRead: 1, CacheWrite: 1}}},
	} {
		got := Capabilities(limited(map[string]provider.Limits{test.model: test.limits, "other": {Window: 1}}), test.model)
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	p := limited(nil)
	if p.MaxPromptTokens = 1000; Capabilities(p, "mine").Window != 1000+catalog.Unknown.MaxOutput {
		t.Errorf("what the client says of the window does not count: %+v", Capabilities(p, "mine"))
	}
}

// A requestRecorder is a model that records the last request.
type requestRecorder struct {
	asked    *model.Request
	streamed bool
	model    string // model that it says it is
}

func (w *requestRecorder) Ask(_ context.Context, req *model.Request, on func(model.Delta)) (*model.Reply, error) {
	w.asked, w.streamed = req, on != nil
	return &model.Reply{Model: w.model, Usage: model.Usage{Input: 1_000_000, Output: 500_000, CacheRead: 2_000_000}}, nil
}

func TestRequestsAreMadeAsWrittenDown(t *testing.T) {
	for name, test := range map[string]struct {
		model     string
		provider  provider.Provider
		request   model.Request
		maxOutput int
		effort    string
		streamed  bool
		cost      *float64
	}{
		"nothing":                      {model: "mine"},
		"a length":                     {model: "mine", provider: provider.Provider{MaxOutputTokens: 100}, maxOutput: 100},
		"what the request says":        {model: "mine", provider: provider.Provider{MaxOutputTokens: 100}, request: model.Request{MaxOutput: 7}, maxOutput: 7},
		"more than the model can":      {model: "gpt-4.1", provider: provider.Provider{MaxOutputTokens: 1 << 20}, maxOutput: 32_768, cost: ptr(2 + 4 + 1.0)},
		"an effort":                    {model: "mine", provider: provider.Provider{Abide: &provider.Settings{ReasoningEffort: "high"}}, effort: "high"},
		"an effort of the request":     {model: "mine", provider: provider.Provider{Abide: &provider.Settings{ReasoningEffort: "high"}}, request: model.Request{ReasoningEffort: "low"}, effort: "low"},
		"an effort that is not for it": {model: "gpt-4.1", provider: provider.Provider{Abide: &provider.Settings{ReasoningEffort: "high"}}, cost: ptr(7.0)},
		"Anthropic":                    {model: "mine", provider: provider.Provider{Type: "anthropic"}, streamed: true},
		"Responses":                    {model: "mine", provider: provider.Provider{WireAPI: "responses"}, streamed: true},
		"a price": {model: "mine", provider: limited(map[string]provider.Limits{"mine": {Input: ptr(1.0), Output: ptr(4.0), CacheRead: ptr(0.5)}}),
			cost: ptr(1 + 2 + 1.0)},
	} {
		t.Run(name, func(t *testing.T) {
			w := &requestRecorder{}
			before := test.request
			reply, err := configure(w, test.provider, test.model).Ask(t.Context(), &test.request, nil)
			if err != nil || w.asked.MaxOutput != test.maxOutput || w.asked.ReasoningEffort != test.effort || w.streamed != test.streamed {
				t.Errorf("asked %+v, streamed %v, %v", w.asked, w.streamed, err)
			}
			if w.asked.Can == nil || w.asked.Can.Window == 0 {
				t.Error("the wire is not told what the model can do")
			}
			if diff := cmp.Diff(test.cost, reply.Cost); diff != "" {
				t.Errorf("cost: %s", diff)
			}
			if test.request.MaxOutput != before.MaxOutput || test.request.Can != nil {
				t.Error("the caller's request was changed")
			}
		})
	}
}

// A silent model does not say what its answers use.
type silentModel struct{ model.Model }

func (silentModel) Ask(context.Context, *model.Request, func(model.Delta)) (*model.Reply, error) {
	return &model.Reply{Text: "yes"}, nil
}

func TestAnAnswerThatNoProviderCountsHasNoPrice(t *testing.T) {
	for name, test := range map[string]struct {
		price float64
		want  *float64
	}{
		"a price": {price: 4},
		"free":    {price: 0, want: ptr(0.0)},
	} {
		t.Run(name, func(t *testing.T) {
			p := limited(map[string]provider.Limits{"mine": {Input: &test.price, Output: &test.price}})
			reply, err := configure(silentModel{}, p, "mine").Ask(t.Context(), new(model.Request), nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, reply.Cost); diff != "" {
				t.Errorf("cost: %s", diff)
			}
		})
	}
}

func TestAModelThatAnswersForAnotherIsNoticed(t *testing.T) {
	for asked, want := range map[string]bool{"gpt-5": true, "mine": false} {
		w := &requestRecorder{model: "gpt-4o-mini"}
		reply, err := configure(w, provider.Provider{}, asked).Ask(t.Context(), new(model.Request), nil)
		if err != nil || reply.Another != want {
			t.Errorf("%s was asked, and another one has answered: %v, %v", asked, reply.Another, err)
		}
	}
}

func TestTemperatureAndTopPAreThoseOfTheModel(t *testing.T) {
	p := limited(map[string]provider.Limits{"mine": {Temperature: ptr(0.0), TopP: ptr(0.9)}})
	w := &requestRecorder{}
	for _, test := range []struct {
		model             string
		request           model.Request
		temperature, topP *float64
	}{
		{"mine", model.Request{}, ptr(0.0), ptr(0.9)},
		{"mine", model.Request{Temperature: ptr(1.5)}, ptr(1.5), ptr(0.9)},
		{"another", model.Request{}, nil, nil},
	} {
		if _, err := configure(w, p, test.model).Ask(t.Context(), &test.request, nil); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]*float64{test.temperature, test.topP}, []*float64{w.asked.Temperature, w.asked.TopP}); diff != "" {
			t.Errorf("%s: %s", test.model, diff)
		}
	}
}

func TestOnlyAModelThatIsKnownToBeBlindIsNotShownPictures(t *testing.T) {
	for name, test := range map[string]struct {
		model string
		sees  *bool
		want  bool
	}{
		"known to see":       {"gpt-4o", nil, false},
		"known not to":       {"o3-mini", nil, true},
		"unknown":            {"mine", nil, false},
		"said to be blind":   {"gpt-4o", ptr(false), true},
		"said to see":        {"o3-mini", ptr(true), false},
		"unknown, but blind": {"mine", ptr(false), true},
	} {
		if got := blind(limited(map[string]provider.Limits{test.model: {Vision: test.sees}}), test.model); got != test.want {
			t.Errorf("%s: blind = %v", name, got)
		}
	}
	if !blind(provider.Provider{}, "o3-mini") {
		t.Error("nothing is written down, and it sees")
	}
}

func TestWhatAClientBringsAlongIsNotReplaced(t *testing.T) {
	w := ModelSettings{MaxOutput: 9, Models: map[string]provider.Limits{"m": {Window: 5}}}
	own := w.on(provider.Provider{Abide: &provider.Settings{}})
	if own.MaxOutputTokens != 0 || len(own.Abide.Models) != 0 {
		t.Errorf("%+v", own)
	}
	if p := w.on(provider.Provider{MaxOutputTokens: 3}); p.MaxOutputTokens != 3 || p.Abide.Models["m"].Window != 5 {
		t.Errorf("%+v", p)
	}
	if p := w.on(provider.Provider{}); p.MaxOutputTokens != 9 {
		t.Errorf("%+v", p)
	}
}

func TestAConfiguredPriceDoesNotDependOnTheLength(t *testing.T) {
	long := model.Usage{Input: 1_000_000}
	for name, test := range map[string]struct {
		limits provider.Limits
		want   float64
	}{
		"the catalog's":      {want: 4},
		"one for input":      {limits: provider.Limits{Input: ptr(3.0)}, want: 3},
		"one for the output": {limits: provider.Limits{Output: ptr(1.0)}, want: 2},
	} {
		can := Capabilities(limited(map[string]provider.Limits{"gpt-6.1-sol": test.limits}), "gpt-6.1-sol")
		if got := can.Price.Cost(long); got != test.want {
			t.Errorf("%s: a request of a million tokens costs %v, want %v", name, got, test.want)
		}
	}
}
