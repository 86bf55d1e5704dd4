package sandbox

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// A mountTable knows where files can be reached by another mount: what is hidden at one path
// has to be hidden at the others, too. It reads the table of the kernel again when that has
// changed. Its zero value works; it is safe for concurrent use.
type mountTable struct {
	mu     sync.Mutex
	file   int // descriptor of the table of the kernel, plus one; its events say that it has changed
	mounts []mountPoint
	ways   []string // what through has found for these mounts; the files are always the same
}

const mountInfo = "/proc/self/mountinfo"

// A mountPoint is a line of the table.
type mountPoint struct {
	id     string
	above  string // id of the mount that it is in
	device string // number of the file system
	root   string // folder or file of the file system that is mounted
	path   string // where it is mounted
}

// otherPaths returns the paths at which files that are hidden, or parts of them, can be reached
// by other mounts.
func (t *mountTable) otherPaths(hidden []string) (others []string) {
	for _, path := range hidden {
		others = append(others, otherPathsOf(path, t.read())...)
	}
	return others
}

// through returns the paths whose folders may get no right of Landlock, beside those of hidden
// files. A rule belongs to a folder and not to its path: one about a folder at another mount
// counts wherever the folder is, and for what is mounted below it there. So this is about each
// place where something is mounted on the way to hidden files, at all of its paths.
func (t *mountTable) through(hidden []string) []string {
	mounts := t.read()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ways == nil {
		t.ways = waysTo(hidden, mounts)
	}
	return t.ways
}

// A place is a file or folder of a file system.
type place struct {
	device string
	inside string // path in the file system
}

// placeOf returns what is at a path that is in a mount.
func (m mountPoint) placeOf(path string) place {
	return place{m.device, inFolder(m.root, below(path, m.path))}
}

func waysTo(hidden []string, mounts []mountPoint) (paths []string) {
	var places []place
	for _, path := range hidden {
		if at := mountOf(path, mounts); at >= 0 {
			places = append(places, mounts[at].placeOf(path))
		}
	}
	parts := len(places) // what is mounted of these is hidden, too
	for i := 0; i < len(places); i++ {
		for _, m := range mounts {
			has := isBelow(places[i].inside, m.root)
			if m.device != places[i].device || !has && (i >= parts || !isBelow(m.root, places[i].inside)) {
				continue
			}
			if has {
				paths = append(paths, inFolder(m.path, below(places[i].inside, m.root)))
			}
			above := slices.IndexFunc(mounts, func(other mountPoint) bool { return other.id == m.above })
			if above < 0 {
				continue
			}
			if next := mounts[above].placeOf(m.path); !slices.Contains(places, next) {
				places = append(places, next)
			}
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

func otherPathsOf(path string, mounts []mountPoint) (others []string) {
	at := mountOf(path, mounts)
	if at < 0 {
		return nil
	}
	inside := inFolder(mounts[at].root, below(path, mounts[at].path)) // its place in the file system
	for i, m := range mounts {
		switch {
		case i == at || m.device != mounts[at].device:
		case isBelow(m.root, inside): // a part of it
			others = append(others, m.path)
		case isBelow(inside, m.root):
			if other := inFolder(m.path, below(inside, m.root)); other != path && isSame(path, other) {
				others = append(others, other)
			}
		}
	}
	return others
}

// mountOf returns the index of the mount that a path is in: the last one at the longest path.
// It returns -1 if there is none.
func mountOf(path string, mounts []mountPoint) int {
	found := -1
	for i, m := range mounts {
		if isBelow(path, m.path) && (found < 0 || len(m.path) >= len(mounts[found].path)) {
			found = i
		}
	}
	return found
}

// below returns the path of a file relative to a folder that it is in.
func below(path, folder string) string {
	return strings.TrimPrefix(strings.TrimPrefix(path, folder), "/")
}

// inFolder returns the path of a file in a folder, or that of the folder if the name is empty.
func inFolder(folder, name string) string {
	if name == "" {
		return folder
	}
	return filepath.Join(folder, name)
}

// isSame reports whether two paths name one file. What is not there yet may become one.
func isSame(a, b string) bool {
	first, err := os.Lstat(a)
	if err != nil {
		return true
	}
	second, err := os.Lstat(b)
	return err == nil && os.SameFile(first, second)
}

// read returns the mounts, in the order in which they were made.
func (t *mountTable) read() []mountPoint {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.file != 0 && !t.changedLocked() {
		return t.mounts
	}
	if t.file == 0 { // not by package os, whose poller would take the events
		fd, err := unix.Open(mountInfo, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return nil
		}
		t.file = fd + 1
	}
	if text, err := os.ReadFile(mountInfo); err == nil {
		t.mounts, t.ways = parseMounts(text), nil
	}
	return t.mounts
}

// changedLocked reports whether the table has changed since this was asked last.
func (t *mountTable) changedLocked() bool {
	fds := []unix.PollFd{{Fd: int32(t.file - 1), Events: unix.POLLPRI}}
	_, err := unix.Poll(fds, 0)
	return err != nil || fds[0].Revents&(unix.POLLPRI|unix.POLLERR) != 0
}

func (t *mountTable) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.file != 0 {
		unix.Close(t.file - 1)
		t.file, t.mounts, t.ways = 0, nil, nil
	}
}

// parseMounts parses the table of the kernel. A line has the number of the mount, that of the
// one above, the device, what is mounted, where, and more.
func parseMounts(text []byte) (list []mountPoint) {
	for line := range bytes.Lines(text) {
		if f := bytes.Fields(line); len(f) > 5 {
			list = append(list, mountPoint{string(f[0]), string(f[1]), string(f[2]), unescape(f[3]), unescape(f[4])})
		}
	}
	return list
}

// unescape returns a path of the table, in which blanks and the like are octal numbers.
func unescape(text []byte) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+3 < len(text) {
			if c, err := strconv.ParseUint(string(text[i+1:i+4]), 8, 8); err == nil {
				b.WriteByte(byte(c))
				i += 3
				continue
			}
		}
		b.WriteByte(text[i])
	}
	return b.String()
}
