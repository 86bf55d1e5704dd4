package folder

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// replace puts a new folder where the old one was.
func replace(dir string) error {
	return errors.Join(os.Rename(dir, dir+".old"), os.Mkdir(dir, 0o700))
}

func TestAFolderThatIsNotTheOneThatWasOpenedIsNotUsed(t *testing.T) {
	for name, hurt := range map[string]func(dir string) error{
		"deleted":  os.RemoveAll,
		"moved":    func(dir string) error { return os.Rename(dir, dir+".old") },
		"replaced": replace,
		"a file":   func(dir string) error { return errors.Join(os.RemoveAll(dir), os.WriteFile(dir, nil, 0o600)) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "d")
			f, other := open(t, dir), open(t, dir)
			lock := tryLock(t, f)
			defer lock.Close()
			if err := lock.Check(); err != nil {
				t.Errorf("before anything happened: %v", err)
			}
			if err := hurt(dir); err != nil {
				t.Fatal(err)
			}
			_, _, tried := other.TryLock()
			_, waited := other.WaitLock(t.Context())
			for what, err := range map[string]error{"the holder": lock.Check(), "trying": tried, "waiting": waited} {
				if !errors.Is(err, ErrGone) || !strings.Contains(err.Error(), "data folder "+dir+" was deleted, moved, replaced or unmounted") {
					t.Errorf("%s: %v", what, err)
				}
			}
			if left, err := os.ReadDir(dir); err == nil && len(left) > 0 {
				t.Errorf("the new folder has %v", left)
			}
		})
	}
}

func TestALockWhoseFileWasRemovedIsTakenAnew(t *testing.T) {
	dir := t.TempDir()
	f, other := open(t, dir), open(t, dir)
	lock := tryLock(t, f)
	if err := os.Remove(f.path("lock")); err != nil {
		t.Fatal(err)
	}
	if err := lock.Check(); err != nil {
		t.Fatal(err)
	}
	if tryLock(t, other) != nil {
		t.Error("two hold the lock")
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	again := tryLock(t, other)
	if again == nil {
		t.Fatal("the new lock was not let go")
	}
	again.Close()
}

func TestALockThatSomebodyElseTookMeanwhileIsLost(t *testing.T) {
	dir := t.TempDir()
	f, other := open(t, dir), open(t, dir)
	lock := tryLock(t, f)
	defer lock.Close()
	if err := os.Remove(f.path("lock")); err != nil {
		t.Fatal(err)
	}
	taken := tryLock(t, other)
	defer taken.Close()
	for range 2 {
		if err := lock.Check(); !errors.Is(err, ErrTaken) {
			t.Errorf("the lock is somebody else's, and checking it says %v", err)
		}
	}
	if err := taken.Check(); err != nil {
		t.Error(err)
	}
}

func TestASocketThatIsNotOursIsLeftAlone(t *testing.T) {
	for name, dir := range map[string]string{
		"in the folder": filepath.Join(t.TempDir(), "d"),
		"elsewhere":     filepath.Join(t.TempDir(), strings.Repeat("long", 30)),
	} {
		t.Run(name, func(t *testing.T) {
			f := open(t, dir)
			lock := listening(t, f)
			if !lock.IsListening() {
				t.Error("nobody hears the engine")
			}
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
			if lock.IsListening() {
				t.Error("the engine believes that it is heard")
			}
			successor := open(t, dir)
			listening(t, successor)
			if err := lock.Close(); err != nil {
				t.Fatal(err)
			}
			wantHello(t, successor)
		})
	}
}

func TestAHolderThatIsStoppedIsKnown(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("skipped: whether a process is stopped, because there is no /proc here")
	}
	dir := t.TempDir()
	other := holder(t, dir)
	f := open(t, dir)
	stop := func(s syscall.Signal, options int) {
		t.Helper()
		var status syscall.WaitStatus
		if err := other.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
		if _, err := syscall.Wait4(other.Process.Pid, &status, options, nil); err != nil {
			t.Fatal(err)
		}
	}
	began := f.Holder().Since
	if age := time.Since(began); age < 0 || age > time.Hour {
		t.Errorf("it has the lock since %v", began)
	}
	if got := f.Holder(); got != (Holder{PID: other.Process.Pid, Since: began}) {
		t.Errorf("a running holder is %+v", got)
	}
	stop(syscall.SIGSTOP, syscall.WUNTRACED)
	if got := f.Holder(); got != (Holder{PID: other.Process.Pid, Stopped: true, Since: began}) {
		t.Errorf("a stopped holder is %+v", got)
	}
	stop(syscall.SIGKILL, 0)
}
