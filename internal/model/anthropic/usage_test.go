package anthropic_test

import (
	"math"
	"testing"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/remote"
	"github.com/abide-run/abide/internal/model/remote/remotetest"
)

// A usage in the format of https://platform.claude.com/docs/en/build-with-claude/prompt-caching
// says how many tokens were cached for an hour, which cost more than those that last five minutes.
const cachedForAnHour = `{"input_tokens":2048,"cache_read_input_tokens":1800,"cache_creation_input_tokens":248,"output_tokens":503,` +
	`"cache_creation":{"ephemeral_5m_input_tokens":148,"ephemeral_1h_input_tokens":100}}`

func TestTokensThatAreCachedForAnHourAreTold(t *testing.T) {
	want := model.Usage{Input: 2048, Output: 503, CacheRead: 1800, CacheWrite: 248, CacheWrite1h: 100}
	for name, fault := range map[string]remotetest.Fault{
		"whole": remotetest.Raw("application/json", `{"type":"message","content":[{"type":"text","text":"x"}],"stop_reason":"end_turn","usage":`+cachedForAnHour+`}`),
		"streamed": remotetest.Raw("text/event-stream", streamOf(
			`{"type":"message_start","message":{"model":"m","usage":`+cachedForAnHour+`}}`,
			`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"x"}}`, `{"type":"content_block_stop","index":0}`,
			// The end counts everything again, without the lifetimes.
			`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":2048,"cache_read_input_tokens":1800,"cache_creation_input_tokens":248,"output_tokens":503}}`,
			`{"type":"message_stop"}`)),
	} {
		_, c := subject.Client(t, nil, remotetest.Always(fault), remote.Config{})
		reply, err := c.Ask(t.Context(), remotetest.Hello, func(model.Delta) {})
		if err != nil || reply.Usage != want {
			t.Errorf("%s: the reply is %+v, %v; want the usage %+v", name, reply, err, want)
		}
	}
	price := model.Price{Input: 3, Output: 15, CacheRead: 0.3, CacheWrite: 3.75}
	const cost = (2048*3 + 503*15 + 1800*0.3 + 148*3.75 + 100*6) / 1e6 // an hour costs twice the input
	if got := price.Cost(want); math.Abs(got-cost) > 1e-12 {
		t.Errorf("the price is %v, want %v", got, cost)
	}
}
