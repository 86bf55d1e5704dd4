package shell

import (
	"fmt"
	"slices"
	"strings"
)

// gitSettings hold the configuration of git still where a rule or a grant allows git:
// each of them could run a program that the repository's configuration names, without a
// word of it in the command.
//
// Programs of filters, text conversions, merges and trailers cannot be switched off here, because
// their settings have names of their own; they need an entry in the configuration of the
// repository, which is a protected path.
var gitSettings = [][2]string{
	{"core.fsmonitor", "false"},                 // runs at every status
	{"core.hooksPath", "/dev/null"},             // hooks of commit, checkout, merge, push
	{"core.pager", "cat"},                       // runs for log, diff, show
	{"core.editor", "true"},                     // runs for commit, rebase
	{"core.askPass", "true"},                    // runs for fetch, push
	{"core.alternateRefsCommand", "true"},       // runs for fetch, push
	{"sequence.editor", "true"},                 // runs for rebase
	{"rebase.instructionFormat", "%s"},          // a new line in it is a command of a rebase
	{"safe.bareRepository", "explicit"},         // a folder that looks like a repository is none
	{"protocol.ext.allow", "never"},             // addresses that are commands
	{"log.showSignature", "false"},              // runs gpg.program for log and show
	{"gpg.program", "gpg"},                      // runs for commit -S, tag -s and whatever looks at signatures
	{"gpg.openpgp.program", "gpg"},              // another name of it
	{"gpg.x509.program", "gpgsm"},               // the same with gpg.format
	{"gpg.ssh.program", "ssh-keygen"},           // the same with gpg.format
	{"gpg.ssh.defaultKeyCommand", "ssh-add -L"}, // runs to find a key
	{"format.pretty", "medium"},                 // a format with %G runs gpg.program for log and show
	{"diff.ignoreSubmodules", "dirty"},          // status and diff run git in submodules, with their own configuration
	{"status.submoduleSummary", "false"},        // runs git in submodules
	{"submodule.recurse", "false"},              // runs git in submodules
	{"fetch.recurseSubmodules", "false"},        // runs git in submodules
	{"gc.auto", "0"},                            // starts upkeep in the background
	{"maintenance.auto", "false"},               // starts upkeep in the background
}

// gitVariables hold still what has no setting, or takes precedence over one.
var gitVariables = []string{
	"GIT_EDITOR=true", "GIT_PAGER=cat", "GIT_SEQUENCE_EDITOR=true",
	"GIT_NO_LAZY_FETCH=1",  // objects are not fetched behind a command that only reads
	"GIT_OPTIONAL_LOCKS=0", // status does not write the index
}

// movingNames are the names of variables that change what judged words do: scripts that
// the shell runs first, functions with the names of programs, and options that programs
// take from the environment. A star at the end stands for any text.
var movingNames = []string{
	"BASHOPTS", "BASH_ENV", "BASH_FUNC_*", "BASH_LOADABLES_PATH", "CDPATH", "ENV", "EXECIGNORE", "GREP_OPTIONS", "IFS", "POSIXLY_CORRECT",
	"PROMPT_COMMAND", "PS4", "RIPGREP_CONFIG_PATH", "SHELLOPTS",
	"GIT_CONFIG_COUNT", "GIT_CONFIG_KEY_*", "GIT_CONFIG_PARAMETERS", "GIT_CONFIG_VALUE_*", "GIT_DIFF_OPTS", "GIT_EXTERNAL_DIFF",
}

// HoldStill returns the environment for a command that a rule or a grant allows: without
// variables that change what the judged words do, and with those that keep git from
// running what its configuration names.
func HoldStill(env []string) []string {
	add := slices.Clone(gitVariables)
	add = append(add, fmt.Sprintf("GIT_CONFIG_COUNT=%d", len(gitSettings)))
	for i, s := range gitSettings {
		add = append(add, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", i, s[0]), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", i, s[1]))
	}
	kept := slices.DeleteFunc(slices.Clone(env), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.ContainsFunc(movingNames, func(m string) bool { return matchesStart(m, name) }) ||
			slices.ContainsFunc(add, func(a string) bool { return strings.HasPrefix(a, name+"=") })
	})
	return append(kept, add...)
}

// matchesStart reports whether a name is equal to a pattern, or begins with it if the
// pattern ends with a star.
func matchesStart(pattern, name string) bool {
	if start, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(name, start)
	}
	return pattern == name
}
