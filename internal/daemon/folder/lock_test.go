package folder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
)

func tryLock(t *testing.T, f *Folder) *Lock {
	t.Helper()
	lock, ok, err := f.TryLock()
	if err != nil || ok != (lock != nil) {
		t.Fatalf("TryLock returned %v, %v, %v", lock, ok, err)
	}
	return lock
}

// The lock is emptied and written to. If it were followed, a link would have another
// file overwritten.
func TestALockThatIsALinkIsNotFollowed(t *testing.T) {
	dir, victim := t.TempDir(), filepath.Join(t.TempDir(), "victim")
	if err := os.WriteFile(victim, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(victim, filepath.Join(dir, "lock")); err != nil {
		t.Fatal(err)
	}
	f, err := Open(dir)
	if err == nil {
		_, _, err = f.TryLock()
	}
	if err == nil || !strings.Contains(err.Error(), "its lock is not a file") {
		t.Errorf("the lock is a link: %v", err)
	}
	if text, err := os.ReadFile(victim); err != nil || string(text) != "precious" {
		t.Errorf("the file behind the link holds %q, %v", text, err)
	}
}

func TestOnlyOneHoldsTheLock(t *testing.T) {
	dir := t.TempDir()
	a, b := open(t, dir), open(t, dir)
	lock := tryLock(t, a)
	if lock == nil {
		t.Fatal("a free lock was not given")
	}
	for _, f := range []*Folder{a, b} {
		if tryLock(t, f) != nil {
			t.Error("the lock was given twice")
		}
	}
	if got := b.Holder(); got.PID != os.Getpid() || got.Stopped {
		t.Errorf("the holder is %+v", got)
	}
	for range 2 { // closing again does no harm
		if err := lock.Close(); err != nil {
			t.Error(err)
		}
	}
	again := tryLock(t, b)
	if again == nil {
		t.Fatal("the lock was not let go")
	}
	again.Close()
}

func TestEveryWaiterGetsTheLockInItsTurn(t *testing.T) {
	dir := t.TempDir()
	f, other := open(t, dir), open(t, dir)
	first := tryLock(t, f)
	var (
		waiting sync.WaitGroup
		holding sync.Mutex
		turns   int
	)
	for i := range 6 {
		waiting.Go(func() {
			lock, err := []*Folder{f, other}[i%2].WaitLock(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			if !holding.TryLock() {
				t.Error("two hold the lock")
				return
			}
			turns++
			holding.Unlock()
			lock.Close()
		})
	}
	first.Close()
	waiting.Wait()
	if turns != 6 {
		t.Errorf("%d of 6 got the lock", turns)
	}
}

func TestACancelledWaitLeavesNoLockBehind(t *testing.T) {
	f := open(t, t.TempDir())
	first := tryLock(t, f)
	enough := errors.New("enough")
	for range 3 {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(enough)
		if _, err := f.WaitLock(ctx); !errors.Is(err, enough) {
			t.Fatalf("a cancelled wait returned %v", err)
		}
	}
	first.Close()
	for range 3 { // the old wait may or may not serve it
		lock, err := f.WaitLock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		lock.Close()
	}
}

func TestALockThatNobodyWaitsForAnyMoreIsLetGo(t *testing.T) {
	f := open(t, t.TempDir())
	file, err := f.openLock()
	if err != nil {
		t.Fatal(err)
	}
	if err := flock(file, syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if next := f.serveQueue(file, nil); next != nil {
		t.Error("the wait goes on")
	}
	lock := tryLock(t, f)
	if lock == nil {
		t.Fatal("the lock was kept")
	}
	lock.Close()
	runtime.KeepAlive(file)
}

// waiters counts the goroutines that wait for a lock.
func waiters() int {
	buf := make([]byte, 1<<20)
	return strings.Count(string(buf[:runtime.Stack(buf, true)]), "folder.(*Folder).wait(")
}

func TestCancelledWaitsCostOneGoroutineAtMost(t *testing.T) {
	f := open(t, t.TempDir())
	first := tryLock(t, f)
	defer first.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	before := waiters()
	for range 50 {
		f.WaitLock(ctx)
	}
	if more := waiters() - before; more > 1 {
		t.Errorf("%d goroutines wait", more)
	}
}

// Someone tidies the folder while the engine runs: whoever waited on the old
// file must not believe that it holds the lock of the new one.
func TestALockOnAReplacedFileIsNoLock(t *testing.T) {
	f := open(t, t.TempDir())
	old, err := f.openLock()
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	if !f.isCurrent(old) {
		t.Error("the file at the path is not current")
	}
	if err := os.Remove(f.path("lock")); err != nil {
		t.Fatal(err)
	}
	if f.isCurrent(old) {
		t.Error("a removed file is current")
	}
	lock := tryLock(t, f)
	defer lock.Close()
	if f.isCurrent(old) || !f.isCurrent(lock.file) {
		t.Error("the replaced file is taken for the new one")
	}
}

// The same, seen by one who waits: it gets the lock of the new file or none.
func TestAWaiterNoticesAReplacedFile(t *testing.T) {
	f := open(t, t.TempDir())
	tidied := tryLock(t, f)
	got := make(chan lockResult, 1)
	if err := f.enqueue(got); err != nil { // it waits on the file that is about to go
		t.Fatal(err)
	}
	if err := os.Remove(f.path("lock")); err != nil {
		t.Fatal(err)
	}
	current := tryLock(t, f)
	tidied.Close()
	if tryLock(t, f) != nil {
		t.Error("the lock was given twice")
	}
	select {
	case <-got:
		t.Error("the waiter has a lock on the old file")
	default:
	}
	current.Close()
	w := <-got
	if w.err != nil || !f.isCurrent(w.lock.file) {
		t.Fatalf("the waiter got %v", w.err)
	}
	w.lock.Close()
}

func TestAWaiterIsToldWhenTheFolderIsGone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	f := open(t, dir)
	first := tryLock(t, f)
	got := []chan lockResult{make(chan lockResult, 1), make(chan lockResult, 1)}
	for _, ch := range got {
		if err := f.enqueue(ch); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	first.Close()
	for _, ch := range got {
		if w := <-ch; !errors.Is(w.err, fs.ErrNotExist) {
			t.Errorf("the waiter got %v", w.err)
		}
	}
	if _, err := f.WaitLock(t.Context()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("waiting returned %v", err)
	}
}

// hold is the body of another process: it takes the lock, says so, and waits.
func hold(dir string) {
	f, err := Open(dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	lock, ok, err := f.TryLock()
	if !ok {
		fmt.Println("no lock", err)
		return
	}
	if _, err := lock.Listen(); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print("held")
	io.Copy(io.Discard, os.Stdin)
}

// holder starts a process that holds the lock of dir.
func holder(t *testing.T, dir string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "FOLDER_TEST_HOLD="+dir)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close() })
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := make([]byte, 4)
	if _, err := io.ReadFull(out, said); err != nil || string(said) != "held" {
		rest, _ := io.ReadAll(out)
		t.Fatalf("the other process says %s%s (%v)", said, rest, err)
	}
	return cmd
}

func TestTheLockGoesWithTheProcess(t *testing.T) {
	dir := t.TempDir()
	other := holder(t, dir)
	f := open(t, dir)
	if tryLock(t, f) != nil {
		t.Fatal("two processes hold the lock")
	}
	conn, err := f.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	got := make(chan error, 1)
	var lock *Lock
	go func() {
		var err error
		lock, err = f.WaitLock(t.Context())
		got <- err
	}()
	other.Process.Kill()
	other.Wait()
	if err := <-got; err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("a dead engine speaks")
	}
	if _, err := f.Dial(t.Context()); !errors.Is(err, errNoEngine) {
		t.Errorf("dialling a dead engine's socket gives %v", err)
	}
	ln, err := lock.Listen() // over the stale socket
	if err != nil {
		t.Fatal(err)
	}
	ln.Close()
}
