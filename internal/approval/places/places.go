// Package places stores what people allow for longer than a session.
//
//   - A place is a repository, or a folder outside of repositories. A rule for a place
//     applies to all sessions there; a rule for always applies everywhere.
//   - A change is on disk when the call returns, and applies from then on: rules are
//     looked up for every decision.
//   - Only rules that allow are stored. A file that cannot be read allows nothing.
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

	"github.com/abide-run/abide/internal/durable"
	"github.com/abide-run/abide/internal/event"
)

// A Place is a folder where sessions work.
type Place struct {
	Key  string // path of the folder
	Kind string // "repo" or "dir"
}

// Locate returns the place of a folder: the repository that it is in, or else itself. A
// folder of a workspace elsewhere is itself: nothing of this machine is looked at for it,
// and what is there cannot be.
func Locate(dir string) Place {
	dir = filepath.Clean(dir)
	if strings.HasPrefix(dir, event.Elsewhere) {
		return Place{dir, "dir"}
	}
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, ".git")); err == nil {
			return Place{at, "repo"}
		}
		if at == filepath.Dir(at) {
			return Place{dir, "dir"}
		}
	}
}

// Places are the stored rules. They are safe for concurrent use.
type Places struct {
	path string // file with the rules; empty to keep them in memory only

	mu      sync.Mutex
	loaded  bool
	content content
}

// content is the content of the file.
type content struct {
	Always    []event.Rule      `json:"always,omitempty"`
	Locations map[string]*place `json:"locations"`
	Trusted   []string          `json:"trusted"`
}

type place struct {
	Allow []event.Rule `json:"allow,omitempty"`
}

// Open returns the rules in a file, which need not exist. It is read when it is first
// needed. Without a path the rules are kept in memory only.
func Open(path string) *Places { return &Places{path: path} }

func (p *Places) loadLocked() error {
	if p.loaded || p.path == "" {
		return nil
	}
	var found content
	b, err := os.ReadFile(p.path)
	if err == nil {
		err = json.Unmarshal(b, &found)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s, which says what is allowed in places: %w; mend or remove it", p.path, err)
	}
	p.content, p.loaded = found, true
	return nil
}

// writeLocked writes the file. If that fails, the rules are read from it again.
func (p *Places) writeLocked() error {
	if p.path == "" {
		return nil
	}
	b, err := json.MarshalIndent(p.content, "", "  ")
	if err == nil {
		err = durable.Replace(p.path, append(b, '\n'))
	}
	if err != nil {
		p.loaded = false
		return fmt.Errorf("remember what is allowed in places: %w", err)
	}
	return nil
}

// Standing returns the rules that apply in a folder, and the key of its place. It does
// almost no work if there are no rules.
func (p *Places) Standing(dir string) (string, []event.Rule, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.loadLocked(); err != nil || (len(p.content.Always) == 0 && len(p.content.Locations) == 0) {
		return "", nil, err
	}
	key := Locate(dir).Key
	rules := slices.Clone(p.content.Always)
	if at := p.content.Locations[key]; at != nil {
		rules = append(rules, at.Allow...)
	}
	return key, rules, nil
}

// Rules returns the rules of one place, without those for always.
func (p *Places) Rules(key string) ([]event.Rule, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	err := p.loadLocked()
	if at := p.content.Locations[key]; err == nil && at != nil {
		return slices.Clone(at.Allow), nil
	}
	return nil, err
}

// All returns the rules for always, and the rules of each place.
func (p *Places) All() (always []event.Rule, there map[string][]event.Rule, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.loadLocked(); err != nil {
		return nil, nil, err
	}
	there = make(map[string][]event.Rule, len(p.content.Locations))
	for key, at := range p.content.Locations {
		there[key] = slices.Clone(at.Allow)
	}
	return slices.Clone(p.content.Always), there, nil
}

// ChangeAlways changes the rules for always.
func (p *Places) ChangeAlways(f func([]event.Rule) []event.Rule) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.loadLocked(); err != nil {
		return err
	}
	p.content.Always = f(slices.Clone(p.content.Always))
	return p.writeLocked()
}

// Change changes the rules of a place. A place without rules is removed.
func (p *Places) Change(key string, f func([]event.Rule) []event.Rule) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.loadLocked(); err != nil {
		return err
	}
	var before []event.Rule
	if at := p.content.Locations[key]; at != nil {
		before = slices.Clone(at.Allow)
	}
	all := maps.Clone(p.content.Locations)
	if all == nil {
		all = make(map[string]*place)
	}
	if all[key] = (&place{f(before)}); len(all[key].Allow) == 0 {
		delete(all, key)
	}
	p.content.Locations = all
	return p.writeLocked()
}

// Trusted reports whether a folder, or one above it, was marked as trusted.
func (p *Places) Trusted(dir string) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	err := p.loadLocked()
	return slices.ContainsFunc(p.content.Trusted, func(t string) bool { return Within(t, dir) }), err
}

// Trust marks a folder as trusted.
func (p *Places) Trust(dir string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.loadLocked(); err != nil || slices.Contains(p.content.Trusted, dir) {
		return err
	}
	p.content.Trusted = append(slices.Clip(p.content.Trusted), dir)
	return p.writeLocked()
}

// Within reports whether a path is dir or inside it.
func Within(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}
