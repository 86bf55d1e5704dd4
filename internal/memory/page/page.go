// Package page implements pages of memory: Markdown that people read and edit, in which
// each fact names the events that it comes from.
//
//	---
//	title: Decisions
//	---
//
//	- The log is kept in SQLite. [2026-11-18, s1#12-15, s2#7]
//
// A list item that ends with sources is a fact; before them comes the day on which it was last
// said, if that is known. Everything else is text of people: it
// stays where it is, and no job ever removes it.
//
//   - [Parse] and [Page.Format] are inverse to each other for facts. Parsing and
//     formatting a formatted page does not change it.
//   - A page has at most [Most] bytes. A change that would make it larger drops its
//     oldest facts, and returns them.
//   - A change that changes nothing is an error.
package page

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/abide-run/abide/internal/lazyregexp"
)

// The limits of a page.
const (
	Most     = 32 << 10 // bytes of a page
	MostLine = 1000     // bytes of the text of a fact
)

// A Fact is one fact of a page, which is one line.
type Fact struct {
	Text    string
	Day     string   // day on which it was last said, like 2026-11-18; empty if it is not known
	Sources []Source // sources of the fact, at least one
}

// IsDay reports whether a text is a day.
func IsDay(text string) bool {
	_, err := time.Parse(time.DateOnly, text)
	return err == nil
}

// A Page is a list of facts and lines of other text.
type Page struct {
	Title string
	lines []line
}

// A line is a fact, or a line of text of people.
type line struct {
	fact Fact   // zero if the line is not a fact
	own  string // text of people
}

func (l line) isFact() bool { return len(l.fact.Sources) > 0 }

// ErrUnchanged is the error of a change that changes nothing.
var ErrUnchanged = errors.New("the page says this already: nothing was changed")

// New returns an empty page.
func New(title string) *Page { return &Page{Title: tidy(title)} }

const fence = "---"

// Parse reads a page.
func Parse(text string) (*Page, error) {
	if !utf8.ValidString(text) {
		return nil, errors.New("the page is not UTF-8 text: mend it, or take an earlier version back")
	}
	p := new(Page)
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	if lines[0] == fence {
		end := slices.Index(lines[1:], fence)
		if end < 0 {
			return nil, errors.New("line 1: the front matter has no end: put a line with --- after it")
		}
		if err := p.front(lines[1 : 1+end]); err != nil {
			return nil, err
		}
		lines = lines[end+2:]
	}
	for _, l := range lines {
		p.lines = append(p.lines, parseLine(l))
	}
	p.trim()
	return p, nil
}

// front reads the front matter. Unknown keys are an error, because they would be lost.
func (p *Page) front(lines []string) error {
	for i, l := range lines {
		key, value, found := strings.Cut(l, ":")
		switch key = strings.TrimSpace(key); {
		case strings.TrimSpace(l) == "":
		case !found || key != "title":
			return fmt.Errorf("line %d: %q is not known here: the front matter has a title and nothing else", i+2, l)
		default:
			p.Title = tidy(value)
		}
	}
	return nil
}

// trim removes blank lines at both ends.
func (p *Page) trim() {
	blank := func(l line) bool { return !l.isFact() && strings.TrimSpace(l.own) == "" }
	for len(p.lines) > 0 && blank(p.lines[0]) {
		p.lines = p.lines[1:]
	}
	for len(p.lines) > 0 && blank(p.lines[len(p.lines)-1]) {
		p.lines = p.lines[:len(p.lines)-1]
	}
}

// aFact matches a list item with sources at its end.
var aFact = lazyregexp.New(`^- (.*\S) \[([^\[\]]+)\]\s*$`)

func parseLine(text string) line {
	if m := aFact.FindStringSubmatch(text); m != nil {
		if f := (Fact{Text: tidy(m[1])}); f.Text != "" && f.parseSources(m[2]) {
			return line{fact: f}
		}
	}
	return line{own: strings.TrimRight(text, " \t\r")}
}

func (f *Fact) parseSources(text string) bool {
	var list []Source
	first, rest, more := strings.Cut(text, ",")
	if more && IsDay(strings.TrimSpace(first)) {
		f.Day, text = strings.TrimSpace(first), rest
	}
	for part := range strings.SplitSeq(text, ",") {
		s, err := ParseSource(strings.TrimSpace(part))
		if err != nil {
			return false
		}
		list = append(list, s)
	}
	f.Sources = merge(nil, list)
	return true
}

// tidy returns a text as one line with single spaces.
func tidy(text string) string { return strings.Join(strings.Fields(text), " ") }

// Format returns the text of a page.
func (p *Page) Format() string {
	var w strings.Builder
	fmt.Fprintf(&w, "%s\ntitle: %s\n%s\n\n", fence, p.Title, fence)
	for _, l := range p.lines {
		w.WriteString(l.format())
		w.WriteByte('\n')
	}
	return w.String()
}

func (l line) format() string {
	if !l.isFact() {
		return l.own
	}
	var sources []string
	if l.fact.Day != "" {
		sources = append(sources, l.fact.Day)
	}
	for _, s := range l.fact.Sources {
		sources = append(sources, s.String())
	}
	return "- " + l.fact.Text + " [" + strings.Join(sources, ", ") + "]"
}

// Facts returns the facts of a page, oldest first.
func (p *Page) Facts() (list []Fact) {
	for _, l := range p.lines {
		if l.isFact() {
			list = append(list, l.fact)
		}
	}
	return list
}

// Same reports whether two texts are the same fact.
func Same(a, b string) bool { return same(a) == same(b) }

// same returns a key that is equal for two facts with the same text, ignoring case and
// final punctuation.
func same(text string) string { return strings.ToLower(strings.TrimRight(tidy(text), ".!")) }
