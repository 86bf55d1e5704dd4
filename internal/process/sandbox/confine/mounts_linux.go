package confine

import (
	"errors"
	"os"
	"strconv"
	"syscall"
	"unsafe"

	"github.com/abide-run/abide/internal/process/record"
)

// Numbers of system calls that are the same on every architecture, and constants for
// their arguments.
const (
	openTree     = 428
	moveMount    = 429
	openat2      = 437
	mountSetattr = 442

	openTreeClone  = 1
	fromEmptyPath  = 4
	toEmptyPath    = 0x40
	noSymlinks     = 4
	emptyPath      = 0x1000
	recursive      = 0x8000
	attrReadOnly   = 1
	attrNoSetuid   = 2
	attrNoDevices  = 4
	landlockCreate = 444
	landlockAdd    = 445

	openPath = 0x200000
)

// devices are the devices that a sealed command has.
var devices = []string{"null", "zero", "full", "random", "urandom", "tty"}

// arrange changes what the namespace sees: everything is read-only but one folder, there
// are other devices, and what would lead out is replaced by something empty.
func arrange(o record.Record) error {
	if err := mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return err
	}
	root, err := cloneRoot(o.Get("root"))
	if err != nil {
		return err
	}
	// A folder can hold device files, of a system that is put together there. The devices are
	// those of the machine.
	if err := setAttributes(root, "", emptyPath|recursive, &[4]uint64{attrNoSetuid | attrNoDevices}); err != nil {
		return errors.New("close the devices in " + o.Get("root") + ": " + err.Error())
	}
	var trees []int
	for _, name := range append(devices, "null") { // the last one stands for hidden files
		tree, err := cloneTree("/dev/" + name)
		if err != nil {
			return err
		}
		trees = append(trees, tree)
	}
	attributes := [4]uint64{attrReadOnly | attrNoSetuid | attrNoDevices}
	if err := setAttributes(here, "/", recursive, &attributes); err != nil {
		return errors.New("make all files read-only: " + err.Error())
	}
	if err := replaceDevices(trees); err != nil {
		return err
	}
	if err := mount("proc", "/proc", "proc", syscall.MS_NOSUID|syscall.MS_NODEV|syscall.MS_NOEXEC|syscall.MS_RDONLY, ""); err != nil {
		return err
	}
	for _, dir := range o.All("empty") {
		if err := emptyFolder(dir, "mode=1777"); err != nil {
			return err
		}
	}
	for _, path := range o.All("hidden") {
		if err := hide(path); err != nil {
			return err
		}
	}
	return attachRoot(root, o.Get("root"))
}

func mount(source, target, kind string, flags uintptr, data string) error {
	if err := syscall.Mount(source, target, kind, flags, data); err != nil {
		return errors.New("mount " + target + ": " + err.Error())
	}
	return nil
}

// cloneTree returns a copy of the mount at a path that is not attached anywhere.
func cloneTree(path string) (int, error) {
	p, err := syscall.BytePtrFromString(path)
	if err != nil {
		return -1, err
	}
	at := here // a constant below zero does not fit
	fd, _, errno := syscall.Syscall(openTree, uintptr(at), uintptr(unsafe.Pointer(p)), openTreeClone|syscall.O_CLOEXEC)
	if errno != 0 {
		return -1, errors.New("copy the mount of " + path + ": " + errno.Error())
	}
	return int(fd), nil
}

// cloneRoot returns a copy of the mounts of the folder that stays writable. No part of its path
// may be a link: a command of another session may have put one there after the path was judged.
func cloneRoot(path string) (int, error) {
	folder, err := openPlain(path)
	if err != nil {
		return -1, err
	}
	defer syscall.Close(folder)
	var empty [1]byte
	fd, _, errno := syscall.Syscall(openTree, uintptr(folder), uintptr(unsafe.Pointer(&empty)), openTreeClone|recursive|emptyPath|syscall.O_CLOEXEC)
	if errno != 0 {
		return -1, errors.New("copy the mount of " + path + ": " + errno.Error())
	}
	return int(fd), nil
}

// openPlain opens a folder as a place, if no part of its path is a link.
func openPlain(path string) (int, error) {
	p, err := syscall.BytePtrFromString(path)
	if err != nil {
		return -1, err
	}
	how := [3]uint64{openPath | syscall.O_DIRECTORY | syscall.O_CLOEXEC, 0, noSymlinks}
	at := here
	fd, _, errno := syscall.Syscall6(openat2, uintptr(at), uintptr(unsafe.Pointer(p)), uintptr(unsafe.Pointer(&how)), unsafe.Sizeof(how), 0, 0)
	if errno == syscall.ELOOP {
		return -1, errors.New("a part of " + path + " is a link now: start the command again")
	}
	if errno != 0 {
		return -1, errors.New("open " + path + ": " + errno.Error())
	}
	return int(fd), nil
}

