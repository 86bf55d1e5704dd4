package durable_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/abide-run/abide/internal/durable"
)

// names returns the names of the files in a folder.
func names(t *testing.T, dir string) (list []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

func TestAFileIsMadeAndReplacedAsAWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "list.json")
	for _, content := range []string{"a long first content", "short", ""} {
		if err := durable.Replace(path, []byte(content)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != content {
			t.Errorf("the file has %q, %v; want %q", got, err, content)
		}
		if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
			t.Errorf("its mode is %v, %v; want it to be private", info.Mode(), err)
		}
	}
	if got := names(t, filepath.Dir(path)); len(got) != 1 {
		t.Errorf("the folder has %q, want the file alone", got)
	}
}

// TestAReaderHasTheOldContentOrTheNew: readers and writers at the same time never see a part.
func TestAReaderHasTheOldContentOrTheNew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "list.json")
	contents := [][]byte{bytes.Repeat([]byte("a"), 1<<16), bytes.Repeat([]byte("b"), 1<<17)}
	if err := durable.Replace(path, contents[0]); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for _, content := range contents {
		all.Go(func() {
			for range 20 {
				if err := durable.Replace(path, content); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Go(func() {
		for range 200 {
			if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, contents[0]) && !bytes.Equal(got, contents[1]) {
				t.Errorf("a reader has %d bytes, %v", len(got), err)
			}
		}
	})
	all.Wait()
}

// TestWhatCannotBeReplacedStays: an error leaves the old content and no draft.
func TestWhatCannotBeReplacedStays(t *testing.T) {
	dir := t.TempDir()
	if err := durable.Replace(filepath.Join(dir, "none", "file"), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("err = %v without a folder, want one that says that it does not exist", err)
	}
	full := filepath.Join(dir, "folder") // a file cannot take its place
	if err := os.MkdirAll(filepath.Join(full, "in"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := durable.Replace(full, []byte("x")); err == nil {
		t.Error("a folder was replaced")
	}
	if got := names(t, dir); len(got) != 1 || got[0] != "folder" {
		t.Errorf("the folder has %q, want what it had", got)
	}
}
