// Package instructions reads the files of a project that contain instructions for
// agents, such as AGENTS.md.
//
// It reads the file in the working directory, and those in the folders above it up to
// the root of the repository. The nearest file comes last, because models give the last
// text the most weight. Further folders that a client names come before all of these;
// of these, the files for agents below .github are read, too. The total size is limited,
// and no link is followed out of the project. A note says what was left out.
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
	defaultName     = "AGENTS.md"
	defaultMaxBytes = 32 << 10
)

// Rules say which files are read. The zero value is usable.
type Rules struct {
	Names    []string // names of files, of which the first that exists in a folder is read; AGENTS.md if empty
	MaxBytes int      // size of all files together; 32 KiB if zero
}

// A File is a file that was read.
type File struct {
	event.InstructionSource
	Content string
}

// Files reads the instruction files for a working directory and in further folders, the
// nearest last. Files that cannot be read are left out; the error reports them, and the
// other files are returned with it.
func (r Rules) Files(dir string, further ...string) ([]File, error) {
	left := r.MaxBytes
	if left == 0 {
		left = defaultMaxBytes
	}
	var files []File
	var errs []error
	for _, path := range r.all(dir, further) { // the nearest first, so that it is not the one that is cut
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

// Read returns the instructions as the model reads them, and the files that they come
// from.
func (r Rules) Read(dir string, further ...string) (text string, sources []event.InstructionSource, err error) {
	files, err := r.Files(dir, further...)
	var parts []string
	for _, f := range files {
		parts, sources = append(parts, part(f.Content, f.InstructionSource)), append(sources, f.InstructionSource)
	}
	return strings.Join(parts, "\n\n"), sources, err
}

// part returns one file as the model reads it.
func part(body string, s event.InstructionSource) string {
	note := ""
	if s.Cut {
		note = fmt.Sprintf("\n[cut after %d bytes]", s.Bytes)
	}
	return fmt.Sprintf("<instructions file=%q>\n%s%s\n</instructions>", s.Path, strings.TrimSpace(body), note)
}

// all returns the paths of all files to read, the nearest first.
func (r Rules) all(dir string, further []string) []string {
	var found []string
	if dir != "" {
		found = r.find(dir)
	}
	for _, more := range further {
		found = append(found, r.inFolder(more)...)
		found = append(found, below(more)...)
	}
	return found
}

// inFolder returns the path of the file to read in a folder, if there is one.
func (r Rules) inFolder(dir string) []string {
	names := r.Names
	if len(names) == 0 {
		names = []string{defaultName}
	}
	for _, name := range names {
		path := filepath.Join(dir, name)
		if file.Exists(path) {
			return []string{path}
		}
	}
	return nil
}

// below returns the paths of the files for agents below .github in a folder.
func below(dir string) []string {
	var found []string
	if path := filepath.Join(dir, ".github", "copilot-instructions.md"); file.Exists(path) {
		found = append(found, path)
	}
	more, _ := filepath.Glob(filepath.Join(escape(dir), ".github", "instructions", "*.instructions.md")) // the pattern is valid
	return append(found, more...)
}

// escape returns a pattern that matches only the path itself.
func escape(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// find returns the paths of the files in a folder and in those above it, the nearest
// first.
func (r Rules) find(dir string) []string {
	var found []string
	for ; ; dir = filepath.Dir(dir) {
		found = append(found, r.inFolder(dir)...)
		if dir == filepath.Dir(dir) || isRoot(dir) {
			return found
		}
	}
}

// isRoot reports whether a folder is the root of a repository or a home directory.
func isRoot(dir string) bool {
	if home, err := os.UserHomeDir(); err == nil && dir == home {
		return true
	}
	_, err := os.Lstat(filepath.Join(dir, ".git"))
	return !errors.Is(err, fs.ErrNotExist)
}

// rootOf returns the folder that links of a file must not leave: the project that it is
// in, or that of the further folder in which it was found.
func rootOf(path string, further []string) string {
	for _, dir := range further {
		if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
			return file.Root(dir)
		}
	}
	return file.Root(filepath.Dir(path))
}

// read reads the first bytes of a file, at most most of them, without cutting a
// character.
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
