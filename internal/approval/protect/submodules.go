package protect

import (
	"bytes"
	"encoding/binary"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxIndex is the maximum size of an index of git that is looked at.
const maxIndex = 64 << 20

// CodeInSubmodules returns a repository inside of the work tree that a folder is in, and a
// setting of it that runs code. Git runs itself in such a repository, for git add and
// others, if it is in the index, and from there in those that are in its index. What git
// itself keeps in .git/modules does not count, and neither do other worktrees of the same
// repository: they are protected together with .git. The path is empty if there is no such
// repository.
func CodeInSubmodules(dir string) (path, setting string) {
	root, git, common := gitFolders(dir)
	if root == "" {
		return "", ""
	}
	return newSubmoduleSearch(common).below(root, git)
}

// maxTree is the maximum number of files of a work tree that are searched for repositories.
const maxTree = 500_000

// CodeInWorkTree returns what CodeInSubmodules does, of all repositories inside of the work
// tree: a git command that changes the index can put any of them there, and runs git in it.
func CodeInWorkTree(dir string) (path, setting string) {
	root, _, common := gitFolders(dir)
	if root == "" {
		return "", ""
	}
	s, left := newSubmoduleSearch(common), maxTree
	_ = filepath.WalkDir(root, func(name string, f fs.DirEntry, err error) error { // what cannot be read cannot be run in
		if left--; left < 0 {
			path, setting = root, "there are too many files to look at each"
		}
		isGit := f != nil && strings.EqualFold(f.Name(), ".git")
		if isGit && path == "" && filepath.Dir(name) != root {
			path, setting = s.at(filepath.Dir(name))
		}
		switch {
		case path != "":
			return fs.SkipAll
		case isGit && f.IsDir():
			return fs.SkipDir
		}
		return nil
	})
	return path, setting
}

// A submoduleSearch looks for settings that run code in repositories inside of another one.
type submoduleSearch struct {
	own  string // folder of the repository itself, in which git keeps those of submodules and worktrees
	seen map[string]bool
}

func newSubmoduleSearch(common string) submoduleSearch {
	return submoduleSearch{own: follow(common), seen: make(map[string]bool)}
}

// below looks at the repositories in the index of one with its work tree at root.
func (s submoduleSearch) below(root, git string) (path, setting string) {
	indexes, _ := filepath.Glob(filepath.Join(git, "sharedindex.*")) // the pattern is valid
	for _, name := range append(indexes, filepath.Join(git, "index")) {
		data, _ := readAtMost(name, maxIndex) // without an index there are no submodules
		for _, link := range gitlinks(data) {
			if path, setting = s.at(filepath.Join(root, link)); path != "" {
				return path, setting
			}
		}
	}
	return "", ""
}

// at looks at the repository at a path, if there is one, and at those inside of it.
func (s submoduleSearch) at(path string) (found, setting string) {
	root, git, common := gitFolders(path)
	if root != path || s.seen[follow(git)] {
		return "", ""
	}
	s.seen[follow(git)] = true
	if len(s.seen) > maxParts {
		return path, "there are too many of them to look at each"
	}
	if key := codeIn(git, common); key != "" && !strings.HasPrefix(follow(git)+"/", s.own+"/") {
		return path, key
	}
	return s.below(path, git)
}

// codeIn returns a setting of a repository that runs code, or "".
func codeIn(git, common string) string {
	for _, config := range configsIn(git, common) {
		data, _ := readAtMost(config, MaxKept+1) // without the file it has no settings
		if len(data) > MaxKept {
			return config + ", which is too long to be read"
		}
		if keys := CodeKeys(data); len(keys) > 0 {
			return keys[0]
		}
	}
	return ""
}

// gitlinks returns the paths in an index of git that stand for other repositories.
func gitlinks(index []byte) (paths []string) {
	const header, fixed, modeAt = 12, 42, 24 // fixed is the length of an entry without its hash
	isLink := []byte{0, 0, 0xe0, 0}          // the mode of such a path
	if !bytes.HasPrefix(index, []byte("DIRC")) || len(index) < header || !bytes.Contains(index, isLink) {
		return nil
	}
	for _, hash := range []int{20, 32} { // whichever the repository uses; with the other one no names are found
		paths = append(paths, readLinks(index, fixed+hash, modeAt, isLink)...)
	}
	return slices.Compact(paths)
}

// readLinks reads an index whose entries have a fixed part of so many bytes.
func readLinks(index []byte, fixed, modeAt int, mode []byte) (paths []string) {
	const header, extended = 12, 0x40
	version := binary.BigEndian.Uint32(index[4:])
	name := ""
	for at := header; at+fixed < len(index); {
		entry := index[at:]
		start := fixed
		if version >= 3 && entry[fixed-2]&extended != 0 {
			start += 2
		}
		if version >= 4 {
			cut, n := offset(entry[start:])
			start += n
			if n == 0 || cut > len(name) {
				return paths
			}
			name = name[:len(name)-cut]
		} else {
			name = ""
		}
		if start > len(entry) {
			return paths
		}
		end := bytes.IndexByte(entry[start:], 0)
		if end < 0 {
			return paths
		}
		name += string(entry[start : start+end])
		if bytes.Equal(entry[modeAt:modeAt+4], mode) && filepath.IsLocal(name) {
			paths = append(paths, name)
		}
		length := start + end + 1
		if version < 4 { // entries begin at every eighth byte
			length = (start + end + 8) &^ 7
		}
		at += length
	}
	return paths
}

// offset reads a number of variable length, as git writes it, and returns how many bytes it
// has.
func offset(data []byte) (value, n int) {
	for n < min(len(data), 5) {
		c := data[n]
		if n > 0 {
			value++
		}
		value = value<<7 | int(c&0x7f)
		n++
		if c&0x80 == 0 {
			return value, n
		}
	}
	return 0, 0
}

// gitFolders returns the top of the work tree that a folder is in, its folder of git, and
// the one that it shares with other worktrees.
func gitFolders(dir string) (root, git, common string) {
	if root = above(dir, ".git"); root == "" {
		return "", "", ""
	}
	git = filepath.Join(root, ".git")
	if info, err := os.Stat(git); err == nil && !info.IsDir() {
		if named, ok := strings.CutPrefix(pointer(git), "gitdir:"); ok {
			git = absolute(root, strings.TrimSpace(named))
		}
	}
	common = git
	if text := pointer(filepath.Join(git, "commondir")); text != "" {
		common = absolute(git, text)
	}
	return root, git, common
}

// configsIn returns the configuration files of a repository.
func configsIn(git, common string) []string {
	return []string{filepath.Join(common, "config"), filepath.Join(git, "config.worktree")}
}
