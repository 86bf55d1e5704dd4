package search

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	_ "github.com/abide-run/abide/internal/test/seedtest"
)

// naive is the model: it matches every line with the standard library.
func naive(re *regexp.Regexp, data string, before, after int) (shown []string, count int64) {
	lines := strings.SplitAfter(data, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	match := make([]bool, len(lines))
	for i, line := range lines {
		if match[i] = re.MatchString(strings.TrimSuffix(line, "\n")); match[i] {
			count++
		}
	}
	for i, line := range lines {
		if slices.Contains(match[max(0, i-after):min(len(lines), i+before+1)], true) {
			shown = append(shown, fmt.Sprintf("%d %t %s", i+1, match[i], strings.TrimSuffix(line, "\n")))
		}
	}
	return shown, count
}

func found(t interface{ Fatal(...any) }, s *Searcher, r io.Reader, before, after int) (shown []string, report Report) {
	report, err := s.File(r, Query{Before: before, After: after, Show: func(l Line) bool {
		if l.More && !s.multiline {
			t.Fatal("a line goes on")
		}
		shown = append(shown, fmt.Sprintf("%d %t %s", l.Number, l.Match, l.Text))
		return true
	}})
	if err != nil {
		t.Fatal(err)
	}
	return shown, report
}

var pieces = []string{
	"a", "b", "a", "b", "k", "s", "ab", "é", "K", ".", ".", "a.b", "a[^a]b", "^.$", "^..$", "\\w", "\\d", "\\s", "[^a]", "[a-c]", "[é-ü]", "\\pL", "^", "$", "\\b", "\\B", "(a|b)", "(?:ab|a)", "(?i:k)", "(?i:S)", "\\A", "\\z",
	"*", "+", "?", "{2}", "{0,2}", "|", "x1", "\\.", " ", "_", ".*", ".+?", "(?m:^)", "(?m:$)", "(?s:.)",
}

var letters = []string{"a", "b", "a", "b", "aéb", "\na\xffb", "\né\n", "c", "k", "K", "S", "s", "\u212a", "ſ", "é", "\xff", "\xc3", "1", " ", "_", ".", "\n", "\n", "\r\n", "x1", "ab"}

// TestFindsTheLinesThatTheStandardLibraryFinds uses random expressions and texts.
func TestFindsTheLinesThatTheStandardLibraryFinds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		expr := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 1, 6).Draw(t, "expr"), "")
		o := Options{IgnoreCase: rapid.Bool().Draw(t, "-i")}
		p, err := Compile(expr, o)
		if err != nil {
			return
		}
		s := p.Searcher()
		s.window = rapid.IntRange(1, 40).Draw(t, "window")
		re := regexp.MustCompile(prefix(o) + "(?:" + expr + ")")
		for range 5 {
			data := strings.Join(rapid.SliceOfN(rapid.SampledFrom(letters), 0, 40).Draw(t, "data"), "")
			before, after := rapid.IntRange(0, 3).Draw(t, "before"), rapid.IntRange(0, 3).Draw(t, "after")
			want, count := naive(re, data, before, after)
			got, report := found(t, s, iotest.HalfReader(strings.NewReader(data)), before, after)
			if diff := cmp.Diff(want, got); diff != "" || report.Count != count {
				t.Fatalf("%q in %q: %d lines, want %d\n%s", expr, data, report.Count, count, diff)
			}
		}
	})
}

func TestAFullTableIsEmptied(t *testing.T) {
	const expr = `[ab]*a[ab]{13}c`
	p, err := Compile(expr, Options{})
	if err != nil {
		t.Fatal(err)
	}
	p.literal = nil
	rng, data := uint32(1), make([]byte, 200_000)
	for i := range data {
		rng = rng*1664525 + 1013904223
		data[i] = "aaaaabbbbbbbbc\n"[rng>>24%15]
	}
	want, count := naive(regexp.MustCompile(expr), string(data), 0, 0)
	s := p.Searcher()
	got, report := found(t, s, bytes.NewReader(data), 0, 0)
	if report.Count != count || !slices.Equal(want, got) || count == 0 {
		t.Errorf("%d lines, want %d", report.Count, count)
	}
	if len(s.auto.states) > maxStates+1 {
		t.Errorf("%d states", len(s.auto.states))
	}
}

