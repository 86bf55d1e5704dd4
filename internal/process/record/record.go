// Package record encodes the facts about a process as lines of text, on disk and
// between a keeper and its daemon.
//
//	5f0c2a11 exited status="256" time="1763190000000000000"
//
// A line begins with the checksum of the rest, so a line that was only half written,
// or is other text, does not parse. Values are quoted as in Go and may be any bytes.
// Parsing an encoded record returns the same record.
package record

import (
	"errors"
	"strconv"
)

// A Record is a kind of fact and its values. A name may occur several times.
type Record struct {
	Kind   string
	fields []field
}

type field struct{ name, value string }

// New returns a record without values.
func New(kind string) Record { return Record{Kind: kind} }

// With returns the record with one more value.
func (r Record) With(name, value string) Record {
	r.fields = append(r.fields[:len(r.fields):len(r.fields)], field{name, value})
	return r
}

// WithAll returns the record with several values of one name.
func (r Record) WithAll(name string, values []string) Record {
	fields := append(make([]field, 0, len(r.fields)+len(values)), r.fields...)
	for _, v := range values {
		fields = append(fields, field{name, v})
	}
	r.fields = fields
	return r
}

// WithInt returns the record with a number.
func (r Record) WithInt(name string, value int64) Record {
	return r.With(name, strconv.FormatInt(value, 10))
}

// WithFlag returns the record with a flag if set is true, else unchanged.
func (r Record) WithFlag(name string, set bool) Record {
	if !set {
		return r
	}
	return r.With(name, "true")
}

// Get returns the first value of a name, or "" if there is none.
func (r Record) Get(name string) string {
	for _, f := range r.fields {
		if f.name == name {
			return f.value
		}
	}
	return ""
}

// All returns the values of a name.
func (r Record) All(name string) []string {
	var all []string
	for _, f := range r.fields {
		if f.name == name {
			all = append(all, f.value)
		}
	}
	return all
}

// Int returns the first value of a name as a number, or 0 if there is none.
func (r Record) Int(name string) int64 {
	n, err := strconv.ParseInt(r.Get(name), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// Flag reports whether a name was set by WithFlag.
func (r Record) Flag(name string) bool { return r.Get(name) == "true" }

// Sum returns a checksum (FNV-1a) that needs no tables, which would slow down the
// start of a keeper. It detects every change of a single byte.
func Sum[T string | []byte](text T) uint32 {
	h := uint32(2166136261)
	for i := range len(text) {
		h = (h ^ uint32(text[i])) * 16777619
	}
	return h
}

// Line returns the record as a line, with its line break.
func (r Record) Line() []byte {
	const sum = 8
	line := append(make([]byte, 0, 128), "00000000 "...)
	line = append(line, r.Kind...)
	for _, f := range r.fields {
		line = append(append(append(line, ' '), f.name...), '=')
		line = strconv.AppendQuote(line, f.value)
	}
	putHex(line[:sum], Sum(line[sum+1:]))
	return append(line, '\n')
}

func putHex(dst []byte, n uint32) {
	for i := range dst {
		dst[i] = "0123456789abcdef"[n>>(28-4*i)&15]
	}
}

var errNoRecord = errors.New("not a record")

// Parse decodes a line, with or without its line break.
func Parse(line []byte) (Record, error) {
	if n := len(line); n > 0 && line[n-1] == '\n' {
		line = line[:n-1]
	}
	if len(line) < 10 || line[8] != ' ' {
		return Record{}, errNoRecord
	}
	var want [8]byte
	putHex(want[:], Sum(line[9:]))
	if string(line[:8]) != string(want[:]) {
		return Record{}, errNoRecord
	}
	return parseBody(string(line[9:]))
}

// parseBody decodes the part of a line after its checksum.
func parseBody(text string) (Record, error) {
	kind, rest := word(text)
	if kind == "" {
		return Record{}, errNoRecord
	}
	r := New(kind)
	for rest != "" {
		if rest[0] != ' ' {
			return Record{}, errNoRecord
		}
		name, tail := word(rest[1:])
		if name == "" || tail == "" || tail[0] != '=' {
			return Record{}, errNoRecord
		}
		quoted, err := strconv.QuotedPrefix(tail[1:])
		if err != nil {
			return Record{}, errNoRecord
		}
		value, err := strconv.Unquote(quoted)
		if err != nil || strconv.Quote(value) != quoted { // every value has exactly one encoding
			return Record{}, errNoRecord
		}
		r.fields = append(r.fields, field{name, value})
		rest = tail[1+len(quoted):]
	}
	return r, nil
}

// word splits off the letters and underscores at the beginning.
func word(text string) (word, rest string) {
	i := 0
	for i < len(text) && (text[i] >= 'a' && text[i] <= 'z' || text[i] == '_') {
		i++
	}
	return text[:i], text[i:]
}

// Each calls visit with every record of a text, and skips lines that are no record.
func Each(text []byte, visit func(Record)) {
	for len(text) > 0 {
		end := 0
		for end < len(text) && text[end] != '\n' {
			end++
		}
		if end == len(text) {
			return // the last line is not finished
		}
		if r, err := Parse(text[:end]); err == nil {
			visit(r)
		}
		text = text[end+1:]
	}
}
