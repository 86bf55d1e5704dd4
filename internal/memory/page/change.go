package page

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Add returns a page with more facts. A fact that the page has already gets the new
// sources and moves to the end. If the page becomes too long, its oldest facts are dropped
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
		p.lines = append(p.lines, line{fact: Fact{f.Text, merge(nil, f.Sources)}})
		return
	}
	known := p.lines[i].fact
	sources := merge(known.Sources, f.Sources)
	if slices.Equal(sources, known.Sources) {
		return // it is not new, so it stays where it is
	}
	p.lines = append(slices.Delete(p.lines, i, i+1), line{fact: Fact{known.Text, sources}})
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

// Recall returns the newest lines of pages without their sources, with at most most bytes
// in total. Earlier pages come first, and get their share first.
func Recall(pages []*Page, most int) string {
	var w strings.Builder
	for i, p := range pages {
		share := (most - w.Len()) / (len(pages) - i)
		w.WriteString(p.recall(share))
	}
	return w.String()
}

func (p *Page) recall(most int) string {
	title := "# " + p.Title + "\n"
	left := most - len(title)
	first := len(p.lines)
	for first > 0 {
		if cost := len(p.lines[first-1].withoutSources()); cost > left {
			break
		} else {
			left -= cost
		}
		first--
	}
	if first == len(p.lines) {
		return ""
	}
	var w strings.Builder
	w.WriteString(title)
	for _, l := range p.lines[first:] {
		w.WriteString(l.withoutSources())
	}
	return w.String()
}

// withoutSources returns a line without its sources, which mean nothing to a model.
func (l line) withoutSources() string {
	if l.isFact() {
		return "- " + l.fact.Text + "\n"
	}
	return l.own + "\n"
}
