package sqlite

import (
	"errors"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/abide-run/abide/internal/eventlog"
)

// The parent is deleted and another session gets its name after a fork has looked at the
// parent and before the fork is written. The child must not get the other one's events.
func TestAForkOfASessionThatWasReplacedMeanwhileIsRefused(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "abide.db"))
	end := add(t, s, "p", eventlog.End{}, "a", "b")
	begun, goOn := make(chan struct{}), make(chan struct{})
	results := make(chan error, 4)
	queue := func(waiting int, do func() error) {
		go func() { results <- do() }()
		for s.waitingOps() < waiting {
			runtime.Gosched()
		}
	}
	queue(0, func() error {
		return s.queue.Do(t.Context(), &op{apply: func(*writing) error { close(begun); <-goOn; return nil }, committed: func() {}})
	})
	<-begun
	forked := make(chan error, 1)
	queue(1, func() error { return s.Delete(t.Context(), "p") })
	queue(2, func() error {
		_, err := s.Append(t.Context(), "p", batch(eventlog.End{}, "other", "events"))
		return err
	})
	queue(3, func() error { _, err := s.Fork(t.Context(), "c", "p", batch(end, "mine")); forked <- err; return nil })
	close(goOn)
	for range cap(results) {
		if err := <-results; err != nil {
			t.Fatal(err)
		}
	}
	if err := <-forked; !errors.Is(err, eventlog.ErrConflict) {
		t.Errorf("the fork: %v, want a conflict", err)
	}
}

// waitingOps returns the number of changes that wait to be committed.
func (s *Store) waitingOps() int {
	waiting, _ := s.queue.Load()
	return waiting
}
