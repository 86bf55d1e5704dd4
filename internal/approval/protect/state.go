package protect

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A State is what a target was like when it was looked at. The zero State means that
// there was no file. A folder counts as none, unless it is crowded; its Mode says that it is
// one. A link to a folder is a file.
type State struct {
	Exists  bool   `json:"exists,omitempty"`
	Crowd   bool   `json:"crowd,omitempty"` // the target is a folder with more files than are looked at one by one
	Link    string `json:"link,omitempty"`  // target of the file, if it is a link
	Mode    uint32 `json:"mode,omitempty"`
	UID     uint32 `json:"uid,omitempty"`
	GID     uint32 `json:"gid,omitempty"`
	Content []byte `json:"content,omitempty"` // nil if the file is too large to be kept
	Digest  string `json:"digest,omitempty"`  // digest of the content; empty if it could not be read
	// Aside is the name under which a file that is too large to be kept is set aside in
	// its folder, see [AsideName]. It is empty if the file is not.
	Aside string `json:"aside,omitempty"`
	// Marks are the signs by which a later look knows that nothing was changed: of the
	// name, and of the file that a link leads to.
	Marks [2]Mark `json:"marks,omitzero"`
}

// A Mark is what the system says of a file. No program can change a file and keep its
// mark, because the system sets the time of the last change of state.
type Mark struct {
	Dev, Ino            uint64
	Size, Changed, Mode int64
}

// MaxKept is the maximum size of a file that can be put back.
const MaxKept = 1 << 20

// maxDigested is the maximum size of a file of which the content is looked at.
const maxDigested = 64 << 20

// settled is the time after which a change shows in the mark of a file for certain: the
// clock of file systems is coarse.
const settled = 100 * time.Millisecond

// Look returns the present state of a path. It reads the file only if its marks differ
// from those of the state before.
func Look(path string, before State) State {
	name, err := mark(path, unix.Lstat)
	if err != nil {
		return State{}
	}
	final, err := mark(path, unix.Stat)
	if err == nil && final.Mode&unix.S_IFMT == unix.S_IFDIR {
		s := lookAtFolder(path, final)
		s.noteLink(path, name)
		return s
	}
	marks := [2]Mark{name, final}
	if before.Exists && marks == before.Marks {
		return before
	}
	s := State{Exists: true, Mode: uint32(final.Mode) & 0o7777, Marks: marks}
	s.noteLink(path, name)
	if final.Mode&unix.S_IFMT == unix.S_IFREG {
		s.read(path)
	}
	if latest := max(name.Changed, final.Changed); time.Since(time.Unix(0, latest)) < settled {
		s.Marks = [2]Mark{}
	}
	return s
}

// LookAtParent returns the present state of a folder that files are looked at in: whether
// there is one, and whether it is a link. What is in it does not count.
func LookAtParent(path string) State {
	name, err := mark(path, unix.Lstat)
	if err != nil {
		return State{}
	}
	s := State{}
	if final, err := mark(path, unix.Stat); err == nil && final.Mode&unix.S_IFMT == unix.S_IFDIR {
		s.Mode = unix.S_IFDIR
	}
	s.noteLink(path, name)
	return s
}

// IsFolder reports whether the path is a folder, or leads to one.
func (s State) IsFolder() bool { return s.Mode&unix.S_IFMT == unix.S_IFDIR }

// noteLink notes where a name leads, if its mark is that of a link.
func (s *State) noteLink(path string, name Mark) {
	if name.Mode&unix.S_IFMT != unix.S_IFLNK {
		return
	}
	s.Exists = true
	var err error
	if s.Link, err = os.Readlink(path); err != nil {
		s.Link = "?"
	}
}

// lookAtFolder returns the state of a folder. The digest of a crowded folder is that of the
// names and marks of what is in it.
func lookAtFolder(path string, folder Mark) State {
	if _, all := entries(path, maxEntries); all {
		return State{Mode: unix.S_IFDIR}
	}
	names, _ := entries(path, math.MaxInt-1)
	list := sha256.New()
	for _, name := range names {
		m, _ := mark(filepath.Join(path, name), unix.Lstat) // one that is gone has none
		folder.Changed = max(folder.Changed, m.Changed)
		fmt.Fprintf(list, "%q %v\n", name, m)
	}
	return State{Exists: true, Crowd: true, Mode: unix.S_IFDIR, Digest: hex.EncodeToString(list.Sum(nil)), Marks: [2]Mark{folder, folder}}
}

// mark returns the mark of a file. It is zero for a link that leads to nothing.
func mark(path string, stat func(string, *unix.Stat_t) error) (Mark, error) {
	var st unix.Stat_t
	for {
		err := stat(path, &st)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return Mark{}, err
		}
		return Mark{uint64(st.Dev), st.Ino, st.Size, st.Ctim.Nano(), int64(st.Mode)}, nil
	}
}

// read reads the content of the file. Opening never blocks, even if the file was replaced
// by a pipe meanwhile.
func (s *State) read(path string) {
	f, err := openRegular(path)
	if err != nil {
		return
	}
	defer func() { _ = f.Close() }()
	var st unix.Stat_t
	if unix.Fstat(int(f.Fd()), &st) == nil {
		s.UID, s.GID = st.Uid, st.Gid
	}
	data, err := io.ReadAll(io.LimitReader(f, maxDigested))
	if err != nil {
		return
	}
	s.Digest = Digest(data)
	if len(data) <= MaxKept {
		s.Content = append([]byte{}, data...)
	}
}

// Digest returns the digest of a content, as states have it.
func Digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// Before reports whether the file was last changed before a time, for certain.
func (s State) Before(t time.Time) bool {
	return s.Exists && s.Marks != [2]Mark{} && time.Unix(0, max(s.Marks[0].Changed, s.Marks[1].Changed)).Before(t.Add(-settled))
}

