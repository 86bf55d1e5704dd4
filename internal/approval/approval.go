// Package approval decides what needs a person's yes.
//
// A call says what it wants to do with a [Request]; the rules of its session
// say whether that is allowed, denied, or has to be asked. Deny wins.
package approval

import (
	"encoding/json"
	"path/filepath"
	"strings"

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

// A Request says what a call wants to do.
type Request struct {
	Kind string
	// Subject is what an approval for the session covers: a command's name, a
	// tool's name. Empty covers the whole kind.
	Subject string
	// Path is the file or folder concerned, absolute, if there is one.
	Path string
	// Allowed means that the scope of the session allows it, so that nobody need
	// be asked.
	Allowed bool
	// Ask and Prompt are what clients are shown, in the protocol's form.
	Ask, Prompt json.RawMessage
}

// A Verdict is what the rules say.
type Verdict int

// The verdicts.
const (
	Ask Verdict = iota
	Allow
	Deny
)

// The rule sets that a session can start with.
const (
	AskAlways = ""          // everything is asked
	Workspace = "workspace" // reading and writing below the working directory is allowed
	All       = "all"       // everything is allowed
)

// covers reports whether a grant answers a request.
func covers(g event.Grant, r *Request) bool {
	return g.Kind == r.Kind && (g.Subject == "" || g.Subject == r.Subject)
}

// Judge says what the rules say of a request. It is pure.
func Judge(rules, dir string, grants []event.Grant, r *Request) Verdict {
	if rules == All {
		return Allow
	}
	for _, g := range grants {
		if covers(g, r) {
			return Allow
		}
	}
	if rules == Workspace && (r.Kind == Read || r.Kind == Write) && within(dir, r.Path) {
		return Allow
	}
	return Ask
}

// within reports whether path is dir or below it, by name alone: whoever opens
// the file still has to refuse links that lead out.
func within(dir, path string) bool {
	if dir == "" || !filepath.IsAbs(path) {
		return false
	}
	rel, err := filepath.Rel(dir, filepath.Clean(path))
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}
