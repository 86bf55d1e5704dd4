package shell

import (
	"slices"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"

	"github.com/abide-run/abide/internal/lazyregexp"
)

// Calls are the commands that a script may run, for rules that deny or ask: they have to
// find what they are about in every spelling, also in scripts that no rule can allow.
type Calls struct {
	// Words are the commands, each with and without the programs in front of it. Unknown
	// in a word stands for a text that the shell inserts, which can also be several words.
	Words [][]string
	Files []string // targets of redirections
	// Values are what is assigned to variables: other programs may run it.
	Values []string
	// Inputs are texts of the script that its commands read: from a here-document, a pipe,
	// or a file that the script has written.
	Inputs []Input
	// Hidden says for people what in the script may run commands that are not in Words.
	// It is empty if nothing may.
	Hidden string
}

// An Input is a text that a command reads. Its program may take it for a script.
type Input struct {
	Words []string // command that reads it
	Text  string   // with Unknown for what the shell inserts
}

// The maximum numbers of commands, of all their words together, and of inputs in Calls. A
// command that stands inside of others is there once for each of them.
const (
	maxCalls  = 1000
	maxWords  = 20_000
	maxInputs = 50
)

// Calls returns the commands that the script may run.
func (s *Script) Calls() Calls {
	v := newCallVisitor()
	v.visitScript(s)
	v.addWritten()
	return v.Calls
}

// A callVisitor collects the calls of a script. What it does not know may run anything.
type callVisitor struct {
	Calls
	words   int                        // number of words of all calls
	written map[string]string          // texts that commands write to files, by the file
	piped   map[*syntax.BinaryCmd]bool // pipes that were looked at as a part of a longer one
}

func newCallVisitor() *callVisitor {
	return &callVisitor{written: make(map[string]string), piped: make(map[*syntax.BinaryCmd]bool)}
}

func (v *callVisitor) hide(what string) {
	if v.Hidden == "" {
		v.Hidden = what
	}
}

func (v *callVisitor) visitScript(s *Script) {
	switch {
	case s.err != nil:
		v.hide(s.err.Error())
	case !utf8.ValidString(s.text) || strings.ContainsAny(s.text, "\r\x00"):
		v.hide("characters that shells read in different ways")
	}
	for _, stmt := range s.stmts {
		syntax.Walk(stmt, func(n syntax.Node) bool { v.visit(s, n); return true })
	}
}

// visit looks at one node of the tree. The nodes below it are visited too.
func (v *callVisitor) visit(s *Script, n syntax.Node) {
	switch n := n.(type) {
	case nil, *syntax.Word, *syntax.Lit, *syntax.SglQuoted, *syntax.DblQuoted, *syntax.CmdSubst, *syntax.ProcSubst, *syntax.Comment,
		*syntax.Block, *syntax.Subshell, *syntax.IfClause, *syntax.WhileClause, *syntax.ForClause, *syntax.WordIter,
		*syntax.CaseClause, *syntax.CaseItem, *syntax.FuncDecl, *syntax.TimeClause, *syntax.CoprocClause, *syntax.CallExpr, *syntax.TestClause, *syntax.ParenTest, *syntax.ExtGlob:
	case *syntax.Stmt:
		v.visitStmt(s, n)
	case *syntax.BinaryCmd:
		v.visitPipe(s, n)
	case *syntax.Redirect:
		if n.Word != nil && n.Hdoc == nil {
			v.Files = append(v.Files, maskWord(n.Word))
		}
	case *syntax.Assign:
		if n.Index != nil || n.Array != nil || n.Name == nil || commandVariables.MatchString(n.Name.Value) {
			v.hide("an assignment that changes what other words mean")
		}
		if n.Value != nil {
			v.addValue(n.Name, maskWord(n.Value))
		}
	case *syntax.DeclClause:
		if !slices.Contains([]string{"export", "local", "readonly"}, n.Variant.Value) {
			v.hide(n.Variant.Value)
		}
	case *syntax.ParamExp:
		if n.Excl || n.Index != nil || n.Slice != nil || n.Exp != nil && n.Exp.Op == syntax.OtherParamOps {
			v.hide("an expansion that can run commands")
		}
	case *syntax.UnaryTest:
		if n.Op == syntax.TsVarSet || n.Op == syntax.TsRefVar {
			v.hide("a test of a variable")
		}
	case *syntax.BinaryTest:
		if n.Op >= syntax.TsEql && n.Op <= syntax.TsGtr {
			v.hide("a comparison of numbers in [[ ]]")
		}
	default:
		v.hide("arithmetic or another construct that can run commands")
	}
}

