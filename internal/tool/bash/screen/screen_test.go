package screen

import (
	"runtime"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// draw returns the screen after some output.
func draw(t testing.TB, size Size, output ...string) Screen {
	t.Helper()
	term := New(size)
	for _, part := range output {
		if err := term.Write([]byte(part)); err != nil {
			t.Fatal(err)
		}
	}
	s, err := term.Screen()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestAScreenIsDrawn(t *testing.T) {
	for name, tt := range map[string]struct {
		output string
		want   string // rows, joined with |
		full   bool
	}{
		"lines":                        {"one\r\ntwo\r\n", "one|two||", false},
		"lines that scroll":            {"1\r\n2\r\n3\r\n4\r\n5\r\n", "3|4|5|", false},
		"colours":                      {"\x1b[1;31mred\x1b[0m\r\n", "red|||", false},
		"a line that is overwritten":   {"10%\r20%\r30%", "30%|||", false},
		"a line editor":                {"\x1b[?2004h$ lx\b\x1b[Ks\r\n", "$ ls|||", false},
		"lines that move up":           {"a\r\nb\r\n\x1b[2Ac\r\n", "c|b||", false},
		"a place":                      {"\x1b[2;3Hhere", "|  here||", true},
		"clear, then few lines":        {"x\r\n\x1b[H\x1b[2Jone\r\n", "one|||", true},
		"clear, then many lines":       {"x\r\n\x1b[H\x1b[2J1\r\n2\r\n3\r\n4\r\n5\r\n", "3|4|5|", false},
		"the alternate screen":         {"main\r\n\x1b[?1049h\x1b[Halt", "alt|||", true},
		"the alternate screen is left": {"main\r\n\x1b[?1049h\x1b[Halt\x1b[?1049l", "main|||", false},
		"wide characters":              {"\x1b[H日本x", "日本x|||", true},
		"combined characters":          {"\x1b[He\u0301a", "e\u0301a|||", true},
		"lines and corners":            {"\x1b[H\x1b(0lqk\x1b(B", "┌─┐|||", true},
		"a tab":                        {"\x1b[Ha\tb", "a       b|||", true},
		"no UTF-8":                     {"\x1b[Ha\xff\xc3b", "a\uFFFD\uFFFDb|||", true},
	} {
		t.Run(name, func(t *testing.T) {
			s := draw(t, Size{4, 20}, tt.output)
			if got := strings.Join(s.Lines, "|"); tt.want != "" && got != tt.want || s.Full != tt.full {
				t.Errorf("%q, full: %v; want %q, %v", got, s.Full, tt.want, tt.full)
			}
			checkPlain(t, s)
		})
	}
}

// checkPlain checks that a screen has its size, and is plain text.
func checkPlain(t testing.TB, s Screen) {
	t.Helper()
	if len(s.Lines) != s.Rows || s.Row < 1 || s.Row > s.Rows || s.Col < 1 || s.Col > s.Cols+1 {
		t.Errorf("%d rows; the cursor is at %d, %d of %d, %d", len(s.Lines), s.Row, s.Col, s.Rows, s.Cols)
	}
	for _, line := range append(s.Lines, s.Title) {
		if !utf8.ValidString(line) || strings.ContainsFunc(line, unicode.IsControl) || utf8.RuneCountInString(line) > s.Cols*(1+maxCombined)+maxTitle {
			t.Errorf("%.200q", line)
		}
	}
}

func TestAScreenSaysWhatElseThereIs(t *testing.T) {
	s := draw(t, Size{4, 20}, "\x1b]0;a\x07\x1b]2;title \x1b\\\x1b[?1h\x1b[?25l\x1b[3;4Hx")
	if s.Row != 3 || s.Col != 5 || !s.Hidden || s.Title != "title " || !s.Application {
		t.Errorf("%+v", s)
	}
	want := "\n\n   x\n<screen of 4 rows and 20 columns; the cursor is in row 3, column 5, and not shown; its title is \"title \">"
	if got := s.String(); got != want {
		t.Errorf("%q", got)
	}
}

// However output is cut into parts, the screen is the same.
func TestPartsOfOutputMakeOneScreen(t *testing.T) {
	const output = "\x1b[?1049h\x1b[2;3Hhé日本\x1b]2;t\x07\x1b[31mx\x1b[1;1He\u0301"
	want := draw(t, Size{4, 20}, output)
	for i := range len(output) {
		if got := draw(t, Size{4, 20}, output[:i], output[i:]); got.String() != want.String() {
			t.Errorf("cut at %d: %q, want %q", i, got.String(), want.String())
		}
	}
}

// hostile are outputs that would take much time or memory if nothing bounded it.
var hostile = map[string]string{
	"escape codes":          "\x1b[1m\x1b[31m\x1b[38;5;200m\x1b[0m",
	"huge moves":            "\x1b[999999999;999999999H\x1b[999999999A\x1b[99999999999999999999C",
	"huge repeats":          "x\x1b[999999999b",
	"huge insertions":       "\x1b[65535@\x1b[65535L\x1b[65535P\x1b[65535M",
	"huge scrolls":          "\x1b[65535S\x1b[65535T",
	"huge tabs":             "\x1b[65535I\x1b[65535Z",
	"erasing":               "\x1b[2J\x1b[3J\x1b[2K",
	"screens":               "\x1b[?1049h\x1b[?1049l",
	"resets":                "\x1bc",
	"questions":             "\x1b[6n\x1b[c\x1b[>c\x1b[?6n\x1b[5n\x1b[?1$p",
	"an endless title":      "\x1b]2;aaaaaaaaaaaaaaaa",
	"an endless string":     "\x1bPaaaaaaaaaaaaaaaaaa",
	"endless parameters":    "\x1b[1;1;1;1;1;1;1;1;1",
	"titles":                "\x1b]2;a title\x07\x1b]0;b\x1b\\",
	"links":                 "\x1b]8;id=1;http://a/b\x07x\x1b]8;;\x07",
	"colours":               "\x1b]4;1;rgb:ff/00/00\x07\x1b]10;?\x07\x1b]11;red\x07",
	"combining":             "e\u0301\u0302\u0303\u0304",
	"only combining":        "\u0301",
	"joined":                "\U0001F468\u200d",
	"wide":                  "日",
	"no UTF-8":              "\xff\xfe\xc3\x28\xe2\x82",
	"NUL":                   "\x00",
	"line feeds":            "\n",
	"backspaces":            "\b",
	"margins":               "\x1b[5;3r\x1b[?69h\x1b[5;2s\x1b[2;4r\n\x1bM\x1bD",
	"margins and insertion": "\x1b[2;4r\x1b[3;1H\x1b[9L\x1b[?6h\x1b[H\x1b[99M",
	"images":                "\x1bPq#0;2;0;0;0#0~~@@vv@@~~$-\x1b\\",
}

// Whatever comes, a screen is made or there is an error. Nothing here measures the time: a
// test that takes too long fails by the limit of the whole run.
func TestHostileOutputIsBounded(t *testing.T) {
	for name, unit := range hostile {
		t.Run(name, func(t *testing.T) {
			window := 1 << 20
			if name == "escape codes" {
				window = 16 << 20
			}
			term := New(Size{MaxRows, MaxCols})
			part := []byte(strings.Repeat(unit, 1+(64<<10)/len(unit)))
			var failed error
			for n := 0; n < window && failed == nil; n += len(part) {
				failed = term.Write(part)
			}
			s, err := term.Screen()
			if (err != nil) != (failed != nil) {
				t.Errorf("%v, %v", failed, err)
			}
			if err == nil {
				checkPlain(t, s)
			}
			var mem runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&mem)
			if mem.HeapAlloc > 128<<20 {
				t.Errorf("%d MB are in use", mem.HeapAlloc>>20)
			}
		})
	}
}

func FuzzScreen(f *testing.F) {
	for _, unit := range hostile {
		f.Add([]byte(unit), 24, 80)
		f.Add([]byte(strings.Repeat(unit, 20)), 2, 3)
	}
	f.Fuzz(func(t *testing.T, output []byte, rows, cols int) {
		term := New(Size{rows % 30, cols % 100})
		if err := term.Write(output); err != nil {
			return
		}
		if s, err := term.Screen(); err == nil {
			checkPlain(t, s)
		}
	})
}
