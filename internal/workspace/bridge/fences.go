package bridge

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/abide-run/abide/internal/durable"
	"github.com/abide-run/abide/internal/workspace"
)

// fences are the greatest fences that were seen, one for each session. They outlive the process in
// a folder, if there is one.
type fences struct {
	dir string

	mu    sync.Mutex
	known map[string]*sessionFence
}

// A sessionFence is the greatest fence of a session, with the changes that are under way.
type sessionFence struct {
	users int // number of those who have it from fences; guarded by fences.mu

	mu     sync.Mutex
	read   bool            // true if what an earlier process has seen was read
	latest workspace.Fence // zero if none was seen
	now    int             // number of changes under way with the latest fence
	older  int             // number of changes under way with lower ones
	quiet  chan struct{}   // closed when there are no older ones; nil if there are none
}

// begin begins a change. It waits until those with lower fences have ended, which begin no more. The
// error is workspace.ErrFenced if a greater fence was seen. A change without a fence is not held up.
func (f *fences) begin(ctx context.Context, fence workspace.Fence) (end func(), err error) {
	if fence.Session == "" {
		return func() {}, nil
	}
	s := f.take(fence.Session)
	if err := s.begin(ctx, f.path(fence.Session), fence); err != nil {
		f.giveBack(fence.Session, s)
		return nil, err
	}
	return func() {
		s.end(fence)
		f.giveBack(fence.Session, s)
	}, nil
}

func (f *fences) take(session string) *sessionFence {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.known[session]
	if s == nil {
		if f.known == nil {
			f.known = make(map[string]*sessionFence)
		}
		s = &sessionFence{}
		f.known[session] = s
	}
	s.users++
	return s
}

// maxKnownFences is how many sessions are remembered: others are read again.
const maxKnownFences = 4096

func (f *fences) giveBack(session string, s *sessionFence) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s.users--; s.users == 0 && f.dir != "" && len(f.known) > maxKnownFences {
		delete(f.known, session)
	}
}

// path returns the file with the fence of a session; empty if there is no folder.
func (f *fences) path(session string) string {
	if f.dir == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(session)) // a session can have any name
	return filepath.Join(f.dir, hex.EncodeToString(sum[:16])+".json")
}

func (s *sessionFence) begin(ctx context.Context, path string, fence workspace.Fence) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.load(path); err != nil {
		return err
	}
	if s.latest.Before(fence) {
		if err := s.raise(path, fence); err != nil {
			return err
		}
	}
	for !fence.Before(s.latest) && s.older > 0 {
		quiet := s.quiet
		s.mu.Unlock()
		select {
		case <-quiet:
		case <-ctx.Done():
		}
		s.mu.Lock()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	if fence.Before(s.latest) {
		return workspace.ErrFenced
	}
	s.now++
	return nil
}

// raise has lower fences refused from now on.
func (s *sessionFence) raise(path string, fence workspace.Fence) error {
	if path != "" {
		text, err := json.Marshal(fence)
		if err == nil {
			err = errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), durable.Replace(path, text))
		}
		if err != nil {
			return fmt.Errorf("note which server works on the session: %w", err)
		}
	}
	s.latest = fence
	s.older, s.now = s.older+s.now, 0
	if s.older > 0 && s.quiet == nil {
		s.quiet = make(chan struct{})
	}
	return nil
}

// load reads what an earlier process has seen.
func (s *sessionFence) load(path string) error {
	if s.read || path == "" {
		return nil
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		s.read = true
		return nil
	}
	if err == nil {
		err = json.Unmarshal(text, &s.latest)
	}
	if err != nil {
		return fmt.Errorf("%s says which server works on the session, and cannot be read: remove it if no other server does (%w)", path, err)
	}
	s.read = true
	return nil
}

func (s *sessionFence) end(fence workspace.Fence) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if fence == s.latest {
		s.now--
		return
	}
	if s.older--; s.older == 0 {
		close(s.quiet)
		s.quiet = nil
	}
}
