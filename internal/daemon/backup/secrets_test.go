package backup

import (
	"bytes"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/eventlog/sqlite"
	"github.com/abide-run/abide/internal/seal"
)

// newSecrets makes a data folder with a secret, a key file and a token.
func newSecrets(t *testing.T, keyFile string) Source {
	t.Helper()
	s := newData(t, 2)
	s.KeyFile = filepath.Join(s.Dir, keyFile)
	must(t, os.MkdirAll(filepath.Dir(s.KeyFile), 0o700))
	store, err := sqlite.Open(t.Context(), s.Store, sqlite.Options{KeyFile: s.KeyFile})
	must(t, err)
	must(t, store.PutSecrets(t.Context(), "s0", eventlog.Secret{Name: "k", Value: []byte("hidden-4711")}))
	must(t, store.Close())
	must(t, os.WriteFile(filepath.Join(s.Dir, "token"), []byte("hidden-token"), 0o600))
	must(t, os.WriteFile(filepath.Join(filepath.Dir(s.KeyFile), "."+filepath.Base(keyFile)+"-123"), []byte("hidden-draft"), 0o600))
	return s
}

func secretIn(t *testing.T, store, keyFile string) (string, error) {
	t.Helper()
	s, err := sqlite.Open(t.Context(), store, sqlite.Options{KeyFile: keyFile})
	must(t, err)
	defer s.Close()
	b, err := s.Secret(t.Context(), "s0", "k")
	return string(b), err
}

func TestABackupHasNoKeyUnlessItIsAskedFor(t *testing.T) {
	for _, place := range []string{seal.FileName, "keys/mine", "../elsewhere.key"} {
		for _, with := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s %v", filepath.Base(place), with), func(t *testing.T) {
				s := newSecrets(t, place)
				s.WithKey = with
				path, report := backUp(t, s)
				want := map[bool]SecretsIn{false: SecretsSealed, true: SecretsWithKey}[with]
				if report.Secrets != want {
					t.Errorf("reported %q, want %q", report.Secrets, want)
				}
				archive, err := os.ReadFile(path)
				must(t, err)
				key, err := os.ReadFile(s.KeyFile)
				must(t, err)
				if bytes.Contains(archive, key) != with || bytes.Contains(archive, []byte("hidden-token")) != with ||
					bytes.Contains(archive, []byte("hidden-4711")) || bytes.Contains(archive, []byte("hidden-draft")) {
					t.Errorf("key %v, token %v, secret %v, draft %v", bytes.Contains(archive, key), bytes.Contains(archive, []byte("hidden-token")),
						bytes.Contains(archive, []byte("hidden-4711")), bytes.Contains(archive, []byte("hidden-draft")))
				}
				to := Target{Dir: filepath.Join(t.TempDir(), "restored")}
				r, err := to.ReadFile(t.Context(), path)
				if err != nil || r.Secrets != want {
					t.Fatalf("restored %+v, %v", r, err)
				}
				restored := filepath.Join(to.Dir, seal.FileName)
				if info, err := os.Stat(restored); (err == nil) != with || with && info.Mode() != 0o600 {
					t.Errorf("the restored key file: %v", err)
				}
				if !with {
					must(t, os.WriteFile(restored, key, 0o600)) // a copy of it is put in its place
				}
				if got, err := secretIn(t, filepath.Join(to.Dir, r.Store), restored); err != nil || got != "hidden-4711" {
					t.Errorf("the restored secret is %q, %v", got, err)
				}
			})
		}
	}
}

// toVersion5 makes a store without secrets one that does not seal them.
const toVersion5 = "DELETE FROM secrets; DROP TABLE moved; DROP TABLE costs; DROP TABLE uncounted; DROP TABLE keys; ALTER TABLE meta DROP COLUMN clear; PRAGMA user_version = 5;"

// Whoever has installed a newer abide can back up before its engine seals the secrets. The
// backup can still be restored with the older one, and gives no secret away.
func TestClearSecretsOfAnOlderVersionAreLeftOut(t *testing.T) {
	s := newSecrets(t, seal.FileName)
	db, err := sql.Open("sqlite", s.Store)
	must(t, err)
	_, err = db.Exec(toVersion5 + "INSERT INTO secrets SELECT id, 'k', CAST('hidden-4711' AS BLOB) FROM sessions WHERE name = 's0'")
	must(t, err)
	must(t, db.Close())
	path, report := backUp(t, s)
	archive, err := os.ReadFile(path)
	must(t, err)
	if report.Secrets != SecretsLeftOut || bytes.Contains(archive, []byte("hidden-4711")) {
		t.Errorf("reported %q, in the backup: %v", report.Secrets, bytes.Contains(archive, []byte("hidden-4711")))
	}
	to := Target{Dir: filepath.Join(t.TempDir(), "restored")}
	r, err := to.ReadFile(t.Context(), path)
	must(t, err)
	store := filepath.Join(to.Dir, r.Store)
	if got, err := versionOf(store); err != nil || got != 5 {
		t.Errorf("the restored store has version %d, %v", got, err)
	}
	if got, err := secretIn(t, store, filepath.Join(to.Dir, seal.FileName)); err != nil || got != "" {
		t.Errorf("the restored secret is %q, %v", got, err)
	}
	if got, err := secretIn(t, s.Store, s.KeyFile); err != nil || got != "hidden-4711" {
		t.Errorf("the secret of the folder is %q, %v", got, err)
	}
}

func versionOf(path string) (version int, err error) {
	db, err := sql.Open("sqlite", path)
	if err != nil {
		return 0, err
	}
	defer db.Close()
	err = db.QueryRow("PRAGMA user_version").Scan(&version)
	return version, err
}
