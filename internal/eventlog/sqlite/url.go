package sqlite

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/seal"
)

// Scheme is the scheme of URLs of stores in a file.
const Scheme = "sqlite"

// Kind is the kind of store that a URL of the form sqlite:PATH names. A relative path
// starts from the folder that the options name.
var Kind = eventlog.Kind{Form: Scheme + ":PATH", Open: openURL, Check: checkPath, Plain: true, IsTemporary: isTemporary}

func openURL(ctx context.Context, path string, opts eventlog.Options) (eventlog.Store, error) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(opts.Dir, path)
	}
	keyFile := opts.KeyFile
	if keyFile == "" {
		keyFile = filepath.Join(opts.Dir, seal.FileName)
	}
	s, err := Open(ctx, path, Options{Sync: opts.Sync, KeyFile: keyFile, Warn: opts.Warn, Used: opts.Used})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// beside are the ends of the names of files that SQLite and the search index make beside a
// store. A store of such a name would be overwritten, or removed, with the other one.
var beside = []string{"-wal", "-shm", "-journal", "-search"}

// checkPath refuses what other programs that use SQLite would read as something else than
// a path, and what was meant for a shell: a file of such a name would be made, and the
// sessions in it be looked for elsewhere later. It also refuses the names of files that
// belong to another store.
func checkPath(path string) error {
	name, isURL := cutFile(path)
	base := filepath.Base(path)
	_, settings, _ := strings.Cut(base, "?")
	switch {
	case strings.TrimSpace(path) == "":
		return errors.New("it names no file")
	case strings.HasPrefix(path, "//") && !strings.HasPrefix(path, "///"):
		return errors.New("a path does not begin with two slashes, because a file has no host")
	case strings.HasPrefix(name, ":memory:"):
		return errors.New("a store in memory loses every session when abide ends, so it has to be a file")
	case strings.Contains(settings, "="):
		return errors.New("settings after a question mark are not read")
	case isURL:
		return errors.New("file: is not read before a path")
	case strings.HasPrefix(path, "~/"):
		return errors.New("~ is not replaced by your home folder")
	case strings.TrimSpace(path) != path:
		return errors.New("it begins or ends with a space")
	case strings.HasSuffix(path, "/") || base == "." || base == "..":
		return errors.New("it names a folder, not a file")
	}
	for _, end := range beside {
		if strings.HasSuffix(base, end) {
			return fmt.Errorf("a file whose name ends in %s belongs to the store beside it", end)
		}
	}
	return nil
}

// cutFile returns what follows the scheme of a URL of a file, and reports whether there is
// such a scheme.
func cutFile(path string) (rest string, found bool) {
	const scheme = "file:"
	if len(path) >= len(scheme) && strings.EqualFold(path[:len(scheme)], scheme) {
		return path[len(scheme):], true
	}
	return path, false
}
