package bash

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/abide-run/abide/internal/process"
	_ "github.com/abide-run/abide/internal/test/seedtest"
)

func TestOutputBecomesPlainText(t *testing.T) {
	for raw, want := range map[string]string{
		"plain\n":              "plain\n",
		"no newline":           "no newline",
		"\x1b[31mred\x1b[0m\n": "red\n",
		"\x1b]0;title\x07text": "text",
		"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\": "link",
		"\x1b(Btext\x1b=":                          "text",
		"cut off \x1b[3":                           "cut off ",
		"10%\r50%\r100%\ndone":                     "100%\ndone",
		"dos\r\nlines\r\n":                         "dos\nlines\n",
		"a\r":                                      "a",
		"nul\x00byte":                              "nul\uFFFDbyte",
		"bell\x07 back\bspace \x7f":                "bell backspace ",
		"tab\tstays":                               "tab\tstays",
		"bad \xff\xfe utf8":                        "bad \uFFFD utf8",
		"":                                         "",
	} {
		if got := clean([]byte(raw)); got != want {
			t.Errorf("%q becomes %q, want %q", raw, got, want)
		}
	}
}

func TestALongLineIsCutInItsMiddle(t *testing.T) {
	line := "BEGIN" + strings.Repeat("é", 5<<20) + "END"
	got, cut := cutLine(line)
	if len(got) > process.MaxLineLength || !strings.HasPrefix(got, "BEGIN") || !strings.HasSuffix(got, "END") || !utf8.ValidString(got) {
		t.Errorf("%d bytes: %.40q…", len(got), got)
	}
	if mark := strings.Index(got, " ... ["); len(got)-len(got[mark:strings.Index(got, "] ... ")+len("] ... ")])+cut != len(line) {
		t.Errorf("%d bytes were cut of %d to %d", cut, len(line), len(got))
	}
	if got, cut := cutLine(strings.Repeat("x", process.MaxLineLength)); cut != 0 || len(got) != process.MaxLineLength {
		t.Error("a line that fits is cut")
	}
}

func TestFittedTextIsBoundedAndCounted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw := rapid.SliceOfN(rapid.Byte(), 0, 4000).Draw(t, "raw")
		most := rapid.IntRange(10, 3000).Draw(t, "most")
		end := rapid.Bool().Draw(t, "end")
		text, cut := fit(raw, most, end)
		if len(text) > most || !utf8.ValidString(text) || cut < 0 || cut > len(raw) {
			t.Fatalf("%d bytes, %d cut of %d", len(text), cut, len(raw))
		}
		if len(clean(raw)) <= most && cut > 0 && !strings.Contains(text, "omitted") {
			t.Fatalf("%d bytes were cut though all fits", cut)
		}
	})
}

func FuzzClean(f *testing.F) {
	f.Add([]byte("\x1b[31mred\x1b[0m\r\n\x00\xff"))
	f.Add([]byte("\x1b]0;a\x1b\\"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		got := clean(raw)
		if !utf8.ValidString(got) || strings.ContainsAny(got, "\x00\x1b\r") {
			t.Errorf("%q becomes %q", raw, got)
		}
	})
}

func TestPromptsAreToldFromOutput(t *testing.T) {
	for output, want := range map[string]bool{
		"Password: ":                     true,
		"[sudo] password for me: ":       true,
		"Enter passphrase for key '/x':": true,
		"Proceed? ":                      true,
		"Continue? [Y/n] ":               true,
		"Overwrite a.txt? (yes/no)":      true,
		"Are you sure you want to continue connecting (yes/no/[fingerprint])? ": true,
		"Press any key to continue . . .":                                       true,
		"building\nName of the project? ":                                       true,
		"Select an option: ":                                                    true,
		">>> ":                                                                  true,
		"<html>":                                                                false,
		"# heading #":                                                           false,
		"$ ":                                                                    false,
		"progress 50%":                                                          false,
		"Password: \n":                                                          false,
		"Listening on http://localhost:3000":                                    false,
		"downloading:":                                                          false,
		"":                                                                      false,
		"Done.\n":                                                               false,
		"What?\n  ":                                                             false,
	} {
		if text, got := findPrompt(output); got != want {
			t.Errorf("%q: prompt is %q, %v", output, text, got)
		}
	}
}
