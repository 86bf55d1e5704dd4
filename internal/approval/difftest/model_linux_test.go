package difftest

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/abide-run/abide/internal/approval/shell"
)

// A model says what a script has to do, from the words that were judged alone.
type model struct {
	request
	probed  map[string]string
	choices uint // statuses of builtins, which are not known: one bit each

	asked    int    // number of choices that were used
	dir      string // working directory
	stopped  bool   // true after exit
	made     map[string]bool
	touched  map[string]bool // files that a redirection wrote to
	silent   bool            // true if nobody but recorders ran: nothing is written into files
	runs     [][]record      // records of each pipe, in any order within the pipe
	truncate bool            // true if a program of the project was overwritten
}

// newModel returns a model for a run of which the response is known.
func newModel(r request, res response, choices uint) *model {
	m := &model{request: r, choices: choices, dir: project, silent: true}
	m.probed, m.made, m.touched = map[string]string{}, map[string]bool{}, map[string]bool{}
	for i, p := range r.Probes {
		m.probed[p] = res.Probed[i]
	}
	return m
}

// pathsOf returns the paths that a script depends on.
func pathsOf(commands []shell.Simple) []string {
	var list []string
	for _, c := range commands {
		for _, w := range c.Words {
			if strings.Contains(w, "/") {
				list = append(list, w)
			}
		}
		for _, r := range c.Redirects {
			if r.Op != ">&" {
				list = append(list, r.To)
			}
		}
	}
	return list
}

// run computes what the commands do.
func (m *model) run(commands []shell.Simple) {
	ok := true
	for i := 0; i < len(commands) && !m.stopped; {
		end := i + 1
		for end < len(commands) && commands[end].Joint == "|" {
			end++
		}
		if j := commands[i].Joint; j == "" || j == ";" || ok == (j == "&&") {
			ok = m.runPipe(commands[i:end])
		}
		i = end
	}
}

// runPipe runs commands that are joined by pipes and reports whether the last one
// succeeds.
func (m *model) runPipe(commands []shell.Simple) bool {
	var records []record
	ok := true
	for i, c := range commands {
		files := map[int]string{0: "null:r", 1: "out:w", 2: "err:w"}
		if i > 0 {
			files[0] = "pipe"
		}
		if i < len(commands)-1 {
			files[1] = "pipe"
		}
		var r *record
		r, ok = m.runCommand(c, files)
		if r != nil {
			records = append(records, *r)
		}
	}
	m.stopped = m.stopped && len(commands) == 1 // the commands of a pipe have shells of their own
	if len(records) > 0 {
		m.runs = append(m.runs, records)
	}
	return ok
}

// runCommand returns the record of a command, if it has one, and whether it succeeds.
func (m *model) runCommand(c shell.Simple, files map[int]string) (*record, bool) {
	for _, r := range c.Redirects {
		if !m.redirect(r, files) {
			m.silent = false
			m.stopped = m.Shell == "dash" && slices.Contains([]string{":", "exit"}, c.Words[0]) // POSIX wants a special builtin whose redirection fails to end the shell
			return nil, false
		}
	}
	return m.runWords(c.Words, files)
}

// runWords runs the words of a command.
func (m *model) runWords(words []string, files map[int]string) (*record, bool) {
	if m.Builtins || m.Shell == "dash" {
		switch name := words[0]; {
		case name == "command" && len(words) > 2 && words[1] == "--":
			return m.runWords(words[2:], files)
		case name == "command" && len(words) > 1 && words[1] != "-v":
			return m.runWords(words[1:], files)
		case name == "cd":
			return nil, m.changeDir(words[1])
		case name == "command", slices.Contains(harmlessBuiltins, name):
			m.silent = false
			m.stopped = name == "exit"
			return nil, m.choose()
		}
	}
	executed, found := m.find(words[0])
	if !found {
		m.silent = false
		return nil, false
	}
	env := append([]string{"PWD=" + m.dir}, baseEnv...)
	r := &record{Path: executed, Args: words, Dir: m.dir, Env: env, Files: files}
	return r, m.Status == '0' || m.Status == 'h' && statusOf(words) == 0
}

// changeDir changes to a folder if it is there.
func (m *model) changeDir(dir string) bool {
	m.silent = false
	if m.Enter != dir {
		return false
	}
	m.dir = absolute(dir)
	return true
}

func absolute(name string) string {
	if path.IsAbs(name) {
		return path.Clean(name)
	}
	return path.Join(project, name)
}

// choose returns the next of the choices.
func (m *model) choose() bool {
	m.asked++
	return m.choices>>(m.asked-1)&1 == 0
}

// find returns the path by which a program is executed.
func (m *model) find(name string) (string, bool) {
	switch {
	case strings.Contains(name, "/"):
		return name, m.probed[name] == "program"
	case slices.Contains(programNames, name) || name == path.Base(recorder):
		return "/usr/bin/" + name, true
	}
	return "/rec/missing", m.Shell == "bash"
}

