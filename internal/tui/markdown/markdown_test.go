package markdown_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode"

	"github.com/abide-run/abide/internal/tui/markdown"
	"github.com/abide-run/abide/internal/tui/text"
)

// shown returns lines as text.
func shown(lines []text.Line) string {
	var out []string
	for _, l := range lines {
		out = append(out, l.String())
	}
	return strings.Join(out, "\n")
}

func TestMarkdownLooksLikeThis(t *testing.T) {
	long := "https://example.com/" + strings.Repeat("path/", 12)
	for name, c := range map[string]struct{ in, want string }{
		"heading":    {"# Title\ntext", "Title\n\ntext"},
		"paragraph":  {"one two three four five six seven", "one two three four five\nsix seven"},
		"soft break": {"one\ntwo", "one\ntwo"},
		"hard break": {"one  \ntwo", "one\ntwo"},
		"list":       {"- one\n- two\n  - deep\n- three", "• one\n• two\n  • deep\n• three"},
		"numbers":    {"3. three\n4. four", "3. three\n4. four"},
		"loose list": {"- one\n\n- two", "• one\n\n• two"},
		"continued":  {"- one\n\n  more\n- two", "• one\n\n  more\n\n• two"},
		"wrapped":    {"- one two three four five six seven", "• one two three four\n  five six seven"},
		"quote":      {"> said\n> so", "│ said\n│ so"},
		"code":       {"```go\nfunc f() {\n}\n```", "func f() {\n}"},
		"long code":  {"```\n" + strings.Repeat("x", 60) + "\n```", strings.Repeat("x", 60)},
		"open code":  {"```\nno end", "no end"},
		"address":    {"see " + long + " there", "see " + long + "\nthere"},
		"link":       {"[here](https://x.example)", "here (https://x.example)"},
		"same link":  {"<https://x.example>", "https://x.example"},
		"html":       {"<b>no</b> <script>alert(1)</script>", "<b>no</b> <script>alert(1)</script>"},
		"html block": {"<div>\n<p>x\n</div>", "<div>\n<p>x\n</div>"},
		"table":      {"| a | b |\n|--|--|\n| one | 2 |", "a   │ b\n────┼──\none │ 2"},
		"no table":   {"a | b\nc", "a | b\nc"},
		"odd table":  {"a|b\n-|-\n1|2|3\n`x`", "a │ b\n──┼──\n1 │ 2\nx │"},
		"tasks":      {"- [x] done\n- [ ] not", "• [x] done\n• [ ] not"},
		"entity":     {"a &lt; b &#27;[2J", "a < b <U+001B>[2J"},
		"escape":     {`\*no\*`, "*no*"},
		"rule":       {"a\n\n---\n\nb", "a\n\n─────\n\nb"},
		"nothing":    {" \n\n", ""},
	} {
		if got := shown(markdown.Render(text.Clean(c.in), 24)); got != c.want {
			t.Errorf("%s:\n%s\nwant:\n%s", name, got, c.want)
		}
	}
}

// A text that arrives in pieces looks at its end as if it had come at once.
func TestADocumentThatGrowsEndsTheSame(t *testing.T) {
	source := "# One\n\ntext *more*\n\n- a\n\n- b\n\n  b2\n\n```go\nx := 1\n\ny := 2\n```\n\nend\n\n    indented\n\n1. x\n2. y\n\n> q\n\n~~~\n```\n\n~~~\nlast"
	want := shown(markdown.Render(source, 40))
	for _, size := range []int{1, 2, 3, 7} {
		var d markdown.Document
		for at := 0; at < len(source); at += size {
			d.Append(source[at:min(at+size, len(source))])
			d.Lines(40)
		}
		if got := shown(d.Lines(40)); got != want {
			t.Errorf("in pieces of %d:\n%s\nwant:\n%s", size, got, want)
		}
		if got := shown(d.Lines(20)); got != shown(markdown.Render(source, 20)) {
			t.Errorf("another width is not drawn anew:\n%s", got)
		}
	}
}

// What a model writes takes little time, whatever it is: what would take long to parse is
// shown as it is written.
func TestHostileMarkdownIsBounded(t *testing.T) {
	if in := strings.Repeat("*a_", 600); shown(markdown.Render(in, 0)) != in {
		t.Fatal("a text with too many signs is parsed")
	}
	for name, in := range map[string]string{
		"quotes":   strings.Repeat(">", 20_000) + "x",
		"quotes 2": strings.Repeat("> ", 20_000) + "x",
		"lists":    strings.Repeat("- ", 20_000) + "x",
		"numbers":  strings.Repeat("1. ", 20_000) + "x",
		"brackets": strings.Repeat("[", 50_000),
		"images":   strings.Repeat("![", 50_000),
		"emphasis": strings.Repeat("*a_", 50_000),
		"ticks":    strings.Repeat("`", 50_000),
		"indent":   strings.Repeat(strings.Repeat(" ", 1000)+"- x\n", 50),
		"html":     strings.Repeat("<a ", 50_000),
		"lines":    strings.Repeat("\n", 100_000),
	} {
		lines := markdown.Render(in, 80)
		if n := len(lines); n > 100_000 {
			t.Errorf("%s: %d lines", name, n)
		}
	}
}

