package approval

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"

	"github.com/abide-run/abide/internal/approval/shell"
	"github.com/abide-run/abide/internal/event"
)

// InputTo begins the subject of a request to give input to a running command; the key of
// the command follows.
const InputTo = "input to "

// Offers returns the ways to approve a request about which a person is asked: those of the
// request, or only once if the same question would come again.
func (d Decision) Offers(r *Request) []event.Offer {
	offers := r.Offers()
	if d.Again {
		return offers[:1]
	}
	return offers
}

// SessionGrants returns what an approval for the session covers if it names no offer: what
// was shown, and nothing else.
func (d Decision) SessionGrants(r *Request) []event.Grant {
	if d.Again {
		return nil
	}
	return r.SessionGrants()
}

// Offers returns the ways to approve a request: once, and then the narrowest first. Each
// says what it would allow, and none allows more than it says.
func (r *Request) Offers() []event.Offer {
	offers := []event.Offer{{ID: event.OfferOnce, Label: "this call only"}}
	switch {
	case r.Protected != "", r.Unconfined, r.Omitted != "":
		return offers // a yes covers this change or this run, and no other
	case r.Kind == Shell && r.Plain != nil:
		return append(offers, r.commandOffers()...)
	case r.Kind == Read, r.Kind == Write:
		return append(offers, r.fileOffers()...)
	case r.Kind == Shell && len(r.Subjects) > 0:
		return append(offers, event.Offer{ID: event.OfferInput, Label: "any further input to this command", Grants: r.subjectGrants()})
	case r.Kind == MCP:
		return append(offers, r.mcpOffers()...)
	case len(r.Subjects) > 0:
		return append(offers, event.Offer{ID: event.OfferTool, Label: "any call of " + strings.Join(r.Subjects, ", "), Grants: r.subjectGrants()})
	}
	return offers
}

// SessionGrants returns the grants of the narrowest offer that is for longer than once.
func (r *Request) SessionGrants() []event.Grant {
	if offers := r.Offers(); len(offers) > 1 {
		return offers[1].Grants
	}
	return nil
}

func (r *Request) subjectGrants() []event.Grant {
	list := make([]event.Grant, len(r.Subjects))
	for i, s := range r.Subjects {
		list[i] = event.Grant{Kind: r.Kind, Subject: s}
	}
	return list
}

// commandOffers returns the offers for a command line that is understood.
func (r *Request) commandOffers() []event.Offer {
	if r.isLinked() {
		return nil // see coversLine
	}
	exact := event.Grant{Kind: Shell, Command: r.Plain.String(), Dir: r.Dir, Terminal: r.Terminal, Input: r.Input}
	offers := []event.Offer{{ID: event.OfferCommand, Label: "exactly this command line: " + CommandText(r.Plain), Grants: []event.Grant{exact}}}
	prefixes, ok := coveringPrefixes(r.Plain)
	if !ok || r.reading == nil || r.reading.blocked != "" {
		return offers
	}
	var grants []event.Grant
	var texts []string
	for _, p := range prefixes {
		grants = append(grants, event.Grant{Kind: Shell, Prefix: p, Dir: r.Elsewhere, Terminal: r.Terminal, Input: r.Input})
		texts = append(texts, wordsText(p)+" …")
	}
	return append(offers, event.Offer{ID: event.OfferPrefix, Label: "any command that begins with: " + strings.Join(texts, ", "), Grants: grants})
}

// coveringPrefixes returns the words with which the commands of a line begin, each once, if
// all of them are words with which no command can run other code, and a grant for them
// would cover the line: it covers neither redirections nor the options in reaching.
func coveringPrefixes(p *shell.Plain) (list [][]string, ok bool) {
	for _, c := range p.Commands() {
		prefix := Prefix(c.Words)
		if !SafePrefix(prefix) || len(c.Redirects) > 0 || !(wordPattern{words: prefix, open: true}).allows(c.Words) {
			return nil, false
		}
		if !slices.ContainsFunc(list, func(has []string) bool { return slices.Equal(has, prefix) }) {
			list = append(list, prefix)
		}
	}
	return list, true
}

// fileOffers returns the offers for files: the files themselves, and everything below the
// folders that they are in. A folder that was named stands for everything below it, and is
// not widened to the one above.
func (r *Request) fileOffers() (offers []event.Offer) {
	verb := map[string]string{Read: "reading ", Write: "writing "}[r.Kind]
	var named, folders []string
	var grants []event.Grant
	for _, path := range r.Details {
		text, grant, dir := path, event.Grant{Kind: r.Kind, Subject: path}, filepath.Dir(path)
		if slices.Contains(r.Folders, path) {
			text, grant, dir = "anything below "+path, event.Grant{Kind: r.Kind, Folder: path}, path
		}
		named, grants, folders = append(named, text), append(grants, grant), addOnce(folders, dir)
	}
	if len(r.Folders) < len(r.Details) {
		offers = append(offers, event.Offer{ID: event.OfferFile, Label: verb + strings.Join(named, ", "), Grants: grants})
	}
	if len(folders) == 0 || slices.Contains(folders, "/") || slices.Contains(folders, ".") {
		return offers
	}
	return append(offers, event.Offer{ID: event.OfferFolder, Label: verb + "anything below " + strings.Join(folders, ", "), Grants: folderGrants(r.Kind, folders)})
}

func folderGrants(kind string, paths []string) []event.Grant {
	list := make([]event.Grant, len(paths))
	for i, path := range paths {
		list[i] = event.Grant{Kind: kind, Folder: path}
	}
	return list
}

// GrantText returns a grant in the form of a rule that would allow the same, for people.
func GrantText(g event.Grant) string {
	switch {
	case len(g.Prefix) > 0:
		return g.Kind + "(" + wordsText(g.Prefix) + " *)"
	case g.Kind == CustomTool:
		return g.Subject
	}
	return g.Kind + "(" + GrantSubject(g) + ")"
}

// GrantSubject returns what a grant covers, without its kind, for people.
func GrantSubject(g event.Grant) string {
	if p, err := shell.ReadPlain(g.Command); err == nil {
		return CommandText(p)
	}
	return cmp.Or(g.Command, wordsText(g.Prefix), g.Folder, g.Subject)
}

// CommandText returns a command line as people write it, with quotes only where a word
// needs them.
func CommandText(p *shell.Plain) string {
	var b strings.Builder
	for i, c := range p.Commands() {
		switch {
		case i == 0:
		case c.Joint == ";":
			b.WriteString("; ")
		default:
			b.WriteString(" " + c.Joint + " ")
		}
		b.WriteString(wordsText(c.Words))
		for _, r := range c.Redirects {
			b.WriteString(" " + r.String())
		}
	}
	return b.String()
}

func wordsText(words []string) string {
	list := make([]string, len(words))
	for i, w := range words {
		if list[i] = w; w == "" || strings.ContainsFunc(w, needsQuotes) {
			list[i] = shell.Quote(w)
		}
	}
	return strings.Join(list, " ")
}

// needsQuotes reports whether a character of a word might stand for something else.
func needsQuotes(c rune) bool {
	return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("_-+=,./:@%^", c))
}
