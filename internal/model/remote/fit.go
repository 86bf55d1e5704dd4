package remote

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/abide-run/abide/internal/model"
)

// longestName is the length of names that every provider accepts, in bytes.
const longestName = 64

// FitID returns an id that providers accept. An id from one provider may be invalid for
// another; it is then replaced, always by the same other id, so that a result still
// matches its call.
func FitID(id string) string { return FitIDWithin(longestName, id) }

// FitIDWithin is FitID for a provider with another limit on the length of ids.
func FitIDWithin(longest int, id string) string {
	if fits(id, longest) {
		return id
	}
	return "call_" + digest(id, 32)
}

// NineID returns an id of nine letters and digits, which Mistral wants. Other ids are
// replaced, always by the same one.
func NineID(id string) string {
	const length = 9
	if fits(id, length) && len(id) == length && !strings.ContainsAny(id, "_-") {
		return id
	}
	return digest(id, length)
}

// FitName returns a name of a tool that every provider accepts. Different names stay
// different.
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

// FitImage returns the media type of an image as providers write it, or false if they
// do not support the image.
func FitImage(i model.Image) (mediaType string, ok bool) {
	switch t := strings.ToLower(i.MediaType); t {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return t, true
	case "image/jpg":
		return "image/jpeg", true
	}
	return "", false
}

// Unseen returns the text that a model gets instead of an unsupported image.
func Unseen(i model.Image) string {
	return "(a picture of type " + i.MediaType + ", which cannot be shown to this model)"
}
