package memory

import "github.com/abide-run/abide/internal/lazyregexp"

// secrets are the patterns of text that must not be remembered: keys in known formats, and
// values with names such as "password".
var secrets = []struct {
	pattern *lazyregexp.Regexp
	with    string
}{
	{lazyregexp.New(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(-----END [A-Z ]*PRIVATE KEY-----|$)`), removed},
	{lazyregexp.New(`\b(sk|pk|rk)[-_][A-Za-z0-9_-]{16,}`), removed},
	{lazyregexp.New(`\b(gh[pousr]_|github_pat_|glpat-|xox[abprs]-|AKIA|ASIA|AIza)[A-Za-z0-9_-]{12,}`), removed},
	{lazyregexp.New(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*`), removed},
	{lazyregexp.New(`(?i)\b(bearer|basic)\s+[A-Za-z0-9+/_.=~-]{16,}`), "$1 " + removed},
	{lazyregexp.New(`(?i)([a-z][a-z0-9+.-]*://[^\s:/@]*):[^\s/@]+@`), "$1:" + removed + "@"},
	{lazyregexp.New(`(?i)\b([a-z0-9_-]*(password|passwd|secret|token|api[_-]?key|access[_-]?key))(["']?\s*[:=]\s*)("[^"]*"|'[^']*'|[^\s"',;]+)`), "$1$3" + removed},
}

const removed = "(removed)"

// redact removes secrets from all findings.
func (x *Extracted) redact() {
	for i, d := range x.Decisions {
		x.Decisions[i].Chosen, x.Decisions[i].Rationale, x.Decisions[i].Options = Redact(d.Chosen), Redact(d.Rationale), redactAll(d.Options)
	}
	for i, d := range x.Discussions {
		x.Discussions[i].Topic, x.Discussions[i].Points = Redact(d.Topic), redactAll(d.Points)
	}
	for i, a := range x.Attempts {
		x.Attempts[i].Action, x.Attempts[i].Result = Redact(a.Action), Redact(a.Result)
	}
	for i, r := range x.Requests {
		x.Requests[i].Intent, x.Requests[i].Target, x.Requests[i].Summary = Redact(r.Intent), Redact(r.Target), Redact(r.Summary)
	}
}

func redactAll(texts []string) []string {
	clean := make([]string, len(texts))
	for i, text := range texts {
		clean[i] = Redact(text)
	}
	return clean
}

// Redact removes text that looks like a password or a key. The model is also told to leave
// secrets out; Redact catches those that it does not.
func Redact(text string) string {
	for _, s := range secrets {
		text = s.pattern.ReplaceAllString(text, s.with)
	}
	return text
}