// Same reports whether two states of a target differ in nothing that matters: in what
// the file holds, where it leads, and whether it can be run. Of a configuration file of
// git only the keys that run code matter, and a work tree elsewhere.
func (t Target) Same(a, b State) bool {
	if t.Git && a.kept() && b.kept() {
		return a.Link == b.Link && slices.Equal(CodeKeys(a.Content), CodeKeys(b.Content)) && slices.Equal(workTrees(t.Path, a.Content), workTrees(t.Path, b.Content))
	}
	return a.Exists == b.Exists && a.Link == b.Link && a.Digest == b.Digest && a.Mode&0o111 == b.Mode&0o111
}

// kept reports whether the state holds all that the file held. A link that leads to
// nothing holds nothing.
func (s State) kept() bool { return !s.Exists || s.Content != nil || s.Link != "" && s.Digest == "" }

// ErrNotKept means that a file or folder was too large to be kept, and cannot be put back.
var ErrNotKept = errors.New("it is too large to be put back")

// ErrMoved means that a file was changed once more before it could be put back.
var ErrMoved = errors.New("it was changed again meanwhile")

// Replace gives a path another state: it puts a file back, or makes a change again. The
// path must be as now says. A folder that is gone is not made again, unless a link is in its
// place, and a file in the place of a folder is left alone. If now names a file that is set aside, what is at the
// path gets that name, so that it is not lost; if want names one, it is taken from there.
func Replace(path string, now, want State) error {
	if !want.kept() && want.Aside == "" || now.Crowd && now.Link == "" {
		return fmt.Errorf("%s: %w", path, ErrNotKept)
	}
	for _, name := range []string{now.Aside, want.Aside} {
		if name != "" && (filepath.Base(name) != name || !isTemp(name)) {
			return &fs.PathError{Op: "set aside", Path: name, Err: fs.ErrInvalid}
		}
	}
	if is := Look(path, State{}); is.Exists != now.Exists || is.Link != now.Link || is.Digest != now.Digest {
		return fmt.Errorf("%s: %w", path, ErrMoved)
	}
	if now.Aside != "" {
		kept, err := setAside(path, now.Aside)
		if err != nil {
			return err
		}
		defer func() { _ = os.Chmod(kept, 0o600) }() // nothing runs it by accident; it has no other name by then
	}
	if want.Aside != "" {
		return takeBack(path, want)
	}
	if !want.Exists {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) { // it is gone if it was renamed
			return err
		}
		if want.IsFolder() && now.Link != "" {
			return os.Mkdir(path, 0o755)
		}
		return nil
	}
	if want.Link == "" {
		return writeFile(path, want)
	}
	if now.Link != want.Link {
		if err := makeLink(path, want.Link); err != nil {
			return err
		}
	}
	if at := follow(path); !want.IsFolder() && Look(at, State{}).Digest != want.Digest && want.Digest != "" {
		return writeFile(at, want)
	}
	return nil
}

// AsideName returns the name of a file that is set aside. It is in the same folder, and so
// on the same device; no program runs code from a file with such a name.
func AsideName(id string) string { return tempPrefix + id + tempSuffix }

// setAside gives a file a second name, so that the first one can get another content
// without a moment in which there is none. Some file systems know no second names: there
// the file is renamed.
func setAside(path, name string) (string, error) {
	to := filepath.Join(filepath.Dir(path), name)
	err := os.Link(path, to)
	if errors.Is(err, fs.ErrExist) { // by an attempt that was interrupted
		if a, b := lstat(path), lstat(to); a != nil && b != nil && os.SameFile(a, b) {
			return to, nil
		}
	}
	if err != nil {
		err = os.Rename(path, to)
	}
	return to, err
}

func lstat(path string) fs.FileInfo {
	info, _ := os.Lstat(path) // nil if there is nothing to compare
	return info
}

// takeBack gives a file that was set aside its name again.
func takeBack(path string, want State) error {
	from := filepath.Join(filepath.Dir(path), want.Aside)
	if err := os.Chmod(from, fs.FileMode(want.Mode&0o777)); err != nil {
		return err
	}
	return os.Rename(from, path)
}

// makeLink makes a link, in the place of what is there.
func makeLink(path, to string) error {
	temp := tempName(path)
	_ = os.Remove(temp) // left by an attempt that was interrupted
	if err := os.Symlink(to, temp); err != nil {
		return err
	}
	if info := lstat(path); info != nil && info.IsDir() { // a link cannot take the name of a folder, and an empty one can go
		if err := os.Remove(path); err != nil {
			return errors.Join(err, os.Remove(temp))
		}
	}
	return os.Rename(temp, path)
}

// writeFile replaces a file as a whole, with its permissions and, if the system allows
// it, its owner.
func writeFile(path string, s State) error {
	temp := tempName(path)
	_ = os.Remove(temp)
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(temp) }() // after the rename there is nothing to remove
	_, err = io.Copy(f, bytes.NewReader(s.Content))
	if f.Chown(int(s.UID), int(s.GID)) != nil {
		s.Mode &= 0o777 // with another owner the file must not be run as that owner
	}
	if err = errors.Join(err, f.Chmod(fs.FileMode(s.Mode&0o777)), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(temp, path)
}

const (
	tempPrefix = ".abide-"
	tempSuffix = ".tmp"
)

func tempName(path string) string {
	return filepath.Join(filepath.Dir(path), tempPrefix+filepath.Base(path)+tempSuffix)
}

// isTemp reports whether a name is that of a file that is about to replace another one.
func isTemp(name string) bool {
	return strings.HasPrefix(name, tempPrefix) && strings.HasSuffix(name, tempSuffix)
}
