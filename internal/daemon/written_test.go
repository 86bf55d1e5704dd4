package daemon_test

import (
	"context"
	"testing"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/daemon"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/openai/openaitest"
	"github.com/abide-run/abide/internal/model/provider"
)

// asked passes on how long the reply may be.
type asked struct{ most chan int }

func (a asked) Ask(_ context.Context, req *model.Request, _ func(model.Delta)) (*model.Reply, error) {
	a.most <- req.MaxOutput
	return &model.Reply{Text: "ok", Usage: model.Usage{Input: 1_000_000, Output: 1_000_000}}, nil
}

func TestWhatIsWrittenDownCountsForProvidersThatClientsBringAlong(t *testing.T) {
	most := make(chan int, 1)
	server := openaitest.NewServer(asked{most}, openaitest.Options{})
	defer server.Close()
	one, two := 1.0, 2.0
	n, err := daemon.Open(t.Context(), daemon.Config{
		Dir: t.TempDir(), Version: "test",
		ModelSettings: daemon.ModelSettings{MaxOutput: 77, Models: map[string]provider.Limits{"m": {Input: &one, Output: &two}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close() })
	for id, test := range map[event.SessionID]struct {
		provider provider.Provider
		most     int
		priced   bool
	}{
		"theirs":       {provider.Provider{BaseURL: server.URL}, 77, true},
		"their length": {provider.Provider{BaseURL: server.URL, MaxOutputTokens: 5}, 5, true},
		"furnished":    {provider.Provider{BaseURL: server.URL, MaxOutputTokens: 6, Abide: &provider.Settings{}}, 6, false},
	} {
		p := connect(t, n)
		p.must(api.SessionCreate, map[string]any{"sessionId": id, "model": "m", "provider": test.provider}, nil)
		p.must(api.SessionSend, api.SendParams{SessionID: id, Prompt: "hello"}, nil)
		if got := <-most; got != test.most {
			t.Errorf("%s: %d tokens are asked for, want %d", id, got, test.most)
		}
		d, err := event.As[event.AssistantUsageData](p.await(event.AssistantUsage, 1))
		if err != nil || (d.CostUSD != nil) != test.priced || test.priced && *d.CostUSD != 3 {
			t.Errorf("%s: cost %v, %v", id, d.CostUSD, err)
		}
		p.await(event.SessionIdle, 1)
	}
}
