package process

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// escapeVariable is an environment variable that makes the test program one that tries to
// escape: its value is the world that it is in.
const escapeVariable = "ABIDE_TEST_ESCAPE"

// A world is what an escape finds.
type world struct {
	Name      string // name of the escape
	Work      string // working directory
	Out       string // folder outside, which it may read
	Data      string // folder that it may not read
	PID       int    // process outside, of the same user
	Port      int    // port on which somebody listens on the loopback address, with TCP and UDP
	Connected int    // process outside, of the same user, whose standard input is a connection
	Outer     string // address of this machine that others can reach
	Service   string // path of a socket that is called one of a service
	Socket    string // path of a socket on which somebody listens
	Abstract  string // name of an abstract socket on which somebody listens
	Terminal  string // path of a terminal of somebody else
	Memory    int    // ID of shared memory of somebody else
	Semaphore int    // ID of semaphores of somebody else
	Queue     string // name of a message queue of somebody else
	Helper    string // program that belongs to root and is setuid; empty if there is none
	Inner     string // path of a socket in the working directory on which somebody listens
	Group     string // folder of another control group; empty if there is none
	Messages  int    // ID of a queue of messages of somebody else
	Removed   int    // ID of shared memory of somebody else that may be removed
}

// An escape is an attempt to do something that a confined command may not do. Its script
// or its function succeeds if it was done.
type escape struct {
	name   string
	script string // for sh; WORK, OUT, DATA and so on are variables
	do     func(world) error

	open     bool // true if the profile workspace does not hold it: docs/SECURITY.md has the name
	unsealed bool // true if the profile sealed does not hold it either: docs/SECURITY.md says so
	since    int  // version of Landlock that holds it in the profile workspace; any if zero
	root     bool // true if only root can do it without a sandbox
	user     bool // true if only an ordinary user tries it: root has rights that the sandbox takes
	inside   bool // true if a sealed command reaches only what belongs to it
	sealedBy int  // version of Landlock that holds it in the profile sealed, if that is not held without; zero for none
	barred   bool // true if it fails or must not be done without a sandbox, too
}

// escapes are all attempts.
var escapes = slices.Concat(usualEscapes, furtherEscapes, rareEscapes)

