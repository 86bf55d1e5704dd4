package approval

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/abide-run/abide/internal/approval/glob"
	"github.com/abide-run/abide/internal/approval/shell"
	"github.com/abide-run/abide/internal/lazyregexp"
	"github.com/abide-run/abide/internal/spelling"
)

// A rule names a tool or a kind of request, and may have a pattern: "bash",
// "bash(git *)", "write(docs/**)", "url(https://example.org/*)", "read-only",
// "terminal(python3 *)", "mcp(server/tool)".
//
// A pattern for paths covers the paths that it matches and everything below them; a
// relative one is relative to the working directory. A pattern for commands is a list of
// words, see wordPattern. In a pattern for URLs a star matches any text.
type rule struct {
	text    string
	tool    string
	pattern string      // empty if the rule is about all calls
	words   wordPattern // pattern of a rule about commands
}

// The names, in a rule, of commands by what they are given.
const (
	terminal = "terminal" // commands that may have a terminal
	input    = "input"    // commands that may be given input while they run
)

// Names that a rule can begin with, by what their patterns are about.
var (
	commandNames = []string{Shell, "bash", "exec", readOnly, terminal, input}
	pathNames    = []string{Read, Write, "view", "create", "edit", "grep", "glob"}
	urlNames     = []string{URL, "web_fetch"}
	otherNames   = []string{"*", CustomTool, MCP, MCPSampling, "mcp_search", "memory", "hook", "exit_plan_mode", "list_bash", "memory_search", "read_bash", "skill", "stop_bash", "task",
		"task_complete", "task_create", "task_list", "task_update", "wait", "write_bash", "ask_user"}
)

// pathKind reports whether a rule with this name is about paths.
func pathKind(name string) bool { return slices.Contains(pathNames, name) }

// isWrite reports whether a rule is about writing files, and not about reading them.
func (u rule) isWrite() bool { return u.tool == Write || u.tool == "create" || u.tool == "edit" }

// urlKind reports whether a rule with this name is about URLs.
func urlKind(name string) bool { return slices.Contains(urlNames, name) }

// commandKind reports whether a rule with this name is about commands.
func commandKind(name string) bool { return slices.Contains(commandNames, name) }

// Check returns an error if a rule is not valid, if it names no tool or kind but looks as
// if it should, or if it can never match. The names of further tools can be given, such as
// those that clients bring.
//
// A name that nobody knows is valid if it is like none of the known ones, because clients
// bring tools that are not there yet when rules are read; see [Unknown].
func Check(text string, tools ...string) error {
	if err := checkCharacters(text); err != nil {
		return err
	}
	u, err := parse(text)
	if err != nil {
		return err
	}
	if u.known(tools) {
		return u.checkPattern()
	}
	if err := u.checkName(); err != nil {
		return fmt.Errorf("rule %q: %w", text, err)
	}
	if near := nearest(u.tool, slices.Concat(commandNames, pathNames, urlNames, otherNames, tools)); near != "" {
		return fmt.Errorf("rule %q: there is no tool or kind %s; did you mean %s?", text, u.tool, near)
	}
	if u.pattern != "" {
		return fmt.Errorf("rule %q: it can never match, because %s is no tool or kind that has patterns; for commands write bash(%s %s)", text, u.tool, u.tool, u.pattern)
	}
	return nil
}

// checkName returns an error if the name of a rule can be that of no tool, or is that of a
// program, about which a rule without bash says nothing.
func (u rule) checkName() error {
	program := u.tool[strings.LastIndexByte(u.tool, '/')+1:]
	switch {
	case slices.Contains(programs, program):
		return fmt.Errorf("there is no tool or kind %s; for commands write bash(%s)", u.tool, strings.TrimSpace(program+" "+cmp.Or(u.pattern, "*")))
	case strings.ContainsAny(u.tool, "|&;<>$^`'\",/\\"):
		return fmt.Errorf("%s is no name of a tool or kind; write a rule for each tool, and for commands bash(PROGRAM *)", u.tool)
	case strings.Contains(u.tool, "*"):
		return fmt.Errorf("it can never match, because a star in the name of a tool stands for nothing; write a rule for each tool, or * for all")
	}
	return nil
}

// programs are names that people write in place of bash(NAME *). Names that a tool of a
// client may well have are not among them.
var programs = strings.Fields(`ansible apt apt-get awk aws az bun bunx busybox bzip2 cargo cat chgrp chmod chown chroot cmake cp crontab curl dash dd deno df diff dig dnf doas docker docker-compose
	dpkg du ed emacs env eval find gcc gcloud gdb gem gh git go gpg gradle gunzip gzip halt head helm iptables java javac jq kill killall ksh kubectl launchctl less ln ls make man mkdir mkfs mount
	mv mvn mysql nano nc ncat nmap node nohup npm npx nvim openssl pacman parted passwd perl php pip pip3 pkill pnpm podman poetry poweroff psql pwsh python python3 reboot redis-cli rg rm rmdir
	rpm rsync ruby rustc rustup scp sed service setfacl sftp sh shred shutdown socat sqlite3 ssh strace su sudo systemctl tail tar tee telnet terraform touch truncate umount unlink unzip useradd
	usermod uv vi vim visudo wget xargs yarn yum zip zsh`)

