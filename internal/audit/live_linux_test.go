package audit_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/audit"
	"github.com/abide-run/abide/internal/daemon"
	"github.com/abide-run/abide/internal/event"
)

// The auditor reads while an engine writes. What it sees is of one moment, so it
// never takes work that is under way for something broken.
func TestBesideARunningEngineThereAreNoFindings(t *testing.T) {
	dir, work := t.TempDir(), t.TempDir()
	n, err := daemon.Open(context.Background(), daemon.Config{Dir: dir, Version: "test", Defaults: api.Defaults{Cwd: work, Model: "offline"}})
	if err != nil {
		t.Fatal(err)
	}
	p := connect(t, n)
	defer func() { p.Close(); n.Close() }()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 4 {
			id := event.SessionID(fmt.Sprintf("s%d", i))
			p.create(id, all)
			p.ask(id, "Run `echo one; exit 3`", "")
			p.background(id)
			p.must(api.SessionDelete, object{"sessionId": id}, nil)
			p.create("kept-"+id, all)
			p.ask("kept-"+id, "Run `echo kept`", "")
		}
	}()
	for looks := 0; ; looks++ {
		r, err := audit.Run(t.Context(), dir, audit.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if !r.Engine {
			t.Error("the engine is not seen")
		}
		for _, found := range r.Findings {
			t.Errorf("look %d: %+v", looks, found)
		}
		select {
		case <-done:
			if looks < 3 {
				t.Logf("only %d looks while the engine worked", looks)
			}
			return
		default:
		}
	}
}

// listing is every file of a folder with its size and time.
func listing(t *testing.T, dir string) (list []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil {
			list = append(list, fmt.Sprint(path, info.Size(), info.ModTime(), info.Mode()))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestAnAuditChangesNothing(t *testing.T) {
	f := newFolder(t)
	f.db.Close()
	before := fmt.Sprint(listing(t, f.dir))
	f.audit(audit.Options{})
	if after := fmt.Sprint(listing(t, f.dir)); after != before {
		t.Errorf("the folder was\n%s\nand is\n%s", before, after)
	}
}

func TestAFolderThatCannotBeAuditedIsAnError(t *testing.T) {
	for name, make := range map[string]func(dir string) error{
		"no folder":     func(dir string) error { return os.Remove(dir) },
		"no log":        func(string) error { return nil },
		"no database":   func(dir string) error { return os.WriteFile(filepath.Join(dir, "abide.db"), []byte("no"), 0o600) },
		"empty":         func(dir string) error { return os.WriteFile(filepath.Join(dir, "abide.db"), nil, 0o600) },
		"a folder":      func(dir string) error { return os.Mkdir(filepath.Join(dir, "abide.db"), 0o700) },
		"a newer abide": func(dir string) error { return newer(t, dir) },
	} {
		dir := t.TempDir()
		if err := make(dir); err != nil {
			t.Fatal(err)
		}
		if r, err := audit.Run(t.Context(), dir, audit.Options{}); err == nil {
			t.Errorf("%s: no error, and the report %+v", name, r)
		}
	}
}

// newer makes a log of a version that nobody knows yet.
func newer(t *testing.T, dir string) error {
	f := newFolder(t)
	if _, err := f.db.Exec("PRAGMA user_version = 99"); err != nil {
		return err
	}
	f.db.Close()
	return os.CopyFS(dir, os.DirFS(f.dir))
}

func TestProgressIsTold(t *testing.T) {
	f := newFolder(t)
	l := f.script("talk")
	for range 9000 {
		l.add("session.info", object{"infoType": "i", "message": "m"})
	}
	l.save()
	told := int64(0)
	r := f.audit(audit.Options{Progress: func(done, total int64) {
		if done <= told || done > total {
			t.Errorf("%d of %d events after %d", done, total, told)
		}
		told = done
	}})
	if told < 8000 || !r.Clean() {
		t.Errorf("told of %d events; findings %+v", told, r.Findings)
	}
}
