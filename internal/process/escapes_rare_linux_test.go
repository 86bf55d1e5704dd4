package process

import (
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/abide-run/abide/internal/process/sandbox"
)

// rareEscapes are attempts by requests that only some file systems and kernels know.
var rareEscapes = []escape{
	// Files outside.
	{name: "let others read a file outside by an access list", do: setAccessList, open: true},
	{name: "take an attribute from a file outside", do: removeAttribute, open: true},
	{name: "change the version of a file outside", do: setVersion, open: true},
	{name: "set a flag of a file outside by its path", do: setFlagByPath, open: true},
	{name: "set an attribute of a file outside by a newer call", do: setAttributeAt, open: true},
	{name: "say how long a file outside will be kept", do: hintLifetime, open: true, unsealed: true},
	{name: "see where a link in the data folder leads", script: `[ "$(readlink "$DATA/link")" = there ]`, open: true},
	{name: "read a file of the data folder that has a hard link elsewhere", script: `cat "$OUT/shared"`, open: true, unsealed: true},
	{name: "make a file outside read-only for good", do: orderFile(unix.FS_IOC_ENABLE_VERITY), barred: true},
	{name: "encrypt a folder outside", do: orderFolder(0x800c6613), barred: true},
	{name: "make a subvolume of Btrfs outside", do: orderFolder(0x5000940e), barred: true},
	{name: "make a snapshot of Btrfs outside", do: orderFolder(0x50009401), barred: true},
	{name: "remove a subvolume of Btrfs outside", do: orderFolder(0x5000940f), barred: true},
	{name: "remove a subvolume of Btrfs by its number", do: orderFolder(0x5000943f), barred: true},

	// Other processes.
	{name: "remove a message queue of another process", do: removeQueue},
	{name: "ask for the namespace of another process by its descriptor", do: namespaceByDescriptor},
	{name: "have a socket signal another process", do: signalBySocket, since: 6},
	{name: "list the mapped files of another process", script: `ls "/proc/$PID/map_files" | grep .`},
	{name: "see what another process waits for", script: `cat "/proc/$PID/timers"`, open: true, barred: true}, // some kernels refuse it
	{name: "see the personality of another process", script: `cat "/proc/$PID/personality"`},
	{name: "enter the folder of another process", script: `cd "/proc/$PID/cwd"`},

	// The kernel.
	{name: "use io_uring as a program for 32 bits", do: useUringWith32},
}

// orderFile returns a function that gives an order about a file outside, which it opens for
// reading. The order has no arguments, so it is only seen how far it gets.
func orderFile(request uint) func(world) error { return order(request, "/file") }

// orderFolder does the same for a folder.
func orderFolder(request uint) func(world) error { return order(request, "/empty") }

func order(request uint, name string) func(world) error {
	return func(w world) error {
		f, err := os.Open(w.Out + name)
		if err != nil {
			return err
		}
		defer f.Close()
		return refusedWith(call(unix.SYS_IOCTL, f.Fd(), uintptr(request), 0), unix.EPERM)
	}
}

// setAccessList lets everybody read a file, and one user write it.
func setAccessList(w world) error {
	list := binary.LittleEndian.AppendUint32(nil, 2) // the version
	for _, e := range []struct {
		kind, rights uint16
		id           uint32
	}{{1, 6, ^uint32(0)}, {2, 6, 12345}, {4, 4, ^uint32(0)}, {0x10, 6, ^uint32(0)}, {0x20, 4, ^uint32(0)}} {
		list = binary.LittleEndian.AppendUint16(list, e.kind)
		list = binary.LittleEndian.AppendUint16(list, e.rights)
		list = binary.LittleEndian.AppendUint32(list, e.id)
	}
	return unix.Setxattr(w.Out+"/file", "system.posix_acl_access", list, 0)
}

func removeAttribute(w world) error { return unix.Removexattr(w.Out+"/marked", "user.mark") }

// setFlagByPath keeps a file out of backups. The call came with Linux 6.17.
func setFlagByPath(w world) error {
	const fileSetattr, noDump = 469, 0x80
	attributes := [3]uint64{noDump}
	return atPath(fileSetattr, w.Out+"/file", unsafe.Pointer(&attributes), unsafe.Sizeof(attributes), 0)
}