// commandVariables matches the names of variables whose values the shell runs, and of those
// that say where cd leads.
var commandVariables = lazyregexp.New(`^(PS[0-9]|PROMPT_COMMAND|BASH_ENV|ENV|SHELLOPTS|BASHOPTS|BASH_FUNC.*|CDPATH|HOME|OLDPWD)$`)

// programVariables matches the names of variables whose values other programs run.
var programVariables = lazyregexp.New(`^(GIT_.*|.*EDITOR|.*PAGER|.*ASKPASS|.*_RSH|BROWSER|LESSOPEN|LESSCLOSE|MAKEFLAGS|SHELL|TAR_OPTIONS|VISUAL|.*_WRAPPER|CC|CXX|LD)$`)

// addValue adds what is assigned to a variable.
func (v *callVisitor) addValue(name *syntax.Lit, value string) {
	v.Values = append(v.Values, value)
	if name != nil && strings.Contains(value, Unknown) && programVariables.MatchString(name.Value) {
		v.hide("an assignment of " + name.Value + " that is not known in advance")
	}
}

// TakesApart reports whether what the arguments of a program can run is known: it only
// reads, or the command in its arguments is added to Calls, or Hidden says that it may be
// there.
func TakesApart(program string) bool {
	_, reads := readers[program]
	_, runs := prefixOf(program)
	return program != "sed" && reads || runs || shells[program] || program == "eval" || slices.Contains(running, program)
}

func (v *callVisitor) visitStmt(s *Script, stmt *syntax.Stmt) {
	c, ok := stmt.Cmd.(*syntax.CallExpr)
	if !ok || len(c.Args) == 0 {
		return
	}
	words := make([]string, len(c.Args))
	for i, arg := range c.Args {
		words[i] = maskWord(arg)
	}
	input, given := hereText(stmt.Redirs)
	if given {
		v.addInput(words, input.text)
	}
	for _, r := range stmt.Redirs {
		if isOutput(r.Op) {
			v.noteWritten(maskWord(r.Word), argumentText(words)+"\n"+input.text)
		}
	}
	v.addCall(s, words, input, given)
}

// addCall adds a command and those that it runs. The text input is what it reads, if that
// is given in the script.
func (v *callVisitor) addCall(s *Script, words []string, input word, given bool) {
	if v.words += len(words); len(v.Words) == maxCalls || v.words > maxWords {
		v.hide("more commands than are looked at")
		return
	}
	v.Words = append(v.Words, words)
	name := base(words[0])
	switch {
	case strings.Contains(words[0], Unknown):
		v.hide("a command whose name is not known in advance")
	case slices.Contains(running, name), setsVariable(name, words):
		v.hide(name)
	case name == "jq" && slices.ContainsFunc(words[1:], importsFile):
		v.hide("a file that jq reads as a part of its script")
	case shells[name], name == "eval", isSource(name):
		v.addInner(s, words, input, given)
	case name == "find":
		v.addFind(s, words)
	}
	if _, ok := prefixOf(name); ok && len(words) > 1 {
		v.addPrefixed(s, words, input, given)
	}
}

// running are the builtins that run, or let the shell run, something else than programs
// that the script names, and programs that run a script on standard input.
var running = []string{"alias", "at", "batch", "bind", "compgen", "complete", "enable", "fc", "hash", "history", "let", "mapfile", "newgrp", "readarray", "sg", "shopt", "trap"}

// addInner adds the commands of a script in the arguments or in the input of a shell.
func (v *callVisitor) addInner(s *Script, words []string, input word, given bool) {
	list := unmask(words)
	text, from := call{words: list}.script()
	if from == scriptInput && given {
		text, from = input, scriptWord
	}
	if name := base(words[0]); slices.Contains(otherShells, name) && from != noScript && (from != scriptHidden || !text.known) {
		v.hide("a script for " + name)
	}
	switch {
	case from == noScript:
	case from == scriptInput:
		v.hide("a script on standard input")
	case !text.known:
		v.hide("a script that is not known in advance")
	case from == scriptWord:
		v.visitScript(parse(text.text, s.depth+1))
	}
}

