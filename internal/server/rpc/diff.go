package rpc

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/approval/shell"
	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/workspace"
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
	files, err := c.server.host.Work.Files(p.SessionID)
	if err != nil {
		return api.DiffResult{}, err
	}
	found, err := files.Changes(ctx, workspace.ChangesRequest{Dir: st.Config.WorkingDirectory, Branch: p.Mode == api.DiffBranch, IgnoreSpace: p.IgnoreWhitespace})
	if err != nil {
		return api.DiffResult{}, err
	}
	result := api.DiffResult{Mode: p.Mode, RequestedMode: p.Mode, BaseBranch: found.Base, Changes: []api.FileChange{}}
	if p.Mode == api.DiffSession || p.Mode == api.DiffBranch && found.Base == "" {
		result.Mode, result.IsFallback = api.DiffUnstaged, true
	}
	if p.Mode == api.DiffSession {
		result.Unavailable = "file-change-tracking-disabled"
	}
	for _, f := range found.Files {
		result.Changes = append(result.Changes, api.FileChange{Path: f.Path, OldPath: f.OldPath, ChangeType: f.Kind, Diff: f.Diff, IsTruncated: f.Cut})
	}
	return result, nil
}

// A repository is a working directory that git may know.
type repository struct {
	ctx   context.Context
	dir   string
	start func(*exec.Cmd) error
}

// run runs git, with its configuration held still. It is for commands that read references
// and the configuration alone: those run no program and write nothing.
func (g repository) run(args ...string) ([]byte, error) {
	cmd := exec.CommandContext(g.ctx, "git", append([]string{"--no-pager"}, args...)...)
	cmd.Dir, cmd.Env = g.dir, shell.HoldStill(process.PlainEnv())
	var out bytes.Buffer
	cmd.Stdout = &out
	if err := g.start(cmd); err != nil {
		return nil, err
	}
	err := cmd.Wait()
	return out.Bytes(), err
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

// Checkout returns what git says of a folder of this machine: the name of the repository
// on its host, and the branch. What is not known is empty.
func (s *Server) Checkout(ctx context.Context, dir string) (repository, branch string) {
	c := (&sieve{ctx: ctx, start: s.opts.Start}).checkout(dir)
	return c.repository, c.branch
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
