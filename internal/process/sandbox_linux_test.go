package process

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/abide-run/abide/internal/process/sandbox"
)

// ordinaryUser is the user that escapes are tried as if root runs the tests.
const ordinaryUser = 54321

// A prison is where escapes are tried, with what is outside of it.
type prison struct {
	t    *testing.T
	m    *Manager
	base string
	world
	n int
}

func newPrison(t *testing.T) *prison {
	base, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	p := &prison{t: t, base: base, world: world{Work: base + "/work", Out: base + "/out", Data: base + "/data"}}
	must(t, os.Mkdir(p.Data, 0o755))
	must(t, os.Mkdir(base+"/tmp", 0o755))
	s := sandbox.Open(sandbox.Options{Hidden: []string{p.Data}, Temp: []string{base + "/tmp"}, Services: []string{base + "/services"}})
	t.Cleanup(s.Close)
	p.m = open(t, base+"/processes", Options{Sandbox: s})
	p.startOthers()
	return p
}

// startOthers starts what an escape finds outside: a process, sockets, a terminal and
// shared memory of the same user.
func (p *prison) startOthers() {
	sleeper := exec.Command("env", "--block-signal=USR2", "sleep", "1000")
	sleeper.Dir, sleeper.SysProcAttr = p.base, &syscall.SysProcAttr{Setpgid: true} // a group that no command is in
	must(p.t, sleeper.Start())
	p.t.Cleanup(func() { sleeper.Process.Kill(); sleeper.Wait() })
	p.PID = sleeper.Process.Pid
	p.Socket, p.Abstract = p.base+"/socket", "abide-test-"+strconv.Itoa(os.Getpid())
	for _, address := range []string{p.Socket, "@" + p.Abstract} {
		l, err := net.Listen("unix", address)
		must(p.t, err)
		p.t.Cleanup(func() { l.Close() })
		c, err := net.ListenPacket("unixgram", address+"-packets")
		must(p.t, err)
		p.t.Cleanup(func() { c.Close() })
	}
	must(p.t, os.Rename(p.Socket, p.Socket+"-renamed"))
	again, err := net.Listen("unix", p.Socket)
	must(p.t, err)
	p.t.Cleanup(func() { again.Close() })
	p.Service = p.base + "/services/socket"
	must(p.t, os.Mkdir(p.base+"/services", 0o755))
	for _, path := range []string{p.Service, p.Data + "/sock"} {
		l, err := net.Listen("unix", path)
		must(p.t, err)
		p.t.Cleanup(func() { l.Close() })
	}
	p.listen()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	must(p.t, err)
	p.t.Cleanup(func() { master.Close() })
	must(p.t, unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	must(p.t, err)
	p.Terminal = "/dev/pts/" + strconv.Itoa(n)
	p.Memory, err = unix.SysvShmGet(unix.IPC_PRIVATE, 4096, unix.IPC_CREAT|0o600)
	must(p.t, err)
	p.t.Cleanup(func() { unix.SysvShmCtl(p.Memory, unix.IPC_RMID, nil) })
	p.makeOthersIPC()
	p.makeGroup()
	if p.Helper = os.Getenv("ABIDE_TEST_HELPER"); p.Helper == "" {
		p.Helper = "/nonexistent"
	}
}

// makeOthersIPC makes semaphores and a message queue.
func (p *prison) makeOthersIPC() {
	id, _, errno := unix.Syscall(unix.SYS_SEMGET, unix.IPC_PRIVATE, 1, unix.IPC_CREAT|0o600)
	if errno == 0 { // a kernel may have neither
		p.Semaphore = int(id)
		p.t.Cleanup(func() { unix.Syscall(unix.SYS_SEMCTL, id, 0, unix.IPC_RMID) })
	}
	if id, _, errno := unix.Syscall(unix.SYS_MSGGET, unix.IPC_PRIVATE, unix.IPC_CREAT|0o600, 0); errno == 0 {
		p.Messages = int(id)
		p.t.Cleanup(func() { unix.Syscall(unix.SYS_MSGCTL, id, unix.IPC_RMID, 0) })
	}
	p.Queue = p.Abstract
	p.makeQueue(p.Queue)
}

// makeQueue makes a queue of messages, if there is none of that name.
func (p *prison) makeQueue(text string) {
	name, err := unix.BytePtrFromString(text)
	must(p.t, err)
	queue, _, errno := unix.Syscall6(unix.SYS_MQ_OPEN, uintptr(unsafe.Pointer(name)), unix.O_CREAT|unix.O_RDWR|unix.O_CLOEXEC, 0o600, 0, 0, 0)
	if errno == 0 {
		unix.Close(int(queue))
		p.t.Cleanup(func() { unix.Syscall(unix.SYS_MQ_UNLINK, uintptr(unsafe.Pointer(name)), 0, 0) })
	}
}

// listen listens on one port of the loopback addresses, and answers packets.
func (p *prison) listen() {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	must(p.t, err)
	p.t.Cleanup(func() { l.Close() })
	p.Port = l.Addr().(*net.TCPAddr).Port
	if six, err := net.Listen("tcp6", fmt.Sprintf("[::1]:%d", p.Port)); err == nil { // a machine may have no IPv6
		p.t.Cleanup(func() { six.Close() })
	}
	packets, err := net.ListenPacket("udp4", fmt.Sprintf("127.0.0.1:%d", p.Port))
	must(p.t, err)
	p.t.Cleanup(func() { packets.Close() })
	go func() { // ends when packets is closed
		for b := make([]byte, 1); ; {
			_, from, err := packets.ReadFrom(b)
			if err != nil {
				return
			}
			packets.WriteTo(b, from)
		}
	}()
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// reset makes the folders of the world anew.
func (p *prison) reset() {
	p.t.Helper()
	for _, dir := range []string{p.Work, p.Out, p.Out + ".moved", p.Work + ".moved"} {
		must(p.t, os.RemoveAll(dir))
	}
	if _, err := os.Stat(p.Data + ".moved"); err == nil {
		must(p.t, os.Rename(p.Data+".moved", p.Data))
	}
	for _, dir := range []string{p.Work, p.Out, p.Out + "/empty", p.Out + "/bin"} {
		must(p.t, os.Mkdir(dir, 0o755))
	}
	for name, text := range map[string]string{
		p.Out + "/file": "text\n", p.Out + "/.bashrc": "", p.Out + "/bin/tool": "", p.Data + "/secret": "secret\n", p.Data + "/tool": "#!/bin/sh\nexit 0\n",
	} {
		must(p.t, os.WriteFile(name, []byte(text), 0o755))
	}
	must(p.t, syscall.Mkfifo(p.Out+"/pipe", 0o666))
	must(p.t, os.Chmod(p.Data, 0o755))
	must(p.t, os.RemoveAll(p.Data+"/link"))
	must(p.t, os.Symlink("there", p.Data+"/link"))
	if err := os.Link(p.Data+"/secret", p.Out+"/shared"); !errors.Is(err, syscall.EXDEV) { // a test can have mounted something
		must(p.t, err)
	}
	must(p.t, os.WriteFile(p.Out+"/marked", nil, 0o644))
	_ = unix.Setxattr(p.Out+"/marked", "user.mark", []byte("x"), 0) // a file system may have no attributes
	p.makeQueue(removedQueue(p.world))
	if os.Getuid() == 0 {
		must(p.t, unix.Mknod(p.Work+"/device", unix.S_IFCHR|0o600, 1<<8|5)) // the device number of /dev/zero
	}
	p.listenInside()
	var err error
	p.Removed, err = unix.SysvShmGet(unix.IPC_PRIVATE, 4096, unix.IPC_CREAT|0o600)
	must(p.t, err)
	id := p.Removed
	p.t.Cleanup(func() { unix.SysvShmCtl(id, unix.IPC_RMID, nil) }) // it may be gone
}

// listenInside listens on a socket in the working directory.
func (p *prison) listenInside() {
	p.Inner = p.Work + "/socket"
	l, err := net.Listen("unix", p.Inner)
	must(p.t, err)
	p.t.Cleanup(func() { l.Close() })
}

// makeGroup makes a control group of version 2 beside that of this process, if that is possible.
func (p *prison) makeGroup() {
	for _, top := range []string{"/sys/fs/cgroup/unified", "/sys/fs/cgroup"} {
		dir := top + "/" + p.Abstract
		if opens(top+"/cgroup.procs") != nil || os.Mkdir(dir, 0o755) != nil {
			continue
		}
		p.t.Cleanup(func() { os.Remove(dir) })
		p.Group = dir
		return
	}
}

// prepare makes the world anew, and returns the environment of an escape, with its program if
// it is no script.
func (p *prison) prepare(t *testing.T, e escape) (env, program []string) {
	t.Helper()
	p.reset()
	env = []string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C", "WORK=" + p.Work, "OUT=" + p.Out, "DATA=" + p.Data,
		"PID=" + strconv.Itoa(p.PID), "TERMINAL=" + p.Terminal, "HELPER=" + p.Helper,
		"GORACE=atexit_sleep_ms=0", // the race detector would make each attempt take a second
	}
	if e.do == nil {
		return env, nil
	}
	exe, err := os.Executable()
	must(t, err)
	w := p.world
	w.Name = e.name
	text, err := json.Marshal(w)
	must(t, err)
	return append(env, escapeVariable+"="+string(text)), []string{exe}
}

// try tries to escape. It reports whether that worked, and what was printed.
func (p *prison) try(t *testing.T, e escape, how Spec) (bool, string) {
	t.Helper()
	p.n++
	how.Key, how.Owner, how.Dir, how.Command = strconv.Itoa(p.n), me, p.Work, e.script
	how.Env, how.Args = p.prepare(t, e)
	info := run(t, p.m, how)
	printed := all(t, p.m, info.ID, Both)
	if info.Exit == nil || e.do != nil && info.Exit.Code != 0 && info.Exit.Code != 7 {
		t.Fatalf("it ended with %+v, and printed %s", info, printed)
	}
	if want := how.Profile; !how.Free && want == sandbox.Sealed && info.Profile != want {
		t.Fatalf("its profile is %q", info.Profile)
	}
	return info.Exit.Code == 0, printed
}

// TestEscapes tries every escape: without a sandbox, where it has to work, so that the test
// is worth something, and with each profile.
func TestEscapes(t *testing.T) {
	abi := sandbox.Kernel()
	if abi == 0 {
		skipOrFail(t, "landlock", "this kernel has no Landlock")
	}
	p := newPrison(t)
	sealed := p.canSeal(t)
	tried := map[sandbox.Profile]int{}
	for _, e := range escapes {
		if e.root && os.Getuid() != 0 || e.user && os.Getuid() == 0 || strings.Contains(e.script, "$HELPER") && p.Helper == "/nonexistent" {
			continue
		}
		t.Run(e.name, func(t *testing.T) {
			if !e.barred {
				if worked, printed := p.try(t, e, Spec{Free: true}); !worked {
					t.Skipf("it does not work without a sandbox either: %s", printed)
				}
			}
			if worked, printed := p.try(t, e, Spec{}); !e.open && abi >= e.since && worked || e.open && !e.barred && !worked {
				t.Errorf("workspace: it worked: %v, and docs/SECURITY.md says otherwise; it printed %s", worked, printed)
			}
			tried[sandbox.Workspace]++
			if !sealed || e.inside {
				return
			}
			if worked, printed := p.try(t, e, Spec{Profile: sandbox.Sealed}); worked != (e.unsealed && (e.sealedBy == 0 || abi < e.sealedBy)) {
				t.Errorf("sealed: it worked: %v, and docs/SECURITY.md says otherwise; it printed %s", worked, printed)
			}
			tried[sandbox.Sealed]++
		})
	}
	t.Logf("as user %d, with Landlock %d: %v escapes were tried", os.Getuid(), abi, tried)
	if least := 60; tried[sandbox.Workspace] < least || sealed && tried[sandbox.Sealed] < least {
		t.Errorf("%v escapes were tried, and %d is the least", tried, least)
	}
}

// TestALinkInThePlaceOfASealedFolderGivesNoRights: the path of the folder is judged first, and
// opened later by the process that makes the namespaces.
func TestALinkInThePlaceOfASealedFolderGivesNoRights(t *testing.T) {
	p := newPrison(t)
	if !p.canSeal(t) {
		t.Skip("skipped: commands cannot be sealed here")
	}
	for _, place := range []string{p.Work, p.base + "/above/work"} {
		p.reset()
		must(t, os.RemoveAll(p.base+"/above"))
		must(t, os.MkdirAll(place, 0o755))
		must(t, os.MkdirAll(p.Out+"/work", 0o755))
		folder := place
		if place != p.Work { // a part of the path is the link, and not its end
			folder = p.base + "/above"
		}
		s := sandbox.Open(sandbox.Options{Hidden: []string{p.Data}, Temp: []string{p.base + "/tmp"}})
		m := open(t, t.TempDir(), Options{Sandbox: s, AtStep: func(step string) {
			if step == "synced" {
				must(t, os.Rename(folder, folder+".moved"))
				must(t, os.Symlink(p.Out, folder))
			}
		}})
		info, _, err := m.Start(t.Context(), Spec{Key: "k", Owner: me, Dir: place, Root: place, Profile: sandbox.Sealed, Command: "echo x > new; echo x > " + p.Out + "/new; echo x > " + p.Out + "/work/new"})
		if err == nil {
			_, err = m.WaitGone(t.Context(), me, info.ID)
			must(t, err)
		} else if !strings.Contains(err.Error(), "is a link now") {
			t.Errorf("%s: %v", place, err)
		}
		for _, name := range []string{"/new", "/work/new"} {
			if _, err := os.Lstat(p.Out + name); err == nil {
				t.Errorf("a sealed command in %s has written %s of a folder outside", place, name)
			}
		}
		must(t, os.Remove(folder))
		must(t, os.RemoveAll(folder+".moved"))
		s.Close()
	}
}

// canSeal reports whether commands can be sealed here.
func (p *prison) canSeal(t *testing.T) bool {
	t.Helper()
	p.reset()
	info, _, err := p.m.Start(t.Context(), Spec{Key: "seal", Owner: me, Command: "true", Dir: p.Work, Profile: sandbox.Sealed})
	if err == nil {
		_, err = p.m.WaitGone(t.Context(), me, info.ID)
		must(t, err)
		return true
	}
	if required("namespaces") {
		t.Fatalf("ABIDE_REQUIRE asks for namespaces, and %v", err)
	}
	t.Logf("sealed commands were not tried: %v", err)
	return false
}

func required(what string) bool {
	return slices.Contains(strings.Split(os.Getenv("ABIDE_REQUIRE"), ","), what)
}

// skipOrFail skips a test for a reason that lies in the machine, or fails it where
// ABIDE_REQUIRE names what is missing.
func skipOrFail(t *testing.T, what, reason string) {
	t.Helper()
	if required(what) {
		t.Fatalf("ABIDE_REQUIRE asks for %s, and %s", what, reason)
	}
	t.Skip("skipped: " + reason)
}

// TestEscapesOfAnOrdinaryUser runs TestEscapes as a user without rights.
func TestEscapesOfAnOrdinaryUser(t *testing.T) { runAsOrdinaryUser(t, "TestEscapes") }

// runAsOrdinaryUser runs a test as a user without rights.
func runAsOrdinaryUser(t *testing.T, name string) {
	if os.Getuid() != 0 {
		skipOrFail(t, "users", "only root can try escapes as another user; the other test has tried those of this one")
	}
	dir, err := os.MkdirTemp("", "abide-escapes")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	must(t, os.Chmod(dir, 0o755))
	exe, err := os.ReadFile("/proc/self/exe")
	must(t, err)
	must(t, os.WriteFile(dir+"/test", exe, 0o755))
	must(t, os.Mkdir(dir+"/home", 0o700))
	must(t, os.Chown(dir+"/home", ordinaryUser, ordinaryUser))
	cmd := exec.Command(dir+"/test", "-test.run=^"+name+"$", "-test.v")
	cmd.Dir = dir + "/home"
	cmd.Env = append(os.Environ(), "HOME="+dir+"/home", "TMPDIR="+dir+"/home", "ABIDE_TEST_HELPER="+installHelper(dir))
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: ordinaryUser, Gid: ordinaryUser}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "tried") || strings.Contains(line, "--- SKIP") || strings.Contains(line, "skipped: ") {
			t.Log(strings.TrimSpace(line))
		}
	}
}

// TestWhatIsNotHeldIsDocumented holds docs/SECURITY.md against the table of escapes.
func TestWhatIsNotHeldIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/SECURITY.md")
	must(t, err)
	seen := map[string]bool{}
	for _, e := range escapes {
		if seen[e.name] {
			t.Errorf("two escapes are called %s, and only the first is tried", e.name)
		}
		seen[e.name] = true
		if e.open && !strings.Contains(string(text), e.name) {
			t.Errorf("docs/SECURITY.md does not say that nothing holds this: %s", e.name)
		}
	}
}
