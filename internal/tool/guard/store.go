package guard

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/abide-run/abide/internal/approval/protect"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/workspace"
)

// A baseline is what the protected files of a session were like when they were looked at
// last.
type baseline struct {
	Dirs    []string                 `json:"dirs"`    // folders that commands were run in
	Folders []string                 `json:"folders"` // folders of which every file counts
	Files   map[string]protect.State `json:"files"`
	Git     map[string]bool          `json:"git"`  // files that are configuration of git
	Taken   time.Time                `json:"time"` // time of the last look, by the clock of the workspace
	// Looked is the time of the last look by the clock of this machine; zero if it is that
	// of the workspace.
	Looked time.Time `json:"looked,omitzero"`
	// Alive is true if a process of the session was running at the last look. It may have
	// changed files since, even if it is gone now.
	Alive bool `json:"alive,omitempty"`

	dirty  bool   // true if it differs from what is stored
	missed string // what could not be looked at; empty if there was nothing
}

// looked returns the time of the last look, by the clock of this machine.
func (b *baseline) looked() time.Time {
	if b.Looked.IsZero() {
		return b.Taken
	}
	return b.Looked
}

// maxDirs is the maximum number of folders that the commands of a session run in. None is
// given up for another one: a command could change files there unseen.
const maxDirs = 256

// addDirs adds folders whose files are looked at from now on.
func (b *baseline) addDirs(dirs []string) error {
	for _, dir := range dirs {
		switch {
		case slices.Contains(b.Dirs, dir):
		case len(b.Dirs) == maxDirs:
			return fmt.Errorf("commands of this session were run in %d folders, and no more can be looked after; run the command in one of them, or in another session", maxDirs)
		default:
			b.Dirs, b.dirty = append(b.Dirs, dir), true
		}
	}
	return nil
}

// cover takes over the files that were not looked at before, as they are.
func (b *baseline) cover(found workspace.Survey) {
	for _, t := range found.Targets {
		if _, known := b.Files[t.Path]; !known {
			b.add(t.Target, found.States[t.Path])
		}
	}
	b.Folders, b.missed = found.Folders, found.Missed
}

func (b *baseline) add(t protect.Target, s protect.State) {
	b.Git[t.Path] = t.Git
	b.set(t.Path, s)
}

func (b *baseline) set(path string, s protect.State) {
	before, known := b.Files[path]
	b.Files[path] = s
	b.dirty = b.dirty || !known || before.Digest != s.Digest || before.Link != s.Link || before.Mode != s.Mode || before.Exists != s.Exists
}

func (b *baseline) setAlive(alive bool) {
	b.dirty = b.dirty || b.Alive != alive
	b.Alive = alive
}

// changes takes over what a look has found, and returns the files that have changed.
func (b *baseline) changes(found workspace.Survey) []change {
	b.addTargets(found)
	reasons := make(map[string]string)
	maps.Copy(reasons, found.Reasons)
	for _, t := range found.Targets {
		reasons[t.Path] = t.Reason
	}
	var changed []change
	for path, before := range b.Files {
		after, looked := found.States[path]
		if !looked { // a workspace that is confined to a folder does not look outside of it
			continue
		}
		c := change{Path: path, Git: b.Git[path], Before: before, After: after, Reason: reasons[path]}
		if c.target().Same(before, after) {
			b.set(path, after)
			continue
		}
		c.ID = event.NewID()
		if c.isLarge() {
			c.After.Aside = protect.AsideName(c.ID)
		}
		changed = append(changed, c)
	}
	slices.SortFunc(changed, func(a, b change) int { return strings.Compare(a.Path, b.Path) })
	b.Taken = found.Taken
	return changed
}

// addTargets adds the files that count since the last look. A new file in a folder that
// was looked at is a change. Other files count because a command has made a repository
// or named another file in its configuration; those that are older than the last look
// are not its doing. Before the first look nothing is known of any file: all are taken as
// they are, because to put back a file that was never looked at would be to remove it.
func (b *baseline) addTargets(found workspace.Survey) {
	for _, t := range found.Targets {
		if _, known := b.Files[t.Path]; known {
			continue
		}
		was, is := protect.State{}, found.States[t.Path]
		if b.Taken.IsZero() || is.Before(b.Taken) && !slices.Contains(b.Folders, t.Folder) {
			was = is
		}
		b.add(t.Target, was)
	}
	b.Folders, b.missed = found.Folders, found.Missed
}

