package backup

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/abide-run/abide/internal/daemon/folder"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
)

// format is the version of the archive that this program writes, and the newest that it
// reads.
const format = 1

// The names in the archive.
const (
	headerName   = "abide-backup.json"
	manifestName = "manifest.json"
	dataPrefix   = "data/"
)

// maxText is the maximum size of the header in bytes, and maxManifest of the manifest:
// about ten million files.
const (
	maxText     = 1 << 20
	maxManifest = 2 << 30
)

// A header is the first entry of a backup.
type header struct {
	Format  int       `json:"format"`
	Abide   string    `json:"abide"`
	Created time.Time `json:"created"`
}

// A manifest is the last entry of a backup. A backup without one is not complete.
type manifest struct {
	Sessions int      `json:"sessions"`
	Store    string   `json:"store"`           // name of the store in the folder
	WasAt    string   `json:"wasAt,omitempty"` // path of the store, if it was outside the folder
	Damaged  []damage `json:"damaged,omitempty"`
	LeftOut  []string `json:"leftOut,omitempty"` // links, which are not followed
	// Secrets says what the backup has of secrets; empty if an older version has written it.
	Secrets SecretsIn `json:"secrets,omitempty"`
	Files   []entry   `json:"files"`
}

// An entry is a file of a backup.
type entry struct {
	Name   string `json:"name"`
	Raw    string `json:"raw,omitempty"` // name in base64, if it is not UTF-8: JSON has no other way
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// A damage is a damaged session of a backup.
type damage struct {
	Session  event.SessionID `json:"session"`
	Position event.Seq       `json:"position"` // first event that is damaged
	Reason   string          `json:"reason"`
}

func damages(list []*eventlog.Damage) (out []damage) {
	for _, d := range list {
		out = append(out, damage{d.Session, d.Seq, d.Reason})
	}
	return out
}

func (m *manifest) report() Report {
	r := Report{Sessions: m.Sessions, Files: len(m.Files), LeftOut: m.LeftOut, Secrets: m.Secrets, Store: m.Store, WasAt: m.WasAt}
	for _, d := range m.Damaged {
		r.Damaged = append(r.Damaged, &eventlog.Damage{Session: d.Session, Seq: d.Position, Reason: d.Reason})
	}
	for _, f := range m.Files {
		r.Bytes += f.Size
	}
	return r
}

// An archive is a backup that is being written.
type archive struct {
	tar      *tar.Writer
	manifest manifest
}

func newArchive(w io.Writer, h header) (*archive, error) {
	a := &archive{tar: tar.NewWriter(w)}
	return a, a.addText(headerName, h)
}

// addText adds an entry of JSON.
func (a *archive) addText(name string, v any) error {
	text, err := json.Marshal(v)
	if err == nil {
		err = a.tar.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(text)), ModTime: time.Now(), Format: tar.FormatPAX})
	}
	if err == nil {
		_, err = a.tar.Write(text)
	}
	return err
}

// add adds a file of the folder.
func (a *archive) add(name string, info fs.FileInfo, content io.Reader) error {
	h := &tar.Header{Name: dataPrefix + name, Mode: int64(info.Mode().Perm()), Size: info.Size(), ModTime: info.ModTime(), Format: tar.FormatPAX}
	if err := a.tar.WriteHeader(h); err != nil {
		return err
	}
	sum := sha256.New()
	n, err := io.Copy(a.tar, io.TeeReader(content, sum))
	if err == nil && n < info.Size() {
		err = fmt.Errorf("%s was shortened while it was read: try again", name)
	}
	if err != nil {
		return err
	}
	a.manifest.Files = append(a.manifest.Files, newEntry(name, n, sum))
	return nil
}

func newEntry(name string, size int64, sum hash.Hash) entry {
	e := entry{Name: name, Size: size, SHA256: hex.EncodeToString(sum.Sum(nil))}
	if !utf8.ValidString(name) {
		e.Name, e.Raw = strings.ToValidUTF8(name, "\uFFFD"), base64.StdEncoding.EncodeToString([]byte(name))
	}
	return e
}

