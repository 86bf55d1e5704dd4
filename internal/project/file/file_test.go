package file_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/abide-run/abide/internal/project/file"
)

func TestRead(t *testing.T) {
	outside, root := t.TempDir(), t.TempDir()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	at := func(name string) string { return filepath.Join(root, name) }
	must(os.WriteFile(filepath.Join(outside, "secret"), []byte("secret"), 0o600))
	must(os.Mkdir(at("sub"), 0o700))
	must(os.WriteFile(at("sub/file"), []byte("hello"), 0o600))
	for name, target := range map[string]string{
		"inside": "sub/file", "sub/up": "../sub/file", "out": "../" + filepath.Base(outside) + "/secret", "absolute": filepath.Join(outside, "secret"),
		"environ": "/proc/self/environ", "zero": "/dev/zero", "folder": outside, "loop": "loop", "dangling": "nothing",
	} {
		must(os.Symlink(target, at(name)))
	}
	must(syscall.Mkfifo(at("pipe"), 0o600))
	for _, test := range []struct {
		name string
		want string
		err  error
	}{
		{"sub/file", "hello", nil},
		{"inside", "hello", nil},
		{"sub/up", "hello", nil},
		{"out", "", file.ErrRefused},
		{"absolute", "", file.ErrRefused},
		{"environ", "", file.ErrRefused},
		{"zero", "", file.ErrRefused},
		{"folder/secret", "", file.ErrRefused},
		{"loop", "", file.ErrRefused},
		{"pipe", "", file.ErrRefused},
		{"sub", "", file.ErrRefused},
		{"dangling", "", fs.ErrNotExist},
		{"nothing", "", fs.ErrNotExist},
	} {
		got, size, err := file.Read(root, at(test.name), 100)
		if string(got) != test.want || size != int64(len(test.want)) || !errors.Is(err, test.err) {
			t.Errorf("%s: %q, %d, %v", test.name, got, size, err)
		}
	}
	for most, want := range []string{"", "h", "he", "hel", "hell", "hello", "hello"} {
		if got, size, err := file.Read(root, at("sub/file"), most); string(got) != want || size != 5 || err != nil {
			t.Errorf("at most %d bytes: %q, %d, %v", most, got, size, err)
		}
	}
}

func TestTheRootIsTheRepositoryButNeverTheHome(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	for _, dir := range []string{".git", "plain/sub", "repo/.git", "repo/a/b"} {
		if err := os.MkdirAll(filepath.Join(home, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for dir, want := range map[string]string{"plain/sub": "plain/sub", "repo/a/b": "repo", "repo": "repo", "": ""} {
		if got := file.Root(filepath.Join(home, dir)); got != filepath.Join(home, want) {
			t.Errorf("%q: %s, want %s", dir, got, want)
		}
	}
}
