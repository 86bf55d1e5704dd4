package daemon

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/abide-run/abide/internal/daemon/folder"
	"github.com/abide-run/abide/internal/durable"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/session"
)

// deletions stores the deletions under way as files in the data folder, one for each
// session. It implements session.Deletions.
type deletions struct {
	folder *folder.Folder
	atStep func(step string) // called when a deletion was stored, and when it was removed; may be nil
}

// reached tells that a step is done.
func (d deletions) reached(step string) {
	if d.atStep != nil {
		d.atStep(step)
	}
}

func (d deletions) dir() string { return filepath.Join(d.folder.Dir(), "deletions") }

func (d deletions) path(id event.SessionID) string {
	return filepath.Join(d.dir(), filepath.Base(d.folder.Session(string(id)))+".json")
}

// Begin stores a deletion.
func (d deletions) Begin(what session.Deletion) error {
	text, err := json.Marshal(what)
	if err == nil {
		err = os.MkdirAll(d.dir(), 0o700)
	}
	if err == nil {
		err = durable.Replace(d.path(what.Session), text)
	}
	if err != nil {
		return fmt.Errorf("store the deletion: %w", err)
	}
	d.reached("noted")
	return nil
}

// End removes a deletion.
func (d deletions) End(id event.SessionID) error {
	if err := os.Remove(d.path(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	d.reached("over")
	return nil
}

// Unfinished returns all deletions that were begun. One that cannot be read is reported,
// and the others are returned.
func (d deletions) Unfinished() ([]session.Deletion, error) {
	entries, err := os.ReadDir(d.dir())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	errs := []error{err}
	var list []session.Deletion
	for _, e := range entries {
		path := filepath.Join(d.dir(), e.Name())
		if strings.HasPrefix(e.Name(), ".") { // left by an engine that was killed while it wrote
			errs = append(errs, os.Remove(path))
			continue
		}
		var one session.Deletion
		text, err := os.ReadFile(path)
		if err == nil {
			err = json.Unmarshal(text, &one)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", path, err))
			continue
		}
		list = append(list, one)
	}
	return list, errors.Join(errs...)
}
