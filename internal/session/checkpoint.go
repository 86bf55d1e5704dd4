package session

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/abide-run/abide/internal/window/compact"
)

// checkpointPath returns the file that the summary of an epoch is copied to, for
// people; empty if the session has no folder.
func (s *Session) checkpointPath(number int, summary string) string {
	if s.host.opts.Folder == nil || s.state.Setup.Config.Infinite.Off() {
		return ""
	}
	return filepath.Join(s.host.opts.Folder(s.id), "checkpoints", fmt.Sprintf("%03d-%s.md", number, slug(compact.Title(summary))))
}

// slug makes a file name of a title.
func slug(title string) string {
	words := strings.FieldsFunc(strings.ToLower(title), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	return strings.Join(words, "-")
}

// writeCheckpoint copies a summary to its file. The log has the summary, so nothing
// is lost if this fails.
func (s *Session) writeCheckpoint(path, summary string) {
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = replaceFile(path, summary+"\n")
	}
	if err == nil {
		err = writeIndex(filepath.Dir(path))
	}
	if err != nil {
		s.host.log.Warn("the copy of a summary could not be written", "session", s.id, "err", err)
	}
}

// writeIndex writes a list of the checkpoints in a folder.
func writeIndex(dir string) error {
	names, err := filepath.Glob(filepath.Join(dir, "[0-9]*.md"))
	if err != nil {
		return err
	}
	var w strings.Builder
	w.WriteString("# Checkpoints\n\n")
	for _, name := range names {
		name = filepath.Base(name)
		fmt.Fprintf(&w, "- [%s](%s)\n", strings.TrimSuffix(name, ".md"), name)
	}
	return replaceFile(filepath.Join(dir, "index.md"), w.String())
}

// replaceFile replaces a file as a whole: readers see the old file or the new one.
func replaceFile(path, text string) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".abide-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // the file has another name if all went well
	_, err = f.WriteString(text)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
