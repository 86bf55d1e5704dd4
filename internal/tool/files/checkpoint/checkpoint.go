// Package checkpoint keeps the file contents that the calls of one session replaced, in a
// folder of the session beside its events. That folder is the engine's own, wherever the
// files of the session are.
package checkpoint

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/abide-run/abide/internal/workspace"
)

// A Store keeps contents and records. The record of a write is durable before the write, so
// that after a crash there may be a record without a write, but no write without a record.
//
// Each content is stored once, under its digest. A Store is safe for concurrent use, also
// several on the same folder.
type Store struct{ folder string }

// NewStore returns the store in a folder. It need not exist, but the folder above it must.
func NewStore(folder string) *Store { return &Store{folder: folder} }

// A Record describes one write.
type Record struct {
	Key    string    `json:"key"` // key of the call, as in tool.execution_begun
	Call   string    `json:"toolCallId"`
	Path   string    `json:"path"`             // path without links
	Before string    `json:"before,omitempty"` // digest of the old content; empty if there was no file
	After  string    `json:"after"`
	Time   time.Time `json:"time"`
}

// Save stores the old content, and records that a call is about to write.
func (c *Store) Save(r Record, old []byte) error {
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := c.store(old); err != nil {
		return fmt.Errorf("keep what %s holds: %w", r.Path, err)
	}
	// The line begins with a line break, because a crash may have left half a line.
	if err := c.append(slices.Concat([]byte{'\n'}, line, []byte{'\n'})); err != nil {
		return fmt.Errorf("record the change of %s: %w", r.Path, err)
	}
	return nil
}

func (c *Store) recordsFile() string { return filepath.Join(c.folder, "changes.jsonl") }

func (c *Store) content(digest string) string {
	return filepath.Join(c.folder, "contents", digest[:2], digest)
}

// store stores a content, unless it is stored already.
func (c *Store) store(data []byte) error {
	if data == nil {
		return nil
	}
	path := c.content(workspace.Digest(data))
	if info, err := os.Stat(path); err == nil && info.Size() == int64(len(data)) {
		return nil
	}
	above := filepath.Dir(path)
	if err := makeFolders(c.folder, filepath.Dir(above), above); err != nil {
		return err
	}
	f, err := os.CreateTemp(above, "*.tmp")
	if err != nil {
		return err
	}
	if err := writeSynced(f, data); err != nil {
		return err
	}
	return errors.Join(os.Rename(f.Name(), path), syncFolder(above))
}

func (c *Store) append(line []byte) error {
	if err := makeFolders(c.folder); err != nil {
		return err
	}
	f, err := os.OpenFile(c.recordsFile(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(writeSynced(f, line), syncFolder(c.folder))
}

// makeFolders makes folders, the upper ones first. The folder of the session above them is not
// made: if it is missing, the session was deleted while the call was under way, and nobody
// would remove what is written now.
func makeFolders(folders ...string) error {
	for _, dir := range folders {
		if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

// writeSynced writes to a file and closes it.
func writeSynced(f *os.File, data []byte) error {
	_, err := f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func syncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Records returns the records in the order of their writes. A line that was cut off by a
// crash is skipped: its write was never made.
func (c *Store) Records() ([]Record, error) {
	f, err := os.Open(c.recordsFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	var list []Record
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r Record
		if json.Unmarshal(lines.Bytes(), &r) == nil && r.Key != "" && r.Path != "" {
			list = append(list, r)
		}
	}
	return list, lines.Err()
}

// Find returns the record of a call.
func (c *Store) Find(key string) (Record, bool, error) {
	list, err := c.Records()
	i := slices.IndexFunc(list, func(r Record) bool { return r.Key == key })
	if i < 0 {
		return Record{}, false, err
	}
	return list[i], true, err
}

// Wrote reports whether a call of this session has written this content to the file.
func (c *Store) Wrote(path, digest string) (bool, error) {
	list, err := c.Records()
	return slices.ContainsFunc(list, func(r Record) bool { return r.Path == path && r.After == digest }), err
}

// Load returns a stored content; nil for an empty digest, which means no file.
func (c *Store) Load(sum string) ([]byte, error) {
	if sum == "" {
		return nil, nil
	}
	if raw, err := hex.DecodeString(sum); err != nil || len(raw) != sha256.Size {
		return nil, fmt.Errorf("%q is no digest", sum)
	}
	data, err := os.ReadFile(c.content(sum))
	if err == nil && workspace.Digest(data) != sum {
		err = fmt.Errorf("the content that was kept as %s is damaged", sum)
	}
	return data, err
}
