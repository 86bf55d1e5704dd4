package backup

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/abide-run/abide/internal/daemon/folder"
	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/seal"
)

// A walker adds the files of a data folder to an archive.
type walker struct {
	Source
	ctx   context.Context
	to    *archive
	known map[string]bool // names of the folders of the sessions in the copied log
}

// walk adds everything but the store. Files come and go meanwhile: what is gone when it is
// looked at is left out.
func (w *walker) walk() error { return w.walkDir("") }

// walkDir adds the files below a folder. The folder of a process has its journal (state)
// read before its output, and its output before the index of that: so the last name comes
// first.
func (w *walker) walkDir(name string) error {
	entries, err := os.ReadDir(filepath.Join(w.Dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	slices.Reverse(entries)
	for _, e := range entries {
		if err := context.Cause(w.ctx); err != nil {
			return err
		}
		if err := w.visit(filepath.Join(name, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// visit adds a file, or what is in a folder. A link at the top was put there by the owner
// of the folder and is followed; any other may lead anywhere, and is left out.
func (w *walker) visit(name string) error {
	if excluded(name) || w.isStore(name) || w.isOfUnknownSession(name) || w.isKey(name) {
		return nil
	}
	path := filepath.Join(w.Dir, name)
	look := os.Lstat
	if filepath.Base(name) == name {
		look = os.Stat
	}
	info, err := look(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.IsDir():
		return w.walkDir(name)
	case info.Mode().IsRegular():
		return w.addFile(name)
	case info.Mode()&fs.ModeSymlink != 0:
		w.to.manifest.LeftOut = append(w.to.manifest.LeftOut, name)
	}
	return nil // sockets and the like belong to the processes that made them
}

// isStore reports whether a file is the store, or one that SQLite has beside it.
func (w *walker) isStore(name string) bool {
	if !inside(w.Dir, w.Store) {
		return name == storeName || strings.HasPrefix(name, storeName+"-")
	}
	store := filepath.FromSlash(w.storeName())
	return name == store || strings.HasPrefix(name, store+"-")
}

// isKey reports whether a file is the key file, an unfinished one, or the token with which
// clients connect: who has them needs no secret any more. addKey adds the key file if it is
// wanted.
func (w *walker) isKey(name string) bool {
	path := filepath.Join(w.Dir, name)
	if sameFile(path, w.KeyFile) || seal.IsDraft(filepath.Base(name), w.KeyFile) {
		return true
	}
	if filepath.Base(name) != name {
		return false
	}
	if name == seal.FileName || seal.IsDraft(name, seal.FileName) || strings.HasPrefix(name, ".token-") {
		return true // the setting may have been another one before
	}
	return name == tokenName && !w.WithKey
}

// tokenName is the name of the file with the token of this folder's listeners.
const tokenName = "token"

// sameFile reports whether two paths lead to the same file.
func sameFile(a, b string) bool {
	one, err := os.Stat(a)
	other, missing := os.Stat(b)
	return err == nil && missing == nil && os.SameFile(one, other)
}

// addKey adds the key file, if it is wanted and there is one. Its name is the usual one,
// wherever it is.
func (w *walker) addKey() error {
	if !w.WithKey {
		return nil
	}
	f, info, err := openFile(w.KeyFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	return w.to.add(seal.FileName, info, io.LimitReader(f, info.Size()))
}

// isOfUnknownSession reports whether a folder belongs to a session that the copied log does
// not have: it was created or deleted meanwhile.
func (w *walker) isOfUnknownSession(name string) bool {
	switch dir, base := filepath.Split(name); dir {
	case "sessions/":
		return !w.known[base]
	case "processes/":
		owner, ok := process.OwnerIn(filepath.Join(w.Dir, name))
		return ok && !w.known[folder.SessionName(string(owner))]
	}
	return false
}

// addFile adds a file as it is now. It may grow meanwhile, and a small one may get shorter.
func (w *walker) addFile(name string) error {
	f, info, err := openFile(filepath.Join(w.Dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	w.stage("copying files")(int64(len(w.to.manifest.Files)), 0)
	in := io.LimitReader(f, info.Size())
	if info.Size() <= maxShortened {
		text, err := io.ReadAll(in)
		if err != nil {
			return err
		}
		info, in = shortened{info, int64(len(text))}, bytes.NewReader(text)
	}
	return w.to.add(filepath.ToSlash(name), info, in)
}

// maxShortened is the size up to which a file is read before its length is written. The log of
// an engine, which is not larger, gets shorter while the engine runs.
const maxShortened = 8 << 20

// A shortened file may have become shorter since it was described.
type shortened struct {
	fs.FileInfo
	size int64
}

func (s shortened) Size() int64 { return s.size }
