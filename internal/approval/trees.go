package approval

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/abide-run/abide/internal/approval/disk"
	"github.com/abide-run/abide/internal/approval/glob"
	"github.com/abide-run/abide/internal/approval/scope"
	"github.com/abide-run/abide/internal/approval/shell"
)

// A tree is a folder that a command uses with all that is below it.
type tree struct {
	dir      string
	reads    bool     // the command reads the files, or gives them other names
	changes  bool     // the command changes the files, or gives them other names
	visible  bool     // names that begin with a dot are left out
	shown    []string // patterns of names that are used although they begin with a dot
	included []string // patterns of the names of files, if no others are used
	excluded []string // names that are left out
}

// treeReaders and treeChangers are the programs that use folders with all that is below
// them, and the options with which they do; those without any do always. Programs that
// give files another name or another place are in both.
var (
	treeReaders = map[string]string{
		"7z": "", "ack": "", "ag": "", "bwrap": "", "cp": "-R -a -r --archive --recursive", "diff": "", "docker": "-v --mount --volume cp",
		"grep": "-R -d -r --dereference-recursive --directories --recursive", "gzip": "-r --recursive", "ln": "", "mount": "-B --bind --rbind", "mv": "",
		"pcre2grep": "-r --recursive", "pcregrep": "-r --recursive", "podman": "-v --mount --volume cp", "rg": "", "rsync": "-a -r --archive --recursive", "scp": "-r",
		"tar": "-c -r -u --append --create --update", "ug": "", "ugrep": "", "zip": "-r --recurse-paths", "zstd": "-r",
	}
	treeChangers = map[string]string{
		"bwrap": "", "chgrp": "-R --recursive", "chmod": "-R --recursive", "chown": "-R --recursive", "docker": "-v --mount --volume", "find": "-delete",
		"gzip": "-r --recursive", "ln": "", "mount": "-B --bind --rbind", "mv": "", "podman": "-v --mount --volume", "rm": "-R -r --recursive",
	}
)

// treesOf returns the folders that commands use with all that is below them, seen from
// the folders dirs.
func (d *reading) treesOf(dirs []string) (list []tree) {
	left := maxPaths
	for _, words := range d.calls.Words {
		program := knownAs(programOf(words))
		inGit := false
		if program == "git" {
			program, words, inGit = d.gitReader(words, dirs[0])
		}
		t := tree{reads: inGit || isDeep(treeReaders, program, words), changes: isDeep(treeChangers, program, words)}
		if !t.reads && !t.changes {
			continue
		}
		t.visible = leavesOutHidden(program, words)
		if program == "rg" && t.visible {
			t.shown, t.visible = shownNames(words)
		}
		t.excluded = excludedNames(program, words)
		t.included = includedNames(program, words)
		for _, name := range folderOperands(program, words) {
			for _, dir := range dirs {
				if left--; left < 0 { // too many folders to look at each one: the command may reach every file
					t.dir = "/"
					return append(list, t)
				}
				if t.dir = absolute(dir, name); d.isDir(t.dir) {
					list = append(list, t)
				}
				if real, ok := follow(d.disk, dir, name); ok && real != t.dir && d.isDir(real) {
					t.dir = real
					list = append(list, t)
				}
			}
		}
	}
	return list
}

// gitReader returns a command of git that reads files, whether git knows them or not, as the
// program that does the same. Outside of a repository git grep and git diff always do; git
// diff does for a path that is not in the repository.
func (d *reading) gitReader(words []string, dir string) (program string, as []string, ok bool) {
	at := slices.IndexFunc(words, func(w string) bool { return w == "diff" || w == "grep" })
	if at < 0 {
		return "git", words, false
	}
	as = words[at:]
	reads := func(w string) bool {
		return isReaching("--no-index --untracked", w) || as[0] == "diff" && (filepath.IsAbs(w) || w == ".." || strings.HasPrefix(w, "../"))
	}
	if d.disk.Ask(disk.Question{Kind: disk.Place, Path: dir}).OK && !slices.ContainsFunc(as[1:], reads) {
		return "git", words, false
	}
	return as[0], as, true
}

// isDeep reports whether a program is in a table, and the command has one of its options.
func isDeep(table map[string]string, program string, words []string) bool {
	options, ok := table[program]
	return ok && (options == "" || programOf(words) == "rgrep" || slices.ContainsFunc(words[1:], func(w string) bool { return isReaching(options, w) }) ||
		program == "tar" && len(words) > 1 && isReaching(options, "-"+words[1]))
}

