package scope_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/abide-run/abide/internal/approval/scope"
)

func TestAWriteKeepsOwnerAndMode(t *testing.T) {
	w := newTestTree(t)
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
	noTempFiles(t, w.in)
}

// noTempFiles checks that no temporary file was left.
func noTempFiles(t *testing.T, dir string) {
	t.Helper()
	if left := temporary(dir + "/file"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestANewFileHasTheDefaultPermissions(t *testing.T) {
	w := newTestTree(t)
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
	noTempFiles(t, w.in)
}

func TestAChangeRefusesUnexpectedContent(t *testing.T) {
	w := newTestTree(t)
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
	noTempFiles(t, w.in)
}

func TestAFileCanBeDeleted(t *testing.T) {
	w := newTestTree(t)
	if err := w.Apply(scope.Change{Path: w.in + "/file", Old: []byte("public")}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(w.in + "/file"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func TestAFolderThatCannotBeWrittenIsReported(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root may write everywhere, so a folder and a file without permission were not tried")
	}
	w := newTestTree(t)
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

func TestOneOfTwoConcurrentCreatesSucceeds(t *testing.T) {
	w := newTestTree(t)
	for round := range 100 {
		path := fmt.Sprintf("%s/new%d", w.in, round)
		var made [2]error
		var wg sync.WaitGroup
		for i := range made {
			wg.Go(func() {
				made[i] = w.Apply(scope.Change{Path: path, New: []byte{byte('0' + i)}, Key: fmt.Sprint(round, i)})
			})
		}
		wg.Wait()
		if (made[0] == nil) == (made[1] == nil) {
			t.Fatalf("round %d: %v, %v", round, made[0], made[1])
		}
		winner := "0"
		if made[1] == nil {
			winner = "1"
		}
		if got := content(t, path); got != winner {
			t.Fatalf("round %d: it holds %q, and %s has made it", round, got, winner)
		}
	}
}

// Environment variables of the process that is killed or limited while it writes.
const (
	writerFile  = "ABIDE_TEST_WRITER" // path of the file
	writerLimit = "ABIDE_TEST_LIMIT"  // maximum size of the file
)

var versions = [2][]byte{bytes.Repeat([]byte("a"), 1<<20), bytes.Repeat([]byte("b"), 1<<20)}

// TestWriter is that process. It writes one version after the other and prints a line
// before each write.
func TestWriter(t *testing.T) {
	path := os.Getenv(writerFile)
	if path == "" {
		t.Skip("run by the tests of what a crash leaves")
	}
	if limit, err := strconv.ParseUint(os.Getenv(writerLimit), 10, 64); err == nil {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: limit, Max: limit}); err != nil {
			t.Fatal(err)
		}
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

func writerOf(path string, env ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], "-test.run=^TestWriter$")
	cmd.Env = append(append(os.Environ(), writerFile+"="+path), env...)
	return cmd
}

func TestAReaderSeesTheOldFileOrTheNewOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	put(t, path, string(versions[0]))
	s := newScope(t, []scope.Rule{{Target: filepath.Dir(path), Mode: scope.Write}}, nil)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 30 {
			if err := s.Apply(scope.Change{Path: path, Old: versions[i%2], New: versions[(i+1)%2]}); err != nil {
				t.Error(err)
			}
		}
	}()
	for {
		got := []byte(content(t, path))
		if !bytes.Equal(got, versions[0]) && !bytes.Equal(got, versions[1]) {
			t.Errorf("the file has %d bytes that are neither the old nor the new ones", len(got))
		}
		select {
		case <-done:
			return
		default:
		}
	}
}

// TestAWriteThatFailsInTheMiddleLeavesTheOldFile makes the system refuse the second half
// of the content.
func TestAWriteThatFailsInTheMiddleLeavesTheOldFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	put(t, path, string(versions[0]))
	out, err := writerOf(path, writerLimit+"=524288").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "file too large") {
		t.Fatalf("the write was not refused: %v\n%s", err, out)
	}
	if got := []byte(content(t, path)); !bytes.Equal(got, versions[0]) {
		t.Errorf("the file has %d bytes that are not the old ones", len(got))
	}
	noTempFiles(t, filepath.Dir(path))
}

// TestAKilledWriteLeavesTheOldFileOrTheNewOne kills a process while its temporary file
// exists. The next attempt removes that file.
func TestAKilledWriteLeavesTheOldFileOrTheNewOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	put(t, path, string(versions[0]))
	left := 0
	for round := range 20 {
		cmd := writerOf(path)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for range 1 + round%3 {
			lines.Scan()
		}
		ended := make(chan struct{})
		go func() { // runs until the process is killed
			defer close(ended)
			for lines.Scan() {
			}
		}()
		for len(temporary(path)) == 0 { // the process writes again and again
			select {
			case <-ended:
				t.Fatalf("round %d: the process has ended, %v", round, cmd.Wait())
			default:
			}
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		<-ended
		_ = cmd.Wait() // the error is that it was killed
		got := []byte(content(t, path))
		if !bytes.Equal(got, versions[0]) && !bytes.Equal(got, versions[1]) {
			t.Fatalf("round %d: the file has %d bytes that are neither the old nor the new ones", round, len(got))
		}
		left += len(temporary(path))
	}
	if left == 0 {
		t.Error("no write was cut off")
	}
	s := newScope(t, []scope.Rule{{Target: filepath.Dir(path), Mode: scope.Write}}, nil)
	if err := s.Apply(scope.Change{Path: path, Old: []byte(content(t, path)), New: []byte("end"), Key: "k"}); err != nil {
		t.Fatal(err)
	}
	noTempFiles(t, filepath.Dir(path))
}

// temporary returns the temporary files in the folder of a file.
func temporary(path string) []string {
	names, _ := filepath.Glob(filepath.Dir(path) + "/.abide-*") // the pattern is well formed
	return names
}
