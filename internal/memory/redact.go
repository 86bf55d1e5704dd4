package memory

import (
	"strings"
	"unicode"

	"github.com/abide-run/abide/internal/lazyregexp"
)

// secrets are the patterns of text that must not be remembered: keys in known formats.
var secrets = []struct {
	pattern *lazyregexp.Regexp
	with    string
}{
	{lazyregexp.New(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(-----END [A-Z ]*PRIVATE KEY-----|$)`), removed},
	{lazyregexp.New(`\b(sk|pk|rk)[-_][A-Za-z0-9_-]{16,}`), removed},
	{lazyregexp.New(`\b(gh[pousr]_|github_pat_|glpat-|xox[abprs]-|AKIA|ASIA|AIza)[A-Za-z0-9_-]{12,}`), removed},
	{lazyregexp.New(`\b(hf_|npm_|pypi-|dop_v1_|ya29\.|SG\.)[A-Za-z0-9._-]{16,}`), removed},
	{lazyregexp.New(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*`), removed},
	{lazyregexp.New(`(?i)\b(bearer|basic)\s+[A-Za-z0-9+/_.=~-]{16,}`), "$1 " + removed},
	{lazyregexp.New(`(?i)([a-z][a-z0-9+.-]*://[^\s:/@]*):[^\s/@]+@`), "$1:" + removed + "@"},
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
	return redactNamed(text)
}

// named matches a name such as "password", what joins it with its value, and the value.
var named = lazyregexp.New(`(?i)(\b[a-z0-9_-]*(?:passwor[dt]|kennwort|passphrase|passwd|pwd|secret|token|api[ _-]?key|access[ _-]?key)["']?|парол[а-яё]*|密[码碼])` +
	`(\s*[:=：]\s*|\s+(?:is|was|ist|war|lautet|это)\s+|\s*是\s*)("[^"]*"|'[^']*'|[^\s"',;，。；]+)`)

// redactNamed removes values with names such as "password". A sentence that only speaks of
// passwords stays as it is: "use a password: never the real one" has no value.
func redactNamed(text string) string {
	matches := named.FindAllStringSubmatchIndex(text, -1)
	var w strings.Builder
	end := 0
	for _, m := range matches {
		if !isSecret(text, m) {
			continue
		}
		w.WriteString(text[end:m[6]] + removed)
		end = m[7]
	}
	return w.String() + text[end:]
}

// isSecret reports whether a value is to be removed. After a word such as "is" only letters and
// digits together count, because most sentences about passwords go on with words.
func isSecret(text string, m []int) bool {
	switch joint, value := text[m[4]:m[5]], text[m[6]:m[7]]; {
	case strings.Contains(joint, "="):
		return true
	case strings.ContainsAny(joint, ":："):
		return looksSecret(value) || isWhole(text, m)
	default:
		value = strings.Trim(value, `"'.:!?)]`)
		return len(value) >= 6 && strings.ContainsFunc(value, unicode.IsLetter) && strings.ContainsFunc(value, unicode.IsDigit) && !measure.MatchString(value)
	}
}

// measure matches a number with its unit, such as "15min" and "32-bit".
var measure = lazyregexp.New(`^[0-9][0-9.,]*-?[A-Za-z]+$`)

// looksSecret reports whether a value is no word: it is in quotes, or has digits or signs in
// it.
func looksSecret(value string) bool {
	if strings.ContainsAny(value[:1], `"'`) {
		return true
	}
	word := strings.TrimRight(value, ".:!?)]")
	return strings.ContainsFunc(word, func(r rune) bool { return !unicode.IsLetter(r) && r != '-' && r != '\'' })
}

// isWhole reports whether a name and its value are all that a line has: "password: swordfish".
func isWhole(text string, m []int) bool {
	line := func(r rune) bool { return r == '\n' }
	before, after := text[:m[0]], text[m[7]:]
	if i := strings.LastIndexFunc(before, line); i >= 0 {
		before = before[i+1:]
	}
	if i := strings.IndexFunc(after, line); i >= 0 {
		after = after[:i]
	}
	return strings.TrimSpace(before) == "" && strings.Trim(after, " \t\r.") == ""
}