var usualEscapes = []escape{
	// Writing outside.
	{name: "create a file outside", script: `echo x > "$OUT/new"`},
	{name: "append to a file outside", script: `echo x >> "$OUT/file"`},
	{name: "empty a file outside by opening it", script: `: > "$OUT/file"`},
	{name: "empty a file outside by its path", do: func(w world) error { return os.Truncate(w.Out+"/file", 0) }, since: 3},
	{name: "empty a file outside by opening it for reading", do: func(w world) error { return openWith(w.Out+"/file", unix.O_RDONLY|unix.O_TRUNC) }, since: 3},
	{name: "open a file outside again that is open for its path alone", do: openAgain},
	{name: "leave a core dump outside", script: `ulimit -c unlimited && cd "$OUT" && { sh -c 'kill -SEGV $$'; [ -n "$(ls | grep core)" ]; }`, barred: true},
	{name: "remove a file outside", script: `rm "$OUT/file"`},
	{name: "rename a file outside", script: `mv "$OUT/file" "$OUT/other"`},
	{name: "move a file from outside to the working directory", script: `mv "$OUT/file" "$WORK/taken" && [ ! -e "$OUT/file" ]`},
	{name: "move a file to the outside", script: `echo x > mine && mv mine "$OUT/mine"`},
	{name: "copy a file to the outside", script: `cp /etc/passwd "$OUT/copy"`},
	{name: "make a folder outside", script: `mkdir "$OUT/dir"`},
	{name: "remove a folder outside", script: `rmdir "$OUT/empty"`},
	{name: "make a link outside", script: `ln -s x "$OUT/link"`},
	{name: "make a named pipe outside", script: `mkfifo "$OUT/fifo"`},
	{name: "write to a named pipe outside", script: `echo x 1<> "$OUT/pipe"`},
	{name: "make a hard link to a file outside", script: `ln "$OUT/file" hard && echo x >> hard`},
	{name: "make a hard link outside", script: `echo x > mine && ln mine "$OUT/hard"`},
	{name: "write through a link to a file", script: `ln -s "$OUT/file" link && echo x >> link`},
	{name: "write through a link to a folder", script: `ln -s "$OUT" link && echo x > link/new`},
	{name: "write through .. of the working directory", script: `echo x > ../out/new`},
	{name: "write through /proc/self/cwd", script: `echo x > /proc/self/cwd/../out/new`},
	{name: "write through /proc/self/root", script: `echo x > "/proc/self/root$OUT/new"`},
	{name: "write through /proc/PID/root of another process", script: `echo x > "/proc/$PID/root$OUT/new"`},
	{name: "write through /proc/PID/cwd of another process", script: `echo x > "/proc/$PID/cwd/new"`},
	{name: "write in the middle of a file outside", script: `echo x | dd of="$OUT/file" conv=notrunc status=none`},
	{name: "write through a shared mapping", do: mapFile},
	{name: "create below an open folder", do: createBelow},
	{name: "link a file without a name to the outside", do: linkUnnamed},
	{name: "exchange a file with one outside", do: exchange},
	{name: "make a socket outside", do: func(w world) error { return listenAt(w.Out + "/s") }},
	{name: "rename the folder above", script: `mv "$OUT" "$OUT.moved"`},
	{name: "rename the working directory", script: `mv "$WORK" "$WORK.moved"`},
	{name: "rename the folder with the data folder", script: `mv "$DATA" "$DATA.moved"`},
	{name: "write a start-up file", script: `echo x >> "$OUT/.bashrc"`},
	{name: "write a program", script: `echo x >> "$OUT/bin/tool"`},
	{name: "write to /etc", script: `echo x > /etc/abide-escape`, barred: true},
	{name: "write to /usr/local/bin", script: `echo x > /usr/local/bin/abide-escape`, barred: true},
	{name: "make a device for characters", do: func(w world) error { return unix.Mknod(w.Work+"/c", unix.S_IFCHR|0o600, 1<<8|3) }, root: true},
	{name: "make a block device", do: func(w world) error { return unix.Mknod(w.Work+"/b", unix.S_IFBLK|0o600, 7<<8) }, root: true},
	{name: "change a setting of the kernel", do: rewrite("/proc/sys/kernel/hostname"), root: true},
	{name: "change a setting in /sys", do: rewrite("/sys/kernel/mm/transparent_hugepage/defrag"), root: true},
	{name: "give orders to the kernel by sysrq", script: `echo h > /proc/sysrq-trigger`, root: true},
	{name: "change the mode of a file outside", script: `chmod 700 "$OUT/file"`, open: true},
	{name: "change the times of a file outside", script: `touch -d 2001-01-01 "$OUT/file"`, open: true},
	{name: "set an attribute of a file outside", do: func(w world) error { return unix.Setxattr(w.Out+"/file", "user.x", []byte("x"), 0) }, open: true},
	{name: "set a flag of a file outside", do: setFlag, open: true},
	{name: "lock a file outside", script: `flock -n "$OUT/file" true`, open: true, unsealed: true},
	{name: "make a file without a name outside", do: makeUnnamed},
	{name: "change the owner of a file outside", do: func(w world) error { return os.Chown(w.Out+"/file", 12345, 12345) }, open: true, root: true},

	{name: "dig a hole into a file outside", script: `fallocate --punch-hole --offset 0 --length 1 "$OUT/file"`},
	{name: "take a lease on a file outside", do: takeLease, open: true, unsealed: true},
	{name: "leave a setuid program in the working directory", script: `cp /bin/true helper && chmod u+s helper && [ -u helper ]`, open: true, unsealed: true},

	// Reading what is hidden.
	{name: "read the data folder", script: `cat "$DATA/secret"`},
	{name: "read the data folder through a link", script: `ln -s "$DATA/secret" link && cat link`},
	{name: "read the data folder through a hard link", script: `ln "$DATA/secret" hard && cat hard`},
	{name: "read the data folder through /proc/self/root", script: `cat "/proc/self/root$DATA/secret"`},
	{name: "move a file out of the data folder", script: `mv "$DATA/secret" . && cat secret`},
	{name: "write to the data folder", script: `echo x > "$DATA/new"`},
	{name: "run a program of the data folder", script: `"$DATA/tool"`},
	{name: "have the loader run a program of the data folder", script: `sh "$DATA/tool"`},
	{name: "list the names in the data folder", script: `ls "$DATA"/* | grep secret`, open: true},
	{name: "watch a file of the data folder", do: func(w world) error { return watch(w.Data + "/secret") }, open: true},
	{name: "read a block device", do: readBlockDevice, root: true},
	{name: "read the memory of the machine", do: func(world) error { return opens("/dev/mem") }, root: true},
	{name: "open a device that is not needed", do: func(world) error { return opens("/dev/kmsg") }, root: true},

	// Other processes.
	{name: "signal another process", script: `kill -CONT "$PID"`, since: 6},
	{name: "signal another process by a descriptor", do: signalByDescriptor, since: 6},
	{name: "signal the keeper", script: `kill -CONT "$PPID"`, since: 6, inside: true},
	{name: "trace another process", do: trace},
	{name: "read the memory of another process", do: func(w world) error { return opens(fmt.Sprintf("/proc/%d/mem", w.PID)) }},
	{name: "copy from the memory of another process", do: vmRead},
	{name: "read the environment of another process", script: `cat "/proc/$PID/environ"`},
	{name: "read the memory map of another process", script: `cat "/proc/$PID/maps"`},
	{name: "see the files of another process", script: `readlink "/proc/$PID/fd/0"`},
	{name: "open a file of another process", script: `cat "/proc/$PID/fd/0"`},
	{name: "take a descriptor of another process", do: takeDescriptor},
	{name: "limit another process", do: limitOther},
	{name: "count what another process does", do: countEvents, barred: true},
	{name: "attach to another process without stopping it", do: func(w world) error { return call(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(w.PID)) }},
	{name: "move the memory of another process", do: func(w world) error { return call(unix.SYS_MOVE_PAGES, uintptr(w.PID), 0, 0, 0, 0, 0) }},
	{name: "see that another process is there", script: `cat "/proc/$PID/cmdline"`, open: true},
	{name: "lower the priority of another process", do: func(w world) error { return syscall.Setpriority(syscall.PRIO_PROCESS, w.PID, 19) }, open: true, user: true},
	{name: "bind another process to a processor", do: bindToProcessor, open: true, user: true},
	{name: "use shared memory of another process", do: attachMemory, open: true},
	{name: "use a semaphore of another process", do: func(w world) error { return call(unix.SYS_SEMCTL, uintptr(w.Semaphore), 0, 16, 1) }, open: true},
	{name: "use a message queue of another process", do: openQueue},
	{name: "save another process when memory runs out", script: `echo 500 > "/proc/$PID/oom_score_adj"`},
	{name: "forget what another process has used", script: `echo 1 > "/proc/$PID/clear_refs"`},
	{name: "read what is typed at another terminal", script: `: < "$TERMINAL"`, open: true},
	{name: "write to another terminal", script: `echo x > "$TERMINAL"`, open: true},

	{name: "compare itself with another process", do: func(w world) error { return call(unix.SYS_KCMP, uintptr(os.Getpid()), uintptr(w.PID), 1, 0, 0) }},
	{name: "see the system call of another process", script: `cat "/proc/$PID/syscall"`},
	{name: "see what another process reads and writes", script: `cat "/proc/$PID/io"`},
	{name: "see the stack of another process", script: `cat "/proc/$PID/stack"`, root: true},
	{name: "find the locks of another process", do: findLocks},
	{name: "move the memory of another process between nodes", do: moveMemory},
	{name: "count the instructions of another process", do: countInstructions},
	{name: "choose what another process leaves when it crashes", script: `echo 0x33 > "/proc/$PID/coredump_filter"`},
	{name: "lower the disk priority of another process", do: func(w world) error { return call(unix.SYS_IOPRIO_SET, 1, uintptr(w.PID), 2<<13|7) }, open: true, user: true},
	{name: "change how another process is scheduled", do: func(w world) error { return schedule(w.PID, unix.SCHED_BATCH, 0) }, open: true, user: true},

	// Sockets and networks.
	{name: "connect to an abstract socket", do: func(w world) error { return dial("unix", "@"+w.Abstract) }, since: 6},
	{name: "send to an abstract socket", do: func(w world) error { return sendTo("@" + w.Abstract + "-packets") }, since: 6},
	{name: "connect to a socket by its path", do: func(w world) error { return dial("unix", w.Socket) }, open: true},
	{name: "connect to a socket that was renamed", do: func(w world) error { return dial("unix", w.Socket+"-renamed") }, open: true, unsealed: true, sealedBy: 9},
	{name: "connect to a socket of a program that runs commands", do: func(w world) error { return dial("unix", w.Service) }, since: 9},
	{name: "connect to a socket in the data folder", do: func(w world) error { return dial("unix", w.Data+"/sock") }, since: 9},
	{name: "send to a socket by its path", do: func(w world) error { return sendTo(w.Socket + "-packets") }, open: true},
	{name: "connect with TCP", do: func(w world) error { return dial("tcp4", fmt.Sprint("127.0.0.1:", w.Port)) }, open: true},
	{name: "connect with multipath TCP", do: func(w world) error { return connectMultipath(w.Port) }, open: true},
	{name: "connect with TCP over IPv6", do: func(w world) error { return dial("tcp6", fmt.Sprint("[::1]:", w.Port)) }, open: true},
	{name: "connect with fast open", do: func(w world) error { return fastOpen(w.Port) }, open: true},
	{name: "exchange packets with UDP", do: func(w world) error { return exchangePackets(w.Port) }, open: true},
	{name: "make a raw socket", do: func(world) error { return makes(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP) }, root: true},
	{name: "make a socket for packets", do: func(world) error { return makes(unix.AF_PACKET, unix.SOCK_RAW, 0) }, root: true},
	{name: "make a socket to the host of a virtual machine", do: func(world) error { return makes(unix.AF_VSOCK, unix.SOCK_STREAM, 0) }, open: true, barred: true},
	{name: "bind a port of the system", do: func(world) error { return bindPort(81) }, root: true},

	// System calls.
	{name: "use io_uring", do: func(world) error { return call(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(new([120]byte)))) }},
	{name: "use bpf", do: useBPF, root: true},
	{name: "read a keyring", do: func(world) error { return call(unix.SYS_KEYCTL, 0, ^uintptr(2), 1) }},
	{name: "add a key", do: addKey},
	{name: "type into a terminal", do: typeInto, barred: true},
	{name: "open a file by its handle", do: openByHandle, root: true},
	{name: "load a module", do: func(world) error { return refusedWith(call(unix.SYS_INIT_MODULE, 0, 0, 0), unix.EPERM) }, root: true, barred: true},
	{name: "load another kernel", do: func(world) error { return refusedWith(call(unix.SYS_KEXEC_LOAD, 0, 99, 0, 0), unix.EPERM) }, root: true, barred: true},
	{name: "change the clock", do: changeClock, root: true},
	{name: "change the name of the machine", do: changeName, root: true},
	{name: "become another user", do: func(world) error { return call(unix.SYS_SETUID, 12345) }, root: true},

	{name: "join a group", do: func(world) error { return unix.Setgroups([]int{12345}) }, root: true},
	{name: "raise its own limits", do: raiseLimit, root: true},
	{name: "raise its own priority", do: func(world) error { return syscall.Setpriority(syscall.PRIO_PROCESS, 0, -5) }, root: true},
	{name: "take a processor for itself", do: func(world) error { return schedule(0, unix.SCHED_FIFO, 1) }, root: true},
	{name: "change the root", do: func(w world) error { return unix.Chroot(w.Work) }, root: true},
	{name: "decide what others may open", do: func(world) error { return call(unix.SYS_FANOTIFY_INIT, unix.FAN_CLASS_CONTENT, 0) }, root: true},
	{name: "restart the machine", do: func(world) error { return refusedWith(call(unix.SYS_REBOOT, 0, 0, 0), unix.EPERM) }, root: true, barred: true},
	{name: "end the use of a swap file", do: refusedPath(unix.SYS_SWAPOFF), root: true, barred: true},
	{name: "keep account of all processes", do: refusedPath(unix.SYS_ACCT), root: true, barred: true},
	{name: "hang up a terminal", do: func(world) error { return refusedWith(call(unix.SYS_VHANGUP), unix.EPERM) }, root: true, barred: true},

	// Namespaces and mounts.
	{name: "mount a file system", do: func(w world) error { return unix.Mount("tmpfs", w.Work, "tmpfs", 0, "") }, root: true, barred: true},
	{name: "mount in a namespace of its own", script: `unshare -Urm mount -t tmpfs tmpfs "$OUT"`},
	{name: "bind the data folder in a namespace of its own", script: `unshare -Urm sh -c 'mount --bind "$DATA" "$WORK" && cat "$WORK/secret"'`},
	{name: "write outside as root of a namespace of its own", script: `unshare -Ur sh -c 'echo x > "$OUT/new"'`},
	{name: "change the root in a namespace of its own", script: `unshare -Ur chroot "$OUT" /none; [ $? = 127 ] && unshare -Ur sh -c 'cd "$OUT" && echo x > new'`},
	{name: "remount a folder for writing", script: `unshare -Urm sh -c 'mount --bind "$OUT" "$OUT" && mount -o remount,bind,rw "$OUT" && echo x > "$OUT/new"'`},
	{name: "read a copy of the mount of the data folder", script: openTree + `os.open("secret", 0, dir_fd=copy("DATA"))'`},
	{name: "write to a copy of the mount of a folder outside", script: openTree + `os.open("new", os.O_CREAT | os.O_WRONLY, dir_fd=copy("OUT"))'`},
	{name: "look below what covers the data folder", script: openTree + `os.open("data/secret", 0, dir_fd=copy("BASE"))'`},
	{name: "unmount what covers a folder", script: `unshare -Urm umount -l /proc`, barred: true},
	{name: "join the namespaces of another process", do: joinNamespace},
	{name: "open a file by its handle as root of a namespace of its own", script: openHandle, barred: true},
	{name: "gain rights by a setuid program", script: `[ "$("$HELPER" -u)" = 0 ]`, user: true},
	{name: "find descriptors that were left open", script: `[ "$(ls /proc/self/fd | wc -l)" -gt 4 ]`, barred: true},
}

