package approval

import "strings"

// prefixes are the words that can be approved as the beginning of any command: programs,
// or programs with a subcommand, with which a command runs no other code, whatever the
// further words are (see also reaching). It is a closed list: of a program that is not in
// it, only whole commands can be approved.
//
// Missing on purpose are interpreters, build tools, package managers, programs that run
// others (env, find, xargs, sudo, ssh, docker), those with a language of their own (awk,
// sed, tar), those that put or remove files anywhere, so that other code runs later (chmod,
// cp, ln, mv, rm, uniq with a second operand), and subcommands of git that run commands or change its configuration
// (bisect, clone, config, difftool, filter-branch, rebase, submodule).
var prefixes = map[string]string{
	"basename": "", "cat": "", "cmp": "", "comm": "", "cut": "", "date": "", "df": "", "diff": "", "dirname": "", "du": "", "echo": "",
	"false": "", "file": "", "grep": "", "head": "", "id": "", "ls": "", "md5sum": "", "mkdir": "", "nl": "", "ps": "", "pwd": "",
	"readlink": "", "realpath": "", "rg": "", "rmdir": "", "seq": "", "sha256sum": "", "sleep": "", "sort": "", "stat": "", "tail": "", "touch": "",
	"tr": "", "tree": "", "true": "", "uname": "", "wc": "", "which": "", "whoami": "",
	"git": " add blame branch checkout cherry-pick commit describe diff fetch log ls-files merge pull push reset restore rev-parse show stash status switch tag ",
}

// SafePrefix reports whether every command that begins with these words can be approved
// at once, because none of them can run other code.
func SafePrefix(words []string) bool {
	if len(words) == 0 {
		return false
	}
	subcommands, known := prefixes[words[0]]
	if !known || subcommands == "" {
		return known
	}
	return len(words) > 1 && !strings.Contains(words[1], " ") && strings.Contains(subcommands, " "+words[1]+" ")
}

// Prefix returns the words with which a command begins that say what it does: the program,
// and its subcommand if it has one.
func Prefix(words []string) []string {
	if prefixes[words[0]] != "" {
		return words[:min(2, len(words))]
	}
	return words[:1]
}
