// Package lazyregexp holds regular expressions that are compiled when they are first used.
//
// A compiled expression takes memory, and compiling it takes more. Variables of packages
// are made in every process at its start, also in those that never match anything: the
// launcher of a command, a keeper, a server without sessions. Expressions in variables of
// packages are therefore of this type. A test in archtest compiles all of them, so that a
// mistake in one is not found at its first use.
package lazyregexp

import (
	"regexp"
	"sync"
)

// A Regexp is a regular expression that is compiled at its first use. It is safe for
// concurrent use. Its methods are those of regexp.Regexp.
type Regexp struct {
	pattern  string
	compile  sync.Once
	compiled *regexp.Regexp
}

// New returns the regular expression of a pattern. Its first use panics if the pattern is
// not valid.
func New(pattern string) *Regexp { return &Regexp{pattern: pattern} }

func (r *Regexp) get() *regexp.Regexp {
	r.compile.Do(func() { r.compiled = regexp.MustCompile(r.pattern) })
	return r.compiled
}

// MatchString is that of regexp.Regexp.
func (r *Regexp) MatchString(s string) bool {
	return r.get().MatchString(s)
}

// Match is that of regexp.Regexp.
func (r *Regexp) Match(b []byte) bool {
	return r.get().Match(b)
}

// FindStringIndex is that of regexp.Regexp.
func (r *Regexp) FindStringIndex(s string) []int {
	return r.get().FindStringIndex(s)
}

// FindStringSubmatch is that of regexp.Regexp.
func (r *Regexp) FindStringSubmatch(s string) []string {
	return r.get().FindStringSubmatch(s)
}

// FindAllStringSubmatch is that of regexp.Regexp.
func (r *Regexp) FindAllStringSubmatch(s string, n int) [][]string {
	return r.get().FindAllStringSubmatch(s, n)
}

// FindAllStringSubmatchIndex is that of regexp.Regexp.
func (r *Regexp) FindAllStringSubmatchIndex(s string, n int) [][]int {
	return r.get().FindAllStringSubmatchIndex(s, n)
}

// ReplaceAllString is that of regexp.Regexp.
func (r *Regexp) ReplaceAllString(src, repl string) string {
	return r.get().ReplaceAllString(src, repl)
}

// ReplaceAllLiteralString is that of regexp.Regexp.
func (r *Regexp) ReplaceAllLiteralString(src, repl string) string {
	return r.get().ReplaceAllLiteralString(src, repl)
}

// ReplaceAllStringFunc is that of regexp.Regexp.
func (r *Regexp) ReplaceAllStringFunc(src string, repl func(string) string) string {
	return r.get().ReplaceAllStringFunc(src, repl)
}
