package approval

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/abide-run/abide/internal/approval/disk"
	"github.com/abide-run/abide/internal/approval/scope"
	"github.com/abide-run/abide/internal/approval/shell"
)

// Surroundings are where and how a command line runs.
type Surroundings struct {
	Dir        string       // folder that it runs in
	Home       string       // working directory of the session
	Terminal   bool         // true if it has a terminal
	Input      bool         // true if it can be given input while it runs
	Fed        bool         // true if the text is itself input for a running command
	Edited     bool         // true if such input has keys that change what was typed
	Unfinished bool         // true if such input ends within a line
	SearchPath string       // value of PATH
	Scope      *scope.Scope // files that the session may use; nil for Home alone
	// Protected reports whether a path may not be changed unasked, and why. Nothing is
	// protected if it is nil.
	Protected func(path string) (reason string, ok bool)
	Disk      disk.Source              // answers for the machine that it runs on; nil for this one
	inside    map[disk.Question]string // for folders that git was found to run in, what insideOf says of them
}

// A reading is what a request of kind Shell will do, as far as it is understood.
type reading struct {
	blocked   string // reason that no rule about words allows it; empty if one can
	protected string // reason that a redirection needs a person's yes; empty if none does
	linked    bool   // true if a link leads to a folder or a file that the words do not name
	searched  int    // number of files that were searched for repositories
	looked    int    // number of files of redirections, and of those that sed changes
	steps     []step
	targets   []target
	calls     shell.Calls
	paths     []string // paths that words of the command may stand for, and where they lead
	trees     []tree   // folders that commands use with all that is below them
	roams     bool     // true if commands run in folders that are not known in advance
	fed       bool     // true if it is input for a running command, which may have changed its folder
	partial   bool     // true if such input ends within a line, which later input continues
	denied    denial   // finding of the session's scope about the paths
	disk      disk.Source
}

// A step is a command of the script.
type step struct {
	simple   shell.Simple
	runs     []shell.Run
	readOnly []bool   // one element for each of runs
	obscure  string   // reason that only a rule with exactly these words allows it; empty if others can
	writes   []target // files that sed -i changes, and those that an option of a runner names
	// elsewhere are, for each of runs, the words that name something outside of the session's
	// files, if the program runs what a project tells it to.
	elsewhere [][]string
}

// A target is a file of a redirection, or one that sed changes in place.
type target struct {
	path    string // path without links
	kind    string // Read or Write
	how     string // description of the access, for people
	allowed bool   // true if the scope of the session allows it
}

const (
	maxPaths    = 2000    // maximum number of paths that words of a command are taken for
	maxSearched = 3000    // maximum number of files that are searched for repositories
	maxTargets  = 200     // maximum number of files of redirections, and of those that sed changes
	maxPath     = 4 << 10 // maximum length of a path that the system opens
)

// ReadCommand describes a command line in a request of kind Shell. It looks at files, which
// Judge does not.
func (r *Request) ReadCommand(s *shell.Script, in Surroundings) {
	r.Terminal, r.Input = in.Terminal, in.Input || in.Terminal
	if in.Disk == nil {
		in.Disk = disk.Here
	}
	r.Dirs = withoutLinks(in.Disk, in.Home)
	r.Dir = last(withoutLinks(in.Disk, in.Dir))
	if r.Dir != last(r.Dirs) {
		r.Elsewhere = r.Dir
	}
	d := &reading{calls: s.Calls(), fed: in.Fed, partial: in.Unfinished, disk: in.Disk}
	in.inside = make(map[disk.Question]string)
	r.reading = d
	plain, err := s.Plain()
	switch {
	case in.Fed:
		d.blocked = "it is input for a running command"
		if in.Edited {
			d.calls.Hidden = "keys that change what was typed"
		}
	case err != nil:
		d.blocked = "it has " + err.Error()
	default:
		r.Plain = plain
		d.calls = shell.Parse(plain.String()).Calls()
	}
	d.addSpellings(in.Dir)
	dirs := []string{in.Dir}
	if r.Plain != nil {
		if dir := r.Plain.Dir(); dir != "" {
			dirs = append(dirs, absolute(in.Dir, dir))
			real, ok := follow(in.Disk, r.Dir, dir)
			d.linked = ok && real != absolute(r.Dir, dir)
		}
		d.describe(r.Plain, dirs, in)
		r.Protected = d.protected
	}
	all, known := d.foldersOf(d.calls, in.Dir)
	d.roams = !known
	d.paths = d.namedPaths(all)
	d.trees = d.treesOf(all)
	d.denied = d.deniedIn(in.Scope)
	if known, ok := in.Disk.(*disk.Known); ok && !known.Complete() {
		d.block("what it uses on its machine is not known")
	}
}

func last(list []string) string { return list[len(list)-1] }