// openTree is the start of a script in a mount namespace of its own: copy returns a copy of the
// mount at the path that a variable holds, without what is mounted below it.
const openTree = `unshare -Urm python3 -c '
import ctypes, os
os.environ["BASE"] = os.path.dirname(os.environ["DATA"])
def copy(name): return ctypes.CDLL(None).syscall(428, -100, os.environb[name.encode()], 1)
`

// openHandle opens the secret of the data folder by its handle.
const openHandle = `unshare -Urm python3 -c '
import ctypes, os
libc, size = ctypes.CDLL(None, use_errno=True), 128
handle, mount = ctypes.create_string_buffer(size.to_bytes(4, "little"), 8 + size), ctypes.c_int()
if libc.name_to_handle_at(-100, os.environb[b"DATA"] + b"/secret", handle, ctypes.byref(mount), 0) != 0: raise SystemExit("no handle")
if libc.open_by_handle_at(os.open("/", os.O_RDONLY), handle, 0) < 0: raise SystemExit(os.strerror(ctypes.get_errno()))
'`

// runEscape tries to escape, and returns the exit code: 0 if that worked, and 7 if not.
func runEscape(text string) int {
	var w world
	if err := json.Unmarshal([]byte(text), &w); err != nil {
		fmt.Println("it does not know its world:", err)
		return 1
	}
	for _, e := range slices.Concat(escapes, networkWays) {
		if e.name != w.Name {
			continue
		}
		runtime.LockOSThread()
		if err := e.do(w); err != nil {
			fmt.Println("held:", err)
			return 7
		}
		return 0
	}
	fmt.Println("there is no such escape:", w.Name)
	return 1
}

