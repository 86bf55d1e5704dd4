package files

import (
	"slices"
	"strings"
	"sync"
)

// A shelf collects what a search finds, in groups: lines by file, or paths by
// folder. It keeps the first groups by name with the first of their items, and
// counts everything. It is safe for concurrent use.
type shelf struct {
	groupsKept, itemsKept int

	mu     sync.Mutex
	groups []*group // by name
	count  int64    // of what was put, in all
	puts   int64
}

// A group is what belongs together.
type group struct {
	name  string
	count int64
	items []item
}

// An item is a line of a file or a path in a folder.
type item struct {
	text    string
	number  int64 // of a line
	context bool  // the line does not match
	counts  bool  // it begins a match
}

// put counts something in a group, and has it kept unless the group comes after
// too many others. A group that is not kept never will be, so that counts are
// exact.
func (s *shelf) put(name string, count int64, keep func(g *group)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count += count
	s.puts++
	i, found := slices.BinarySearchFunc(s.groups, name, func(g *group, name string) int { return strings.Compare(g.name, name) })
	if !found {
		if i >= s.groupsKept {
			return
		}
		s.groups = slices.Insert(s.groups, i, &group{name: name})
		s.groups = s.groups[:min(len(s.groups), s.groupsKept)]
	}
	s.groups[i].count += count
	keep(s.groups[i])
}

// putPath counts a path in the group of its folder, and keeps the first by name.
func (s *shelf) putPath(folder, name string, count int64) {
	s.put(folder, 1, func(g *group) {
		at, _ := slices.BinarySearchFunc(g.items, name, func(it item, name string) int { return strings.Compare(it.text, name) })
		if at >= s.itemsKept {
			return
		}
		g.items = slices.Insert(g.items, at, item{text: name, number: count, counts: true})
		g.items = g.items[:min(len(g.items), s.itemsKept)]
	})
}
