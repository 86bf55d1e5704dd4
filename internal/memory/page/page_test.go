package page_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/abide-run/abide/internal/memory/page"
	_ "github.com/abide-run/abide/internal/test/seedtest"
)

const decisions = `---
title: Decisions
---

My own remark.

- The log is kept in SQLite. [s1#12-15, s2#7]
- Not a fact: it has no source.
- Nor is this. [see the manual]
- Tokens are compared in constant time. [s1#20]
`

func parse(t testing.TB, text string) *page.Page {
	t.Helper()
	p, err := page.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func fact(text string, sources ...page.Source) page.Fact {
	return page.Fact{Text: text, Sources: sources}
}

func from(session string, first, last int64) page.Source {
	return page.Source{Session: session, First: first, Last: last}
}

func TestAPage(t *testing.T) {
	p := parse(t, decisions)
	if p.Format() != decisions {
		t.Errorf("formatted it is:\n%s", p.Format())
	}
	want := []page.Fact{fact("The log is kept in SQLite.", from("s1", 12, 15), from("s2", 7, 7)), fact("Tokens are compared in constant time.", from("s1", 20, 20))}
	if got := p.Facts(); !reflect.DeepEqual(got, want) {
		t.Errorf("facts %+v, want %+v", got, want)
	}
}

func TestDamagedPagesAreRefusedWithTheLine(t *testing.T) {
	for text, want := range map[string]string{
		"---\ntitle: x\n":       "line 1: the front matter has no end",
		"---\nowner: me\n---\n": "line 2: \"owner: me\" is not known",
		"a\xffb":                "not UTF-8",
	} {
		if _, err := page.Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestFactsAreAddedJoinedAndNeverForNothing(t *testing.T) {
	p := parse(t, decisions)
	next, dropped, err := p.Add([]page.Fact{
		fact("the log is kept in  SQLite", from("s3", 4, 4), from("s1", 16, 18)),
		fact("New.", from("a session/[x], #1", 1, 1)),
	})
	if err != nil || len(dropped) > 0 {
		t.Fatal(err, dropped)
	}
	text := next.Format()
	want := "- The log is kept in SQLite. [s1#12-18, s2#7, s3#4]\n- New. [a%20session%2F%5Bx%5D%2C%20%231#1]\n"
	if !strings.HasSuffix(text, want) || !strings.Contains(text, "My own remark.") || strings.Count(text, "SQLite") != 1 {
		t.Errorf("the page is:\n%s", text)
	}
	if again := parse(t, text); again.Format() != text || !reflect.DeepEqual(again.Facts(), next.Facts()) {
		t.Errorf("read again it is:\n%s", again.Format())
	}
	if p.Format() != decisions {
		t.Error("the old page was changed")
	}
	if _, _, err := next.Add([]page.Fact{fact("New.", from("s3", 4, 4))}); err != nil {
		t.Errorf("another source is a change: %v", err)
	}
	for _, facts := range [][]page.Fact{nil, {fact("NEW", from("a session/[x], #1", 1, 1))}} {
		if _, _, err := next.Add(facts); !errors.Is(err, page.ErrUnchanged) {
			t.Errorf("adding %v: %v", facts, err)
		}
	}
}

func TestFactsThatCannotBeKeptAreRefused(t *testing.T) {
	for name, f := range map[string]page.Fact{
		"no text":   fact("  ", from("s", 1, 1)),
		"too long":  fact(strings.Repeat("x", page.MostLine+1), from("s", 1, 1)),
		"no source": fact("x"),
		"no range":  fact("x", from("s", 5, 4)),
		"no name":   fact("x", from("", 1, 1)),
		"no event":  fact("x", from("s", 0, 1)),
	} {
		if _, _, err := page.New("t").Add([]page.Fact{f}); err == nil {
			t.Errorf("%s: it was taken", name)
		}
	}
}

func TestAPageStaysWithinItsSizeAndKeepsWhatPeopleWrote(t *testing.T) {
	p := parse(t, "Mine.\n")
	for i := range 200 {
		next, dropped, err := p.Add([]page.Fact{fact(fmt.Sprintf("Fact %d: %s", i, strings.Repeat("x", 400)), from("s", int64(i+1), int64(i+1)))})
		if err != nil {
			t.Fatal(err)
		}
		if len(next.Format()) > page.Most || !strings.Contains(next.Format(), "Mine.") {
			t.Fatalf("%d bytes", len(next.Format()))
		}
		if len(dropped) > 0 && !reflect.DeepEqual(dropped, p.Facts()[:len(dropped)]) {
			t.Fatalf("dropped %v, want the oldest", dropped)
		}
		p = next
	}
	own := parse(t, strings.Repeat("my own text\n", page.Most/10))
	if _, _, err := own.Add([]page.Fact{fact("x", from("s", 1, 1))}); err == nil {
		t.Error("a page of too much own text grew")
	}
}

func TestForgettingASessionRemovesWhatCameOnlyFromIt(t *testing.T) {
	p := parse(t, decisions+"- Last. [s3#1]\n")
	next, err := p.Forget("s1")
	if err != nil {
		t.Fatal(err)
	}
	want := "---\ntitle: Decisions\n---\n\nMy own remark.\n\n- The log is kept in SQLite. [s2#7]\n- Not a fact: it has no source.\n- Nor is this. [see the manual]\n- Last. [s3#1]\n"
	if text := next.Format(); text != want {
		t.Errorf("the page is:\n%s", text)
	}
	if _, err := next.Forget("s1"); !errors.Is(err, page.ErrUnchanged) {
		t.Errorf("forgotten twice: %v", err)
	}
}

func TestWhatIsRecalledFitsAndIsTheNewest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var pages []*page.Page
		own := 0
		for i := range rapid.IntRange(0, 4).Draw(t, "pages") {
			text := ""
			for k := range rapid.IntRange(0, 3).Draw(t, "own") {
				line := fmt.Sprintf("own %d %d", i, k)
				text += line + "\n"
				own += len(line) + 1
			}
			p, err := page.Parse(fmt.Sprintf("---\ntitle: Page %d\n---\n\n%s", i, text))
			if err != nil {
				t.Fatal(err)
			}
			own += len("# Page 1\n")
			for k := range rapid.IntRange(0, 20).Draw(t, "facts") {
				p, _, _ = p.Add([]page.Fact{fact(fmt.Sprintf("fact %d", k), from("s", 1, 1))})
			}
			pages = append(pages, p)
		}
		most := rapid.IntRange(0, 600).Draw(t, "most")
		size := 0
		for i, share := range page.Recall(pages, most) {
			for _, line := range share.Own {
				size += len(line) + 1
			}
			for _, f := range share.Facts {
				size += len(f.Told()) + 1
			}
			facts := pages[i].Facts()
			if n := len(share.Facts); n > 0 && share.Facts[n-1].Text != facts[len(facts)-1].Text || share.Of != len(facts) {
				t.Fatalf("the newest fact of page %d is missing: %+v", i, share)
			}
			if share.Cut != (len(share.Own) < strings.Count(pages[i].Format(), "own ")) {
				t.Fatalf("page %d: %+v", i, share)
			}
			if own <= most && share.Cut {
				t.Fatalf("%d bytes of people's own text are cut, with room for %d", own, most)
			}
		}
		if size > most {
			t.Fatalf("%d bytes, want at most %d", size, most)
		}
	})
}

