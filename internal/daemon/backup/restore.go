package backup

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/abide-run/abide/internal/daemon/folder"
	"github.com/abide-run/abide/internal/eventlog/sqlite"
	"github.com/abide-run/abide/internal/process"
)

// A Target is a data folder to be restored. It does not exist yet, or is empty.
type Target struct {
	Dir      string
	Progress func(stage string, done, total int64) // may be nil
}

// lostReason is what sessions are told of the commands that ran when the backup was made.
const lostReason = "the data folder was restored from a backup, and the command belonged to the folder that was backed up; how it ended is not known"

// ReadFile restores the folder from the backup in a file.
func (t Target) ReadFile(ctx context.Context, path string) (Report, error) {
	f, info, err := openFile(path)
	if err != nil {
		return Report{}, err
	}
	defer f.Close()
	if info.IsDir() {
		return Report{}, fmt.Errorf("%s is a folder: name the file that abide backup wrote", path)
	}
	report, err := t.read(ctx, f, info.Size())
	if err != nil && !IsAboutFolder(err) {
		err = fmt.Errorf("backup %s: %w", path, err)
	}
	return report, err
}

// Read restores the folder from the backup in a stream.
func (t Target) Read(ctx context.Context, r io.Reader) (Report, error) {
	report, err := t.read(ctx, r, 0)
	if err != nil && !IsAboutFolder(err) {
		err = fmt.Errorf("backup: %w", err)
	}
	return report, err
}

// A folderError is an error of the folder, and not of the backup.
type folderError struct{ error }

func (e folderError) Unwrap() error { return e.error }

// IsAboutFolder reports whether an error is about the data folder that is backed up or
// restored into, and not about the backup.
func IsAboutFolder(err error) bool {
	_, is := errors.AsType[folderError](err)
	return is
}

func (t Target) read(ctx context.Context, r io.Reader, size int64) (report Report, err error) {
	if t.Dir, err = filepath.Abs(t.Dir); err != nil {
		return report, folderError{err}
	}
	if err := t.check(); err != nil {
		return report, folderError{err}
	}
	parent := filepath.Dir(t.Dir)
	undo, err := makeParents(parent)
	if err != nil {
		return report, folderError{err}
	}
	defer func() {
		if err != nil {
			undo()
		}
	}()
	work, err := newScratch(parent, "."+filepath.Base(t.Dir)+".restore-")
	if err != nil {
		return report, folderError{fmt.Errorf("restore into %s: %w; restore into a folder that you can write to with --home", t.Dir, reason(err))}
	}
	defer work.remove()
	data := filepath.Join(work.dir, "data")
	m, err := t.unpack(ctx, r, size, data)
	if isFull(err) {
		return report, folderError{fmt.Errorf("restore into %s: the disk is full; free some space, or restore into a folder on another disk with --home", t.Dir)}
	}
	if err != nil {
		return report, err
	}
	if err := t.prepare(ctx, data, m); err != nil {
		return report, err
	}
	return m.report(), t.publish(data)
}

// check refuses a folder into which nothing can be restored.
func (t Target) check() error {
	if holder, used := folder.InUse(t.Dir); used {
		return fmt.Errorf("data folder %s is in use by %s: end it, and restore into a folder that is new or empty", t.Dir, holder)
	}
	info, err := os.Lstat(t.Dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("data folder %s is not a folder: restore into a folder that is new or empty", t.Dir)
	}
	entries, err := os.ReadDir(t.Dir)
	switch {
	case err != nil:
		return err
	case len(entries) > 0:
		return fmt.Errorf("data folder %s is not empty: move it away, or restore into another folder with --home", t.Dir)
	case isMount(info, filepath.Dir(t.Dir)):
		return fmt.Errorf("data folder %s is the root of a file system, which cannot be replaced as a whole: restore into a folder in it with --home", t.Dir)
	}
	return nil
}

// isMount reports whether a folder is on another file system than its parent.
func isMount(info fs.FileInfo, parent string) bool {
	above, err := os.Stat(parent)
	if err != nil {
		return false
	}
	a, ok := info.Sys().(*syscall.Stat_t)
	b, known := above.Sys().(*syscall.Stat_t)
	return ok && known && a.Dev != b.Dev
}

// makeParents creates a folder with the folders above it. undo removes those that it has
// created.
func makeParents(dir string) (undo func(), err error) {
	var missing []string
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Stat(at); err == nil || at == filepath.Dir(at) {
			break
		}
		missing = append(missing, at)
	}
	return func() {
		for _, path := range missing {
			os.Remove(path)
		}
	}, os.MkdirAll(dir, 0o700)
}

// unpack writes the files of a backup into a new folder and compares them with the
// manifest.
func (t Target) unpack(ctx context.Context, r io.Reader, size int64, data string) (*manifest, error) {
	if err := os.Mkdir(data, 0o700); err != nil {
		return nil, folderError{err}
	}
	root, err := os.OpenRoot(data)
	if err != nil {
		return nil, folderError{err}
	}
	defer root.Close()
	return readArchive(&meter{ctx: ctx, r: r, total: size, tell: stage(t.Progress, "reading the backup")}, unpacker{root})
}

// An unpacker writes the files of a backup into a folder, and nowhere else.
type unpacker struct{ root *os.Root }

func (u unpacker) put(name string, h *tar.Header, content io.Reader) error {
	name = filepath.FromSlash(name)
	err := u.root.MkdirAll(filepath.Dir(name), 0o700)
	var f *os.File
	if err == nil {
		f, err = u.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600|fs.FileMode(h.Mode)&0o700)
	}
	if errors.Is(err, fs.ErrExist) || errors.Is(err, syscall.ENOTDIR) {
		return fmt.Errorf("it has two files of the name %q, or of a folder above it: %w", name, errDamaged)
	}
	if err != nil {
		return folderError{err}
	}
	_, err = io.Copy(f, content)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return u.root.Chtimes(name, h.ModTime, h.ModTime)
}

// prepare verifies an unpacked folder and makes it one that can go on.
func (t Target) prepare(ctx context.Context, data string, m *manifest) error {
	store := filepath.Join(data, filepath.FromSlash(m.Store))
	names, damaged, err := verifyStore(ctx, store, stage(t.Progress, "verifying sessions"))
	if err != nil {
		return err
	}
	for _, d := range damaged {
		if !slices.ContainsFunc(m.Damaged, func(known damage) bool { return known.Session == d.Session }) {
			return fmt.Errorf("%w: %w", errDamaged, d)
		}
	}
	m.Sessions, m.Damaged = len(names), damages(damaged)
	if err := process.RecordLost(filepath.Join(data, "processes"), lostReason); err != nil {
		return err
	}
	return sqlite.Convert(ctx, store)
}

// publish gives a complete folder its name, which an empty folder may have.
func (t Target) publish(data string) error {
	tell := stage(t.Progress, "writing to disk")
	tell(0, 1)
	if err := syncTree(data); err != nil {
		return folderError{err}
	}
	tell(1, 1)
	err := syscall.Rename(data, t.Dir) // os.Rename refuses a folder that exists, even if it is empty
	switch {
	case errors.Is(err, syscall.ENOTEMPTY), errors.Is(err, syscall.EEXIST):
		err = fmt.Errorf("data folder %s is not empty any more: another process has used it meanwhile", t.Dir)
	case err != nil:
		err = fmt.Errorf("restore into %s: %w", t.Dir, err)
	default:
		err = syncDir(filepath.Dir(t.Dir))
	}
	if err != nil {
		return folderError{err}
	}
	return nil
}
