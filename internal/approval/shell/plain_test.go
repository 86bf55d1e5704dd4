package shell_test

import (
	"errors"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"mvdan.cc/sh/v3/syntax"
	"pgregory.net/rapid"

	"github.com/abide-run/abide/internal/approval/shell"
	_ "github.com/abide-run/abide/internal/test/seedtest"
)

func TestPlainReadsTheClosedLanguage(t *testing.T) {
	type command = shell.Simple
	type redirect = shell.Redirect
	words := func(w ...string) []string { return w }
	for script, want := range map[string][]command{
		"ls":                                 {{Words: words("ls")}},
		"  git\tstatus --short \n":           {{Words: words("git", "status", "--short")}},
		`git commit -m "a 'b'" 'c "d"' \e`:   {{Words: words("git", "commit", "-m", "a 'b'", `c "d"`, "e")}},
		`echo "a\"b\\c\$d\x" a\ b ''`:        {{Words: words("echo", `a"b\c$d\x`, "a b", "")}},
		"grep \"foo$\" \"a$|b$)\" '$HOME'":   {{Words: words("grep", "foo$", "a$|b$)", "$HOME")}},
		"a | b |\n c && d ||\n\n e; f\ng;":   {{"", words("a"), nil}, {"|", words("b"), nil}, {"|", words("c"), nil}, {"&&", words("d"), nil}, {"||", words("e"), nil}, {";", words("f"), nil}, {";", words("g"), nil}},
		"go test \\\n  ./... \\\n -v":        {{Words: words("go", "test", "./...", "-v")}},
		"git diff HEAD~1 HEAD^ stash@{0}":    {{Words: words("git", "diff", "HEAD~1", "HEAD^", "stash@{0}")}},
		"[ -f a ] && find . ! -name {}":      {{"", words("[", "-f", "a", "]"), nil}, {"&&", words("find", ".", "!", "-name", "{}"), nil}},
		"echo a#b c=d e:f,g+h%i":             {{Words: words("echo", "a#b", "c=d", "e:f,g+h%i")}},
		"echo grüße '日本 語'":                  {{Words: words("echo", "grüße", "日本 語")}},
		"make >out 2>&1 | tail":              {{"", words("make"), []redirect{{1, ">", "out"}, {2, ">&", "1"}}}, {"|", words("tail"), nil}},
		"make &>> 'o u t'":                   {{"", words("make"), []redirect{{1, ">>", "o u t"}, {2, ">&", "1"}}}},
		"make&>out":                          {{"", words("make"), []redirect{{1, ">", "out"}, {2, ">&", "1"}}}},
		"2>e <in wc -l >>out":                {{"", words("wc", "-l"), []redirect{{2, ">", "e"}, {0, "<", "in"}, {1, ">>", "out"}}}},
		"echo 2 >f; echo a2>f; echo x>&2":    {{"", words("echo", "2"), []redirect{{1, ">", "f"}}}, {";", words("echo", "a2"), []redirect{{1, ">", "f"}}}, {";", words("echo", "x"), []redirect{{1, ">&", "2"}}}},
		"git log --format='%h %s' -- 'a\nb'": {{Words: words("git", "log", "--format=%h %s", "--", "a\nb")}},
	} {
		got, err := shell.ReadPlain(script)
		if err != nil {
			t.Errorf("%q: %v", script, err)
			continue
		}
		if diff := cmp.Diff(want, got.Commands()); diff != "" {
			t.Errorf("%q:\n%s", script, diff)
		}
	}
}