// Unknown reports whether a valid rule is about a name that is neither a kind nor a
// built-in tool, nor one of the given tools. It may be a tool that a client brings, or a
// mistake.
func Unknown(text string, tools ...string) bool {
	u, err := parse(text)
	return err == nil && !u.known(tools)
}

func (u rule) known(tools []string) bool {
	return commandKind(u.tool) || pathKind(u.tool) || urlKind(u.tool) || slices.Contains(otherNames, u.tool) ||
		slices.ContainsFunc(tools, func(t string) bool { return strings.EqualFold(t, u.tool) })
}

// Expand replaces ~ by the home directory in the pattern of a rule about paths.
func Expand(text, home string) string {
	if tool, rest, ok := strings.Cut(text, "(~/"); ok {
		return tool + "(" + home + "/" + rest
	}
	if tool, ok := strings.CutSuffix(text, "(~)"); ok {
		return tool + "(" + home + ")"
	}
	return text
}

func parse(text string) (rule, error) {
	tool, rest, patterned := strings.Cut(text, "(")
	r := rule{text: text, tool: strings.ToLower(tool)}
	switch {
	case tool == "" || strings.ContainsAny(tool, " \t)"):
		return r, fmt.Errorf("rule %q: it begins with the name of a tool or kind, like bash, edit, read or write", text)
	case !patterned:
		return r, nil
	}
	pattern, closed := strings.CutSuffix(rest, ")")
	if !closed || strings.TrimSpace(pattern) == "" {
		return r, fmt.Errorf("rule %q: the pattern stands in parentheses, like %s(%s)", text, tool, examplePattern(r.tool))
	}
	r.pattern = pattern
	var err error
	switch {
	case pathKind(r.tool):
		if r.pattern, err = inHome(pattern); err != nil {
			break
		}
		_, err = glob.Compile(strings.TrimPrefix(r.pattern, "/"))
	case commandKind(r.tool), r.tool == "*":
		r.words, err = parseWords(pattern)
	}
	if err != nil {
		return r, fmt.Errorf("rule %q: %w", text, err)
	}
	return r, nil
}

// inHome returns a pattern for paths with the home directory in the place of ~, whoever has
// set the rule: the configuration or a client.
func inHome(pattern string) (string, error) {
	rest, ok := strings.CutPrefix(pattern+"/", "~/")
	if !ok {
		return pattern, nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return pattern, fmt.Errorf("the home directory is not known, write an absolute path: %w", err)
	}
	return strings.TrimSuffix(home, "/") + strings.TrimSuffix("/"+rest, "/"), nil
}

// examplePattern returns a pattern for the rules of a tool or kind.
func examplePattern(name string) string {
	switch {
	case commandKind(name):
		return "git status *"
	case urlKind(name):
		return "https://example.org/*"
	case name == MCP:
		return "server/tool"
	case name == MCPSampling:
		return "server"
	}
	return "docs/**"
}

// closesFirst reports whether a text closes a parenthesis that it has not opened.
func closesFirst(text string) bool {
	open := 0
	for _, c := range text {
		switch c {
		case '(':
			open++
		case ')':
			open--
		}
		if open < 0 {
			return true
		}
	}
	return false
}

// checkPattern returns an error if the pattern can never match.
func (u rule) checkPattern() error {
	var err error
	switch {
	case u.pattern == "":
	case closesFirst(u.pattern):
		err = errors.New("it has a parenthesis that closes the pattern before its end; write a rule for each part")
	case pathKind(u.tool) && slices.Contains(strings.Split(u.pattern, "/"), ".."):
		err = errors.New("it can never match a path with .. in it; write an absolute path")
	case pathKind(u.tool) && unexpanded.MatchString(u.pattern):
		err = errors.New("it can never match, because in a pattern neither variables nor the names of users are replaced; write an absolute path, or ~/ for the home directory")
	case pathKind(u.tool) && quoted.MatchString(u.pattern):
		err = errors.New("it can never match, because quotes are part of the path; write it without them")
	case (pathKind(u.tool) || urlKind(u.tool) || u.tool == MCP || u.tool == MCPSampling) && strings.TrimSpace(u.pattern) != u.pattern:
		err = fmt.Errorf("it can never match, because blanks are part of the pattern; write %s(%s)", u.tool, strings.TrimSpace(u.pattern))
	case pathKind(u.tool) && strings.Contains(u.pattern, ", "):
		err = errors.New("a pattern is for one path, and blanks and commas are part of it; write a rule for each path, or a ? for the blank if it is in the name")
	case urlKind(u.tool):
		err = u.checkAddress()
	case commandKind(u.tool), u.tool == "*":
		err = u.words.check()
	case u.tool == MCP && !strings.Contains(u.pattern, "/") && !strings.Contains(u.pattern, "*"):
		err = fmt.Errorf("it can never match, because it names no tool; write %s(%s/*) for all tools of the server %s", u.tool, u.pattern, u.pattern)
	case u.tool == MCP, u.tool == MCPSampling:
	case !pathKind(u.tool):
		err = fmt.Errorf("it can never match, because rules about %s have no patterns; write %s, or bash(…) for commands", u.tool, u.tool)
	}
	if err != nil {
		return fmt.Errorf("rule %q: %w", u.text, err)
	}
	return nil
}

