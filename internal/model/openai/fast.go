package openai

import "github.com/abide-run/abide/internal/model/plainjson"

// A plainReader reads the chunks that make up nearly all of a stream: one choice with
// a piece of text, of a thought or of a call, and nothing else that counts.
type plainReader struct {
	plainjson.Text
	piece  piece
	choice int // its index
	call   int // that of a piece of a call
}

// A piece says what a plain chunk has a piece of.
type piece int

const (
	textPiece piece = iota // also if it has nothing
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
		case "refusal":
			return s.Null()
		}
		return s.Skip()
	})
}

// part walks over a piece of a call that has nothing but its index to tell it
// from others.
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
		}
		return s.Skip()
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
