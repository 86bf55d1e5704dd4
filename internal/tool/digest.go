package tool

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"maps"
	"strings"

	"github.com/abide-run/abide/internal/approval/shell"
	"github.com/abide-run/abide/internal/lazyregexp"
)

// volatile matches what differs in every call that does and finds the same: ids of
// processes and sessions, dates, times of day, seconds since 1970, and durations. Other
// numbers are left alone, because they may be what a call was made for.
var volatile = lazyregexp.New(`\bp[0-9a-v]{16}\b` +
	`|\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b` +
	`|\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?` +
	`|\b\d{1,2}:\d\d:\d\d(?:[.,]\d+)?\b` +
	`|\b1\d{9}(?:\d{3}){0,3}(?:\.\d+)?\b` +
	`|\b(?:\d+(?:\.\d+)?(?:ns|µs|us|ms|s|m|h))+\b` +
	`|\b\d+(?:\.\d+)? (?:ns|µs|us|ms|s|sec|secs|seconds?|milliseconds?|min|mins|minutes?|hours?)\b` +
	`|"[a-z_]*(?:duration|elapsed|waited)[a-z_]*":\d+(?:\.\d+)?`)

// maxSearched is the maximum length of a text in which ids and times are looked for.
// Longer results are only compared, because looking takes time.
const maxSearched = 256 << 10

// Digest returns a digest of texts for Result.Digest. Two lists of texts that differ
// only in ids that the runtime makes, times and durations have the same digest.
func Digest(texts ...string) string {
	h := sha256.New()
	for _, text := range texts {
		if len(text) <= maxSearched {
			text = volatile.ReplaceAllLiteralString(text, "\x01")
		}
		_, _ = io.WriteString(h, text) // a hash takes everything
		h.Write([]byte{0})
	}
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:12])
}

// Meaning returns a text that is the same for arguments that mean the same: the order of
// keys, blanks around values, keys without a value, and how a command is written make no
// difference. It is for comparing calls.
func Meaning(arguments json.RawMessage) string {
	var value any
	if json.Unmarshal(arguments, &value) == nil {
		if b, err := json.Marshal(meaning("", value)); err == nil {
			return string(b)
		}
	}
	return string(arguments)
}

func meaning(key string, value any) any {
	switch v := value.(type) {
	case string:
		switch {
		case key == "command" || key == "cmd":
			return shell.Parse(v).Meaning()
		case !strings.Contains(v, "\n"): // the blanks of a text of several lines may be what an edit is about
			return strings.TrimSpace(v)
		}
	case map[string]any:
		maps.DeleteFunc(v, func(_ string, inner any) bool { return inner == nil })
		for name, inner := range v {
			v[name] = meaning(name, inner)
		}
	case []any:
		for i, inner := range v {
			v[i] = meaning(key, inner)
		}
	}
	return value
}
