package seal

import (
	"bytes"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/crypto/chacha20poly1305"
)

// FileName is the usual name of a key file.
const FileName = "secrets.key"

// A File is a key file: a line for each key, of which the first one seals and any of them
// opens. So the lines of a file that was found again can be added to the one that has
// taken its place. A File is safe for concurrent use.
type File struct {
	path string

	mu     sync.Mutex
	keys   []*key      // empty if there is no file
	synced bool        // true if this process knows that the file is on the disk
	shared fs.FileMode // mode when it was read, if that was not private
}

// OpenFile reads a key file. A file that does not exist is made by Ready; its folder has to
// be there, because otherwise the disk with the file may not be mounted. If other users can read the file, that is corrected as far as possible, and
// Exposed reports it.
func OpenFile(path string) (*File, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("key file %s: %w", path, err)
	}
	f := &File{path: path}
	if err := f.read(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if _, err := os.Stat(filepath.Dir(path)); err != nil {
		return nil, f.explain(err)
	}
	return f, nil
}

// Path returns the absolute path of the file.
func (f *File) Path() string { return f.path }

// IDs returns the ids of the keys. There are none if there is no file.
func (f *File) IDs() []ID {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ids()
}

func (f *File) ids() (ids []ID) {
	for _, k := range f.keys {
		ids = append(ids, k.id)
	}
	return ids
}

// Exposed returns the mode of the file when it was read, if other users could read or
// write it, and 0 otherwise.
func (f *File) Exposed() fs.FileMode {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.shared
}

// Ready makes the file if it does not exist, and returns the id of the key that seals. The
// file and its folder entry are on the disk when it returns.
func (f *File) Ready() (ID, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.keys) == 0 {
		if err := f.make(); err != nil {
			return ID{}, err
		}
	}
	if !f.synced {
		if err := f.sync(); err != nil {
			return ID{}, err
		}
		f.synced = true
	}
	return f.keys[0].id, nil
}

// Derive returns 32 bytes that only those know who have the key that seals, for another purpose than
// sealing. They say nothing about the key.
func (f *File) Derive(purpose string) ([]byte, error) {
	if _, err := f.Ready(); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return hkdf.Key(sha256.New, f.keys[0].secret, nil, purpose, sha256.Size)
}

// Seal encrypts a value, which can be opened under the same labels only. Whoever stores the
// result calls Ready before, so that it can still be opened after a power cut.
func (f *File) Seal(value []byte, labels ...string) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.keys) == 0 {
		return nil, fmt.Errorf("key file %s: there is no key yet", f.path)
	}
	return f.keys[0].seal(value, labels), nil
}

