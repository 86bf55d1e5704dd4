package scripted

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/abide-run/abide/internal/lazyregexp"
	"github.com/abide-run/abide/internal/spelling"
)

// A reader reads JSON value by value and knows its position, so that every error names
// line and column.
type reader struct {
	name string
	data []byte
	dec  *json.Decoder
}

// fields are the known keys of an object, each with the function that reads its value.
type fields map[string]field

// A field reads the value of a key.
type field func(in *reader, key string) error

func newReader(name string, data []byte) *reader {
	return &reader{name: name, data: data, dec: json.NewDecoder(bytes.NewReader(data))}
}

// check returns an error if the file is not valid JSON. The other methods rely on it.
func (in *reader) check() error {
	var whole json.RawMessage
	err := json.Unmarshal(in.data, &whole)
	if bad := (*json.SyntaxError)(nil); errors.As(err, &bad) {
		return in.errorf(max(0, int(bad.Offset)-1), "this is not JSON: %v", bad)
	}
	return err
}

// object reads an object. An unknown or repeated key is an error.
func (in *reader) object(known fields) error {
	if err := in.open('{', "an object"); err != nil {
		return err
	}
	seen := make(map[string]bool, len(known))
	for in.dec.More() {
		at := in.next()
		key := in.token().(string)
		read, ok := known[key]
		switch {
		case !ok:
			return in.errorf(at, "unknown key %q; the nearest known key is %q", key, nearest(key, slices.Sorted(maps.Keys(known))))
		case seen[key]:
			return in.errorf(at, "key %q stands here for the second time; remove one", key)
		}
		seen[key] = true
		if err := read(in, key); err != nil {
			return err
		}
	}
	in.token()
	return nil
}

// list reads a list.
func (in *reader) list(item func() error) error {
	if err := in.open('[', "a list"); err != nil {
		return err
	}
	for in.dec.More() {
		if err := item(); err != nil {
			return err
		}
	}
	in.token()
	return nil
}

// open reads the beginning of an object or a list.
func (in *reader) open(delim json.Delim, what string) error {
	at := in.next()
	if in.data[at] != byte(delim) {
		return in.errorf(at, "%s must stand here", what)
	}
	in.token()
	return nil
}

// token returns the next token. The JSON is known to be valid.
func (in *reader) token() json.Token {
	t, err := in.dec.Token()
	if err != nil {
		panic(fmt.Sprintf("token of checked JSON: %v", err))
	}
	return t
}

// next returns the offset of the next value or key.
func (in *reader) next() int {
	at := int(in.dec.InputOffset())
	for at < len(in.data)-1 && strings.IndexByte(" \t\r\n,:", in.data[at]) >= 0 {
		at++
	}
	return at
}

// errorf returns an error that names the line and the column of an offset.
func (in *reader) errorf(at int, format string, args ...any) error {
	before := in.data[:min(at, len(in.data))]
	line := bytes.Count(before, []byte("\n")) + 1
	column := utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
	return fmt.Errorf("%s:%d:%d: %s", in.name, line, column, fmt.Sprintf(format, args...))
}

// decode reads one value, and returns it with its JSON.
func decode[T any](in *reader, key string) (T, string, error) {
	var value T
	var raw json.RawMessage
	at := in.next()
	if err := in.dec.Decode(&raw); err != nil {
		return value, "", in.errorf(at, "%v", err)
	}
	err := json.Unmarshal(raw, &value)
	var mismatch *json.UnmarshalTypeError
	switch {
	case string(raw) == "null" || errors.As(err, &mismatch):
		err = in.errorf(at, "%s must be %s", key, kindOfValue(value))
	case err != nil:
		err = in.errorf(at, "%s: %v", key, err)
	}
	return value, string(raw), err
}

// kindOfValue describes the JSON that a Go value is read from, for error messages.
func kindOfValue(v any) string {
	switch v.(type) {
	case string:
		return "a string"
	case *regexp.Regexp:
		return "a string with a regular expression"
	case duration:
		return `a duration in a string, such as "250ms"`
	case count, ordinal, httpError:
		return "a whole number"
	}
	return "an object, or a string that is sent as it is"
}

// template reads a text that may contain placeholders. Unknown placeholders are an
// error.
func (in *reader) template(key string) (string, error) {
	at := in.next()
	text, _, err := decode[string](in, key)
	if err != nil {
		return "", err
	}
	for _, m := range bracedWord.FindAllStringSubmatch(text, -1) {
		if placeholders[m[1]] == nil {
			names := slices.Sorted(maps.Keys(placeholders))
			return "", in.errorf(at, "unknown placeholder {{%s}}; the nearest known one is {{%s}}", m[1], nearest(m[1], names))
		}
	}
	return text, nil
}

var bracedWord = lazyregexp.New(`\{\{([a-zA-Z]+)\}\}`)

// The types of values in a scenario that are not texts.
type (
	duration  time.Duration // not negative
	count     int           // 0, 1, 2, …
	ordinal   int           // 1, 2, 3, …
	httpError int           // an HTTP status that is an error
)

func (d *duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil || v < 0 {
		return fmt.Errorf(`%q is no duration; write it as "250ms" or "2s"`, text)
	}
	*d = duration(v)
	return nil
}

func (c *count) UnmarshalJSON(b []byte) error     { return atLeast(b, (*int)(c), 0) }
func (o *ordinal) UnmarshalJSON(b []byte) error   { return atLeast(b, (*int)(o), 1) }
func (s *httpError) UnmarshalJSON(b []byte) error { return atLeast(b, (*int)(s), 400) }

func atLeast(b []byte, v *int, least int) error {
	if err := json.Unmarshal(b, v); err != nil {
		return err
	}
	if *v < least {
		return fmt.Errorf("%d is too small; the least is %d", *v, least)
	}
	return nil
}

func into(v *string) field {
	return func(in *reader, key string) (err error) {
		*v, _, err = decode[string](in, key)
		return err
	}
}

func intoDuration(v *time.Duration) field {
	return func(in *reader, key string) error {
		d, _, err := decode[duration](in, key)
		*v = time.Duration(d)
		return err
	}
}

func intoInt[T ~int, V int | int64](v *V) field {
	return func(in *reader, key string) error {
		n, _, err := decode[T](in, key)
		*v = V(n)
		return err
	}
}

// compact returns JSON without white space.
func compact(raw string) json.RawMessage {
	var b bytes.Buffer
	if err := json.Compact(&b, []byte(raw)); err != nil {
		panic(fmt.Sprintf("compact checked JSON: %v", err))
	}
	return b.Bytes()
}

// nearest returns the name that is most similar to a word, ignoring case.
func nearest[S ~string](word string, names []S) S {
	distance := func(name S) int { return spelling.Distance(strings.ToLower(word), strings.ToLower(string(name))) }
	return slices.MinFunc(names, func(a, b S) int { return distance(a) - distance(b) })
}
