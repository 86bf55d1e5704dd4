// Package approval decides which tool calls need the permission of a person.
//
// A call describes what it will do with a [Request]. The rules of its session decide
// whether the request is allowed, denied, or has to be asked. A rule that denies wins
// over everything. Grants that a person gave for the rest of the session come next,
// then rules that ask, then rules that allow.
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

// readOnly is the name, in a rule, of all requests that only read: reading files, and
// commands that change nothing as far as their text tells.
const readOnly = "read-only"

// A Request describes what a call will do.
type Request struct {
	Kind string
	Tool string // name of the tool; the caller of the tool sets it
	// Subjects are what a grant for the session covers: names of commands, or of a
	// tool. Without subjects a grant covers the whole kind.
	Subjects []string
	// Details are matched by the patterns of rules: resolved paths, commands with their
	// arguments, URLs. All of them have to be allowed.
	Details []string
	// Aliases are other names of the same things. A rule that denies or asks applies if
	// it matches one of them; a rule that allows ignores them.
	Aliases []string
	// Paths and URLs are those in the text of a command. Rules about files and URLs that
	// deny or ask apply to them too; rules that allow ignore them.
	Paths, URLs []string
	// ReadOnly is true if a command changes nothing, as far as its text tells.
	ReadOnly bool
	// Unclear is true if the call may do more than the details tell. Then no pattern can
	// allow it.
	Unclear bool
	// Dirs are the names of the working directory, for patterns with relative paths.
	Dirs []string
	// Allowed is true if the scope of the session allows the request without asking.
	Allowed bool
	// Protected says why a person has to be asked, whatever rules and grants allow: the
	// call writes a protected file. It is empty for other calls.
	Protected string
	// Ask and Prompt are what clients show, in the form of the protocol.
	Ask, Prompt json.RawMessage
}

// Grants returns what a yes for the rest of the session allows.
func (r *Request) Grants() []event.Grant {
	if r.Protected != "" {
		return nil // a yes covers this change, and no other
	}
	if len(r.Subjects) == 0 {
		return []event.Grant{{Kind: r.Kind}}
	}
	list := make([]event.Grant, len(r.Subjects))
	for i, s := range r.Subjects {
		list[i] = event.Grant{Kind: r.Kind, Subject: s}
	}
	return list
}

// A Verdict is the decision about a request.
type Verdict int

// The verdicts.
const (
	Ask   Verdict = iota // a person has to be asked
	Allow                // the scope of the session allows the request
	Grant                // a grant, a rule or the rule set allows it, also outside the scope
	Deny                 // a rule denies it
)

// The rule sets that a session can start with.
const (
	AskAlways = ""          // asks about everything
	Workspace = "workspace" // allows reading and writing below the working directory
	All       = "all"       // allows everything that is not denied
)

// granted reports whether grants cover the whole request.
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

// Judge decides about a request. It is pure.
func Judge(set string, rules event.PermissionRules, grants []event.Grant, r *Request) Verdict {
	switch {
	case slices.ContainsFunc(rules.Deny, r.matchedBy):
		return Deny
	case r.Protected != "":
		return Ask
	case granted(grants, r), set == All:
		return Grant
	case slices.ContainsFunc(rules.Ask, r.matchedBy):
		return Ask
	case r.allowedBy(rules.Allow):
		return Grant
	case r.Allowed:
		return Allow
	}
	return Ask
}
