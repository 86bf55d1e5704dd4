package files

import (
	"bufio"
	"bytes"
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

	"github.com/abide-run/abide/internal/approval/scope"
)

// Checkpoints keep the file contents that the calls of one session replaced, in a folder
// of the session. The record of a write is durable before the write, so that after a
// crash there may be a record without a write, but no write without a record.
//
// Each content is stored once, under its digest. Checkpoints are safe for concurrent
// use, also several on the same folder.
type Checkpoints struct{ folder string }

// NewCheckpoints returns the checkpoints in a folder, which need not exist.
func NewCheckpoints(folder string) *Checkpoints { return &Checkpoints{folder: folder} }

// A record describes one write.
type record struct {
	Key    string    `json:"key"` // key of the call, as in tool.execution_begun
	Call   string    `json:"toolCallId"`
	Path   string    `json:"path"`             // path without links
	Before string    `json:"before,omitempty"` // digest of the old content; empty if there was no file
	After  string    `json:"after"`
	Time   time.Time `json:"time"`
}

// digest returns the digest of a content. It is empty for nil, which means no file.
func digest(data []byte) string {
	if data == nil {
		return ""
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// save stores the old content, and records that a call is about to write.
func (c *Checkpoints) save(r record, old []byte) error {
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

func (c *Checkpoints) recordsFile() string { return filepath.Join(c.folder, "changes.jsonl") }

func (c *Checkpoints) content(digest string) string {
	return filepath.Join(c.folder, "contents", digest[:2], digest)
}

// store stores a content, unless it is stored already.
func (c *Checkpoints) store(data []byte) error {
	if data == nil {
		return nil
	}
	path := c.content(digest(data))
	if info, err := os.Stat(path); err == nil && info.Size() == int64(len(data)) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "*.tmp")
	if err != nil {
		return err
	}
	if err := writeSynced(f, data); err != nil {
		return err
	}
	return errors.Join(os.Rename(f.Name(), path), syncFolder(filepath.Dir(path)))
}

func (c *Checkpoints) append(line []byte) error {
	if err := os.MkdirAll(c.folder, 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(c.recordsFile(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(writeSynced(f, line), syncFolder(c.folder))
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

// records returns the records in the order of their writes. A line that was cut off by a
// crash is skipped: its write was never made.
func (c *Checkpoints) records() ([]record, error) {
	f, err := os.Open(c.recordsFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	var list []record
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r record
		if json.Unmarshal(lines.Bytes(), &r) == nil && r.Key != "" && r.Path != "" {
			list = append(list, r)
		}
	}
	return list, lines.Err()
}

// find returns the record of a call.
func (c *Checkpoints) find(key string) (record, bool, error) {
	list, err := c.records()
	i := slices.IndexFunc(list, func(r record) bool { return r.Key == key })
	if i < 0 {
		return record{}, false, err
	}
	return list[i], true, err
}

// wrote reports whether a call of this session has written this content to the file.
func (c *Checkpoints) wrote(path, digest string) (bool, error) {
	list, err := c.records()
	return slices.ContainsFunc(list, func(r record) bool { return r.Path == path && r.After == digest }), err
}

// load returns a stored content; nil for an empty digest, which means no file.
func (c *Checkpoints) load(sum string) ([]byte, error) {
	if sum == "" {
		return nil, nil
	}
	if raw, err := hex.DecodeString(sum); err != nil || len(raw) != sha256.Size {
		return nil, fmt.Errorf("%q is no digest", sum)
	}
	data, err := os.ReadFile(c.content(sum))
	if err == nil && digest(data) != sum {
		err = fmt.Errorf("the content that was kept as %s is damaged", sum)
	}
	return data, err
}

// An Outcome is what Restore does with a file.
type Outcome string

// The outcomes.
const (
	Restored Outcome = "restored" // the file gets its old content
	Removed  Outcome = "removed"  // the file, which a call created, is deleted
	Same     Outcome = "same"     // the file has its old content already
	Skipped  Outcome = "skipped"  // the file is left alone; Reason says why
)

// A Reversal is the effect of Restore on one file.
type Reversal struct {
	Path          string
	Outcome       Outcome
	Reason        string
	Added, Gone   int    // number of lines that are added, and that are removed
	before, after []byte // old content to be restored, and present content
}

// Preview returns what Restore would do.
func (c *Checkpoints) Preview(undone func(key string) bool) ([]Reversal, error) {
	list, err := c.records()
	if err != nil {
		return nil, err
	}
	var all []Reversal
	for _, path := range paths(list, undone) {
		all = append(all, c.plan(path, list, undone))
	}
	return all, nil
}

// paths returns the files that the undone calls have written, sorted.
func paths(list []record, undone func(key string) bool) []string {
	var all []string
	for _, r := range list {
		if undone(r.Key) {
			all = append(all, r.Path)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// plan returns how a file gets the content that it had before the first of the undone
// calls. A file that something else has changed is left alone.
func (c *Checkpoints) plan(path string, list []record, undone func(key string) bool) Reversal {
	v := Reversal{Path: path}
	known, first := map[string]bool{}, (*record)(nil)
	for i, r := range list {
		if r.Path != path || !undone(r.Key) {
			continue
		}
		if known[r.Before], known[r.After] = true, true; first == nil {
			first = &list[i]
		}
	}
	var err error
	if v.after, err = contentNow(path); err != nil {
		return v.skip(err.Error())
	}
	if !known[digest(v.after)] {
		return v.skip("it was changed by something else since")
	}
	if v.before, err = c.load(first.Before); err != nil {
		return v.skip(err.Error())
	}
	return v.withOutcome()
}

func (v Reversal) skip(reason string) Reversal {
	v.Outcome, v.Reason = Skipped, reason
	return v
}

// withOutcome sets the outcome and the numbers of lines.
func (v Reversal) withOutcome() Reversal {
	switch {
	case digest(v.before) == digest(v.after):
		v.Outcome = Same
	case v.before == nil:
		v.Outcome = Removed
	default:
		v.Outcome = Restored
	}
	v.Added, v.Gone = countChanges(v.after, v.before)
	return v
}

// contentNow returns the content of a file; nil if it does not exist.
func contentNow(path string) ([]byte, error) {
	data, err := onlyFile(path).ReadFile(path, maxKept)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

// maxKept is the maximum size of a content; it is more than any call writes.
const maxKept = 64 << 20

// onlyFile returns a scope that allows writing one file: the calls were allowed to write
// it, and Restore touches nothing else.
func onlyFile(path string) *scope.Scope { return new(scope.Scope).With(path, scope.Write) }

// Restore undoes the writes of calls: every file gets the content that it had before the
// first of those calls. A second Restore changes nothing more.
func (c *Checkpoints) Restore(undone func(key string) bool) ([]Reversal, error) {
	all, err := c.Preview(undone)
	for i := range all {
		v := &all[i]
		if v.Outcome != Restored && v.Outcome != Removed {
			continue
		}
		err := onlyFile(v.Path).Apply(scope.Change{Path: v.Path, Old: v.after, New: v.before, Key: "restore " + v.Path})
		if err != nil {
			*v = v.skip(err.Error())
		}
	}
	return all, err
}

// countChanges returns the numbers of lines that a change adds and removes.
func countChanges(old, now []byte) (added, gone int) {
	for line := range bytes.Lines([]byte(changes("", "", old, now))) {
		switch {
		case bytes.HasPrefix(line, []byte("+++")), bytes.HasPrefix(line, []byte("---")):
		case line[0] == '+':
			added++
		case line[0] == '-':
			gone++
		}
	}
	return added, gone
}