func FuzzRender(f *testing.F) {
	for _, s := range []string{"# a\n\n```go\nx\n```\n- b", "| a |\n|--|\n| b |", "> 1. x\n\n<b>&#27;</b>", "[a](b) ![c](d)"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if len(s) > 4096 {
			return
		}
		for _, l := range markdown.Render(text.Clean(s), 20) {
			for _, span := range l {
				if strings.ContainsFunc(span.Text, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }) {
					t.Fatalf("%q is not clean", span.Text)
				}
			}
		}
	})
}

func TestCodeKeepsEveryCharacter(t *testing.T) {
	source := "package x // c\n/* a\nb */ var s = \"q\\\"\" + `raw\n` + 'c'\nif x == 0x1f { return nil }"
	for _, name := range []string{"go", "py", "ts", "sh", "sql", "unknown", "diff", "rust"} {
		if got := shown(markdown.Code(source, name)); got != source {
			t.Errorf("%s: %q", name, got)
		}
	}
	lines := markdown.Code(source, "go")
	if lines[0][0].Text != "package" || lines[0][0].Style.Colour != text.Magenta || !lines[2][0].Style.Faint {
		t.Errorf("not highlighted: %v", lines)
	}
}

func TestDiffMarksTheWordsThatChanged(t *testing.T) {
	lines := markdown.Diff("\ndiff --git a/x b/x\nindex 0000000..0000000 100644\n--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n same\n-let total = count + one\n+let total = count + two_more\n--- not a head\n")
	if got := shown(lines); got != "@@ -1,3 +1,3 @@\n same\n-let total = count + one\n+let total = count + two_more\n--- not a head" {
		t.Fatalf("shown:\n%s", got)
	}
	marked := func(l text.Line) (s string) {
		for _, span := range l {
			if span.Style.Reverse {
				s += span.Text
			}
		}
		return s
	}
	if a, b := marked(lines[2]), marked(lines[3]); a != "one" || b != "two_more" {
		t.Errorf("marked %q and %q", a, b)
	}
}

// A line of a file is shown, although it looks like the head of a file.
func TestDiffShowsAllLinesOfAHunk(t *testing.T) {
	const hunk = "@@ -1,2 +1,2 @@\n--- all rows\n+++ because\n same"
	if got := shown(markdown.Diff("diff --git a/x b/x\n--- a/x\n+++ b/x\n" + hunk + "\n--- a/y\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n")); got != hunk+"\n@@ -1 +1 @@\n-a\n+b" {
		t.Errorf("shown:\n%s", got)
	}
}

// The end of a long block is drawn as the whole is, and lines stay where they are while it grows.
func TestTheTailOfALongBlock(t *testing.T) {
	last := func(lines []text.Line, n int) string {
		var shown []string
		for _, l := range lines[max(0, len(lines)-n):] {
			shown = append(shown, l.String())
		}
		return strings.Join(shown, "\n")
	}
	var code, words markdown.Document
	code.Append("Look:\n\n```go\n")
	for i := range 5000 {
		code.Append(fmt.Sprintf("a := *b* // %d\n", i))
		words.Append(fmt.Sprintf("%d; ", i))
	}
	if whole, tail := last(code.Lines(80), 40), last(code.Tail(80), 40); whole != tail {
		t.Errorf("code is drawn as\n%s\nwant\n%s", tail, whole)
	}
	before := strings.Split(last(words.Tail(80), 10), "\n")
	if len(words.Tail(80)) > 300 || !strings.HasSuffix(before[9], "4999;") {
		t.Errorf("%d lines, the last is %q", len(words.Tail(80)), before[9])
	}
	words.Append(strings.Repeat("more ", 16))
	if after := strings.Split(last(words.Tail(80), 10), "\n"); after[7] != before[8] && after[8] != before[8] {
		t.Errorf("lines have moved:\n%s\nbefore:\n%s", strings.Join(after, "\n"), strings.Join(before, "\n"))
	}
	unbroken := markdown.Document{}
	unbroken.Append(strings.Repeat("ä", maxUnbroken))
	if got := last(unbroken.Tail(80), 1); strings.Trim(got, "ä") != "" {
		t.Errorf("%q", got)
	}
}

// maxUnbroken is the length of a word that is longer than what is drawn.
const maxUnbroken = 50_001
