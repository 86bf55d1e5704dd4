// Package approval decides which tool calls need the permission of a person.
//
// A call describes what it will do with a [Request]. The rules of its session decide
// whether the request is allowed, denied, or has to be asked. A rule that denies wins
// over everything, and so does a place that the scope denies; where it cannot be known in
// advance whether it applies, and where rules could not be read, a person is asked. The rule set that allows everything comes next, then grants that a person gave,
// then rules that ask, then rules that allow.
//
// Commands are judged by their words. What rules and grants allow is run from these
// words, and not from the text of the call.
package approval

import (
	"encoding/json"
	"slices"
	"strings"

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
	// Subjects are what a grant for the session covers, if the request is neither about
	// files nor about a command line: the name of a tool.
	Subjects []string
	// Details are matched by the patterns of rules: resolved paths, URLs. All of them have
	// to be allowed.
	Details []string
	// Folders are those of Details that are folders: the request is about all that is in them.
	Folders []string
	// Aliases are other names of the same things. A rule that denies or asks applies if
	// it matches one of them; a rule that allows ignores them.
	Aliases []string
	// Dirs are the names of the working directory, for patterns with relative paths.
	Dirs []string
	// Allowed is true if the scope of the session allows the request without asking.
	Allowed bool
	// Protected says why a person has to be asked, whatever rules and grants allow: the
	// call writes a protected file. It is empty for other calls.
	Protected string
	// Omitted says what of a change is not shown, because it is too large; empty if the
	// whole change is shown. No grant is offered for a change that was not shown.
	Omitted string
	// Unconfined is true for a command that is to run without the sandbox that commands have.
	// A person is asked, whatever rules and grants allow.
	Unconfined bool
	// Plain is a command line in the closed language of package shell; nil if it is not in
	// it. ReadCommand sets it and the following fields.
	Plain *shell.Plain
	// Dir is the directory in which a command runs, and Elsewhere is the same unless it is
	// the working directory of the session; then it is empty. Both are without links.
	Dir, Elsewhere string
	// Terminal and Input are true if a command has a terminal, and if it can be given
	// input while it runs.
	Terminal, Input bool
	reading         *reading
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
	By      string        // ByRule, ByGrant, BySet or ByScope; empty if a person is asked and neither a rule nor the scope says so
	Rules   []string      // texts of the rules that decided, each once
	Grants  []event.Grant // grants that decided, each once
	Reason  string        // for people: why they are asked, if that is not only that nothing allows it
	Again   bool          // true if nobody but a person can allow the call, each time anew
	// Judged is the script that the rules and grants allowed, word by word. It has to be
	// run in its own form, Judged.String(), and not as the text of the call. It is nil if
	// the decision is not about a command, or if a rule allows every command and this one
	// is not in the closed language.
	Judged *shell.Plain
}

// What a Decision rests on.
const (
	ByRule  = "rule"  // rules of the session
	ByGrant = "grant" // permission that a person gave for longer than once, with or without rules
	BySet   = "set"   // the rule set of the session
	ByScope = "scope" // the folders that the session works in
)

// The rule sets that a session can start with.
const (
	AskAlways = ""          // asks about everything
	Workspace = "workspace" // allows reading and writing below the working directory
	All       = "all"       // allows everything that is not denied
)

// Judge decides about a request. What the request is about was looked at when the request
// was made; the only thing that is looked at now is whether the path of a rule is a folder.
func Judge(set string, rules event.PermissionRules, grants []event.Grant, r *Request) Decision {
	denied, texts := r.strongest(rules.Deny)
	place := r.deniedPlace()
	switch {
	case denied == yes:
		return Decision{Verdict: Deny, By: ByRule, Rules: texts}
	case place.certainty == yes:
		return Decision{Verdict: Deny, By: ByScope, Reason: "the scope of the session denies " + place.place}
	case denied == maybe:
		return Decision{Verdict: Ask, By: ByRule, Rules: texts, Reason: r.mayApply("denies", "deny", texts), Again: true}
	case place.certainty == maybe:
		return Decision{Verdict: Ask, By: ByScope, Reason: "it may use " + place.place + ", which the scope of the session denies: " + r.whyUncertain(), Again: true}
	case r.Protected != "":
		return Decision{Verdict: Ask, Reason: "it writes a protected file: " + r.Protected, Again: true}
	case r.Unconfined:
		return Decision{Verdict: Ask, Reason: "it is to run without the sandbox", Again: true}
	case rules.Unread:
		return Decision{Verdict: Ask, By: ByRule, Reason: "a rule that cannot be read, because of a mistake in the configuration of the project, may deny it", Again: true}
	case set == All:
		return Decision{Verdict: Grant, By: BySet}
	}
	if by := coveringGrants(grants, r); by != nil {
		return Decision{Verdict: Grant, By: ByGrant, Grants: by, Judged: r.Plain}
	}
	switch asked, texts := r.strongest(rules.Ask); asked {
	case yes:
		return Decision{Verdict: Ask, By: ByRule, Rules: texts, Reason: "the rule " + texts[0] + " asks about it"}
	case maybe:
		return Decision{Verdict: Ask, By: ByRule, Rules: texts, Reason: r.mayApply("asks", "ask", texts)}
	}
	if d := r.allowedBy(rules.Allow, grants); d.Verdict == Grant {
		return d
	} else if !r.Allowed {
		return d
	}
	return Decision{Verdict: Allow, By: ByScope}
}

