package session

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/abide-run/abide/internal/turn"
)

// These are how long a result of a client's tool may be for the model to read it
// whole, and how much the model reads of a longer one.
const (
	largeResult  = 20 << 10
	largePreview = 500
)

// saveLargeResult writes a result that is too long to a file, and makes the model
// read a preview. It returns the name of the file, or an empty name.
func (h *Host) saveLargeResult(r *turn.ExternalResult) (string, error) {
	if len(r.Text) <= largeResult {
		return "", nil
	}
	var random [8]byte
	_, _ = rand.Read(random[:]) // it never fails
	name := fmt.Sprintf("%d-copilot-tool-output-%s.txt", time.Now().UnixMilli(), hex.EncodeToString(random[:]))
	path := filepath.Join(os.TempDir(), name)
	if err := os.WriteFile(path, []byte(r.Text), 0o600); err != nil {
		return "", fmt.Errorf("keep a long result: %w", err)
	}
	r.Shown = largeText(r.Text, path)
	return path, nil
}

// largeText returns what the model reads of a result that was written to a file.
func largeText(text, path string) string {
	return fmt.Sprintf("Output too large to read at once (%.1f KB). Saved to: %s\n"+
		"Consider using tools like grep (for searching), head/tail (for viewing start/end), view with view_range (for specific sections), or jq (for JSON) to examine portions of the output.\n\n"+
		"Preview (first %d chars):\n%s", float64(len(text))/1024, path, largePreview, beginning(text, largePreview))
}

// beginning returns the first characters of a text.
func beginning(text string, most int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	n := 0
	for at := range text {
		if n == most {
			return text[:at]
		}
		n++
	}
	return text
}
