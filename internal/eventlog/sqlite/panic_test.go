package sqlite

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/eventlog"
)

// A panic of the goroutine that writes must not leave the others waiting.
func TestAPanicInTheWriterClosesTheStore(t *testing.T) {
	for what, o := range map[string]*op{
		"in the transaction": {apply: func(*writing) error { panic("a bug") }, committed: func() {}},
		"afterwards":         {apply: func(*writing) error { return nil }, committed: func() { panic("a bug") }},
	} {
		t.Run(what, func(t *testing.T) {
			s, err := Open(t.Context(), filepath.Join(t.TempDir(), "x.db"), Options{})
			if err != nil {
				t.Fatal(err)
			}
			if err := s.queue.Do(t.Context(), o); !errors.Is(err, eventlog.ErrClosed) || !strings.Contains(err.Error(), "a bug") {
				t.Errorf("the broken write: %v", err)
			}
			if err := s.PutSecrets(t.Context(), "other", eventlog.Secret{Name: "n", Value: []byte("v")}); !errors.Is(err, eventlog.ErrClosed) {
				t.Errorf("the next write: %v", err)
			}
			s.Close() // it tells why it was closed
		})
	}
}