func TestPlainSaysWhatItDoesNotUnderstandAndWhere(t *testing.T) {
	for script, want := range map[string]string{
		"":                               "a command without a name at column 1",
		" \n ":                           "a command without a name",
		"echo $HOME":                     "an expansion ($HOME) at column 6",
		"echo é $HOME":                   "an expansion ($HOME) at column 8",
		"ls\n\n a $(x y)":                "an expansion ($(x) at line 3, column 4",
		"echo `id`":                      "an expansion",
		`echo "$HOME"`:                   "an expansion",
		"echo \"`id`\"":                  "an expansion",
		`echo "$"x"$[1]"`:                "an expansion",
		"echo $'\\x73udo'":               "an expansion",
		`echo $"a"`:                      "an expansion",
		"echo a$":                        "an expansion",
		"A=1 ls":                         "an assignment (A=1) at column 1",
		"A=1":                            "an assignment",
		"'A=1' ls":                       "an assignment",
		"a[1]=2 ls":                      "a pattern",
		"a+=1":                           "an assignment",
		">f A=1 ls":                      "an assignment",
		"ls *.go":                        "a pattern for file names (*) at column 4",
		"ls ?":                           "a pattern",
		"ls [a]":                         "a pattern",
		"ls [":                           "",
		"echo {a,b}":                     "a brace",
		"echo a}":                        "a brace",
		"echo x{}":                       "a brace",
		"echo @{a,b}":                    "a brace",
		"echo @{1..2}":                   "a brace",
		"{ ls; }":                        "a brace",
		"{} x":                           "a keyword",
		"ls ~":                           "a home directory",
		"ls a=~/x":                       "a home directory",
		"ls a:~/x":                       "a home directory",
		"ls \"\"~/x":                     "a home directory",
		"ls # x":                         "a comment (#) at column 4",
		"#":                              "a comment",
		"ls &":                           "a command in the background (&) at column 4",
		"ls & pwd":                       "a command in the background",
		"(ls)":                           "a parenthesis",
		"f() ls":                         "a parenthesis",
		"ls )":                           "a parenthesis",
		"((x))":                          "a parenthesis",
		"! ls":                           "a keyword of the shell (!)",
		"[[ a ]]":                        "a pattern",
		"'[[' a":                         "a keyword",
		"time ls":                        "a keyword",
		"'time' ls":                      "a keyword",
		"if a; then b; fi":               "a keyword",
		"for PATH in ./evil; do x; done": "a keyword",
		"coproc x":                       "a keyword",
		"ls;;":                           "a command without a name",
		"; ls":                           "a command without a name",
		"ls; ; pwd":                      "a command without a name",
		"ls &&":                          "a command without a name",
		"ls\n&& pwd":                     "a command without a name",
		"| ls":                           "a command without a name",
		"ls |& cat":                      "a command without a name",
		"ls ||| cat":                     "a command without a name",
		"> f":                            "a command without a name",
		"'' x":                           "a command without a name",
		"cat <<E\nx\nE":                  "a redirection other than",
		"cat <<<x":                       "a redirection other than",
		"cat <>f":                        "a redirection other than",
		"cat <&3":                        "a redirection other than",
		"cat <(ls)":                      "a redirection other than",
		"ls >(cat)":                      "a redirection other than",
		"ls >|f":                         "a redirection other than",
		"ls >&f":                         "a redirection other than",
		"ls >&-":                         "a redirection other than",
		"ls 2>&1x":                       "a redirection other than",
		"ls 2>&3":                        "a redirection other than",
		"ls 2>& 1":                       "a redirection other than",
		"ls 2>&":                         "a redirection other than",
		"ls 3>f":                         "a redirection of another stream (3) at column 4",
		"ls 12>f":                        "a redirection of another stream",
		"ls 0>f":                         "a redirection of another stream",
		"ls 1<f":                         "a redirection of another stream",
		"ls \\2>f":                       "a redirection of another stream",
		"ls '2'>f":                       "a redirection of another stream",
		"ls {a}>f":                       "a brace",
		"ls >":                           "a redirection without a plain path",
		"ls > \n f":                      "a redirection without a plain path",
		"ls > 2>f":                       "a redirection without a plain path",
		"ls > ''":                        "a redirection without a plain path",
		"ls > &2":                        "a redirection without a plain path",
		"ls > $F":                        "an expansion",
		"ls > *":                         "a pattern",
		"ls 'a":                          "a quote (') that is not closed at column 4",
		`ls "a`:                          `a quote (") that is not closed`,
		`ls "a\"`:                        `a quote (") that is not closed`,
		"ls a\\\nb":                      "a backslash inside a word at the end of a line",
		"ls \"a\\\nb\"":                  "a line that goes on inside a quote",
		"ls \\":                          "a backslash inside a word at the end of a line",
		"\\\nls":                         "a backslash",
		"git status \\\r\n./evil":        "a carriage return at column 13",
		"ls\r":                           "a carriage return",
		"ls 'a\rb'":                      "a carriage return",
		"ls \x00":                        "a control character (U+0000)",
		"ls '\x1b[31m'":                  "a control character",
		"ls '\x7f'":                      "a control character",
		"ls '\u0085'":                    "a control character",
		"ls \xff":                        "a byte that is not UTF-8 at column 4",
		"ls 'a\xc3'":                     "a byte that is not UTF-8",
		"ls\u00a0-l":                     "a character without quotes (U+00A0)",
		"a;&>f b":                        "a command without a name",
		"a |&>f b":                       "a command without a name",
		"ls\u200b-l":                     "a character that nobody sees (U+200B)",
		"ls '\u202ex'":                   "a character that nobody sees",
		"ls \u3164":                      "a character that nobody sees",
		"%1":                             "an option in the place of a command",
		"'-x' y":                         "an option in the place of a command",
		"export A=1":                     "a builtin that changes the shell (export)",
		"cd a; ls":                       "cd other than at the start",
		"cd a | ls":                      "cd other than at the start",
		"ls && cd a":                     "cd other than at the start",
		"cd ../a && ls":                  "cd other than at the start",
		"cd -P a && ls":                  "cd other than at the start",
		"cd && ls":                       "cd other than at the start",
		"cd a b && ls":                   "cd other than at the start",
		"cd a >b && ls":                  "cd other than at the start",
		"cd a && cd b && ls":             "cd other than at the start",
		"ls\u3000-l":                     "a character without quotes",
	} {
		p, err := shell.ReadPlain(script)
		if want == "" {
			if err != nil {
				t.Errorf("%q: %v", script, err)
			}
			continue
		}
		if err == nil {
			t.Errorf("%q is understood as %s", script, p)
		} else if !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", script, err, want)
		}
	}
}

