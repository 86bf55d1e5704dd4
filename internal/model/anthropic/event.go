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

// A message is a whole reply, or the start of a streamed one.
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

	Own remote.Members `json:"-"` // members that only the provider understands
}

// UnmarshalJSON decodes a piece with all of its members.
func (d *delta) UnmarshalJSON(data []byte) (err error) {
	type plain delta
	if err := json.Unmarshal(data, (*plain)(d)); err != nil {
		return err
	}
	d.Own, err = remote.OwnMembers(data, deltaMembers)
	return err
}

var deltaMembers = []string{"type", "text", "partial_json", "thinking", "signature", "stop_reason", "stop_sequence", "stop_details", "container", "context_management"}

// stopDetails says why a model declined to answer.
type stopDetails struct {
	Explanation string `json:"explanation"`
}

// usage is the usage since the start of the reply. Fields that an event lacks keep their
// value.
type usage struct {
	Input         *remote.Tokens `json:"input_tokens"`
	Output        *remote.Tokens `json:"output_tokens"`
	CacheRead     *remote.Tokens `json:"cache_read_input_tokens"`
	CacheCreation *remote.Tokens `json:"cache_creation_input_tokens"`
	Creation      struct {
		Hour *remote.Tokens `json:"ephemeral_1h_input_tokens"`
	} `json:"cache_creation"`
	Details struct {
		Thinking *remote.Tokens `json:"thinking_tokens"`
	} `json:"output_tokens_details"`
}

// UnmarshalJSON decodes what it can. It has no errors.
func (u *usage) UnmarshalJSON(data []byte) error {
	type plain usage
	remote.DecodeUsage(data, (*plain)(u))
	return nil
}

func (u *usage) update(to *model.Usage) {
	for _, count := range []struct {
		to   *int64
		from *remote.Tokens
	}{
		{&to.Input, u.Input}, {&to.Output, u.Output}, {&to.CacheRead, u.CacheRead},
		{&to.CacheWrite, u.CacheCreation}, {&to.Reasoning, u.Details.Thinking},
		{&to.CacheWrite1h, u.Creation.Hour},
	} {
		if count.from != nil {
			*count.to = int64(*count.from)
		}
	}
}

func decode(data []byte, v any) error {
	if err := json.Unmarshal(data, v); err != nil {
		return remote.NotUnderstood(data, err)
	}
	return nil
}

// A piece is a frequent kind of delta.
type piece int

const (
	noPiece piece = iota
	textPiece
	thoughtPiece
	inputPiece
)

// pieceKinds and pieceMembers are the type of each piece on the wire, and the member
// that contains its text.
var (
	pieceKinds   = []string{textPiece: "text_delta", thoughtPiece: "thinking_delta", inputPiece: "input_json_delta"}
	pieceMembers = []string{textPiece: "text", thoughtPiece: "thinking", inputPiece: "partial_json"}
)

func pieceOf(names []string, name []byte) piece {
	for p := textPiece; p <= inputPiece; p++ {
		if string(name) == names[p] {
			return p
		}
	}
	return noPiece
}

// A plainReader is a fast reader of the most frequent events.
type plainReader struct {
	plainjson.Text
	piece piece
	index int // index of the block
}

func newPlainReader() *plainReader {
	p := new(plainReader)
	p.Shape = p.event
	return p
}

func (p *plainReader) event(s *plainjson.Scanner) bool {
	p.index = 0
	kind, delta := false, false
	return s.Object(func(key []byte) bool {
		switch string(key) {
		case "type":
			kind = true
			return s.Is("content_block_delta")
		case "index":
			return s.Number(&p.index)
		case "delta":
			return plainjson.Once(&delta) && p.delta(s)
		case "message", "content_block", "usage", "error":
			return s.Null()
		}
		return s.Skip()
	}) && kind && delta
}

// delta scans a delta, whose text has to be in the member of its kind.
func (p *plainReader) delta(s *plainjson.Scanner) bool {
	p.piece = noPiece
	found, at := false, textPiece // an empty text may be missing
	return s.Object(func(key []byte) bool {
		switch string(key) {
		case "type":
			kind, ok := s.Word()
			p.piece = pieceOf(pieceKinds, kind)
			return ok
		case "text", "thinking", "partial_json":
			if s.Null() {
				return true
			}
			at = pieceOf(pieceMembers, key)
			return plainjson.Once(&found) && s.Text()
		}
		return s.Null() // anything else may have to be sent back
	}) && p.piece == at
}
