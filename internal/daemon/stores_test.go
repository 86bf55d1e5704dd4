package daemon_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/daemon"
	"github.com/abide-run/abide/internal/event"
)

func TestTheLogIsWhereItsURLSays(t *testing.T) {
	elsewhere := filepath.Join(t.TempDir(), "other.db")
	for url, file := range map[string]string{"": "abide.db", "sqlite:mine.db": "mine.db", "sqlite:what?": "what?", "sqlite:file.db": "file.db", "sqlite:~x": "~x", "sqlite:" + elsewhere: elsewhere, "sqlite://" + elsewhere: elsewhere} {
		dir := filepath.Join(t.TempDir(), "a?b=c ")
		n, err := daemon.Open(t.Context(), daemon.Config{Dir: dir, Store: url, Defaults: api.Defaults{Cwd: dir}})
		if err != nil {
			t.Fatal(err)
		}
		if !filepath.IsAbs(file) {
			file = filepath.Join(dir, file)
		}
		if _, err := os.Stat(file); err != nil {
			t.Errorf("%q: %v", url, err)
		}
		if own := filepath.Join(dir, "abide.db"); file != own {
			if _, err := os.Stat(own); err == nil {
				t.Errorf("%q: there is a store in the data folder as well", url)
			}
		}
		p := connect(t, n)
		p.must(api.SessionCreate, map[string]any{"sessionId": event.NewID()}, nil)
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestAStoreURLWithATypoIsRefusedByEngineAndRelay(t *testing.T) {
	dir := t.TempDir()
	refused := func() {
		t.Helper()
		for url, want := range map[string]string{
			"sqlit:x":                 `begins with "sqlit:", which is unknown: write `,
			"sqlite:":                 "it names no file: write ",
			"sqlite: ":                "it names no file",
			"sqlite::memory:":         `"sqlite::memory:": a store in memory loses every session when abide ends`,
			"sqlite:?mode=memory":     "settings after a question mark are not read",
			"sqlite:x.db?mode=memory": "settings after a question mark are not read",
			"sqlite:file:x.db":        "file: is not read before a path",
			"sqlite:file::memory:":    "a store in memory loses every session when abide ends",
			"sqlite:FILE:x.db":        "file: is not read before a path",
			"sqlite:sub/":             "it names a folder, not a file",
			"sqlite:.":                "it names a folder, not a file",
			"sqlite:a/..":             "it names a folder, not a file",
			"sqlite:///":              "it names a folder, not a file",
			"sqlite:abide.db-wal":     "a file whose name ends in -wal belongs to the store beside it",
			"sqlite:abide.db-shm":     "a file whose name ends in -shm belongs",
			"sqlite:abide.db-journal": "a file whose name ends in -journal belongs",
			"sqlite:abide.db-search":  "a file whose name ends in -search belongs",
			"sqlite:engine.log":       "abide uses the file engine.log for something else",
			"sqlite:secrets.key":      "abide uses the file secrets.key for something else",
			"sqlite:" + dir + "/lock": "abide uses the file lock for something else",
			"sqlite:./sessions":       "abide uses the file sessions for something else",
			"sqlite:~/x.db":           "~ is not replaced by your home folder",
			"sqlite: x.db":            "it begins or ends with a space",
			"SQLite:x.db":             `begins with "SQLite:", which is unknown: write `,
			"sqlite://x":              "a file has no host",
			"x.db":                    `"x.db", has no scheme: write `,
			"sqlite//x":               `"sqlite//x", has no scheme: write `,
			"mysql://h/d":             "which is unknown: write ",
		} {
			n, err := daemon.Open(t.Context(), daemon.Config{Dir: dir, Store: url})
			if err == nil {
				n.Close()
			}
			if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "sqlite:PATH") {
				t.Errorf("%q: err = %v; want it to say %q and sqlite:PATH", url, err, want)
			}
		}
	}
	refused()
	if made, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || !slices.Equal(made, []string{filepath.Join(dir, "lock")}) {
		t.Errorf("%v were made, %v; want the lock of the folder alone", made, err)
	}
	open(t, dir) // the others are relays from here on
	refused()
}
