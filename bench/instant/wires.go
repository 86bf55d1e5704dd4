package instant

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A wire is a protocol of model providers.
type wire struct {
	path    string // end of the path of a request
	streams map[Piece]stream
	whole   func(tokens int) string // returns an answer that is not streamed

	plainStream, plainWhole []byte // answers of the usual length
}

// A stream is an answer in pieces.
type stream struct {
	begin []byte                       // bytes before the first token
	token func(b []byte, n int) []byte // appends the event of token number n
	end   func(tokens int) []byte      // returns the bytes after the last token
}

// wires are all supported wires. The first one is used for unknown paths.
var wires = []*wire{ready(chat), ready(messages), ready(responses)}

// ready prepares the answers of the usual length.
func ready(w wire) *wire {
	text := w.streams[Text]
	w.plainStream = slices.Concat(streamHead, text.begin, text.tokens(nil, 0, Tokens), text.end(Tokens))
	w.plainWhole = body(w.whole(Tokens))
	return &w
}

// tokens appends n tokens.
func (s stream) tokens(b []byte, from, n int) []byte {
	for i := range n {
		b = s.token(b, from+i)
	}
	return b
}

// spoken returns the wire of a request by its first line.
func spoken(line []byte) *wire {
	for _, w := range wires[1:] {
		if bytes.Contains(line, []byte(w.path+" HTTP/")) {
			return w
		}
	}
	return wires[0]
}

var streamHead = []byte("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")

// streamEnd is the last HTTP chunk of a stream.
const streamEnd = "0\r\n\r\n"

// event returns an event of a stream as one HTTP chunk. It has a name if the wire names
// events.
func event(name, data string) []byte {
	data = "data: " + data + "\n\n"
	if name != "" {
		data = "event: " + name + "\n" + data
	}
	return fmt.Appendf(nil, "%x\r\n%s\r\n", len(data), data)
}

func body(text string) []byte {
	return fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(text), text)
}

// always returns a token function whose event is always the same.
func always(event []byte) func(b []byte, n int) []byte {
	return func(b []byte, _ int) []byte { return append(b, event...) }
}

// Chat Completions.

const (
	chatUsage = `"usage":{"prompt_tokens":100,"completion_tokens":50,"total_tokens":150}`
	chatChunk = `{"id":"instant","object":"chat.completion.chunk","created":1700000000,"model":"instant","choices":[`
)

var chat = wire{
	path: "/chat/completions",
	streams: map[Piece]stream{
		Text:    chatStream(nil, `{"content":"`+Token+`"}`),
		Thought: chatStream(nil, `{"reasoning_content":"`+Token+`"}`),
		Input: chatStream(chatDelta(`{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"view","arguments":""}}]}`),
			`{"tool_calls":[{"index":0,"function":{"arguments":"`+Token+`"}}]}`),
	},
	whole: func(tokens int) string {
		return `{"id":"instant","object":"chat.completion","created":1700000000,"model":"instant","choices":[{"index":0,` +
			`"message":{"role":"assistant","content":"` + strings.Repeat(Token, tokens) + `"},"finish_reason":"stop"}],` + chatUsage + `}`
	},
}

func chatDelta(delta string) []byte {
	return event("", chatChunk+`{"index":0,"delta":`+delta+`,"finish_reason":null}]}`)
}

func chatStream(begin []byte, delta string) stream {
	end := slices.Concat(event("", chatChunk+`{"index":0,"delta":{},"finish_reason":"stop"}]}`),
		event("", chatChunk+`],`+chatUsage+`}`), event("", "[DONE]"), []byte(streamEnd))
	return stream{begin, always(chatDelta(delta)), func(int) []byte { return end }}
}

// chatCall returns a call of bash with the longest timeout.
func chatCall(r Run) []byte {
	call := func(rest string) []byte { return chatDelta(`{"tool_calls":[{"index":0,` + rest + `}]}`) }
	return slices.Concat(streamHead,
		call(`"id":"call_1","type":"function","function":{"name":"bash","arguments":""}`),
		call(`"function":{"arguments":"{\"command\":\"`+string(r)+`\",\"description\":\"bench\",\"initial_wait\":600}"}`),
		event("", chatChunk+`{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`),
		event("", chatChunk+`],`+chatUsage+`}`), event("", "[DONE]"), []byte(streamEnd))
}

// Anthropic Messages.

const (
	messagesHead  = `{"id":"msg_instant","type":"message","role":"assistant","model":"instant","stop_sequence":null,`
	messagesUsage = `"usage":{"input_tokens":100,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":50}`
)