// leavesOutHidden reports whether a program leaves out what begins with a dot.
func leavesOutHidden(program string, words []string) bool {
	return (program == "rg" || program == "ag") && !slices.ContainsFunc(words[1:], func(w string) bool {
		return isReaching("-. -L -u --follow --hidden --no-ignore --unrestricted", w) // a link can have another name
	})
}

// shownNames returns the patterns of names that rg searches although they begin with a dot:
// those that are given to it. It reports false if others may be searched, too, because of a
// type of files, or of a file with patterns.
func shownNames(words []string) (patterns []string, ok bool) {
	options := words[1:] // also those after --, which may be the value of an option
	for i, w := range options {
		name, value, joined := strings.Cut(w, "=")
		if !strings.HasPrefix(w, "-") || w == "-" {
			continue
		}
		if !strings.HasPrefix(w, "--") {
			at := strings.IndexAny(w, "gt")
			if at < 0 {
				continue
			}
			name, value, joined = "-"+w[at:at+1], strings.TrimPrefix(w[at+1:], "="), at+1 < len(w)
		}
		if !joined && i+1 < len(options) {
			value = options[i+1]
		}
		switch {
		case name == "-g", name == "--glob", name == "--iglob":
			if !strings.HasPrefix(value, "!") {
				patterns = append(patterns, strings.ToLower(value))
			}
		case name == "-t" || name == "--type":
			if !slices.Contains(plainTypes, value) {
				return nil, false
			}
			patterns = append(patterns, "?*.*") // such a type has names with an end
		case name == "--type-add", name == "--type-clear", name == "--ignore-file":
			return nil, false
		}
	}
	return patterns, true
}

// plainTypes are the types of files of rg all of whose patterns are a star and an end of
// names.
var plainTypes = strings.Fields("c cpp cs css csv go html java js kotlin lua md php py rust scala sql swift ts xml")

