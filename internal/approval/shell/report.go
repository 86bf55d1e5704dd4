package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/abide-run/abide/internal/lazyregexp"
)

// A Command is a command that a script runs.
type Command struct {
	Identifier string `json:"identifier"` // name for approvals: ls, git status, PATH=
	ReadOnly   bool   `json:"readOnly"`   // true if it is in the table of commands that only read
}

// A Report describes what a script does.
type Report struct {
	Commands []Command // commands of the script in order, each once
	Lines    []string  // commands with their arguments for people, without quotes; unknown words are as written
	Paths    []string  // words that look like paths
	URLs     []string  // words that look like URLs
	Writes   bool      // true if output goes to a file
	// Known is true if the report has all commands. It is false if the script could not
	// be parsed, or if a name is known only when the script runs.
	Known bool
}

// maxReported is the maximum length of each list of a report.
const maxReported = 200

// Report returns what the script does, including the scripts inside it. The function
// trusted is the one of [Run.ReadOnly].
func (s *Script) Report(trusted func(name string) bool) Report {
	r := &reporter{Report{Known: true}}
	r.addScript(s)
	if p, err := s.Plain(); err == nil {
		r.markReaders(p, trusted)
	}
	return r.Report
}

type reporter struct{ Report }

// markReaders marks the commands that only read wherever they are in the script.
func (r *reporter) markReaders(p *Plain, trusted func(name string) bool) {
	reads := map[string]bool{}
	for _, c := range p.commands {
		only := !slices.ContainsFunc(c.Redirects, func(to Redirect) bool { return to.FD > 0 && to.Op != ">&" && to.To != "/dev/null" })
		list, err := c.Runs()
		for _, run := range list {
			only = only && err == nil && run.ReadOnly(trusted)
		}
		for _, run := range list {
			id := identifier(call{words: unmask(run.Words)})
			before, again := reads[id]
			reads[id] = only && (before || !again)
		}
	}
	for i, c := range r.Commands {
		r.Commands[i].ReadOnly = reads[c.Identifier]
	}
}

func (r *reporter) addScript(s *Script) {
	if s.err != nil {
		r.Known = false
	}
	for _, stmt := range s.stmts {
		syntax.Walk(stmt, func(n syntax.Node) bool {
			switch n := n.(type) {
			case *syntax.Stmt:
				r.addStmt(s, n)
			case *syntax.DeclClause:
				r.addCommand(Command{Identifier: n.Variant.Value}, s.textOf(n))
			case *syntax.Assign:
				r.addAssign(s, n)
			}
			return true
		})
	}
}

// addCommand adds a command with its arguments.
func (r *reporter) addCommand(c Command, line string) {
	r.Commands = add(r, r.Commands, c)
	r.Lines = add(r, r.Lines, line)
}

// add appends a value to a list unless the list has it. If the list is full, the report
// is not complete.
func add[T comparable](r *reporter, list []T, v T) []T {
	switch {
	case slices.Contains(list, v):
		return list
	case len(list) == maxReported:
		r.Known = false
		return list
	}
	return append(list, v)
}

// behaviourVariables matches the names of variables that change what other commands do.
var behaviourVariables = lazyregexp.New(`^(PATH|IFS|ENV|SHELLOPTS|PROMPT_COMMAND|(LD|DYLD|BASH|GIT|NODE)_.*|(PYTHON|PERL|RUBY).*)$`)

func (r *reporter) addAssign(s *Script, a *syntax.Assign) {
	if a.Name != nil && !a.Naked && behaviourVariables.MatchString(a.Name.Value) {
		r.addCommand(Command{Identifier: a.Name.Value + "="}, s.textOf(a))
	}
}

func (r *reporter) addStmt(s *Script, stmt *syntax.Stmt) {
	for _, redir := range stmt.Redirs {
		r.addRedirect(redir)
	}
	c, ok := stmt.Cmd.(*syntax.CallExpr)
	if !ok || len(c.Args) == 0 {
		return
	}
	list := s.words(c.Args)
	for _, w := range list[1:] {
		r.addWord(w.text)
	}
	r.addCall(s, stmt, stripPrefixes(list))
}

// addCall reports a command, or the script that it runs.
func (r *reporter) addCall(s *Script, stmt *syntax.Stmt, c call) {
	if len(r.Lines) == maxReported {
		r.Known = false
		return
	}
	for i, name := range c.grantedBy {
		r.addCommand(Command{Identifier: name}, showWords(c.granted[i]))
	}
	if len(c.words) == 0 {
		return
	}
	line := showWords(c.words)
	if _, ok := c.name(); !ok {
		r.Known = false
		r.addCommand(Command{Identifier: c.words[0].show()}, line)
		return
	}
	text, from := c.script()
	if from == scriptInput {
		var given bool
		if text, given = hereText(stmt.Redirs); given {
			from = scriptWord
		}
	}
	switch from {
	case scriptWord:
		r.addInnerScript(s, c, text)
	case scriptInput:
		r.Known = false
		r.addCommand(Command{Identifier: identifier(c)}, line)
	case scriptHidden:
		r.Known = r.Known && text.known
		r.addCommand(Command{Identifier: identifier(c) + " " + text.show()}, line)
	default:
		r.addCommand(Command{Identifier: identifier(c)}, line)
		r.addFindCommands(s, stmt, c)
	}
}