// Open decrypts a value. The error is an *UnknownKeyError if its key is not in the file,
// and ErrChanged if it was changed or belongs in another place.
func (f *File) Open(sealed []byte, labels ...string) ([]byte, error) {
	id, ok := KeyOf(sealed)
	if !ok {
		return nil, ErrChanged
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, k := range f.keys {
		if k.id == id {
			return k.open(sealed, labels)
		}
	}
	return nil, &UnknownKeyError{Key: id, Path: f.path, Has: f.ids()}
}

// maxFile is the maximum size of a key file in bytes.
const maxFile = 64 << 10

// read reads the keys. A file that is not a key file is refused: it is not replaced,
// because nobody could bring back what was in it.
func (f *File) read() error {
	file, err := os.OpenFile(f.path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe would wait for a writer
	if err != nil {
		return f.explain(err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return f.explain(err)
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("key file %s is not a file: name a file with store.key_file", f.path)
	}
	text, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err != nil {
		return f.explain(err)
	}
	keys, err := parse(text)
	if err != nil {
		return fmt.Errorf("key file %s: %w: put a copy of it back, or move it away to lose the secrets of all sessions and nothing else", f.path, err)
	}
	if f.shared = 0; info.Mode().Perm()&0o077 != 0 {
		f.shared = info.Mode().Perm()
		_ = file.Chmod(f.shared &^ 0o077) // Exposed is told to a person in any case
	}
	f.keys = keys
	return nil
}

// explain adds the reason and the way out to an error of the file.
func (f *File) explain(err error) error {
	reason := err
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		reason = e.Err
	}
	switch {
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("key file %s cannot be used by you: change its owner or mode, or name another file with store.key_file (%w)", f.path, reason)
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("key file %s: its folder does not exist: make or mount it, or name another file with store.key_file (%w)", f.path, reason)
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("key file %s: the disk is full: free some space (%w)", f.path, reason)
	case errors.Is(err, syscall.EROFS):
		return fmt.Errorf("key file %s: the disk is read-only: mount it writable, or name another file with store.key_file (%w)", f.path, reason)
	}
	return fmt.Errorf("key file %s: %w", f.path, reason)
}

// A line of a key file is the mark, and the key with the start of its digest in base64: a
// key that was cut or mistyped is not taken for another one.
const (
	mark     = "abide-secrets-key-1 "
	checkLen = 4
)

const heading = "# This key opens the secrets in abide's log: keep it private, and apart from copies of the log.\n"

func encodeKey(secret []byte) string {
	sum := sha256.Sum256(secret)
	return mark + base64.StdEncoding.EncodeToString(append(slices.Clip(secret), sum[:checkLen]...)) + "\n"
}

// parse decodes the lines of a key file.
func parse(text []byte) (keys []*key, err error) {
	if len(text) > maxFile {
		return nil, errors.New("it is too large for a key file")
	}
	for n, line := range strings.Split(string(text), "\n") {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		k, err := parseKey(line)
		if err != nil {
			return nil, fmt.Errorf("line %d is no key, or was changed", n+1)
		}
		if !slices.ContainsFunc(keys, func(other *key) bool { return other.id == k.id }) {
			keys = append(keys, k)
		}
	}
	if len(keys) == 0 {
		return nil, errors.New("it has no key")
	}
	return keys, nil
}

var errNoKey = errors.New("it is no key")

func parseKey(line string) (*key, error) {
	encoded, ok := strings.CutPrefix(line, mark)
	if !ok {
		return nil, errNoKey
	}
	b, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if err != nil || len(b) != chacha20poly1305.KeySize+checkLen {
		return nil, errNoKey
	}
	secret := b[:chacha20poly1305.KeySize]
	if sum := sha256.Sum256(secret); !bytes.Equal(sum[:checkLen], b[chacha20poly1305.KeySize:]) {
		return nil, errNoKey
	}
	return newKey(secret)
}

// atStep is called between the steps of making a file. Tests end the process there.
var atStep = func(step string) {}

// make makes the file under another name and then gives it its own, so that it is never
// there in part. Of processes that do this at the same time one succeeds, and the others take
// its key.
func (f *File) make() error {
	dir := filepath.Dir(f.path)
	secret := make([]byte, chacha20poly1305.KeySize)
	rand.Read(secret)                                 // it never fails
	draft, err := os.CreateTemp(dir, f.draftPrefix()) // only its owner can read it
	if err != nil {
		return f.explain(err)
	}
	defer os.Remove(draft.Name())
	atStep("made the draft")
	_, err = draft.WriteString(heading + encodeKey(secret))
	atStep("wrote the draft")
	if err = errors.Join(err, draft.Sync(), draft.Close()); err != nil {
		return f.explain(err)
	}
	atStep("synced the draft")
	if err := publish(draft.Name(), f.path); err != nil && !errors.Is(err, fs.ErrExist) {
		return f.explain(err)
	}
	atStep("named the file")
	f.removeLeftovers(dir)
	if err := f.read(); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("key file %s is a link to a file that does not exist: put the file back, or remove the link", f.path)
	} else if err != nil {
		return err
	}
	return nil
}

// publish gives a file its name unless there is one of that name. Not every file system has
// hard links.
func publish(draft, path string) error {
	err := os.Link(draft, path)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	if _, err := os.Lstat(path); err == nil { // then another process may have removed the draft
		return fs.ErrExist
	}
	return renameNew(draft, path)
}

// sync writes the file and its folder entry to the disk. Another process may have been
// killed after it made the file and before it did so. A folder that this user may not read
// is one that an administrator has made.
func (f *File) sync() error {
	real, err := filepath.EvalSymlinks(f.path)
	if err != nil {
		return f.explain(err)
	}
	for _, path := range []string{real, filepath.Dir(real)} {
		file, err := os.Open(path)
		if err == nil {
			err = errors.Join(ignoreUnable(file.Sync()), file.Close())
		}
		if err != nil && !errors.Is(err, fs.ErrPermission) {
			return f.explain(err)
		}
	}
	atStep("synced the folder")
	return nil
}

// ignoreUnable drops the error of a file system that cannot sync a file of that kind.
func ignoreUnable(err error) error {
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.EROFS) || errors.Is(err, syscall.ENOTSUP) {
		return nil
	}
	return err
}

// draftPrefix is how the names of unfinished files begin.
func (f *File) draftPrefix() string { return "." + filepath.Base(f.path) + "-" }

// removeLeftovers removes what killed processes have left. No value was sealed with it. It is
// called when the file has its name: the draft of a process that makes it at the same time is
// then of no use.
func (f *File) removeLeftovers(dir string) {
	entries, _ := os.ReadDir(dir) // the file is made next, which reports an error
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), f.draftPrefix()) && e.Type().IsRegular() {
			os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}

// IsDraft reports whether a file in the folder of a key file is an unfinished key file.
func IsDraft(name, keyFile string) bool {
	return strings.HasPrefix(name, "."+filepath.Base(keyFile)+"-")
}
