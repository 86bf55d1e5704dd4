package files

import (
	"slices"
	"strings"
	"sync"
)

// results collects the results of a search in groups: lines by file, or paths by folder.
// It keeps the first groups by name with their first items, and counts everything. It is
// safe for concurrent use.
type results struct {
	groupsKept, itemsKept int // maximum numbers of groups, and of items of a group

	mu     sync.Mutex
	groups []*group // kept groups, sorted by name
	count  int64    // sum of all counts
	puts   int64    // number of calls of put
}

// A group is the results in one file or folder.
type group struct {
	name  string
	count int64
	items []item
}

// An item is a line of a file or a path in a folder.
type item struct {
	text    string
	number  int64 // number of the line, or count of the path
	context bool  // true if the line does not match and is shown for context
	counts  bool  // true if the item counts as a match
}

// put adds to the count of a group, and calls keep unless the group comes after too many
// others. A group that is dropped once is never kept later, so that the counts of kept
// groups are exact.
func (s *results) put(name string, count int64, keep func(g *group)) {
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

// putPath adds a path to the group of its folder, which keeps the first paths by name.
func (s *results) putPath(folder, name string, count int64) {
	s.put(folder, 1, func(g *group) {
		at, _ := slices.BinarySearchFunc(g.items, name, func(it item, name string) int { return strings.Compare(it.text, name) })
		if at >= s.itemsKept {
			return
		}
		g.items = slices.Insert(g.items, at, item{text: name, number: count, counts: true})
		g.items = g.items[:min(len(g.items), s.itemsKept)]
	})
}
