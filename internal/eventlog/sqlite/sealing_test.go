package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/eventlog/eventlogtest"
	"github.com/abide-run/abide/internal/seal"
)

func TestStoreSealsSecrets(t *testing.T) {
	eventlogtest.RunSealed(t, eventlogtest.Disk{
		Open: func(t *testing.T, dir string, opts eventlog.Options) eventlog.Store {
			opts.Dir = dir
			s, err := Kind.Open(t.Context(), "abide.db", opts)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { s.Close() })
			return s
		},
		Dump: dump,
		Swap: func(t *testing.T, dir string, a, b event.SessionID, name string) {
			where := fmt.Sprintf("name = '%s' AND session = (SELECT id FROM sessions WHERE name = '%%s')", name)
			tamper(t, filepath.Join(dir, "abide.db"), fmt.Sprintf(`CREATE TEMP TABLE was AS SELECT value FROM secrets WHERE `+where+`;
				UPDATE secrets SET value = (SELECT value FROM secrets WHERE `+where+`) WHERE `+where+`;
				UPDATE secrets SET value = (SELECT value FROM was) WHERE `+where, a, b, a, b))
		},
		Rename: func(t *testing.T, dir string, id event.SessionID, from, to string) {
			tamper(t, filepath.Join(dir, "abide.db"), fmt.Sprintf("UPDATE secrets SET name = '%s' WHERE name = '%s' AND session = (SELECT id FROM sessions WHERE name = '%s')", to, from, id))
		},
	})
}

// dump returns the bytes of all files of a folder but key files.
func dump(t *testing.T, dir string) (all []byte) {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if f.Name() == seal.FileName {
			continue
		}
		b, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b...)
	}
	return all
}

// clearText is the secret of a session in a store of version 5. It fills some pages.
func clearText(i int) string { return strings.Repeat(fmt.Sprintf("clear-text-%d ", i), 500+i*100) }

const clearSessions = 12

