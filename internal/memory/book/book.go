// Package book stores pages of memory as files that people read and edit.
//
//   - A write names the digest of the text that it replaces. If the page has another
//     text by then, nothing is written: an edit of a person is never lost.
//   - The last [Keep] versions of a page are kept and can be restored.
//   - A page is written as a whole or not at all.
//   - Nothing outside of the folder is read or written, whatever links are in it.
//   - A write that changes nothing is an error, and so is a text that is not a valid
//     page.
//
// Pages are in the folder itself, versions in .history below it.
package book

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/abide-run/abide/internal/lazyregexp"
	"github.com/abide-run/abide/internal/memory/page"
)

// Keep is the number of versions of a page that are kept.
const Keep = 100

var (
	// ErrNoPage means that there is no such page, or no such version of it.
	ErrNoPage = errors.New("no such page")
	// errNoVersion is the ErrNoPage of a page that has other versions.
	errNoVersion error = noVersion{}
	// ErrChanged means that the page has been changed since it was read.
	ErrChanged = errors.New("somebody has changed the page meanwhile")
)

// A Book is a folder of pages. It is safe for concurrent use.
type Book struct {
	root string // folder that links must not leave
	dir  string // folder of the pages, relative to root

	mu sync.Mutex // held while writing; edits of people are detected by their digests
}

// New returns the book in a folder below a root. Both are created when something is
// written.
func New(root, dir string) *Book { return &Book{root: root, dir: dir} }

// Path returns the path of the book, or of the page with the given name.
func (b *Book) Path(name ...string) string {
	if len(name) == 0 {
		return filepath.Join(b.root, b.dir)
	}
	return filepath.Join(b.root, b.dir, file(name[0]))
}

// A Digest identifies the text of a page. It is empty if there is no page.
type Digest string

func digest(text []byte) Digest {
	sum := sha256.Sum256(text)
	return Digest(hex.EncodeToString(sum[:]))
}

// named matches valid names of pages.
var named = lazyregexp.New(`^[a-z0-9][a-z0-9_-]{0,63}$`)

func check(name string) error {
	if !named.MatchString(name) {
		return fmt.Errorf("%q cannot be the name of a page: use small letters, digits, - and _, at most 64", name)
	}
	return nil
}

func file(name string) string { return name + ".md" }

// open opens the folder. It creates the folder if make is true.
func (b *Book) open(make bool) (*os.Root, error) {
	if make {
		if err := os.MkdirAll(b.root, 0o700); err != nil {
			return nil, b.explain(err)
		}
	}
	root, err := os.OpenRoot(b.root)
	if err != nil {
		return nil, b.explain(err)
	}
	defer root.Close()
	if make {
		if err := root.MkdirAll(b.dir, 0o755); err != nil {
			return nil, b.explain(err)
		}
	}
	dir, err := root.OpenRoot(b.dir)
	return dir, b.explain(err)
}

// explain adds the path of the folder and the way out to an error.
func (b *Book) explain(err error) error {
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return fmt.Errorf("memory in %s cannot be used: %w; make it writable, or set memory.where to \"user\"", b.Path(), err)
}

