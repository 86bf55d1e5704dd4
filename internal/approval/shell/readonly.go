package shell

import (
	"slices"
	"strings"
)

// A program is a program with subcommands.
type program struct {
	valued string   // short options that take a value
	reads  []string // subcommands that only read
}

var programs = map[string]program{
	"apt":       {"oc", []string{"list", "search", "show", "policy"}},
	"apt-get":   {"oc", nil},
	"aws":       {"", nil},
	"brew":      {"", []string{"list", "info", "search", "outdated"}},
	"bun":       {"", nil},
	"cargo":     {"C", []string{"tree", "metadata", "search", "version"}},
	"deno":      {"", nil},
	"docker":    {"Hl", []string{"ps", "images", "logs", "inspect", "version", "info", "top", "stats"}},
	"dotnet":    {"", nil},
	"gcloud":    {"", nil},
	"gh":        {"R", nil},
	"git":       {"Cc", []string{"status", "log", "diff", "show", "rev-parse", "ls-files", "ls-tree", "blame", "describe", "shortlog", "grep", "cat-file", "rev-list", "name-rev", "merge-base", "count-objects"}},
	"go":        {"C", []string{"version", "list", "doc"}},
	"helm":      {"n", []string{"list", "status", "get", "version"}},
	"kubectl":   {"ns", []string{"get", "describe", "logs", "version", "explain", "top"}},
	"npm":       {"", []string{"ls", "list", "view", "outdated"}},
	"npx":       {"p", nil},
	"pip":       {"", []string{"list", "show", "freeze", "check"}},
	"pip3":      {"", []string{"list", "show", "freeze", "check"}},
	"pnpm":      {"C", []string{"ls", "list", "why", "outdated"}},
	"podman":    {"", []string{"ps", "images", "logs", "inspect", "version", "info"}},
	"poetry":    {"C", []string{"show"}},
	"rustup":    {"", []string{"show"}},
	"systemctl": {"tp", []string{"status", "list-units", "is-active", "is-enabled", "cat"}},
	"terraform": {"", []string{"show", "version", "validate"}},
	"uv":        {"", []string{"tree"}},
	"yarn":      {"", []string{"list", "why", "info"}},
}

// subcommand returns the subcommand of a command, if its program has subcommands.
func subcommand(c call) (string, bool) {
	name, _ := c.name()
	t, ok := programs[name]
	if !ok {
		return "", false
	}
	_, _, rest := prefix{valued: t.valued}.split(c.words[1:])
	if len(rest) == 0 || !rest[0].known || strings.HasPrefix(rest[0].text, "-") {
		return "", false
	}
	return rest[0].text, true
}

// readers are the programs that only read, with the options that make them write.
var readers = map[string][]string{
	"[": nil, "basename": nil, "cat": nil, "cd": nil, "cmp": nil, "column": nil, "comm": nil, "cut": nil,
	"date": {"-s", "--set"}, "df": nil, "diff": {"-o", "--output"}, "dirname": nil, "du": nil, "echo": nil, "egrep": nil,
	"expr": nil, "false": nil, "fgrep": nil, "file": {"-C"},
	"find": {"-delete", "-exec", "-execdir", "-ok", "-okdir", "-fprint", "-fprint0", "-fprintf", "-fls"},
	"free": nil, "grep": nil, "groups": nil, "head": nil, "hexdump": nil, "id": nil, "jq": nil, "ls": nil, "lsof": nil,
	"md5sum": nil, "nl": nil, "nproc": nil, "od": nil, "pgrep": nil, "printenv": nil, "printf": {"-v"}, "ps": nil, "pwd": nil,
	"readlink": nil, "realpath": nil, "rg": {"--pre"}, "seq": nil, "sha1sum": nil, "sha256sum": nil, "sha512sum": nil,
	"sleep": nil, "sort": {"-o", "--output"}, "stat": nil, "strings": nil, "tac": nil, "tail": nil, "test": nil, "tr": nil,
	"tree": {"-o"}, "true": nil, "type": nil, "uname": nil, "uptime": nil, "wc": nil, "which": nil, "whoami": nil,
}

// readsOnly reports whether a command changes nothing, as far as its words tell.
func readsOnly(c call) bool {
	if len(c.grantedBy) > 0 || slices.ContainsFunc(c.words, func(w word) bool { return !w.known && strings.HasPrefix(w.text, "-") }) {
		return false
	}
	args := texts(c.words[1:])
	if len(args) == 1 && (args[0] == "--version" || args[0] == "--help") {
		return true
	}
	name, _ := c.name()
	if name == "sed" {
		return printsLines(args)
	}
	if t, ok := programs[name]; ok {
		sub, _ := subcommand(c)
		return slices.Contains(t.reads, sub) && !slices.ContainsFunc(args, redirectsOutput)
	}
	unless, ok := readers[name]
	return ok && standardName(c) && !slices.ContainsFunc(args, func(a string) bool { return hasOption(a, unless) })
}

// redirectsOutput reports whether an option makes a subcommand that only reads run or write
// something.
func redirectsOutput(arg string) bool {
	return arg == "-c" || arg == "-o" || strings.HasPrefix(arg, "--output") || strings.HasPrefix(arg, "--ext-diff") ||
		strings.HasPrefix(arg, "--exec") || strings.HasPrefix(arg, "-O") || strings.HasPrefix(arg, "--open-files")
}

func hasOption(arg string, options []string) bool {
	return slices.ContainsFunc(options, func(o string) bool {
		return arg == o || strings.HasPrefix(arg, o+"=") || len(o) == 2 && !strings.HasPrefix(arg, "--") && strings.HasPrefix(arg, o)
	})
}

// standardName reports whether a program is called by its name only, or by a path in a
// standard folder.
func standardName(c call) bool {
	name := c.words[0].text
	dir := name[:len(name)-len(base(name))]
	return dir == "" || standardDirs[dir]
}

// printsLines reports whether sed is used to print a part of a file.
func printsLines(args []string) bool {
	if len(args) < 2 || args[0] != "-n" {
		return false
	}
	lines, ok := strings.CutSuffix(args[1], "p")
	return ok && strings.Trim(lines, "0123456789,$ ") == "" && !slices.ContainsFunc(args[2:], func(a string) bool { return strings.HasPrefix(a, "-") })
}