// addPrefixed adds the command that a program such as timeout runs. Options that are not
// listed may mean anything; then the command is added that they most likely mean.
func (v *callVisitor) addPrefixed(s *Script, words []string, input word, given bool) {
	name := base(words[0])
	if name == "command" && (words[1] == "-v" || words[1] == "-V") {
		return
	}
	f, understood := forms[name]
	inner := f.command(words[1:])
	p, _ := prefixOf(name)
	if p.direct {
		_, _, rest := p.split(unmask(words[1:]))
		inner, understood = texts(rest), true
	}
	if !understood || len(inner) == 0 || strings.Contains(inner[0], "=") || strings.Contains(strings.Join(words[:len(words)-len(inner)], ""), Unknown) {
		v.hide("options of " + name)
		v.addTexts(s, words)
		_, _, rest := p.split(unmask(words[1:]))
		inner = texts(rest)
	}
	if name == "xargs" {
		inner = append(slices.Clip(inner), Unknown)
	}
	if len(inner) > 0 {
		v.addCall(s, inner, input, given)
	}
}

// addTexts adds the commands of arguments that look like scripts: flock f -c 'sudo ls'.
func (v *callVisitor) addTexts(s *Script, words []string) {
	for _, w := range words[1:] {
		if strings.ContainsAny(w, " ;|&\n") {
			v.visitScript(parse(w, s.depth+1))
		}
	}
}

// addFind adds the commands that find runs.
func (v *callVisitor) addFind(s *Script, words []string) {
	for i, w := range words {
		if v.words > maxWords {
			return
		}
		if slices.Contains([]string{"-exec", "-execdir", "-ok", "-okdir"}, w) && i+1 < len(words) {
			inner := slices.Clone(words[i+1:])
			for j := range inner {
				inner[j] = strings.ReplaceAll(inner[j], "{}", Unknown)
			}
			v.addCall(s, inner, word{}, false)
		}
	}
}

// unmask returns words in the form in which the rest of the package uses them.
func unmask(words []string) []word {
	list := make([]word, len(words))
	for i, w := range words {
		list[i] = word{text: w, known: !strings.Contains(w, Unknown)}
	}
	return list
}

// maskWord returns a word of the tree, with Unknown for each part that the shell replaces.
// The home directory is written as ~.
func maskWord(w *syntax.Word) string {
	var b strings.Builder
	for _, part := range w.Parts {
		maskPart(&b, part, false)
	}
	return b.String()
}

func maskPart(b *strings.Builder, part syntax.WordPart, quoted bool) {
	switch p := part.(type) {
	case *syntax.Lit:
		if !quoted && b.Len() == 0 && strings.HasPrefix(p.Value, "~/") && !isPattern(p.Value) {
			b.WriteString(unescape(p.Value, false))
			return
		}
		if !quoted && (isPattern(p.Value) || strings.HasPrefix(p.Value, "~") || strings.Contains(p.Value, "=~") || strings.Contains(p.Value, ":~")) {
			maskLiteral(b, p.Value)
			return
		}
		b.WriteString(unescape(p.Value, quoted))
	case *syntax.SglQuoted:
		if p.Dollar && strings.Contains(p.Value, `\`) {
			b.WriteString(Unknown)
			return
		}
		b.WriteString(p.Value)
	case *syntax.DblQuoted:
		for _, inner := range p.Parts {
			maskPart(b, inner, true)
		}
	case *syntax.ParamExp:
		if p.Param != nil && p.Param.Value == "HOME" && p.Exp == nil && p.Repl == nil && !p.Length && !p.Excl && b.Len() == 0 {
			b.WriteString("~")
			return
		}
		b.WriteString(Unknown)
	default:
		b.WriteString(Unknown)
	}
}

// maskLiteral writes what is certain at the start and the end of a text with patterns.
func maskLiteral(b *strings.Builder, text string) {
	const replaced = "*?[]{}~\\"
	first, last := strings.IndexAny(text, replaced), strings.LastIndexAny(text, replaced)
	b.WriteString(text[:first] + Unknown + text[last+1:])
}
