package approval

import (
	"cmp"
	"slices"
	"strings"

	"github.com/abide-run/abide/internal/approval/disk"
	"github.com/abide-run/abide/internal/approval/scope"
	"github.com/abide-run/abide/internal/approval/shell"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/lazyregexp"
)

// commandConcernedBy tells whether a rule that denies or asks is about a command line.
func (r *Request) commandConcernedBy(u rule) certainty {
	d := r.reading
	if d == nil { // nobody has read it
		d = &reading{calls: shell.Calls{Hidden: "a command that was not read"}, disk: disk.Here}
	}
	switch {
	case u.pattern == "":
		if (u.concerns(r) || u.tool == "bash") && (u.tool != terminal || r.Terminal) && (u.tool != input || r.Input) && (u.tool != readOnly || d.readsOnly()) {
			return yes
		}
		return no
	case u.isWrite() && d.readsOnly():
		return no
	case pathKind(u.tool):
		return d.namesPath(u, r.Dirs)
	case urlKind(u.tool):
		return d.namesURL(u)
	case !u.concerns(r) && u.tool != "bash", u.tool == terminal && !r.Terminal, u.tool == input && !r.Input:
		return no
	}
	return d.runs(u.words)
}

// runs tells whether a command that the pattern is about may run.
func (d *reading) runs(p wordPattern) certainty {
	best := no
	if d.calls.Hidden != "" || len(p.words) > 0 && p.isSpoken(d.calls.Values) {
		best = maybe
	}
	for _, words := range d.calls.Words {
		best = max(best, p.concernsCommand(words))
	}
	if best == no && d.partial && len(p.words) > 0 && slices.ContainsFunc(d.calls.Words, p.mayFollow) {
		return maybe
	}
	if best == no && len(p.words) > 0 && (p.isSpoken(d.scripts()) || d.copiesProgram(p)) {
		return maybe
	}
	return best
}

// scripts returns the texts that programs may read from their input, or from files that the
// command line has written, and take for scripts.
func (d *reading) scripts() (list []string) {
	for _, in := range d.calls.Inputs {
		if takesScripts(in.Words) {
			list = append(list, in.Text)
		}
	}
	return list
}

// namesPath tells whether a command names a path that the rule is about, or a folder if
// the rule is about all that is in it.
func (d *reading) namesPath(u rule, dirs []string) certainty {
	const each = "\x01" // a name that stands for all names in a folder
	if slices.ContainsFunc(d.paths, func(path string) bool { return u.covers(path, dirs) || u.covers(path+"/"+each, dirs) }) {
		return yes
	}
	end := u.pattern[strings.LastIndexAny(u.pattern, "*?[]{}")+1:]
	isFolder := slices.ContainsFunc(dirs, func(dir string) bool { return d.isDir(absolute(dir, u.pattern)) })
	if d.mayName(end, isFolder) || d.usesTreeAbove(u, dirs) || !u.isWrite() && d.showsLinks() {
		return maybe
	}
	return no
}

// mayName reports whether a word of which a part is not known may name a path with this
// end, or, of a folder, a path below it.
func (d *reading) mayName(end string, isFolder bool) bool {
	if d.calls.Hidden != "" || len(d.paths) >= maxPaths || d.usesProcess() {
		return true
	}
	// A shell cannot have changed to a folder that is denied as a whole.
	if d.fed && !isFolder && slices.ContainsFunc(d.relativeNames(), func(name string) bool { return end != "" && strings.HasSuffix("/"+end, "/"+name) }) {
		return true
	}
	return slices.ContainsFunc(append(d.unknownWords(), d.roamingWords()...), func(w string) bool {
		tail := w[strings.LastIndex(w, shell.Unknown)+1:]
		if isFolder && strings.Contains(tail, "/") {
			return true
		}
		return strings.HasSuffix(tail, end) || strings.HasSuffix(end, tail)
	})
}

func (d *reading) isDir(path string) bool {
	return d.disk.Ask(disk.Question{Kind: disk.Folder, Path: path}).OK
}

// A denial is what a denied place of the scope says of a command that names paths.
type denial struct {
	certainty certainty
	place     string // path that is denied, or path in it
}

// deniedIn tells whether a command names a path that the scope of the session denies. A
// command that only reads may name what is denied to be written.
func (d *reading) deniedIn(s *scope.Scope) denial {
	mode := scope.Write
	if d.readsOnly() {
		mode = scope.Read
	}
	if s == nil || len(s.Denied(mode)) == 0 {
		return denial{}
	}
	for _, path := range d.paths {
		if f, err := d.disk.Judge(s, path, mode); err == nil && f.Verdict == scope.Denied {
			return denial{yes, path}
		}
	}
	for _, place := range s.Denied(mode) {
		if d.mayName(place, d.isDir(place)) {
			return denial{maybe, place}
		}
	}
	if place := d.usesDenied(s); place != "" {
		return denial{maybe, place}
	}
	if read := s.Denied(scope.Read); len(read) > 0 && d.showsLinks() {
		return denial{maybe, read[0]}
	}
	return denial{}
}

// usesProcess reports whether a word leads by way of a process to files with other names.
func (d *reading) usesProcess() bool {
	return slices.ContainsFunc(slices.Concat(append(d.calls.Words, d.calls.Files, d.paths)...), processPath.MatchString)
}

var processPath = lazyregexp.New(`/dev/fd|/proc/.*(cwd|root|fd|map_files)`)

