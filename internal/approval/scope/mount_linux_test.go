package scope_test

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/abide-run/abide/internal/approval/scope"
)

// inNamespace is a variable that is set in the process that may mount.
const inNamespace = "ABIDE_TEST_MOUNTS"

// TestMountsGiveNoAccess runs the tests below in a user and mount namespace of
// their own.
func TestMountsGiveNoAccess(t *testing.T) {
	cmd := exec.Command(os.Args[0], "-test.run=^TestInNamespace", "-test.v")
	cmd.Env = append(os.Environ(), inNamespace+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Skip("bind mounts of folders, of files and of what is denied were not tried, since there are no user namespaces here:", err)
	}
	if err != nil || !strings.Contains(string(out), "--- PASS: TestInNamespace") {
		t.Errorf("%v\n%s", err, out)
	}
}

func bind(t *testing.T, from, to string) {
	if err := syscall.Mount(from, to, "", syscall.MS_BIND|syscall.MS_REC, ""); err != nil {
		t.Fatalf("mount %s on %s: %v", from, to, err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(to, syscall.MNT_DETACH) })
}

func mkdir(t *testing.T, path string) {
	if err := os.Mkdir(path, 0o755); err != nil {
		t.Fatal(err)
	}
}

func TestInNamespace(t *testing.T) {
	if os.Getenv(inNamespace) == "" {
		t.Skip("run by TestMountsGiveNoAccess")
	}
	w := newTestTree(t)
	for _, name := range []string{"outside", "twin", "below", "tmp"} {
		mkdir(t, w.in+"/"+name)
	}
	put(t, w.in+"/one", "")
	put(t, w.in+"/denied/folder/file", secret)
	bind(t, w.out, w.in+"/outside")
	bind(t, w.out+"/file", w.in+"/one")
	bind(t, w.in+"/denied", w.in+"/twin")
	bind(t, w.in+"/denied/folder", w.in+"/below")
	if err := syscall.Mount("tmpfs", w.in+"/tmp", "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(w.in+"/tmp", syscall.MNT_DETACH) })
	put(t, w.in+"/tmp/file", secret)
	for _, path := range []string{"outside", "outside/file", "outside/folder/file", "one", "twin/file", "twin/folder/file", "below/file", "tmp/file", "tmp"} {
		w.mustRefuse(t, w.in+"/"+path)
	}
	if got := readAll(t, w.Scope, w.in); strings.Contains(strings.Join(got, ""), secret) {
		t.Errorf("a walk read %q", got)
	}
	own := newScope(t, []scope.Rule{{Target: w.in, Mode: scope.Read}, {Target: w.in + "/tmp", Mode: scope.Read}, {Target: w.in + "/twin", Mode: scope.Read}},
		[]scope.Rule{{Target: w.in + "/denied", Mode: scope.Read}})
	if text, err := read(own, w.in+"/tmp/file"); err != nil || text != secret {
		t.Errorf("a mount with a rule of its own: %q, %v", text, err)
	}
	if text, err := read(own, w.in+"/twin/file"); err == nil {
		t.Errorf("a rule for a mount of what is denied: %q", text)
	}
	if text, err := read(w.Scope, w.in+"/file"); err != nil || text != "public" {
		t.Errorf("%q, %v", text, err)
	}
}
