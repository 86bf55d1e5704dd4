// Package places remembers what people allow for longer than a session.
//
//   - A place is a repository, or a folder that is in none. What is allowed in a
//     place is allowed in all sessions there; what is allowed always, everywhere.
//   - A change is on the disk when it returns, and holds from then on: whoever
//     judges asks again each time.
//   - Only what is allowed is remembered. A file that cannot be read allows
//     nothing.
package places

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
	"sync"

	"github.com/abide-run/abide/internal/event"
)

// A Place is where sessions work.
type Place struct {
	Key  string // the folder
	Kind string // "repo" or "dir"
}

// Locate finds the place of a folder: the repository that it is in, or itself.
func Locate(dir string) Place {
	dir = filepath.Clean(dir)
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, ".git")); err == nil {
			return Place{at, "repo"}
		}
		if at == filepath.Dir(at) {
			return Place{dir, "dir"}
		}
	}
}

// Places is what is remembered, in a file. It is safe for concurrent use.
type Places struct {
	path string // remembered in memory alone if empty

	mu     sync.Mutex
	loaded bool
	known  known
}

// known is the file.
type known struct {
	Always    []event.Rule      `json:"always,omitempty"`
	Locations map[string]*place `json:"locations"`
	Trusted   []string          `json:"trusted"`
}

type place struct {
	Allow []event.Rule `json:"allow,omitempty"`
}

// Open returns what a file remembers. It need not exist; it is read when it is
// first needed. Without a name, all is forgotten with the process.
func Open(path string) *Places { return &Places{path: path} }

func (p *Places) loadLocked() error {
	if p.loaded || p.path == "" {
		return nil
	}
	var found known
	b, err := os.ReadFile(p.path)
	if err == nil {
		err = json.Unmarshal(b, &found)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s, which says what is allowed in places: %w; mend or remove it", p.path, err)
	}
	p.known, p.loaded = found, true
	return nil
}

// changed brings the file up to date. If that fails, the file is the truth.
func (p *Places) changedLocked() error {
	if p.path == "" {
		return nil
	}
	b, err := json.MarshalIndent(p.known, "", "  ")
	if err == nil {
		err = replace(p.path, append(b, '\n'))
	}
	if err != nil {
		p.loaded = false
		return fmt.Errorf("remember what is allowed in places: %w", err)
	}
	return nil
}

// Standing returns what is allowed in the place of a folder, and that place's
// key. It costs next to nothing if nothing is remembered.
func (p *Places) Standing(dir string) (string, []event.Rule, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.loadLocked(); err != nil || (len(p.known.Always) == 0 && len(p.known.Locations) == 0) {
		return "", nil, err
	}
	key := Locate(dir).Key
	rules := slices.Clone(p.known.Always)
	if at := p.known.Locations[key]; at != nil {
		rules = append(rules, at.Allow...)
	}
	return key, rules, nil
}

// Rules returns what is allowed in one place alone.
func (p *Places) Rules(key string) ([]event.Rule, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	err := p.loadLocked()
	if at := p.known.Locations[key]; err == nil && at != nil {
		return slices.Clone(at.Allow), nil
	}
	return nil, err
}

// All returns what is allowed always, and what in which place.
func (p *Places) All() (always []event.Rule, there map[string][]event.Rule, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.loadLocked(); err != nil {
		return nil, nil, err
	}
	there = make(map[string][]event.Rule, len(p.known.Locations))
	for key, at := range p.known.Locations {
		there[key] = slices.Clone(at.Allow)
	}
	return slices.Clone(p.known.Always), there, nil
}

// ChangeAlways changes what is allowed always.
func (p *Places) ChangeAlways(f func([]event.Rule) []event.Rule) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.loadLocked(); err != nil {
		return err
	}
	p.known.Always = f(slices.Clone(p.known.Always))
	return p.changedLocked()
}

// Change changes what is allowed in a place. One where nothing is allowed any
// more is forgotten.
func (p *Places) Change(key string, f func([]event.Rule) []event.Rule) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.loadLocked(); err != nil {
		return err
	}
	var before []event.Rule
	if at := p.known.Locations[key]; at != nil {
		before = slices.Clone(at.Allow)
	}
	all := maps.Clone(p.known.Locations)
	if all == nil {
		all = make(map[string]*place)
	}
	if all[key] = (&place{f(before)}); len(all[key].Allow) == 0 {
		delete(all, key)
	}
	p.known.Locations = all
	return p.changedLocked()
}

// Trusted reports whether somebody trusts a folder, or one above it.
func (p *Places) Trusted(dir string) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	err := p.loadLocked()
	return slices.ContainsFunc(p.known.Trusted, func(t string) bool { return Within(t, dir) }), err
}

// Trust remembers that somebody trusts a folder.
func (p *Places) Trust(dir string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.loadLocked(); err != nil || slices.Contains(p.known.Trusted, dir) {
		return err
	}
	p.known.Trusted = append(slices.Clip(p.known.Trusted), dir)
	return p.changedLocked()
}

// Within reports whether a path is a folder or inside of it.
func Within(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// replace writes a file in one step, through to the disk.
func replace(path string, content []byte) error {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // it is gone if all went well
	_, err = f.Write(content)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err = os.Rename(f.Name(), path); err != nil {
		return err
	}
	folder, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
