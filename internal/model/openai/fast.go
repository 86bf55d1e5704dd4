package openai

import (
	"github.com/abide-run/abide/internal/model/plainjson"
	"github.com/abide-run/abide/internal/model/remote"
)

// A plainReader is a fast reader of the most frequent chunks: at most one choice with a piece
// of text, of reasoning or of a call, the usage, and nothing else of interest.
type plainReader struct {
	plainjson.Text
	piece  piece
	choice int // index of the choice
	call   int // index of the call, if it is a piece of one
	// thoughts is the member of a piece of reasoning.
	thoughts string

	id, model []byte // parts of the chunk that was scanned last
	finish    string // finish reason of package model; empty if there is none
	usage     usage
	counted   bool // true if there is a usage
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
	*p = plainReader{Text: p.Text}
	choices, usage := false, false
	return s.Object(func(key []byte) bool {
		switch string(key) {
		case "id":
			return s.Null() || word(s, &p.id)
		case "model":
			return s.Null() || word(s, &p.model)
		case "error":
			return s.Null()
		case "usage":
			return plainjson.Once(&usage) && (s.Null() || p.count(s))
		case "choices":
			return plainjson.Once(&choices) && s.Byte('[') && (s.Byte(']') || p.one(s) && s.Byte(']'))
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
		case "message":
			return s.Null()
		case "finish_reason":
			return s.Null() || p.end(s)
		case "delta":
			return plainjson.Once(&delta) && p.delta(s)
		}
		return s.Skip()
	})
}

// end scans a finish reason that is known or empty.
func (p *plainReader) end(s *plainjson.Scanner) bool {
	reason, ok := s.Word()
	p.finish = finishes[string(reason)]
	return ok && (p.finish != "" || len(reason) == 0)
}

// count scans the usage.
func (p *plainReader) count(s *plainjson.Scanner) bool {
	u := &p.usage
	p.counted = true
	return s.Object(func(key []byte) bool {
		switch string(key) {
		case "prompt_tokens":
			return tokens(s, &u.Prompt)
		case "completion_tokens":
			return tokens(s, &u.Completion)
		case "prompt_tokens_details":
			return s.Null() || s.Object(func(key []byte) bool {
				switch string(key) {
				case "cached_tokens":
					return tokens(s, &u.PromptDetails.Cached)
				case "cache_write_tokens":
					return tokens(s, &u.PromptDetails.Written)
				}
				return s.Skip()
			})
		case "completion_tokens_details":
			return s.Null() || s.Object(func(key []byte) bool {
				if string(key) == "reasoning_tokens" {
					return tokens(s, &u.CompletionDetails.Reasoning)
				}
				return s.Skip()
			})
		}
		return s.Skip()
	})
}

func tokens(s *plainjson.Scanner, n *remote.Tokens) bool {
	var count int
	ok := s.Number(&count)
	*n = remote.Tokens(count)
	return ok
}

func word(s *plainjson.Scanner, to *[]byte) (ok bool) {
	*to, ok = s.Word()
	return ok
}

func (p *plainReader) delta(s *plainjson.Scanner) bool {
	content, calls, found := false, false, false
	is := func(what piece) bool {
		p.piece = what
		return plainjson.Once(&found)
	}
	thought := func(member string) bool {
		p.thoughts = member
		return is(thoughtPiece) && s.Text()
	}
	return s.Object(func(key []byte) bool {
		switch string(key) {
		case "content":
			return plainjson.Once(&content) && (s.Nothing() || is(textPiece) && s.Text())
		case "reasoning_content":
			return s.Null() || thought("reasoning_content")
		case "reasoning":
			return s.Null() || thought("reasoning")
		case "reasoning_text":
			return s.Null() || thought("reasoning_text")
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
