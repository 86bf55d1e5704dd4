package daemon_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/daemon"
	"github.com/abide-run/abide/internal/daemon/folder"
)

// setVersion makes the store one of another version of abide, and returns which
// one it was.
func setVersion(t *testing.T, dir string, version int) (before int) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(dir, "abide.db"))
	if err == nil {
		defer db.Close()
		err = db.QueryRow("PRAGMA user_version").Scan(&before)
	}
	if err == nil {
		_, err = db.Exec(fmt.Sprintf("PRAGMA user_version = %d", version))
	}
	if err != nil {
		t.Fatal(err)
	}
	return before
}

// leaves makes a process end when it can serve nobody any more, as the program
// does.
func leaves(t *testing.T, n *daemon.Node) {
	left := make(chan struct{})
	go func() {
		defer close(left)
		<-n.Done()
		n.Close()
	}()
	t.Cleanup(func() { n.Close(); <-left })
}

// lines are what is logged. What there is no room for is dropped.
type lines chan string

func (l lines) Write(b []byte) (int, error) {
	select {
	case l <- string(b):
	default:
	}
	return len(b), nil
}

// create makes a session in the background, and tells how that went.
func (p *peer) create(id string) <-chan error {
	done := make(chan error, 1)
	go func() { done <- p.Call(context.Background(), api.SessionCreate, map[string]any{"sessionId": id}, nil) }()
	return done
}

func TestWhileAnotherProcessHasTheLockNobodyGivesUp(t *testing.T) {
	dir := t.TempDir()
	first := open(t, dir)
	failed := make(lines, 100)
	second, err := daemon.Open(t.Context(), daemon.Config{Dir: dir, Log: slog.New(slog.NewTextHandler(failed, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { second.Close() })
	p := connect(t, second)
	known := setVersion(t, dir, 99)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	done := p.create("s")
	for !strings.Contains(<-failed, "version 99") {
	}
	f, err := folder.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	lock, err := f.WaitLock(t.Context()) // between two attempts of the relay
	if err != nil {
		t.Fatal(err)
	}
	if second.Engine() {
		t.Error("a process is the engine of a store that it does not know")
	}
	setVersion(t, dir, known)
	lock.Close()
	if err := <-done; err != nil {
		t.Errorf("the client was told %v", err)
	}
	if !second.Engine() || second.Err() != nil {
		t.Errorf("the relay has not taken over: %v", second.Err())
	}
}

func TestAnEngineWhoseSocketIsRemovedListensAgain(t *testing.T) {
	dir := t.TempDir()
	first := open(t, dir)
	connect(t, open(t, dir))
	if err := os.Remove(filepath.Join(dir, "sock")); err != nil {
		t.Fatal(err)
	}
	second := open(t, dir)
	connect(t, second)
	if !first.Engine() || second.Engine() || first.Err() != nil {
		t.Errorf("the engine is another: %v", first.Err())
	}
}

func TestAnEngineWhoseLockFileIsRemovedLocksAgain(t *testing.T) {
	dir := t.TempDir()
	first := open(t, dir)
	p := connect(t, first)
	path := filepath.Join(dir, "lock")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	for text, _ := os.ReadFile(path); len(text) == 0; text, _ = os.ReadFile(path) { // it is written when it is locked
		p.must(api.Ping, nil, nil)
	}
	second := open(t, dir)
	connect(t, second)
	if second.Engine() || first.Err() != nil {
		t.Errorf("the engine is another: %v", first.Err())
	}
}

func TestAFolderThatWasRenamedGetsAnEngineOfItsOwn(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "old")
	first := open(t, dir)
	leaves(t, first)
	moved := dir + ".new"
	if err := os.Rename(dir, moved); err != nil {
		t.Fatal(err)
	}
	second := open(t, moved)
	connect(t, second).must(api.SessionCreate, map[string]any{"sessionId": "s"}, nil)
	<-first.Done()
	if !second.Engine() || !isFolderError(first.Err()) {
		t.Errorf("the engine of the old name ended with %v", first.Err())
	}
}

func TestAFolderThatWasDeletedHasNoEngine(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	first, second := open(t, dir), open(t, dir)
	leaves(t, first)
	p := connect(t, second)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := <-p.create("s"); err == nil || !strings.Contains(err.Error(), "data folder "+dir+" was deleted") {
		t.Errorf("the client was told %v", err)
	}
	for _, n := range []*daemon.Node{first, second} {
		<-n.Done()
		if !isFolderError(n.Err()) {
			t.Errorf("a process ended with %v", n.Err())
		}
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("the folder was made again")
	}
}

func isFolderError(err error) bool {
	_, ok := errors.AsType[*daemon.FolderError](err)
	return ok
}
