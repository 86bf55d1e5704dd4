// Package plainjson writes and reads simple JSON fast: strings of a request, and the
// pieces of text in a stream.
//
//   - Every JSON decoder reads what it writes in the same way.
//   - It reads values as encoding/json does. For anything unusual it reports false, and
//     the caller uses encoding/json instead.
//   - It allocates only the memory of the text.
package plainjson

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// AppendString appends s as a JSON string. What is not UTF-8 becomes U+FFFD.
func AppendString(b []byte, s string) []byte {
	return append(AppendEscaped(append(b, '"'), s), '"')
}

// AppendEscaped appends s as a JSON string without the quotes.
func AppendEscaped(b []byte, s string) []byte {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	start := 0
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' {
			b = append(append(b, s[start:i]...), escape(c)...)
			start = i + 1
		}
	}
	return append(b, s[start:]...)
}

func escape(c byte) string {
	switch c {
	case '"':
		return `\"`
	case '\\':
		return `\\`
	case '\n':
		return `\n`
	case '\t':
		return `\t`
	case '\r':
		return `\r`
	}
	return fmt.Sprintf(`\u%04x`, c)
}
