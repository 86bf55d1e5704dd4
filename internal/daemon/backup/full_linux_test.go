package backup

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// inNamespace runs the test again in a user namespace, where it may mount. It returns the
// folder to work in if it is the one inside.
func inNamespace(t *testing.T) (dir string, inside bool) {
	t.Helper()
	const variable = "BACKUP_TEST_INSIDE"
	if dir := os.Getenv(variable); dir != "" {
		return dir, true
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), variable+"="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	var failed *exec.ExitError
	switch {
	case err != nil && !errors.As(err, &failed):
		t.Skipf("skipped: %s needs a user namespace: %v", t.Name(), err)
	case err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()):
		t.Errorf("inside: %v\n%s", err, out)
	}
	return "", false
}

// The error names the file or folder that was asked for, and not a temporary one or the log
// that is read, which is on another disk.
func TestADiskThatIsFullOrReadOnlyIsNamed(t *testing.T) {
	dir, inside := inNamespace(t)
	if !inside {
		return
	}
	full, fixed := filepath.Join(dir, "full"), filepath.Join(dir, "fixed")
	for at, flags := range map[string]uintptr{full: 0, fixed: syscall.MS_RDONLY} {
		must(t, os.Mkdir(at, 0o700))
		must(t, syscall.Mount("tmpfs", at, "tmpfs", flags, "size=64k"))
	}
	s, good := newData(t, 20), filepath.Join(t.TempDir(), "good")
	_, err := s.WriteFile(t.Context(), good, false)
	must(t, err)
	for at, reason := range map[string]string{full: "the disk is full", fixed: "read-only file system"} {
		path := filepath.Join(at, "x")
		if _, err := s.WriteFile(t.Context(), path, false); !IsAboutPath(err) || !strings.HasPrefix(err.Error(), path+" cannot be written: "+reason) || strings.Contains(err.Error(), s.Dir) {
			t.Errorf("a backup: %v", err)
		}
		if _, err := (Target{Dir: path}).ReadFile(t.Context(), good); !IsAboutFolder(err) || !strings.Contains(err.Error(), "restore into "+path+": ") || !strings.Contains(err.Error(), reason) {
			t.Errorf("a restore: %v", err)
		}
		if left, err := os.ReadDir(at); err != nil || len(left) > 0 {
			t.Errorf("%v is left, %v", left, err)
		}
	}
}