// makeClear makes a store of version 5, with secrets in clear, and leaves a part of them in
// its write-ahead log, as a killed process does.
func makeClear(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "abide.db")
	s := open(t, path)
	addSessions(t, s, clearSessions)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	tamper(t, path, toVersion5)
	db, err := sql.Open("sqlite", dsn(path, Options{}, ""))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for i := range clearSessions {
		_, err := db.Exec("INSERT INTO secrets SELECT id, 'k', ? FROM sessions WHERE name = ?", []byte(clearText(i)), string(sessionName(i)))
		if err == nil && i == clearSessions/2 {
			_, err = db.Exec("PRAGMA wal_checkpoint(TRUNCATE)")
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	copied := filepath.Join(t.TempDir(), "abide.db")
	for _, side := range []string{"", "-wal"} { // without the end of the process that has written it
		b, err := os.ReadFile(path + side)
		if err == nil {
			err = os.WriteFile(copied+side, b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if wal, err := os.ReadFile(copied + "-wal"); err != nil || !bytes.Contains(wal, []byte("clear-text-11")) {
		t.Fatalf("the write-ahead log holds no secret: %v", err)
	}
	return copied
}

// checkSealed checks that a store has all secrets, and none in clear.
func checkSealed(t *testing.T, s *Store) {
	t.Helper()
	for i := range clearSessions {
		if got, err := s.Secret(t.Context(), sessionName(i), "k"); err != nil || string(got) != clearText(i) {
			t.Errorf("secret %d = %.20q, %v", i, got, err)
		}
		if _, err := read(t, s, sessionName(i)); err != nil {
			t.Error(err)
		}
	}
	checkNothingClear(t, s.path)
}

func checkNothingClear(t *testing.T, path string) {
	t.Helper()
	if bytes.Contains(dump(t, filepath.Dir(path)), []byte("clear-text")) {
		t.Error("a secret is left in the files")
	}
}

func TestClearSecretsAreSealedAndGone(t *testing.T) {
	path := makeClear(t)
	for range 2 {
		s := open(t, path)
		if _, err := s.Search(t.Context(), eventlog.Search{Text: "clear"}); err != nil {
			t.Fatal(err)
		}
		checkSealed(t, s)
		found, err := InspectSecrets(t.Context(), path)
		if id := s.sealing.Keys().IDs()[0]; err != nil || found.Clear || found.Keys[id] != clearSessions {
			t.Errorf("inspected as %+v, %v", found, err)
		}
		copied := filepath.Join(t.TempDir(), "copy.db")
		if err := Copy(t.Context(), path, copied, func(int64, int64) {}); err != nil {
			t.Fatal(err)
		}
		checkNothingClear(t, copied)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		checkNothingClear(t, path)
	}
	checkPages(t, path)
}

// A process that reads keeps the write-ahead log from being emptied. That is done when it
// has ended.
func TestAReaderOnlyDelaysThatClearSecretsAreGone(t *testing.T) {
	path := makeClear(t)
	src, err := openSource(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, path)
	found, err := InspectSecrets(t.Context(), path)
	if err != nil || !found.Clear {
		t.Errorf("beside a reader: %+v, %v", found, err)
	}
	src.close()
	s.upkeep.wait()
	if found, err = InspectSecrets(t.Context(), path); err != nil || found.Clear {
		t.Errorf("after it: %+v, %v", found, err)
	}
	checkSealed(t, s)
}

// Variables of a process that is killed while it opens a store.
const (
	sealVictim     = "SQLITE_TEST_SEAL_VICTIM"
	sealVictimStep = "SQLITE_TEST_SEAL_STEP"
)

// runSealVictim opens a store, and kills itself at a step.
func runSealVictim(path string) {
	atStep = func(step string) {
		if step == os.Getenv(sealVictimStep) {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
	}
	s, err := Open(context.Background(), path, Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	s.Close()
}

func TestAProcessThatIsKilledWhileItSealsLosesNothing(t *testing.T) {
	for _, step := range []string{"made the key", "sealed the values", "stored the sealed values", "emptied the write-ahead log"} {
		t.Run(step, func(t *testing.T) {
			path := makeClear(t)
			c := exec.CommandContext(t.Context(), os.Args[0])
			c.Env = append(os.Environ(), sealVictim+"="+path, sealVictimStep+"="+step)
			if out, err := c.Output(); err == nil || c.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
				t.Fatalf("the process was not killed there: %v, %s", err, out)
			}
			s := open(t, path)
			checkSealed(t, s)
			if found, err := InspectSecrets(t.Context(), path); err != nil || found.Clear {
				t.Errorf("inspected as %+v, %v", found, err)
			}
		})
	}
}

// A store that cannot get a key is left as it was, with a reason.
func TestAStoreThatGetsNoKeyIsNotMigrated(t *testing.T) {
	path := makeClear(t)
	missing := filepath.Join(t.TempDir(), "unmounted", "key")
	if _, err := Open(t.Context(), path, Options{KeyFile: missing}); err == nil || !strings.Contains(err.Error(), missing) {
		t.Errorf("error %v", err)
	}
	src, err := openSource(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	version, err := storedVersion(t.Context(), src.conn, path)
	if src.close(); err != nil || version != 5 {
		t.Errorf("the store has version %d, %v", version, err)
	}
	checkSealed(t, open(t, path))
}

// A damaged page costs the secrets on it, and nothing else. What is left of the others in
// clear goes, too.
func TestClearSecretsOnABrokenPage(t *testing.T) {
	path := makeClear(t)
	tamper(t, path, "PRAGMA wal_checkpoint(TRUNCATE)")
	const indexLeaf = 0x0a // the first byte of a page with rows of a table without row numbers
	overwritePage(t, path, "clear-text-9 ", indexLeaf)
	s := open(t, path)
	lost := 0
	for i := range clearSessions {
		switch got, err := s.Secret(t.Context(), sessionName(i), "k"); {
		case err == nil && got == nil:
			lost++
		case err != nil || string(got) != clearText(i):
			t.Errorf("secret %d = %.20q, %v", i, got, err)
		}
		if err := s.PutSecrets(t.Context(), sessionName(i), eventlog.Secret{Name: "k", Value: []byte("new")}); err != nil {
			t.Error(err)
		}
	}
	if lost == 0 {
		t.Error("no secret was lost: the page was not damaged")
	}
	checkNothingClear(t, path)
	checkPages(t, path)
}

func TestDropClearRemovesSecretsOfOlderVersionsAlone(t *testing.T) {
	path := makeClear(t)
	tamper(t, path, "PRAGMA wal_checkpoint(TRUNCATE)")
	copied := filepath.Join(t.TempDir(), "copy.db")
	for i, want := range []bool{true, false} {
		if i == 1 {
			open(t, path).Close()
		}
		if err := Copy(t.Context(), path, copied, func(int64, int64) {}); err != nil {
			t.Fatal(err)
		}
		dropped, err := DropClear(t.Context(), copied)
		if err != nil || dropped != want {
			t.Errorf("dropped %v, %v; want %v", dropped, err, want)
		}
		checkNothingClear(t, copied)
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(copied), seal.FileName), mustRead(t, filepath.Join(filepath.Dir(path), seal.FileName)), 0o600); err != nil {
		t.Fatal(err)
	}
	checkSealed(t, open(t, copied))
}

func mustRead(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A value that was never sealed is refused: whoever can write to the file must not be able
// to give a session another key.
func TestAClearValueInASealedStoreIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "abide.db")
	s := open(t, path)
	add(t, s, "s", eventlog.End{}, "a")
	if err := s.write.exec("INSERT INTO secrets VALUES (1, 'k', 'planted')"); err == nil {
		t.Error("a text was stored as a value")
	}
	if err := s.write.exec("INSERT INTO secrets VALUES (1, 'k', CAST('planted' AS BLOB))"); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Secret(t.Context(), "s", "k"); !errors.Is(err, eventlog.ErrSealed) {
		t.Errorf("secret = %q, %v", got, err)
	}
}

// environment is a secret of the usual size.
var environment = bytes.Repeat([]byte(`"VARIABLE_NAME=/some/value/of/it",`), 120)

// BenchmarkCreateWithSecret creates sessions as clients do: with an environment.
func BenchmarkCreateWithSecret(b *testing.B) {
	for _, mode := range []eventlog.Sync{eventlog.Full, eventlog.Normal} {
		b.Run("sync="+strings.ToUpper(mode.String()), func(b *testing.B) {
			s, err := Open(b.Context(), filepath.Join(b.TempDir(), "abide.db"), Options{Sync: mode})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			for i := 0; b.Loop(); i++ {
				batch := eventlog.Batch{Events: half(3), Info: &eventlog.Info{Name: "bench"}, Secrets: []eventlog.Secret{{Name: "env", Value: environment}}}
				if _, err := s.Append(b.Context(), event.SessionID(fmt.Sprint("s", i)), batch); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkOpenWithSecrets opens and closes a store of 1000 sessions with environments.
func BenchmarkOpenWithSecrets(b *testing.B) {
	path := filepath.Join(b.TempDir(), "abide.db")
	s, err := Open(b.Context(), path, Options{Sync: eventlog.Normal})
	if err != nil {
		b.Fatal(err)
	}
	for i := range 1000 {
		batch := eventlog.Batch{Events: half(3), Secrets: []eventlog.Secret{{Name: "env", Value: environment}}}
		if _, err := s.Append(b.Context(), event.SessionID(fmt.Sprint("s", i)), batch); err != nil {
			b.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		s, err := Open(b.Context(), path, Options{})
		if err == nil {
			err = s.Close()
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}