// withoutLinks returns a path, and where it leads if that differs.
func withoutLinks(on disk.Source, path string) []string {
	if real, ok := follow(on, path, "."); ok && real != path {
		return []string{path, real}
	}
	return []string{path}
}

// describe describes the commands of a script that runs in one of dirs.
func (d *reading) describe(p *shell.Plain, dirs []string, in Surroundings) {
	trusted := in.Trusted
	for _, dir := range dirs {
		d.block(in.outside(dir))
	}
	for _, c := range p.Commands() {
		st := step{simple: c}
		var err error
		if st.runs, err = c.Runs(); err != nil {
			st.obscure = "it has " + err.Error()
		} else if program := st.takesCommands(); program != "" {
			st.obscure = program + " takes its input for commands"
		}
		for _, run := range st.runs {
			st.readOnly = append(st.readOnly, run.ReadOnly(trusted))
			var elsewhere []string
			for _, dir := range dirs {
				elsewhere = append(elsewhere, in.elsewhere(run, dir)...)
				d.block(in.foreign(run, dir))
				d.addWrites(&st, run, dir, in)
			}
			st.elsewhere = append(st.elsewhere, elsewhere)
		}
		d.steps = append(d.steps, st)
		for _, redirect := range c.Redirects {
			for _, dir := range dirs {
				d.addTarget(redirect, dir, in)
			}
		}
	}
	for _, dir := range dirs {
		d.block(d.displaced(p, dir))
	}
}

func (d *reading) block(why string) {
	if d.blocked == "" {
		d.blocked = why
	}
}

// Trusted reports whether the program that a shell finds for a name is one of the system
// that it runs on.
func (in Surroundings) Trusted(name string) bool {
	on := in.Disk
	if on == nil {
		on = disk.Here
	}
	return on.Ask(disk.Question{Kind: disk.Program, Path: name, With: in.SearchPath}).OK
}

// outside says that a folder is not one of the session's. It returns "" if it is.
func (in Surroundings) outside(dir string) string {
	if dir == in.Home {
		return ""
	}
	if in.Scope != nil {
		if f, err := in.Disk.Judge(in.Scope, dir, scope.Read); err == nil && f.Verdict == scope.Allowed {
			return ""
		}
	}
	return "it runs in " + dir + ", which is outside of the folders of the session"
}

// foreign says that git would run in a folder that is not one of the session's, or in a
// repository that is not the session's own, though it may be below it: its configuration
// came with its files, and may name programs to run. Links are followed as git follows
// them. It returns "" if neither is so.
func (in Surroundings) foreign(run shell.Run, dir string) string {
	if filepath.Base(run.Words[0]) != "git" {
		return ""
	}
	home, exists := follow(in.Disk, in.Home, ".")
	at, found := follow(in.Disk, dir, run.Dir)
	switch {
	case !exists: // nothing of it can be looked at
		home, at = in.Home, absolute(dir, run.Dir)
	case !found:
		return "git would run in " + absolute(dir, run.Dir) + ", which cannot be followed"
	}
	if run.Dir != "" && at != home {
		if why := in.outside(at); why != "" {
			return why
		}
	}
	own, there := in.Disk.Ask(disk.Question{Kind: disk.Place, Path: home}), in.Disk.Ask(disk.Question{Kind: disk.Place, Path: at})
	if there != own && (there.OK || own.OK) {
		return "git would run in another repository, " + there.Text
	}
	if why := in.insideOf(at, fillsIndex(run)); why != "" {
		return why
	}
	return in.otherRepository(run, at)
}

// gitFilling are the subcommands of git that can put another repository in the index.
var gitFilling = strings.Fields("add am apply bisect checkout cherry-pick merge mv pull read-tree rebase reset restore revert stage stash switch update-index")

// fillsIndex reports whether a git command can put a repository in the index that was not
// in it when the command was judged: one that a commit names, or one of the work tree.
func fillsIndex(run shell.Run) bool {
	lists := len(run.Words) > 2 && run.Words[1] == "stash" && (run.Words[2] == "list" || run.Words[2] == "show")
	return len(run.Words) > 1 && slices.Contains(gitFilling, run.Words[1]) && !lists
}

// insideOf says that git, run in a folder, would run in a repository inside of its work tree
// whose configuration runs code: one of the index, or any if the index may get another. It
// returns "" if there is none.
func (in Surroundings) insideOf(dir string, whole bool) string {
	q := disk.Question{Kind: disk.Submodules, Path: dir}
	if whole {
		q.With = disk.WholeTree
	}
	why, known := in.inside[q]
	if known {
		return why
	}
	if a := in.Disk.Ask(q); a.OK {
		why = "git would run in another repository, " + a.Text + ", whose configuration runs code: " + a.More
	}
	in.inside[q] = why
	return why
}

