package folder

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// lockedFolder returns a new folder and its lock.
func lockedFolder(t *testing.T, dir string) (*Folder, *Lock) {
	t.Helper()
	f, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	lock, got, err := f.TryLock()
	if err != nil || !got {
		t.Fatalf("got the lock: %v, %v", got, err)
	}
	t.Cleanup(func() { lock.Close() })
	return f, lock
}

func keep(t *testing.T, l *Lock) string {
	t.Helper()
	token, err := l.KeepToken()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func TestTheTokenOfTheSocketIsMadeOnceAndIsPrivate(t *testing.T) {
	dir := t.TempDir()
	f, lock := lockedFolder(t, dir)
	if f.Token() != "" {
		t.Error("there is a token before there was an engine")
	}
	token := keep(t, lock)
	info, err := os.Stat(filepath.Join(dir, TokenName))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("the file: %v, %v", info, err)
	}
	if len(token) < minToken || f.Token() != token || keep(t, lock) != token {
		t.Errorf("the token is %q, others find %q", token, f.Token())
	}
	lock.Close()
	_, next := lockedFolder(t, dir)
	if got := keep(t, next); got != token {
		t.Errorf("the next engine has the token %q, want %q", got, token)
	}
}

// Whatever happens to the file, the engine that runs keeps its token: relays have it.
func TestAnEnginePutsItsTokenBack(t *testing.T) {
	for name, change := range map[string]func(path string) error{
		"removed":   os.Remove,
		"emptied":   func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"replaced":  func(path string) error { return os.WriteFile(path, []byte(strings.Repeat("x", 40)), 0o600) },
		"published": func(path string) error { return os.Chmod(path, 0o644) },
		"linked": func(path string) error {
			other := filepath.Join(filepath.Dir(path), "other")
			return firstOf(os.Rename(path, other), os.Symlink(other, path))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			f, lock := lockedFolder(t, dir)
			token := keep(t, lock)
			path := filepath.Join(dir, TokenName)
			if err := change(path); err != nil {
				t.Fatal(err)
			}
			if got := keep(t, lock); got != token || f.Token() != token {
				t.Errorf("the token is %q, others find %q; want %q", got, f.Token(), token)
			}
			info, err := os.Lstat(path)
			if err != nil || info.Mode() != 0o600 {
				t.Errorf("the file: %v, %v", info.Mode(), err)
			}
			left, _ := filepath.Glob(filepath.Join(dir, "."+TokenName+"-*"))
			if len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// A token that others could read, or that is none, is not that of the next engine.
func TestABadTokenIsNotUsed(t *testing.T) {
	for name, change := range map[string]func(path string) error{
		"published": func(path string) error { return os.Chmod(path, 0o644) },
		"cut":       func(path string) error { return os.Truncate(path, 10) },
		"linked": func(path string) error {
			other := filepath.Join(filepath.Dir(path), "other")
			return firstOf(os.Rename(path, other), os.Symlink(other, path))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			f, lock := lockedFolder(t, dir)
			token := keep(t, lock)
			lock.Close()
			if err := change(filepath.Join(dir, TokenName)); err != nil {
				t.Fatal(err)
			}
			_, next := lockedFolder(t, dir)
			if got := keep(t, next); got == token || len(got) < minToken || f.Token() != got {
				t.Errorf("the token is %q, others find %q; it was %q", got, f.Token(), token)
			}
		})
	}
}

func TestAFolderInThePlaceOfTheTokenIsReported(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, TokenName, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, lock := lockedFolder(t, dir)
	if _, err := lock.KeepToken(); err == nil || !strings.Contains(err.Error(), "something else has the name "+TokenName+": remove it") {
		t.Errorf("err = %v", err)
	}
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
