package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/abide-run/abide/internal/daemon/folder"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/eventlog/postgres"
	"github.com/abide-run/abide/internal/eventlog/sqlite"
	"github.com/abide-run/abide/internal/seal"
)

// stores are the kinds of stores, by the scheme of their URL. A new kind needs a package
// that passes eventlogtest, and a line here.
var stores = eventlog.Kinds{
	sqlite.Scheme:   sqlite.Kind,
	postgres.Scheme: postgres.Kind,
}

// storeURL returns the URL of the log: that of the configuration, or the file in the
// data folder.
func storeURL(url, file string) string {
	if url != "" {
		return url
	}
	return sqlite.Scheme + ":" + file
}

// CheckStore returns an error if a URL names no store. url is the setting store.url, which
// may be empty.
func CheckStore(url string) error {
	if url == "" {
		return nil
	}
	return stores.Check(url)
}

// checkStoreName refuses a store in a file of the data folder that the engine uses for something
// else, and would empty or replace.
func checkStoreName(url, dir, keyFile string) error {
	scheme, path, _ := strings.Cut(storeName(url, dir), ":")
	if scheme != sqlite.Scheme || !folder.Reserved(path) && storeName(url, dir) != storeName(sqlite.Scheme+":"+keyFile, dir) {
		return nil
	}
	return fmt.Errorf("the URL of the store, %q: abide uses the file %s for something else: choose another name and write %s", url, filepath.Base(path), sqlite.Kind.Form)
}

// StoreFile returns the path of the file of the log in a data folder. url is the setting
// store.url, which may be empty.
func StoreFile(url, dir string) (string, error) {
	url = storeURL(url, filepath.Join(dir, folder.DatabaseName))
	if err := stores.Check(url); err != nil {
		return "", err
	}
	scheme, path, _ := strings.Cut(url, ":")
	if scheme != sqlite.Scheme {
		return "", fmt.Errorf("store.url begins with %q, and this needs a log in a file: a database is backed up and made smaller with its own tools, such as pg_dump, and abide sessions verify checks its sessions", scheme+":")
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	return path, nil
}

// KeyFile returns the path of the file with the key of the secrets of a data folder. path is
// the setting store.key_file, which may be empty.
func KeyFile(path, dir string) string {
	if path == "" {
		path = seal.FileName
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	return path
}

// InspectSecrets reads the key file of a log, and how the log keeps its secrets. It does not
// disturb the process that uses the log.
func InspectSecrets(ctx context.Context, store, keyFile string) (*seal.File, sqlite.Sealed, error) {
	file, err := seal.OpenFile(keyFile)
	if err != nil {
		return nil, sqlite.Sealed{}, err
	}
	found, err := sqlite.InspectSecrets(ctx, store)
	return file, found, err
}

// Vacuum writes the file of a log anew, so that it is as small as it can be, and returns
// its size before and after. keyFile is the path of the key file. It refuses a folder that
// another process uses.
func Vacuum(ctx context.Context, dir, path, keyFile string) (before, after int64, err error) {
	f, err := folder.Open(dir)
	if err != nil {
		return 0, 0, err
	}
	lock, got, err := f.TryLock()
	if err != nil {
		return 0, 0, err
	}
	if !got {
		return 0, 0, fmt.Errorf("data folder %s is in use by %s: end it first, because nothing can be stored meanwhile", dir, f.Holder())
	}
	defer lock.Close()
	store, err := sqlite.Open(ctx, path, sqlite.Options{KeyFile: keyFile, Used: f.HasSessions()})
	if err != nil {
		return 0, 0, err
	}
	before = fileSize(path)
	err = errors.Join(store.Compact(ctx), store.Close())
	return before, fileSize(path), err
}

// fileSize returns the size of a file, or 0 if there is none.
func fileSize(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
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
