package anthropic

import (
	"encoding/json"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/plainjson"
	"github.com/abide-run/abide/internal/model/remote"
)

// An event is one event of a stream.
type event struct {
	Type    string          `json:"type"`
	Message message         `json:"message"`
	Index   int             `json:"index"`
	Block   json.RawMessage `json:"content_block"`
	Delta   delta           `json:"delta"`
	Usage   usage           `json:"usage"`
	Error   *remote.Failure `json:"error"`
}

// A message is a whole reply, or the head of a streamed one.
type message struct {
	ID          string            `json:"id"`
	Model       string            `json:"model"`
	Content     []json.RawMessage `json:"content"`
	StopReason  string            `json:"stop_reason"`
	StopDetails stopDetails       `json:"stop_details"`
	Usage       usage             `json:"usage"`
	Error       *remote.Failure   `json:"error"`
}

// A block is a part of a message.
type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	Signature string          `json:"signature"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
}

// A delta is a piece of a block, or the end of the message.
type delta struct {
	Type        string      `json:"type"`
	Text        string      `json:"text"`
	PartialJSON string      `json:"partial_json"`
	Thinking    string      `json:"thinking"`
	Signature   string      `json:"signature"`
	StopReason  string      `json:"stop_reason"`
	StopDetails stopDetails `json:"stop_details"`
}

// stopDetails says why a model declined.
type stopDetails struct {
	Explanation string `json:"explanation"`
}

// usage counts from the beginning of the reply; what is left out stays as it was.
type usage struct {
	Input         *int64 `json:"input_tokens"`
	Output        *int64 `json:"output_tokens"`
	CacheRead     *int64 `json:"cache_read_input_tokens"`
	CacheCreation *int64 `json:"cache_creation_input_tokens"`
	Details       struct {
		Thinking *int64 `json:"thinking_tokens"`
	} `json:"output_tokens_details"`
}

func (u *usage) update(to *model.Usage) {
	for _, count := range []struct {
		to   *int64
		from *int64
	}{
		{&to.Input, u.Input}, {&to.Output, u.Output}, {&to.CacheRead, u.CacheRead},
		{&to.CacheWrite, u.CacheCreation}, {&to.Reasoning, u.Details.Thinking},
	} {
		if count.from != nil {
			*count.to = *count.from
		}
	}
}

func decode(data []byte, v any) error {
	if err := json.Unmarshal(data, v); err != nil {
		return remote.NotUnderstood(data, err)
	}
	return nil
}

// plainText reads the events that make up nearly all of a stream: pieces of
// text.
func plainText() *plainjson.Text { return &plainjson.Text{Shape: plainEvent} }

func plainEvent(s *plainjson.Scanner) bool {
	kind, delta := false, false
	return s.Object(func(key []byte) bool {
		switch string(key) {
		case "type":
			kind = true
			return s.Is("content_block_delta")
		case "index":
			return s.Count()
		case "delta":
			return plainjson.Once(&delta) && plainDelta(s)
		case "message", "content_block", "usage", "error":
			return s.Null()
		}
		return s.Skip()
	}) && kind && delta
}

func plainDelta(s *plainjson.Scanner) bool {
	kind, text := false, false
	return s.Object(func(key []byte) bool {
		switch string(key) {
		case "type":
			kind = true
			return s.Is("text_delta")
		case "text":
			return plainjson.Once(&text) && s.Text()
		case "partial_json", "thinking", "signature", "stop_reason", "stop_details":
			return s.Null()
		}
		return s.Skip()
	}) && kind
}
