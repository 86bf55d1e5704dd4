package page

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Supersede returns a page without the facts that have one of the given texts, and those
// facts. Text of people stays, whatever it says.
func (p *Page) Supersede(texts []string) (next *Page, gone []Fact) {
	next = p.clone()
	next.lines = slices.DeleteFunc(next.lines, func(l line) bool {
		old := l.isFact() && slices.ContainsFunc(texts, func(text string) bool { return same(text) == same(l.fact.Text) })
		if old {
			gone = append(gone, l.fact)
		}
		return old
	})
	return next, gone
}

// Add returns a page with more facts. A fact that the page has already gets the new
// sources and the later day, and moves to the end. If the page becomes too long, its oldest facts are dropped
// and returned.
func (p *Page) Add(facts []Fact) (next *Page, dropped []Fact, err error) {
	next = p.clone()
	for _, f := range facts {
		f.Text = tidy(f.Text)
		if err := f.check(); err != nil {
			return nil, nil, err
		}
		next.add(f)
	}
	if dropped, err = next.shrink(); err != nil {
		return nil, nil, err
	}
	if next.Format() == p.Format() {
		return nil, nil, ErrUnchanged
	}
	return next, dropped, nil
}

func (p *Page) clone() *Page { return &Page{Title: p.Title, lines: slices.Clone(p.lines)} }

// check returns an error if the fact could not be parsed again as the same fact.
func (f Fact) check() error {
	switch {
	case f.Text == "":
		return errors.New("a fact without text")
	case len(f.Text) > MostLine:
		return fmt.Errorf("a fact of %d bytes: %d are allowed; say it more briefly", len(f.Text), MostLine)
	case f.Day != "" && !IsDay(f.Day):
		return fmt.Errorf("the fact %q is of the day %q: write it like 2026-11-18", f.Text, f.Day)
	case len(f.Sources) == 0:
		return fmt.Errorf("the fact %q does not say where it comes from", f.Text)
	}
	for _, s := range f.Sources {
		if err := s.check(); err != nil {
			return err
		}
	}
	return nil
}

func (p *Page) add(f Fact) {
	i := slices.IndexFunc(p.lines, func(l line) bool { return l.isFact() && same(l.fact.Text) == same(f.Text) })
	if i < 0 {
		p.lines = append(p.lines, line{fact: Fact{f.Text, f.Day, merge(nil, f.Sources)}})
		return
	}
	known := p.lines[i].fact
	sources := merge(known.Sources, f.Sources)
	if slices.Equal(sources, known.Sources) {
		return // it is not new, so it stays where it is
	}
	p.lines = append(slices.Delete(p.lines, i, i+1), line{fact: Fact{known.Text, max(known.Day, f.Day), sources}})
}

// shrink drops the oldest facts until the page is short enough.
func (p *Page) shrink() (dropped []Fact, err error) {
	size := len(p.Format())
	p.lines = slices.DeleteFunc(p.lines, func(l line) bool {
		if size <= Most || !l.isFact() {
			return false
		}
		size -= len(l.format()) + 1
		dropped = append(dropped, l.fact)
		return true
	})
	if size > Most {
		return nil, fmt.Errorf("the page %q has %d bytes of somebody's own text: %d are allowed; make it shorter", p.Title, size, Most)
	}
	return dropped, nil
}

// Forget returns the page without a session: facts that only came from it are removed,
// and other facts lose their sources in it.
func (p *Page) Forget(session string) (*Page, error) {
	next := &Page{Title: p.Title}
	changed := false
	for _, l := range p.lines {
		if l.isFact() {
			left := slices.DeleteFunc(slices.Clone(l.fact.Sources), func(s Source) bool { return s.Session == session })
			changed = changed || len(left) < len(l.fact.Sources)
			if len(left) == 0 {
				continue
			}
			l.fact.Sources = left
		}
		next.lines = append(next.lines, l)
	}
	if !changed {
		return nil, ErrUnchanged
	}
	next.trim()
	return next, nil
}

// A Share is what is recalled of a page.
type Share struct {
	Own   []string // text of people, in order
	Facts []Fact   // the newest facts, the oldest of them first
	Of    int      // number of facts that the page has
	Cut   bool     // true if not all text of people fits
}

// Recall returns what is recalled of pages: at most most bytes in total. What people wrote
// comes first, because they wrote it to be read; facts share the rest. Earlier pages get
// their share first.
func Recall(pages []*Page, most int) []Share {
	shares := make([]Share, len(pages))
	left := most
	for i, p := range pages {
		left -= shares[i].takeOwn(p, left)
	}
	for i, p := range pages {
		left -= shares[i].takeFacts(p, left/(len(pages)-i))
	}
	return shares
}

// blank reports whether a line has no text.
func blank(text string) bool { return strings.TrimSpace(text) == "" }

// takeOwn takes the text of people, as much as fits, and returns its size.
func (s *Share) takeOwn(p *Page, most int) (size int) {
	for _, l := range p.lines {
		if l.isFact() || blank(l.own) {
			continue
		}
		cost := len(l.own) + 1
		if size == 0 {
			cost += titleCost(p)
		}
		if size+cost > most {
			s.Cut = true
			break
		}
		size += cost
		s.Own = append(s.Own, l.own)
	}
	return size
}

// takeFacts takes the newest facts that fit, and returns their size.
func (s *Share) takeFacts(p *Page, most int) (size int) {
	facts := p.Facts()
	s.Of = len(facts)
	for i := len(facts) - 1; i >= 0; i-- {
		cost := len(facts[i].Told()) + 1
		if size == 0 {
			cost += titleCost(p)
		}
		if size+cost > most {
			break
		}
		size += cost
		s.Facts = facts[i:]
	}
	return size
}

// titleCost is the size of the line above the facts or the text of a page.
func titleCost(p *Page) int { return len("# ") + len(p.Title) + 1 }

// Told returns a fact as a model reads it: with its day, and without its sources, which
// mean nothing to a model.
func (f Fact) Told() string {
	if f.Day == "" {
		return "- " + f.Text
	}
	return "- " + f.Text + " (" + f.Day + ")"
}