// addDeletions adds the records of deletions that an engine has to finish, unless the folder
// has them already.
func (a *archive) addDeletions(ids []event.SessionID) error {
	noted := make(map[string]bool)
	for _, f := range a.manifest.Files {
		if strings.HasPrefix(f.Name, deletionsPrefix) {
			noted[f.Name] = true
		}
	}
	for _, id := range ids {
		name := deletionsPrefix + folder.SessionName(string(id)) + ".json"
		if noted[name] {
			continue
		}
		text, err := json.Marshal(map[string]event.SessionID{"session": id})
		if err == nil {
			err = a.add(name, textInfo{int64(len(text))}, bytes.NewReader(text))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// deletionsPrefix begins the names of the records of deletions.
const deletionsPrefix = "deletions/"

// textInfo describes a file that is made for the archive.
type textInfo struct{ size int64 }

func (t textInfo) Name() string     { return "" }
func (t textInfo) Size() int64      { return t.size }
func (textInfo) Mode() fs.FileMode  { return 0o600 }
func (textInfo) ModTime() time.Time { return time.Now() }
func (textInfo) IsDir() bool        { return false }
func (textInfo) Sys() any           { return nil }

// close writes the manifest and the end of the archive.
func (a *archive) close() error {
	if err := a.addText(manifestName, &a.manifest); err != nil {
		return err
	}
	return a.tar.Close()
}

// The errors of a file that is no complete backup.
var (
	errNoBackup   = errors.New("it is not a backup of abide")
	errIncomplete = errors.New("it is not complete: its end is missing; use another backup")
	errDamaged    = errors.New("it is damaged; use another backup")
)

// A sink is given the files of a backup, in order.
type sink interface {
	put(name string, h *tar.Header, content io.Reader) error
}

// discard is a sink for checking a backup.
type discard struct{}

func (discard) put(_ string, _ *tar.Header, content io.Reader) error {
	_, err := io.Copy(io.Discard, content)
	return err
}

// readArchive reads a backup, and checks each file against the manifest, which comes last.
// Until it has returned without an error, nothing that the sink was given can be trusted.
func readArchive(r io.Reader, to sink) (*manifest, error) {
	in := tar.NewReader(r)
	if err := readHeader(in); err != nil {
		return nil, err
	}
	var found []entry
	for {
		h, err := in.Next()
		if err != nil {
			return nil, incomplete(err)
		}
		if h.Name == manifestName {
			return readManifest(in, h, found)
		}
		e, err := readEntry(in, h, to)
		if err != nil {
			return nil, err
		}
		found = append(found, e)
	}
}

// incomplete returns the error of an archive that ends, or cannot be read, before its
// manifest.
func incomplete(err error) error {
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errIncomplete
	case errors.Is(err, tar.ErrHeader):
		return errDamaged
	}
	return err
}

func readHeader(in *tar.Reader) error {
	first, err := in.Next()
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, tar.ErrHeader) || err == nil && first.Name != headerName {
		return errNoBackup
	}
	if err != nil {
		return err
	}
	var h header
	if err := readText(in, first, maxText, &h); err != nil {
		return err
	}
	switch {
	case h.Format > format:
		return fmt.Errorf("it has format %d and was written by abide %s; this abide knows formats up to %d: use a newer abide", h.Format, h.Abide, format)
	case h.Format < 1:
		return errNoBackup
	}
	return nil
}

// readText reads an entry of JSON.
func readText(in *tar.Reader, h *tar.Header, most int64, v any) error {
	if h.Typeflag != tar.TypeReg || h.Size > most {
		return errDamaged
	}
	text, err := io.ReadAll(in)
	if err != nil {
		return incomplete(err)
	}
	if json.Unmarshal(text, v) != nil {
		return errDamaged
	}
	return nil
}

// readEntry hands a file to the sink. It refuses what this program would never have
// written: anything but files, and names that lead out of the folder.
func readEntry(in *tar.Reader, h *tar.Header, to sink) (entry, error) {
	name, ok := strings.CutPrefix(h.Name, dataPrefix)
	if !ok || !filepath.IsLocal(name) || name == "." || strings.ContainsRune(name, 0) || path.Clean(name) != name {
		return entry{}, fmt.Errorf("it has a file of the name %q, which no backup of abide has: it was changed; use another backup", h.Name)
	}
	if h.Typeflag != tar.TypeReg {
		return entry{}, fmt.Errorf("%q in it is a link or something else that is not a file: it was changed; use another backup", h.Name)
	}
	sum := sha256.New()
	if err := to.put(name, h, io.TeeReader(in, sum)); err != nil {
		return entry{}, incomplete(err)
	}
	return newEntry(name, h.Size, sum), nil
}

// readManifest reads the manifest and compares what was found with it.
func readManifest(in *tar.Reader, h *tar.Header, found []entry) (*manifest, error) {
	var m manifest
	if err := readText(in, h, maxManifest, &m); err != nil {
		return nil, err
	}
	if len(m.Files) != len(found) {
		return nil, errDamaged
	}
	store := false
	for i, f := range found {
		if f != m.Files[i] {
			return nil, fmt.Errorf("%s in it is not what was backed up: %w", f.Name, errDamaged)
		}
		store = store || f.Name == m.Store
	}
	if !store {
		return nil, errDamaged
	}
	if _, err := in.Next(); !errors.Is(err, io.EOF) {
		return nil, errDamaged
	}
	return &m, nil
}