// isShown reports whether one of the patterns may be about a name. Each part of a pattern
// counts, be it for a folder or for a file.
func isShown(patterns []string, name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		pattern = strings.ReplaceAll("/"+strings.Trim(pattern, "/"), "/**/", "/")
		return slices.ContainsFunc(strings.Split(pattern[1:], "/"), func(part string) bool {
			p, err := glob.Compile(part)
			return err != nil || p.Match(name) || strings.Contains(part, `\`)
		})
	})
}

// pruning are the options that keep programs from what is below a folder of a name, and
// those with which it is used nevertheless.
var pruning = map[string][2]string{
	"ag":    {"--ignore --ignore-dir", ""},
	"diff":  {"-x --exclude", ""},
	"grep":  {"--exclude-dir", ""},
	"rg":    {"-g --glob", ""},
	"rsync": {"--exclude", "-F -f --filter --include --include-from"},
	"tar":   {"--exclude", "--anchored --no-wildcards"},
}

// excludedNames returns the names that a command leaves out.
func excludedNames(program string, words []string) (names []string) {
	options := pruning[program]
	if slices.ContainsFunc(words[1:], func(w string) bool { return isReaching(options[1], w) }) {
		return nil
	}
	for i, w := range optionsOf(words) {
		name, value, joined := strings.Cut(w, "=")
		if !slices.Contains(strings.Fields(options[0]), name) || takesNext(program, words, i) {
			continue
		}
		if !joined && i+2 < len(words) {
			value = words[i+2]
		}
		if program == "rg" {
			if len(names) > 0 || !strings.HasPrefix(value, "!") {
				return nil // the last pattern decides
			}
			value = value[1:]
		}
		names = append(names, path.Clean(strings.TrimSuffix(value, "/**")))
	}
	return names
}

// includedNames returns the patterns of the names of the only files that grep uses in
// folders. There are none if it uses others, too.
func includedNames(program string, words []string) (patterns []string) {
	if program != "grep" {
		return nil
	}
	for i, w := range optionsOf(words) {
		name, value, joined := strings.Cut(w, "=")
		switch {
		case !strings.HasPrefix(name, "--include") && !strings.HasPrefix(name, "--exclude"), name == "--exclude-dir", takesNext(program, words, i):
		case name != "--include" || !joined || strings.Contains(value, shell.Unknown):
			return nil
		default:
			patterns = append(patterns, value)
		}
	}
	return patterns
}

// folderOperands returns the names of the folders that a command may use. Programs that
// search take the present folder if they are given none.
func folderOperands(program string, words []string) (names []string) {
	files, base := withoutDestination(program, filesIn(words)), ""
	for i, w := range files[1:] {
		if program == "tar" && slices.Contains([]string{"-C", "--cd", "--directory"}, words[i]) { // for what comes after it
			base = w + "/"
		}
		for _, name := range namesIn(w) {
			if !filepath.IsAbs(name) && base != w+"/" {
				name = base + name
			}
			names = append(names, name)
		}
		if before, _, ok := strings.Cut(w, ":"); ok { // docker run -v FOLDER:PLACE
			names = append(names, namesIn(before)...)
		}
	}
	if slices.Contains([]string{"ack", "ag", "find", "grep", "rg"}, program) && !givesFolder(program, words) {
		names = append(names, ".")
	}
	return names
}

// withoutDestination returns the words of a command without the last operand of programs
// that write there, and use what stands before it. An option can name the destination.
func withoutDestination(program string, words []string) []string {
	isOption := func(w string) bool { return strings.HasPrefix(w, "-") }
	namesIt := func(w string) bool { return isReaching("-t --target-directory", w) }
	if !slices.Contains([]string{"cp", "ln", "mv", "rsync", "scp"}, program) || slices.ContainsFunc(words[1:], namesIt) {
		return words
	}
	last, operands := 0, 0
	for i, w := range words[1:] {
		if w != "" && !isOption(w) {
			last = i + 1
			operands++
		}
	}
	if operands < 2 {
		return words
	}
	return slices.Concat(words[:last], []string{""}, words[last+1:])
}

// givesFolder reports whether a command that searches says where: it has more operands than
// the text that it looks for and the values of its options.
func givesFolder(program string, words []string) bool {
	if program == "find" {
		return len(words) > 1 && !strings.HasPrefix(words[1], "-")
	}
	operands, others := 0, 1
	if surelyGivesText(program, words) {
		others = 0
	}
	for i, w := range words[1:] {
		switch {
		case !strings.HasPrefix(w, "-") || w == "-":
			operands++
		case takesNext(program, words, i+1):
			others++
		}
	}
	return operands > others
}

// has reports whether the command uses a path that is below the folder.
func (t tree) has(on disk.Source, path string) bool {
	rel, err := filepath.Rel(t.dir, path)
	if err != nil || !filepath.IsLocal(rel) {
		return false
	}
	for at := rel; at != "."; at = filepath.Dir(at) {
		if t.visible && strings.HasPrefix(filepath.Base(at), ".") && !isShown(t.shown, filepath.Base(at)) && t.isHidden(on, path) || slices.Contains(t.excluded, at) || slices.Contains(t.excluded, filepath.Base(at)) {
			return false
		}
	}
	isIncluded := func(pattern string) bool {
		matches, err := filepath.Match(pattern, filepath.Base(rel))
		return matches || err != nil
	}
	return t.included == nil || slices.ContainsFunc(t.included, isIncluded) || on.Ask(disk.Question{Kind: disk.Folder, Path: path}).OK
}

// isHidden reports whether no file of a project with patterns for searches says that a path
// is to be searched although it begins with a dot.
func (t tree) isHidden(on disk.Source, path string) bool {
	return on.Ask(disk.Question{Kind: disk.Hidden, Path: path}).OK
}

// usesTreeAbove reports whether a command uses a folder above what a rule is about, with
// all that is below it. Of a pattern that begins with a star it is not known where the
// files are, and whether there are any.
func (d *reading) usesTreeAbove(u rule, dirs []string) bool {
	fixed := u.pattern
	if at := strings.IndexAny(fixed, "*?[{"); at >= 0 {
		fixed = fixed[:strings.LastIndexByte(fixed[:at], '/')+1]
	}
	if filepath.Clean(fixed) == "." {
		return false
	}
	return slices.ContainsFunc(dirs, func(dir string) bool {
		place := absolute(dir, fixed)
		return slices.ContainsFunc(d.trees, func(t tree) bool {
			return (u.isWrite() && t.changes || !u.isWrite() && t.reads) && t.has(d.disk, place) && exists(d.disk, place)
		})
	})
}

// usesDenied returns the place that the scope denies below a folder that a command uses
// as a whole, or "".
func (d *reading) usesDenied(s *scope.Scope) string {
	for _, t := range d.trees {
		var places []string
		if t.reads {
			places = s.Denied(scope.Read)
		}
		if t.changes {
			places = append(places, s.Denied(scope.Write)...)
		}
		if at := slices.IndexFunc(places, func(place string) bool { return t.has(d.disk, place) && exists(d.disk, place) }); at >= 0 {
			return places[at]
		}
	}
	return ""
}
