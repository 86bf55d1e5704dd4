package remote

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/abide-run/abide/internal/model"
)

// longestName bounds the names of tools, and of most other things. It is what
// every provider with a rule allows.
const longestName = 64

// FitID returns an id that providers take. Ids of one provider need not please
// another: the same id always becomes the same other one, so that call and
// result still belong together.
func FitID(id string) string { return FitIDWithin(longestName, id) }

// FitIDWithin is FitID for a provider that wants ids to be shorter.
func FitIDWithin(longest int, id string) string {
	if fits(id, longest) {
		return id
	}
	return "call_" + digest(id, 32)
}

// FitName returns a tool's name that every provider takes. Two names never
// become the same.
func FitName(name string) string {
	if fits(name, longestName) {
		return name
	}
	const mark = 8
	clean := strings.Map(func(r rune) rune {
		if allowed(r) {
			return r
		}
		return '_'
	}, name)
	return clean[:min(len(clean), longestName-mark-1)] + "_" + digest(name, mark)
}

func fits(s string, longest int) bool {
	return s != "" && len(s) <= longest && strings.IndexFunc(s, func(r rune) bool { return !allowed(r) }) < 0
}

func allowed(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_' || r == '-'
}

func digest(s string, n int) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])[:n]
}

// FitImage returns the media type by which every provider knows a picture, or
// false if none of them can look at it.
func FitImage(i model.Image) (mediaType string, ok bool) {
	switch t := strings.ToLower(i.MediaType); t {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return t, true
	case "image/jpg":
		return "image/jpeg", true
	}
	return "", false
}

// Unseen is what a model reads instead of a picture that it cannot look at.
func Unseen(i model.Image) string {
	return "(a picture of type " + i.MediaType + ", which cannot be shown to this model)"
}