var messages = wire{
	path: "/messages",
	streams: map[Piece]stream{
		Text:    messagesStream(`{"type":"text","text":""}`, `{"type":"text_delta","text":"`+Token+`"}`),
		Thought: messagesStream(`{"type":"thinking","thinking":"","signature":""}`, `{"type":"thinking_delta","thinking":"`+Token+`"}`),
		Input:   messagesStream(`{"type":"tool_use","id":"toolu_1","name":"view","input":{}}`, `{"type":"input_json_delta","partial_json":"`+Token+`"}`),
	},
	whole: func(tokens int) string {
		return messagesHead + `"content":[{"type":"text","text":"` + strings.Repeat(Token, tokens) + `"}],"stop_reason":"end_turn",` + messagesUsage + `}`
	},
}

func messagesStream(block, delta string) stream {
	end := slices.Concat(event("content_block_stop", `{"type":"content_block_stop","index":0}`),
		event("message_delta", `{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},`+messagesUsage+`}`),
		event("message_stop", `{"type":"message_stop"}`), []byte(streamEnd))
	return stream{
		begin: slices.Concat(
			event("message_start", `{"type":"message_start","message":`+messagesHead+`"content":[],"stop_reason":null,`+messagesUsage+`}}`),
			event("content_block_start", `{"type":"content_block_start","index":0,"content_block":`+block+`}`),
			event("ping", `{"type":"ping"}`)),
		token: always(event("content_block_delta", `{"type":"content_block_delta","index":0,"delta":`+delta+`}`)),
		end:   func(int) []byte { return end },
	}
}

// OpenAI Responses. Its events are numbered, so that no two are the same, and the last
// event contains the whole answer again.

const (
	responsesHead  = `{"id":"resp_instant","object":"response","created_at":1700000000,"model":"instant","error":null,"incomplete_details":null,`
	responsesUsage = `"usage":{"input_tokens":100,"input_tokens_details":{"cached_tokens":0},"output_tokens":50,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":150}`
	responsesID    = `"id_67ccd2bf17f0819081ff3bb2cf6508e60bb6a6b452d3795b"`
)

var responses = wire{
	path: "/responses",
	streams: map[Piece]stream{
		Text:    responsesStream("response.output_text", `,"content_index":0`, `,"logprobs":[]`, spokenItem),
		Thought: responsesStream("response.reasoning_summary_text", `,"summary_index":0`, "", thoughtItem),
		Input:   responsesStream("response.function_call_arguments", "", "", calledItem),
	},
	whole: func(tokens int) string { return responded(spokenItem("completed", strings.Repeat(Token, tokens))) },
}

func spokenItem(status, text string) string {
	return `{"id":` + responsesID + `,"type":"message","status":"` + status + `","role":"assistant","content":[{"type":"output_text","annotations":[],"text":"` + text + `"}]}`
}

func thoughtItem(_, text string) string {
	return `{"id":` + responsesID + `,"type":"reasoning","summary":[{"type":"summary_text","text":"` + text + `"}]}`
}

func calledItem(status, text string) string {
	return `{"id":` + responsesID + `,"type":"function_call","status":"` + status + `","call_id":"call_1","name":"view","arguments":"` + text + `"}`
}

func responded(item string) string {
	return responsesHead + `"status":"completed","output":[` + item + `],` + responsesUsage + `}`
}

// responsesStream returns a stream of pieces of one kind, with the events before and after
// them.
func responsesStream(kind, before, after string, item func(status, text string) string) stream {
	place := `,"item_id":` + responsesID + `,"output_index":0` + before
	numbered := func(kind string, n int, rest string) []byte {
		return event(kind, `{"type":"`+kind+`","sequence_number":`+strconv.Itoa(n)+rest+`}`)
	}
	return stream{
		begin: slices.Concat(
			numbered("response.created", 0, `,"response":`+responsesHead+`"status":"in_progress","output":[],"usage":null}`),
			numbered("response.output_item.added", 1, `,"output_index":0,"item":`+item("in_progress", ""))),
		token: func(b []byte, n int) []byte {
			return append(b, numbered(kind+".delta", n+2, place+`,"delta":"`+Token+`"`+after+`,"obfuscation":"`+strconv.Itoa(1_000_000+n)+`"`)...)
		},
		end: func(tokens int) []byte {
			text := strings.Repeat(Token, tokens)
			whole := item("completed", text)
			return slices.Concat(
				numbered(kind+".done", tokens+2, place+`,"text":"`+text+`"`),
				numbered("response.output_item.done", tokens+3, `,"output_index":0,"item":`+whole),
				numbered("response.completed", tokens+4, `,"response":`+responded(whole)), []byte(streamEnd))
		},
	}
}
