package protect

import (
	"path/filepath"
	"slices"
	"strings"
)

// A setting is one value of a configuration file of git.
type setting struct {
	Key   string // section, subsection and name; all but the subsection in lower case
	Value string
}

// CodeKeys returns the settings of a configuration file of git that make git run code, or
// take code from elsewhere, in their order. Two files with the same settings differ in
// nothing that matters here: user.name, remotes and branches may change unasked.
func CodeKeys(data []byte) []string {
	var found []string
	for _, s := range parseGitConfig(data) {
		if s.runsCode() {
			found = append(found, s.Key+" = "+s.Value)
		}
	}
	return found
}

// RunsCode reports whether the setting of git with this name makes git run code, or take
// code from elsewhere, whatever its value is.
func RunsCode(key string) bool {
	section, rest, _ := strings.Cut(key, ".")
	at := strings.LastIndexByte(rest, '.') + 1
	s := setting{Key: strings.ToLower(section) + "." + rest[:at] + strings.ToLower(rest[at:]), Value: "!"}
	return strings.Contains(key, ".") && s.runsCode()
}

// codeSections are the sections of which every key counts.
var codeSections = []string{
	"alias",      // a value with ! in front is a command
	"credential", // helpers are commands
	"hook",       // commands, since hooks can be configured
	"include", "includeif",
	"pager",     // commands, by the name of git's command
	"protocol",  // ext and others run a command that an address names
	"safe",      // folders that git trusts
	"sendemail", // several keys are commands
	"instaweb", "guitool",
	"url", // another address to take code from
}

// codeNames are the names of keys that count in any section: most are commands of a
// driver, like filter.NAME.clean.
var codeNames = []string{
	"askpass", "alternaterefscommand", "browser", "ccmd", "clean", "cmd", "command", "defaultkeycommand",
	"difffilter", "driver", "editor", "external", "fsmonitor", "gitproxy", "hookspath", "packobjectshook", "pager", "path",
	"process", "program", "receivepack", "recentobjectshook", "smudge", "sshcommand", "templatedir", "textconv",
	"tunnel", "update", "uploadpack", "vcs",
	"proxy", "sslcainfo", "sslcapath", "sslverify", "curloptresolve", "bundleuri", // whoever is between can give other code
	"instructionformat",             // a new line in the list of a rebase can be a command
	"cookiefile", "outputdirectory", // files that git writes
	"mergeoptions", "octopus", "twohead", // strategies of merges are programs
}

// toolNames are the keys that name the programs of git difftool and git mergetool.
var toolNames = []string{"diff.guitool", "diff.tool", "merge.guitool", "merge.tool"}

func (s setting) runsCode() bool {
	section, _, _ := strings.Cut(s.Key, ".")
	name := s.Key[strings.LastIndexByte(s.Key, '.')+1:]
	switch {
	case slices.Contains(codeSections, section):
		return true
	case section == "submodule" && name == "path": // the place of a submodule runs nothing
		return false
	case s.Key == "core.worktree": // where git writes files; that of a submodule is below the one of its repository
		return s.Value == "!" || strings.HasPrefix(s.Value, "/") || strings.HasSuffix(strings.TrimRight(s.Value, "/"), "..")
	case slices.Contains(toolNames, s.Key): // a name with a path is that of a script, which git's own one runs
		return s.Value == "!" || strings.Contains(s.Value, "/")
	case section == "submodule" && name == "update": // checkout, merge, rebase, none or a command
		return strings.HasPrefix(s.Value, "!")
	}
	return slices.Contains(codeNames, name)
}

// workTrees returns the work trees that a configuration file of git names, but for those of
// submodules, which are below the folder that their repository is in. Git writes files
// there, with the rights of the person who uses it next.
func workTrees(path string, data []byte) (list []string) {
	root, _, isSubmodule := strings.Cut(path, "/.git/modules/")
	for _, s := range parseGitConfig(data) {
		at := filepath.Join(filepath.Dir(path), s.Value)
		isOwn := isSubmodule && !filepath.IsAbs(s.Value) && strings.HasPrefix(at, root+"/") && !strings.HasPrefix(at+"/", root+"/.git/")
		if s.Key == "core.worktree" && !isOwn {
			list = append(list, s.Value)
		}
	}
	return list
}