// addTarget describes the file of a redirection.
func (d *reading) addTarget(redirect shell.Redirect, dir string, in Surroundings) {
	if redirect.Op == ">&" || redirect.To == "/dev/null" {
		return
	}
	kind := Write
	if redirect.Op == "<" {
		kind = Read
	}
	t, why := d.describeTarget(target{path: redirect.To, kind: kind, how: "has a redirection to"}, dir, in)
	d.block(why)
	if in.Scope != nil && !t.allowed && t.path != absolute(last(withoutLinks(in.Disk, dir)), redirect.To) {
		d.linked = true
	}
	d.targets = append(d.targets, t)
}

// addWrites describes the files that sed changes in place, and those that options such as
// go build -o name. A rule such as bash(sed -n *) says nothing of them.
func (d *reading) addWrites(st *step, run shell.Run, dir string, in Surroundings) {
	files := writtenFiles(run.Words)
	if programOf(run.Words) == "sed" {
		files, _ = editedFiles(run.Words[1:])
	}
	for _, name := range files {
		t, why := d.describeTarget(target{path: name, kind: Write, how: "changes"}, dir, in)
		if st.obscure == "" {
			st.obscure = why
		}
		st.writes = append(st.writes, t)
	}
}

// describeTarget completes what is known of a file whose path is relative to a folder. The
// text says why no rule about files can allow it; it is empty if one can.
func (d *reading) describeTarget(t target, dir string, in Surroundings) (_ target, why string) {
	name := t.path
	t.path = absolute(dir, name)
	if d.looked++; d.looked > maxTargets { // each takes time, and any of them may be protected
		d.protected = cmp.Or(d.protected, t.path+": there are too many files to look at each of them")
		return t, fmt.Sprintf("it %s more than %d files", t.how, maxTargets)
	}
	mode := scope.Write
	if t.kind == Read {
		mode = scope.Read
	}
	// The system follows links before .., so that a path with both leads elsewhere than it seems.
	if slices.Contains(strings.Split(name, "/"), "..") {
		why = "it " + t.how + " a path with .. in it"
	}
	if in.Scope != nil {
		f, err := in.Disk.Judge(in.Scope, t.path, mode)
		if err != nil {
			return t, fmt.Sprintf("it %s what cannot be followed: %v", t.how, err)
		}
		t.allowed = f.Verdict == scope.Allowed
		if f.Verdict == scope.Denied {
			why = "it " + t.how + " " + t.path + ", which is denied"
		}
		d.protect(in, t)
		t.path = f.Path
		if d.protected == "" && t.kind == Write && f.Protected != "" { // on the machine that it runs on
			d.protected = t.path + ": " + f.Protected
		}
	}
	d.protect(in, t)
	if isBelow(t.path, "/dev") || isBelow(t.path, "/proc") || isBelow(absolute(dir, name), "/dev") {
		why = "it " + t.how + " a device"
	}
	return t, why
}

func (d *reading) protect(in Surroundings, t target) {
	if in.Protected == nil || t.kind != Write || d.protected != "" {
		return
	}
	if reason, ok := in.Protected(t.path); ok {
		d.protected = t.path + ": " + reason
	}
}

func isBelow(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }

func absolute(dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

// follow returns where a path, seen from a folder, leads. The system follows links before
// .., so that a path with both leads elsewhere than it seems.
func follow(on disk.Source, dir, path string) (real string, ok bool) {
	if !filepath.IsAbs(path) {
		path = dir + "/" + path
	}
	a := on.Ask(disk.Question{Kind: disk.Leads, Path: path})
	return a.Text, a.OK
}

// namedPaths returns the paths that words of commands may stand for. Words with parts that
// are not known are not followed.
func (d *reading) namedPaths(dirs []string) []string {
	var paths []string
	found := map[string]bool{}
	add := func(path string) {
		if !found[path] {
			found[path] = true
			paths = append(paths, path)
		}
	}
	all := slices.Clone(d.calls.Files)
	for _, words := range d.calls.Words {
		all = append(all, filesIn(words)...)
		all = append(all, placedFiles(words)...)
		for _, text := range textsThatRun(words) { // a script in another language
			all = append(all, namesOf(text)...)
		}
	}
	for _, text := range d.scripts() {
		all = append(all, namesOf(text)...)
	}
	seen := map[string]bool{}
	for _, w := range all {
		for _, name := range namesIn(w) {
			if seen[name] || len(found) >= maxPaths || len(filepath.Clean(name)) > maxPath {
				continue
			}
			seen[name] = true
			for _, dir := range dirs {
				add(absolute(dir, name))
				if real, ok := follow(d.disk, dir, name); ok {
					add(real)
				}
			}
		}
	}
	return paths
}
