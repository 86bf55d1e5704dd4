package text_test

import (
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/abide-run/abide/internal/tui/text"
)

func TestCleanNamesWhatATerminalWouldObey(t *testing.T) {
	for in, want := range map[string]string{
		"plain ünïcode 日本":       "plain ünïcode 日本",
		"\x1b[31mred\x1b[0m":     "<U+001B>[31mred<U+001B>[0m",
		"a\r\nb":                 "a\nb",
		"a\rb":                   "a<U+000D>b",
		"a\tb":                   "a   b",
		"\tb":                    "    b",
		"bell\a":                 "bell<U+0007>",
		"c1 \u009b31m":           "c1 <U+009B>31m",
		"rtl \u202egpj.exe":      "rtl <U+202E>gpj.exe",
		"isolate \u2066x\u2069":  "isolate <U+2066>x<U+2069>",
		"tag \U000e0041":         "tag <U+E0041>",
		"bad \xff utf8":          "bad \ufffd utf8",
		"bad \xff and \x1b both": "bad \ufffd and <U+001B> both",
		"two\nlines":             "two\nlines",
	} {
		if got := text.Clean(in); got != want {
			t.Errorf("Clean(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzClean(f *testing.F) {
	f.Add("\x1b]52;c;aGk=\a\u202e\x9b")
	f.Add("a\xe2\x80\r\n\t")
	f.Fuzz(func(t *testing.T, s string) {
		got := text.Clean(s)
		if !utf8.ValidString(got) {
			t.Fatalf("%q is not UTF-8", got)
		}
		for _, r := range got {
			if r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
				t.Fatalf("%q is left in %q", r, got)
			}
		}
		if text.Clean(got) != got {
			t.Fatalf("%q is cleaned again", got)
		}
		for _, l := range text.Lines(got, text.Style{}) {
			joined := ""
			for _, part := range l.Break(7) {
				joined += part[0].Text
				if part.Width() > 7 {
					t.Fatalf("%q is wider than 7", part)
				}
			}
			if want := l[0].Text; want != "" && joined != want {
				t.Fatalf("broken to %q, want %q", joined, want)
			}
			if w := l.Cut(5).Width(); w > 5 {
				t.Fatalf("cut to %d columns", w)
			}
		}
	})
}

func TestWrapBreaksBetweenWordsAndLeavesAddressesWhole(t *testing.T) {
	url := "https://example.com/" + strings.Repeat("x", 40)
	line := text.Line{{Text: "see "}, {Text: "bo"}, {Text: "ld", Style: text.Style{Bold: true}}, {Text: " at " + url + " and more words"}}
	var got []string
	for _, l := range line.Wrap(20, text.Plain("  ")) {
		got = append(got, l.String())
	}
	want := []string{"see bold at " + url, "  and more words"}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("wrapped to %q, want %q", got, want)
	}
}

// TestTextWithoutBlanksIsWrapped: Chinese and Japanese lines end between characters, and not
// where a mark would be apart from what it belongs to. Other words stay whole.
func TestTextWithoutBlanksIsWrapped(t *testing.T) {
	for in, want := range map[string]string{
		"日本語日本語日本語":                                  "日本語日本|  語日本語",
		"これは「長い」文です。はい":                              "これは「長|  い」文で|  す。はい",
		"用abide运行了":                                  "用abide运行|  了",
		"see 中文中文中文":                                 "see 中文中|  文中文",
		"한국어한국어한국어":                                  "한국어한국어한국어",
		"e\u0301e\u0301e\u0301e\u0301e\u0301e\u0301": "e\u0301e\u0301e\u0301e\u0301e\u0301e\u0301",
	} {
		var got []string
		for _, l := range text.Plain(in).Wrap(11, text.Plain("  ")) {
			got = append(got, l.String())
			if w := l.Width(); w > 11 && !strings.Contains(in, "한") {
				t.Errorf("%q has %d columns", l.String(), w)
			}
		}
		if s := strings.Join(got, "|"); s != want {
			t.Errorf("%q is wrapped to %q, want %q", in, s, want)
		}
	}
}

func TestEncodeLeavesOutWhatIsNotWanted(t *testing.T) {
	line := text.Line{{Text: "✓ ", Style: text.Style{Colour: text.Green}}, {Text: "x", Style: text.Style{Bold: true}}}
	for want, e := range map[string]text.Encoder{
		"\x1b[32m✓ \x1b[m\x1b[1mx\x1b[m": {},
		"✓ \x1b[1mx\x1b[m":               {NoColour: true},
		"✓ x":                            {NoStyle: true},
		"+ x":                            {NoStyle: true, ASCII: true},
	} {
		if got := e.Encode(line); got != want {
			t.Errorf("%+v: %q, want %q", e, got, want)
		}
	}
}

// TestALineIsWrittenWithFewCodes: a style is set where it changes, also in a line that was
// wrapped word by word. On a slow line every byte is a part of the wait.
func TestALineIsWrittenWithFewCodes(t *testing.T) {
	bold := text.Style{Bold: true}
	line := text.Line{{Text: "one two ", Style: bold}, {Text: "three", Style: bold}, {Text: " four five six"}}
	var got []string
	for _, l := range line.Wrap(20, text.Plain("  ")) {
		got = append(got, text.Encoder{}.Encode(l))
	}
	want := []string{"\x1b[1mone two three\x1b[m four", "  five six"}
	if !slices.Equal(got, want) {
		t.Errorf("written as %q, want %q", got, want)
	}
	apart := text.Line{{Text: "a", Style: bold}, {Text: "", Style: text.Style{Faint: true}}, {Text: "b", Style: bold}}
	if got, want := (text.Encoder{}).Encode(apart), "\x1b[1mab\x1b[m"; got != want {
		t.Errorf("written as %q, want %q", got, want)
	}
}

// TestASCIIIsAsWide: what stands for a character on a terminal that does not know UTF-8 takes
// as many columns, so that a line that fits the terminal still does.
func TestASCIIIsAsWide(t *testing.T) {
	for _, s := range []string{"plain", "…•▸›✓✗─│┼┆⏎·▌█░–—‘’“”↑↓→←⚑◦∴◇", "e\u0301 日本 \u200bx 👩\u200d👧 ❤\ufe0f", "ünï"} {
		got := text.Encoder{ASCII: true}.Encode(text.Plain(s))
		if text.Width(got) != text.Width(s) || strings.ContainsFunc(got, func(r rune) bool { return r > 0x7e }) {
			t.Errorf("%q (%d columns) is written as %q (%d columns)", s, text.Width(s), got, text.Width(got))
		}
	}
}

func TestParseTakesOnlyOurOwnStyles(t *testing.T) {
	lines := text.Parse("\x1b[1mbold\x1b[0m and \x1b[31mred\x1b[0m\nnext \x1b[2J\x07\n")
	if len(lines) != 2 || lines[0].String() != "bold and red" || !lines[0][0].Style.Bold || lines[0][2].Style.Colour != text.Red {
		t.Errorf("parsed %v", lines)
	}
	for _, s := range lines[1] {
		if strings.ContainsAny(s.Text, "\x1b\a") {
			t.Errorf("%q is left", s.Text)
		}
	}
}
