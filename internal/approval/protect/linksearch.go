package protect

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// maxSearched is the maximum number of files that are compared with one that has several
// names.
const maxSearched = 100_000

const reasonManyNames = "it has several names, and there are too many protected files to be sure that none of the names is one of theirs"

// A linkSearch looks for another name of a file among all files that are protected.
type linkSearch struct {
	list List
	file fs.FileInfo
	left int // number of files that may still be compared
}

// find returns why the file is protected, given a folder that it is in; empty if it is
// not. Of .git and the like only the files that run code can be found, which the caller has
// compared already: the others are too many.
func (s *linkSearch) find(dir string) string {
	for _, data := range s.list.data {
		if reason := s.below(data, reasonData); reason != "" {
			return reason
		}
	}
	for _, home := range s.list.homes {
		if reason := s.among(inHome, home, ""); reason != "" {
			return reason
		}
	}
	for _, config := range s.list.configs {
		if reason := s.among(inHome, config, ".config"); reason != "" {
			return reason
		}
	}
	for _, at := range []string{dir, above(dir, ".git")} {
		if at == "" {
			continue
		}
		if reason := s.among(anywhere, at, ""); reason != "" {
			return reason
		}
	}
	return s.among(inSystem, "/", "")
}

// among looks among the files of an index, whose paths begin at a folder. If base is
// not empty, only the rules below it count, and the folder stands in its place.
func (s *linkSearch) among(x index, dir, base string) string {
	for path, r := range x.paths(dir, base) {
		if slices.Contains([]string{".git", ".hg", ".jj", ".sl"}, filepath.Base(path)) {
			continue
		}
		if reason := s.below(path, r.reason); reason != "" {
			return reason
		}
	}
	return ""
}

// below returns the reason if the file is the one at a path, or below it.
func (s *linkSearch) below(path, reason string) string {
	root := follow(path)
	if info, err := os.Lstat(root); err != nil || device(info) != device(s.file) {
		return "" // all names of a file are on one device
	}
	found := ""
	_ = filepath.WalkDir(root, func(at string, d fs.DirEntry, err error) error { // a folder that cannot be read has no names to compare
		if s.left--; s.left < 0 {
			found = reasonManyNames
			return fs.SkipAll
		}
		if err != nil || !d.Type().IsRegular() {
			return nil
		}
		if info, err := d.Info(); err == nil && os.SameFile(info, s.file) && (reason != reasonData || s.list.inData(components(at)) != "") {
			found = reason
			return fs.SkipAll
		}
		return nil
	})
	return found
}

func device(info fs.FileInfo) uint64 {
	if sys, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(sys.Dev)
	}
	return 0
}
