package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/abide-run/abide/internal/durable"
)

// A Store is the servers that the user has added with abide mcp add or by a client. They are
// in a file that only the user can read, in the form of .mcp.json.
type Store struct {
	path string
	mu   sync.Mutex
}

// OpenStore returns the store in a file, which need not exist.
func OpenStore(path string) *Store { return &Store{path: path} }

// file is the form of the file, and of .mcp.json.
type file struct {
	Servers map[string]json.RawMessage `json:"mcpServers"`
}

// All returns the configurations of all servers as they were given, by name.
func (s *Store) All() (map[string]json.RawMessage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.readLocked()
}

func (s *Store) readLocked() (map[string]json.RawMessage, error) {
	text, err := os.ReadFile(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]json.RawMessage{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the list of MCP servers: %w", err)
	}
	return parseFile(s.path, text)
}

func parseFile(path string, text []byte) (map[string]json.RawMessage, error) {
	var f file
	if err := json.Unmarshal(text, &f); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if f.Servers == nil {
		f.Servers = make(map[string]json.RawMessage)
	}
	return f.Servers, nil
}

// ParseFile reads the servers of a .mcp.json.
func ParseFile(path string, text []byte) ([]Server, error) {
	all, err := parseFile(path, text)
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(all)
	if err != nil {
		return nil, err
	}
	list, err := ParseAll(raw)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return list, nil
}

// Add adds a server. It is an error if there is one of that name.
func (s *Store) Add(name string, config json.RawMessage) error {
	return s.change(func(all map[string]json.RawMessage) error {
		if all[name] != nil {
			return fmt.Errorf("there is an MCP server %q already; remove it first, or choose another name", name)
		}
		return put(all, name, config)
	})
}

// Update replaces the configuration of a server.
func (s *Store) Update(name string, config json.RawMessage) error {
	return s.change(func(all map[string]json.RawMessage) error {
		if all[name] == nil {
			return notThere(name, all)
		}
		return put(all, name, config)
	})
}

// Remove removes a server.
func (s *Store) Remove(name string) error {
	return s.change(func(all map[string]json.RawMessage) error {
		if all[name] == nil {
			return notThere(name, all)
		}
		delete(all, name)
		return nil
	})
}

// Enable says whether servers are to be used.
func (s *Store) Enable(names []string, enabled bool) error {
	return s.change(func(all map[string]json.RawMessage) error {
		for _, name := range names {
			var fields map[string]json.RawMessage
			if all[name] == nil || json.Unmarshal(all[name], &fields) != nil {
				return notThere(name, all)
			}
			if delete(fields, "disabled"); !enabled {
				fields["disabled"] = json.RawMessage("true")
			}
			text, err := json.Marshal(fields)
			if err != nil {
				return err
			}
			all[name] = text
		}
		return nil
	})
}

func put(all map[string]json.RawMessage, name string, config json.RawMessage) error {
	if _, err := Parse(name, config); err != nil {
		return err
	}
	all[name] = config
	return nil
}

func notThere(name string, all map[string]json.RawMessage) error {
	if len(all) == 0 {
		return fmt.Errorf("%w: no MCP server was added", ErrNotFound)
	}
	return fmt.Errorf("%w: %q is none of those that were added: %v", ErrNotFound, name, slices.Sorted(maps.Keys(all)))
}

// change changes the file. Whoever reads it meanwhile has the old or the new one.
func (s *Store) change(f func(map[string]json.RawMessage) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	all, err := s.readLocked()
	if err != nil {
		return err
	}
	if err := f(all); err != nil {
		return err
	}
	text, err := json.MarshalIndent(file{all}, "", "  ")
	if err != nil {
		return err
	}
	if err := replaceFile(s.path, append(text, '\n')); err != nil {
		return fmt.Errorf("write the list of MCP servers: %w", err)
	}
	return nil
}

// replaceFile replaces a file as a whole, also if the power fails meanwhile, and makes its folder
// if there is none.
func replaceFile(path string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return durable.Replace(path, text)
}