// A person's remark at the top of a page is told however many facts came after it.
func TestWhatPeopleWroteIsRecalledBeforeFacts(t *testing.T) {
	p := parse(t, "---\ntitle: Notes\n---\n\nNever push to main.\n")
	for k := range 200 {
		p, _, _ = p.Add([]page.Fact{fact(fmt.Sprintf("fact %d", k), from("s", 1, 1))})
	}
	share := page.Recall([]*page.Page{p}, 200)[0]
	if len(share.Own) != 1 || share.Own[0] != "Never push to main." || len(share.Facts) == 0 || len(share.Facts) == 200 {
		t.Errorf("recalled %+v", share)
	}
}

func TestAFactHasADayAndCanBeSuperseded(t *testing.T) {
	p := parse(t, decisions)
	next, _, err := p.Add([]page.Fact{{Text: "the log is kept in sqlite", Day: "2026-11-18", Sources: []page.Source{from("s9", 1, 1)}}, {Text: "Old.", Day: "2026-01-01", Sources: []page.Source{from("s9", 2, 2)}}})
	if err != nil {
		t.Fatal(err)
	}
	text := next.Format()
	if !strings.Contains(text, "- The log is kept in SQLite. [2026-11-18, s1#12-15, s2#7, s9#1]\n- Old. [2026-01-01, s9#2]\n") {
		t.Fatalf("the page is:\n%s", text)
	}
	again := parse(t, text)
	if facts := again.Facts(); facts[1].Day != "2026-11-18" || facts[1].Told() != "- The log is kept in SQLite. (2026-11-18)" || facts[0].Day != "" {
		t.Errorf("read again: %+v", facts)
	}
	less, gone := again.Supersede([]string{"OLD", "My own remark."})
	if len(gone) != 1 || gone[0].Text != "Old." || !strings.Contains(less.Format(), "My own remark.") || strings.Contains(less.Format(), "Old.") {
		t.Errorf("superseded %+v, left:\n%s", gone, less.Format())
	}
	if _, _, err := p.Add([]page.Fact{{Text: "x", Day: "yesterday", Sources: []page.Source{from("s", 1, 1)}}}); err == nil {
		t.Error("a day that is none was taken")
	}
}

