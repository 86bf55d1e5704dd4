package sandbox

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
)

// A Repository is the repository of a working directory that is not in it: the folder .git
// above it, that of a linked worktree, or that of a submodule. The zero value is none.
//
// Commands can change what is in the working directory, and so which repository is found
// there. Whoever runs several commands finds it once, keeps it, and gives it to each.
type Repository struct {
	Path string `json:"path,omitempty"` // folder that git writes, without links; empty if there is none
	// Back is the file in the folder that names the worktree, relative to it, and Link is
	// the file .git that it has to name. Both are empty if the folder itself is called .git.
	// The file .git can be written by a command: only the folder that it names can say that
	// it is the one.
	Back string `json:"back,omitempty"`
	Link string `json:"link,omitempty"`
}

func (g Repository) key() string { return g.Path + "\x00" + g.Back }

// FindRepository returns the repository that git uses in a folder, which is a path without
// links; none if it is in the folder, or there is none.
func FindRepository(root string) Repository {
	for dir := root; ; dir = filepath.Dir(dir) {
		path := filepath.Join(dir, ".git")
		info, err := os.Lstat(path)
		switch {
		case err == nil && info.IsDir():
			if dir == root {
				return Repository{}
			}
			return Repository{Path: path}
		case err == nil && info.Mode().IsRegular():
			return linkedRepository(path)
		case dir == "/":
			return Repository{}
		}
	}
}

// maxLink is the longest file .git that is read.
const maxLink = 8 << 10

// linkedRepository returns the repository that a file .git names; none if that repository
// does not name the file.
func linkedRepository(link string) Repository {
	target, ok := bytes.CutPrefix(readSmall(link), []byte("gitdir: "))
	if !ok {
		return Repository{}
	}
	dir := string(bytes.TrimRight(target, "\r\n"))
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(filepath.Dir(link), dir)
	}
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return Repository{}
	}
	g := Repository{Path: dir, Back: "config", Link: link}
	if parent, name := filepath.Split(dir); filepath.Base(parent) == "worktrees" {
		g.Path, g.Back = filepath.Dir(filepath.Clean(parent)), filepath.Join("worktrees", name, "gitdir")
	}
	if !g.namesLink(g.Path) {
		return Repository{}
	}
	return g
}

// isRepository reports whether a folder is one that git keeps a repository in. A folder above
// one called worktrees need not be: what names the worktree can be in the working directory
// itself, if that is in a folder of this name.
func isRepository(dir string) bool {
	for _, name := range []string{"HEAD", "objects", "refs"} {
		if info, err := os.Lstat(filepath.Join(dir, name)); err != nil || info.IsDir() == (name == "HEAD") {
			return false
		}
	}
	return true
}

// namesLink reports whether there is a repository, open at a path, that names the file .git
// that has named it.
func (g Repository) namesLink(at string) bool {
	if g.Back == "" {
		return true
	}
	if !isRepository(at) {
		return false
	}
	text := string(readSmall(filepath.Join(at, g.Back)))
	named, base := strings.TrimSpace(text), filepath.Dir(filepath.Join(g.Path, g.Back))
	if g.Back == "config" {
		named = worktreeOf(text)
		if named != "" {
			named = filepath.Join(named, ".git")
		}
	}
	if named == "" {
		return false
	}
	if !filepath.IsAbs(named) {
		named = filepath.Join(base, named)
	}
	named, err := filepath.EvalSymlinks(named)
	if err != nil {
		return false
	}
	link, err := filepath.EvalSymlinks(g.Link)
	return err == nil && link == named
}

// worktreeOf returns the value of core.worktree in the configuration of a submodule.
func worktreeOf(config string) string {
	section := ""
	for line := range strings.Lines(config) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			section = strings.ToLower(line)
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		if ok && section == "[core]" && strings.EqualFold(strings.TrimSpace(name), "worktree") {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// readSmall returns the content of a small file; nil if it is large or cannot be read.
func readSmall(path string) []byte {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxLink {
		return nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	return data
}
