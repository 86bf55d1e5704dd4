package glob_test

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/abide-run/abide/internal/approval/glob"
	_ "github.com/abide-run/abide/internal/test/seedtest"
)

func TestMatch(t *testing.T) {
	for _, test := range []struct {
		pattern string
		yes, no []string
	}{
		{"*.go", []string{"a.go", ".go", "é.go"}, []string{"a/b.go", "a.gox", "go"}},
		{"**/*.go", []string{"a.go", "a/b.go", "a/b/c.go"}, []string{"a.c", "a/b.c"}},
		{"src/**", []string{"src/a", "src/a/b"}, []string{"src", "xsrc/a"}},
		{"src/**/test/*.js", []string{"src/test/a.js", "src/x/y/test/a.js"}, []string{"src/test/x/a.js"}},
		{"?", []string{"a", "é", "世"}, []string{"ab", "/", ""}},
		{"[aé]", []string{"a", "é"}, []string{"b", "e"}},
		{"[!a]", []string{"b", "é"}, []string{"a", "/", ""}},
		{"*.{ts,tsx}", []string{"a.ts", "a.tsx"}, []string{"a.js", "a.{ts,tsx}"}},
		{"{a,b/{c,d}}*", []string{"ax", "b/cx", "b/d"}, []string{"bx", "c"}},
		{"{,a}b", []string{"b", "ab"}, []string{"a"}},
		{"{a}", []string{"a"}, []string{"{a}"}},
		{"[{]a[}]", []string{"{a}"}, []string{"a"}},
		{`\*`, []string{"*"}, []string{"a"}},
		{`\{a\}`, []string{"{a}"}, []string{"a"}},
		{"a,b", []string{"a,b"}, []string{"a"}},
		{"**", []string{"a", "a/b", ""}, nil},
		{"a**b", []string{"ab", "axb"}, []string{"a/b"}},
		{"*", []string{"a", ".a"}, []string{"a/b"}},
		{"", []string{""}, []string{"a"}},
	} {
		p, err := glob.Compile(test.pattern)
		if err != nil {
			t.Errorf("%q: %v", test.pattern, err)
			continue
		}
		for _, path := range test.yes {
			if !p.Match(path) {
				t.Errorf("%q does not match %q", test.pattern, path)
			}
		}
		for _, path := range test.no {
			if p.Match(path) {
				t.Errorf("%q matches %q", test.pattern, path)
			}
		}
	}
}

func TestAnInvalidPatternIsReported(t *testing.T) {
	for pattern, want := range map[string]string{
		"[":                         "unclosed character class; missing ']'",
		"a[b":                       "unclosed character class; missing ']'",
		"[]":                        "unclosed character class; missing ']'",
		"[z-a]":                     "invalid range; 'z' > 'a'",
		"[[:x:]]":                   "unknown character class name",
		"{a,b":                      "unclosed alternate group; missing '}'",
		"a}":                        "unopened alternate group; missing '{'",
		`a\`:                        `dangling '\'`,
		strings.Repeat("{a,b}", 12): "more than 1000 alternatives",
	} {
		if _, err := glob.Compile(pattern); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", pattern, err, want)
		}
	}
}

func TestAPatternWithManyStarsEnds(t *testing.T) {
	p, err := glob.Compile(strings.Repeat("**/*a", 30) + "b")
	if err != nil {
		t.Fatal(err)
	}
	if p.Match(strings.Repeat("a/", 200)) {
		t.Error("it matches")
	}
}

// naive converts a pattern to a regular expression.
func naive(pattern []string) *regexp.Regexp {
	var b strings.Builder
	for i, piece := range pattern {
		switch piece {
		case "**/":
			if i == 0 || strings.HasSuffix(pattern[i-1], "/") {
				b.WriteString("(.*/)?")
			} else {
				b.WriteString("[^/]*/")
			}
		case "*":
			b.WriteString("[^/]*")
		case "?":
			b.WriteString("[^/]")
		case "[!a]":
			b.WriteString("[^a/]")
		case "[a-c]", "a", "b", "/", "é":
			b.WriteString(piece)
		case "{a,bé}":
			b.WriteString("(a|bé)")
		}
	}
	return regexp.MustCompile("^(?s:" + b.String() + ")$")
}

// TestMatchesAsARegularExpressionWould compares with the obvious translation.
func TestMatchesAsARegularExpressionWould(t *testing.T) {
	pieces := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "é", "/", "*", "**/", "?", "[a-c]", "[!a]", "{a,bé}"}), 0, 6)
	paths := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "é", "/"}), 0, 8)
	rapid.Check(t, func(t *rapid.T) {
		pattern := pieces.Draw(t, "pattern")
		for i, piece := range pattern {
			if i > 0 && pattern[i-1] == "*" && piece[0] == '*' {
				return // two pieces form a longer operator
			}
		}
		p, err := glob.Compile(strings.Join(pattern, ""))
		if err != nil {
			t.Fatal(err)
		}
		want := naive(pattern)
		for range 20 {
			path := strings.Join(paths.Draw(t, "path"), "")
			if got := p.Match(path); got != want.MatchString(path) {
				t.Fatalf("%q and %q: %v, %s says otherwise", pattern, path, got, want)
			}
		}
	})
}

func FuzzPatterns(f *testing.F) {
	f.Add("{a,[b-d]}**/*.\\x", "a/b")
	f.Add("[[:alpha:]-", "é")
	f.Fuzz(func(t *testing.T, pattern, path string) {
		if p, err := glob.Compile(pattern); err == nil {
			p.Match(path)
		}
		glob.Git(pattern).Match(path)
	})
}
