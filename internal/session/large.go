package session

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/turn"
	"github.com/abide-run/abide/internal/workspace"
)

// These are how long a result of a client's tool may be for the model to read it
// whole, and how much the model reads of a longer one.
const (
	largeResult  = 20 << 10
	largePreview = 500
)

// saveTime is the time that a workspace has to store a long result. An answer waits for it.
const saveTime = 5 * time.Second

// saveLargeResult writes a result that is too long to a file of the session's workspace,
// where its tools can read it, and makes the model read a preview. It returns the path of
// the file, or an empty path. A result that cannot be written is only previewed: the answer
// of a client does not depend on the workspace.
func (h *Host) saveLargeResult(ctx context.Context, id event.SessionID, r *turn.ExternalResult) string {
	if len(r.Text) <= largeResult {
		return ""
	}
	ctx, cancel := context.WithTimeoutCause(ctx, saveTime, errSilent)
	defer cancel()
	path := ""
	err := h.withFiles(ctx, id, func(ctx context.Context, files workspace.Files) (err error) {
		path, err = writeTemporary(ctx, files, r.Text)
		return err
	})
	if err != nil {
		h.log.Warn("a long result could not be kept", "session", id, "err", err)
		r.Shown = unsavedText(r.Text, err)
		return ""
	}
	r.Shown = largeText(r.Text, path)
	return path
}

// writeTemporary writes a text to a new temporary file, and returns its path.
func writeTemporary(ctx context.Context, files workspace.Files, text string) (string, error) {
	at, err := files.Folders(ctx)
	if err != nil {
		return "", err
	}
	var random [8]byte
	_, _ = rand.Read(random[:]) // it never fails
	path := filepath.Join(at.Temp, fmt.Sprintf("%d-copilot-tool-output-%s.txt", time.Now().UnixMilli(), hex.EncodeToString(random[:])))
	draft, err := files.Create(ctx, workspace.At(path), workspace.WriteOptions{New: true, Perm: 0o600})
	if err != nil {
		return "", err
	}
	defer draft.Close()
	if _, err := io.WriteString(draft, text); err != nil {
		return "", err
	}
	return path, draft.Commit()
}

// dropLargeResult deletes a file that nobody will read.
func (h *Host) dropLargeResult(ctx context.Context, id event.SessionID, path string) {
	err := h.withFiles(context.WithoutCancel(ctx), id, func(ctx context.Context, files workspace.Files) error {
		return files.Delete(ctx, workspace.At(path), false)
	})
	if err != nil {
		h.log.Warn("a file that nobody will read could not be deleted", "session", id, "path", path, "err", err)
	}
}

// largeText returns what the model reads of a result that was written to a file.
func largeText(text, path string) string {
	return fmt.Sprintf("Output too large to read at once (%.1f KB). Saved to: %s\n"+
		"Consider using tools like grep (for searching), head/tail (for viewing start/end), view with view_range (for specific sections), or jq (for JSON) to examine portions of the output.\n\n"+
		"Preview (first %d chars):\n%s", float64(len(text))/1024, path, largePreview, beginning(text, largePreview))
}

// unsavedText returns what the model reads of a result that could not be written to a file.
func unsavedText(text string, why error) string {
	return fmt.Sprintf("Output too large to read at once (%.1f KB), and it could not be saved: %v.\n\n"+
		"Preview (first %d chars):\n%s", float64(len(text))/1024, why, largePreview, beginning(text, largePreview))
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
