package approval

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/abide-run/abide/internal/approval/shell"
	"github.com/abide-run/abide/internal/event"
)

// coveringGrants returns the grants that together cover a whole request: one for the
// whole command line, or one for each file or tool. It returns nil if something is not
// covered; allowedCommand looks at the commands of a line one by one. A grant that says
// nothing but its kind covers nothing.
func coveringGrants(grants []event.Grant, r *Request) []event.Grant {
	switch {
	case r.Kind == Read, r.Kind == Write:
		return coverEach(grants, r.Details, func(g event.Grant, path string) bool {
			return g.Kind == r.Kind && (g.Folder != "" && within(g.Folder, path) || g.Subject == path && !slices.Contains(r.Folders, path))
		})
	case r.Plain != nil:
		if i := slices.IndexFunc(grants, func(g event.Grant) bool { return coversLine(g, r) }); i >= 0 {
			return grants[i : i+1]
		}
		return nil
	}
	if r.Kind == MCP {
		return coverEach(grants, r.Subjects, coversMCP)
	}
	return coverEach(grants, r.Subjects, func(g event.Grant, subject string) bool {
		return g.Kind == r.Kind && g.Subject != "" && g.Subject == subject
	})
}

// coverEach returns grants that cover each part of a request, or nil.
func coverEach[T any](grants []event.Grant, parts []T, covers func(event.Grant, T) bool) []event.Grant {
	var list []event.Grant
	for _, part := range parts {
		i := slices.IndexFunc(grants, func(g event.Grant) bool { return covers(g, part) })
		if i < 0 {
			return nil
		}
		if !slices.ContainsFunc(list, grants[i].Equal) {
			list = append(list, grants[i])
		}
	}
	return list
}

// coversLine reports whether a grant covers a command line, word for word. No grant covers
// one in which a link leads elsewhere than the words say, because it may lead to another
// place each time.
func coversLine(g event.Grant, r *Request) bool {
	return g.Kind == Shell && g.Command != "" && g.Command == r.Plain.String() && sameSurroundings(g, r) && !r.isLinked()
}

// isLinked reports whether a link leads a command line to a folder, or to a file outside of
// the session's scope, that its words do not name.
func (r *Request) isLinked() bool { return r.reading != nil && r.reading.linked }

// sameSurroundings reports whether a command of a request runs where a grant says, with
// the same kind of input. A grant that names no directory is for the working directory,
// whichever that is: it is for always, or for words that are safe in any directory, or one
// of an older version.
func sameSurroundings(g event.Grant, r *Request) bool {
	return (g.Dir == r.Elsewhere || g.Dir == r.Dir) && g.Terminal == r.Terminal && g.Input == r.Input
}

// coversCommand reports whether a grant covers one command of a command line: by the
// words with which it begins. Neither a redirection nor an option in reaching is covered.
func coversCommand(g event.Grant, r *Request, c shell.Simple) bool {
	return g.Kind == Shell && len(g.Prefix) > 0 && len(c.Redirects) == 0 && sameSurroundings(g, r) &&
		SafePrefix(g.Prefix) && wordPattern{words: g.Prefix, open: true}.allows(c.Words)
}

// within reports whether a path is a folder or below it.
func within(folder, path string) bool {
	folder = filepath.Clean(folder)
	return path == folder || strings.HasPrefix(path, strings.TrimSuffix(folder, "/")+"/")
}