// call makes a system call.
func call(number uintptr, args ...uintptr) error {
	var a [6]uintptr
	copy(a[:], args)
	if _, _, errno := unix.Syscall6(number, a[0], a[1], a[2], a[3], a[4], a[5]); errno != 0 {
		return errno
	}
	return nil
}

// refusedWith returns an error if a call was refused with an error number, and nil if it
// got further: its arguments make no sense.
func refusedWith(err error, number syscall.Errno) error {
	if errors.Is(err, number) {
		return err
	}
	return nil
}

func opens(path string) error {
	f, err := os.Open(path)
	if err == nil {
		f.Close()
	}
	return err
}

func openWith(path string, flags int) error {
	fd, err := unix.Open(path, flags, 0)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

func openAgain(w world) error {
	fd, err := unix.Open(w.Out+"/file", unix.O_PATH, 0)
	if err != nil {
		return err
	}
	return openWith("/proc/self/fd/"+strconv.Itoa(fd), unix.O_WRONLY)
}

func watch(path string) error {
	fd, err := unix.InotifyInit1(0)
	if err != nil {
		return err
	}
	_, err = unix.InotifyAddWatch(fd, path, unix.IN_ALL_EVENTS)
	return err
}

func countEvents(w world) error {
	attr := unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_CPU_CLOCK, Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{}))}
	fd, err := unix.PerfEventOpen(&attr, w.PID, -1, -1, 0)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

