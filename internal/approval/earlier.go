package approval

import (
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/abide-run/abide/internal/approval/disk"
	"github.com/abide-run/abide/internal/approval/shell"
)

// What a command line uses is judged before it runs. An earlier command of the line can put
// something else in its place: a link where a file is to be written, or another repository
// where git is to run. Programs that run the code of a project can do so too, and much
// more, which a person knows who allows them; those here only seem to move files.
var (
	placing   = strings.Fields("7z bsdtar cp cpio gtar install ln mv patch pax rsync scp tar unzip")
	unpacking = strings.Fields("7z bsdtar cpio gtar patch pax rsync scp tar unzip")
	writing   = strings.Fields("cp dd install ln mv rsync tee")
	// gitPlacing are the subcommands of git that write files of a commit, which can be links,
	// or move some.
	gitPlacing = strings.Fields("am apply bisect checkout checkout-index cherry-pick clone merge mv pull read-tree rebase reset restore revert sparse-checkout stash switch worktree")
)

// placesLinks reports whether a command can put links in the place of files.
func placesLinks(run shell.Run) bool {
	program := programOf(run.Words)
	return slices.Contains(placing, program) || program == "git" && len(run.Words) > 1 && slices.Contains(gitPlacing, run.Words[1])
}

// placesRepositories reports whether a command, run in dir, can put another repository, or
// other settings of one, in the place of what git was judged by.
func (d *reading) placesRepositories(run shell.Run, dir string) bool {
	words := run.Words
	if programOf(words) == "git" && len(words) > 1 { // git mv moves folders with all that is in them
		words = words[1:]
	}
	program := programOf(words)
	switch {
	case unpacks(words):
		return true
	case program == "rm":
		return slices.ContainsFunc(words[1:], isHeart) && d.isInsideAnother(dir)
	case program == "ln" && slices.ContainsFunc(d.steps, step.runsElsewhere): // a link can lead below a repository
		return true
	case !slices.Contains(writing, program):
		return slices.Contains(unpacking, program) && slices.ContainsFunc(words[1:], namesGit)
	}
	return len(words) > maxPaths || slices.ContainsFunc(words[1:], namesGit) || slices.ContainsFunc(withoutDestination(program, words)[1:], func(w string) bool {
		return slices.ContainsFunc(namesIn(w), func(name string) bool { return d.holdsRepository(absolute(dir, name)) })
	})
}

// unpacks reports whether a command writes files that its words do not name.
func unpacks(words []string) bool {
	has := func(options string) bool {
		return slices.ContainsFunc(words[1:], func(w string) bool { return isReaching(options, w) })
	}
	switch program := programOf(words); knownAs(program) {
	case "tar":
		return has("-x --extract --get") || len(words) > 1 && strings.Contains(words[1], "x") || slices.Contains(words, shell.Unknown)
	case "unzip":
		return !has("-Z -l -p -t -v")
	default:
		return slices.Contains(unpacking, program)
	}
}

// runsElsewhere reports whether a command runs git in a folder that its words name.
func (st step) runsElsewhere() bool {
	return slices.ContainsFunc(st.runs, func(run shell.Run) bool { return run.Dir != "" })
}

// namesGit reports whether a word names a folder or a file called .git, or something in it.
func namesGit(w string) bool {
	return slices.ContainsFunc(namesIn(w), func(name string) bool { return slices.Contains(strings.Split(name, "/"), ".git") })
}

// isHeart reports whether a word names a folder .git, or something in it without which it is
// no repository any more.
func isHeart(w string) bool {
	dir, name := path.Split(path.Clean(w))
	return name == ".git" || path.Base(dir) == ".git" && slices.Contains([]string{"HEAD", "commondir", "objects", "refs"}, name)
}

// isInsideAnother reports whether git, run in dir, would find another repository in a folder
// above the one that it finds now.
func (d *reading) isInsideAnother(dir string) bool {
	own := d.disk.Ask(disk.Question{Kind: disk.Place, Path: dir}).Text
	return own != "/" && d.disk.Ask(disk.Question{Kind: disk.Place, Path: filepath.Dir(own)}).OK
}

