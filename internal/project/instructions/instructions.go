// Package instructions finds the files in which a project tells agents about
// itself, AGENTS.md above all.
//
// The file in the working directory counts, and those in the folders above it up
// to the repository's root. The nearest one comes last, because what stands last
// weighs most. Further folders come before all of these, with what they keep for
// agents below .github, too. What is read is bounded, and no link is followed out of
// the project; whatever is left out is said.
package instructions

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/project/file"
)

// The defaults.
const (
	DefaultName     = "AGENTS.md"
	DefaultMaxBytes = 32 << 10
)

// Rules say what is looked for. The zero value is usable.
type Rules struct {
	Names    []string // in each folder the first that is there counts; AGENTS.md if empty
	MaxBytes int      // of all files together; 32 KiB if zero
}

// A File is one that was read.
type File struct {
	event.InstructionSource
	Content string
}

// Files finds and reads the instructions for a working directory, and those in
// further folders, the nearest last. Files that cannot be read are left out and
// reported as an error beside the rest.
func (r Rules) Files(dir string, further ...string) ([]File, error) {
	left := r.MaxBytes
	if left == 0 {
		left = DefaultMaxBytes
	}
	var files []File
	var errs []error
	for _, path := range r.all(dir, further) { // the nearest first: it must not be the one that is cut
		body, source, err := read(path, further, left)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		left -= source.Bytes
		files = append(files, File{source, body})
	}
	slices.Reverse(files)
	return files, errors.Join(errs...)
}

// Read is what the model reads of the instructions, and where that comes from.
func (r Rules) Read(dir string, further ...string) (text string, sources []event.InstructionSource, err error) {
	files, err := r.Files(dir, further...)
	var parts []string
	for _, f := range files {
		parts, sources = append(parts, part(f.Content, f.InstructionSource)), append(sources, f.InstructionSource)
	}
	return strings.Join(parts, "\n\n"), sources, err
}

// part is how the model reads a file.
func part(body string, s event.InstructionSource) string {
	note := ""
	if s.Cut {
		note = fmt.Sprintf("\n[cut after %d bytes]", s.Bytes)
	}
	return fmt.Sprintf("<instructions file=%q>\n%s%s\n</instructions>", s.Path, strings.TrimSpace(body), note)
}

// all returns the files that count, the nearest first.
func (r Rules) all(dir string, further []string) []string {
	var found []string
	if dir != "" {
		found = r.find(dir)
	}
	for _, more := range further {
		found = append(found, r.in(more)...)
		found = append(found, below(more)...)
	}
	return found
}

// in returns the file of a folder that counts.
func (r Rules) in(dir string) []string {
	names := r.Names
	if len(names) == 0 {
		names = []string{DefaultName}
	}
	for _, name := range names {
		path := filepath.Join(dir, name)
		if file.Exists(path) {
			return []string{path}
		}
	}
	return nil
}

// below returns what a folder keeps for agents in .github.
func below(dir string) []string {
	var found []string
	if path := filepath.Join(dir, ".github", "copilot-instructions.md"); file.Exists(path) {
		found = append(found, path)
	}
	more, _ := filepath.Glob(filepath.Join(escape(dir), ".github", "instructions", "*.instructions.md")) // the pattern is sound
	return append(found, more...)
}

// escape makes a path a pattern for itself alone.
func escape(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// find returns the files of a folder and those above it, the nearest first.
func (r Rules) find(dir string) []string {
	var found []string
	for ; ; dir = filepath.Dir(dir) {
		found = append(found, r.in(dir)...)
		if dir == filepath.Dir(dir) || isRoot(dir) {
			return found
		}
	}
}

// isRoot reports whether a folder is where a repository, or a home, begins.
func isRoot(dir string) bool {
	if home, err := os.UserHomeDir(); err == nil && dir == home {
		return true
	}
	_, err := os.Lstat(filepath.Join(dir, ".git"))
	return !errors.Is(err, fs.ErrNotExist)
}

// rootOf is what links of a file may not leave: the project that it is in, or the
// further folder that it was found below.
func rootOf(path string, further []string) string {
	for _, dir := range further {
		if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
			return file.Root(dir)
		}
	}
	return file.Root(filepath.Dir(path))
}

// read reads at most so many bytes of a file, and never half a character.
func read(path string, further []string, most int) (string, event.InstructionSource, error) {
	data, cut, err := file.Read(rootOf(path, further), path, most)
	if err != nil {
		return "", event.InstructionSource{}, fmt.Errorf("instructions %s: %w", path, err)
	}
	s := event.InstructionSource{Path: path, Cut: cut}
	if s.Cut {
		data = trimPartial(data)
	}
	sum := sha256.Sum256(data)
	s.SHA256, s.Bytes = hex.EncodeToString(sum[:]), len(data)
	return strings.ToValidUTF8(string(data), "\uFFFD"), s, nil
}

// trimPartial removes the beginning of a character whose end was cut off.
func trimPartial(data []byte) []byte {
	for i := 1; i <= min(utf8.UTFMax, len(data)); i++ {
		if b := data[len(data)-i:]; utf8.RuneStart(b[0]) {
			if !utf8.FullRune(b) {
				return data[:len(data)-i]
			}
			return data
		}
	}
	return data
}
