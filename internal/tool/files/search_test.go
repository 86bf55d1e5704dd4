package files_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestGrepTexts(t *testing.T) {
	b := newFixture(t)
	b.put("data.txt", "apple\nbanana\napricot\n")
	b.put("src/a.ts", "const a = 1;\nfoo\n")
	b.put("src/b.js", "const b = 2;\n")
	b.put("src/deep/c.ts", "// const\r\n")
	b.put(".hidden", "const hidden\n")
	b.put("out.log", "const ignored\n")
	b.put("build/x.ts", "const built\n")
	b.put(".gitignore", "*.log\n/build/\n")
	b.put("bin", "const\x00\n")
	b.put(".git/config", "const\n")
	b.put("lines", "1\n2\nx\n4\n5\n6\nx\nx\n9\n")
	for _, test := range []struct {
		arguments, want string
		failed          bool
	}{
		{`{"pattern":"^ap","path":"$/data.txt","output_mode":"content","-n":true}`, "$/data.txt:1:apple\n$/data.txt:3:apricot", false},
		{`{"pattern":"^ap","paths":"data.txt","output_mode":"content"}`, "data.txt:apple\ndata.txt:apricot", false},
		{`{"pattern":"const"}`, "./.hidden\n./src/a.ts\n./src/b.js\n./src/deep/c.ts", false},
		{`{"pattern":"const","paths":"src"}`, "src/a.ts\nsrc/b.js\nsrc/deep/c.ts", false},
		{`{"pattern":"const","paths":["src/","$/.hidden"]}`, "$/.hidden\nsrc/a.ts\nsrc/b.js\nsrc/deep/c.ts", false},
		{`{"pattern":"CONST","-i":true,"type":"ts"}`, "./src/a.ts\n./src/deep/c.ts", false},
		{`{"pattern":"const","glob":"*.js"}`, "./src/b.js", false},
		{`{"pattern":"const","glob":"*.{ts,js}"}`, "./src/a.ts\n./src/b.js\n./src/deep/c.ts", false},
		{`{"pattern":"const","glob":"!*.js"}`, "./.hidden\n./src/a.ts\n./src/deep/c.ts", false},
		{`{"pattern":"const","glob":"src/*.ts"}`, "./src/a.ts", false},
		{`{"pattern":"const","glob":"src/*.ts","path":"src"}`, "src/a.ts", false},
		{`{"pattern":"const","glob":"deep/*.ts","path":"src"}`, "src/deep/c.ts", false},
		{`{"pattern":"const","glob":"*.log"}`, "./out.log", false},
		{`{"pattern":"const","path":"build"}`, "build/x.ts", false},
		{`{"pattern":"const","path":"out.log"}`, "out.log", false},
		{`{"pattern":"ap|an","output_mode":"count"}`, "./data.txt:3", false},
		{`{"pattern":"// const$","output_mode":"content"}`, "No matches found.", false},
		{`{"pattern":"// const","output_mode":"content"}`, "./src/deep/c.ts:// const", false},
		{`{"pattern":"^x$","path":"lines","output_mode":"content","-n":true,"-C":1}`, "lines-2-2\nlines:3:x\nlines-4-4\n--\nlines-6-6\nlines:7:x\nlines:8:x\nlines-9-9", false},
		{`{"pattern":"^x$","path":"lines","output_mode":"content","-A":1}`, "lines:x\nlines-4\n--\nlines:x\nlines:x\nlines-9", false},
		{`{"pattern":"^x$","path":"lines","output_mode":"content","-C":2,"-B":0,"-n":true,"head_limit":1}`, "lines:3:x\nlines-4-4\nlines-5-5\n\n[The first 1 of 3 matches in 1 file(s).]", false},
		{`{"pattern":"const","head_limit":2}`, "./.hidden\n./src/a.ts\n\n[The first 2 of 4 file(s).]", false},
		{`{"pattern":"const","head_limit":9}`, "./.hidden\n./src/a.ts\n./src/b.js\n./src/deep/c.ts", false},
		{`{"pattern":"1;\\nfoo","multiline":true,"output_mode":"content","-n":true}`, "./src/a.ts:1:const a = 1;\n./src/a.ts:2:foo", false},
		{`{"pattern":"1;.foo","multiline":true}`, "No matches found.", false},
		{`{"pattern":"1;\\nfoo"}`, "Error: rg: the literal \"\\n\" is not allowed in a regex\n\nConsider enabling multiline mode with the multiline parameter.\nWhen multiline mode is enabled, new line characters can be matched.", true},
		{`{"pattern":"nothing"}`, "No matches found.", false},
		{`{"pattern":"("}`, "Error: rg: regex parse error:\n    (\nerror: missing closing ): (", true},
		{`{"pattern":"x","path":"none"}`, "Error: Search paths do not exist: none", true},
		{`{"pattern":"x","paths":["none","$/data.txt","gone"]}`, "Error: Search paths do not exist: none, gone", true},
		{`{"pattern":"x","type":"nosuch"}`, "Error: rg: unrecognized file type: nosuch", true},
		{`{"pattern":"x","glob":"["}`, "Error: rg: error parsing glob '[': unclosed character class; missing ']'", true},
	} {
		r := b.run("grep", test.arguments)
		if want := strings.ReplaceAll(test.want, "$/", b.dir+"/"); r.Text != want || r.Failed != test.failed {
			t.Errorf("%s:\n%q, want\n%q", test.arguments, r.Text, want)
		}
	}
}

