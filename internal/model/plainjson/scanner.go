package plainjson

import "unicode/utf8"

// A Scanner scans simple JSON. A method that reports false has found something unusual;
// the scanner must not be used after that.
type Scanner struct {
	data []byte
	pos  int

	text     []byte
	from, to int // position of the text, including its quotes
}

// Object scans an object. It calls member with the key of each member, and member has to
// scan the value.
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

// key scans a key in lower case. Other keys are refused, because encoding/json ignores
// case and could find a known key in them.
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

// Byte scans c, and white space before it.
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

// Skip scans a value that is not an object and not a list, or an empty list.
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

// Null scans null.
func (s *Scanner) Null() bool { return s.literal("null") }

// Nothing scans null or an empty string.
func (s *Scanner) Nothing() bool { return s.literal("null") || s.literal(`""`) }

// Is scans the given string, written without escapes.
func (s *Scanner) Is(word string) bool {
	got, ok := s.Word()
	return ok && string(got) == word
}

// Word scans a string without escapes and returns it.
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

// String scans a string without escapes.
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

// integer scans a whole number that is not negative.
func (s *Scanner) integer() bool {
	s.space()
	start := s.pos
	for s.pos < len(s.data) && '0' <= s.data[s.pos] && s.data[s.pos] <= '9' {
		s.pos++
	}
	digits := s.pos - start
	return digits == 1 || digits > 1 && s.data[start] != '0'
}

// Count scans a whole number that fits into every type of integer.
func (s *Scanner) Count() bool {
	const digits = 9
	s.space()
	start := s.pos
	return s.integer() && s.pos-start <= digits
}

// Number is Count, and stores the number in n.
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

// Text scans the string that the caller wants to read. It refuses escapes with a code
// point, which encoding/json has to read.
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

// unescaped maps a letter after a backslash to its meaning.
var unescaped = [256]byte{
	'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t',
}
