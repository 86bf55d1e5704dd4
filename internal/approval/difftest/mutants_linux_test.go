package difftest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A mutant is a mistake in the reader of plain scripts that the campaign has to find.
type mutant struct {
	name  string
	edits []string // old and new texts of plain.go by turns
}

// mutants are mistakes that would let a text do something else than what was judged, or
// make the text that is run another one.
var mutants = []mutant{
	{"a carriage return is a blank", []string{
		`case c == '\r':`, `case c == 0:`, `c != '\t' && unicode`, `c != '\t' && c != '\r' && unicode`,
		`blanks   = " \t"`, `blanks   = " \t\r"`, `newlines = " \t\n"`, `newlines = " \t\r\n"`, `const ends = " \t`, `const ends = " \t\r`}},
	{"a backslash before CR LF joins lines", []string{
		`case c == '\r':`, `case c == 0:`, `c != '\t' && unicode`, `c != '\t' && c != '\r' && unicode`,
		`	r := &plainReader{text: text}`, `	r := &plainReader{text: strings.ReplaceAll(text, "\\\r\n", " ")}`}},
	{"a no-break space is a blank", []string{`	r := &plainReader{text: text}`, `	r := &plainReader{text: strings.ReplaceAll(text, "\u00a0", " ")}`}},
	{"a vertical tab is a blank", []string{`	r := &plainReader{text: text}`, `	r := &plainReader{text: strings.ReplaceAll(text, "\v", " ")}`}},
	{"an assignment is a command", []string{`case strings.Contains(w, "="):`, `case w == "=":`}},
	{"a pattern is a word", []string{`strings.ContainsRune("_-`, `strings.ContainsRune("*?[_-`}},
	{"braces are a word", []string{`strings.ContainsRune("_-`, `strings.ContainsRune("{}_-`}},
	{"a revision may have a comma", []string{`isOther := func(c rune) bool { return `, `isOther := func(c rune) bool { return c != ',' && (`, `!unicode.IsDigit(c) }
	if !closed`, `!unicode.IsDigit(c)) }
	if !closed`}},
	{"a dollar is a letter", []string{`strings.ContainsRune("_-`, `strings.ContainsRune("$_-`}},
	{"a dollar in double quotes is a letter", []string{"c == '`' || !r.dollarIsLiteral()", "c == '`'"}},
	{"a backquote in double quotes is a letter", []string{"c == '`' || !r.dollarIsLiteral()", "c == '$' && !r.dollarIsLiteral()"}},
	{"a tilde at the start is a letter", []string{`case c == '~' && r.at > start && followsName(r.text[r.at-1]):`, `case c == '~':`}},
	{"a tilde after = and : is a letter", []string{`strings.IndexByte("_-./^~", c)`, `strings.IndexByte("_-./^~=:", c)`}},
	{"a number sign at the start is a letter", []string{`case c == '#' && r.at > start:`, `case c == '#':`}},
	{"empty words are left out", []string{`	c.Words = append(c.Words, w)`, `	if w != "" || len(c.Words) == 0 {
		c.Words = append(c.Words, w)
	}`}},
	{"a quote in a word is not written again", []string{"`'\\''`", "`\\'`"}},
	{"words are not quoted again", []string{`return "'" + strings.ReplaceAll(word, "'", ` + "`'\\''`" + `) + "'"`, `return word`}},
	{"double quotes drop every backslash", []string{"strings.IndexByte(\"$`\\\"\\\\\", r.text[r.at+1]) >= 0", "r.text[r.at+1] != '\\n'"}},
	{"a negation is a command", []string{`keywords = []string{"!", `, `keywords = []string{`}},
	{"time is a command", []string{`"time", `, ``}},
	{"a word is written without its quotes", []string{`parts = append(parts, Quote(w))`, `parts = append(parts, strings.ReplaceAll(Quote(w), "'-", "-"))`}},
	{"a job is a command", []string{`strings.ContainsAny(w[:1], "-+%")`, `strings.ContainsAny(w[:1], "-+")`}},
	{"an option is a command", []string{`strings.ContainsAny(w[:1], "-+%")`, `strings.ContainsAny(w[:1], "%")`}},
	{"cd may stand anywhere", []string{`c.Words[0] == "cd" && !r.understandsCD(c)`, `c.Words[0] == "cd" && len(c.Words) != 2`}},
	{"a command in the background is one before the next", []string{`[]string{"&&", "||", "|", ";"}`, `[]string{"&&", "||", "|", ";", "&"}`}},
	{"a quoted number is a descriptor", []string{`if !bare || len(w) > 1`, `if bare = true; len(w) > 1`}},
	{"another descriptor is a word", []string{`if isNumber(w) && (r.next()`, `if isNumber(w) && len(w) == 1 && w <= "2" && (r.next()`}},
	{"errors are forgotten in &>", []string{`	c.Redirects = append(c.Redirects, Redirect{2, ">&", "1"})`, ``}},
	{"&>> is &>", []string{`		op = ">>"`, `		op = ">"`}},
	{">> is written as >", []string{`return strconv.Itoa(r.FD) + r.Op + Quote(r.To)`, `return strconv.Itoa(r.FD) + r.Op[:1] + Quote(r.To)`}},
	{">| is read as > to a pipe", []string{`[]string{">>", ">&", ">", "<"}`, `[]string{">>", ">&", ">|", ">", "<"}`}},
	{"|| is written as ;", []string{`		b.WriteString(" " + c.Joint + " ")`, `		b.WriteString(" " + strings.ReplaceAll(c.Joint, "||", ";") + " ")`}},
	{"|& and ;& are two signs", []string{` && !r.follows(";|")`, ``}},
	{"a newline is a blank", []string{`blanks   = " \t"`, `blanks   = " \t\n"`}},
}