func TestPatternsCrossLinesWithMultiline(t *testing.T) {
	const data = "one;\nfoo\nbar\n\none; foo\none;\nfoo"
	for _, test := range []struct {
		expr  string
		want  string
		count int64
	}{
		{`;\nfoo`, "1 true one;|2 true foo|6 true one;|7 true foo", 2},
		{`one.*foo`, "5 true one; foo", 1},
		{`^bar$\n\n`, "3 true bar|4 true ", 1},
		{`nothing\nhere`, "", 0},
		{`(?s)one.*bar`, "1 true one;|2 true foo|3 true bar", 1},
	} {
		p, err := Compile(test.expr, Options{Multiline: true})
		if err != nil {
			t.Fatal(err)
		}
		got, report := found(t, p.Searcher(), strings.NewReader(data), 0, 0)
		if strings.Join(got, "|") != test.want || report.Count != test.count {
			t.Errorf("%q: %q, %d", test.expr, got, report.Count)
		}
		if _, err := Compile(test.expr, Options{}); strings.Contains(test.expr, `\n`) != (err == ErrNewline) {
			t.Errorf("%q without it: %v", test.expr, err)
		}
	}
}

func TestEncodings(t *testing.T) {
	for name, data := range map[string]string{
		"UTF-8":            "x\nfür\ny\n",
		"UTF-8, marked":    "\xef\xbb\xbfx\nfür\ny\n",
		"UTF-16":           "\xff\xfex\x00\n\x00f\x00\xfc\x00r\x00\n\x00y\x00\n\x00",
		"UTF-16, reversed": "\xfe\xff\x00x\x00\n\x00f\x00\xfc\x00r\x00\n\x00y\x00\n",
	} {
		for _, expr := range []string{"^für$", "f.r", "FÜR", "^x"} {
			p, err := Compile(expr, Options{IgnoreCase: true})
			if err != nil {
				t.Fatal(err)
			}
			want := "2 true für"
			if expr == "^x" {
				want = "1 true x"
			}
			if got, _ := found(t, p.Searcher(), strings.NewReader(data), 0, 0); !slices.Equal(got, []string{want}) {
				t.Errorf("%s, %q: %q", name, expr, got)
			}
		}
	}
}

func TestBinaryFilesAreNotSearched(t *testing.T) {
	p, err := Compile("needle", Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, data := range []string{"needle\x00", "\x00needle", "needle\n" + strings.Repeat("x\n", windowSize) + "\x00"} {
		if report, err := p.Searcher().File(strings.NewReader(data), Query{}); err != nil || !report.Binary || report.Count != 0 {
			t.Errorf("%.20q: %+v, %v", data, report, err)
		}
	}
}

// endless is a reader that repeats a line for ever.
type endless struct{ line []byte }

func (e endless) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		n += copy(p[n:], e.line)
	}
	return n, nil
}

func TestHugeFilesAndLinesTakeLittleMemory(t *testing.T) {
	p, err := Compile("xyx", Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, line := range map[string]string{"lines": "xy\n", "one line": "xy"} {
		s := p.Searcher()
		report, err := s.File(io.LimitReader(endless{[]byte(line)}, 100<<20), Query{Before: 3, Show: func(Line) bool { return true }})
		if err != nil || (report.Count > 0) != (name == "one line") {
			t.Errorf("%s: %+v, %v", name, report, err)
		}
		if cap(s.buf) > 4*maxLine {
			t.Errorf("%s: the buffer has %d bytes", name, cap(s.buf))
		}
	}
	across, err := Compile(`x\ny`, Options{Multiline: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := across.Searcher().File(io.LimitReader(endless{[]byte("xy\n")}, 100<<20), Query{}); err != ErrTooLarge {
		t.Errorf("across lines: %v", err)
	}
}

func TestASearchForTheFirstMatchStopsThere(t *testing.T) {
	p, err := Compile("a", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if report, err := p.Searcher().File(endless{[]byte("a\n")}, Query{First: true}); err != nil || report.Count != 1 {
		t.Errorf("%+v, %v", report, err)
	}
}

func TestAFailingReadIsReported(t *testing.T) {
	p, err := Compile("a", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Searcher().File(iotest.ErrReader(io.ErrNoProgress), Query{}); err != io.ErrNoProgress {
		t.Error(err)
	}
}

func FuzzExpressions(f *testing.F) {
	f.Add(`(?i)\bfoo|[^é]+$`, "foo\nbar é\n")
	f.Add(`^$`, "\n\n")
	f.Add(`\B`, "aéb\n")
	f.Add(`^.{2}$`, "é\na\xff\n")
	f.Add(`a[^b]c$`, "aéc\na世c\n")
	f.Fuzz(func(t *testing.T, expr, data string) {
		if len(expr) > 40 || len(data) > 1000 || strings.Contains(data, "\x00") || strings.HasPrefix(data, "\xff\xfe") || strings.HasPrefix(data, "\xfe\xff") || strings.HasPrefix(data, "\xef\xbb\xbf") {
			return
		}
		p, err := Compile(expr, Options{})
		if err != nil {
			return
		}
		want, count := naive(p.exact, data, 0, 0)
		got, report := found(t, p.Searcher(), strings.NewReader(data), 0, 0)
		if report.Count != count || !slices.Equal(want, got) {
			t.Errorf("%q in %q: %q, want %q", expr, data, got, want)
		}
	})
}
