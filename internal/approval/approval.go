// Package approval decides what needs a person's yes.
//
// A call says what it wants to do with a [Request]; the rules of its session
// say whether that is allowed, denied, or has to be asked. A denial wins over
// everything. What a person has said for the rest of the session comes next,
// then what the rules want asked, then what they allow.
package approval

import (
	"encoding/json"
	"slices"

	"github.com/abide-run/abide/internal/event"
)

// The kinds of requests.
const (
	Read       = "read"
	Write      = "write"
	Shell      = "shell"
	URL        = "url"
	CustomTool = "custom-tool"
)

// ReadOnly is, in a rule, whatever only reads: files, and commands that change
// nothing as far as their words tell.
const ReadOnly = "read-only"

// A Request says what a call wants to do.
type Request struct {
	Kind string
	Tool string // the name of the tool; whoever asks the tool fills it in
	// Subjects are what an approval for the session covers: the names of
	// commands, of a tool. None covers the whole kind.
	Subjects []string
	// Details are what the patterns of rules are about: where paths lead,
	// commands with their arguments, URLs. All of them have to be allowed.
	Details []string
	// Aliases are other names of the same things. To be denied or asked, one of
	// them is enough; they allow nothing.
	Aliases []string
	// Paths and URLs are what the words of a command name. Rules about files and
	// addresses deny it or want it asked for them; they allow nothing.
	Paths, URLs []string
	// ReadOnly means that a command changes nothing, as far as its words tell.
	ReadOnly bool
	// Unclear means that the call may do more than the details tell, so that no
	// pattern can allow it.
	Unclear bool
	// Dirs are the names of the working directory, for patterns of paths that are
	// relative.
	Dirs []string
	// Allowed means that the scope of the session allows it, so that nobody need
	// be asked.
	Allowed bool
	// Ask and Prompt are what clients are shown, in the protocol's form.
	Ask, Prompt json.RawMessage
}

// Grants are what a yes for the rest of the session allows.
func (r *Request) Grants() []event.Grant {
	if len(r.Subjects) == 0 {
		return []event.Grant{{Kind: r.Kind}}
	}
	list := make([]event.Grant, len(r.Subjects))
	for i, s := range r.Subjects {
		list[i] = event.Grant{Kind: r.Kind, Subject: s}
	}
	return list
}

// A Verdict is what the rules say.
type Verdict int

// The verdicts.
const (
	Ask   Verdict = iota
	Allow         // the scope of the session allows it
	Grant         // more than its scope allows it
	Deny
)

// The rule sets that a session can start with.
const (
	AskAlways = ""          // everything is asked
	Workspace = "workspace" // reading and writing below the working directory is allowed
	All       = "all"       // everything is allowed that is not denied
)

// granted reports whether grants answer all of a request.
func granted(grants []event.Grant, r *Request) bool {
	for _, want := range r.Grants() {
		if !slices.ContainsFunc(grants, func(g event.Grant) bool {
			return g == want || g == event.Grant{Kind: r.Kind}
		}) {
			return false
		}
	}
	return true
}

// Judge says what the rules say of a request. It is pure.
func Judge(set string, rules event.PermissionRules, grants []event.Grant, r *Request) Verdict {
	switch {
	case slices.ContainsFunc(rules.Deny, r.touches):
		return Deny
	case granted(grants, r), set == All:
		return Grant
	case slices.ContainsFunc(rules.Ask, r.touches):
		return Ask
	case r.permitted(rules.Allow):
		return Grant
	case r.Allowed:
		return Allow
	}
	return Ask
}