// A change is what a command did to a protected file.
type change struct {
	ID      string        `json:"id"`
	Path    string        `json:"path"`
	Git     bool          `json:"git,omitempty"`
	Reason  string        `json:"reason"`
	Before  protect.State `json:"before"`
	After   protect.State `json:"after"`
	Problem string        `json:"problem,omitempty"` // reason that the file could not be put back
	Told    string        `json:"told,omitempty"`    // key of the call whose result tells the model of it
}

func (c change) target() protect.Target { return protect.Target{Path: c.Path, Git: c.Git} }

// same reports whether two changes gave a file the same content.
func (c change) same(o change) bool {
	return c.Path == o.Path && c.After.Digest == o.After.Digest && c.After.Link == o.After.Link && c.After.Exists == o.After.Exists
}

// A store is the folder in which a session keeps what belongs to protected files.
type store string

func (s store) baseline() (*baseline, error) {
	b := &baseline{Files: make(map[string]protect.State), Git: make(map[string]bool)}
	err := s.read("baseline.json", b)
	return b, err
}

func (s store) pending() (list []change, err error) { return list, s.read("pending.json", &list) }

func (s store) saveBaseline(b *baseline) error  { return s.write("baseline.json", b) }
func (s store) savePending(list []change) error { return s.write("pending.json", list) }

// read reads a file; one that does not exist leaves the value alone.
func (s store) read(name string, into any) error {
	data, err := os.ReadFile(filepath.Join(string(s), name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		return fmt.Errorf("read what protected files held: %w", err)
	}
	return nil
}

// write replaces a file. It is on disk when write returns.
func (s store) write(name string, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	if err := s.makeFolders(""); err != nil {
		return err
	}
	f, err := os.CreateTemp(string(s), name+"-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // after the rename there is nothing to remove
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), filepath.Join(string(s), name))
}

// makeFolders makes the folder of the store and a folder in it. The folder of the session is
// not made: if it is missing, the session was deleted while its files were looked at, and
// nobody would remove what is written now.
func (s store) makeFolders(name string) error {
	for _, dir := range []string{string(s), filepath.Join(string(s), name)} {
		if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

// isLarge reports whether a change has made a file that is too large to be stored with it.
// It is set aside in its folder.
func (c change) isLarge() bool {
	return c.After.Exists && c.After.Content == nil && c.After.Link == "" && !c.After.Crowd
}

// mark notes that a command is about to start. The note is not synced: if the system
// itself stops, no command is left that could go on.
func (s store) mark(key string) error {
	if err := s.makeFolders("running"); err != nil {
		return err
	}
	return os.WriteFile(s.marker(key), nil, 0o600)
}

// unmark notes that a command has ended, and that the files were looked at since.
func (s store) unmark(key string) error {
	if err := os.Remove(s.marker(key)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (s store) marker(key string) string {
	return filepath.Join(string(s), "running", filepath.Base(key))
}

// isMarked reports whether the command of a call has started, or is about to, and its end
// was not looked at.
func (s store) isMarked(key string) bool {
	_, err := os.Lstat(s.marker(key))
	return err == nil
}

// marked reports whether a command has started whose end was not looked at.
func (s store) marked() bool {
	list, err := os.ReadDir(filepath.Join(string(s), "running"))
	return err == nil && len(list) > 0
}

// addMember notes that an agent that works for the session has run commands.
func (s store) addMember(id event.SessionID) error {
	if err := s.makeFolders("members"); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(string(s), "members", filepath.Base(string(id))), nil, 0o600)
}

// members returns the agents that work for the session and have run commands.
func (s store) members() (list []event.SessionID, err error) {
	entries, err := os.ReadDir(filepath.Join(string(s), "members"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		list = append(list, event.SessionID(e.Name()))
	}
	return list, err
}