// rewrite returns a function that writes to a file what it holds.
func rewrite(path string) func(world) error {
	return func(world) error {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, word := range strings.Fields(string(text)) { // the chosen one of several is in brackets
			if strings.HasPrefix(word, "[") {
				text = []byte(strings.Trim(word, "[]"))
			}
		}
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = f.Write(text)
		return err
	}
}

func mapFile(w world) error {
	f, err := os.OpenFile(w.Out+"/file", os.O_RDWR, 0)
	if err != nil {
		if f, err = os.Open(w.Out + "/file"); err != nil {
			return err
		}
	}
	defer f.Close()
	_, err = unix.Mmap(int(f.Fd()), 0, 1, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	return err
}

func createBelow(w world) error {
	dir, err := unix.Open(w.Out, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	_, err = unix.Openat(dir, "new", unix.O_CREAT|unix.O_WRONLY, 0o600)
	return err
}

func linkUnnamed(w world) error {
	fd, err := unix.Open(w.Work, unix.O_TMPFILE|unix.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return unix.Linkat(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(fd), unix.AT_FDCWD, w.Out+"/new", unix.AT_SYMLINK_FOLLOW)
}

func exchange(w world) error {
	if err := os.WriteFile(w.Work+"/mine", nil, 0o600); err != nil {
		return err
	}
	return unix.Renameat2(unix.AT_FDCWD, w.Work+"/mine", unix.AT_FDCWD, w.Out+"/file", unix.RENAME_EXCHANGE)
}

func listenAt(path string) error {
	l, err := net.Listen("unix", path)
	if err == nil {
		l.Close()
	}
	return err
}

func readBlockDevice(w world) error {
	list, err := os.ReadDir("/sys/block")
	if err != nil {
		return err
	}
	err = errors.New("there is no block device")
	for _, e := range list {
		if err = opens("/dev/" + e.Name()); err == nil {
			return nil
		}
	}
	return err
}

func signalByDescriptor(w world) error {
	fd, err := unix.PidfdOpen(w.PID, 0)
	if err != nil {
		return err
	}
	return unix.PidfdSendSignal(fd, unix.SIGCONT, nil, 0)
}

func trace(w world) error {
	if err := unix.PtraceSeize(w.PID); err != nil {
		return err
	}
	return nil
}

func vmRead(w world) error {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", w.PID))
	if err != nil {
		return err
	}
	fields := strings.Fields(string(line))
	address, err := strconv.ParseUint(fields[27], 10, 64) // the start of its stack; 0 if that is hidden
	if err != nil {
		return err
	}
	b := make([]byte, 1)
	_, err = unix.ProcessVMReadv(w.PID, []unix.Iovec{{Base: &b[0], Len: 1}}, []unix.RemoteIovec{{Base: uintptr(address), Len: 1}}, 0)
	if errors.Is(err, unix.EFAULT) {
		return nil // it was allowed, and nothing is there
	}
	return err
}

func takeDescriptor(w world) error {
	fd, err := unix.PidfdOpen(w.PID, 0)
	if err != nil {
		return err
	}
	_, err = unix.PidfdGetfd(fd, 0, 0)
	return err
}

func limitOther(w world) error {
	var now unix.Rlimit
	if err := unix.Prlimit(0, unix.RLIMIT_CORE, nil, &now); err != nil {
		return err
	}
	return unix.Prlimit(w.PID, unix.RLIMIT_CORE, &unix.Rlimit{Cur: 0, Max: now.Max}, nil)
}

// takeLease makes whoever opens a file for writing wait.
func takeLease(w world) error {
	f, err := os.Open(w.Out + "/file")
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_RDLCK)
	return err
}

func findLocks(w world) error {
	var head, size uintptr
	return call(unix.SYS_GET_ROBUST_LIST, uintptr(w.PID), uintptr(unsafe.Pointer(&head)), uintptr(unsafe.Pointer(&size)))
}

// moveMemory moves the pages of a process from the first node of the machine to the same one.
func moveMemory(w world) error {
	node := uint64(1)
	return call(unix.SYS_MIGRATE_PAGES, uintptr(w.PID), 64, uintptr(unsafe.Pointer(&node)), uintptr(unsafe.Pointer(&node)))
}

func countInstructions(w world) error {
	attr := unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE, Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{})), Config: unix.PERF_COUNT_SW_CPU_CLOCK, Bits: unix.PerfBitExcludeKernel | unix.PerfBitExcludeHv}
	_, err := unix.PerfEventOpen(&attr, w.PID, -1, -1, 0)
	return err
}