func TestPlainRefusesLongScriptsAtOnce(t *testing.T) {
	for _, script := range []string{strings.Repeat("a", 5<<20), strings.Repeat("ls\n", 100_000), "ls " + strings.Repeat("'a' ", 20_000)} {
		if _, err := shell.Parse(script).Plain(); !errors.Is(err, shell.ErrTooLong) {
			t.Errorf("%.10q: %v", script, err)
		}
		if _, err := shell.ReadPlain(script); !errors.Is(err, shell.ErrTooLong) {
			t.Errorf("%.10q: %v", script, err)
		}
	}
}

func TestPlainLeavesOutTheAmpersandAtTheEnd(t *testing.T) {
	p, err := shell.Parse("npm start >log 2>&1 &").Plain()
	if err != nil || p.String() != "'npm' 'start' 1>'log' 2>&1" {
		t.Errorf("%v, %v", p, err)
	}
	if p, err := shell.Parse("a & b &").Plain(); err == nil {
		t.Errorf("a command in the background is understood as %s", p)
	}
}

// anyPlain draws the commands of a script of the closed language.
func anyPlain(t *rapid.T) []shell.Simple {
	word := rapid.StringOf(rapid.RuneFrom([]rune("ab1=~#*?[]{}()$`\"'\\!&|;<> \t\nß語@-./")))
	var list []shell.Simple
	for i := range rapid.IntRange(1, 4).Draw(t, "commands") {
		c := shell.Simple{Words: append([]string{rapid.StringMatching(`[a-z./][a-z./-]{0,3}x`).Draw(t, "name")}, rapid.SliceOfN(word, 0, 3).Draw(t, "words")...)}
		if i > 0 {
			c.Joint = rapid.SampledFrom([]string{"|", "&&", "||", ";"}).Draw(t, "joint")
		}
		for range rapid.IntRange(0, 2).Draw(t, "redirects") {
			path := rapid.StringMatching(`[a'$ *"/ß\\]{1,5}`).Draw(t, "path")
			c.Redirects = append(c.Redirects, rapid.SampledFrom([]shell.Redirect{{0, "<", path}, {1, ">", path}, {2, ">>", path}, {2, ">&", "1"}, {1, ">&", "2"}}).Draw(t, "redirect"))
		}
		list = append(list, c)
	}
	return list
}

// write returns commands as a script in which every word is quoted.
func write(list []shell.Simple) string {
	var b strings.Builder
	for _, c := range list {
		b.WriteString(" " + c.Joint + " " + c.String())
	}
	return b.String()
}

func TestPlainIsWrittenAsItWasRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := anyPlain(t)
		p, err := shell.ReadPlain(write(want))
		if err != nil {
			t.Fatalf("%s: %v", write(want), err)
		}
		if diff := cmp.Diff(want, p.Commands()); diff != "" {
			t.Fatal(diff)
		}
		again, err := shell.ReadPlain(p.String())
		if err != nil || !cmp.Equal(p.Commands(), again.Commands()) {
			t.Fatalf("%s is read as %s, %v", p, again, err)
		}
	})
}

// compareWithTree compares what the reader understood with the tree of a complete parser.
func compareWithTree(t interface{ Errorf(string, ...any) }, script string, p *shell.Plain) {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(script), "")
	if err != nil {
		t.Errorf("%q is understood as %s, and is no bash: %v", script, p, err)
		return
	}
	calls, redirects := 0, 0
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case nil, *syntax.File, *syntax.Word, *syntax.Lit, *syntax.DblQuoted:
		case *syntax.Stmt:
			if n.Background || n.Negated || n.Coprocess {
				t.Errorf("%q is understood as %s, and runs in the background or is negated", script, p)
			}
			redirects += len(n.Redirs)
		case *syntax.SglQuoted:
			if n.Dollar {
				t.Errorf("%q is understood as %s, and has $'…'", script, p)
			}
		case *syntax.CallExpr:
			if calls++; len(n.Assigns) > 0 || calls > len(p.Commands()) || len(n.Args) != len(p.Commands()[calls-1].Words) {
				t.Errorf("%q is understood as %s, which does not have the same words", script, p)
			}
		case *syntax.BinaryCmd:
			if n.Op == syntax.PipeAll {
				t.Errorf("%q is understood as %s, and has |&", script, p)
			}
		case *syntax.Redirect:
		default:
			t.Errorf("%q is understood as %s, and has a %T", script, p, n)
		}
		return true
	})
	if calls != len(p.Commands()) {
		t.Errorf("%q is understood as %s, which has %d commands instead of %d", script, p, len(p.Commands()), calls)
	}
}

// compareWithBash compares the words that bash passes on with those that were understood,
// for scripts of a single command.
func compareWithBash(t *testing.T, bash, script string, p *shell.Plain) {
	if len(p.Commands()) != 1 || len(p.Commands()[0].Redirects) > 0 {
		return
	}
	out, err := exec.Command(bash, "-c", "set -- "+script+"\nprintf '%s\\0' \"$@\"").Output()
	if err != nil {
		t.Errorf("%q: %v", script, err)
		return
	}
	got := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	if want := p.Commands()[0].Words; !slices.Equal(got, want) {
		t.Errorf("%q is understood as %q, and is %q for bash", script, want, got)
	}
}

func TestBashAgreesOnTheWordsOfAPlain(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash")
	}
	piece := rapid.SampledFrom([]string{"a", "B", "1", "é", "=", "~", "#", "@{1}", "@", "{}", "[", "]", "!", "^", "-", "/", ".", ":", ",", "%", "+", "'x y'", "''", `"a'b"`,
		`"$"`, `"a$|"`, `"\$\x\\"`, `\'`, `\ `, `\é`, `\~`, ` `, "  ", "\t", " \\\n", "\n", "*", "$x", `"\`, "2", "\\"})
	rapid.Check(t, func(rt *rapid.T) {
		script := "x " + strings.Join(rapid.SliceOfN(piece, 1, 8).Draw(rt, "pieces"), "")
		if p, err := shell.ReadPlain(script); err == nil {
			compareWithTree(rt, script, p)
			compareWithBash(t, bash, script, p)
		}
	})
}

func FuzzPlain(f *testing.F) {
	for _, s := range []string{"ls", "a | b && c || d; e\nf", "a 'b' \"c$\" \\d >e 2>&1 <f &>>g", "a \\\n b", "HEAD~1 x@{u} [ {} ] ! a#b", "a=b", "$x", "a\\\r\nb", "(a)", "2>&1 a", "a 2 >b", "a>b>c"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, script string) {
		p, err := shell.ReadPlain(script)
		if err != nil {
			return
		}
		again, err := shell.ReadPlain(p.String())
		if err != nil || !cmp.Equal(p.Commands(), again.Commands()) {
			t.Fatalf("%q: %s is read as %v, %v", script, p, again, err)
		}
		compareWithTree(t, script, p)
	})
}
