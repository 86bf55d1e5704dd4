package openai

import "github.com/abide-run/abide/internal/model/plainjson"

// plainText reads the chunks that make up nearly all of a stream: one choice
// with a piece of text, and nothing else that counts.
func plainText() *plainjson.Text { return &plainjson.Text{Shape: plainChunk} }

func plainChunk(s *plainjson.Scanner) bool {
	choices := false
	return s.Object(func(key []byte) bool {
		switch string(key) {
		case "id", "model":
			return s.Null() || s.String()
		case "usage", "error":
			return s.Null()
		case "choices":
			return plainjson.Once(&choices) && s.Byte('[') && plainChoice(s) && s.Byte(']')
		}
		return s.Skip()
	}) && choices
}

func plainChoice(s *plainjson.Scanner) bool {
	delta := false
	return s.Object(func(key []byte) bool {
		switch string(key) {
		case "index":
			return s.Count()
		case "message", "finish_reason":
			return s.Null()
		case "delta":
			return plainjson.Once(&delta) && plainDelta(s)
		}
		return s.Skip()
	})
}

func plainDelta(s *plainjson.Scanner) bool {
	content := false
	return s.Object(func(key []byte) bool {
		switch string(key) {
		case "refusal", "reasoning_content", "reasoning", "reasoning_text", "tool_calls":
			return s.Null()
		case "content":
			return plainjson.Once(&content) && (s.Null() || s.Text())
		}
		return s.Skip()
	})
}
