package audit_test

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
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
	for name, c := range map[string]struct {
		make func(dir, log string) error
		want string
	}{
		"no folder":         {func(dir, _ string) error { return os.Remove(dir) }, "holds no log (abide.db): name the folder"},
		"no log":            {func(_, _ string) error { return nil }, "holds no log (abide.db): name the folder"},
		"no database":       {func(_, log string) error { return os.WriteFile(log, []byte("no"), 0o600) }, "it is not a log of abide: name another data folder"},
		"no database, long": {func(_, log string) error { return os.WriteFile(log, bytes.Repeat([]byte("no"), 4096), 0o600) }, "it is not a log of abide: name another data folder"},
		"empty":             {func(_, log string) error { return os.WriteFile(log, nil, 0o600) }, "it is not a log of abide: name another data folder"},
		"a folder":          {func(_, log string) error { return os.Mkdir(log, 0o700) }, "is a folder, not a file: name another data folder"},
		"a pipe":            {func(_, log string) error { return syscall.Mkfifo(log, 0o600) }, "is not a file: name another data folder"},
		"a newer abide":     {func(dir, _ string) error { return newer(t, dir) }, "use a newer abide"},
	} {
		dir := t.TempDir()
		if err := c.make(dir, filepath.Join(dir, "abide.db")); err != nil {
			t.Fatal(err)
		}
		if r, err := audit.Run(t.Context(), dir, audit.Options{}); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: err = %v, and the report %+v; want an error that says %q", name, err, r, c.want)
		}
	}
}

// TestALogThatIsElsewhereIsAudited: the log may have another name, and be outside the
// data folder.
func TestALogThatIsElsewhereIsAudited(t *testing.T) {
	f := newFolder(t)
	f.db.Close()
	want := f.audit(audit.Options{})
	log := filepath.Join(t.TempDir(), "other.db")
	if err := os.Rename(filepath.Join(f.dir, "abide.db"), log); err != nil {
		t.Fatal(err)
	}
	if got := f.audit(audit.Options{Log: log}); got.Events == 0 || got.Events != want.Events || got.Sessions != want.Sessions || !got.Clean() {
		t.Errorf("got %+v, want %+v", got, want)
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
