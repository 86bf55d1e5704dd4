// Package instructions reads the files of a project that contain instructions for
// agents, such as AGENTS.md.
//
// It reads the file in the working directory, and those in the folders above it up to
// the root of the repository: AGENTS.md, or CLAUDE.md where there is none. The nearest file comes last, because models give the last
// text the most weight. Further folders that a client names come before all of these;
// of these, the files for agents below .github are read, too. The total size is limited, of
// which up to half is kept for the further folders, and no link is followed out of the project. A note says what was left out.
package instructions

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/workspace"
)

// The defaults.
const defaultMaxBytes = 32 << 10

var defaultNames = []string{"AGENTS.md", "CLAUDE.md"}

// Rules say which files are read. The zero value is usable.
type Rules struct {
	Names    []string // names of files, of which the first that exists in a folder is read; AGENTS.md and CLAUDE.md if empty
	MaxBytes int      // size of all files together; 32 KiB if zero
}

// A File is a file that was read.
type File struct {
	event.InstructionSource
	Content string
}

// Files reads the instruction files for a working directory and in further folders of a
// workspace, the nearest last. Files that cannot be read are left out; the error reports
// them, and the other files are returned with it.
func (r Rules) Files(ctx context.Context, from workspace.Projects, dir string, further ...string) ([]File, error) {
	left := cmp.Or(r.MaxBytes, defaultMaxBytes)
	found, err := from.Collect(ctx, r.selections(dir, further, left)...)
	if err != nil {
		return nil, fmt.Errorf("instructions: %w", err)
	}
	var files []File
	var errs []error
	reserved := 0
	if dir != "" {
		reserved = reserve(found[1:], left/2)
	}
	for _, group := range found {
		for _, c := range group { // the nearest first, so that it is not the one that is cut
			if c.Err != nil {
				errs = append(errs, fmt.Errorf("instructions %s: %w", c.Path, c.Err))
				continue
			}
			f := fileOf(c, left-reserved)
			left -= f.Bytes
			files = append(files, f)
		}
		reserved = 0
	}
	slices.Reverse(files)
	return files, errors.Join(errs...)
}

// reserve returns how many bytes are kept for the files of further folders: what they need, and
// no more than most. A project, which may be somebody else's, cannot push out what the user says.
func reserve(further [][]workspace.Collected, most int) int {
	n := int64(0)
	for _, c := range slices.Concat(further...) {
		n += c.Size
	}
	return int(min(n, int64(most)))
}

// Read returns the instructions as the model reads them, and the files that they come
// from.
func (r Rules) Read(ctx context.Context, from workspace.Projects, dir string, further ...string) (text string, sources []event.InstructionSource, err error) {
	files, err := r.Files(ctx, from, dir, further...)
	var parts []string
	for _, f := range files {
		parts, sources = append(parts, part(f.Content, f.InstructionSource)), append(sources, f.InstructionSource)
	}
	return strings.Join(parts, "\n\n"), sources, err
}

// part returns one file as the model reads it. A file cannot end its element, and go on as if
// somebody else was speaking.
func part(body string, s event.InstructionSource) string {
	note := ""
	if s.Cut {
		note = fmt.Sprintf("\n[cut after %d bytes]", s.Bytes)
	}
	return fmt.Sprintf("<instructions file=%q>\n%s%s\n</instructions>", s.Path, strings.ReplaceAll(strings.TrimSpace(body), "</instructions>", `<\instructions>`), note)
}

// FileNames returns the names of files, of which the first that exists in a folder is read.
func (r Rules) FileNames() []string {
	if len(r.Names) == 0 {
		return defaultNames
	}
	return r.Names
}

// selections say which files are read, the nearest first.
func (r Rules) selections(dir string, further []string, most int) []workspace.Selection {
	names := r.FileNames()
	var all []workspace.Selection
	add := func(s workspace.Selection) {
		s.Within, s.Most = further, most
		all = append(all, s)
	}
	if dir != "" {
		add(workspace.Selection{Dir: dir, Names: names, First: true, Above: true})
	}
	for _, more := range further {
		add(workspace.Selection{Dir: more, Names: names, First: true})
		add(workspace.Selection{Dir: more, Names: []string{".github/copilot-instructions.md"}})
		add(workspace.Selection{Dir: more, Pattern: ".github/instructions/*.instructions.md"})
	}
	return all
}

// fileOf returns the first bytes of a file, at most most of them, without cutting a
// character.
func fileOf(c workspace.Collected, most int) File {
	data := c.Content[:min(len(c.Content), most)]
	f := File{InstructionSource: event.InstructionSource{Path: c.Path, Cut: c.Size > int64(len(data))}}
	if f.Cut {
		data = trimPartial(data)
	}
	sum := sha256.Sum256(data)
	f.SHA256, f.Bytes = hex.EncodeToString(sum[:]), len(data)
	f.Content = strings.ToValidUTF8(string(data), "\uFFFD")
	return f
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
