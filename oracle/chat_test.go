package oracle

import (
	"encoding/json"
	"errors"
	"net"
	"testing"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/openai"
	"github.com/abide-run/abide/internal/model/openai/openaitest"
	"github.com/abide-run/abide/internal/model/remote/remotetest"
)

var chatCompletions = reference{
	subject: remotetest.Subject{New: openai.New, Serve: func(l net.Listener, m model.Model, o remotetest.Options) *remotetest.Server {
		return openaitest.Serve(l, m, openaitest.Options{Key: o.Key, Fault: o.Fault})
	}},
	stories: "../internal/model/openai/testdata/stories",
	say:     sayChat,
	hear:    hearChat,
}

func openaiClient(url string) sdk.Client {
	return sdk.NewClient(option.WithBaseURL(url), option.WithAPIKey("key"), option.WithMaxRetries(0))
}

// The members that other providers have added to the interface of OpenAI, by the place
// where they stand. The SDK has no fields for them.
var (
	addedToRequests = []string{"cache_control", "reasoning"}
	addedToMessages = []string{"extra_content", "reasoning", "reasoning_content", "reasoning_details"}
	addedToCalls    = []string{"extra_content"}
)

// sayChat says a body with the type of the SDK, and what other providers have added to it
// as extra fields.
func sayChat(body []byte) ([]byte, error) {
	var params sdk.ChatCompletionNewParams
	if err := json.Unmarshal(body, &params); err != nil {
		return nil, err
	}
	var request map[string]any
	if err := json.Unmarshal(body, &request); err != nil {
		return nil, err
	}
	params.SetExtraFields(only(request, addedToRequests))
	for i, m := range params.Messages {
		if m.OfAssistant == nil {
			continue
		}
		message := request["messages"].([]any)[i].(map[string]any)
		m.OfAssistant.SetExtraFields(only(message, addedToMessages))
		for j, call := range m.OfAssistant.ToolCalls {
			call.OfFunction.SetExtraFields(only(message["tool_calls"].([]any)[j].(map[string]any), addedToCalls))
		}
	}
	return json.Marshal(params)
}

func only(members map[string]any, names []string) map[string]any {
	some := map[string]any{}
	for _, name := range names {
		if value, ok := members[name]; ok {
			some[name] = value
		}
	}
	return some
}

func openaiError(err error) heard {
	h := heard{err: err}
	if e := new(sdk.Error); errors.As(err, &e) && e.StatusCode >= 400 {
		h.status = e.StatusCode
	}
	return h
}

func hearChat(t *testing.T, url string, stream bool) heard {
	client := openaiClient(url)
	params := sdk.ChatCompletionNewParams{Model: "m", Messages: []sdk.ChatCompletionMessageParamUnion{sdk.UserMessage("x")}}
	if !stream {
		c, err := client.Chat.Completions.New(t.Context(), params)
		if err != nil {
			return openaiError(err)
		}
		return chatHeard(c, extra(c.Choices[0].Message.RawJSON()))
	}
	var all sdk.ChatCompletionAccumulator
	reasoning := ""
	chunks := client.Chat.Completions.NewStreaming(t.Context(), params)
	defer func() { _ = chunks.Close() }()
	for chunks.Next() {
		all.AddChunk(chunks.Current())
		if u := chunks.Current().Usage; u.TotalTokens > 0 { // the accumulator does not contain all of it
			all.Usage = u
		}
		for _, c := range chunks.Current().Choices {
			reasoning += extra(c.Delta.RawJSON())
		}
	}
	if err := chunks.Err(); err != nil {
		return openaiError(err)
	}
	return chatHeard(&all.ChatCompletion, reasoning)
}

// extra returns the reasoning, for which the SDK has no field.
func extra(raw string) string {
	var more struct {
		Content   string `json:"reasoning_content"`
		Reasoning string `json:"reasoning"`
	}
	_ = json.Unmarshal([]byte(raw), &more) // the SDK has decoded it already
	return more.Content + more.Reasoning
}

func chatHeard(c *sdk.ChatCompletion, reasoning string) heard {
	if len(c.Choices) == 0 {
		return heard{}
	}
	choice := c.Choices[0]
	h := heard{finished: choice.FinishReason != ""}
	if choice.FinishReason == "insufficient_system_resource" { // DeepSeek was overloaded
		h.err = errors.New(choice.FinishReason)
	}
	h.Text, h.Reasoning = choice.Message.Content+choice.Message.Refusal, reasoning
	h.Model, h.Finish = c.Model, chatFinish(choice)
	in := c.Usage.PromptTokensDetails
	h.Usage = model.Usage{
		Input: c.Usage.PromptTokens - in.CachedTokens - in.CacheWriteTokens, Output: c.Usage.CompletionTokens,
		CacheRead: in.CachedTokens, CacheWrite: in.CacheWriteTokens, Reasoning: c.Usage.CompletionTokensDetails.ReasoningTokens,
	}
	for _, call := range choice.Message.ToolCalls {
		h.Calls = append(h.Calls, model.Call{ID: call.ID, Name: call.Function.Name, Arguments: json.RawMessage(call.Function.Arguments)})
	}
	return h
}

// chatFinish returns the reason for which a model stopped, in our words. The SDK leaves it
// to its user that a message is a refusal, that some providers say "stop" beside calls,
// and what words other providers have.
func chatFinish(c sdk.ChatCompletionChoice) string {
	switch {
	case c.Message.Refusal != "":
		return model.FinishRefusal
	case c.FinishReason == "stop" && len(c.Message.ToolCalls) > 0:
		return model.FinishCalls
	case c.FinishReason == "model_length": // Mistral: the window is full
		return model.FinishLength
	}
	return c.FinishReason
}