// Names returns the names of the pages.
func (b *Book) Names() ([]string, error) {
	dir, err := b.open(false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	entries, err := fs.ReadDir(dir.FS(), ".")
	var names []string
	for _, e := range entries {
		name, isPage := strings.CutSuffix(e.Name(), ".md")
		if isPage && check(name) == nil && e.Type().IsRegular() {
			names = append(names, name)
		}
	}
	return names, b.explain(err)
}

// mostRead is the largest size of a page that is read, in bytes. People can make a page
// larger than page.Most.
const mostRead = 1 << 20

// Read returns the text of a page, or ErrNoPage.
func (b *Book) Read(name string) (string, Digest, error) {
	if err := check(name); err != nil {
		return "", "", err
	}
	dir, err := b.open(false)
	if err == nil {
		defer dir.Close()
		var text []byte
		if text, err = read(dir, file(name)); err == nil {
			return string(text), digest(text), nil
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return "", "", fmt.Errorf("%s in %s: %w", name, b.Path(), ErrNoPage)
	}
	return "", "", err
}

// read reads a page. The file is opened without blocking, because it may have been
// replaced by a pipe.
func read(dir *os.Root, name string) ([]byte, error) {
	f, err := dir.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var text []byte
	info, err := f.Stat()
	if err == nil && info.Mode().IsRegular() {
		text, err = io.ReadAll(io.LimitReader(f, mostRead+1))
	}
	if err == nil && (!info.Mode().IsRegular() || len(text) > mostRead) {
		err = fmt.Errorf("%s is no page of memory: it is not a file of at most %d bytes", filepath.Join(dir.Name(), name), mostRead)
	}
	return text, err
}

// Page returns a page, or an empty one with a title if it does not exist.
func (b *Book) Page(name string) (*page.Page, Digest, error) {
	text, was, err := b.Read(name)
	if errors.Is(err, ErrNoPage) {
		return page.New(strings.ToUpper(name[:1]) + name[1:]), "", nil
	}
	if err != nil {
		return nil, "", err
	}
	p, err := page.Parse(text)
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", b.Path(name), err)
	}
	return p, was, nil
}

// Write replaces the text of a page and returns the number of the new version. was is the
// digest of the text that it replaces; the error is ErrChanged if the page has another
// text by now.
func (b *Book) Write(name, text string, was Digest) (int, error) {
	if err := checkText(name, text); err != nil {
		return 0, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	dir, err := b.open(true)
	if err != nil {
		return 0, err
	}
	defer dir.Close()
	return b.write(dir, name, []byte(text), was)
}

// checkText returns an error if the text is not a valid page.
func checkText(name, text string) error {
	if err := check(name); err != nil {
		return err
	}
	if len(text) > page.Most {
		return fmt.Errorf("the page %s has %d bytes: %d are allowed; make it shorter", name, len(text), page.Most)
	}
	if _, err := page.Parse(text); err != nil {
		return fmt.Errorf("the page %s: %w", name, err)
	}
	return nil
}

func (b *Book) write(dir *os.Root, name string, text []byte, was Digest) (int, error) {
	now, err := read(dir, file(name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		now = nil
	case err != nil:
		return 0, err
	case digest(now) == digest(text):
		return 0, page.ErrUnchanged
	}
	if (now == nil) != (was == "") || now != nil && digest(now) != was {
		return 0, fmt.Errorf("%s: %w", b.Path(name), ErrChanged)
	}
	last, err := keepVersion(dir, name, now) // a person may have edited it since the last version
	if err != nil {
		return 0, b.explain(err)
	}
	if err := replace(dir, file(name), text, was); err != nil {
		return 0, b.explain(err)
	}
	if err := writeVersion(dir, version(name, last+1), text); err != nil {
		return 0, b.explain(err)
	}
	return last + 1, prune(dir, name, last+1-Keep)
}

// version returns the path of a version of a page.
func version(name string, n int) string {
	return path.Join(history(name), fmt.Sprintf("%06d.md", n))
}

// history returns the path of the folder with the versions of a page.
func history(name string) string { return path.Join(".history", name) }

// versions returns the numbers of the versions of a page, the oldest first.
func versions(dir *os.Root, name string) ([]int, error) {
	entries, err := fs.ReadDir(dir.FS(), history(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var list []int
	for _, e := range entries {
		if n, err := strconv.Atoi(strings.TrimSuffix(e.Name(), ".md")); err == nil && e.Type().IsRegular() {
			list = append(list, n)
		}
	}
	slices.Sort(list)
	return list, err
}

// keepVersion stores a text as a new version unless the newest version is the same, and
// returns the number of the newest version.
func keepVersion(dir *os.Root, name string, text []byte) (int, error) {
	list, err := versions(dir, name)
	if err != nil {
		return 0, err
	}
	last := 0
	if len(list) > 0 {
		last = list[len(list)-1]
		newest, err := read(dir, version(name, last))
		if err != nil || text == nil || digest(newest) == digest(text) {
			return last, err
		}
	}
	if text == nil {
		return last, nil
	}
	return last + 1, writeVersion(dir, version(name, last+1), text)
}

// writeVersion writes a version atomically. It is not synced, because only the page
// itself has to survive a power cut.
func writeVersion(dir *os.Root, name string, text []byte) error {
	if err := dir.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	temporary := name + ".new"
	if err := dir.WriteFile(temporary, text, 0o644); err != nil {
		return err
	}
	return dir.Rename(temporary, name)
}

// writeSynced writes a file and syncs it.
func writeSynced(dir *os.Root, name string, text []byte) error {
	f, err := dir.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Sync(), f.Close())
}

// replace writes a page atomically, unless its text is not the expected one any more.
func replace(dir *os.Root, name string, text []byte, was Digest) error {
	temporary := "." + name + ".new"
	if err := writeSynced(dir, temporary, text); err != nil {
		return err
	}
	defer dir.Remove(temporary)
	if was == "" {
		err := dir.Link(temporary, name)
		if errors.Is(err, fs.ErrExist) {
			return ErrChanged
		}
		return err
	}
	return exchange(dir, temporary, name, was)
}

// prune removes the versions up to the given number.
func prune(dir *os.Root, name string, upTo int) error {
	if upTo <= 0 {
		return nil
	}
	list, err := versions(dir, name)
	for _, n := range list {
		if n <= upTo {
			err = errors.Join(err, dir.Remove(version(name, n)))
		}
	}
	return err
}

// A Version describes an earlier version of a page.
type Version struct {
	Number int
	Time   time.Time
	Bytes  int64
}

// History returns the versions of a page that are kept, the oldest first.
func (b *Book) History(name string) ([]Version, error) {
	if err := check(name); err != nil {
		return nil, err
	}
	dir, err := b.open(false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	numbers, err := versions(dir, name)
	var list []Version
	for _, n := range numbers {
		info, err := dir.Stat(version(name, n))
		if err != nil {
			return list, err
		}
		list = append(list, Version{n, info.ModTime(), info.Size()})
	}
	return list, err
}

// At returns the text of a version.
func (b *Book) At(name string, n int) (string, error) {
	if err := check(name); err != nil {
		return "", err
	}
	dir, err := b.open(false)
	if err == nil {
		defer dir.Close()
		var text []byte
		if text, err = read(dir, version(name, n)); err == nil {
			return string(text), nil
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("version %d of %s in %s: %w", n, name, b.Path(), b.absence(name))
	}
	return "", err
}

// noVersion is the type of errNoVersion.
type noVersion struct{}

func (noVersion) Error() string {
	return "no such version; abide memory history lists those that there are"
}
func (noVersion) Is(target error) bool { return target == ErrNoPage }

// absence returns why a version of a page is not there: there is no such page, or only no such version.
func (b *Book) absence(name string) error {
	if list, err := b.History(name); err != nil || len(list) == 0 {
		return ErrNoPage
	}
	return errNoVersion
}

// Revert writes the text of an earlier version as a new version, and returns its number.
func (b *Book) Revert(name string, n int) (int, error) {
	text, err := b.At(name, n)
	if err != nil {
		return 0, err
	}
	_, was, err := b.Read(name)
	if err != nil && !errors.Is(err, ErrNoPage) {
		return 0, err
	}
	return b.Write(name, text, was)
}

// Forget removes the facts that only came from a session from every page and every
// version, so that they cannot be restored. It returns the number of facts that the pages
// have lost. A page that cannot be read is not changed, and its error is returned after
// all other pages were changed.
func (b *Book) Forget(session string) (int, error) {
	names, err := b.Names()
	if err != nil {
		return 0, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	dir, err := b.open(false)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer dir.Close()
	gone := 0
	var errs []error
	for _, name := range names {
		n, err := b.forget(dir, name, session)
		gone, errs = gone+n, append(errs, err)
	}
	return gone, errors.Join(errs...)
}

func (b *Book) forget(dir *os.Root, name, session string) (int, error) {
	list, err := versions(dir, name)
	if err != nil {
		return 0, err
	}
	for _, n := range list {
		old, err := read(dir, version(name, n))
		if err != nil {
			return 0, err
		}
		if less, _, err := without(old, session); err == nil {
			err = writeVersion(dir, version(name, n), less)
			if err != nil {
				return 0, err
			}
		}
	}
	for {
		now, err := read(dir, file(name))
		if err != nil {
			return 0, err
		}
		less, gone, err := without(now, session)
		if errors.Is(err, page.ErrUnchanged) {
			return 0, nil
		}
		if err != nil {
			return 0, fmt.Errorf("%s: %w", b.Path(name), err)
		}
		err = replace(dir, file(name), less, digest(now))
		if errors.Is(err, ErrChanged) {
			continue // a person has just edited it
		}
		return gone, err
	}
}

// without returns the text of a page without a session, and the number of facts that it
// has lost.
func without(text []byte, session string) ([]byte, int, error) {
	p, err := page.Parse(string(text))
	if err != nil {
		return nil, 0, err
	}
	less, err := p.Forget(session)
	if err != nil {
		return nil, 0, err
	}
	return []byte(less.Format()), len(p.Facts()) - len(less.Facts()), nil
}