// holdsRepository reports whether a path is a folder with a repository in it, at any depth,
// or with a link to another folder, or has more files than are looked at.
func (d *reading) holdsRepository(at string) bool {
	if d.searched > maxSearched {
		return true
	}
	a := d.disk.Ask(disk.Question{Kind: disk.Repository, Path: at})
	files, _ := strconv.Atoi(a.Text) // no files are counted where nothing is known
	d.searched += files
	return a.OK || d.searched > maxSearched
}

// displaced says that what a command of a script uses may be another thing by the time that
// it runs. It returns "" if there is no other command that could be the reason.
func (d *reading) displaced(p *shell.Plain, dir string) string {
	usesFile := func(i int) bool {
		return len(d.steps[i].writes) > 0 || slices.ContainsFunc(p.Commands()[i].Redirects, func(r shell.Redirect) bool { return r.Op != ">&" && r.To != "/dev/null" })
	}
	if by := d.displacedBy(p, usesFile, placesLinks); by != "" {
		return "a file that it uses may be a link by then, because of " + by + " in the same line"
	}
	usesGit := func(i int) bool {
		return slices.ContainsFunc(d.steps[i].runs, func(run shell.Run) bool { return programOf(run.Words) == "git" })
	}
	if by := d.displacedBy(p, usesGit, func(run shell.Run) bool { return d.placesRepositories(run, dir) }); by != "" {
		return "git may find another repository by then, because of " + by + " in the same line"
	}
	return ""
}

// displacedBy returns the program of a command that can put something in the place of what
// another command uses, which runs later or, in a pipe, at the same time.
func (d *reading) displacedBy(p *shell.Plain, uses func(i int) bool, places func(shell.Run) bool) string {
	before, user := "", -1 // the program of an earlier command, and the one that uses something in this pipe
	for i, st := range d.steps {
		if p.Commands()[i].Joint != "|" {
			user = -1
		}
		by := ""
		if at := slices.IndexFunc(st.runs, places); at >= 0 {
			by = programOf(st.runs[at].Words)
		}
		isUser := uses(i)
		switch {
		case isUser && before != "":
			return before
		case by != "" && user >= 0:
			return by
		}
		if isUser {
			user = i
		}
		if by != "" {
			before = by
		}
	}
	return ""
}

// showing are the programs that print or copy what is in the files that they are given, with
// the short options that have a value. The first operand of some is no file.
var showing = map[string]string{
	"awk": "Fv", "base64": "w", "bat": "", "cat": "", "cmp": "", "comm": "", "cp": "", "cut": "bcdf", "diff": shortWithValue["diff"], "grep": shortWithValue["grep"], "head": "cn",
	"hexdump": "ns", "jq": "", "less": "", "nl": "", "od": "AjNt", "paste": "d", "rev": "", "rg": shortWithValue["rg"], "sed": "e", "sort": "kt", "strings": "n", "tac": "", "tail": "cn",
	"uniq": "fsw", "xxd": "cls", "yq": "", "zcat": "",
}

// showsFile reports whether a command shows what is in a file that it is given.
func showsFile(words []string) bool {
	program := knownAs(programOf(words))
	valued, ok := showing[program]
	isFile := !slices.Contains([]string{"awk", "grep", "jq", "rg", "sed", "yq"}, program) || givesText(program, words)
	for i := 1; i < len(words) && ok; i++ {
		last, isOption := words[i-1][max(0, len(words[i-1])-1):], i > 1 && strings.HasPrefix(words[i-1], "-")
		switch {
		case strings.HasPrefix(words[i], "-"), isOption && last != "-" && strings.Contains(valued, last):
		case isFile:
			return true
		default:
			isFile = true
		}
	}
	return false
}

// showsLinks reports whether a command shows what is in a file that an earlier one may have
// made a link to another file, of which the line says nothing.
func (d *reading) showsLinks() bool {
	placed := false
	for _, words := range d.calls.Words {
		if placed && showsFile(words) {
			return true
		}
		placed = placed || unpacks(words) || programOf(words) == "git" && slices.ContainsFunc(words[1:], func(w string) bool { return slices.Contains(gitPlacing, w) })
	}
	return false
}
