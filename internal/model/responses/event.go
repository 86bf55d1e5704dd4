package responses

import (
	"encoding/json"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/plainjson"
	"github.com/abide-run/abide/internal/model/remote"
)

// An event is one event of a stream.
type event struct {
	Type         string          `json:"type"`
	Response     *response       `json:"response"`
	OutputIndex  int             `json:"output_index"`
	SummaryIndex int             `json:"summary_index"`
	Item         json.RawMessage `json:"item"`
	Delta        delta           `json:"delta"`

	// The members of an error, or the error as an object.
	Message string          `json:"message"`
	Code    remote.Code     `json:"code"`
	Details remote.Details  `json:"details"`
	Error   *remote.Failure `json:"error"`
}

func (e *event) failure() *remote.Failure {
	if e.Error != nil {
		return e.Error
	}
	return &remote.Failure{Message: e.Message, Code: e.Code, Details: e.Details}
}

// delta is a piece of text. In events that are ignored, it may be something else.
type delta string

func (d *delta) UnmarshalJSON(data []byte) error {
	if data[0] == '"' {
		return json.Unmarshal(data, (*string)(d))
	}
	return nil
}

// A response is a whole reply.
type response struct {
	ID         string            `json:"id"`
	Model      string            `json:"model"`
	Status     string            `json:"status"`
	Output     []json.RawMessage `json:"output"`
	Usage      *usage            `json:"usage"`
	Error      *remote.Failure   `json:"error"`
	Incomplete struct {
		Reason string `json:"reason"`
	} `json:"incomplete_details"`
}

// An item is a part of a reply.
type item struct {
	Type      string  `json:"type"`
	ID        string  `json:"id"`
	Phase     string  `json:"phase"`
	CallID    string  `json:"call_id"`
	Name      string  `json:"name"`
	Arguments string  `json:"arguments"`
	Content   []texts `json:"content"`
	Summary   []texts `json:"summary"`
	Encrypted string  `json:"encrypted_content"`
}

type texts struct {
	Text    string `json:"text"`
	Refusal string `json:"refusal"`
}

type usage struct {
	Input        remote.Tokens `json:"input_tokens"`
	Output       remote.Tokens `json:"output_tokens"`
	InputDetails struct {
		Cached  remote.Tokens `json:"cached_tokens"`
		Written remote.Tokens `json:"cache_write_tokens"`
	} `json:"input_tokens_details"`
	OutputDetails struct {
		Reasoning remote.Tokens `json:"reasoning_tokens"`
	} `json:"output_tokens_details"`
}

// UnmarshalJSON decodes what it can. It has no errors.
func (u *usage) UnmarshalJSON(data []byte) error {
	type plain usage
	remote.DecodeUsage(data, (*plain)(u))
	return nil
}

func (u *usage) model() model.Usage {
	in := u.InputDetails
	return model.Usage{
		Input:      int64(max(0, u.Input-in.Cached-in.Written)),
		Output:     int64(u.Output),
		CacheRead:  int64(in.Cached),
		CacheWrite: int64(in.Written),
		Reasoning:  int64(u.OutputDetails.Reasoning),
	}
}

func decode(data []byte, v any) error {
	if err := json.Unmarshal(data, v); err != nil {
		return remote.NotUnderstood(data, err)
	}
	return nil
}

// A plainReader is a fast reader of the most frequent events: pieces of text, of
// summaries and of arguments.
type plainReader struct {
	plainjson.Text
	kind           string // type of the event
	index, summary int
}

func newPlainReader() *plainReader {
	p := new(plainReader)
	p.Shape = p.event
	return p
}

// The kinds of plain events.
const (
	textDelta    = "response.output_text.delta"
	inputDelta   = "response.function_call_arguments.delta"
	summaryDelta = "response.reasoning_summary_text.delta"
)

// plainKind returns the kind with that name, or "" if it is not a plain event.
func plainKind(name []byte) string {
	for _, kind := range []string{textDelta, inputDelta, summaryDelta} {
		if string(name) == kind {
			return kind
		}
	}
	return ""
}

func (p *plainReader) event(s *plainjson.Scanner) bool {
	p.kind, p.index, p.summary = "", 0, 0
	text := false
	return s.Object(func(key []byte) bool {
		switch string(key) {
		case "type":
			name, ok := s.Word()
			p.kind = plainKind(name)
			return ok
		case "delta":
			return plainjson.Once(&text) && s.Text()
		case "output_index":
			return s.Number(&p.index)
		case "summary_index":
			return s.Number(&p.summary)
		case "response", "item", "message", "code", "error":
			return s.Null()
		}
		return s.Skip()
	}) && p.kind != "" && text
}
