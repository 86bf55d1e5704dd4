package sandbox

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
)

// A gitFolder is the repository of a working directory that is not in it: the folder .git
// above it, that of a linked worktree, or that of a submodule.
type gitFolder struct {
	path string // folder that git writes, without links
	// back is the file in the folder that names the worktree, relative to it, and link is
	// the file .git that it has to name. Both are empty if the folder itself is called .git.
	// The file .git can be written by a command: only the folder that it names can say that
	// it is the one.
	back, link string
}

func (g *gitFolder) name() string {
	if g == nil {
		return ""
	}
	return g.path + "\x00" + g.back
}

// findGit returns the repository that git uses in a folder; nil if it is in the folder,
// or there is none.
func findGit(root string) *gitFolder {
	for dir := root; ; dir = filepath.Dir(dir) {
		path := filepath.Join(dir, ".git")
		info, err := os.Lstat(path)
		switch {
		case err == nil && info.IsDir():
			if dir == root {
				return nil
			}
			return &gitFolder{path: path}
		case err == nil && info.Mode().IsRegular():
			return linkedGit(path)
		case dir == "/":
			return nil
		}
	}
}

// maxLink is the longest file .git that is read.
const maxLink = 8 << 10

// linkedGit returns the repository that a file .git names; nil if that repository does not
// name the file.
func linkedGit(link string) *gitFolder {
	target, ok := bytes.CutPrefix(readSmall(link), []byte("gitdir: "))
	if !ok {
		return nil
	}
	dir := string(bytes.TrimRight(target, "\r\n"))
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(filepath.Dir(link), dir)
	}
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil
	}
	g := &gitFolder{path: dir, back: "config", link: link}
	if parent, name := filepath.Split(dir); filepath.Base(parent) == "worktrees" {
		g.path, g.back = filepath.Dir(filepath.Clean(parent)), filepath.Join("worktrees", name, "gitdir")
	}
	if !g.namesLink(g.path) {
		return nil
	}
	return g
}

// namesLink reports whether the repository, which is open at a path, names the file .git
// that has named it.
func (g *gitFolder) namesLink(at string) bool {
	if g.back == "" {
		return true
	}
	text := string(readSmall(filepath.Join(at, g.back)))
	named, base := strings.TrimSpace(text), filepath.Dir(filepath.Join(g.path, g.back))
	if g.back == "config" {
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
	link, err := filepath.EvalSymlinks(g.link)
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