var failedScript = regexp.MustCompile(`(?m)script (\d+), `)

// TestMutantsAreFound reverts the reader's care in one place after the other. Each
// mutant needs a build, so it runs only if ABIDE_MUTANTS is the number of scripts that
// each one gets.
func TestMutantsAreFound(t *testing.T) {
	if os.Getenv("ABIDE_MUTANTS") == "" {
		t.Skip("ABIDE_MUTANTS is not set: it is the number of scripts within which each mutant has to be found")
	}
	scripts := numberFrom(t, "ABIDE_MUTANTS", 0)
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			cmd := exec.Command(buildMutant(t, m), "-test.run=^TestScriptsDoWhatWasJudged$")
			cmd.Env = append(os.Environ(), fmt.Sprintf("ABIDE_SCRIPTS=%d", scripts), "ABIDE_REQUIRE=namespaces")
			out, err := cmd.CombinedOutput()
			found := failedScript.FindSubmatch(out)
			if err == nil || found == nil {
				t.Fatalf("it was not found within %d scripts: %v\n%s", scripts, err, out)
			}
			line, _, _ := strings.Cut(string(out[bytes.Index(out, found[0]):]), "\n")
			t.Log("found by", line)
		})
	}
}

// TestMutantsApply keeps the table of mutants up to date with the reader.
func TestMutantsApply(t *testing.T) {
	_, text := readReader(t)
	for _, m := range mutants {
		m.apply(t, text)
	}
}

// readReader returns where the reader of plain scripts is, and its text.
func readReader(t *testing.T) (path, text string) {
	path, err := filepath.Abs("../shell/plain.go")
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return path, string(content)
}

// apply returns the text of the reader with the mistake.
func (m mutant) apply(t *testing.T, text string) string {
	for i := 0; i < len(m.edits); i += 2 {
		if n := strings.Count(text, m.edits[i]); n != 1 {
			t.Errorf("mutant %q: plain.go has %q %d times, want once: change the mutant", m.name, m.edits[i], n)
		}
		text = strings.Replace(text, m.edits[i], m.edits[i+1], 1)
	}
	return text
}

// buildMutant builds these tests with a mistake in the reader.
func buildMutant(t *testing.T, m mutant) string {
	path, text := readReader(t)
	dir := t.TempDir()
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{path: dir + "/plain.go"}})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"plain.go": m.apply(t, text), "overlay.json": string(overlay)} {
		if err := writeFile(dir+"/"+name, content); err != nil {
			t.Fatal(err)
		}
	}
	binary := dir + "/mutant.test"
	if out, err := exec.Command("go", "test", "-c", "-overlay", dir+"/overlay.json", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("build the mutant: %v\n%s", err, out)
	}
	return binary
}
