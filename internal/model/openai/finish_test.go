package openai_test

import (
	"testing"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/openai"
	"github.com/abide-run/abide/internal/model/remote/remotetest"
)

func TestFinishReasonsAreThoseOfPackageModel(t *testing.T) {
	const call = `"tool_calls":[{"id":"a","type":"function","function":{"name":"one","arguments":"{}"}}]`
	for name, test := range map[string]struct{ message, finish, want string }{
		"stop":                     {`{"content":"x"}`, "stop", model.FinishStop},
		"stop with calls":          {`{` + call + `}`, "stop", model.FinishCalls},
		"calls":                    {`{` + call + `}`, "tool_calls", model.FinishCalls},
		"a call of the old form":   {`{` + call + `}`, "function_call", model.FinishCalls},
		"the limit of the reply":   {`{"content":"x"}`, "length", model.FinishLength},
		"the limit with calls":     {`{` + call + `}`, "length", model.FinishLength},
		"the window of Mistral":    {`{"content":"x"}`, "model_length", model.FinishLength},
		"a filter":                 {`{"content":""}`, "content_filter", model.FinishFilter},
		"a filter of Gemini":       {`{"content":"x"}`, "SAFETY", model.FinishFilter},
		"recitation":               {`{"content":"x"}`, "RECITATION", model.FinishFilter},
		"a blocklist":              {`{"content":"x"}`, "blocklist", model.FinishFilter},
		"prohibited content":       {`{"content":"x"}`, "PROHIBITED_CONTENT", model.FinishFilter},
		"personal data":            {`{"content":"x"}`, "SPII", model.FinishFilter},
		"a filter of images":       {`{"content":"x"}`, "IMAGE_SAFETY", model.FinishFilter},
		"a filter of Bedrock":      {`{"content":"x"}`, "content_filtered", model.FinishFilter},
		"a guardrail of Bedrock":   {`{"content":"x"}`, "guardrail_intervened", model.FinishFilter},
		"max_tokens":               {`{"content":"x"}`, "MAX_TOKENS", model.FinishLength},
		"max_output_tokens":        {`{"content":"x"}`, "max_output_tokens", model.FinishLength},
		"a refusal":                {`{"content":null,"refusal":"no"}`, "stop", model.FinishRefusal},
		"a word that is not known": {`{"content":"x"}`, "eos", "eos"},
	} {
		t.Run(name, func(t *testing.T) {
			body := `{"choices":[{"message":` + test.message + `,"finish_reason":"` + test.finish + `"}]}`
			_, c := subject.Client(t, nil, remotetest.Always(remotetest.Raw("application/json", body)), openai.Config{})
			r, err := c.Ask(t.Context(), remotetest.Hello, nil)
			if err != nil || r.Finish != test.want {
				t.Errorf("%+v, %v, want the finish reason %q", r, err, test.want)
			}
		})
	}
}

func TestAReplyThatTheProviderCouldNotCompleteIsAnError(t *testing.T) {
	for _, finish := range []string{"error", "insufficient_system_resource", "abort"} {
		stream := `data: {"choices":[{"delta":{"content":"x"}}]}` + "\n\n" + `data: {"choices":[{"delta":{},"finish_reason":"` + finish + `"}]}` + "\n\ndata: [DONE]\n\n"
		_, c := subject.Client(t, nil, remotetest.Always(remotetest.Raw("text/event-stream", stream)), openai.Config{})
		_, err := c.Ask(t.Context(), remotetest.Hello, func(model.Delta) {})
		if e := remotetest.WantError(t, err, model.KindOverloaded); !e.Temporary() {
			t.Errorf("%s: the request is not repeated: %v", finish, e)
		}
	}
}
