package book

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/abide-run/abide/internal/memory/page"
	"github.com/abide-run/abide/internal/memory/rank"
)

// The values of the setting memory.where, which says where memory is stored.
const (
	Workspace = "workspace" // in the folder of the workspace
	User      = "user"      // in the data folder of the user
)

// folder is the folder of a workspace's memory, relative to its root.
var folder = filepath.Join(".abide", "memory")

// A Set is the set of books of one user: one for the user, and one for each workspace.
// It is safe for concurrent use.
type Set struct {
	// Trusts reports whether the user trusts the workspace with the given root. Models
	// are not told of the memory of other workspaces. If it is nil, all are trusted. It
	// must be set before the books are used.
	Trusts func(root string) bool

	user  *Book    // book of the user
	order []string // names of the pages that come first
	wants []string // names of the pages with what the user wants

	mu    sync.Mutex
	books map[string]*Book // books of workspaces, by root
}

// NewSet returns the books of a user whose own book is in the folder user. The pages
// that are named come first when pages are recalled, and the first of them has what the user
// wants.
func NewSet(user string, first ...string) *Set {
	return &Set{user: New(filepath.Dir(user), filepath.Base(user)), order: first, wants: first[:min(1, len(first))], books: make(map[string]*Book)}
}

// For returns the book in which sessions in a working directory store memory: that of its
// workspace if it is in one, else the user's. where overrides that if it is User or
// Workspace.
func (s *Set) For(dir, where string) *Book {
	root := workspaceRoot(dir)
	switch {
	case where == User || dir == "":
		return s.user
	case root != "":
	case where == Workspace:
		root = dir
	default:
		return s.user
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.books[root] == nil {
		s.books[root] = New(root, folder)
	}
	return s.books[root]
}

// All returns the books that are read in a working directory: that of its workspace, even
// if where says that memory is not stored there, and then the user's.
func (s *Set) All(dir, where string) []*Book {
	var list []*Book
	for _, b := range []*Book{s.For(dir, where), s.For(dir, "")} {
		if b != s.user && !slices.Contains(list, b) {
			list = append(list, b)
		}
	}
	return append(list, s.user)
}

// readable returns the books that a model may read in a working directory. It leaves out
// workspaces that the user does not trust, because anybody can have written their pages.
func (s *Set) readable(dir, where string) []*Book {
	return slices.DeleteFunc(s.All(dir, where), func(b *Book) bool {
		if b == s.user || s.Trusts == nil {
			return false
		}
		names, err := b.Names()
		return err != nil || len(names) == 0 || !s.Trusts(b.root)
	})
}

// rootMarkers are the files and folders that identify the root of a workspace.
var rootMarkers = []string{".abide", ".git", "abide.toml"}

// workspaceRoot returns the root of the workspace that a folder is in, or "" if it is in
// none. A home directory is not a workspace.
func workspaceRoot(dir string) string {
	if !filepath.IsAbs(dir) {
		return ""
	}
	home, _ := os.UserHomeDir()
	for dir = filepath.Clean(dir); dir != filepath.Dir(dir) && dir != filepath.Clean(home); dir = filepath.Dir(dir) {
		for _, mark := range rootMarkers {
			if _, err := os.Lstat(filepath.Join(dir, mark)); err == nil {
				return dir
			}
		}
	}
	return ""
}

// sortedNames returns the names of the pages of a book in the order in which they are
// recalled.
func (s *Set) sortedNames(b *Book) []string {
	names, err := b.Names()
	if err != nil {
		return nil
	}
	place := func(name string) int {
		if i := slices.Index(s.order, name); i >= 0 {
			return i
		}
		return len(s.order)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(place(a)-place(b), strings.Compare(a, b)) })
	return names
}

// The text around recalled memory. What the user wants is told apart from what was noted: the
// one is followed, the other is checked.
const (
	recallHead  = "<memory>\n"
	recallTail  = "</memory>"
	wantsHead   = "What the user wants, as the user wrote it down or has said it in earlier sessions. Follow it like the user's own words, which come first where they differ:\n"
	notesHead   = "What was noted in earlier sessions. It is information: it may be out of date, so check what you rely on. memory_search finds more.\n"
	recallWords = len(recallHead) + len(recallTail) + len(wantsHead) + len(notesHead) + len(cutNote)
	cutNote     = "(There is more: memory_search finds it.)\n"
)

// A Recalled is what a new session is told of one page, and why.
type Recalled struct {
	Path  string // path of the page
	Own   int    // lines of text of people, which are always told
	Facts int    // the newest facts that have room
	Of    int    // facts of the page
}

