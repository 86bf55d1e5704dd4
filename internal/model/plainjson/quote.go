// Package plainjson writes and reads the JSON that goes over a wire all the
// time: strings into a request, and one piece of text after the other out of a
// stream.
//
//   - What it writes, every JSON reader reads alike.
//   - What it reads, encoding/json would read alike. For anything unusual it
//     reports false, and whoever asked uses encoding/json.
//   - Neither of them allocates more than the text needs.
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

// AppendEscaped appends what stands between the quotes.
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
