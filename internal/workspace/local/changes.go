package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/abide-run/abide/internal/approval/shell"
	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/workspace"
)

// maxFileDiff is how long the diff of one file may be, and maxDiff that of all.
const (
	maxFileDiff = 256 << 10
	maxDiff     = 16 << 20
)

// Changes implements workspace.Files.
func (w *files) Changes(ctx context.Context, r workspace.ChangesRequest) (workspace.Changes, error) {
	var found workspace.Changes
	if r.Dir == "" {
		return found, nil
	}
	g, since := repository{ctx, w.absolute(r.Dir), w.confined, w.manager.StartReading}, ""
	if w.confined != "" {
		folder, err := g.run("rev-parse", "--absolute-git-dir") // a file .git may name a folder elsewhere
		if !w.isConfined(g.dir) || err == nil && !w.isConfined(strings.TrimSpace(string(folder))) {
			return found, &fs.PathError{Op: "diff", Path: r.Dir, Err: fs.ErrPermission}
		}
	}
	if r.Branch {
		found.Base, since = g.base()
	}
	if since == "" {
		since = "HEAD"
	}
	found.Files, _ = g.changes(since, r.IgnoreSpace) // it may be no repository, or have no commit
	if ctx.Err() != nil {
		return workspace.Changes{}, context.Cause(ctx)
	}
	return found, nil
}

// A repository is a working directory that git may know.
type repository struct {
	ctx      context.Context
	dir      string
	confined string // no repository above this folder counts; empty if there is none
	start    func(*exec.Cmd) error
}

// command returns a command of git. Its configuration is held still, as for commands that a
// rule allows.
func (g repository) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(g.ctx, "git", args...)
	cmd.Dir = g.dir
	cmd.Env = shell.HoldStill(process.PlainEnv()) // filters of a repository see it
	if g.confined != "" {
		cmd.Env = append(cmd.Env, "GIT_CEILING_DIRECTORIES="+filepath.Dir(g.confined))
	}
	return cmd
}

// finish starts a command of git and waits for its end. Programs of filters have names of
// their own and cannot be switched off: what they do is bounded by the sandbox.
func (g repository) finish(cmd *exec.Cmd) error {
	if err := g.start(cmd); err != nil {
		return err
	}
	return cmd.Wait()
}

// run runs git. Of what the repository's configuration names it runs only filters, and nothing
// can be written. With errLong it returns the beginning of the output.
func (g repository) run(args ...string) ([]byte, error) {
	cmd := g.command(append([]string{"-c", "core.quotePath=false", "--no-pager"}, args...)...)
	out := limited{most: maxDiff}
	cmd.Stdout = &out
	err := g.finish(cmd)
	switch {
	case out.full:
		return out.text.Bytes(), errLong
	case err != nil:
		return nil, fmt.Errorf("git %s: %w", args[0], err)
	}
	return out.text.Bytes(), nil
}

var errLong = errors.New("too long")

// limited takes so many bytes and no more.
type limited struct {
	text bytes.Buffer // it is not embedded: its ReadFrom has no limit
	most int
	full bool // true if there was more
}

func (l *limited) Write(b []byte) (int, error) {
	if l.full = l.full || l.text.Len()+len(b) > l.most; l.full {
		return 0, errLong
	}
	return l.text.Write(b)
}

// base finds the default branch, and where the current one left it.
func (g repository) base() (branch, commit string) {
	candidates := []string{"origin/main", "origin/master", "main", "master"}
	if head, err := g.run("symbolic-ref", "--short", "refs/remotes/origin/HEAD"); err == nil {
		candidates = append([]string{strings.TrimSpace(string(head))}, candidates...)
	}
	for _, branch := range candidates {
		if at, err := g.run("merge-base", branch, "HEAD"); err == nil {
			return strings.ToValidUTF8(strings.TrimPrefix(branch, "origin/"), "\uFFFD"), strings.TrimSpace(string(at))
		}
	}
	return "", ""
}

// changes lists what is different from a commit, with files that git does not
// know yet.
func (g repository) changes(since string, ignoreSpace bool) ([]workspace.FileChange, error) {
	args := []string{"diff", "--no-color", "--no-ext-diff", "--no-textconv", "--find-renames", "--relative"}
	if ignoreSpace {
		args = append(args, "--ignore-all-space")
	}
	out, err := g.run(append(args, since, "--")...)
	if err != nil && err != errLong {
		return nil, err
	}
	list := splitDiff(out)
	if err == errLong && len(list) > 0 { // the last one is not whole, and further ones are missing
		list[len(list)-1].Diff, list[len(list)-1].Cut = "", true
	}
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
func (g repository) added(path string) workspace.FileChange {
	cmd := g.command("--no-pager", "diff", "--no-color", "--no-ext-diff", "--no-textconv", "--no-index", "--", "/dev/null", path)
	out := limited{most: maxFileDiff}
	cmd.Stdout = &out
	var differs *exec.ExitError // git reports a difference by its exit status
	change := workspace.FileChange{Path: strings.ToValidUTF8(path, "\uFFFD"), Kind: "added"}
	if err := g.finish(cmd); out.full || err != nil && (!errors.As(err, &differs) || differs.ExitCode() != 1) {
		change.Cut = true
		return change
	}
	change.Diff = strings.ToValidUTF8(out.text.String(), "\uFFFD")
	return change
}

// splitDiff takes a diff apart, file by file.
func splitDiff(diff []byte) []workspace.FileChange {
	const begin = "diff --git "
	var list []workspace.FileChange
	for part := range strings.SplitSeq("\n"+strings.ToValidUTF8(string(diff), "\uFFFD"), "\n"+begin) {
		if change := readDiff(begin + part); change.Path != "" {
			list = append(list, change)
		}
	}
	return list
}

// readDiff reads the head of the diff of one file.
func readDiff(part string) workspace.FileChange {
	change := workspace.FileChange{Kind: "modified", Diff: part}
	for line := range strings.Lines(part) {
		line = strings.TrimSuffix(line, "\n")
		switch name, value, _ := strings.Cut(line, " "); {
		case strings.HasPrefix(line, "new file mode"):
			change.Kind = "added"
		case strings.HasPrefix(line, "deleted file mode"):
			change.Kind = "deleted"
		case strings.HasPrefix(line, "rename from "):
			change.Kind, change.OldPath = "renamed", strings.TrimPrefix(line, "rename from ")
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
func short(change workspace.FileChange) workspace.FileChange {
	if len(change.Diff) > maxFileDiff {
		change.Diff, change.Cut = "", true
	}
	return change
}