func schedule(pid int, policy, priority uint32) error {
	return call(unix.SYS_SCHED_SETSCHEDULER, uintptr(pid), uintptr(policy), uintptr(unsafe.Pointer(&priority)))
}

func raiseLimit(world) error {
	var now unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_STACK, &now); err != nil {
		return err
	}
	lower := unix.Rlimit{Cur: min(now.Cur, now.Max-1), Max: now.Max - 1}
	if err := unix.Setrlimit(unix.RLIMIT_STACK, &lower); err != nil {
		return err
	}
	return unix.Setrlimit(unix.RLIMIT_STACK, &now)
}

// refusedPath returns a function that makes a system call with a path that does not exist. It
// succeeds if the call was not refused for lack of a right.
func refusedPath(number uintptr) func(world) error {
	return func(world) error {
		path, err := unix.BytePtrFromString("/nonexistent")
		if err != nil {
			return err
		}
		return refusedWith(call(number, uintptr(unsafe.Pointer(path))), unix.EPERM)
	}
}

func bindToProcessor(w world) error {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(w.PID, &set); err != nil {
		return err
	}
	return unix.SchedSetaffinity(w.PID, &set)
}

func attachMemory(w world) error {
	_, err := unix.SysvShmAttach(w.Memory, 0, 0)
	return err
}

