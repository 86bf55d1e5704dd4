package process_test

import (
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/process"
)

// whole writes pieces to a buffer and returns its output.
func whole(t *testing.T, b *process.HeadTailBuffer, pieces ...string) (string, *process.TruncationInfo) {
	t.Helper()
	for _, p := range pieces {
		if n, err := b.Write([]byte(p)); n != len(p) || err != nil {
			t.Fatalf("Write = %d, %v", n, err)
		}
	}
	return b.Output()
}

// This test uses only the exported API, with the default sizes.
func TestHeadTailBufferFromAnotherPackage(t *testing.T) {
	short := strings.Repeat(strings.Repeat("x", 79)+"\n", process.MaxHeadBytes/80)
	head := short + strings.Repeat("y", process.MaxHeadBytes-len(short))
	long := strings.Repeat("m", process.MaxLineLength+500)
	for name, test := range map[string]struct {
		pieces []string
		want   string // the output, if info is to be nil
		len    int
	}{
		"nothing":             {nil, "", 0},
		"an empty write":      {[]string{""}, "", 0},
		"a line":              {[]string{"hello world\n"}, "hello world\n", 12},
		"byte by byte":        {strings.Split("hello world", ""), "hello world", 11},
		"exactly the head":    {[]string{head}, head, process.MaxHeadBytes},
		"the head in pieces":  {strings.SplitAfter(head, "\n"), head, process.MaxHeadBytes},
		"a line that is long": {[]string{"a\n", long, "\nb\n"}, "a\n" + long[:process.MaxLineLength-len(" ... [truncated]")] + " ... [truncated]\nb\n", len(long) + 5},
	} {
		b := process.NewHeadTailBuffer()
		got, info := whole(t, b, test.pieces...)
		if got != test.want || info != nil || b.Len() != test.len || len(b.Bytes()) != test.len || b.TotalWritten() != test.len {
			t.Errorf("%s: %.80q, %+v, Len %d, %d Bytes, TotalWritten %d", name, got, info, b.Len(), len(b.Bytes()), b.TotalWritten())
		}
		b.Reset()
		if got, info := b.Output(); got != "" || info != nil || b.Len() != 0 || b.TotalWritten() != 0 {
			t.Errorf("%s: after Reset %q, %+v", name, got, info)
		}
	}
	b := process.NewHeadTailBufferSized(10, 10)
	got, info := whole(t, b, strings.Repeat("A", 50), strings.Repeat("Z", 50))
	if want := (process.TruncationInfo{OriginalBytes: 100, RetainedBytes: len(got), OmittedBytes: 80, Strategy: "head_tail"}); info == nil || *info != want {
		t.Errorf("info = %+v, want %+v", info, want)
	}
	if !strings.HasPrefix(got, "AAAAAAAAAA\n") || !strings.HasSuffix(got, "\nZZZZZZZZZZ") || !strings.Contains(got, "... [omitted 80 bytes] ...") {
		t.Errorf("Output = %q", got)
	}
	if process.MaxHeadBytes != 16<<10 || process.MaxTailBytes != 16<<10 || process.MaxLineLength != 2048 {
		t.Error("the sizes are not the usual ones")
	}
}