func TestGlobTexts(t *testing.T) {
	b := newFixture(t)
	for _, name := range []string{"src/index.ts", "src/a.tsx", "src/deep/b.ts", "c.js", ".hidden.ts", "out.log", ".git/hooks/x.ts", "src/é.ts"} {
		b.put(name, "")
	}
	b.put(".gitignore", "*.log\n")
	if err := os.Symlink("c.js", b.path("link.js")); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		arguments, want string
		failed          bool
	}{
		{`{"pattern":"**/*.ts"}`, "./.hidden.ts\n./src/index.ts\n./src/é.ts\n./src/deep/b.ts", false},
		{`{"pattern":"*.ts"}`, "./.hidden.ts\n./src/index.ts\n./src/é.ts\n./src/deep/b.ts", false},
		{`{"pattern":"src/*.ts"}`, "./src/index.ts\n./src/é.ts", false},
		{`{"pattern":"src/**/*.{ts,tsx}"}`, "./src/a.tsx\n./src/index.ts\n./src/é.ts\n./src/deep/b.ts", false},
		{`{"pattern":"*.js","path":"$"}`, "$/c.js", false},
		{`{"pattern":"*.ts","paths":"src/deep"}`, "src/deep/b.ts", false},
		{`{"pattern":"?.ts"}`, "./src/é.ts\n./src/deep/b.ts", false},
		{`{"pattern":"[ab].ts*"}`, "./src/a.tsx\n./src/deep/b.ts", false},
		{`{"pattern":"*.log"}`, "./out.log", false},
		{`{"pattern":".git/**"}`, "./.git/hooks/x.ts", false},
		{`{"pattern":"*.js","paths":["c.js","src"]}`, "c.js", false},
		{`{"pattern":"./c.js"}`, "No files matched the pattern.", false},
		{`{"pattern":"$/c.js"}`, "No files matched the pattern.", false},
		{`{"pattern":"src"}`, "No files matched the pattern.", false},
		{`{"pattern":"["}`, "Error: rg: error parsing glob '[': unclosed character class; missing ']'", true},
		{`{"pattern":"*","path":"none"}`, "Error: rg: none: IO error for operation on none: No such file or directory (os error 2)", true},
	} {
		r := b.run("glob", test.arguments)
		if want := strings.ReplaceAll(test.want, "$/", b.dir+"/"); r.Text != want || r.Failed != test.failed {
			t.Errorf("%s:\n%q, want\n%q", test.arguments, r.Text, want)
		}
	}
}

