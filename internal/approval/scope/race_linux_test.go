package scope_test

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/abide-run/abide/internal/approval/scope"
)

// swapDuring exchanges two names again and again until work returns.
func swapDuring(t *testing.T, a, b string, work func()) {
	var wg sync.WaitGroup
	stop := make(chan struct{})
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if err := exchange(a, b); err != nil {
				t.Error(err)
				return
			}
		}
	})
	work()
	close(stop)
	wg.Wait()
}

func exchange(a, b string) error {
	return unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
}

const tries = 1000

func TestARaceReadsNothingOutside(t *testing.T) {
	w := newTestTree(t)
	if err := exchange(w.in+"/file", w.in+"/quiet"); err != nil {
		t.Skip("the file system cannot exchange names, so the races were not run:", err)
	}
	link(t, w.out+"/folder", w.in+"/link")
	link(t, w.out+"/file", w.in+"/link-file")
	link(t, "denied", w.in+"/link-denied")
	put(t, w.in+"/deep/folder/file", "public")
	for _, test := range []struct{ name, a, b, path string }{
		{"a folder and a link out", "folder", "link", "folder/file"},
		{"a file and a link out", "file", "link-file", "file"},
		{"a folder and a link to what is denied", "folder", "link-denied", "folder/file"},
		{"a folder and what is denied", "folder", "denied", "folder/file"},
		{"a folder and one that is above", "deep/folder", "folder", "deep/folder/file"},
	} {
		t.Run(test.name, func(t *testing.T) {
			before := content(t, filepath.Join(w.in, test.path))
			swapDuring(t, filepath.Join(w.in, test.a), filepath.Join(w.in, test.b), func() {
				for range tries {
					if text, err := read(w.Scope, filepath.Join(w.in, test.path)); err == nil && text != "public" {
						t.Errorf("read %q", text)
						return
					}
				}
			})
			if content(t, filepath.Join(w.in, test.path)) != before {
				if err := exchange(filepath.Join(w.in, test.a), filepath.Join(w.in, test.b)); err != nil {
					t.Fatal(err)
				}
			}
			w.checkOutside(t)
		})
	}
}

// TestARaceOpensNoOtherFile swaps a file with a denied one in the same folder, so that
// only the identity of the opened file tells them apart.
func TestARaceOpensNoOtherFile(t *testing.T) {
	w := newTestTree(t)
	put(t, w.in+"/hush", secret)
	s := newScope(t, []scope.Rule{{Target: w.in, Mode: scope.Read}}, []scope.Rule{{Target: w.in + "/hush", Mode: scope.Read}})
	if err := exchange(w.in+"/file", w.in+"/quiet"); err != nil {
		t.Skip("the file system cannot exchange names, so the races were not run:", err)
	}
	swapDuring(t, w.in+"/file", w.in+"/hush", func() {
		for range 10 * tries {
			if text, err := read(s, w.in+"/file"); err == nil && text != "public" {
				t.Errorf("read %q", text)
				return
			}
		}
	})
}

func TestARaceWritesNothingOutside(t *testing.T) {
	w := newTestTree(t)
	if err := exchange(w.in+"/file", w.in+"/quiet"); err != nil {
		t.Skip("the file system cannot exchange names, so the races were not run:", err)
	}
	link(t, w.out+"/folder", w.in+"/link")
	swapDuring(t, w.in+"/folder", w.in+"/link", func() {
		for range tries / 10 {
			_ = w.Apply(scope.Change{Path: w.in + "/folder/file", Old: []byte(secret), New: []byte("overwritten")})
			_ = w.Apply(scope.Change{Path: w.in + "/folder/new", New: []byte("new")})
			_ = w.Apply(scope.Change{Path: w.in + "/folder/new", Old: []byte("new")})
		}
	})
	w.checkOutside(t)
	if entries, err := os.ReadDir(w.out + "/folder"); err != nil || len(entries) != 1 {
		t.Errorf("outside there is %v, %v", entries, err)
	}
}

func TestARaceDoesNotLeadAWalkOutside(t *testing.T) {
	w := newTestTree(t)
	if err := exchange(w.in+"/file", w.in+"/quiet"); err != nil {
		t.Skip("the file system cannot exchange names, so the races were not run:", err)
	}
	link(t, w.out+"/folder", w.in+"/link")
	swapDuring(t, w.in+"/folder", w.in+"/link", func() {
		for range tries / 10 {
			for _, text := range readAll(t, w.Scope, w.in) {
				if text != "public" {
					t.Errorf("read %q", text)
				}
			}
		}
	})
}
