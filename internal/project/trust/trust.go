// Package trust keeps which directories a user trusts, so that the configuration of a
// project there applies as a whole and not only where it restricts.
//
//   - Trust is bound to what the configuration held when it was shown: whoever changes
//     the file afterwards gains nothing, and the user can be shown what has changed.
//   - A directory is known by its path without links.
package trust

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

	"github.com/abide-run/abide/internal/project/file"
)

// File is the name of a project's configuration file.
const File = "abide.toml"

// maxFile is the maximum size of a project's configuration, in bytes.
const maxFile = 1 << 20

// A Store keeps the records in the data folder.
type Store struct{ folder string }

// Open returns the store in a data folder, which need not exist.
func Open(dataFolder string) Store { return Store{dataFolder} }

// A Record says that a directory is trusted.
type Record struct {
	Dir    string // path without symbolic links
	Digest string // digest of its configuration; empty in records of older versions, which had none
}

// Covers reports whether the user has seen this configuration. No file is the same as an
// empty one.
func (r Record) Covers(content []byte) bool {
	return r.Digest == digest(content) || len(content) == 0
}

const digestPrefix = "\tsha256:"

// digest returns the digest of a configuration.
func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// file returns the path of the list: a directory and a digest in each line.
func (s Store) file() string { return filepath.Join(s.folder, "trusted") }

func (s Store) contentFile(digest string) string {
	return filepath.Join(s.folder, "trust", filepath.Base(digest)+".toml")
}

// List returns all records.
func (s Store) List() ([]Record, error) {
	text, err := os.ReadFile(s.file())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the list of trusted directories: %w", err)
	}
	var list []Record
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" {
			continue
		}
		r := Record{Dir: line}
		if i := strings.LastIndex(line, digestPrefix); i >= 0 {
			r = Record{line[:i], line[i+len(digestPrefix):]}
		}
		list = append(list, r)
	}
	return list, nil
}

// Find returns the record of a directory.
func (s Store) Find(dir string) (Record, bool, error) {
	list, err := s.List()
	dir = realDir(dir)
	i := slices.IndexFunc(list, func(r Record) bool { return r.Dir == dir })
	if i < 0 {
		return Record{}, false, err
	}
	return list[i], true, err
}

// Shown returns the configuration that the user has seen; nil if it is not known.
func (s Store) Shown(r Record) []byte {
	content, err := os.ReadFile(s.contentFile(r.Digest))
	if err != nil || digest(content) != r.Digest {
		return nil
	}
	return content
}

// Trust records that the user trusts a directory with this configuration, and returns
// the directory without links.
func (s Store) Trust(dir string, content []byte) (string, error) {
	dir = realDir(dir)
	sum := digest(content)
	err := checkName(dir)
	if err == nil {
		err = os.MkdirAll(filepath.Join(s.folder, "trust"), 0o700)
	}
	if err == nil {
		err = replaceFile(s.contentFile(sum), content)
	}
	if err == nil {
		err = s.change(dir, &Record{dir, sum})
	}
	return dir, trustError(err)
}

// checkName refuses a directory whose name would be taken for records of others.
func checkName(dir string) error {
	if strings.ContainsAny(dir, "\n\r\t") {
		return fmt.Errorf("the name %q has a line break or a tab: rename the directory", dir)
	}
	return nil
}

// TrustNow records trust in a directory as its configuration is now: for a client that
// asks for it.
func (s Store) TrustNow(dir string) error {
	content, err := Read(dir)
	if err == nil {
		_, err = s.Trust(dir, content)
	}
	return err
}

// Remove removes the record of a directory, and returns the directory without links.
func (s Store) Remove(dir string) (string, error) {
	dir = realDir(dir)
	return dir, trustError(s.change(dir, nil))
}

func trustError(err error) error {
	if err != nil {
		return fmt.Errorf("cannot write the list of trusted directories: %w", err)
	}
	return nil
}

// change replaces the record of a directory.
func (s Store) change(dir string, to *Record) error {
	list, err := s.List()
	if err != nil {
		return err
	}
	list = slices.DeleteFunc(list, func(r Record) bool { return r.Dir == dir })
	if to != nil {
		list = append(list, *to)
	}
	var text strings.Builder
	for _, r := range list {
		text.WriteString(r.Dir)
		if r.Digest != "" {
			text.WriteString(digestPrefix + r.Digest)
		}
		text.WriteString("\n")
	}
	if err := os.MkdirAll(s.folder, 0o700); err != nil {
		return err
	}
	return replaceFile(s.file(), []byte(text.String()))
}

// Read returns the configuration of a directory; nil if it has none. Links are not
// followed out of the project.
func Read(dir string) ([]byte, error) {
	path := filepath.Join(dir, File)
	content, size, err := file.Read(file.Root(dir), path, maxFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case size > maxFile:
		err = fmt.Errorf("it has more than %d bytes", maxFile)
	}
	if err != nil {
		return nil, fmt.Errorf("configuration %s: %w", path, err)
	}
	return content, nil
}

// realDir returns the path of a directory without symbolic links, so that a link to a
// trusted directory is not trusted itself.
func realDir(dir string) string {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		return real
	}
	return dir
}

// replaceFile replaces a file as a whole.
func replaceFile(path string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // after the rename there is nothing to remove
	_, err = f.Write(content)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
