// Package glob matches paths with patterns.
//
//   - any characters but a slash
//     ?      one character but a slash
//     [a-z]  one of these characters; [!a-z] and [^a-z] one that is not; also
//     [[:alpha:]] and the like
//     **     as a whole name: any number of folders, or everything below
//     {a,b}  either of these, in patterns made with [Compile] alone
//     \x     the character x itself
//
// A pattern matches a whole path. Paths have no leading slash.
package glob

import "strings"

// A Pattern is a compiled pattern. It is safe for concurrent use.
type Pattern struct {
	any []alternative // a path that matches one of them matches
}

// Compile makes a pattern as people write them for tools. Characters are those
// of Unicode.
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

// Git makes a pattern as git has it: characters are bytes, braces are nothing
// special, and a pattern that is not well formed matches nothing.
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

// An alternative is a pattern without braces. Most patterns are a name or an
// ending, and those are not worth interpreting.
type alternative struct {
	kind  kind
	text  string
	runes bool
}

type kind int

const (
	general kind = iota
	literal      // text itself
	ending       // text at the end of a name
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