// harmlessBuiltins are the builtins that change nothing in the shell but to end it.
var harmlessBuiltins = strings.Fields("echo printf pwd test [ true false : type exit")

// redirect opens the file of a redirection. It reports whether that succeeds.
func (m *model) redirect(r shell.Redirect, files map[int]string) bool {
	if r.Op == ">&" {
		files[r.FD] = files[int(r.To[0]-'0')]
		return true
	}
	at := path.Clean(r.To)
	if !path.IsAbs(at) {
		at = path.Join(m.dir, at)
	}
	is := m.probed[r.To]
	if m.made[at] && is == "free" {
		is = "file"
	}
	if at == "/dev/null" && is == "file" {
		at = "null"
	}
	switch {
	case r.Op == "<" && is != "free" && is != "none":
		files[r.FD] = installedAs(at) + ":r"
		return true
	case r.Op == "<" || is == "dir" || is == "none":
		return false
	}
	files[r.FD] = at + map[string]string{">": ":w", ">>": ":a"}[r.Op]
	m.write(at, is, r.Op)
	return true
}

// installedAs returns the name by which an open file is known. All programs that are
// installed are one file, and /bin is a link to their folder.
func installedAs(at string) string {
	if at == "/bin" || strings.HasPrefix(at, "/bin/") {
		at = "/usr" + at
	}
	if dir, name := path.Split(at); dir == "/usr/bin/" && slices.Contains(programNames, name) {
		return recorder
	}
	return at
}

// write notes that a redirection wrote to a file.
func (m *model) write(at, is, op string) {
	if at == "null" {
		return
	}
	m.made[at] = m.made[at] || is == "free"
	m.touched[at] = true
	m.truncate = m.truncate || is == "program" && op == ">"
}

// statusOf returns the status of a recorder that depends on its words.
func statusOf(args []string) int {
	sum := uint32(2166136261)
	for _, a := range args {
		for i := range len(a) {
			sum = (sum ^ uint32(a[i])) * 16777619
		}
		sum *= 16777619
	}
	return int(sum>>7) & 1
}

// compare returns how what a script did differs from the model, or "".
func (m *model) compare(res response) string {
	if res.Err != "" {
		return res.Err
	}
	rest := res.Records
	for i, want := range m.runs {
		if len(rest) < len(want) {
			return fmt.Sprintf("pipe %d: %d programs were executed, want %s", i+1, len(rest), show(want...))
		}
		if diff := compareRecords(rest[:len(want)], want); diff != "" {
			return fmt.Sprintf("pipe %d: %s", i+1, diff)
		}
		rest = rest[len(want):]
	}
	if len(rest) > 0 {
		return "executed, and not judged: " + show(rest...)
	}
	return m.compareChanges(res.Changes)
}

func compareRecords(got, want []record) string {
	left := slices.Clone(want)
	for _, g := range got {
		at := slices.IndexFunc(left, func(w record) bool { return sameRecord(g, w) })
		if at < 0 {
			return fmt.Sprintf("executed %s, judged %s", show(g), show(left...))
		}
		left = slices.Delete(left, at, at+1)
	}
	return ""
}

func sameRecord(a, b record) bool {
	return a.Path == b.Path && slices.Equal(a.Args, b.Args) && a.Dir == b.Dir &&
		slices.Equal(variables(a), variables(b)) && maps.Equal(a.Files, b.Files)
}

// variables returns the environment of a record without what every shell sets.
func variables(r record) []string {
	ours := slices.DeleteFunc(slices.Clone(r.Env), func(v string) bool {
		return slices.ContainsFunc([]string{"_=", "SHLVL=", "OLDPWD="}, func(name string) bool { return strings.HasPrefix(v, name) })
	})
	slices.Sort(ours)
	return ours
}

func show(records ...record) string {
	var b strings.Builder
	for _, r := range records {
		fmt.Fprintf(&b, "\n    %s %q in %s", r.Path, r.Args, r.Dir)
		for _, fd := range slices.Sorted(maps.Keys(r.Files)) {
			fmt.Fprintf(&b, " %d=%s", fd, r.Files[fd])
		}
		for _, v := range variables(r) {
			if !slices.Contains(baseEnv, v) {
				fmt.Fprintf(&b, " %q", v)
			}
		}
	}
	return b.String()
}

func (m *model) compareChanges(changes []change) string {
	seen := map[string]bool{}
	for _, c := range changes {
		seen[c.Path] = true
		switch {
		case !m.touched[c.Path]:
			return fmt.Sprintf("%s was %q and is %q, and no judged redirection names it", c.Path, c.Was, c.Is)
		case m.silent && !strings.HasSuffix(c.Is, " "): // type and mode, a blank, no content
			return fmt.Sprintf("%s was %q and is %q, want an empty file", c.Path, c.Was, c.Is)
		}
	}
	for at := range m.made {
		if m.made[at] && !seen[at] {
			return at + " was not made, and a judged redirection names it"
		}
	}
	return ""
}
