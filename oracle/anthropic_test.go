package oracle

import (
	"encoding/json"
	"errors"
	"testing"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/anthropic"
	"github.com/abide-run/abide/internal/model/anthropic/anthropictest"
	"github.com/abide-run/abide/internal/model/remote/remotetest"
)

var anthropicMessages = reference{
	subject: remotetest.Subject{New: anthropic.New, Serve: anthropictest.Serve},
	stories: "../internal/model/anthropic/testdata/stories",
	say:     roundTrip[sdk.MessageNewParams],
	hear:    hearAnthropic,
}

func hearAnthropic(t *testing.T, url string, stream bool) heard {
	client := sdk.NewClient(option.WithBaseURL(url), option.WithAPIKey("key"), option.WithMaxRetries(0))
	params := sdk.MessageNewParams{Model: "m", MaxTokens: 1, Messages: []sdk.MessageParam{sdk.NewUserMessage(sdk.NewTextBlock("x"))}}
	if !stream {
		m, err := client.Messages.New(t.Context(), params)
		return anthropicHeard(m, err)
	}
	var m sdk.Message
	events := client.Messages.NewStreaming(t.Context(), params)
	defer func() { _ = events.Close() }()
	for events.Next() {
		if err := m.Accumulate(events.Current()); err != nil {
			return heard{err: err}
		}
	}
	return anthropicHeard(&m, events.Err())
}

func anthropicHeard(m *sdk.Message, err error) heard {
	if err != nil {
		h := heard{err: err}
		if e := new(sdk.Error); errors.As(err, &e) && e.StatusCode >= 400 {
			h.status = e.StatusCode
		}
		return h
	}
	h := heard{finished: m.StopReason != ""}
	h.Model, h.Finish = m.Model, anthropicFinish(m.StopReason)
	h.Usage = model.Usage{
		Input: m.Usage.InputTokens, Output: m.Usage.OutputTokens,
		CacheRead: m.Usage.CacheReadInputTokens, CacheWrite: m.Usage.CacheCreationInputTokens,
		Reasoning: m.Usage.OutputTokensDetails.ThinkingTokens,
	}
	var text, thoughts paragraphs
	for _, block := range m.Content {
		switch b := block.AsAny().(type) {
		case sdk.TextBlock:
			text.add(b.Text)
			continue
		case sdk.ThinkingBlock:
			thoughts.apart = true
			thoughts.add(b.Thinking)
		case sdk.ToolUseBlock:
			h.Calls = append(h.Calls, model.Call{ID: b.ID, Name: b.Name, Arguments: json.RawMessage(block.Input)})
		}
		text.apart = true
	}
	h.Text, h.Reasoning = text.text.String(), thoughts.text.String()
	if h.Text == "" && m.StopReason == sdk.StopReasonRefusal {
		h.Text = m.StopDetails.Explanation
	}
	return h
}

func anthropicFinish(r sdk.StopReason) string {
	switch r {
	case sdk.StopReasonEndTurn, sdk.StopReasonStopSequence:
		return "stop"
	case sdk.StopReasonToolUse:
		return "tool_calls"
	case sdk.StopReasonMaxTokens:
		return "length"
	}
	return string(r)
}
