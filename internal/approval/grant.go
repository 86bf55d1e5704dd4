package approval

import (
	"slices"

	"github.com/abide-run/abide/internal/approval/shell"
	"github.com/abide-run/abide/internal/event"
)

// coveringGrants returns the grants that together cover a whole request, or nil.
func coveringGrants(grants []event.Grant, r *Request) []event.Grant {
	for _, g := range grants {
		if g.Kind == r.Kind && g.Subject != "" && slices.Equal(r.Subjects, []string{g.Subject}) {
			return []event.Grant{g}
		}
	}
	return nil
}

// coversCommand reports whether a grant covers one command of a command line.
func coversCommand(event.Grant, *Request, shell.Simple) bool { return false }

// Grants returns what a yes for the rest of the session allows.
func (r *Request) Grants() []event.Grant {
	var list []event.Grant
	for _, s := range r.Subjects {
		list = append(list, event.Grant{Kind: r.Kind, Subject: s})
	}
	return list
}
