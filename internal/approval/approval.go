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

	"github.com/abide-run/abide/internal/approval/shell"
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
	// Plain is the command line in the closed language of package shell; nil if it is not
	// in it.
	Plain *shell.Plain
	// Elsewhere is the directory in which a command runs; empty for the working directory.
	Elsewhere string
	// Terminal and Input are true if a command has a terminal, and if it can be given
	// input while it runs.
	Terminal, Input bool
	// Ask and Prompt are what clients show, in the form of the protocol; More is what they
	// may show beyond it.
	Ask, Prompt json.RawMessage
	More        event.PermissionMore
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

// A Decision is the verdict about a request, and what it rests on.
type Decision struct {
	Verdict Verdict
	By      string        // ByRule, ByGrant, BySet or ByScope; empty if a person is asked and no rule says so
	Rules   []string      // texts of the rules that decided, each once
	Grants  []event.Grant // grants that decided
	Reason  string        // for people: why they are asked, if that is not only that nothing allows it
	// Judged is the script that the rules and grants allowed, word by word. It has to be
	// run in its own form, Judged.String(), and not as the text of the call. It is nil if
	// the decision is not about the words of a command.
	Judged *shell.Plain
}

// What a Decision rests on.
const (
	ByRule  = "rule"  // rules of the session
	ByGrant = "grant" // what a person allowed for longer than once, with or without rules
	BySet   = "set"   // the rule set of the session
	ByScope = "scope" // the folders that the session works in
)

// The rule sets that a session can start with.
const (
	AskAlways = ""          // asks about everything
	Workspace = "workspace" // allows reading and writing below the working directory
	All       = "all"       // allows everything that is not denied
)

// Judge decides about a request. It is pure.
func Judge(set string, rules event.PermissionRules, grants []event.Grant, r *Request) Decision {
	if i := slices.IndexFunc(rules.Deny, r.matchedBy); i >= 0 {
		return Decision{Verdict: Deny, By: ByRule, Rules: rules.Deny[i : i+1]}
	}
	if set == All {
		return Decision{Verdict: Grant, By: BySet}
	}
	if by := coveringGrants(grants, r); by != nil {
		return Decision{Verdict: Grant, By: ByGrant, Grants: by, Judged: r.Plain}
	}
	if i := slices.IndexFunc(rules.Ask, r.matchedBy); i >= 0 {
		return Decision{Verdict: Ask, By: ByRule, Rules: rules.Ask[i : i+1]}
	}
	if r.allowedBy(rules.Allow) {
		return Decision{Verdict: Grant, By: ByRule, Rules: rules.Allow, Judged: r.Plain}
	}
	if r.Allowed {
		return Decision{Verdict: Allow, By: ByScope}
	}
	return Decision{Verdict: Ask}
}
