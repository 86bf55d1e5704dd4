package jsonrpc

import (
	"bytes"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
)

func frame(body string) string { return string(AppendFrame(nil, []byte(body))) }

func TestReaderSplitsAStreamIntoBodies(t *testing.T) {
	big := strings.Repeat("x", 300<<10)
	tests := map[string]struct {
		stream string
		want   []string
	}{
		"one":                    {frame(`{}`), []string{`{}`}},
		"many":                   {frame("a") + frame("bb") + frame("ccc"), []string{"a", "bb", "ccc"}},
		"bigger than any buffer": {frame(big) + frame("b"), []string{big, "b"}},
		"names in any case":      {"cOnTeNt-LENGTH: 1\r\n\r\na", []string{"a"}},
		"no space":               {"Content-Length:1\r\n\r\na", []string{"a"}},
		"other headers":          {"Content-Type: x; charset=utf-8\r\nContent-Length: 1\r\nX:\r\n\r\na", []string{"a"}},
		"bare newlines":          {"Content-Length: 1\n\na", []string{"a"}},
		"nothing":                {"", nil},
	}
	for name, test := range tests {
		for how, in := range map[string]io.Reader{
			"at once":      strings.NewReader(test.stream),
			"byte by byte": iotest.OneByteReader(strings.NewReader(test.stream)),
		} {
			t.Run(name+"/"+how, func(t *testing.T) {
				r := NewReader(in, 0)
				for i, want := range test.want {
					got, err := r.Next(nil)
					if err != nil || string(got) != want {
						t.Fatalf("frame %d: %d bytes, %v; want %d", i, len(got), err, len(want))
					}
				}
				if _, err := r.Next(nil); err != io.EOF {
					t.Errorf("after the last frame: %v, want io.EOF", err)
				}
			})
		}
	}
}

func TestReaderSaysWhatIsWrong(t *testing.T) {
	tests := map[string]struct{ stream, want string }{
		"zero":             {"Content-Length: 0\r\n\r\n", `Content-Length "0" is not a positive number`},
		"negative":         {"Content-Length: -5\r\n\r\nhello", `Content-Length "-5" is not`},
		"garbage":          {"Content-Length: ten\r\n\r\n", `Content-Length "ten" is not`},
		"empty":            {"Content-Length:\r\n\r\n", `Content-Length "" is not`},
		"overflow":         {"Content-Length: 99999999999999999999999\r\n\r\n", "more than the limit of 1000"},
		"over the limit":   {"Content-Length: 1001\r\n\r\n", "1001 bytes are more than the limit of 1000"},
		"twice":            {"Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello", "given twice"},
		"absent":           {"X: y\r\n\r\n", "no Content-Length"},
		"another protocol": {"GET / HTTP/1.1\r\n\r\n", `"GET / HTTP/1.1" is not a header`},
		"endless line":     {strings.Repeat("a", 1<<20), "longer than 8192 bytes"},
		"endless lines":    {strings.Repeat("a: b\r\n", 1<<18), "longer than 8192 bytes"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := NewReader(strings.NewReader(test.stream), 1000).Next(nil)
			if _, ok := errors.AsType[*FrameError](err); !ok || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want a FrameError with %q", err, test.want)
			}
		})
	}
}

func TestReaderReportsAnEndInsideAFrame(t *testing.T) {
	whole := "Content-Length: 5\r\n\r\nhello"
	for cut := 1; cut < len(whole); cut++ {
		_, err := NewReader(strings.NewReader(whole[:cut]), 0).Next(nil)
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("cut after %q: %v, want io.ErrUnexpectedEOF", whole[:cut], err)
		}
	}
}

func TestReaderDoesNotBelieveAnAnnouncedLength(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := NewReader(strings.NewReader("Content-Length: 134217728\r\n\r\nlittle"), 0).Next(nil)
	runtime.ReadMemStats(&after)
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("error %v, want io.ErrUnexpectedEOF", err)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > 1<<20 {
		t.Errorf("%d bytes were allocated for a body of 6", used)
	}
}

func TestReaderUsesTheGivenBuffer(t *testing.T) {
	buf := make([]byte, 0, 10)
	got, err := NewReader(strings.NewReader(frame("hello")), 0).Next(buf)
	if err != nil || &got[0] != &buf[:1][0] {
		t.Errorf("the body is not in the buffer (%v)", err)
	}
}

func FuzzReader(f *testing.F) {
	f.Add([]byte(frame("{}") + frame("x")))
	f.Add([]byte("Content-Length: 3\r\nX: y\r\n\r\nab"))
	f.Add([]byte("content-length:99999999999999999999\n\n"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		whole := frames(NewReader(bytes.NewReader(stream), 1<<16))
		parts := frames(NewReader(iotest.OneByteReader(bytes.NewReader(stream)), 1<<16))
		if len(whole) != len(parts) {
			t.Fatalf("%d frames at once, %d byte by byte", len(whole), len(parts))
		}
		var again []byte
		for i := range whole {
			if !bytes.Equal(whole[i], parts[i]) {
				t.Fatalf("frame %d differs: %q and %q", i, whole[i], parts[i])
			}
			again = AppendFrame(again, whole[i])
		}
		if n := len(frames(NewReader(bytes.NewReader(again), 1<<16))); n != len(whole) {
			t.Fatalf("%d frames written, %d read", len(whole), n)
		}
	})
}

// frames reads until the stream ends or breaks.
func frames(r *Reader) (all [][]byte) {
	for {
		body, err := r.Next(nil)
		if err != nil {
			return all
		}
		all = append(all, body)
	}
}
