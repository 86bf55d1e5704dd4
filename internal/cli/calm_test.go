package cli

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
)

// calmed returns what a terminal is sent for the output of a command, in parts of n bytes.
func calmed(t *testing.T, output string, n int) string {
	t.Helper()
	var b bytes.Buffer
	w := &calmWriter{w: &b}
	for rest := []byte(output); len(rest) > 0; {
		part := rest[:min(n, len(rest))]
		if _, err := w.Write(part); err != nil {
			t.Fatal(err)
		}
		rest = rest[len(part):]
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestOutputOfCommandsLeavesTheTerminalAsItWas(t *testing.T) {
	for output, want := range map[string]string{
		"plain\ttext\r\nmore\b\n":                   "plain\ttext\r\nmore\b\n",
		"ü日本\n":                                     "ü日本\n",
		"\x1b[31mred\n":                             "\x1b[31mred\n\x1b[0m",
		"\x1b[1;38;5;9mred\x1b[m\n":                 "\x1b[1;38;5;9mred\x1b[m\n\x1b[0m",
		"\x1b[38:2::1:2:3mred":                      "\x1b[38:2::1:2:3mred\x1b[0m",
		"a\x1b[?1049hb":                             "ab", // another screen
		"a\x1b[?25l\x1b[?2004h\x1b[?1000hb":         "ab", // modes
		"a\x1b[2J\x1b[3J\x1b[1;1Hb":                 "ab", // the screen and what was scrolled away
		"a\x1b]0;title\x07b":                        "ab", // title
		"a\x1b]0;title\x1b\\b":                      "ab", // title
		"a\x1b]52;c;ZXZpbA==\x07b":                  "ab", // clipboard
		"a\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\": "alink",
		"a\x1bP$q\"p\x1b\\b":                        "ab", // a question that is answered as if it was typed
		"a\x1b_x\x1b\\b\x1b^y\x1b\\c":               "abc",
		"a\x1b[6n\x1b[cb":                           "ab",  // questions
		"a\x1b(0b\x0ec":                             "abc", // other letters
		"a\x1bcb\x1b7\x1b=c":                        "abc", // reset
		"a\x1b[>4;2mb":                              "ab",  // keys
		"a\u009b31mb":                               "a\x1b[31mb\x1b[0m",
		"a\u009d0;title\u009cb":                     "ab",
		"a\x1b]0;never closed\nb":                   "a\nb",
		"a\x1b[12\nb":                               "a\nb",
		"a\x1b]0;x\x1b[31mb":                        "a\x1b[31mb\x1b[0m",
		"a\x07b\x00c\x7fd":                          "abcd",
		"a\x9b31mb\xff":                             "a\ufffd31mb\ufffd",
		"a\u202eb":                                  "a\ufffdb",
		"half \xe6\x97":                             "half \ufffd",
		"\x1b[" + strings.Repeat("1;", 99) + "mb":   "b",
	} {
		for _, n := range []int{1, 2, 3, len(output)} {
			if got := calmed(t, output, n); got != want {
				t.Errorf("%q in parts of %d: %q, want %q", output, n, got, want)
			}
		}
	}
}

var colors = regexp.MustCompile("\x1b\\[[0-9;:]*m")

func FuzzCalmWriter(f *testing.F) {
	f.Add("a\x1b[31mb\x1b]0;x\x07c\u009b1mé", 3)
	f.Add("\x1bP\x1b\\\x1b(0\x1b[?1049h", 1)
	f.Fuzz(func(t *testing.T, output string, n int) {
		if n <= 0 || n > 1000 {
			n = 1
		}
		got := calmed(t, output, n)
		for _, r := range colors.ReplaceAllString(got, "") {
			if r < 0x20 && !strings.ContainsRune("\n\t\r\b", r) || r >= 0x7f && r < 0xa0 {
				t.Fatalf("%q leaves %q, with %q", output, got, r)
			}
		}
		if strings.Contains(got, "\x1b") && !strings.HasSuffix(got, "\x1b[0m") {
			t.Fatalf("%q leaves %q: colours stay", output, got)
		}
		if whole := calmed(t, output, len(output)+1); whole != got {
			t.Fatalf("%q depends on its parts: %q, %q", output, got, whole)
		}
	})
}
