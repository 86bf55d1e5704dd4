// Package protect knows the files that no agent changes unasked, whatever rules and
// grants say: those that decide what an agent may do, and those that run code later, when
// a person opens a folder, starts a shell or uses git.
//
//   - The list is closed and stands in list.go, each entry with its reason for people.
//   - A path is judged as it is written and by where it leads: links, ".." and another
//     case of letters make no difference, nor does a hard link to a file of the user or
//     of the project at hand that is protected. A file to which a protected name leads is
//     as protected as the name.
//   - A path that cannot be followed is judged by its name.
//   - Nothing is promised about code that a person runs by hand: a Makefile, a test or a
//     script of package.json is not protected.
package protect

import (
	"cmp"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// A List is the protected paths of one machine and one user. It does not change, and is
// safe for concurrent use. The zero List protects what is protected in every folder.
type List struct {
	homes   []string // home directories, as they are written and without links
	configs []string // folders that take the place of .config, in both forms
	data    []string // data folders, in both forms
	files   []string // further files, in both forms
	tools   []string // files that the environment names for programs, in both forms
	git     []string // configuration of git that the environment names, in both forms
}

// Options name what differs between machines and users.
type Options struct {
	Homes  []string // home directories of the user
	Config string   // folder that programs use in place of ~/.config; may be empty
	Data   string   // data folder of abide; may be empty
	Files  []string // further configuration files of abide
	Named  []string // files that programs read in place of those in the home directory
	Git    []string // configuration of git that takes the place of that in the home directory
}

// New returns a list.
func New(o Options) List {
	l := List{homes: bothForms(o.Homes...), files: bothForms(o.Files...), tools: bothForms(o.Named...), git: bothForms(o.Git...)}
	if o.Config != "" {
		l.configs = bothForms(o.Config)
	}
	if o.Data != "" {
		l.data = bothForms(o.Data)
	}
	return l
}

// ForUser returns the list of the present user.
func ForUser(dataFolder string, files ...string) List {
	return New(Options{
		Homes: userHomes(), Config: os.Getenv("XDG_CONFIG_HOME"), Data: dataFolder, Files: files,
		Named: namedFiles(os.Getenv, toolVariables), Git: namedFiles(os.Getenv, gitVariables),
	})
}

// For returns the list for commands that have another environment than this process: what
// it names is protected, too.
func (l List) For(env []string) List {
	get := func(name string) string {
		for _, entry := range slices.Backward(env) { // the last one counts
			if value, ok := strings.CutPrefix(entry, name+"="); ok {
				return value
			}
		}
		return ""
	}
	homes := slices.DeleteFunc([]string{get("HOME"), get("ZDOTDIR")}, func(home string) bool { return !filepath.IsAbs(home) || filepath.Clean(home) == "/" })
	other := New(Options{Homes: homes, Named: namedFiles(get, toolVariables), Git: namedFiles(get, gitVariables)})
	if config := get("XDG_CONFIG_HOME"); filepath.IsAbs(config) {
		other.configs = bothForms(config)
	}
	l.homes, l.configs = joined(l.homes, other.homes), joined(l.configs, other.configs)
	l.tools, l.git = joined(l.tools, other.tools), joined(l.git, other.git)
	return l
}

// joined returns the paths of two lists, each once.
func joined(a, b []string) []string {
	all := slices.Clone(a)
	for _, path := range b {
		if !slices.Contains(all, path) {
			all = append(all, path)
		}
	}
	return all
}

// Variables of the environment that name files which programs read in place of those in
// the home directory.
var (
	toolVariables = []string{
		"ANSIBLE_CONFIG", "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "BASH_ENV", "ENV", "GOENV", "HGRCPATH", "INPUTRC", "JJ_CONFIG", "KUBECONFIG", "LESSKEY", "NETRC",
		"NPM_CONFIG_USERCONFIG", "npm_config_userconfig", "PIP_CONFIG_FILE", "PSQLRC", "PYTHONSTARTUP", "RIPGREP_CONFIG_PATH", "SCREENRC", "STARSHIP_CONFIG", "TF_CLI_CONFIG_FILE",
		"UV_CONFIG_FILE", "WGETRC",
	}
	gitVariables = []string{"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"}
)

// namedFiles returns the files that variables of an environment name. A device is none.
func namedFiles(get func(name string) string, variables []string) (files []string) {
	for _, v := range variables {
		for _, path := range filepath.SplitList(get(v)) {
			if filepath.IsAbs(path) && !strings.HasPrefix(path, "/dev/") {
				files = append(files, path)
			}
		}
	}
	return files
}

// userHomes returns the home directories of the user: that of the environment, which
// most programs use, that of the system's list of users, which ssh uses, and that of zsh.
func userHomes() []string {
	homes := []string{os.Getenv("ZDOTDIR")}
	if home, err := os.UserHomeDir(); err == nil {
		homes = append(homes, home)
	}
	if me, err := user.Current(); err == nil {
		homes = append(homes, me.HomeDir)
	}
	return slices.DeleteFunc(homes, func(home string) bool { return home == "" || home == "/" })
}

// bothForms returns paths as they are written and without links.
func bothForms(paths ...string) []string {
	var all []string
	for _, path := range paths {
		path = filepath.Clean(path)
		all = append(all, path)
		if real := follow(path); real != path {
			all = append(all, real)
		}
	}
	return all
}

// Protected reports whether a path is protected, and why, in words for people. The path
// should be absolute; it need not exist.
func (l List) Protected(path string) (reason string, ok bool) {
	written := filepath.Clean(path)
	forms := slices.Compact([]string{written, follow(written), follow(path)}) // ".." after a link has two readings
	for _, form := range forms {
		if reason := l.named(form); reason != "" {
			return reason, true
		}
	}
	for _, form := range forms {
		known := l.known(filepath.Dir(form))
		if inRepositoryFolder(form) || isAmong(form, known) { // what has no reason of its own is a file that the configuration of git names
			return reasonGit, true
		}
		if reason := cmp.Or(l.ledTo(form, known), l.linked(form, known)); reason != "" {
			return reason, true
		}
	}
	return "", false
}

// named returns why a path is protected by its name; empty if it is not.
func (l List) named(path string) string {
	names := components(path)
	if reason := l.inData(names); reason != "" {
		return reason
	}
	for _, file := range l.files {
		if slices.Equal(components(file), names) {
			return reasonOwn
		}
	}
	for reason, files := range map[string][]string{reasonTool: l.tools, reasonGit: l.git} {
		if isAmong(path, files) {
			return reason
		}
	}
	for _, home := range l.homes {
		if rest, ok := below(components(home), names); ok {
			if reason := findInHome(rest); reason != "" {
				return reason
			}
		}
	}
	for _, config := range l.configs {
		if rest, ok := below(components(config), names); ok {
			if reason := inHome.find(append([]string{".config"}, rest...)); reason != "" {
				return reason
			}
		}
	}
	if reason := cmp.Or(inSystem.find(names), inSystemCrowded.find(names), inOtherHome(names)); reason != "" {
		return reason
	}
	for i := range names { // each folder of the path may be one of those that are protected anywhere
		if reason := anywhere.find(names[i:]); reason != "" {
			return reason
		}
	}
	if n := len(names); n > 0 && strings.HasSuffix(names[n-1], ".code-workspace") {
		return reasonEditor
	}
	return bareRepository(names)
}

// inOtherHome returns why a path in the home of another user is protected: an administrator
// may write there. Names without a dot are left out, because a project can be in such a folder.
func inOtherHome(names []string) string {
	depth := map[string]int{"home": 2, "root": 1, "users": 2} // names of the home itself
	if len(names) == 0 {
		return ""
	}
	at := depth[names[0]]
	if at == 0 || len(names) <= at || !strings.HasPrefix(names[at], ".") {
		return ""
	}
	return findInHome(names[at:])
}

func findInHome(names []string) string { return cmp.Or(inHome.find(names), inHomeCrowded.find(names)) }

// inData returns why a path in the data folder is protected. The plan of a session and
// the files that it makes for people stand there too, and run no code.
func (l List) inData(names []string) string {
	for _, data := range l.data {
		rest, ok := below(components(data), names)
		if !ok {
			continue
		}
		if len(rest) > 2 && rest[0] == "sessions" && (rest[2] == "files" || len(rest) == 3 && rest[2] == "plan.md") {
			return ""
		}
		return reasonData
	}
	return ""
}

// bareRepository returns why a path in a repository without a work tree is protected:
// such a folder is usually called NAME.git.
func bareRepository(names []string) string {
	for i, name := range names {
		if i+1 < len(names) && strings.HasSuffix(name, ".git") && inRepository.find(names[i+1:]) != "" {
			return reasonGit
		}
	}
	return ""
}

// inRepositoryFolder reports whether a path is one of those that git runs code from, in a
// folder that is a repository or that the write may complete. The folder need not have
// the name of one, because a command can name any folder to git.
func inRepositoryFolder(path string) bool {
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		rest := components(strings.TrimPrefix(path, dir))
		runsCode := inRepository.find(rest) != ""
		if (runsCode || inNewRepository.find(rest) != "") && mayBeRepository(dir, rest[0], runsCode) {
			return true
		}
		if dir == filepath.Dir(dir) {
			return false
		}
	}
}

