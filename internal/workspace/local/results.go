package local

import (
	"slices"
	"strings"
	"sync"

	"github.com/abide-run/abide/internal/workspace"
)

// results collects the results of a search in groups: lines by file, or paths by folder.
// It keeps the first groups by name with their first items, and counts everything. It is
// safe for concurrent use.
type results struct {
	groupsKept, itemsKept int // maximum numbers of groups, and of items of a group

	mu     sync.Mutex
	groups []*workspace.Group // kept groups, sorted by name
	count  int64              // sum of all counts
	puts   int64              // number of calls of put
}

// put adds to the count of a group, and calls keep unless the group comes after too many
// others. A group that is dropped once is never kept later, so that the counts of kept
// groups are exact.
func (s *results) put(name string, count int64, keep func(g *workspace.Group)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count += count
	s.puts++
	i, found := slices.BinarySearchFunc(s.groups, name, func(g *workspace.Group, name string) int { return strings.Compare(g.Name, name) })
	if !found {
		if i >= s.groupsKept {
			return
		}
		s.groups = slices.Insert(s.groups, i, &workspace.Group{Name: name})
		s.groups = s.groups[:min(len(s.groups), s.groupsKept)]
	}
	s.groups[i].Count += count
	keep(s.groups[i])
}

// putPath adds a path to the group of its folder, which keeps the first paths by name.
func (s *results) putPath(folder, name string, count int64) {
	s.put(folder, 1, func(g *workspace.Group) {
		at, _ := slices.BinarySearchFunc(g.Items, name, func(it workspace.Item, name string) int { return strings.Compare(it.Text, name) })
		if at >= s.itemsKept {
			return
		}
		g.Items = slices.Insert(g.Items, at, workspace.Item{Text: name, Number: count, Counts: true})
		g.Items = g.Items[:min(len(g.Items), s.itemsKept)]
	})
}

// bounded returns the groups without what a caller cannot show. A caller shows the items
// in order, or the first ones of each group, and stops when it has shown all the text that
// it can. Both take at least the bytes that are counted here.
func (s *results) bounded(l workspace.Limits) []workspace.Group {
	var list []workspace.Group
	inOrder, perGroup := l.Text, l.Text
	for _, g := range s.groups {
		if inOrder < 0 && perGroup < 0 {
			break
		}
		end, matches := 0, 0
		for i, it := range g.Items {
			if it.Counts {
				matches++
			}
			wanted := matches <= l.PerGroup && perGroup >= 0
			if inOrder < 0 && !wanted {
				break
			}
			if inOrder -= len(g.Name) + len(it.Text) + 1; wanted {
				perGroup -= len(it.Text) + 1
			}
			end = i + 1
		}
		perGroup--
		list = append(list, workspace.Group{Name: g.Name, Count: g.Count, Items: g.Items[:end]})
	}
	return list
}