// speaksOf reports whether a script in another language has this text.
func (d *reading) speaksOf(text string) bool {
	if text == "" {
		return false
	}
	has := func(w string) bool { return strings.Contains(w, text) }
	return slices.ContainsFunc(d.scripts(), has) || slices.ContainsFunc(d.calls.Words, func(words []string) bool {
		return slices.ContainsFunc(textsThatRun(words), has)
	})
}

// unknownWords returns the words of which a part is not known in advance.
func (d *reading) unknownWords() []string {
	return slices.DeleteFunc(slices.Concat(append(d.calls.Words, d.calls.Files)...), func(w string) bool { return !strings.Contains(w, shell.Unknown) })
}

// roamingWords returns the words that may name a file in a folder that is not known in
// advance, as paths of which the start is not known.
func (d *reading) roamingWords() (list []string) {
	if !d.roams {
		return nil
	}
	for _, name := range d.relativeNames() {
		list = append(list, shell.Unknown+"/"+name)
	}
	return list
}

// relativeNames returns the names of files that words may have, without ./ in front.
func (d *reading) relativeNames() (list []string) {
	for _, w := range slices.Concat(append(d.calls.Words, d.calls.Files)...) {
		for _, name := range namesIn(w) {
			list = append(list, strings.TrimPrefix(name, "./"))
		}
	}
	return list
}

// readsOnly reports whether all commands are in the table of those that only read, and no
// output goes to a file.
func (d *reading) readsOnly() bool {
	return len(d.steps) > 0 && d.blocked == "" && !slices.ContainsFunc(d.steps, func(s step) bool { return s.obscure != "" || slices.Contains(s.readOnly, false) }) &&
		!slices.ContainsFunc(d.targets, func(t target) bool { return t.kind == Write })
}

// allowedCommand decides whether rules, and grants, allow every command and every
// redirection of a command line. The rules in about concern commands; of all rules, those
// about files count for redirections.
func (r *Request) allowedCommand(about []rule, rules []string, grants []event.Grant) Decision {
	d := r.reading
	switch {
	case d == nil || r.Plain == nil && d.blocked == "":
		return Decision{Verdict: Ask}
	case d.blocked != "":
		return Decision{Verdict: Ask, Reason: d.blocked}
	}
	about = slices.DeleteFunc(about, func(u rule) bool {
		return r.Terminal && u.tool != terminal || r.Input && u.tool != terminal && u.tool != input
	})
	to := Decision{Verdict: Grant, By: ByRule, Judged: r.Plain}
	targets := slices.Clone(d.targets)
	for _, st := range d.steps {
		if i := slices.IndexFunc(grants, func(g event.Grant) bool { return coversCommand(g, r, st.simple) }); i >= 0 {
			if to.By = ByGrant; !slices.ContainsFunc(to.Grants, grants[i].Equal) {
				to.Grants = append(to.Grants, grants[i])
			}
			continue
		}
		used, ok := st.namedBy(about)
		if !ok {
			used, ok = st.allowedBy(about)
			targets = append(targets, st.writes...)
		}
		if !ok {
			return Decision{Verdict: Ask, Reason: cmp.Or(st.obscure, st.judgedAs(about))}
		}
		for _, text := range used {
			to.Rules = addOnce(to.Rules, text)
		}
	}
	for _, t := range targets {
		text, ok := r.allowsTarget(t, rules)
		if !ok {
			return Decision{Verdict: Ask, Reason: "it " + t.how + " " + t.path + ", which is outside of what the session may " + t.kind}
		}
		if text != "" {
			to.Rules = addOnce(to.Rules, text)
		}
	}
	if to.Rules == nil && to.Grants == nil { // it only changes to a folder
		return Decision{Verdict: Ask}
	}
	return to
}

// namedBy returns the rule that has exactly the words of a command.
func (st step) namedBy(about []rule) (used []string, ok bool) {
	for _, u := range about {
		if u.pattern != "" && u.tool != readOnly && u.words.exact() && slices.Equal(u.words.words, st.simple.Words) {
			return []string{u.text}, true
		}
	}
	return nil, false
}

// judgedAs says that a rule is about the words of a command, which does not help, because
// another command that it runs is judged in its place. It returns "" if no rule is.
func (st step) judgedAs(about []rule) string {
	if len(st.runs) == 0 || slices.Equal(st.runs[0].Words, st.simple.Words) || !shell.RunsAnother(programOf(st.simple.Words)) {
		return ""
	}
	at := slices.IndexFunc(about, func(u rule) bool { return u.pattern != "" && u.words.allows(st.simple.Words) })
	if at < 0 {
		return ""
	}
	return "the rule " + about[at].text + " is not enough: " + programOf(st.simple.Words) + " runs " + programOf(st.runs[0].Words) + ", and no rule allows that"
}

// allowedBy returns the rules that allow a command: one for each of the commands that it
// runs.
func (st step) allowedBy(about []rule) (used []string, ok bool) {
	if st.obscure != "" {
		return nil, false
	}
	for i, run := range st.runs {
		at := slices.IndexFunc(about, func(u rule) bool {
			return (u.tool != readOnly || st.readOnly[i]) && (u.pattern == "" || u.words.allows(run.Words) && u.words.names(st.elsewhere[i]))
		})
		if at < 0 {
			return nil, false
		}
		used = addOnce(used, about[at].text)
	}
	return used, true
}

// allowsTarget reports whether the scope of the session or a rule about files allows a
// target, and returns the rule.
func (r *Request) allowsTarget(t target, rules []string) (text string, ok bool) {
	if t.allowed {
		return "", true
	}
	asFile := &Request{Kind: t.kind, Details: []string{t.path}, Dirs: r.Dirs}
	d := asFile.allowedBy(rules, nil)
	return strings.Join(d.Rules, ", "), d.Verdict == Grant
}