// mayBeRepository reports whether a folder has so much of a repository that nothing called
// name is to be written there unasked. Without HEAD or commondir there is no repository,
// and so these two are protected as soon as there is anything else of one. The other names
// are common in ordinary folders: they are protected if the folder has one of the two, or
// lacks nothing else and git runs code from the path.
func mayBeRepository(dir, name string, runsCode bool) bool {
	isFile := func(name string) bool {
		info, err := os.Stat(filepath.Join(dir, name))
		return err == nil && !info.IsDir()
	}
	isFolder := func(name string) bool {
		info, err := os.Stat(filepath.Join(dir, name))
		return err == nil && info.IsDir()
	}
	_, err := os.Lstat(filepath.Join(dir, "HEAD")) // it may be a link that leads to nothing
	switch hasHead, hasCommon := err == nil, isFile("commondir"); name {
	case "head":
		return hasCommon || isFile("config") || isFile("config.worktree") || isFolder("objects") || isFolder("refs") || isFolder("hooks")
	case "commondir":
		return hasHead || isFile("config") || isFile("config.worktree") || isFolder("objects") || isFolder("refs") || isFolder("hooks")
	default:
		return hasHead || hasCommon || runsCode && isFolder("objects") && isFolder("refs")
	}
}

// isAmong reports whether a path is one of some files.
func isAmong(path string, files []string) bool {
	names := components(path)
	return slices.ContainsFunc(files, func(other string) bool { return slices.Equal(components(other), names) })
}