func openQueue(w world) error {
	name, err := unix.BytePtrFromString(w.Queue)
	if err != nil {
		return err
	}
	return call(unix.SYS_MQ_OPEN, uintptr(unsafe.Pointer(name)), unix.O_RDWR)
}

// setFlag changes the flag of a file that backups should leave it out.
func setFlag(w world) error {
	f, err := os.Open(w.Out + "/file")
	if err != nil {
		return err
	}
	defer f.Close()
	const noDump = 0x40
	flags, err := unix.IoctlGetInt(int(f.Fd()), unix.FS_IOC_GETFLAGS)
	if err != nil {
		return err
	}
	return unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, flags^noDump)
}

func makeUnnamed(w world) error {
	_, err := unix.Open(w.Out, unix.O_TMPFILE|unix.O_RDWR, 0o600)
	return err
}

func dial(network, address string) error {
	c, err := net.DialTimeout(network, address, 5*time.Second)
	if err == nil {
		c.Close()
	}
	return err
}

func sendTo(address string) error {
	c, err := net.Dial("unixgram", address)
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.Write([]byte("x"))
	return err
}

func connectMultipath(port int) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP)
	if errors.Is(err, unix.EPROTONOSUPPORT) || errors.Is(err, unix.ENOPROTOOPT) {
		fd, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0) // the kernel has none
	}
	if err != nil {
		return err
	}
	return unix.Connect(fd, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}})
}

