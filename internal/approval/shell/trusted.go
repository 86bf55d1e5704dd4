package shell

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// systemDirs are the folders in which the programs of the system are. Programs that an
// administrator installed are as good as those of the system: whether root alone can
// change them is checked for each.
var systemDirs = []string{"/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin"}

// Trusted returns a function for [Run.ReadOnly]. It reports whether the program that a
// shell finds for a name, with the given value of PATH, is one of the system: in a
// folder of the system, and nobody but root can change it or a folder above it. A folder
// of PATH that is not absolute ends the search, because an agent can write there.
func Trusted(searchPath string) func(name string) bool {
	return systemPrograms{systemDirs, onlyRootChanges}.in(searchPath)
}

// systemPrograms knows which programs are those of the system.
type systemPrograms struct {
	dirs     []string
	onlyRoot func(path string) bool // reports whether nobody but root can change a path
}

// in returns a function like [Trusted].
func (s systemPrograms) in(searchPath string) func(name string) bool {
	return func(name string) bool {
		if strings.Contains(name, "/") {
			return s.has(name)
		}
		for dir := range strings.SplitSeq(searchPath, ":") {
			path := filepath.Join(dir, name)
			if !filepath.IsAbs(dir) {
				return false
			}
			if i, err := os.Stat(path); err == nil && i.Mode().IsRegular() && i.Mode()&0o111 != 0 {
				return s.has(path)
			}
		}
		return false
	}
}

// has reports whether a path is that of a program of the system. A link there is as good as
// what it leads to.
func (s systemPrograms) has(path string) bool {
	if filepath.Clean(path) != path || !slices.Contains(s.dirs, filepath.Dir(path)) {
		return false
	}
	real, err := filepath.EvalSymlinks(path)
	return err == nil && s.onlyRoot(path) && s.onlyRoot(real)
}

// onlyRootChanges reports whether a path and the folders above it belong to root, and
// nobody else may write there.
func onlyRootChanges(path string) bool {
	for {
		i, err := os.Lstat(path)
		if err != nil {
			return false
		}
		owner, ok := i.Sys().(*syscall.Stat_t)
		isLink := i.Mode()&fs.ModeSymlink != 0
		if !ok || owner.Uid != 0 || i.Mode()&0o022 != 0 && !isLink {
			return false
		}
		if path == "/" {
			return true
		}
		path = filepath.Dir(path)
	}
}