// parseGitConfig returns the settings of a configuration file of git.
//
// It reads the file as git does, and then line by line, with and without the continuation
// of lines that end in a backslash: what git does not read to the end counts too, because
// a part of it may be removed later. Some settings are returned several times.
func parseGitConfig(data []byte) []setting {
	text := strings.TrimPrefix(strings.ReplaceAll(string(data), "\r\n", "\n"), "\ufeff")
	all := parseAsGit(text)
	read := len(all)
	for _, other := range []string{text, strings.ReplaceAll(text, "\\\n", "")} {
		if list := parseLines(other); !slices.Equal(list, all[:read]) {
			all = append(all, list...)
		}
	}
	return all
}

// parseAsGit returns the settings up to the first mistake, where git stops. A backslash at
// the end of a line continues a value, but not a comment.
func parseAsGit(text string) []setting {
	var list []setting
	section := ""
	for text != "" {
		switch c := text[0]; {
		case c == '#' || c == ';':
			_, text, _ = strings.Cut(text, "\n")
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
			text = text[1:]
		case c == '[':
			line, _, _ := strings.Cut(text, "\n")
			var rest string
			section, rest = header(line)
			text = rest + text[len(line):]
		default:
			end := strings.IndexFunc(text, func(c rune) bool { return c != '-' && !isAlphanumeric(c) })
			if end < 0 {
				end = len(text)
			}
			s := setting{Key: section + "." + strings.ToLower(text[:end])}
			text = strings.TrimLeft(text[end:], " \t")
			ok := end > 0
			if strings.HasPrefix(text, "=") {
				s.Value, text, ok = valueAsGit(text[1:])
			}
			if list = append(list, s); !ok || text != "" && text[0] != '\n' {
				return list
			}
		}
	}
	return list
}

func isAlphanumeric(c rune) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// valueAsGit reads a value, and returns the text from the end of its last line on. It
// reports false if the value has a mistake.
func valueAsGit(text string) (value, rest string, ok bool) {
	var b strings.Builder
	quoted, kept := false, 0 // kept is the length of the value without blanks at its end
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\n':
			return b.String()[:kept], text[i:], !quoted
		case !quoted && (c == '#' || c == ';'):
			end := strings.IndexByte(text[i:], '\n')
			if end < 0 {
				return b.String()[:kept], "", true
			}
			return b.String()[:kept], text[i+end:], true
		case !quoted && (c == ' ' || c == '\t' || c == '\r'):
			if kept > 0 {
				b.WriteByte(c)
			}
			continue
		case c == '\\' && i+1 < len(text):
			i++
			at := strings.IndexByte("tbn\"\\\n", text[i])
			if at < 0 {
				return b.String(), text[i:], false
			}
			if text[i] != '\n' {
				b.WriteByte("\t\b\n\"\\"[at])
			}
		case c == '"':
			quoted = !quoted
		default:
			b.WriteByte(c)
		}
		kept = b.Len()
	}
	return b.String()[:kept], "", !quoted
}

// parseLines returns the settings of lines. A line that git would refuse is a setting
// too, so that it counts if it looks like one that runs code.
func parseLines(text string) []setting {
	var list []setting
	section := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		for strings.HasPrefix(line, "[") {
			section, line = header(line)
		}
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		name, value, _ := strings.Cut(line, "=")
		list = append(list, setting{section + "." + strings.ToLower(strings.TrimSpace(name)), unquote(strings.TrimSpace(value))})
	}
	return list
}

// header reads the name of a section in brackets, and returns what follows it in the
// line.
func header(line string) (section, rest string) {
	quoted, escaped := false, false
	for i := 1; i < len(line); i++ {
		switch c := line[i]; {
		case escaped:
			escaped = false
		case c == '\\':
			escaped = true
		case c == '"':
			quoted = !quoted
		case c == ']' && !quoted:
			return sectionName(line[1:i]), strings.TrimSpace(line[i+1:])
		}
	}
	return sectionName(line[1:]), ""
}

// sectionName returns the name of a section and its subsection, joined by a dot.
func sectionName(text string) string {
	name, sub, found := strings.Cut(text, `"`)
	name = strings.ToLower(strings.TrimSpace(name))
	if !found {
		return name
	}
	sub = strings.TrimSuffix(strings.TrimSpace(sub), `"`)
	return name + "." + strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(sub)
}

// unquote removes quotes and a comment from a value.
func unquote(value string) string {
	var b strings.Builder
	quoted, escaped := false, false
	for _, c := range value {
		switch {
		case escaped:
			escaped = false
			b.WriteRune(c)
		case c == '\\':
			escaped = true
		case c == '"':
			quoted = !quoted
		case !quoted && (c == '#' || c == ';'):
			return strings.TrimSpace(b.String())
		default:
			b.WriteRune(c)
		}
	}
	return strings.TrimSpace(b.String())
}
