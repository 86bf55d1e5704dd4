package process

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	_ "github.com/abide-run/abide/internal/test/seedtest"
)

func TestHeadTailBufferKeepsBothEnds(t *testing.T) {
	tests := []struct {
		name       string
		head, tail int
		writes     []string
		want       string
		info       *TruncationInfo
		len        int
	}{
		{"nothing", 10, 10, nil, "", nil, 0},
		{"an empty write", 10, 10, []string{""}, "", nil, 0},
		{"little", 10, 10, []string{"hello"}, "hello", nil, 5},
		{"exactly the head", 10, 10, []string{"0123456789"}, "0123456789", nil, 10},
		{"one more than the head", 10, 10, []string{"0123456789a"}, "0123456789\na", &TruncationInfo{11, 12, 0, headTail}, 11},
		{"head and tail", 10, 10, []string{"0123456789abcdefghij"}, "0123456789\nabcdefghij", &TruncationInfo{20, 21, 0, headTail}, 20},
		{"one too many", 10, 10, []string{"0123456789abcdefghijk"}, "0123456789\n\n... [omitted 1 bytes] ...\n\nbcdefghijk", &TruncationInfo{21, 49, 1, headTail}, 20},
		{"80 omitted", 10, 10, []string{strings.Repeat("A", 50), strings.Repeat("Z", 50)}, "AAAAAAAAAA\n\n... [omitted 80 bytes] ...\n\nZZZZZZZZZZ", &TruncationInfo{100, 50, 80, headTail}, 20},
		{"round the ring", 5, 10, []string{"HEADD", "0123456789", "abcdefghij", "ABCDE"}, "HEADD\n\n... [omitted 15 bytes] ...\n\nfghijABCDE", &TruncationInfo{30, 45, 15, headTail}, 15},
		{"no tail at all", 5, 0, []string{"0123456789"}, "01234", nil, 5},
		{"no head at all", 0, 3, []string{"012"}, "\n012", &TruncationInfo{3, 4, 0, headTail}, 3},
		{"sizes below zero", -1, -1, []string{"012"}, "", nil, 0},
		{"a character on the border", 3, 3, []string{"ab", "é", "cd"}, "ab\nécd", &TruncationInfo{6, 7, 0, headTail}, 6},
		{"a character on each cut", 3, 2, []string{"abé..................é!"}, "ab\n\n... [omitted 20 bytes] ...\n\n!", &TruncationInfo{25, 33, 20, headTail}, 5},
		{"no text", 4, 4, []string{"a\xff\x00b"}, "a\uFFFD\x00b", nil, 4},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := NewHeadTailBufferSized(tt.head, tt.tail)
			total := 0
			for _, w := range tt.writes {
				if n, err := b.Write([]byte(w)); n != len(w) || err != nil {
					t.Fatalf("Write = %d, %v", n, err)
				}
				total += len(w)
			}
			got, info := b.Output()
			if got != tt.want {
				t.Errorf("Output = %q, want %q", got, tt.want)
			}
			if (info == nil) != (tt.info == nil) || info != nil && *info != *tt.info {
				t.Errorf("info = %+v, want %+v", info, tt.info)
			}
			if b.Len() != tt.len || b.TotalWritten() != total || len(b.Bytes()) != tt.len {
				t.Errorf("Len = %d, TotalWritten = %d, %d Bytes", b.Len(), b.TotalWritten(), len(b.Bytes()))
			}
		})
	}
}

func TestHeadTailBufferCutsLongLines(t *testing.T) {
	b := NewHeadTailBuffer()
	long := strings.Repeat("L", MaxLineLength+100)
	fmt.Fprintf(b, "short\n%s\nshort\n%s", long, strings.Repeat("é", MaxLineLength))
	text, info := b.Output()
	lines := strings.Split(text, "\n")
	if info != nil || len(lines) != 4 || lines[0] != "short" || lines[2] != "short" {
		t.Fatalf("%d lines, %v: %.80q", len(lines), info, text)
	}
	if len(lines[1]) != MaxLineLength || !strings.HasSuffix(lines[1], "L ... [truncated]") {
		t.Errorf("the long line has %d bytes and ends %q", len(lines[1]), lines[1][len(lines[1])-20:])
	}
	if len(lines[3]) > MaxLineLength || !strings.HasSuffix(lines[3], "é ... [truncated]") || !utf8.ValidString(text) {
		t.Errorf("the line of two-byte characters has %d bytes", len(lines[3]))
	}

	b = NewHeadTailBufferSized(20, 5000)
	fmt.Fprintf(b, "head data goes here\n%s\n", long)
	if text, info := b.Output(); info == nil || !strings.Contains(text, "... [truncated]\n") {
		t.Errorf("a long line in the tail is not cut: %v", info)
	}
}

