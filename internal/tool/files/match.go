package files

import (
	"bytes"
	"strings"
)

// A span is a part of a file.
type span struct{ start, end int }

var crlf = []byte("\r\n")

// maxPlaces is the maximum number of positions of a text that are reported.
const maxPlaces = 20

// occurrences finds a text in a file. It returns the first positions, and how many there
// are. A line break in the text matches any line break of the file; one with a carriage
// return matches only itself.
func occurrences(data []byte, old string) (first []span, count int) {
	if strings.Contains(old, "\r") || !bytes.Contains(data, crlf) {
		return starts(data, []byte(old))
	}
	first, count = starts(bytes.ReplaceAll(data, crlf, []byte{'\n'}), []byte(old))
	toOriginal(data, first)
	return first, count
}

// starts finds a text at every position, also where occurrences overlap.
func starts(data, old []byte) (first []span, count int) {
	for from := 0; ; count++ {
		i := bytes.Index(data[from:], old)
		if i < 0 {
			return first, count
		}
		if from += i; count < maxPlaces {
			first = append(first, span{from, from + len(old)})
		}
		from++
	}
}

// toOriginal converts spans in the text without carriage returns to spans in data.
func toOriginal(data []byte, spans []span) {
	for i := range spans {
		spans[i] = span{originalOffset(data, spans[i].start), originalOffset(data, spans[i].end)}
	}
}

// originalOffset converts a position in the text without carriage returns to one in data.
func originalOffset(data []byte, plain int) int {
	at := 0
	for plain > 0 {
		line := bytes.Index(data[at:], crlf)
		if line < 0 || line >= plain {
			return at + plain
		}
		at += line + len(crlf)
		plain -= line + 1
	}
	return at
}

// replace replaces a span by a text. The line breaks of the text become those around the
// span, unless old has carriage returns.
func replace(data []byte, at span, old, now string) []byte {
	if !strings.Contains(old, "\r") && endsInCRLF(data, at) {
		now = strings.ReplaceAll(strings.ReplaceAll(now, "\r\n", "\n"), "\n", "\r\n")
	}
	out := make([]byte, 0, len(data)-(at.end-at.start)+len(now))
	out = append(out, data[:at.start]...)
	out = append(out, now...)
	return append(out, data[at.end:]...)
}

// endsInCRLF reports whether the next line break from the span on, or else the one
// before it, has a carriage return.
func endsInCRLF(data []byte, at span) bool {
	end := bytes.IndexByte(data[at.start:], '\n')
	if end >= 0 {
		end += at.start
	} else {
		end = bytes.LastIndexByte(data[:at.start], '\n')
	}
	return end > 0 && data[end-1] == '\r'
}
