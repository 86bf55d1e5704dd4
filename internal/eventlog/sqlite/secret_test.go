package sqlite

import (
	"path/filepath"
	"testing"

	"github.com/abide-run/abide/internal/eventlog"
)

// An append whose secret cannot be written stores no event either, and leaves the
// secrets that were written before the failing one as they were.
func TestAnAppendWhoseSecretFailsStoresNothing(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "abide.db"))
	end := add(t, s, "s", eventlog.End{}, "a")
	if err := s.PutSecrets(t.Context(), "s", eventlog.Secret{Name: "first", Value: []byte("kept")}); err != nil {
		t.Fatal(err)
	}
	if err := s.write.exec("CREATE TEMP TRIGGER refuse BEFORE INSERT ON secrets WHEN new.name = 'last' BEGIN SELECT RAISE(ABORT, 'no room'); END"); err != nil {
		t.Fatal(err)
	}
	b := batch(end, "b")
	b.Secrets = []eventlog.Secret{{Name: "first", Value: []byte("mixed")}, {Name: "last", Value: []byte("x")}}
	if _, err := s.Append(t.Context(), "s", b); err == nil {
		t.Fatal("the append went through")
	}
	if got, err := s.Secret(t.Context(), "s", "first"); err != nil || string(got) != "kept" {
		t.Errorf("the secret before is %q, %v; want it kept", got, err)
	}
	if info, err := s.Session(t.Context(), "s"); err != nil || info.End != end {
		t.Errorf("the session ends at %v, %v; want %v", info.End, err, end)
	}
}
