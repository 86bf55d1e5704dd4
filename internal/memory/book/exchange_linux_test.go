package book

import (
	"errors"
	"os"
	"testing"
)

func TestAnEditAtTheLastMomentIsKept(t *testing.T) {
	dir, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	if err := errors.Join(writeSynced(dir, "p.md", []byte("theirs")), writeSynced(dir, "new", []byte("ours"))); err != nil {
		t.Fatal(err)
	}
	if err := exchange(dir, "new", "p.md", digest([]byte("what we have read"))); !errors.Is(err, ErrChanged) {
		t.Errorf("err = %v", err)
	}
	if got, _ := dir.ReadFile("p.md"); string(got) != "theirs" {
		t.Errorf("the page says %q", got)
	}
	if err := exchange(dir, "new", "p.md", digest([]byte("theirs"))); err != nil {
		t.Error(err)
	}
	if got, _ := dir.ReadFile("p.md"); string(got) != "ours" {
		t.Errorf("the page says %q", got)
	}
	if err := exchange(dir, "new", "gone.md", "x"); !errors.Is(err, ErrChanged) {
		t.Errorf("a page that is gone: %v", err)
	}
}