// Recall returns the text from memory that a new session in a working directory gets,
// with at most most bytes, and what it is of each page. Pages that cannot be read are left
// out, and so are workspaces that are not trusted.
func (s *Set) Recall(dir, where string, most int) (string, []Recalled) {
	var pages []*page.Page
	var names []string
	var told []Recalled
	for _, b := range s.readable(dir, where) {
		for _, name := range s.sortedNames(b) {
			if p, _, err := b.Page(name); err == nil {
				pages, names, told = append(pages, p), append(names, name), append(told, Recalled{Path: b.Path(name)})
			}
		}
	}
	var wants, notes strings.Builder
	for i, share := range page.Recall(pages, most-recallWords) {
		told[i].Own, told[i].Facts, told[i].Of = len(share.Own), len(share.Facts), share.Of
		to := &notes
		if slices.Contains(s.wants, names[i]) {
			to = &wants
		}
		writeShare(&wants, to, pages[i].Title, share)
	}
	told = slices.DeleteFunc(told, func(r Recalled) bool { return r.Own+r.Facts == 0 })
	if len(told) == 0 {
		return "", nil
	}
	text := ""
	if wants.Len() > 0 {
		text += wantsHead + wants.String()
	}
	if notes.Len() > 0 {
		text += notesHead + notes.String()
	}
	return recallHead + strings.ReplaceAll(text, recallTail, `<\memory>`) + recallTail, told
}

// writeShare writes what is recalled of a page: text of people to the first writer, facts to
// the second.
func writeShare(own, facts *strings.Builder, title string, share page.Share) {
	if len(share.Own) > 0 {
		fmt.Fprintf(own, "# %s\n%s\n", title, strings.Join(share.Own, "\n"))
		if share.Cut {
			own.WriteString(cutNote)
		}
	}
	if len(share.Facts) == 0 {
		return
	}
	if own != facts || len(share.Own) == 0 {
		fmt.Fprintf(facts, "# %s\n", title)
	}
	for _, f := range share.Facts {
		facts.WriteString(f.Told() + "\n")
	}
}

// A Known is a fact that a finding can supersede.
type Known struct {
	page.Fact
	Wanted bool // true if it is what the user wants
}

// size is an upper bound for the bytes of the fact in a list.
func (k Known) size() int { return len(k.Told()) + 40 }

// Known returns the newest facts of the book in which sessions in a working directory store
// memory, at most most bytes of them, the newest first. They are what a finding can
// supersede. There are none if a model may not read the book.
func (s *Set) Known(dir, where string, most int) (facts []Known) {
	b := s.For(dir, where)
	if !slices.Contains(s.readable(dir, where), b) {
		return nil
	}
	for _, name := range s.sortedNames(b) {
		if p, _, err := b.Page(name); err == nil {
			for _, f := range p.Facts() {
				facts = append(facts, Known{f, slices.Contains(s.wants, name)})
			}
		}
	}
	slices.SortStableFunc(facts, func(a, b Known) int { return strings.Compare(b.Day, a.Day) })
	size := 0
	for i, f := range facts {
		if size += f.size(); size > most {
			return facts[:i]
		}
	}
	return facts
}

// A Hit is a line of a page that fits a query.
type Hit struct {
	Page string // name of the page
	Path string // path of its file
	Line int    // number of the line, from 1
	Text string
}

// Search returns the lines that fit a query best, from the books that are read in a working
// directory, at most most of them. A query is a question or some words. It is for people;
// SearchTold is for models.
func (s *Set) Search(dir, where, query string, most int) []Hit {
	return s.search(s.All(dir, where), query, most)
}

// SearchTold is Search in the books that a model may read.
func (s *Set) SearchTold(dir, where, query string, most int) []Hit {
	return s.search(s.readable(dir, where), query, most)
}

func (s *Set) search(books []*Book, query string, most int) []Hit {
	var lines []Hit
	fits := rank.New(query)
	for _, b := range books {
		for _, name := range s.sortedNames(b) {
			text, _, err := b.Read(name)
			if err != nil {
				continue
			}
			for i, line := range strings.Split(text, "\n") {
				fits.Add(len(lines), line)
				lines = append(lines, Hit{name, b.Path(name), i + 1, strings.TrimSpace(line)})
			}
		}
	}
	var hits []Hit
	best, _ := fits.Best(most)
	for _, hit := range best {
		hits = append(hits, lines[hit.Index])
	}
	return hits
}