// setAttributeAt sets an attribute. The call came with Linux 6.13.
func setAttributeAt(w world) error {
	const setxattrat = 463
	name, value := []byte("user.x\x00"), []byte("x")
	arguments := struct {
		value       uintptr
		size, flags uint32
	}{uintptr(unsafe.Pointer(&value[0])), 1, 0}
	path, err := unix.BytePtrFromString(w.Out + "/file")
	if err != nil {
		return err
	}
	err = call(setxattrat, uintptr(here), uintptr(unsafe.Pointer(path)), 0, uintptr(unsafe.Pointer(&name[0])), uintptr(unsafe.Pointer(&arguments)), unsafe.Sizeof(arguments))
	runtime.KeepAlive(value)
	return err
}

// here stands for the working directory; a constant below zero does not fit.
var here = unix.AT_FDCWD

func atPath(number uintptr, name string, argument unsafe.Pointer, size, flags uintptr) error {
	path, err := unix.BytePtrFromString(name)
	if err != nil {
		return err
	}
	return call(number, uintptr(here), uintptr(unsafe.Pointer(path)), uintptr(argument), size, flags)
}

// setVersion gives a file the version that it has.
func setVersion(w world) error {
	f, err := os.Open(w.Out + "/file")
	if err != nil {
		return err
	}
	defer f.Close()
	const getVersion, setVersion = 0x80087601, 0x40087602
	version, err := unix.IoctlGetInt(int(f.Fd()), getVersion)
	if err != nil {
		return err
	}
	return unix.IoctlSetPointerInt(int(f.Fd()), setVersion, version)
}

func hintLifetime(w world) error {
	f, err := os.Open(w.Out + "/file")
	if err != nil {
		return err
	}
	defer f.Close()
	hint := uint64(2) // a short one
	return call(unix.SYS_FCNTL, f.Fd(), unix.F_SET_RW_HINT, uintptr(unsafe.Pointer(&hint)))
}

func removeQueue(w world) error {
	name, err := unix.BytePtrFromString(removedQueue(w))
	if err != nil {
		return err
	}
	return call(unix.SYS_MQ_UNLINK, uintptr(unsafe.Pointer(name)))
}

// removedQueue returns the name of a queue of somebody else that may be removed.
func removedQueue(w world) string { return w.Queue + "-removed" }

func namespaceByDescriptor(w world) error {
	fd, err := unix.PidfdOpen(w.PID, 0)
	if err != nil {
		return err
	}
	const getNetworkNamespace = 0xff04
	return call(unix.SYS_IOCTL, uintptr(fd), getNetworkNamespace, 0)
}

// signalBySocket names another process the owner of a socket in the way of sockets.
func signalBySocket(w world) error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	if _, err := unix.FcntlInt(uintptr(pair[0]), unix.F_SETSIG, int(unix.SIGUSR2)); err != nil {
		return err
	}
	if err := unix.IoctlSetPointerInt(pair[0], unix.SIOCSPGRP, w.PID); err != nil {
		return err
	}
	if err := unix.IoctlSetPointerInt(pair[0], 0x5452, 1); err != nil { // FIOASYNC
		return err
	}
	return seesSignal(w.PID, func() error { _, err := unix.Write(pair[1], []byte("x")); return err })
}

// seesSignal reports whether one more signal waits for a process after something was done.
func seesSignal(pid int, do func() error) error {
	before, err := pending(pid)
	if err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	after, err := pending(pid)
	if err != nil || after != before {
		return err
	}
	return errors.New("no signal waits")
}

