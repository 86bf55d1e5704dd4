package bash

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/process"
)

// A note is what a session keeps about a task in addition to process.Info. A task that
// ended within its call has none.
type note struct {
	Name  string    `json:"name,omitempty"` // name that the model chose
	Seen  int64     `json:"seen,omitempty"` // offset up to which the output was shown
	Reads []reading `json:"reads,omitempty"`
	Made  time.Time `json:"made"`
	Rows  int       `json:"rows,omitempty"` // size of the terminal, if it is not the usual one
	Cols  int       `json:"cols,omitempty"`
}

// A reading is the offset at which a call began to read. A call that is repeated after
// a crash begins there again, because the model did not get the first answer.
type reading struct {
	Call string `json:"call"`
	From int64  `json:"from"`
}

const (
	maxReads = 16  // maximum number of readings in a note
	maxNotes = 512 // maximum number of notes of a session; the oldest are dropped
)

// notes are the notes of a session, by the keys of its processes.
type notes map[string]note

func (n notes) task(info process.Info) Task {
	t := Task{ID: n[info.Key].Name, Process: info, note: n[info.Key]}
	if t.ID == "" {
		t.ID = string(info.ID)
	}
	return t
}

// trim drops the oldest notes if there are too many.
func (n notes) trim() {
	if len(n) <= maxNotes {
		return
	}
	var made []time.Time
	for _, one := range n {
		made = append(made, one.Made)
	}
	slices.SortFunc(made, time.Time.Compare)
	oldest := made[len(made)-maxNotes]
	for key, one := range n {
		if one.Made.Before(oldest) {
			delete(n, key)
		}
	}
}

// readNotes returns the notes of a session.
func (c *Commands) readNotes(id event.SessionID) (notes, error) {
	dir, err := c.Notes(id)
	if err != nil {
		return nil, err
	}
	b, err := os.ReadFile(filepath.Join(dir, notesFile))
	if errors.Is(err, fs.ErrNotExist) {
		return notes{}, nil
	}
	n := notes{}
	if err == nil {
		err = json.Unmarshal(b, &n)
	}
	if err != nil {
		return nil, fmt.Errorf("the notes about tasks cannot be read: %w", err)
	}
	return n, nil
}

const notesFile = "tasks.json"

// changeNote changes the note about a task. The change survives a crash of the daemon. If
// the machine crashes, the last changes may be lost, and some output is shown again.
func (c *Commands) changeNote(id event.SessionID, key string, how func(n *note)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	all, err := c.readNotes(id)
	if err != nil {
		return err
	}
	one, ok := all[key]
	if !ok {
		one.Made = time.Now().UTC()
	}
	how(&one)
	all[key] = one
	all.trim()
	return c.writeNotes(id, all)
}

// writeNotes replaces the file with the notes of a session.
func (c *Commands) writeNotes(id event.SessionID, all notes) error {
	dir, err := c.Notes(id)
	if err != nil {
		return err
	}
	b, err := json.Marshal(all)
	if err != nil {
		return err
	}
	fresh := filepath.Join(dir, notesFile+".new")
	if err := os.WriteFile(fresh, b, 0o600); err != nil {
		return fmt.Errorf("the notes about tasks cannot be kept: %w", err)
	}
	return os.Rename(fresh, filepath.Join(dir, notesFile))
}

// from returns the offset at which a call begins to read.
func (n note) from(call string, unread int64) int64 {
	for _, r := range n.Reads {
		if r.Call == call {
			return r.From
		}
	}
	return unread
}

// recordShown records that a call showed the output between two offsets.
func (c *Commands) recordShown(id event.SessionID, t Task, call string, from, to int64) error {
	return c.changeNote(id, t.Process.Key, func(n *note) {
		n.Seen = max(n.Seen, to)
		if slices.ContainsFunc(n.Reads, func(r reading) bool { return r.Call == call }) {
			return
		}
		n.Reads = append(n.Reads, reading{call, from})
		n.Reads = n.Reads[max(0, len(n.Reads)-maxReads):]
	})
}