// unexpanded matches the patterns for paths that begin with what only a shell replaces: a
// variable, or the home directory of a user.
var unexpanded = lazyregexp.New(`^(\$(\w+|\{.*\})(/|$)|~[^/])`)

// quoted matches a text in quotes.
var quoted = lazyregexp.New(`^('.*'|".*")$`)

// check returns an error if no command has such words.
func (p wordPattern) check() error {
	for _, w := range p.words {
		if slices.Contains([]string{"|", "||", "&", "&&", ";", ">", ">>", "<", "2>&1"}, w) && p.bare != "" {
			return fmt.Errorf("it can never match, because the commands that %s joins are judged one by one; write a rule for each", w)
		}
	}
	if p.bare != "" {
		return fmt.Errorf("a pattern is a list of words and no regular expression, and commands that are joined are judged one by one: "+
			"write a rule for each, or put quotes around %s if it is part of a word", p.bare[:1])
	}
	if len(p.words) == 0 {
		return nil
	}
	if slices.ContainsFunc(p.words, func(w string) bool { return strings.HasSuffix(w, star+",") }) {
		return errors.New("a pattern is one list of words, and a comma is part of a word; write a rule for each command")
	}
	switch first := p.words[0]; {
	case strings.Contains(first, " ") && !strings.Contains(first, "/"):
		return fmt.Errorf("it can never match, because no program is called %s; write its words without the quotes around them", shell.Quote(strings.ReplaceAll(first, star, "*")))
	case strings.Contains(first, ":") && first != ":" && !strings.Contains(first, "/"):
		return fmt.Errorf("it can never match, because no program is called %s; write its words with blanks between them", strings.ReplaceAll(first, star, "*"))
	case strings.Contains(first, "="):
		return errors.New("it can never match, because a command with an assignment is always asked about; write the rule without it")
	case strings.HasPrefix(first, "-"):
		return fmt.Errorf("it can never match, because a command begins with a program; write the one before %s, or * for any", first)
	case shell.IsKeyword(first):
		return fmt.Errorf("it can never match, because %s is a word of the shell's language and no program; write a rule for each command that it joins", first)
	}
	return nil
}

// nearest returns the known name that a name was probably meant to be, or "".
func nearest(name string, known []string) string {
	for _, k := range known {
		most := 1
		if len(k) > 5 {
			most = 2
		}
		if len(name) > 1 && len(k) > 1 && spelling.Distance(name, k) <= most {
			return k
		}
	}
	return ""
}

// concerns reports whether the rule is about the tool or kind of a request.
func (u rule) concerns(r *Request) bool {
	switch u.tool {
	case "*", strings.ToLower(r.Tool), r.Kind:
		return true
	case readOnly:
		return r.Kind == Read || r.Kind == Shell
	case terminal:
		return r.Kind == Shell
	case input:
		return r.Kind == Shell
	}
	return false
}

// matchesPathOrURL reports whether the pattern matches one detail of a request about files
// or addresses.
func (u rule) matchesPathOrURL(detail string, r *Request) bool {
	switch {
	case u.pattern == "":
		return true
	case r.Kind == Read || r.Kind == Write:
		return u.covers(detail, r.Dirs)
	}
	return slices.ContainsFunc(addressTexts(u.pattern), func(text string) bool { return matchStars(strings.Split(text, "*"), detail) })
}

// covers reports whether the pattern covers a path. A relative pattern is relative to
// the folders dirs.
func (u rule) covers(path string, dirs []string) bool {
	if filepath.IsAbs(u.pattern) {
		return covers(u.pattern, path)
	}
	return slices.ContainsFunc(dirs, func(dir string) bool {
		rel, err := filepath.Rel(dir, path)
		return err == nil && filepath.IsLocal(rel) && covers(u.pattern, rel)
	})
}

// covers reports whether a pattern matches a path or a folder above it.
func covers(pattern, path string) bool {
	p, err := glob.Compile(strings.TrimPrefix(filepath.ToSlash(filepath.Clean(pattern)), "/"))
	if err != nil {
		return false
	}
	for path = strings.TrimPrefix(path, "/"); path != "." && path != "/" && path != ""; path = filepath.Dir(path) {
		if p.Match(filepath.ToSlash(path)) {
			return true
		}
	}
	return filepath.Clean(pattern) == "." // the working directory itself
}
