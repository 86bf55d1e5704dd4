package files

import (
	"bytes"
	"strings"
)

// A span is a part of a file.
type span struct{ start, end int }

var crlf = []byte("\r\n")

// maxPlaces is how many places of a text are told.
const maxPlaces = 20

// occurrences finds a text in a file, wherever it starts: the first places, and
// how many there are. A plain line end in the text stands for any line end of
// the file; one with a carriage return stands for itself.
func occurrences(data []byte, old string) (first []span, count int) {
	if strings.Contains(old, "\r") || !bytes.Contains(data, crlf) {
		return starts(data, []byte(old))
	}
	first, count = starts(bytes.ReplaceAll(data, crlf, []byte{'\n'}), []byte(old))
	widen(data, first)
	return first, count
}

// starts finds a text at every place where it starts, also within itself.
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

// widen moves spans of a text without carriage returns to where they are with
// them.
func widen(data []byte, spans []span) {
	for i := range spans {
		spans[i] = span{widened(data, spans[i].start), widened(data, spans[i].end)}
	}
}

// widened returns where a place in a text without carriage returns is with them.
func widened(data []byte, plain int) int {
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

// replace puts a text in the place of another. Its line ends become those of the
// place, unless they were given with care.
func replace(data []byte, at span, old, now string) []byte {
	if !strings.Contains(old, "\r") && endsInCRLF(data, at) {
		now = strings.ReplaceAll(strings.ReplaceAll(now, "\r\n", "\n"), "\n", "\r\n")
	}
	out := make([]byte, 0, len(data)-(at.end-at.start)+len(now))
	out = append(out, data[:at.start]...)
	out = append(out, now...)
	return append(out, data[at.end:]...)
}

// endsInCRLF reports whether lines end with a carriage return where the span is:
// in it, after it, or before it.
func endsInCRLF(data []byte, at span) bool {
	end := bytes.IndexByte(data[at.start:], '\n')
	if end >= 0 {
		end += at.start
	} else {
		end = bytes.LastIndexByte(data[:at.start], '\n')
	}
	return end > 0 && data[end-1] == '\r'
}
