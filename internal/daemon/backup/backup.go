// Package backup writes a data folder to one file and restores it from there.
//
//   - A backup is of one moment. It is taken beside a running engine, which is neither
//     stopped nor fenced.
//   - A backup is verified before it gets its name: the hash chain of every session, and
//     every byte of the file.
//   - A restored folder appears whole or not at all. It is verified before that.
//   - A backup gives no secret away: the key that opens them is left out, unless it is asked
//     for.
//   - What is killed at any time leaves nothing that looks like a backup or a data folder,
//     and the next run removes what it left.
//
// The file is a tar archive: the header, the files of the folder below data/, and the
// manifest, in that order. docs/STORE.md has the format, and says what is left out.
package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/abide-run/abide/internal/daemon/folder"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/eventlog/sqlite"
)

// A Source is a data folder to back up.
type Source struct {
	Dir     string // data folder
	Store   string // path of the store, which may be outside the folder
	KeyFile string // path of the file with the key of the secrets, which may be outside the folder
	Version string // version of this program

	WithKey      bool                                  // true to back up the key file and the token, too
	AllowDamaged bool                                  // true to back up damaged sessions as they are
	Progress     func(stage string, done, total int64) // may be nil
}

// A Report says what a backup has, or what was restored.
type Report struct {
	Sessions int
	Files    int
	Bytes    int64              // size of the files
	Damaged  []*eventlog.Damage // damaged sessions
	LeftOut  []string           // links, which are not followed, by their names in the folder
	Secrets  SecretsIn          // what the backup has of secrets
	Store    string             // place of the store in the restored folder
	WasAt    string             // place of the store when it was backed up, if it was outside the folder
}

// SecretsIn says what a backup has of the secrets of sessions.
type SecretsIn string

// The values of SecretsIn. Backups of older versions have none, and hold secrets in clear.
const (
	SecretsSealed  SecretsIn = "sealed"  // the backup has them, and not the key that opens them
	SecretsWithKey SecretsIn = "withKey" // the backup has them and the key
	SecretsLeftOut SecretsIn = "leftOut" // an older version has stored them in clear, so the backup has none
)

// A DamageError means that sessions are damaged, so that no backup was made.
type DamageError struct{ Damaged []*eventlog.Damage }

func (e *DamageError) Error() string {
	more := ""
	if n := len(e.Damaged) - 1; n > 0 {
		more = fmt.Sprintf(" (and %d more)", n)
	}
	return fmt.Sprintf("%s%s: no backup was made; delete the damaged sessions, or back them up as they are with --allow-damaged", e.Damaged[0], more)
}

// storeName is the name of a store in the archive that is outside the folder.
const storeName = folder.DatabaseName

// WriteFile writes a backup to a file, which appears when it is complete. It must not
// exist, unless replace is true.
func (s Source) WriteFile(ctx context.Context, path string, replace bool) (Report, error) {
	path, err := s.checkPath(path, replace)
	if err != nil {
		return Report{}, pathError{err}
	}
	scratch, err := newScratch(filepath.Dir(path), "."+filepath.Base(path)+".backup-")
	if err != nil {
		return Report{}, pathError{fmt.Errorf("%s cannot be written: %w; name a file in a folder that you can write to", path, reason(err))}
	}
	defer scratch.remove()
	file := filepath.Join(scratch.dir, "archive")
	report, err := s.writeSynced(ctx, file, scratch.dir)
	if isFull(err) {
		return report, pathError{fmt.Errorf("%s cannot be written: the disk is full; free some space, or name a file on another disk", path)}
	}
	if err != nil {
		return report, err
	}
	if err := s.checkWritten(ctx, file); err != nil {
		return report, fmt.Errorf("the backup was written, but cannot be read back: %w", err)
	}
	return report, publish(file, path, replace)
}

// reason returns an error without the name of the temporary file that it is about.
func reason(err error) error {
	if e, is := errors.AsType[*fs.PathError](err); is {
		return e.Err
	}
	return err
}

// isFull reports whether there was no room for what was to be written.
func isFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// A pathError is an error of the path of a backup.
type pathError struct{ error }

func (e pathError) Unwrap() error { return e.error }

// IsAboutPath reports whether an error of a backup is about the path that it was to be
// written to.
func IsAboutPath(err error) bool {
	_, is := errors.AsType[pathError](err)
	return is
}

