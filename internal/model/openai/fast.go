package openai

import (
	"bytes"
	"unicode/utf8"
)

// plainText reads the chunks that make up nearly all of a stream:
// one choice with a piece of text, and nothing else that counts.
//
// For anything unusual it reports false, and the chunk has to be decoded in the
// ordinary way. What it accepts, encoding/json reads alike: a fuzz test holds it
// to that.
type plainText struct {
	// What stood around the text of an accepted chunk. The next one seldom
	// differs in more than the text, and then only that has to be read.
	before, after []byte
}

// content appends the text of a chunk to dst.
func (p *plainText) content(dst, data []byte) ([]byte, bool) {
	if text, ok := p.sameAgain(dst, data); ok {
		return text, true
	}
	s := scanner{data: data, text: dst}
	if !s.object(inChunk) || !s.choice {
		return dst, false
	}
	if s.space(); s.pos < len(data) {
		return dst, false
	}
	p.before = append(p.before[:0], data[:s.from]...)
	p.after = append(p.after[:0], data[s.to:]...)
	return s.text, true
}

// sameAgain reads a chunk that is like the last one around its text.
func (p *plainText) sameAgain(dst, data []byte) ([]byte, bool) {
	if len(p.before) == 0 || !bytes.HasPrefix(data, p.before) {
		return dst, false
	}
	s := scanner{data: data, pos: len(p.before), text: dst}
	if !s.unquote() || !bytes.Equal(data[s.pos:], p.after) {
		return dst, false
	}
	return s.text, true
}

// A scanner walks over JSON that it hopes to be simple. Its methods report
// false as soon as it is not.
type scanner struct {
	data []byte
	pos  int
	text []byte

	choice, delta, content bool // seen
	from, to               int  // where the text stands, with its quotes
}

// A place is the object that a member stands in.
type place int

const (
	inChunk place = iota
	inChoice
	inDelta
)

// value passes over the value of a member, according to what it means there.
func (s *scanner) value(in place, key []byte) bool {
	switch in {
	case inChunk:
		return s.ofChunk(key)
	case inChoice:
		return s.ofChoice(key)
	}
	return s.ofDelta(key)
}

func (s *scanner) ofChunk(key []byte) bool {
	switch string(key) {
	case "id", "model":
		return s.null() || s.string()
	case "usage", "error":
		return s.null()
	case "choices":
		return once(&s.choice) && s.byte('[') && s.object(inChoice) && s.byte(']')
	}
	return s.plain()
}

func (s *scanner) ofChoice(key []byte) bool {
	switch string(key) {
	case "index":
		return s.digit()
	case "message", "finish_reason":
		return s.null()
	case "delta":
		return once(&s.delta) && s.object(inDelta)
	}
	return s.plain()
}

func (s *scanner) ofDelta(key []byte) bool {
	switch string(key) {
	case "refusal", "reasoning_content", "reasoning", "reasoning_text", "tool_calls":
		return s.null()
	case "content":
		return once(&s.content) && (s.null() || s.unquote())
	}
	return s.plain()
}

func once(seen *bool) bool {
	first := !*seen
	*seen = true
	return first
}

// object walks over an object and its members.
func (s *scanner) object(in place) bool {
	if !s.byte('{') {
		return false
	}
	if s.byte('}') {
		return true
	}
	for {
		key, ok := s.key()
		if !ok || !s.byte(':') || !s.value(in, key) {
			return false
		}
		if !s.byte(',') {
			return s.byte('}')
		}
	}
}

// key reads a key of lower case. With any other, encoding/json may see a key
// that counts behind different spelling.
func (s *scanner) key() ([]byte, bool) {
	if !s.byte('"') {
		return nil, false
	}
	for i := s.pos; i < len(s.data); i++ {
		switch c := s.data[i]; {
		case 'a' <= c && c <= 'z', c == '_':
		case c == '"':
			key := s.data[s.pos:i]
			s.pos = i + 1
			return key, true
		default:
			return nil, false
		}
	}
	return nil, false
}

// plain passes over a value without structure. Its first byte decides what it
// must be: there is no way back from half a string.
func (s *scanner) plain() bool {
	s.space()
	if s.pos == len(s.data) {
		return false
	}
	switch s.data[s.pos] {
	case '"':
		return s.string()
	case 'n':
		return s.null()
	case 't':
		return s.literal("true")
	case 'f':
		return s.literal("false")
	}
	return s.integer()
}

func (s *scanner) null() bool { return s.literal("null") }

func (s *scanner) literal(word string) bool {
	s.space()
	if end := s.pos + len(word); end <= len(s.data) && string(s.data[s.pos:end]) == word {
		s.pos = end
		return true
	}
	return false
}

// string passes over a string without escapes.
func (s *scanner) string() bool {
	if !s.byte('"') {
		return false
	}
	for i := s.pos; i < len(s.data); i++ {
		switch c := s.data[i]; {
		case c == '"':
			s.pos = i + 1
			return true
		case c < ' ' || c == '\\':
			return false
		}
	}
	return false
}

// integer passes over a whole number that is not negative.
func (s *scanner) integer() bool {
	s.space()
	start := s.pos
	for s.pos < len(s.data) && '0' <= s.data[s.pos] && s.data[s.pos] <= '9' {
		s.pos++
	}
	digits := s.pos - start
	return digits == 1 || digits > 1 && s.data[start] != '0'
}

func (s *scanner) digit() bool {
	start := s.pos
	return s.integer() && s.pos-start <= 2 // a space may stand before it
}

// unquote reads a string into the text. Escapes with a code point are left to
// encoding/json.
func (s *scanner) unquote() bool {
	if !s.byte('"') {
		return false
	}
	from, start := len(s.text), s.pos
	s.from = s.pos - 1
	for i := s.pos; i < len(s.data); i++ {
		switch c := s.data[i]; {
		case c == '"':
			s.text = append(s.text, s.data[start:i]...)
			s.pos = i + 1
			s.to = s.pos
			return utf8.Valid(s.text[from:])
		case c < ' ':
			return false
		case c == '\\':
			s.text = append(s.text, s.data[start:i]...)
			if i++; i == len(s.data) || unescaped[s.data[i]] == 0 {
				return false
			}
			s.text = append(s.text, unescaped[s.data[i]])
			start = i + 1
		}
	}
	return false
}

// unescaped is what a letter stands for after a backslash.
var unescaped = [256]byte{
	'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t',
}

// byte passes over c, and space before it.
func (s *scanner) byte(c byte) bool {
	s.space()
	if s.pos < len(s.data) && s.data[s.pos] == c {
		s.pos++
		return true
	}
	return false
}

func (s *scanner) space() {
	for s.pos < len(s.data) {
		switch s.data[s.pos] {
		case ' ', '\n', '\r', '\t':
			s.pos++
		default:
			return
		}
	}
}
