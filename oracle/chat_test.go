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
	say:     roundTrip[sdk.ChatCompletionNewParams],
	hear:    hearChat,
}

func openaiClient(url string) sdk.Client {
	return sdk.NewClient(option.WithBaseURL(url), option.WithAPIKey("key"), option.WithMaxRetries(0))
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
		Reasoning string `json:"reasoning_content"`
	}
	_ = json.Unmarshal([]byte(raw), &more) // the SDK has decoded it already
	return more.Reasoning
}

func chatHeard(c *sdk.ChatCompletion, reasoning string) heard {
	if len(c.Choices) == 0 {
		return heard{}
	}
	choice := c.Choices[0]
	h := heard{finished: choice.FinishReason != ""}
	h.Text, h.Reasoning = choice.Message.Content+choice.Message.Refusal, reasoning
	h.Model, h.Finish = c.Model, string(choice.FinishReason)
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
