// Package glob matches paths with patterns.
//
//	?      one character except a slash
//	*      any characters except a slash
//	[a-z]  one of these characters; [!a-z] and [^a-z] one of the others; also
//	       [[:alpha:]] and the like
//	**     as a whole name: any number of folders, or everything below
//	{a,b}  one of these, only in patterns made with [Compile]
//	\x     the character x itself
//
// A pattern matches a whole path. Paths have no leading slash.
package glob

import "strings"

// A Pattern is a compiled pattern. It is safe for concurrent use.
type Pattern struct {
	any []alternative // the pattern matches if one of them does
}

// Compile compiles a pattern as people write them for tools. Characters are Unicode
// characters.
func Compile(pattern string) (*Pattern, error) {
	texts, err := expand(pattern)
	if err != nil {
		return nil, err
	}
	p := new(Pattern)
	for _, text := range texts {
		if err := wellFormed(text); err != nil {
			return nil, err
		}
		p.any = append(p.any, newAlternative(text, true))
	}
	return p, nil
}

// Git compiles a pattern as git understands it: characters are bytes, braces are not
// special, and an invalid pattern matches nothing.
func Git(pattern string) *Pattern {
	return &Pattern{[]alternative{newAlternative(pattern, false)}}
}

// Match reports whether the pattern matches a path.
func (p *Pattern) Match(path string) bool {
	for i := range p.any {
		if p.any[i].match(path) {
			return true
		}
	}
	return false
}

// An alternative is a pattern without braces. Most patterns are a name or an ending,
// which are matched without a matcher.
type alternative struct {
	kind  kind
	text  string
	runes bool
}

type kind int

const (
	general kind = iota
	literal      // the path equals text
	ending       // the path is a name that ends with text
)

func newAlternative(text string, runes bool) alternative {
	const special = `*?[\`
	if !strings.ContainsAny(text, special) {
		return alternative{literal, text, runes}
	}
	if rest := strings.TrimPrefix(text, "*"); rest != text && !strings.ContainsAny(rest, special+"/") {
		return alternative{ending, rest, runes}
	}
	return alternative{general, text, runes}
}

func (a *alternative) match(path string) bool {
	switch a.kind {
	case literal:
		return path == a.text
	case ending:
		return strings.HasSuffix(path, a.text) && !strings.Contains(path, "/")
	}
	m := matcher{pattern: a.text, runes: a.runes, budget: maxSteps}
	return m.match(0, path) == yes
}
