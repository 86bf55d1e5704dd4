package session

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"strings"

	"github.com/abide-run/abide/internal/workspace"
)

// The limits of looking for a working tree.
const (
	mostParents = 12      // folders above the working directory that are looked at
	mostHead    = 4 << 10 // bytes of the file that names the branch
	shortCommit = 12      // letters of a commit that is named in place of a branch
)

// A fileReader is the part of workspace.Files that reads.
type fileReader interface {
	ReadFile(ctx context.Context, p workspace.Path) ([]byte, error)
}

// readBranch returns the branch of the git working tree that a folder is in, or the commit if
// it is on no branch. It is empty if there is none, or it cannot be read. No program is run.
// Folders above are only looked at if that costs no request to another machine.
func readBranch(ctx context.Context, files fileReader, dir string, near bool) string {
	if dir == "" {
		return ""
	}
	for range mostParents {
		if head := readHead(ctx, files, path.Join(dir, ".git")); head != "" {
			return branchOf(head)
		}
		above := path.Dir(dir)
		if !near || above == dir {
			break
		}
		dir = above
	}
	return ""
}

// readHead returns what HEAD says in a git folder, which may be a file that names the folder.
func readHead(ctx context.Context, files fileReader, git string) string {
	head, err := readSmall(ctx, files, path.Join(git, "HEAD"))
	if head != "" || errors.Is(err, fs.ErrNotExist) || workspace.Unusable(err) { // git is not a file: that would be another error
		return head
	}
	link, _ := readSmall(ctx, files, git)
	to, ok := strings.CutPrefix(link, "gitdir: ")
	if !ok {
		return ""
	}
	if !path.IsAbs(to) {
		to = path.Join(path.Dir(git), to)
	}
	head, _ = readSmall(ctx, files, path.Join(to, "HEAD"))
	return head
}

// readSmall returns the text of a small file without white space around it; empty if it has
// several lines.
func readSmall(ctx context.Context, files fileReader, name string) (string, error) {
	text, err := files.ReadFile(ctx, workspace.At(name))
	if line := strings.TrimSpace(string(text)); err == nil && len(text) <= mostHead && !strings.ContainsAny(line, "\n\r") {
		return line, nil
	}
	return "", err
}

// branchOf returns the branch that HEAD names. A name that no branch can have is left out: it
// would stand in the system prompt.
func branchOf(head string) string {
	name, isRef := strings.CutPrefix(head, "ref: refs/heads/")
	if !isRef && !strings.HasPrefix(head, "ref: ") {
		name = "none, at commit " + head[:min(len(head), shortCommit)]
		head = head[:min(len(head), shortCommit)]
		if strings.Trim(head, "0123456789abcdef") != "" {
			return ""
		}
		return name
	}
	if strings.ContainsAny(name, " \t~^:?*[\\<>") || len(name) > 200 {
		return ""
	}
	return name
}
