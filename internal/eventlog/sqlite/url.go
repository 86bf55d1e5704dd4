package sqlite

import (
	"context"
	"errors"
	"path/filepath"
	"strings"

	"github.com/abide-run/abide/internal/eventlog"
)

// Scheme is the scheme of URLs of stores in a file.
const Scheme = "sqlite"

// Kind is the kind of store that a URL of the form sqlite:PATH names. A relative path
// starts from the folder that the options name.
var Kind = eventlog.Kind{Form: Scheme + ":PATH", Open: openURL, Check: checkPath, IsTemporary: isTemporary}

func openURL(ctx context.Context, path string, opts eventlog.Options) (eventlog.Store, error) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(opts.Dir, path)
	}
	s, err := Open(ctx, path, Options{Sync: opts.Sync})
	if err != nil {
		return nil, err
	}
	return s, nil
}

func checkPath(path string) error {
	switch {
	case strings.TrimSpace(path) == "":
		return errors.New("it names no file")
	case strings.HasPrefix(path, "//") && !strings.HasPrefix(path, "///"):
		return errors.New("a path does not begin with two slashes, because a file has no host")
	}
	return nil
}
