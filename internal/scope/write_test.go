package scope_test

import (
	"bufio"
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/abide-run/abide/internal/scope"
)

func TestAWriteKeepsWhatTheFileIs(t *testing.T) {
	w := newWorld(t)
	path := w.in + "/file"
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	link(t, "file", w.in+"/link")
	if err := os.Link(path, w.out+"-hard"); err != nil {
		t.Fatal(err)
	}
	if err := w.Apply(scope.Change{Path: w.in + "/link", Old: []byte("public"), New: []byte("new")}); err != nil {
		t.Fatal(err)
	}
	if got := content(t, path); got != "new" {
		t.Errorf("the file holds %q", got)
	}
	if i, err := os.Stat(path); err != nil || i.Mode() != 0o640 {
		t.Errorf("mode %v, %v", i.Mode(), err)
	}
	if i, err := os.Lstat(w.in + "/link"); err != nil || i.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link is %v, %v", i, err)
	}
	if got := content(t, w.out+"-hard"); got != "public" {
		t.Errorf("the file was written through a hard link: %q", got)
	}
	alone(t, w.in)
}

// alone checks that no temporary file was left.
func alone(t *testing.T, dir string) {
	t.Helper()
	if left, _ := filepath.Glob(dir + "/.abide-*"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestANewFileIsLikeOtherNewFiles(t *testing.T) {
	w := newWorld(t)
	put(t, w.in+"/other", "")
	want, err := os.Stat(w.in + "/other")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"text", ""} {
		path := w.in + "/new" + text
		if err := w.Apply(scope.Change{Path: path, New: []byte(text)}); err != nil {
			t.Fatal(err)
		}
		if got, err := os.Stat(path); err != nil || got.Mode() != want.Mode() || content(t, path) != text {
			t.Errorf("%v, %v", got, err)
		}
		if err := w.Apply(scope.Change{Path: path, New: []byte("again")}); !errors.Is(err, fs.ErrExist) || content(t, path) != text {
			t.Errorf("made again: %v, %q", err, content(t, path))
		}
	}
	if err := w.Apply(scope.Change{Path: w.in + "/none/new", New: []byte("x")}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a folder: %v", err)
	}
	if err := w.Apply(scope.Change{Path: w.in + "/folder", New: []byte("x")}); !errors.Is(err, fs.ErrExist) {
		t.Errorf("on a folder: %v", err)
	}
	alone(t, w.in)
}

func TestAChangeRefusesWhatItDidNotExpect(t *testing.T) {
	w := newWorld(t)
	for _, old := range []string{"publi", "public ", "", "other", strings.Repeat("x", 1000)} {
		for _, next := range [][]byte{[]byte("new"), nil} {
			err := w.Apply(scope.Change{Path: w.in + "/file", Old: []byte(old), New: next})
			if !errors.Is(err, scope.ErrChanged) || content(t, w.in+"/file") != "public" {
				t.Errorf("expecting %q: %v", old, err)
			}
		}
	}
	if err := w.Apply(scope.Change{Path: w.in + "/none", Old: []byte("x"), New: []byte("y")}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	if err := w.Apply(scope.Change{Path: w.in + "/folder", Old: []byte("x"), New: []byte("y")}); !errors.Is(err, syscall.EISDIR) {
		t.Errorf("a folder: %v", err)
	}
	alone(t, w.in)
}

func TestAFileCanBeTakenAway(t *testing.T) {
	w := newWorld(t)
	if err := w.Apply(scope.Change{Path: w.in + "/file", Old: []byte("public")}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(w.in + "/file"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func TestAFolderThatCannotBeWrittenIsNamed(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root may write everywhere, so a folder and a file without permission were not tried")
	}
	w := newWorld(t)
	if err := errors.Join(os.Chmod(w.in+"/folder/file", 0o444), os.Chmod(w.in, 0o555)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(w.in, 0o755) })
	for _, path := range []string{w.in + "/folder/file", w.in + "/file"} {
		if err := w.Apply(scope.Change{Path: path, Old: []byte("public"), New: []byte("x")}); !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// writerFile is set in the process that is killed while it writes.
const writerFile = "ABIDE_TEST_WRITER"

var versions = [2][]byte{bytes.Repeat([]byte("a"), 1<<20), bytes.Repeat([]byte("b"), 1<<20)}

// TestWriter is that process: it says before each write that it begins.
func TestWriter(t *testing.T) {
	path := os.Getenv(writerFile)
	if path == "" {
		t.Skip("run by TestAKilledWriteLeavesTheOldFileOrTheNewOne")
	}
	s := newScope(t, []scope.Rule{{Target: filepath.Dir(path), Mode: scope.Write}}, nil)
	now := []byte(content(t, path))
	for {
		next := versions[0]
		if now[0] == 'a' {
			next = versions[1]
		}
		if _, err := os.Stdout.WriteString("writing\n"); err != nil {
			t.Fatal(err)
		}
		if err := s.Apply(scope.Change{Path: path, Old: now, New: next, Key: "k"}); err != nil {
			t.Fatal(err)
		}
		now = next
	}
}

func TestAKilledWriteLeavesTheOldFileOrTheNewOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	put(t, path, string(versions[0]))
	for round := range 30 {
		cmd := exec.Command(os.Args[0], "-test.run=^TestWriter$")
		cmd.Env = append(os.Environ(), writerFile+"="+path)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for range 1 + round%5 {
			lines.Scan()
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // it was killed
		got := []byte(content(t, path))
		if !bytes.Equal(got, versions[0]) && !bytes.Equal(got, versions[1]) {
			t.Fatalf("round %d: the file has %d bytes that are neither the old nor the new ones", round, len(got))
		}
	}
	s := newScope(t, []scope.Rule{{Target: filepath.Dir(path), Mode: scope.Write}}, nil)
	if err := s.Apply(scope.Change{Path: path, Old: []byte(content(t, path)), New: []byte("end"), Key: "k"}); err != nil {
		t.Fatal(err)
	}
	alone(t, filepath.Dir(path))
}
