package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/abide-run/abide/internal/process/sandbox/confine"
)

// Rights to files, as Landlock has them.
const (
	readRights  = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	writeRights = readRights | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE |
		unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE | unix.LANDLOCK_ACCESS_FS_MAKE_DIR |
		unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO |
		unix.LANDLOCK_ACCESS_FS_MAKE_SYM | unix.LANDLOCK_ACCESS_FS_REFER
	deviceRights = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	// socketRight is the right to reach a socket by its path. Sockets that the command itself, or
	// what it has started, listens on need none.
	socketRight = 1 << 16
	allRights   = writeRights | deviceRights | socketRight | unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK
	// fileRights are the rights that a rule about a file that is no folder can have.
	fileRights = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV | socketRight
)

// kernelABI returns the version of Landlock of this kernel; 0 if there is none.
func kernelABI() int {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(version)
}

// handled returns the rights that a version of Landlock knows.
func handled(abi int) uint64 {
	rights := uint64(allRights)
	for _, r := range []struct {
		since int
		right uint64
	}{
		{referABI, unix.LANDLOCK_ACCESS_FS_REFER}, {truncateABI, unix.LANDLOCK_ACCESS_FS_TRUNCATE}, {ioctlABI, unix.LANDLOCK_ACCESS_FS_IOCTL_DEV},
		{unixABI, socketRight},
	} {
		if abi < r.since {
			rights &^= r.right
		}
	}
	return rights
}

// Filters reports whether system calls can be filtered on this machine.
func Filters() bool { return confine.Filters() }

// rules are rules of Landlock, with the state of the files that they were made from.
type rules struct {
	file    *os.File
	sources []source
	used    uint64 // number of the use, to find those that were not used for long
}

// A source is a file or folder that rules were made from. If it is another one now, or has
// other entries, the rules are made anew.
type source struct {
	path    string
	dev     uint64
	inode   uint64
	changed unix.Timespec // zero if its entries do not matter
}

// sourceOf describes a file as it is now.
func sourceOf(path string, entries bool) source {
	s := source{path: path}
	var st unix.Stat_t
	if unix.Lstat(path, &st) == nil {
		s.dev, s.inode = st.Dev, st.Ino
		if entries {
			s.changed = st.Mtim
		}
	}
	return s
}

func (s source) same() bool { return sourceOf(s.path, s.changed != unix.Timespec{}) == s }

// maxRules is the number of working directories whose rules are kept.
const maxRules = 16

// rulesFor returns a descriptor of the rules of a plan, which the caller closes.
func (s *Sandbox) rulesFor(p plan) (*os.File, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.made[p.key]
	if r != nil && !slices.ContainsFunc(r.sources, func(o source) bool { return !o.same() }) {
		s.uses++
		r.used = s.uses
		return duplicate(r.file)
	}
	if r != nil {
		r.file.Close()
		delete(s.made, p.key)
	}
	r, err := s.makeRules(p)
	if err != nil {
		return nil, err
	}
	if len(s.made) >= maxRules {
		s.dropOldestLocked()
	}
	s.uses++
	r.used = s.uses
	s.made[p.key] = r
	return duplicate(r.file)
}

func (s *Sandbox) dropOldestLocked() {
	oldest := ""
	for key, r := range s.made {
		if oldest == "" || r.used < s.made[oldest].used {
			oldest = key
		}
	}
	s.made[oldest].file.Close()
	delete(s.made, oldest)
}

func duplicate(f *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "landlock"), nil
}

// makeRules makes the rules of a plan.
func (s *Sandbox) makeRules(p plan) (*rules, error) {
	p.list()
	if s.abi >= unixABI {
		p.listSockets()
	}
	attr := unix.LandlockRulesetAttr{Handled_access_fs: handled(s.abi)}
	size := unsafe.Sizeof(attr.Handled_access_fs)
	if s.abi >= scopeABI {
		attr.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
		size = unsafe.Offsetof(attr.Scoped) + unsafe.Sizeof(attr.Scoped)
	}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), size, 0)
	if errno != 0 {
		return nil, fmt.Errorf("make rules of Landlock: %w", errno)
	}
	b := &builder{rules: rules{file: os.NewFile(fd, "landlock")}, handled: attr.Handled_access_fs}
	if err := b.addAll(p); err != nil {
		b.file.Close()
		return nil, err
	}
	return &b.rules, nil
}

// A builder adds rules.
type builder struct {
	rules
	handled uint64
}

func (b *builder) addAll(p plan) error {
	// Names can be listed everywhere, because a rule for the entries of one folder would be
	// one for all folders below it, too.
	err := b.add("/", unix.LANDLOCK_ACCESS_FS_READ_DIR)
	for _, dir := range p.looked {
		b.sources = append(b.sources, sourceOf(dir, true))
	}
	for _, path := range p.read {
		err = errors.Join(err, ignoreMissing(b.add(path, readRights)))
	}
	for _, path := range p.sockets {
		err = errors.Join(err, ignoreMissing(b.add(path, socketRight)))
	}
	for _, path := range p.devices {
		err = errors.Join(err, ignoreMissing(b.add(path, deviceRights)))
	}
	for _, path := range slices.Concat(p.write, p.optional) {
		err = errors.Join(err, ignoreMissing(b.add(path, writeRights|socketRight|unix.LANDLOCK_ACCESS_FS_IOCTL_DEV)))
		b.sources = append(b.sources, sourceOf(path, false))
	}
	if p.git.Path != "" {
		err = errors.Join(err, ignoreMissing(b.addGit(p.git)))
	}
	return err
}

// ignoreMissing returns nil for the error of a file that is gone, or that is a link now: no
// right is given then.
func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return err
}

// add gives rights to a file, or to a folder with all that is in it.
func (b *builder) add(path string, rights uint64) error {
	f, err := openPlain(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return b.addFile(f, rights)
}

func (b *builder) addFile(f *os.File, rights uint64) error {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= fileRights
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: rights & b.handled, Parent_fd: int32(f.Fd())}
	if rule.Allowed_access == 0 {
		return nil
	}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, b.file.Fd(), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if errno != 0 && errno != unix.EBADFD { // files of pipes and the like need no rule
		return fmt.Errorf("make a rule for %s: %w", f.Name(), errno)
	}
	return nil
}

// openPlain opens a file as the place that a rule is about. No part of the path may be a
// link: a command could have put it there.
func openPlain(path string) (*os.File, error) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS}
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &how)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// addGit gives rights to a repository, if the folder that is open is the one that names the
// worktree.
func (b *builder) addGit(g Repository) error {
	b.sources = append(b.sources, sourceOf(g.Path, false))
	if g.Link != "" {
		b.sources = append(b.sources, sourceOf(g.Link, false), sourceOf(filepath.Join(g.Path, g.Back), true))
	}
	f, err := openPlain(g.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	if !g.namesLink("/proc/self/fd/" + strconv.Itoa(int(f.Fd()))) {
		return nil
	}
	return b.addFile(f, writeRights)
}
