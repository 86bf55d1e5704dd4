package postgres

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/eventlog/eventlogtest"
	"github.com/abide-run/abide/internal/eventlog/postgres/postgrestest"
	"github.com/abide-run/abide/internal/seal"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		os.RemoveAll(filepath.Dir(keyFile()))
		os.Exit(code)
	}))
}

// keyFile returns the path of the key file of the servers in tests.
var keyFile = sync.OnceValue(func() string {
	dir, err := os.MkdirTemp("", "abide-key-")
	if err != nil {
		panic(err)
	}
	path := filepath.Join(dir, seal.FileName)
	keys, err := seal.OpenFile(path)
	if err == nil {
		_, err = keys.Ready() // servers that start at the same moment must not all make it
	}
	if err != nil {
		panic(err)
	}
	return path
})

// open opens a store, which is closed at the end of the test.
func open(t testing.TB, url string) *Store {
	t.Helper()
	s, err := Open(t.Context(), url, eventlog.Options{KeyFile: keyFile()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestStoreKeepsThePromises(t *testing.T) {
	c := postgrestest.Start(t)
	eventlogtest.Run(t, func(t *testing.T) eventlog.Store { return open(t, c.URL()) })
}

func TestSecretsAreSealed(t *testing.T) {
	c := postgrestest.Start(t)
	schemas := make(map[string]string)
	schema := func(dir string) string {
		if schemas[dir] == "" {
			schemas[dir] = fmt.Sprintf("sealed%d", len(schemas))
		}
		return schemas[dir]
	}
	value := func(id event.SessionID, name string) string {
		return fmt.Sprintf("session = (SELECT id FROM sessions WHERE name = '\\x%x' AND NOT deleted) AND name = '\\x%x'", id, name)
	}
	eventlogtest.RunSealed(t, eventlogtest.Disk{
		Open: func(t *testing.T, dir string, opts eventlog.Options) eventlog.Store {
			s, err := Open(t.Context(), c.SchemaURL(schema(dir)), opts)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { s.Close() })
			return s
		},
		Dump: func(t *testing.T, dir string) []byte {
			c.Exec(t, "public", "CHECKPOINT")
			var all []byte
			err := filepath.Walk(c.Dir()+"/data", func(path string, info os.FileInfo, err error) error {
				if err != nil || info.IsDir() {
					return nil // files come and go while the server runs
				}
				text, _ := os.ReadFile(path)
				all = append(all, text...)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			return all
		},
		Swap: func(t *testing.T, dir string, a, b event.SessionID, name string) {
			c.Exec(t, schema(dir), fmt.Sprintf(`UPDATE secrets x SET value = y.value FROM secrets y
				WHERE x.name = '\x%x' AND y.name = x.name AND (x.%s AND y.%s OR x.%s AND y.%s)`, name,
				onlySession(a), onlySession(b), onlySession(b), onlySession(a)))
		},
		Rename: func(t *testing.T, dir string, id event.SessionID, from, to string) {
			c.Exec(t, schema(dir), fmt.Sprintf("UPDATE secrets SET name = '\\x%x' WHERE %s", to, value(id, from)))
		},
	})
}

// onlySession is the condition for the rows of a session.
func onlySession(id event.SessionID) string {
	return fmt.Sprintf("session = (SELECT id FROM sessions WHERE name = '\\x%x' AND NOT deleted)", id)
}
