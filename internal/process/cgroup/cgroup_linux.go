package cgroup

import (
	"bytes"
	"strconv"
	"syscall"

	"github.com/abide-run/abide/internal/process/sys"
)

// Find returns the place for the groups of the commands of this process. It makes nothing.
func Find() (Place, error) {
	mounts, err := sys.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return Place{}, ErrNone
	}
	groups, err := sys.ReadFile("/proc/self/cgroup")
	if err != nil {
		return Place{}, ErrNone
	}
	why := ErrNone
	for _, m := range memoryMounts(mounts) {
		own, ok := ownGroup(groups, m.version)
		if !ok {
			continue
		}
		dir, ok := m.folder(own)
		if !ok {
			continue
		}
		p, err := placeIn(m, dir)
		if err == nil {
			return p, nil
		}
		if err != ErrNone {
			why = err
		}
	}
	return Place{}, why
}

// placeIn returns the place for groups of a process whose group has a folder.
func placeIn(m mount, dir string) (Place, error) {
	p := Place{dir, m.version}
	if m.version == 2 {
		top := dir == m.at && m.root == "/" && isTop(dir)
		if above := parent(dir); !top && len(above) >= len(m.at) {
			p.Dir = above
		}
		// The group above has the memory to give: in that of the process it counts only after
		// somebody has passed it on, which Make does.
		switch {
		case !lists(p.Dir+"/cgroup.controllers", "memory"):
			return p, ErrNone
		case !top && (p.Dir == dir || !delegated(p.Dir)):
			return p, ErrNotDelegated
		}
	}
	const writable = 2 // W_OK
	if syscall.Access(p.Dir, writable) != nil || readOnly(p.Dir) {
		return p, ErrReadOnly
	}
	return p, nil
}

func readOnly(dir string) bool {
	var s syscall.Statfs_t
	const flag = 1 // ST_RDONLY
	return syscall.Statfs(dir, &s) == nil && s.Flags&flag != 0
}

// isTop reports whether a folder at the top of a mount is that of the root of all groups. That of
// a container looks like it, but has processes and can have no limits below it.
func isTop(dir string) bool { return syscall.Access(dir+"/cgroup.type", 0) != nil }

func parent(dir string) string { return dir[:max(bytes.LastIndexByte([]byte(dir), '/'), 0)] }

// lists reports whether a file lists a word.
func lists(file, word string) bool {
	text, _ := sys.ReadFile(file)
	for _, f := range bytes.Fields(text) {
		if string(f) == word {
			return true
		}
	}
	return false
}

// delegated reports whether a service manager has given a group away, which it notes in an
// attribute of the folder.
func delegated(dir string) bool {
	var value [8]byte
	for _, name := range []string{"trusted.delegate", "user.delegate"} {
		if n, err := syscall.Getxattr(dir, name, value[:]); err == nil && string(value[:n]) == "1" {
			return true
		}
	}
	return false
}

// Make makes a group with a limit of memory.
func (p Place) Make(name string, memory int64) (*Group, error) {
	limit, swap := "memory.limit_in_bytes", "memory.memsw.limit_in_bytes"
	swapped := memory
	if p.Version == 2 {
		limit, swap, swapped = "memory.max", "memory.swap.max", 0
		if !lists(p.Dir+"/cgroup.subtree_control", "memory") {
			if err := sys.WriteFile(p.Dir+"/cgroup.subtree_control", []byte("+memory")); err != nil {
				return nil, err
			}
		}
	}
	g := &Group{p.Dir + "/" + name, p.Version}
	if err := syscall.Mkdir(g.Dir, 0o755); err != nil {
		return nil, err
	}
	if err := sys.WriteFile(g.Dir+"/"+limit, []byte(strconv.FormatInt(memory, 10))); err != nil {
		g.Remove()
		return nil, err
	}
	sys.WriteFile(g.Dir+"/"+swap, []byte(strconv.FormatInt(swapped, 10))) // systems without accounts of swap have no such file
	return g, nil
}

// Enter puts what the calling thread starts next into the group. The thread has to be locked,
// and must not be used for anything else afterwards. Attributes of the start are returned
// if the system needs them for that, with a descriptor to close.
func (g *Group) Enter(attr *syscall.SysProcAttr) (leave func(), err error) {
	if g.version == 1 { // a thread can be in another group than its process
		return func() {}, sys.WriteFile(g.Dir+"/tasks", []byte("0"))
	}
	fd, err := syscall.Open(g.Dir, syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return func() {}, err
	}
	attr.UseCgroupFD, attr.CgroupFD = true, fd
	return func() { syscall.Close(fd) }, nil
}

// Exceeded reports whether the system has ended a process of the group because of the limit.
func (g *Group) Exceeded() bool {
	file := "memory.oom_control"
	if g.version == 2 {
		file = "memory.events"
	}
	text, _ := sys.ReadFile(g.Dir + "/" + file)
	return counter(text, "oom_kill") > 0
}

// Remove removes the group, which has no process any more.
func (g *Group) Remove() error { return syscall.Rmdir(g.Dir) }

// Processes returns the numbers of the processes in the group with a folder.
func Processes(dir string) (pids []int) {
	text, _ := sys.ReadFile(dir + "/cgroup.procs")
	for _, f := range bytes.Fields(text) {
		if pid, err := strconv.Atoi(string(f)); err == nil && pid > 0 { // zero is one of another namespace
			pids = append(pids, pid)
		}
	}
	return pids
}
