package process

import (
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"
)

const (
	MaxHeadBytes  = 16 << 10 // bytes of the beginning that a HeadTailBuffer keeps
	MaxTailBytes  = 16 << 10 // bytes of the end that a HeadTailBuffer keeps
	MaxLineLength = 2048     // bytes of a line that are shown, including the truncation mark
)

const (
	lineCut  = " ... [truncated]"
	headTail = "head_tail"
)

// TruncationInfo says how much of an output is shown.
type TruncationInfo struct {
	OriginalBytes int    `json:"original_bytes"` // number of bytes written
	RetainedBytes int    `json:"retained_bytes"` // length of the text that is shown
	OmittedBytes  int    `json:"omitted_bytes"`  // number of bytes left out between head and tail
	Strategy      string `json:"strategy"`
}

// A HeadTailBuffer keeps the first and the last bytes written to it. Its memory use
// does not depend on how much is written. It is safe for concurrent use.
type HeadTailBuffer struct {
	mu      sync.Mutex
	maxHead int
	maxTail int
	head    []byte
	tail    []byte // ring of maxTail bytes; nil until the head is full
	next    int    // index of the next byte in the ring
	tailed  int    // number of bytes ever written to the ring
	total   int
}

// NewHeadTailBuffer returns a buffer of the usual size.
func NewHeadTailBuffer() *HeadTailBuffer {
	return NewHeadTailBufferSized(MaxHeadBytes, MaxTailBytes)
}

// NewHeadTailBufferSized returns a buffer for the given numbers of bytes. Either may
// be zero; a negative number counts as zero.
func NewHeadTailBufferSized(maxHead, maxTail int) *HeadTailBuffer {
	return &HeadTailBuffer{maxHead: max(maxHead, 0), maxTail: max(maxTail, 0)}
}

// Write adds all of p. It never fails.
func (b *HeadTailBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.total += len(p)
	n := min(len(p), b.maxHead-len(b.head))
	b.head = append(b.head, p[:n]...)
	b.writeTailLocked(p[n:])
	return len(p), nil
}

func (b *HeadTailBuffer) writeTailLocked(p []byte) {
	if len(p) == 0 || b.maxTail == 0 {
		return
	}
	if b.tail == nil {
		b.tail = make([]byte, b.maxTail)
	}
	b.tailed += len(p)
	if skip := len(p) - b.maxTail; skip > 0 {
		p = p[skip:] // the first bytes would be overwritten at once
		b.next = 0
	}
	n := copy(b.tail[b.next:], p)
	m := copy(b.tail, p[n:])
	b.next = (b.next + n + m) % b.maxTail
}

// orderedTailLocked returns a copy of the ring from its oldest byte on.
func (b *HeadTailBuffer) orderedTailLocked() []byte {
	if b.tailed < b.maxTail {
		return append([]byte(nil), b.tail[:b.tailed]...)
	}
	return append(append(make([]byte, 0, b.maxTail), b.tail[b.next:]...), b.tail[:b.next]...)
}

// Len returns the number of bytes that are kept.
func (b *HeadTailBuffer) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.head) + min(b.tailed, b.maxTail)
}

// TotalWritten returns the number of bytes ever written.
func (b *HeadTailBuffer) TotalWritten() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.total
}

// Bytes returns a copy of what is kept: the head, then the tail.
func (b *HeadTailBuffer) Bytes() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append(append([]byte{}, b.head...), b.orderedTailLocked()...)
}

// Reset empties the buffer.
func (b *HeadTailBuffer) Reset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.head, b.tail, b.next, b.tailed, b.total = nil, nil, 0, 0, 0
}

// Output returns the text for a model: head and tail, a note of the number of bytes
// omitted between them, and long lines truncated. The info is nil if the tail is
// empty. No character is cut in two, and invalid bytes become U+FFFD, so the text
// is valid UTF-8.
//
// If head and tail are both used and nothing is omitted, there is a line break
// between them; Bytes returns the text without it.
func (b *HeadTailBuffer) Output() (string, *TruncationInfo) {
	b.mu.Lock()
	head := append([]byte(nil), b.head...)
	tail := b.orderedTailLocked()
	total := b.total
	b.mu.Unlock()
	return render(head, tail, total)
}

// render returns the text for the first and the last bytes of an output of total
// bytes. Without a tail it is the head alone.
func render(head, tail []byte, total int) (string, *TruncationInfo) {
	if len(tail) == 0 {
		return cutLines(head), nil
	}
	omitted := total - len(head) - len(tail)
	separator := "\n"
	whole := trimPartEnd(head)
	if omitted > 0 {
		separator = fmt.Sprintf("\n\n... [omitted %d bytes] ...\n\n", omitted)
		tail = trimPartStart(tail)
	} else {
		tail = append(head[len(whole):len(head):len(head)], tail...)
	}
	text := cutLines(whole) + separator + cutLines(tail)
	return text, &TruncationInfo{OriginalBytes: total, RetainedBytes: len(text), OmittedBytes: omitted, Strategy: headTail}
}

// trimPartEnd removes an incomplete character at the end.
func trimPartEnd(p []byte) []byte {
	for i := len(p) - 1; i >= 0 && i >= len(p)-utf8.UTFMax; i-- {
		if utf8.RuneStart(p[i]) {
			if !utf8.FullRune(p[i:]) {
				return p[:i]
			}
			break
		}
	}
	return p
}

// trimPartStart removes an incomplete character at the beginning.
func trimPartStart(p []byte) []byte {
	for i := 0; i < len(p) && i < utf8.UTFMax-1; i++ {
		if utf8.RuneStart(p[i]) {
			return p[i:]
		}
	}
	return p
}

// cutLines shortens lines that are too long and makes the text valid UTF-8.
func cutLines(p []byte) string {
	text := strings.ToValidUTF8(string(p), "\uFFFD")
	var out strings.Builder
	out.Grow(len(text))
	for line := range strings.Lines(text) {
		out.WriteString(cutLine(line))
	}
	return out.String()
}

func cutLine(line string) string {
	body := strings.TrimSuffix(line, "\n")
	if len(body) <= MaxLineLength {
		return line
	}
	kept := trimPartEnd([]byte(body[:MaxLineLength-len(lineCut)]))
	return string(kept) + lineCut + line[len(body):]
}