// checkPath refuses a path at which no backup can be written.
func (s Source) checkPath(path string, replace bool) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return path, err
	}
	if inside(s.Dir, path) {
		return path, fmt.Errorf("%s is inside the data folder: name a file elsewhere, on another disk if there is one", path)
	}
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if _, err := os.Stat(filepath.Dir(path)); err != nil {
			return path, fmt.Errorf("%s cannot be written: %w; name a file in a folder that exists", path, err)
		}
		return path, nil
	case err != nil:
		return path, err
	case !info.Mode().IsRegular():
		return path, fmt.Errorf("%s is not a file: name a new file, or - for standard output", path)
	case !replace:
		return path, fmt.Errorf("%s exists: name a new file, or replace it with --force", path)
	}
	return path, nil
}

// inside reports whether a path is in a folder. Links are followed as far as the path
// exists.
func inside(dir, path string) bool {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	if real, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		path = filepath.Join(real, filepath.Base(path))
	}
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

func (s Source) writeSynced(ctx context.Context, path, scratch string) (Report, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return Report{}, err
	}
	report, err := s.write(ctx, f, scratch)
	if err == nil {
		err = f.Sync()
	}
	return report, errors.Join(err, f.Close())
}

// checkWritten reads a backup from the disk and checks every byte.
func (s Source) checkWritten(ctx context.Context, path string) error {
	f, info, err := openFile(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = readArchive(&meter{ctx: ctx, r: f, total: info.Size(), tell: s.stage("checking the backup")}, discard{})
	return err
}

// openFile opens a file for reading and describes it.
func openFile(path string) (*os.File, fs.FileInfo, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// publish gives a complete backup its name.
func publish(file, path string, replace bool) error {
	if !replace {
		err := os.Link(file, path) // fails if the path exists by now
		if errors.Is(err, fs.ErrExist) {
			return pathError{fmt.Errorf("%s exists by now: name a new file, or replace it with --force", path)}
		}
		if err == nil {
			return syncDir(filepath.Dir(path))
		}
	}
	if err := os.Rename(file, path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// Write writes a backup to a stream. It uses a folder for temporary files that has room
// for a copy of the store.
func (s Source) Write(ctx context.Context, w io.Writer) (Report, error) {
	scratch, err := newScratch(os.TempDir(), "abide-backup-")
	if err != nil {
		return Report{}, err
	}
	defer scratch.remove()
	return s.write(ctx, w, scratch.dir)
}

// write writes the archive. The log is copied first: everything that it refers to is in
// the folder by then.
func (s Source) write(ctx context.Context, w io.Writer, scratch string) (Report, error) {
	if _, err := sqlite.Inspect(ctx, s.Store); err != nil {
		return Report{}, folderError{err} // no backup can be made of it, wherever it is written to
	}
	log := filepath.Join(scratch, "store")
	if err := sqlite.Copy(ctx, s.Store, log, s.stage("copying the log")); err != nil {
		return Report{}, err
	}
	secrets, err := s.protectSecrets(ctx, log)
	if err != nil {
		return Report{}, err
	}
	names, damaged, err := verifyStore(ctx, log, s.stage("verifying sessions"))
	if err != nil {
		return Report{}, err
	}
	if len(damaged) > 0 && !s.AllowDamaged {
		return Report{}, &DamageError{damaged}
	}
	a, err := newArchive(w, header{Format: format, Abide: s.Version, Created: time.Now().UTC()})
	if err != nil {
		return Report{}, err
	}
	a.manifest.Damaged, a.manifest.Secrets = damages(damaged), secrets
	files := walker{Source: s, ctx: ctx, to: a, known: folderNames(names)}
	if err := files.walk(); err != nil {
		return Report{}, err
	}
	if err := files.addKey(); err != nil {
		return Report{}, err
	}
	if err := s.dropDeleted(ctx, a, log, names); err != nil {
		return Report{}, err
	}
	if err := s.addStore(ctx, a, log); err != nil {
		return Report{}, err
	}
	a.manifest.Sessions = len(names)
	if err := a.close(); err != nil {
		return Report{}, err
	}
	return a.manifest.report(), nil
}

// protectSecrets removes secrets from the copy of a log that an older version has written,
// which does not seal them, unless the backup is to have the key anyway. The log itself is
// not changed: the next engine seals them.
func (s Source) protectSecrets(ctx context.Context, log string) (SecretsIn, error) {
	if s.WithKey {
		return SecretsWithKey, nil
	}
	dropped, err := sqlite.DropClear(ctx, log)
	switch {
	case err != nil:
		return "", fmt.Errorf("the secrets, which an older version has stored in clear, cannot be left out: %w; start abide once, which seals them, or back them up as they are with --with-key", err)
	case dropped:
		return SecretsLeftOut, nil
	}
	return SecretsSealed, nil
}

// addStore adds the copy of the store under the name that it has in the folder.
func (s Source) addStore(ctx context.Context, a *archive, log string) error {
	a.manifest.Store = storeName
	if inside(s.Dir, s.Store) {
		a.manifest.Store = s.storeName()
	} else {
		a.manifest.WasAt = s.Store
	}
	f, info, err := openFile(log)
	if err != nil {
		return err
	}
	defer f.Close()
	return a.add(a.manifest.Store, info, &meter{ctx: ctx, r: f, total: info.Size(), tell: s.stage("writing the log")})
}

// storeName returns the name of the store relative to the folder.
func (s Source) storeName() string {
	dir, store := s.Dir, filepath.Dir(s.Store)
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	if real, err := filepath.EvalSymlinks(store); err == nil {
		store = real
	}
	rel, err := filepath.Rel(dir, filepath.Join(store, filepath.Base(s.Store)))
	if err != nil {
		return storeName
	}
	return filepath.ToSlash(rel)
}

// dropDeleted removes the sessions from the copy that were deleted while the files were
// copied: some of their files may be missing, and their owner wants them gone. What was
// copied of their files is removed by the first engine of the restored folder.
func (s Source) dropDeleted(ctx context.Context, a *archive, log string, names []event.SessionID) error {
	now, err := sqlite.Names(ctx, s.Store)
	if err != nil {
		return err
	}
	left := make(map[event.SessionID]bool, len(now))
	for _, id := range now {
		left[id] = true
	}
	var gone []event.SessionID
	for _, id := range names {
		if !left[id] {
			gone = append(gone, id)
		}
	}
	if len(gone) == 0 {
		return nil
	}
	if err := a.addDeletions(gone); err != nil {
		return err
	}
	return deleteFrom(ctx, log, gone)
}

// deleteFrom deletes sessions from a copy of a store.
func deleteFrom(ctx context.Context, log string, gone []event.SessionID) error {
	store, err := sqlite.Open(ctx, log, sqlite.Options{})
	if err != nil {
		return err
	}
	for _, id := range gone {
		if err = store.Delete(ctx, id); err != nil && !errors.Is(err, eventlog.ErrNotFound) {
			break
		}
		err = nil
	}
	return errors.Join(err, store.Close())
}

// stage returns the function that reports the progress of a part of the work.
func (s Source) stage(name string) func(done, total int64) {
	return stage(s.Progress, name)
}

func stage(progress func(string, int64, int64), name string) func(done, total int64) {
	if progress == nil {
		return func(int64, int64) {}
	}
	return func(done, total int64) { progress(name, done, total) }
}

// folderNames returns the names of the folders of sessions.
func folderNames(ids []event.SessionID) map[string]bool {
	names := make(map[string]bool, len(ids))
	for _, id := range ids {
		names[folder.SessionName(string(id))] = true
	}
	return names
}

// verifyStore verifies the hash chain of every session of a copied store. It returns the
// sessions, and what is damaged of them.
func verifyStore(ctx context.Context, path string, progress func(done, total int64)) (names []event.SessionID, damaged []*eventlog.Damage, err error) {
	c, err := sqlite.OpenCopy(ctx, path)
	if err != nil {
		return nil, nil, err
	}
	defer c.Close()
	all, err := c.Names(ctx)
	if err != nil {
		return nil, nil, err
	}
	for i, id := range all {
		progress(int64(i), int64(len(all)))
		err := c.Verify(ctx, id)
		damage, isDamage := errors.AsType[*eventlog.Damage](err)
		switch {
		case errors.Is(err, eventlog.ErrNotFound): // a damaged index names a session that was deleted
			continue
		case isDamage:
			damaged = append(damaged, damage)
		case err != nil:
			return nil, nil, err
		}
		names = append(names, id)
	}
	return names, damaged, nil
}

// A meter is a reader that reports how much of it was read, and ends when ctx is done.
type meter struct {
	ctx         context.Context
	r           io.Reader
	done, total int64
	tell        func(done, total int64)
}

func (m *meter) Read(b []byte) (int, error) {
	if err := context.Cause(m.ctx); err != nil {
		return 0, err
	}
	n, err := m.r.Read(b)
	m.done += int64(n)
	m.tell(m.done, max(m.total, m.done))
	return n, err
}

// excluded are the files of a data folder that belong to the processes on it, and mean
// nothing elsewhere: the lock, the socket and its token, and what an engine has not finished.
func excluded(name string) bool {
	dir, base := filepath.Split(name)
	switch dir {
	case "":
		return base == "lock" || base == "sock" || base == folder.TokenName || strings.HasPrefix(base, "."+folder.TokenName) || strings.HasPrefix(base, "doctor-")
	case "processes/":
		return base == "lock" || strings.HasPrefix(base, "new.") || strings.HasPrefix(base, "gone.")
	}
	return false
}
