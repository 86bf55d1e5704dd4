package bash

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/abide-run/abide/internal/approval/shell"
	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/tool"
)

// quietEnv are variables that keep commands from asking questions, from starting pagers
// and editors, and from using colours: nobody is there to answer.
var quietEnv = []string{
	"AWS_PAGER=",
	"CLICOLOR=0",
	"COMPOSER_NO_INTERACTION=1",
	"DEBIAN_FRONTEND=noninteractive",
	"EDITOR=true",
	"GCM_INTERACTIVE=never",
	"GH_PAGER=cat",
	"GH_PROMPT_DISABLED=1",
	"GIT_ASKPASS=true",
	"GIT_EDITOR=true",
	"GIT_MERGE_AUTOEDIT=no",
	"GIT_PAGER=cat",
	"GIT_SEQUENCE_EDITOR=true",
	"GIT_TERMINAL_PROMPT=0",
	"MANPAGER=cat",
	"NO_COLOR=1",
	"PAGER=cat",
	"PIP_NO_INPUT=1",
	"SSH_ASKPASS_REQUIRE=never",
	"SYSTEMD_PAGER=cat",
	"TERM=dumb",
	"TF_INPUT=0",
	"VISUAL=true",
}

// noisyNames are the names of variables that would undo some of quietEnv.
var noisyNames = []string{"CLICOLOR_FORCE", "FORCE_COLOR", "SSH_ASKPASS"}

// env returns the environment of a call's commands. With a terminal, programs may use
// it as they like.
func (c *Commands) env(ctx context.Context, call tool.Call, terminal bool) ([]string, error) {
	var env []string
	if c.Env != nil {
		var err error
		if env, err = c.Env(ctx, call); err != nil {
			return nil, err
		}
	}
	if env == nil {
		env = call.Env
	}
	if env == nil {
		env = process.PlainEnv()
	}
	more := slices.Clone(quietEnv)
	if terminal {
		more = slices.DeleteFunc(more, func(s string) bool { return strings.HasPrefix(s, "TERM=") })
		more = append(more, "TERM=xterm")
	}
	kept := slices.DeleteFunc(slices.Clone(env), func(s string) bool {
		name, _, ok := strings.Cut(s, "=")
		return !ok || name == "" || slices.Contains(noisyNames, name) || slices.ContainsFunc(c.Hidden, func(h string) bool { return matchesName(h, name) }) ||
			slices.ContainsFunc(more, func(m string) bool { return strings.HasPrefix(m, name+"=") })
	})
	return append(kept, more...), nil
}

// withVariable returns an environment in which a variable has a value.
func withVariable(env []string, name, value string) []string {
	others := slices.DeleteFunc(slices.Clone(env), func(s string) bool { return strings.HasPrefix(s, name+"=") })
	return append(others, name+"="+value)
}

// steadyEnv returns an environment in which a command that was judged by its words does
// what the words say: the shell runs nothing before it, programs are found in absolute
// folders only, and git takes no orders from the configuration of a repository.
func steadyEnv(env []string) []string {
	env = shell.HoldStill(env)
	for i, s := range env {
		if path, ok := strings.CutPrefix(s, "PATH="); ok {
			env[i] = "PATH=" + absoluteFolders(path)
		}
	}
	return env
}

// absoluteFolders returns a search path without its relative and empty entries, which
// stand for the working directory.
func absoluteFolders(path string) string {
	return strings.Join(slices.DeleteFunc(filepath.SplitList(path), func(dir string) bool { return !filepath.IsAbs(dir) }), string(filepath.ListSeparator))
}

// Environment returns the environment that a command of a call has without a terminal.
func (c *Commands) Environment(ctx context.Context, call tool.Call) ([]string, error) {
	return c.env(ctx, call, false)
}

// matchesName reports whether a pattern, which may end with a star, matches a name.
func matchesName(pattern, name string) bool {
	if start, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(name, start)
	}
	return pattern == name
}
