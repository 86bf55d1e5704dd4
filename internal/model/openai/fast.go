package openai

import "github.com/abide-run/abide/internal/model/plainjson"

// A plainReader is a fast reader of the most frequent chunks: one choice with a piece of
// text, of reasoning or of a call, and nothing else of interest.
type plainReader struct {
	plainjson.Text
	piece  piece
	choice int // index of the choice
	call   int // index of the call, if it is a piece of one
}

// A piece is the kind of piece in a chunk.
type piece int

const (
	textPiece piece = iota // a chunk without a piece is one of these, too
	thoughtPiece
	callPiece
)

func newPlainReader() *plainReader {
	p := new(plainReader)
	p.Shape = p.chunk
	return p
}

func (p *plainReader) chunk(s *plainjson.Scanner) bool {
	p.piece, p.choice, p.call = textPiece, 0, 0
	choices := false
	return s.Object(func(key []byte) bool {
		switch string(key) {
		case "id", "model":
			return s.Null() || s.String()
		case "usage", "error":
			return s.Null()
		case "choices":
			return plainjson.Once(&choices) && s.Byte('[') && p.one(s) && s.Byte(']')
		}
		return s.Skip()
	}) && choices
}

func (p *plainReader) one(s *plainjson.Scanner) bool {
	delta := false
	return s.Object(func(key []byte) bool {
		switch string(key) {
		case "index":
			return s.Number(&p.choice)
		case "message", "finish_reason":
			return s.Null()
		case "delta":
			return plainjson.Once(&delta) && p.delta(s)
		}
		return s.Skip()
	})
}

func (p *plainReader) delta(s *plainjson.Scanner) bool {
	content, calls, found := false, false, false
	is := func(what piece) bool {
		p.piece = what
		return plainjson.Once(&found)
	}
	return s.Object(func(key []byte) bool {
		switch string(key) {
		case "content":
			return plainjson.Once(&content) && (s.Nothing() || is(textPiece) && s.Text())
		case "reasoning_content", "reasoning", "reasoning_text":
			return s.Null() || is(thoughtPiece) && s.Text()
		case "tool_calls":
			return plainjson.Once(&calls) && (s.Null() || is(callPiece) && s.Byte('[') && p.part(s) && s.Byte(']'))
		case "role":
			return s.Skip()
		}
		return s.Null() // anything else may have to be sent back
	})
}

// part scans a piece of a call that is identified by its index alone.
func (p *plainReader) part(s *plainjson.Scanner) bool {
	index, function := false, false
	return s.Object(func(key []byte) bool {
		switch string(key) {
		case "index":
			index = true
			return s.Number(&p.call)
		case "id":
			return s.Nothing()
		case "function":
			return plainjson.Once(&function) && plainFunction(s)
		case "type":
			return s.Skip()
		}
		return s.Null() // anything else may have to be sent back
	}) && index && function
}

func plainFunction(s *plainjson.Scanner) bool {
	arguments := false
	return s.Object(func(key []byte) bool {
		switch string(key) {
		case "name":
			return s.Nothing()
		case "arguments":
			return plainjson.Once(&arguments) && s.Text()
		}
		return s.Skip()
	}) && arguments
}