// linked returns why a file is protected that has several names, one of which is.
func (l List) linked(path string, known []string) string {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() {
		return ""
	}
	if sys, ok := info.Sys().(*syscall.Stat_t); !ok || sys.Nlink < 2 {
		return ""
	}
	for _, other := range slices.Concat(l.files, known) {
		if same, err := os.Stat(other); err == nil && os.SameFile(info, same) {
			return l.named(other)
		}
	}
	s := linkSearch{list: l, file: info, left: maxSearched}
	return s.find(filepath.Dir(path))
}

// known returns the files that are protected for certain and may exist: those that are
// looked at when a command runs in dir.
func (l List) known(dir string) []string {
	var all []string
	targets, _, _ := l.Watched(dir)
	for _, t := range targets {
		if !t.Parent {
			all = append(all, t.Path)
		}
	}
	return all
}

// A rule protects a file, or a folder with everything below it.
type rule struct {
	names  string // path from where the rule applies; a slash at its end means a folder
	reason string
}

// An index finds rules by their first name, in the form of components.
type index map[string][]indexed

type indexed struct {
	path   string // path in the words of the rule
	names  []string
	folder bool
	reason string
}

func newIndex(rules []rule) index {
	all := make(index)
	for _, r := range rules {
		names := components(r.names)
		first := names[0]
		all[first] = append(all[first], indexed{r.names, names, strings.HasSuffix(r.names, "/"), r.reason})
	}
	return all
}

// find returns the reason of the first rule that a path matches; empty if none does.
func (x index) find(names []string) string {
	if len(names) == 0 {
		return ""
	}
	for _, r := range x[names[0]] {
		if rest, ok := below(r.names, names); ok && (len(rest) == 0 || r.folder) {
			return r.reason
		}
	}
	return ""
}

// components returns the names in a path, in a form that is equal for names that some
// file system takes for the same: many ignore case, and one ignores characters that are
// not shown.
func components(path string) []string {
	return strings.FieldsFunc(strings.ToLower(strings.ToUpper(visible(path))), func(r rune) bool { return r == '/' })
}

// below returns the names after those of a folder.
func below(dir, names []string) ([]string, bool) {
	if len(names) < len(dir) || !slices.Equal(dir, names[:len(dir)]) {
		return nil, false
	}
	return names[len(dir):], true
}

// visible removes the characters that HFS+ ignores in names.
func visible(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 0x200c && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x206a && r <= 0x206f, r == 0xfeff:
			return -1
		}
		return r
	}, name)
}

// follow returns the path without links, as far as it exists. As in the system, ".."
// after a link is the folder above where the link leads.
func follow(path string) string { return followAtMost(path, maxLinks) }

// maxLinks is the number of links in one path that the system follows.
const maxLinks = 40

// followAtMost follows a path through so many links that lead to nothing: a write
// through such a link creates its target.
func followAtMost(path string, links int) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	dir, name := filepath.Split(strings.TrimRight(path, "/"))
	if name == "" || dir == "" {
		return filepath.Clean(path)
	}
	above := followAtMost(dir, links)
	real := filepath.Join(above, name)
	target, err := os.Readlink(real)
	switch {
	case err != nil || links == 0:
		return real
	case filepath.IsAbs(target):
		return followAtMost(target, links-1)
	}
	return followAtMost(above+"/"+target, links-1)
}
