package plainjson

import "unicode/utf8"

// A Scanner walks over JSON that it hopes to be simple. Its methods report
// false as soon as it is not; there is no way back then.
type Scanner struct {
	data []byte
	pos  int

	text     []byte
	from, to int // where the text stands, with its quotes
}

// Object walks over an object. It gives the key of each member to member, which
// walks over the value.
func (s *Scanner) Object(member func(key []byte) bool) bool {
	if !s.Byte('{') {
		return false
	}
	if s.Byte('}') {
		return true
	}
	for {
		key, ok := s.key()
		if !ok || !s.Byte(':') || !member(key) {
			return false
		}
		if !s.Byte(',') {
			return s.Byte('}')
		}
	}
}

// key reads a key of lower case. With any other, encoding/json may see a key
// that counts behind different spelling.
func (s *Scanner) key() ([]byte, bool) {
	if !s.Byte('"') {
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

// Byte passes over c, and space before it.
func (s *Scanner) Byte(c byte) bool {
	s.space()
	if s.pos < len(s.data) && s.data[s.pos] == c {
		s.pos++
		return true
	}
	return false
}

func (s *Scanner) space() {
	for s.pos < len(s.data) {
		switch s.data[s.pos] {
		case ' ', '\n', '\r', '\t':
			s.pos++
		default:
			return
		}
	}
}

// Skip passes over a value without structure, or an empty list. Its first byte
// decides what it must be.
func (s *Scanner) Skip() bool {
	s.space()
	if s.pos == len(s.data) {
		return false
	}
	switch s.data[s.pos] {
	case '"':
		return s.String()
	case 'n':
		return s.Null()
	case 't':
		return s.literal("true")
	case 'f':
		return s.literal("false")
	case '[':
		return s.Byte('[') && s.Byte(']')
	}
	return s.integer()
}

// Null passes over null.
func (s *Scanner) Null() bool { return s.literal("null") }

// Nothing passes over null or an empty string.
func (s *Scanner) Nothing() bool { return s.literal("null") || s.literal(`""`) }

// Is passes over this string, written without escapes.
func (s *Scanner) Is(word string) bool {
	got, ok := s.Word()
	return ok && string(got) == word
}

// Word passes over a string without escapes and returns it.
func (s *Scanner) Word() ([]byte, bool) {
	s.space()
	start := s.pos + 1
	if !s.String() {
		return nil, false
	}
	word := s.data[start : s.pos-1]
	return word, utf8.Valid(word)
}

func (s *Scanner) literal(word string) bool {
	s.space()
	if end := s.pos + len(word); end <= len(s.data) && string(s.data[s.pos:end]) == word {
		s.pos = end
		return true
	}
	return false
}

// String passes over a string without escapes.
func (s *Scanner) String() bool {
	if !s.Byte('"') {
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
func (s *Scanner) integer() bool {
	s.space()
	start := s.pos
	for s.pos < len(s.data) && '0' <= s.data[s.pos] && s.data[s.pos] <= '9' {
		s.pos++
	}
	digits := s.pos - start
	return digits == 1 || digits > 1 && s.data[start] != '0'
}

// Count passes over a whole number that fits every kind of integer.
func (s *Scanner) Count() bool {
	const digits = 9
	s.space()
	start := s.pos
	return s.integer() && s.pos-start <= digits
}

// Number is Count, and gives n the number.
func (s *Scanner) Number(n *int) bool {
	s.space()
	start := s.pos
	if !s.Count() {
		return false
	}
	*n = 0
	for _, c := range s.data[start:s.pos] {
		*n = *n*10 + int(c-'0')
	}
	return true
}

// Text reads the string that everything is about. Escapes with a code point are
// left to encoding/json.
func (s *Scanner) Text() bool {
	if !s.Byte('"') {
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
