package rpc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"github.com/abide-run/abide/internal/api"
)

// maxFileDiff is how long the diff of one file may be, and maxDiff that of all.
const (
	maxFileDiff = 256 << 10
	maxDiff     = 16 << 20
)

// diff tells what has changed in the working directory of a session, if git
// knows. What the session itself did is not told apart from the rest.
func (c *conn) diff(ctx context.Context, p api.DiffParams) (api.DiffResult, error) {
	switch p.Mode {
	case api.DiffUnstaged, api.DiffBranch, api.DiffSession:
	default:
		return api.DiffResult{}, errBadParams{fmt.Errorf("mode: %q is unknown; use %s, %s or %s", p.Mode, api.DiffUnstaged, api.DiffBranch, api.DiffSession)}
	}
	st, err := c.server.host.Status(ctx, p.SessionID)
	if err != nil {
		return api.DiffResult{}, noSession(p.SessionID, err)
	}
	g := repository{ctx, st.Config.WorkingDirectory}
	result := api.DiffResult{Mode: p.Mode, RequestedMode: p.Mode, Changes: []api.FileChange{}}
	since := "HEAD"
	if p.Mode == api.DiffBranch {
		result.BaseBranch, since = g.base()
	}
	if p.Mode == api.DiffSession || since == "" {
		result.Mode, result.IsFallback, since = api.DiffUnstaged, true, "HEAD"
	}
	if p.Mode == api.DiffSession {
		result.Unavailable = "file-change-tracking-disabled"
	}
	changes, err := g.changes(since, p.IgnoreWhitespace)
	if err != nil { // it is none, or has no commit
		return result, nil
	}
	result.Changes = append(result.Changes, changes...)
	return result, nil
}

// A repository is a working directory that git may know.
type repository struct {
	ctx context.Context
	dir string
}

var errLong = errors.New("too long")

// run runs git. Nothing that the repository's configuration names is run by it,
// and nothing is written.
func (g repository) run(args ...string) ([]byte, error) {
	cmd := exec.CommandContext(g.ctx, "git", append([]string{
		"-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.quotePath=false", "--no-pager", "--no-optional-locks",
	}, args...)...)
	cmd.Dir = g.dir
	out := limited{most: maxDiff}
	cmd.Stdout = &out
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("git %s: %w", args[0], err)
	}
	return out.Bytes(), nil
}

// limited takes so many bytes and no more.
type limited struct {
	bytes.Buffer
	most int
}

func (l *limited) Write(b []byte) (int, error) {
	if l.Len()+len(b) > l.most {
		return 0, errLong
	}
	return l.Buffer.Write(b)
}

// A checkout is what a working directory has of a repository: its name on the host
// ("owner/name"), and the branch. What is not known is empty.
type checkout struct{ repository, branch string }

func (g repository) checkout() (c checkout) {
	if out, err := g.run("config", "--get", "remote.origin.url"); err == nil {
		c.repository = nameOfRemote(strings.TrimSpace(string(out)))
	}
	if out, err := g.run("symbolic-ref", "--short", "HEAD"); err == nil {
		c.branch = strings.TrimSpace(string(out))
	}
	return c
}

// nameOfRemote is the owner and the name in the address of a repository, which is
// a URL, or HOST:PATH.
func nameOfRemote(address string) string {
	_, path, isURL := strings.Cut(address, "://")
	if isURL {
		_, path, _ = strings.Cut(path, "/")
	} else if _, path, isURL = strings.Cut(address, ":"); !isURL {
		return "" // a folder
	}
	return strings.TrimSuffix(strings.Trim(path, "/"), ".git")
}

// base finds the default branch, and where the current one left it.
func (g repository) base() (branch, commit string) {
	candidates := []string{"origin/main", "origin/master", "main", "master"}
	if head, err := g.run("symbolic-ref", "--short", "refs/remotes/origin/HEAD"); err == nil {
		candidates = append([]string{strings.TrimSpace(string(head))}, candidates...)
	}
	for _, branch := range candidates {
		if at, err := g.run("merge-base", branch, "HEAD"); err == nil {
			return strings.TrimPrefix(branch, "origin/"), strings.TrimSpace(string(at))
		}
	}
	return "", ""
}

// changes lists what is different from a commit, with files that git does not
// know yet.
func (g repository) changes(since string, ignoreSpace bool) ([]api.FileChange, error) {
	args := []string{"diff", "--no-color", "--no-ext-diff", "--no-textconv", "--find-renames", "--relative"}
	if ignoreSpace {
		args = append(args, "--ignore-all-space")
	}
	out, err := g.run(append(args, since, "--")...)
	if err != nil {
		return nil, err
	}
	list := split(out)
	unknown, err := g.run("ls-files", "--others", "--exclude-standard", "-z")
	if err != nil {
		return list, nil
	}
	for path := range strings.SplitSeq(strings.TrimSuffix(string(unknown), "\x00"), "\x00") {
		if path != "" {
			list = append(list, g.added(path))
		}
	}
	return list, nil
}

// added is a file that git does not know yet, as a change.
func (g repository) added(path string) api.FileChange {
	cmd := exec.CommandContext(g.ctx, "git", "--no-pager", "diff", "--no-color", "--no-ext-diff", "--no-textconv", "--no-index", "--", "/dev/null", path)
	cmd.Dir = g.dir
	out := limited{most: maxFileDiff}
	cmd.Stdout = &out
	var differs *exec.ExitError // git reports a difference by its exit status
	change := api.FileChange{Path: path, ChangeType: "added"}
	if err := cmd.Run(); err != nil && (!errors.As(err, &differs) || differs.ExitCode() != 1) {
		change.IsTruncated = true
		return change
	}
	change.Diff = strings.ToValidUTF8(out.String(), "\uFFFD")
	return change
}

// split takes a diff apart, file by file.
func split(diff []byte) []api.FileChange {
	const begin = "diff --git "
	list := []api.FileChange{}
	for part := range strings.SplitSeq("\n"+strings.ToValidUTF8(string(diff), "\uFFFD"), "\n"+begin) {
		if change := read(begin + part); change.Path != "" {
			list = append(list, change)
		}
	}
	return list
}

// read reads the head of the diff of one file.
func read(part string) api.FileChange {
	change := api.FileChange{ChangeType: "modified", Diff: part}
	for line := range strings.Lines(part) {
		line = strings.TrimSuffix(line, "\n")
		switch name, value, _ := strings.Cut(line, " "); {
		case strings.HasPrefix(line, "new file mode"):
			change.ChangeType = "added"
		case strings.HasPrefix(line, "deleted file mode"):
			change.ChangeType = "deleted"
		case strings.HasPrefix(line, "rename from "):
			change.ChangeType, change.OldPath = "renamed", strings.TrimPrefix(line, "rename from ")
		case strings.HasPrefix(line, "rename to "):
			change.Path = strings.TrimPrefix(line, "rename to ")
		case name == "diff" && change.Path == "":
			change.Path = twice(strings.TrimPrefix(value, "--git "))
		case strings.HasPrefix(line, "@@"):
			return short(change)
		}
	}
	return short(change)
}

// twice reads the path from "a/PATH b/PATH"; that of a renamed file stands
// elsewhere.
func twice(names string) string {
	if half := len(names) / 2; len(names)%2 == 1 && half > 2 && names[half] == ' ' && names[2:half] == names[half+3:] {
		return names[2:half]
	}
	return ""
}

// short leaves out a diff that is too long.
func short(change api.FileChange) api.FileChange {
	if len(change.Diff) > maxFileDiff {
		change.Diff, change.IsTruncated = "", true
	}
	return change
}