func fastOpen(port int) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	return unix.Sendto(fd, []byte("x"), unix.MSG_FASTOPEN, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}})
}

func exchangePackets(port int) error {
	c, err := net.Dial("udp4", fmt.Sprint("127.0.0.1:", port))
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.Write([]byte("x")); err != nil {
		return err
	}
	c.SetReadDeadline(time.Now().Add(5 * time.Second))
	_, err = io.ReadFull(c, make([]byte, 1))
	return err
}

func makes(family, kind, protocol int) error {
	fd, err := unix.Socket(family, kind, protocol)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

func bindPort(port int) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	return unix.Bind(fd, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}})
}

// useBPF makes a map: an array with one element.
func useBPF(world) error {
	attributes := [8]uint32{2, 4, 4, 1}
	return call(unix.SYS_BPF, 0, uintptr(unsafe.Pointer(&attributes)), unsafe.Sizeof(attributes))
}

func addKey(world) error {
	_, err := unix.AddKey("user", "abide", []byte("x"), unix.KEY_SPEC_PROCESS_KEYRING)
	return err
}

// typeInto types into a terminal of its own, which is refused for a terminal of others,
// too.
func typeInto(world) error {
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return err
	}
	letter := byte('x')
	return refusedWith(call(unix.SYS_IOCTL, uintptr(fd), unix.TIOCSTI, uintptr(unsafe.Pointer(&letter))), unix.EPERM)
}

func openByHandle(w world) error {
	handle, _, err := unix.NameToHandleAt(unix.AT_FDCWD, w.Out+"/file", 0)
	if err != nil {
		return err
	}
	top, err := unix.Open("/", unix.O_RDONLY, 0)
	if err != nil {
		return err
	}
	_, err = unix.OpenByHandleAt(top, handle, unix.O_RDONLY)
	return err
}

func changeClock(world) error {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_REALTIME, &now); err != nil {
		return err
	}
	return unix.ClockSettime(unix.CLOCK_REALTIME, &now)
}

func changeName(world) error {
	name, err := os.Hostname()
	if err != nil {
		return err
	}
	return unix.Sethostname([]byte(name))
}

func joinNamespace(w world) error {
	fd, err := unix.Open(fmt.Sprintf("/proc/%d/ns/net", w.PID), unix.O_RDONLY, 0)
	if err != nil {
		return err
	}
	if os.Getuid() != 0 {
		return nil // the file is all that an ordinary user gets
	}
	return unix.Setns(fd, unix.CLONE_NEWNET)
}

// installHelper installs a setuid program of root that prints its user; "" if that is not
// possible.
func installHelper(dir string) string {
	path := filepath.Join(dir, "helper")
	if os.Getuid() != 0 {
		return ""
	}
	id, err := exec.LookPath("id")
	if err != nil {
		return ""
	}
	text, err := os.ReadFile(id)
	if err != nil || os.WriteFile(path, text, 0o755) != nil || syscall.Chmod(path, 0o4755) != nil {
		return ""
	}
	return path
}