func TestManyResultsAreShownInPart(t *testing.T) {
	b := newFixture(t)
	b.put("many.txt", strings.Repeat("hit\n", 3000))
	b.put("forty.txt", strings.Repeat("two\n", 40))
	r := b.run("grep", `{"pattern":"hit","output_mode":"content","-n":true,"path":"$"}`)
	if want := "[grep content: 3000 matches across 1 file(s) under " + b.dir + "]\n\nmany.txt (3000 match(es)):\n  1: hit\n  2: hit\n"; !strings.HasPrefix(r.Text, want) ||
		!strings.HasSuffix(r.Text, "  24: hit\n  ... 2976 more match(es) omitted in this file") {
		t.Errorf("%q", r.Text)
	}
	if r := b.run("grep", `{"pattern":"two","output_mode":"content"}`); r.Text != strings.TrimSuffix(strings.Repeat("./forty.txt:two\n", 40), "\n") {
		t.Errorf("%q", r.Text)
	}
	if r := b.run("grep", `{"pattern":"hit","output_mode":"content","head_limit":100}`); strings.Count(r.Text, "many.txt:hit") != 100 || !strings.HasSuffix(r.Text, "[The first 100 of 3000 matches in 1 file(s).]") {
		t.Errorf("%q", r.Text)
	}
	for i := range 240 {
		b.put(fmt.Sprintf("dir/%d/f%04d", i%3, i), "x\n")
	}
	r = b.run("glob", `{"pattern":"f*","path":"dir"}`)
	if !strings.HasPrefix(r.Text, "[glob: 240 path(s) under dir; grouped by directory]\n\ndir/0/ (80 path(s)):\n  f0000\n  f0003\n") ||
		strings.Count(r.Text, "  ... 56 more path(s) omitted in this directory") != 3 {
		t.Errorf("%q", r.Text)
	}
	r = b.run("grep", `{"pattern":"x","path":"dir"}`)
	if !strings.HasPrefix(r.Text, "[grep files_with_matches: 240 file(s) under dir; grouped by directory]\n\ndir/0/ (80 file(s)):\n  f0000\n") {
		t.Errorf("%q", r.Text)
	}
	r = b.run("grep", `{"pattern":"x","path":"dir","output_mode":"count"}`)
	if !strings.HasPrefix(r.Text, "[grep count: 240 file(s) under dir; grouped by directory]\n\ndir/0/ (80 file(s)):\n  f0000:1\n") {
		t.Errorf("%q", r.Text)
	}
	r = b.run("grep", `{"pattern":"x","path":"dir","output_mode":"content"}`)
	if !strings.HasPrefix(r.Text, "[grep content: 240 matches across 240 file(s) under dir]\n\n0/f0000 (1 match(es)):\n  x\n\n0/f0003") || len(r.Text) > 21<<10 {
		t.Errorf("%q", r.Text)
	}
	shown := strings.Count(r.Text, "match(es)):")
	if !strings.HasSuffix(r.Text, fmt.Sprintf("\n\n... %d more match(es) omitted in other files", 240-shown)) {
		t.Errorf("%d are shown: %q", shown, r.Text[len(r.Text)-100:])
	}
}

func TestALongLineIsShownAroundItsMatch(t *testing.T) {
	b := newFixture(t)
	b.put("min.js", strings.Repeat("é", 5000)+"needle"+strings.Repeat("ü", 5000)+"\n")
	r := b.run("grep", `{"pattern":"needle","output_mode":"content"}`)
	if !strings.Contains(r.Text, "éneedleü") || len(r.Text) > 700 || !utf8.ValidString(r.Text) || !strings.Contains(r.Text, "[… 9") {
		t.Errorf("%q", r.Text)
	}
}

func TestTheSameSearchGivesTheSameAnswer(t *testing.T) {
	b := newFixture(t)
	for i := range 300 {
		b.put(fmt.Sprintf("%d/%d.txt", i%17, i), strings.Repeat("x\n", i%5))
	}
	for name, arguments := range map[string]string{"grep": `{"pattern":"x","output_mode":"content","head_limit":50}`, "glob": `{"pattern":"*"}`} {
		first := b.run(name, arguments).Text
		for range 5 {
			if again := b.run(name, arguments).Text; again != first {
				t.Fatalf("%s:\n%s", name, cmp.Diff(first, again))
			}
		}
	}
}

