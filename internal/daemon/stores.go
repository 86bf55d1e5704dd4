package daemon

import (
	"path/filepath"
	"strings"

	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/eventlog/sqlite"
)

// stores are the kinds of stores, by the scheme of their URL. A new kind needs a package
// that passes eventlogtest, and a line here.
var stores = eventlog.Kinds{
	sqlite.Scheme: sqlite.Kind,
}

// storeURL returns the URL of the log: that of the configuration, or the file in the
// data folder.
func storeURL(url, file string) string {
	if url != "" {
		return url
	}
	return sqlite.Scheme + ":" + file
}

// storeName returns the same name for all URLs of a store that processes on a data folder
// may have: a path may be relative, and lead through links. A path in the folder is
// named from there, because the folder may have several names itself.
func storeName(url, dir string) string {
	scheme, path, _ := strings.Cut(url, ":")
	if scheme != sqlite.Scheme {
		return url
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	path = filepath.Join(resolved(filepath.Dir(path)), filepath.Base(path))
	if inside, err := filepath.Rel(resolved(dir), path); err == nil && filepath.IsLocal(inside) {
		path = inside
	}
	return scheme + ":" + path
}

// resolved returns a path without links, or the path itself if that is not possible.
func resolved(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return filepath.Clean(path)
}