// attach puts a copy of mounts at a path.
func attach(tree int, path string) error { return attachAt(tree, here, path, path) }

// attachAt puts a copy of mounts at a path that belongs to an open folder, or at the folder
// itself if the path is empty.
func attachAt(tree, dir int, path, name string) error {
	p, err := syscall.BytePtrFromString(path)
	if err != nil {
		return err
	}
	flags := uintptr(fromEmptyPath)
	if path == "" {
		flags |= toEmptyPath
	}
	var empty [1]byte
	_, _, errno := syscall.Syscall6(moveMount, uintptr(tree), uintptr(unsafe.Pointer(&empty)), uintptr(dir), uintptr(unsafe.Pointer(p)), flags, 0)
	syscall.Close(tree)
	if errno != 0 {
		return errors.New("attach " + name + ": " + errno.Error())
	}
	return nil
}

// here stands for the working directory.
const here = -100

// setAttributes changes the attributes of mounts: the first word says which are set.
func setAttributes(dir int, path string, flags uintptr, attributes *[4]uint64) error {
	p, err := syscall.BytePtrFromString(path)
	if err != nil {
		return err
	}
	_, _, errno := syscall.Syscall6(mountSetattr, uintptr(dir), uintptr(unsafe.Pointer(p)), flags,
		uintptr(unsafe.Pointer(attributes)), unsafe.Sizeof(*attributes), 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// replaceDevices replaces /dev by a folder with those devices that are harmless, and
// terminals of its own.
func replaceDevices(trees []int) error {
	if err := emptyFolder("/dev", "mode=755"); err != nil {
		return err
	}
	for i, name := range append(devices, ".empty") {
		if err := touch("/dev/" + name); err != nil {
			return err
		}
		if err := attach(trees[i], "/dev/"+name); err != nil {
			return err
		}
	}
	for _, dir := range []string{"/dev/pts", "/dev/shm"} {
		if err := syscall.Mkdir(dir, 0o755); err != nil {
			return errors.New("make " + dir + ": " + err.Error())
		}
	}
	for name, to := range map[string]string{"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2", "ptmx": "pts/ptmx"} {
		if err := syscall.Symlink(to, "/dev/"+name); err != nil {
			return errors.New("make /dev/" + name + ": " + err.Error())
		}
	}
	return mount("devpts", "/dev/pts", "devpts", syscall.MS_NOSUID|syscall.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620")
}

func touch(path string) error {
	fd, err := syscall.Open(path, syscall.O_WRONLY|syscall.O_CREAT|syscall.O_CLOEXEC, 0o644)
	if err != nil {
		return errors.New("make " + path + ": " + err.Error())
	}
	return syscall.Close(fd)
}

// emptyFolder covers a folder with an empty one. A folder that is not there stays so.
func emptyFolder(dir, options string) error {
	var s syscall.Stat_t
	if syscall.Stat(dir, &s) != nil {
		return nil
	}
	return mount("tmpfs", dir, "tmpfs", syscall.MS_NOSUID|syscall.MS_NODEV, options)
}

// hide covers a file or a folder with an empty one that cannot be written. What is covered
// already, or gone, stays so.
func hide(path string) error {
	var s syscall.Stat_t
	if syscall.Lstat(path, &s) != nil || s.Mode&syscall.S_IFMT == syscall.S_IFLNK {
		return nil
	}
	if s.Mode&syscall.S_IFMT == syscall.S_IFDIR {
		return mount("tmpfs", path, "tmpfs", syscall.MS_NOSUID|syscall.MS_NODEV|syscall.MS_RDONLY, "mode=555")
	}
	tree, err := cloneTree("/dev/.empty")
	if err != nil {
		return err
	}
	return attach(tree, path)
}

// attachRoot puts the folder that stays writable at its place again, which may be in a
// folder that is empty now.
func attachRoot(tree int, path string) error {
	for i := 1; i < len(path); i++ {
		if path[i] == '/' {
			syscall.Mkdir(path[:i], 0o755) // fails where there is a folder
		}
	}
	syscall.Mkdir(path, 0o755)
	folder, err := openPlain(path)
	if err != nil {
		return err
	}
	defer syscall.Close(folder)
	return attachAt(tree, folder, "", path)
}

// Rights of Landlock to files.
const (
	writeFile   = 1 << 1
	makeDevices = 1<<6 | 1<<11
	refer       = 1 << 13
	reachSocket = 1 << 16

	badFile = syscall.Errno(77) // EBADFD: files of pipes and the like need no rule
)

// sealedRules returns rules of Landlock that keep a command from changing mounts and from
// making devices, and that scope signals and abstract sockets. They let it write only where
// the mounts do: a named pipe elsewhere can be written although it is mounted read-only, and
// whoever reads it gets what the command says. It returns -1 if the kernel has no Landlock:
// the mounts are locked without it, too.
func sealedRules(o record.Record) (int, error) {
	version, _, errno := syscall.RawSyscall(landlockCreate, 0, 0, 1)
	if errno != 0 || version < 2 {
		return -1, nil
	}
	attributes, size := [3]uint64{makeDevices | refer | writeFile}, uintptr(8)
	if version >= 6 {
		attributes[2], size = 1|2, unsafe.Sizeof(attributes)
	}
	inside := uint64(writeFile | refer)
	if version >= 9 { // sockets that were not there when the mounts were made, too
		attributes[0] |= reachSocket
		inside |= reachSocket
	}
	fd, _, errno := syscall.RawSyscall(landlockCreate, uintptr(unsafe.Pointer(&attributes)), size, 0)
	if errno != 0 {
		return -1, errors.New("make rules of Landlock: " + errno.Error())
	}
	rules := int(fd)
	syscall.CloseOnExec(rules)
	if err := addPath(rules, "/", refer); err != nil {
		return -1, err
	}
	for _, dir := range append(o.All("empty"), "/dev", o.Get("root")) {
		if err := addPath(rules, dir, inside); err != nil {
			return -1, err
		}
	}
	for stream := range 3 { // the terminal of a command is that of its keeper, and not in /dev here
		if err := addRule(rules, stream, writeFile); err != nil {
			return -1, err
		}
	}
	return rules, nil
}

// addPath adds a rule of Landlock about a folder. One that is not there needs none.
func addPath(rules int, path string, rights uint64) error {
	fd, err := syscall.Open(path, openPath|syscall.O_CLOEXEC, 0)
	if err == syscall.ENOENT {
		return nil
	}
	if err != nil {
		return errors.New("open " + path + ": " + err.Error())
	}
	defer syscall.Close(fd)
	return addRule(rules, fd, rights)
}

func addRule(rules, fd int, rights uint64) error {
	rule := struct {
		rights uint64
		fd     int32
	}{rights, int32(fd)}
	_, _, errno := syscall.RawSyscall6(landlockAdd, uintptr(rules), 1, uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if errno != 0 && errno != badFile {
		return errors.New("make a rule of Landlock: " + errno.Error())
	}
	return nil
}

// stageCapabilities are what a stage needs in its namespace: SETPCAP, NET_ADMIN, SYS_ADMIN. A
// user who is not root there would lose them when the stage is executed.
var stageCapabilities = []uintptr{8, 12, 21}

// Namespaces returns the flags for a stage, and the users that its namespace has. An
// ordinary user has nobody but himself there. For root the namespace has all users, because
// root may work with files of others.
func Namespaces(sealed bool) (*syscall.SysProcAttr, error) {
	attr := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	if os.Geteuid() == 0 && !sealed {
		return attr, nil
	}
	attr.Cloneflags |= syscall.CLONE_NEWUSER
	if sealed {
		attr.Cloneflags |= syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS
	}
	if os.Geteuid() != 0 {
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
		attr.AmbientCaps = stageCapabilities
		return attr, nil
	}
	var err error
	if attr.UidMappings, err = sameUsers("/proc/self/uid_map"); err == nil {
		attr.GidMappings, err = sameUsers("/proc/self/gid_map")
	}
	attr.GidMappingsEnableSetgroups = true
	return attr, err
}

// sameUsers returns the mapping that has the same numbers as this namespace.
func sameUsers(file string) (list []syscall.SysProcIDMap, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	for i, start := 0, 0; i < len(text); i++ {
		if text[i] != '\n' {
			continue
		}
		if n := numbers(text[start:i]); len(n) == 3 {
			list = append(list, syscall.SysProcIDMap{ContainerID: n[0], HostID: n[0], Size: n[2]})
		}
		start = i + 1
	}
	return list, nil
}

func numbers(line []byte) (list []int) {
	for start, i := -1, 0; i <= len(line); i++ {
		switch blank := i == len(line) || line[i] == ' '; {
		case !blank && start < 0:
			start = i
		case blank && start >= 0:
			n, err := strconv.Atoi(string(line[start:i]))
			if err != nil {
				return nil
			}
			list, start = append(list, n), -1
		}
	}
	return list
}