// useUringWith32 writes a program for 32 bits that makes a ring, and runs it.
func useUringWith32(w world) error {
	if runtime.GOARCH != "amd64" {
		return errors.New("this processor has no such programs")
	}
	code := []byte{
		0x81, 0xec, 0x80, 0, 0, 0, // room for the parameters
		0x89, 0xe7, 0xb9, 0x20, 0, 0, 0, 0x31, 0xc0, 0xf3, 0xab, // clears the parameters
		0x89, 0xe1, 0xbb, 1, 0, 0, 0, 0xb8, 0xa9, 1, 0, 0, 0xcd, 0x80, // io_uring_setup(1, parameters)
		0x31, 0xdb, 0x85, 0xc0, 0x79, 0x01, 0x43, 0xb8, 1, 0, 0, 0, 0xcd, 0x80, // exit(1 if it failed)
	}
	const at, head = 0x08048000, 52 + 32
	program := make([]byte, head, head+len(code))
	copy(program, "\x7fELF\x01\x01\x01")
	put := func(offset int, values ...uint32) {
		for i, v := range values {
			binary.LittleEndian.PutUint32(program[offset+4*i:], v)
		}
	}
	put(16, 2|3<<16, 1, at+head, 52, 0, 0, 52|32<<16, 1)
	size := uint32(head + len(code))
	put(52, 1, 0, at, at, size, size, 5, 0x1000)
	path := w.Work + "/program"
	if err := os.WriteFile(path, append(program, code...), 0o755); err != nil {
		return err
	}
	return exec.Command(path).Run()
}

// The data folder cannot be read at another path either, where it is mounted too.
func TestOtherMountsOfHiddenFolders(t *testing.T) {
	const inside = "ABIDE_TEST_MOUNTS"
	if os.Getenv(inside) == "" {
		runWithMounts(t, inside+"=1")
		return
	}
	if sandbox.Kernel() == 0 {
		skipOrFail(t, "landlock", "this kernel has no Landlock")
	}
	must(t, unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
	p := newPrison(t)
	p.reset()
	mounted := []string{p.base + "/all of it", p.base + "/part", p.base + "/deep/later"}
	for _, dir := range mounted {
		must(t, os.MkdirAll(dir, 0o755))
	}
	must(t, os.Mkdir(p.Data+"/sub", 0o755))
	must(t, os.WriteFile(p.Data+"/sub/secret", []byte("secret\n"), 0o644))
	bind := func(from, to string) {
		must(t, unix.Mount(from, to, "", unix.MS_BIND, ""))
		t.Cleanup(func() { must(t, unix.Unmount(to, unix.MNT_DETACH)) })
	}
	bind(p.base, mounted[0])
	bind(p.Data+"/sub", mounted[1])
	read := func(path string) escape { return escape{name: path, script: "cat '" + path + "'"} }
	hidden := []escape{read(mounted[0] + "/data/secret"), read(mounted[0] + "/data/sub/secret"), read(mounted[1] + "/secret")}
	sealed := p.canSeal(t)
	try := func(e escape) {
		t.Helper()
		p.reset()
		must(t, os.MkdirAll(p.Data+"/sub", 0o755))
		if worked, printed := p.try(t, e, Spec{Free: true}); !worked {
			t.Errorf("%s: without a sandbox: %s", e.name, printed)
		}
		if worked, printed := p.try(t, e, Spec{}); worked {
			t.Errorf("%s: workspace: it printed %s", e.name, printed)
		}
		if !sealed {
			return
		}
		if _, printed := p.try(t, e, Spec{Profile: sandbox.Sealed}); strings.Contains(printed, "secret\n") {
			t.Errorf("%s: sealed: it printed %s", e.name, printed)
		}
	}
	for _, e := range hidden {
		try(e)
	}
	bind(p.Data, mounted[2]) // the rules that were made before do not count any more
	try(read(mounted[2] + "/secret"))
	// A rule about a folder above it counts at all of its paths, also for what is mounted in it.
	must(t, unix.Mount("tmpfs", p.Data, "tmpfs", 0, "mode=755"))
	t.Cleanup(func() { must(t, unix.Unmount(p.Data, unix.MNT_DETACH)) })
	try(read(p.Data + "/secret"))
	if worked, printed := p.try(t, escape{name: "read a file beside it", script: "cat '" + mounted[0] + "/out/file'"}, Spec{}); !worked {
		t.Errorf("what is beside the data folder cannot be read: %s", printed)
	}
}

// runWithMounts runs the test again where it can mount.
func runWithMounts(t *testing.T, env string) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), env)
	cmd.SysProcAttr = &unix.SysProcAttr{Cloneflags: unix.CLONE_NEWNS}
	if os.Getuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
		cmd.SysProcAttr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN}
	}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, unix.EPERM) {
		skipOrFail(t, "namespaces", "namespaces for mounts cannot be made")
	}
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if strings.Contains(string(out), "--- SKIP") {
		t.Skip(string(out))
	}
}