// TestGlobFindsWhatGitFinds compares glob with git, on random trees and patterns.
func TestGlobFindsWhatGitFinds(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git here, so patterns were not compared with its own")
	}
	name := rapid.SampledFrom([]string{"a", "b", "ab", "a.b", "A", ".a"})
	piece := rapid.SampledFrom([]string{"a", "b", "*", "**/", "/", "?", "[ab]", "[!a]", ".", "**"})
	b := newFixture(t)
	if err := exec.Command("git", "init", "-q", b.dir).Run(); err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(rt *rapid.T) {
		for _, name := range []string{"a", "b", "ab", "a.b", "A", ".a"} {
			if err := os.RemoveAll(b.path(name)); err != nil {
				t.Fatal(err)
			}
		}
		for range 10 {
			path := b.path(filepath.Join(rapid.SliceOfN(name, 1, 4).Draw(rt, "path")...))
			_ = os.MkdirAll(filepath.Dir(path), 0o755) // fails if a file has the name, which is fine
			_ = os.WriteFile(path, nil, 0o644)
		}
		pattern := strings.Join(rapid.SliceOfN(piece, 1, 5).Draw(rt, "pattern"), "")
		if strings.HasPrefix(pattern, "/") || strings.HasPrefix(pattern, "./") || strings.Contains(pattern, "//") || strings.HasSuffix(pattern, "/") || strings.Contains(pattern, "/./") || strings.Contains(pattern, "..") {
			return // git interprets these patterns differently
		}
		spec := pattern
		if !strings.Contains(pattern, "/") {
			spec = "**/" + pattern
		}
		out, err := exec.Command("git", "-C", b.dir, "ls-files", "--others", "--", ":(glob)"+spec).Output()
		if err != nil {
			rt.Fatal(err)
		}
		want := strings.Fields(string(out))
		for i := range want {
			want[i] = "./" + want[i]
		}
		// Git also finds everything below a folder that matches.
		want = slices.DeleteFunc(want, func(path string) bool { return belowMatch(pattern, strings.TrimPrefix(path, "./")) })
		got := strings.Fields(b.run("glob", `{"pattern":`+quoted(pattern)+`}`).Text)
		if strings.Join(got, " ") == "No files matched the pattern." {
			got = nil
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			rt.Fatalf("%q: %q, git finds %q", pattern, got, want)
		}
	})
}

// belowMatch reports whether a path is found only because a folder above it matches.
func belowMatch(pattern, path string) bool {
	return !simple(pattern).MatchString(path)
}

// simple converts a pattern to a regular expression.
func simple(pattern string) *regexp.Regexp {
	var out strings.Builder
	if !strings.Contains(pattern, "/") {
		out.WriteString("(.*/)?")
	}
	for i := 0; i < len(pattern); i++ {
		whole := i == 0 || pattern[i-1] == '/'
		stars := len(pattern[i:]) - len(strings.TrimLeft(pattern[i:], "*"))
		rest := pattern[i+stars:]
		switch {
		case stars > 1 && whole && strings.HasPrefix(rest, "/"):
			out.WriteString("(.*/)?")
			i += stars
		case stars > 1 && whole && rest == "":
			out.WriteString(".*")
			i += stars - 1
		case stars > 0:
			out.WriteString("[^/]*")
			i += stars - 1
		case pattern[i] == '?':
			out.WriteString("[^/]")
		case strings.HasPrefix(pattern[i:], "[!a]"):
			out.WriteString("[^a/]")
			i += 3
		case strings.HasPrefix(pattern[i:], "[ab]"):
			out.WriteString("[ab]")
			i += 3
		default:
			out.WriteString(regexp.QuoteMeta(pattern[i : i+1]))
		}
	}
	return regexp.MustCompile("^" + out.String() + "$")
}

// TestGrepFindsWhatReadingEveryLineFinds compares grep with reading every file, on random
// trees.
func TestGrepFindsWhatReadingEveryLineFinds(t *testing.T) {
	name := rapid.SampledFrom([]string{"a", "b", "c.go", "d.txt"})
	rapid.Check(t, func(rt *rapid.T) {
		b := newFixture(t)
		texts := map[string]string{}
		for range 6 {
			path := filepath.Join(rapid.SliceOfN(name, 1, 3).Draw(rt, "path")...)
			text := strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"foo", "bar", "\n", "Foo1", "é", " "}), 0, 10).Draw(rt, "text"), "")
			if os.MkdirAll(filepath.Dir(b.path(path)), 0o755) == nil && os.WriteFile(b.path(path), []byte(text), 0o644) == nil {
				texts[path] = text
			}
		}
		expr := rapid.SampledFrom([]string{"foo", "^bar$", "f.o", "o\\d", "é", "fo+|bar", "(?i)FOO"}).Draw(rt, "expr")
		re := regexp.MustCompile(expr)
		var want []string
		for path, text := range texts {
			for i, line := range strings.Split(text, "\n") {
				if re.MatchString(line) {
					want = append(want, fmt.Sprintf("./%s:%d:%s", path, i+1, line))
				}
			}
		}
		got := strings.Split(b.run("grep", `{"pattern":`+quoted(expr)+`,"output_mode":"content","-n":true}`).Text, "\n")
		if len(want) == 0 {
			want = []string{"No matches found."}
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			rt.Fatalf("%q: %q, want %q", expr, got, want)
		}
	})
}