// mayApply says that rules may be about a command, and why.
func (r *Request) mayApply(one, several string, texts []string) string {
	why := r.whyUncertain()
	if slices.ContainsFunc(texts, r.beginsLike) {
		why = "it begins like the rule, which has no star at its end"
	}
	if len(texts) == 1 {
		return "the rule " + texts[0] + ", which " + one + ", may apply: " + why
	}
	return "the rules " + strings.Join(texts, ", ") + ", which " + several + ", may apply: " + why
}

// beginsLike reports whether a command has the words of a rule without a star at its end, and
// others after them.
func (r *Request) beginsLike(text string) bool {
	u, err := parse(text)
	if err != nil || r.reading == nil || !commandKind(u.tool) || u.words.open || len(u.words.words) == 0 {
		return false
	}
	u.words.open = true
	return slices.ContainsFunc(r.reading.calls.Words, func(words []string) bool { return u.words.isAbout(words) == yes })
}

// whyUncertain says why it is not known in advance what a command does.
func (r *Request) whyUncertain() string {
	d := r.reading
	switch {
	case d == nil:
		return "it was not read"
	case d.calls.Hidden != "":
		return "it has " + d.calls.Hidden
	case len(d.unknownWords()) > 0:
		return "some of its words are known only when it runs"
	case d.roams:
		return "the folder in which it runs is not known in advance"
	case len(d.trees) > 0:
		return "it uses a folder with all that is below it"
	case d.usesProcess():
		return "it names files by way of a process"
	}
	return "it may do the same in other words, or by a program that it runs"
}

// deniedPlace returns what the scope says of the paths that a command names. Tools for
// files ask the scope themselves.
func (r *Request) deniedPlace() denial {
	if r.reading == nil {
		return denial{}
	}
	return r.reading.denied
}

// mostRules is the maximum number of rules that a reason names.
const mostRules = 3

// strongest returns how certain it is that one of the rules is about a request, and the
// rule; if it is not certain, the rules that fit best. An invalid rule is about everything,
// because it was meant to stop something.
func (r *Request) strongest(rules []string) (certainty, []string) {
	best := no
	var texts []string
	fits := make(map[string]int)
	for _, t := range rules {
		u, err := parse(t)
		c := yes
		if err == nil {
			c = r.concernedBy(u)
		}
		if c > best {
			best, texts = c, nil
		}
		if c == best && c != no {
			texts = addOnce(texts, t)
			fits[t] = r.misfit(u)
		}
	}
	if best == yes {
		return yes, texts[:1]
	}
	slices.SortStableFunc(texts, func(a, b string) int { return fits[a] - fits[b] })
	return best, texts[:min(mostRules, len(texts))]
}

// misfit returns how far a rule that may apply is from what a command does: rules about
// programs come first where the program is not known, and elsewhere rules about reading.
func (r *Request) misfit(u rule) int {
	program := r.reading == nil || slices.ContainsFunc(r.reading.calls.Words, func(words []string) bool { return strings.Contains(words[0], shell.Unknown) })
	switch isPath := pathKind(u.tool); {
	case isPath != program:
		if u.isWrite() {
			return 1
		}
		return 0
	case u.isWrite():
		return 3
	}
	return 2
}

// concernedBy tells whether a rule that denies or asks is about any part of a request.
func (r *Request) concernedBy(u rule) certainty {
	if r.Kind == Shell {
		return r.commandConcernedBy(u)
	}
	matches := func(detail string) bool { return u.matchesPathOrURL(detail, r) }
	if u.concerns(r) && (u.pattern == "" || slices.ContainsFunc(r.Details, matches) || slices.ContainsFunc(r.Aliases, matches)) {
		return yes
	}
	return no
}

// allowedBy decides whether rules and grants together allow every part of a request.
func (r *Request) allowedBy(rules []string, grants []event.Grant) Decision {
	var about []rule
	for _, text := range rules {
		if u, err := parse(text); err == nil && u.concerns(r) {
			about = append(about, u)
		}
	}
	if i := slices.IndexFunc(about, func(u rule) bool { return u.pattern == "" && (u.tool != readOnly || r.Kind != Shell) }); i >= 0 {
		return Decision{Verdict: Grant, By: ByRule, Rules: []string{about[i].text}, Judged: r.Plain}
	}
	if r.Kind == Shell {
		return r.allowedCommand(about, rules, grants)
	}
	var used []string
	for _, detail := range r.Details {
		i := slices.IndexFunc(about, func(u rule) bool { return u.matchesPathOrURL(detail, r) })
		if i < 0 {
			return Decision{Verdict: Ask}
		}
		used = addOnce(used, about[i].text)
	}
	if used == nil {
		return Decision{Verdict: Ask}
	}
	return Decision{Verdict: Grant, By: ByRule, Rules: used}
}

// addOnce adds a text to a list that does not have it.
func addOnce(list []string, text string) []string {
	if slices.Contains(list, text) {
		return list
	}
	return append(list, text)
}