// A naive model: a map from text to the set of events.
func TestAddingFactsKeepsEverySource(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := page.New("t")
		naive := map[string]map[string]bool{}
		for range rapid.IntRange(1, 20).Draw(t, "adds") {
			text := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "text")
			first := rapid.Int64Range(1, 12).Draw(t, "first")
			s := from(rapid.SampledFrom([]string{"s", "t"}).Draw(t, "session"), first, first+rapid.Int64Range(0, 3).Draw(t, "more"))
			next, _, err := p.Add([]page.Fact{fact(text, s)})
			if errors.Is(err, page.ErrUnchanged) {
				next = p
			} else if err != nil {
				t.Fatal(err)
			}
			if p = next; naive[text] == nil {
				naive[text] = map[string]bool{}
			}
			for at := s.First; at <= s.Last; at++ {
				naive[text][fmt.Sprint(s.Session, at)] = true
			}
		}
		got := map[string]map[string]bool{}
		again, err := page.Parse(p.Format())
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range again.Facts() {
			got[f.Text] = map[string]bool{}
			for _, s := range f.Sources {
				for at := s.First; at <= s.Last; at++ {
					got[f.Text][fmt.Sprint(s.Session, at)] = true
				}
			}
		}
		if !reflect.DeepEqual(got, naive) {
			t.Fatalf("got %v, want %v", got, naive)
		}
	})
}

func FuzzAPageThatWasFormattedStaysTheSame(f *testing.F) {
	f.Add(decisions)
	f.Add("---\n---\n- a [s#1]\r\n")
	f.Add("- a [s#1-, s#2]\n\n\n- b  c [%zz#1]")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := page.Parse(text)
		if err != nil {
			return
		}
		once := p.Format()
		q, err := page.Parse(once)
		if err != nil {
			t.Fatalf("what was formatted is refused: %v\n%q", err, once)
		}
		if twice := q.Format(); twice != once || !slices.EqualFunc(p.Facts(), q.Facts(), func(a, b page.Fact) bool { return reflect.DeepEqual(a, b) }) {
			t.Fatalf("once %q, twice %q", once, twice)
		}
	})
}

func FuzzSources(f *testing.F) {
	for _, seed := range []string{"s#1", "a%20b#1-2", "#", "s#1-1", "s#-1", "s#+1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := page.ParseSource(text)
		if err != nil {
			return
		}
		if again, err := page.ParseSource(s.String()); err != nil || again != s {
			t.Fatalf("%q became %+v and then %+v, %v", text, s, again, err)
		}
	})
}
