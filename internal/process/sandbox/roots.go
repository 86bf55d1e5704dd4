package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"

	"github.com/abide-run/abide/internal/durable"
)

// Roots is a file with the working directories of a session: where each led to, and which
// repository it had, when the first command was started in it. A command can put a link in
// the place of a folder that it may change, and remove the repository in it: what the link
// leads to, and the repository above, would be writable for the next one.
type Roots struct {
	File string
	mu   sync.Mutex
}

// A root is what confined commands in a working directory may change.
type root struct {
	Path       string      `json:"path"`                 // folder without links
	Repository *Repository `json:"repository,omitempty"` // nil if it was not decided
}

// UnmarshalJSON reads a root. It can be a path alone: then its repository was not decided.
func (r *root) UnmarshalJSON(data []byte) error {
	if strings.HasPrefix(string(data), `"`) {
		return json.Unmarshal(data, &r.Path)
	}
	type plain root
	return json.Unmarshal(data, (*plain)(r))
}

// Pin records where a working directory of a session leads to and which repository it has,
// and fails if it led elsewhere before. It returns the repository that it had first.
func (r *Roots) Pin(dir, real string) (*Repository, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	roots, err := r.read()
	if err != nil {
		return nil, err
	}
	return r.pin(roots, dir, real)
}

// PinAny is Pin for a folder that a client names, also by a link that leads elsewhere now; a
// working directory that commands of the session have used may not.
func (r *Roots) PinAny(dir, real string) (*Repository, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	roots, err := r.read()
	if err != nil {
		return nil, err
	}
	if _, known := roots[dir]; !known {
		dir = real
	}
	return r.pin(roots, dir, real)
}

func (r *Roots) pin(roots map[string]root, dir, real string) (*Repository, error) {
	was, known := roots[dir]
	if known && was.Path != real {
		return nil, fmt.Errorf("the working directory %s leads to %s now, and led to %s when the session began: no command is started in it; start a new session if that is right", dir, real, was.Path)
	}
	if was.Repository != nil {
		return was.Repository, nil
	}
	was = root{real, decideRepository(roots, real)}
	roots[dir] = was
	data, err := json.Marshal(roots)
	if err == nil {
		err = durable.Replace(r.File, data)
	}
	if err != nil {
		return nil, fmt.Errorf("record where the working directory of the session leads: %w", err)
	}
	return was.Repository, nil
}

// read returns the working directories by the names that the session has for them.
func (r *Roots) read() (map[string]root, error) {
	roots := map[string]root{}
	data, err := os.ReadFile(r.File)
	if err == nil {
		err = json.Unmarshal(data, &roots)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read where the working directories of the session led: %w", err)
	}
	return roots, nil
}

// decideRepository returns the repository of a folder in which no command was started yet. In
// a folder below one in which commands were, it is one that they could change before:
// they may have removed a nearer one.
func decideRepository(roots map[string]root, real string) *Repository {
	found := FindRepository(real)
	for _, known := range roots {
		if known.Repository == nil || !isBelow(real, known.Path) || found == (Repository{}) || isBelow(found.Path, known.Path) {
			continue
		}
		if found != *known.Repository {
			return known.Repository
		}
	}
	return &found
}
