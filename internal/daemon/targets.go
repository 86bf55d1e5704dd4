package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/abide-run/abide/internal/approval/scope"
	"github.com/abide-run/abide/internal/durable"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/workspace"
)

// targetsFile is the name of the file that says where the rules of a session led to, in its own
// folder. The agents of a session have the file of the session.
const targetsFile = "scope.json"

// scopeTargets is a file with the targets of the rules that allow a session to use files, and where
// each of them led to when the session used its first file. A command can put a link in the place
// of a folder that it may change: what the link leads to is not what the rule has allowed.
type scopeTargets struct {
	file string
	mu   sync.Mutex
}

// pin returns what rules allow: the paths that their targets led to first. find returns the path
// that the target of a rule leads to now.
func (s *scopeTargets) pin(rules []scope.Rule, find func(scope.Rule) (string, error)) ([]scope.Allowance, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	paths, err := s.read()
	if err != nil {
		return nil, err
	}
	known := len(paths)
	var allowed []scope.Allowance
	for _, r := range rules {
		path, ok := paths[r.Target]
		if !ok {
			if path, err = find(r); err != nil {
				return nil, err
			}
			paths[r.Target] = path
		}
		allowed = append(allowed, scope.Allowance{Path: path, Mode: r.Mode})
	}
	if len(paths) == known {
		return allowed, nil
	}
	data, err := json.Marshal(paths)
	if err == nil {
		err = durable.Replace(s.file, data)
	}
	if err != nil {
		return nil, fmt.Errorf("record where the folders of the session lead: %w", err)
	}
	return allowed, nil
}

// read returns the paths by the targets of the rules.
func (s *scopeTargets) read() (map[string]string, error) {
	paths := map[string]string{}
	data, err := os.ReadFile(s.file)
	if err == nil {
		err = json.Unmarshal(data, &paths)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read where the folders of the session led: %w", err)
	}
	return paths, nil
}

// targets returns where the rules of a session led to.
func (t *toolbox) targets(ctx context.Context, id event.SessionID) (*scopeTargets, error) {
	dir, err := t.makeFolder(t.family.root(ctx, id))
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, targetsFile)
	known, _ := t.targetFiles.LoadOrStore(file, &scopeTargets{file: file})
	return known.(*scopeTargets), nil
}

// make returns the scope of a session with rules: what they allow is what they led to first.
func (s *scopes) make(ctx context.Context, id event.SessionID, at workspace.Files, rules event.ScopeRules) (*scope.Scope, error) {
	targets, err := s.targets(ctx, id)
	if err != nil {
		return nil, err
	}
	allowed, err := targets.pin(scopeRules(rules.Allow), func(r scope.Rule) (string, error) {
		one, err := at.Scope(ctx, []scope.Rule{r}, nil)
		if err != nil {
			return "", err
		}
		list := one.Data().Allow
		if len(list) != 1 { // whoever controls a workspace decides what it answers
			return "", fmt.Errorf("the workspace does not say where %s leads", r.Target)
		}
		return list[0].Path, nil
	})
	if err != nil {
		return nil, err
	}
	found, err := at.Scope(ctx, nil, scopeRules(rules.Deny))
	if err != nil {
		return nil, err
	}
	data := found.Data()
	data.Allow = allowed
	return data.Scope(), nil
}