// addInnerScript reports the script that a command runs.
func (r *reporter) addInnerScript(s *Script, c call, text word) {
	if !text.known {
		r.Known = false
		r.addCommand(Command{Identifier: identifier(c)}, showWords(c.words))
	}
	r.addScript(parse(text.text, s.depth+1))
}

// addFindCommands reports the commands that find runs.
func (r *reporter) addFindCommands(s *Script, stmt *syntax.Stmt, c call) {
	if name, _ := c.name(); name != "find" {
		return
	}
	runs := []string{"-exec", "-execdir", "-ok", "-okdir"}
	for rest := c.words; ; {
		at := slices.IndexFunc(rest, func(w word) bool { return slices.Contains(runs, w.text) })
		if at < 0 {
			return
		}
		rest = rest[at+1:]
		end := slices.IndexFunc(rest, func(w word) bool { return w.text == ";" || w.text == "+" })
		if end < 0 {
			end = len(rest)
		}
		r.addCall(s, stmt, stripPrefixes(rest[:end]))
		rest = rest[end:]
	}
}

// textOf returns the text of a node.
func (s *Script) textOf(n syntax.Node) string {
	from, to := int(n.Pos().Offset()), int(n.End().Offset())
	if from < to && to <= len(s.text) {
		return s.text[from:to]
	}
	return ""
}

// standardDirs are the folders whose programs are identified by name only.
var standardDirs = map[string]bool{"/bin/": true, "/usr/bin/": true, "/usr/local/bin/": true, "/sbin/": true, "/usr/sbin/": true}

// identifier returns the name of a command for approvals: the program and, if it has
// subcommands, the subcommand.
func identifier(c call) string {
	name := c.words[0].text
	if standardDirs[name[:len(name)-len(base(name))]] {
		name = base(name)
	}
	if sub, ok := subcommand(c); ok {
		return name + " " + sub
	}
	return name
}

// subcommandPrograms are the programs with subcommands, with their short options that take
// a value.
var subcommandPrograms = map[string]string{
	"apt": "oc", "apt-get": "oc", "aws": "", "brew": "", "bun": "", "cargo": "C", "deno": "", "docker": "Hl", "dotnet": "", "gcloud": "", "gh": "R",
	"git": "Cc", "go": "C", "helm": "n", "kubectl": "ns", "npm": "", "npx": "p", "pip": "", "pip3": "", "pnpm": "C", "podman": "", "poetry": "C",
	"rustup": "", "systemctl": "tp", "terraform": "", "uv": "", "yarn": "",
}

// HasSubcommands reports whether the first operand of a program is a subcommand.
func HasSubcommands(program string) bool {
	_, ok := subcommandPrograms[program]
	return ok
}

// subcommand returns the subcommand of a command, if its program has subcommands.
func subcommand(c call) (string, bool) {
	name, _ := c.name()
	valued, ok := subcommandPrograms[name]
	if !ok {
		return "", false
	}
	_, _, rest := prefix{valued: valued}.split(c.words[1:])
	if len(rest) == 0 || !rest[0].known || strings.HasPrefix(rest[0].text, "-") {
		return "", false
	}
	return rest[0].text, true
}

// addRedirect reports the file of a redirection.
func (r *reporter) addRedirect(redir *syntax.Redirect) {
	target := read(redir.Word)
	switch redir.Op {
	case syntax.RdrOut, syntax.AppOut, syntax.RdrInOut, syntax.RdrClob, syntax.RdrAll, syntax.AppAll:
	case syntax.DplOut:
		if target.known && strings.Trim(target.text, "0123456789-") == "" {
			return
		}
	case syntax.RdrIn:
		r.addPath(target.text)
		return
	default:
		return
	}
	if target.known && isDevice(target.text) {
		return
	}
	r.Writes = true
	r.addPath(target.text)
}

func isDevice(path string) bool {
	return slices.Contains([]string{"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty"}, path) || strings.HasPrefix(path, "/dev/fd/")
}

// addWord reports a word that looks like a path or a URL.
func (r *reporter) addWord(w string) {
	if name, value, ok := strings.Cut(w, "="); ok && !strings.Contains(name, "/") {
		w = value // --file=PATH, NAME=PATH
	}
	switch {
	case strings.Contains(w, "://"):
		if len(r.URLs) < maxReported && !strings.ContainsAny(w, " \n") {
			r.URLs = add(r, r.URLs, w)
		}
	case strings.Contains(w, "/") && !strings.ContainsAny(w, " \n") || w == "." || w == ".." || strings.HasPrefix(w, "~") || hasExtension(w):
		r.addPath(w)
	}
}

// hasExtension reports whether a word looks like the name of a file.
func hasExtension(w string) bool {
	at := strings.LastIndexByte(w, '.')
	return at >= 0 && at < len(w)-1 && len(w)-at <= 8 && !strings.HasPrefix(w, "-") &&
		!strings.ContainsAny(w, " \n\"'$(){}<>|;&") && strings.Trim(w, "0123456789.") != ""
}

func (r *reporter) addPath(p string) {
	if p != "" && len(r.Paths) < maxReported {
		r.Paths = add(r, r.Paths, p)
	}
}
