package files

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/approval/scope"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/workspace"
)

// withoutUnread returns the access of a search without the files that rules keep from being
// read. The folders that are searched were judged, and not each file in them. Rules with
// patterns cannot be part of a scope: the function reports, by the name of a file as the
// search returns it, whether one covers the file. It is nil if there are none.
func (c *grepCall) withoutUnread(ctx context.Context, at access, call tool.Call) (_ access, covered func(name string) bool, err error) {
	if len(call.Unread) == 0 {
		return at, nil, nil
	}
	real, err := at.leadTo(ctx, scope.Read, append(pathsOf(c.roots), c.dir))
	if err != nil {
		return at, nil, err
	}
	dirs := slices.Compact([]string{c.dir, real[len(c.roots)]})
	places, matches := approval.Unread(call.Unread, dirs)
	at.scope = at.scope.Denying(scope.Read, places...)
	if matches == nil {
		return at, nil, nil
	}
	return at, func(name string) bool { return matches(c.found(name, real)) }, nil
}

// found returns the path without links of a file that was found, given those of the roots.
func (c *grepCall) found(name string, real []string) string {
	path, longest := absolute(tool.Call{Dir: c.dir}, name), -1
	for i, root := range c.roots {
		rest, ok := strings.CutPrefix(name, root.prefix())
		if root.folder && ok && len(root.prefix()) > longest {
			path, longest = filepath.Join(real[i], rest), len(root.prefix())
		}
		if !root.folder && name == root.given {
			return real[i]
		}
	}
	return path
}

// leaveOut removes the files that a rule covers from what was found. What the search has
// counted and not returned may be in such files: then the numbers are of what is left.
func (c *grepCall) leaveOut(found *workspace.Found, covered func(name string) bool) {
	returned, left := int64(0), int64(0)
	for i := range found.Groups {
		g := &found.Groups[i]
		if c.mode == modeContent {
			returned += g.Count
			if covered(g.Name) {
				*g = workspace.Group{}
			}
			left += g.Count
			continue
		}
		returned += int64(len(g.Items))
		g.Items = slices.DeleteFunc(g.Items, func(it workspace.Item) bool { return covered(g.Name + it.Text) })
		g.Count = int64(len(g.Items))
		left += g.Count
	}
	found.Groups = slices.DeleteFunc(found.Groups, func(g workspace.Group) bool { return g.Count == 0 })
	if returned == found.Count && left == returned {
		return
	}
	if found.Count = left; c.mode == modeContent {
		left = int64(len(found.Groups))
	}
	found.Puts = left
}
