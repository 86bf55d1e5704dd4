package oracle

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/openai/openai-go/v3"
	sdk "github.com/openai/openai-go/v3/responses"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/remote/remotetest"
	"github.com/abide-run/abide/internal/model/responses"
	"github.com/abide-run/abide/internal/model/responses/responsestest"
)

var openaiResponses = reference{
	subject: remotetest.Subject{New: responses.New, Serve: responsestest.Serve},
	stories: "../internal/model/responses/testdata/stories",
	say:     sayResponses,
	hear:    hearResponses,
}

// sayResponses decodes answers that are sent back as output items. In a list, the SDK
// decodes every message as an input message.
func sayResponses(body []byte) ([]byte, error) {
	var request map[string]json.RawMessage
	var input []json.RawMessage
	if err := errors.Join(json.Unmarshal(body, &request), json.Unmarshal(request["input"], &input)); err != nil {
		return nil, err
	}
	answers := make(map[int]json.RawMessage)
	var others []json.RawMessage
	for i, item := range input {
		var answer struct{ Type, ID string }
		if err := json.Unmarshal(item, &answer); err != nil {
			return nil, err
		}
		if answer.Type != "message" || answer.ID == "" {
			others = append(others, item)
			continue
		}
		said, err := roundTrip[sdk.ResponseOutputMessageParam](item)
		if err != nil {
			return nil, err
		}
		answers[i] = said
	}
	return withAnswers(request, others, answers)
}

// withAnswers decodes all other items of a request, and inserts the answers again.
func withAnswers(request map[string]json.RawMessage, others []json.RawMessage, answers map[int]json.RawMessage) ([]byte, error) {
	request["input"], _ = json.Marshal(others) // the items are valid JSON
	body, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	said, err := roundTrip[sdk.ResponseNewParams](body)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(json.Unmarshal(said, &request), json.Unmarshal(request["input"], &others)); err != nil {
		return nil, err
	}
	for i := range len(others) + len(answers) {
		if answer, ok := answers[i]; ok {
			others = slices.Insert(others, i, answer)
		}
	}
	request["input"], _ = json.Marshal(others)
	return json.Marshal(request)
}

func hearResponses(t *testing.T, url string, stream bool) heard {
	client := openaiClient(url)
	params := sdk.ResponseNewParams{Model: "m", Store: openai.Bool(false), Input: sdk.ResponseNewParamsInputUnion{
		OfInputItemList: sdk.ResponseInputParam{sdk.ResponseInputItemParamOfMessage("x", sdk.EasyInputMessageRoleUser)},
	}}
	if !stream {
		r, err := client.Responses.New(t.Context(), params)
		if err != nil {
			return openaiError(err)
		}
		return responseHeard(r)
	}
	var last heard
	events := client.Responses.NewStreaming(t.Context(), params)
	defer func() { _ = events.Close() }()
	for events.Next() {
		switch e := events.Current().AsAny().(type) {
		case sdk.ResponseCompletedEvent:
			last = responseHeard(&e.Response)
		case sdk.ResponseIncompleteEvent:
			last = responseHeard(&e.Response)
		case sdk.ResponseFailedEvent:
			last = responseHeard(&e.Response)
		case sdk.ResponseErrorEvent:
			last = heard{err: errors.New(e.Message)}
		}
	}
	if err := events.Err(); err != nil {
		return openaiError(err)
	}
	return last
}

func responseHeard(r *sdk.Response) heard {
	if r.Status == sdk.ResponseStatusFailed {
		return heard{err: errors.New(r.Error.Message)}
	}
	h := heard{finished: r.Status == sdk.ResponseStatusCompleted || r.Status == sdk.ResponseStatusIncomplete}
	in := r.Usage.InputTokensDetails
	h.Model = r.Model
	h.Usage = model.Usage{
		Input: r.Usage.InputTokens - in.CachedTokens - in.CacheWriteTokens, Output: r.Usage.OutputTokens,
		CacheRead: in.CachedTokens, CacheWrite: in.CacheWriteTokens, Reasoning: r.Usage.OutputTokensDetails.ReasoningTokens,
	}
	var text, thoughts paragraphs
	refused := false
	for _, item := range r.Output {
		switch i := item.AsAny().(type) {
		case sdk.ResponseOutputMessage:
			text.apart = true
			for _, c := range i.Content {
				text.add(c.Text + c.Refusal)
				refused = refused || c.Refusal != ""
			}
		case sdk.ResponseReasoningItem:
			for _, s := range i.Summary {
				thoughts.apart = true
				thoughts.add(s.Text)
			}
		case sdk.ResponseFunctionToolCall:
			h.Calls = append(h.Calls, model.Call{ID: i.CallID, Name: i.Name, Arguments: json.RawMessage(i.Arguments)})
		}
	}
	h.Text, h.Reasoning = text.text.String(), thoughts.text.String()
	h.Finish = responseFinish(r, len(h.Calls) > 0, refused)
	return h
}

func responseFinish(r *sdk.Response, calls, refused bool) string {
	switch {
	case r.IncompleteDetails.Reason == "max_output_tokens":
		return "length"
	case r.Status == sdk.ResponseStatusIncomplete:
		return r.IncompleteDetails.Reason
	case calls:
		return "tool_calls"
	case refused:
		return "refusal"
	}
	return "stop"
}