func TestHeadTailBufferStaysSmall(t *testing.T) {
	b := NewHeadTailBuffer()
	chunk := []byte(strings.Repeat("x", 4096) + "\n")
	for b.TotalWritten() < 5<<20 {
		b.Write(chunk)
	}
	if b.Len() > MaxHeadBytes+MaxTailBytes || cap(b.head) > 2*MaxHeadBytes {
		t.Errorf("%d bytes are kept, and memory for %d", b.Len(), cap(b.head)+cap(b.tail))
	}
	if _, info := b.Output(); info == nil || info.OriginalBytes != b.TotalWritten() || info.OmittedBytes != b.TotalWritten()-b.Len() {
		t.Errorf("info = %+v of %d bytes", info, b.TotalWritten())
	}
}

func TestHeadTailBufferGivesCopies(t *testing.T) {
	b := NewHeadTailBufferSized(4, 4)
	b.Write([]byte("original"))
	b.Bytes()[0] = 'X'
	b.Bytes()[5] = 'X'
	if got := string(b.Bytes()); got != "original" {
		t.Errorf("Bytes = %q", got)
	}
	b.Reset()
	if text, info := b.Output(); text != "" || info != nil || b.Len() != 0 || b.TotalWritten() != 0 || len(b.Bytes()) != 0 {
		t.Errorf("after Reset: %q, %v", text, info)
	}
	b.Write([]byte("again"))
	if got := string(b.Bytes()); got != "again" {
		t.Errorf("after Reset and Write: %q", got)
	}
}

func TestHeadTailBufferCanBeUsedByMany(t *testing.T) {
	b := NewHeadTailBufferSized(100, 1000)
	const writers, writes = 10, 500
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for range writes {
				fmt.Fprintf(b, "writer %d\n", w)
				b.Output() // readers meet a ring that is not full, and one that turns
				b.Bytes()
				b.Len()
			}
		})
	}
	all.Wait()
	if want := writers * writes * len("writer 0\n"); b.TotalWritten() != want {
		t.Errorf("TotalWritten = %d, want %d", b.TotalWritten(), want)
	}
}

func TestTruncationInfoHasTheseNames(t *testing.T) {
	got, err := json.Marshal(TruncationInfo{1, 2, 3, headTail})
	if want := `{"original_bytes":1,"retained_bytes":2,"omitted_bytes":3,"strategy":"head_tail"}`; err != nil || string(got) != want {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
}

func TestHeadTailBufferIsAsIfEverythingHadBeenRemembered(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		head, tail := rapid.IntRange(0, 40).Draw(t, "head"), rapid.IntRange(0, 40).Draw(t, "tail")
		b := NewHeadTailBufferSized(head, tail)
		var all []byte
		for range rapid.IntRange(0, 20).Draw(t, "writes") {
			p := []byte(rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 60), func(b []byte) string { return string(b) })).Draw(t, "p"))
			b.Write(p)
			all = append(all, p...)
		}
		first := all[:min(head, len(all))]
		rest := all[len(first):]
		last := rest[max(0, len(rest)-tail):]
		if want := append(bytes.Clone(first), last...); !bytes.Equal(b.Bytes(), want) || b.Len() != len(want) || b.TotalWritten() != len(all) {
			t.Fatalf("Bytes = %q, want %q", b.Bytes(), want)
		}
		text, info := b.Output()
		if !utf8.ValidString(text) {
			t.Fatalf("%q is no text", text)
		}
		if (info != nil) != (len(last) > 0) {
			t.Fatalf("info = %v with %d bytes in the tail", info, len(last))
		}
		if info == nil {
			return
		}
		omitted := len(all) - len(first) - len(last)
		if *info != (TruncationInfo{len(all), len(text), omitted, headTail}) {
			t.Fatalf("info = %+v, want %d omitted of %d", info, omitted, len(all))
		}
		if omitted > 0 != strings.Contains(text, fmt.Sprintf("\n\n... [omitted %d bytes] ...\n\n", omitted)) {
			t.Fatalf("%d are omitted, and the text is %q", omitted, text)
		}
		if utf8.Valid(all) && omitted == 0 && strings.Replace(text, "\n", "", 1) != strings.Replace(string(all), "\n", "", 1) && strings.Count(text, "\n") != strings.Count(string(all), "\n")+1 {
			t.Fatalf("%q of %q", text, all)
		}
	})
}
