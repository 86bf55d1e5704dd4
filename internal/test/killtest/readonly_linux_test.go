package killtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// makeReadOnly mounts a folder read-only, for this process alone. Flags that the mount
// already has must stay: only its owner could remove them.
func makeReadOnly(dir string) error {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make the mounts private: %w", err)
	}
	if err := syscall.Mount(dir, dir, "", syscall.MS_BIND, ""); err != nil {
		return fmt.Errorf("bind %s: %w", dir, err)
	}
	var has syscall.Statfs_t
	if err := syscall.Statfs(dir, &has); err != nil {
		return err
	}
	const kept = syscall.MS_NOSUID | syscall.MS_NODEV | syscall.MS_NOEXEC | syscall.MS_NOATIME | syscall.MS_NODIRATIME
	flags := uintptr(has.Flags)&kept | syscall.MS_BIND | syscall.MS_REMOUNT | syscall.MS_RDONLY
	if err := syscall.Mount("", dir, "", flags, ""); err != nil {
		return fmt.Errorf("make %s read-only: %w", dir, err)
	}
	return nil
}

// inNamespaces starts a victim in namespaces of its own, so that its mounts affect no
// other process.
func inNamespaces(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
}

// canMount returns an error if this system has no unprivileged user namespaces.
func canMount() error {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{instructionsVariable + "={"} // it only has to start
	inNamespaces(cmd)
	err := cmd.Run()
	if ended := (*exec.ExitError)(nil); errors.As(err, &ended) && ended.ExitCode() == exitBadInstructions {
		return nil
	}
	return fmt.Errorf("a process with namespaces of its own: %w", err)
}

func TestAReadOnlyFolderIsToldAndLosesNothing(t *testing.T) {
	t.Parallel()
	if err := canMount(); err != nil {
		t.Skipf("skipped: a data folder on a read-only disk, because there are no user namespaces here: %v", err)
	}
	s := scenarios[0]
	w := scriptedSource(t, s)
	r := newRun(t, s.conversation(w))
	before := r.play()

	o := r.instructions
	o.ReadOnly = true
	p := start(t, o, ignoreReport, inNamespaces)
	<-p.dead
	want := "abide: data folder " + o.Dir + " is read-only: mount it writable or choose another folder with ABIDE_HOME"
	if code := p.cmd.ProcessState.ExitCode(); code != 3 || !strings.HasPrefix(p.stderrText(), want) || strings.Count(p.stderrText(), "\n") != 1 {
		t.Errorf("it ended with %d and said %q, want 3 and one line that begins with %q", code, p.stderrText(), want)
	}

	after := r.play()
	judgeRun(t, w, after, before.expected())
	for i, e := range before.log {
		if string(after.log[i].Bytes) != string(e.Bytes) {
			t.Errorf("event %d is not what it was", e.Seq)
		}
	}
}
