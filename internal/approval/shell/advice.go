package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Names of the tools for files that can replace a command.
const (
	View = "view"
	Grep = "grep"
	Glob = "glob"
)

// FileTool returns the command of a script that only reads files, and the tool that does
// the same. For other scripts both are empty.
func (s *Script) FileTool() (command, tool string) {
	if s.err != nil || len(s.stmts) != 1 {
		return "", ""
	}
	return s.fileTool(s.stmts[0])
}

func (s *Script) fileTool(stmt *syntax.Stmt) (command, tool string) {
	if stmt.Background || stmt.Negated || slices.ContainsFunc(stmt.Redirs, usesFile) {
		return "", ""
	}
	switch c := stmt.Cmd.(type) {
	case *syntax.CallExpr:
		return replacingTool(stripPrefixes(s.words(c.Args)))
	case *syntax.BinaryCmd:
		return s.fileToolOfPair(c)
	}
	return "", ""
}

// usesFile reports whether a redirection reads or writes a file.
func usesFile(r *syntax.Redirect) bool {
	return r.Op != syntax.DplOut && !isDevice(read(r.Word).text)
}

// fileToolOfPair handles "cd DIR && COMMAND" and "COMMAND | head".
func (s *Script) fileToolOfPair(c *syntax.BinaryCmd) (command, tool string) {
	switch c.Op {
	case syntax.AndStmt:
		if name, _ := s.simple(c.X).name(); name == "cd" {
			return s.fileTool(c.Y)
		}
	case syntax.Pipe:
		command, tool = s.fileTool(c.X)
		switch name, _ := s.simple(c.Y).name(); {
		case tool == View && slices.Contains([]string{"grep", "egrep", "rg"}, name):
			return command + " | " + name, Grep
		case slices.Contains([]string{"head", "tail", "less", "more", "cat"}, name):
			return command, tool
		case tool == View && name == "sed" && printsLines(texts(s.simple(c.Y).words[1:])):
			return command, tool
		}
	}
	return "", ""
}

func (s *Script) simple(stmt *syntax.Stmt) call {
	if c, ok := stmt.Cmd.(*syntax.CallExpr); ok && len(stmt.Redirs) == 0 {
		return stripPrefixes(s.words(c.Args))
	}
	return call{}
}

// replacingTool returns the tool that does the same as a command.
func replacingTool(c call) (command, tool string) {
	name, ok := c.name()
	if !ok || c.limit > 0 || len(c.grantedBy) > 0 || c.query {
		return "", ""
	}
	args := texts(c.words[1:])
	operands := slices.DeleteFunc(slices.Clone(args), func(a string) bool { return strings.HasPrefix(a, "-") })
	has := func(options ...string) bool {
		return slices.ContainsFunc(args, func(a string) bool { return hasOption(a, options) })
	}
	switch name {
	case "cat", "less", "more", "nl":
		if len(operands) > 0 {
			return name, View
		}
	case "head", "tail":
		if !has("-f", "-F", "--follow") && slices.ContainsFunc(operands, isNoNumber) {
			return name, View
		}
	case "sed":
		if printsLines(args) && len(args) > 2 {
			return "sed -n", View
		}
	case "grep", "egrep", "fgrep":
		if len(operands) > 1 || has("-r", "-R", "--recursive") {
			return name, Grep
		}
	case "rg":
		return name, Grep
	case "find":
		if listsFiles(args) && has("-name", "-iname", "-path", "-type") {
			return name, Glob
		}
	}
	return "", ""
}

// isNoNumber reports whether an operand is a file and not the value of -n.
func isNoNumber(s string) bool { return strings.Trim(s, "0123456789+-") != "" }

// hasOption reports whether a word is one of the options, with or without a value.
func hasOption(arg string, options []string) bool {
	return slices.ContainsFunc(options, func(o string) bool {
		return arg == o || strings.HasPrefix(arg, o+"=") || len(o) == 2 && !strings.HasPrefix(arg, "--") && strings.HasPrefix(arg, o)
	})
}
