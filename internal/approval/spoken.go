package approval

import (
	"path"
	"slices"
	"strings"

	"github.com/abide-run/abide/internal/approval/shell"
	"github.com/abide-run/abide/internal/lazyregexp"
)

// plainPrograms run nothing that their arguments name, apart from those of the options in
// reaching: their arguments are names, messages, packages and subcommands. They are added
// to the programs in reaching and to those that package shell takes apart.
var plainPrograms = strings.Fields(`apk apropos apt apt-get base64 brew bzip2 cd chgrp chmod chown cp dnf dpkg eslint export gh git gofmt gunzip gzip info jest kill killall local ln
	mkdir mv pacman pgrep pip pip3 pkill prettier pytest read readonly rm rmdir ruff set shred systemctl tee tldr touch truncate tsc unlink unset unzip whatis whereis xz yum zstd`)

// running are those of the programs in reaching that run what their other arguments name,
// or may.
var running = []string{"actionlint", "bandit", "markdownlint", "pygmentize", "sqlfluff", "ssh-add", "ssh-keygen", "alembic", "ansible-playbook", "cabal", "cdk", "celery", "clang-tidy", "coverage", "cppcheck", "ctags", "cypress", "docker", "flake8", "flask", "gcc", "golangci-lint", "goreleaser", "grunt", "gulp", "gunicorn", "mkdocs", "nodemon", "podman", "pulumi", "rollup", "rustc", "serverless", "sphinx-build", "stack", "stylelint", "swift", "terraform", "turbo", "uvicorn", "vite", "webpack", "xcodebuild", "zig",
	"gpg", "helm", "hg", "kubectl", "mypy", "openssl", "pylint", "ssh", "svn"}

// isPlain reports whether a program runs nothing that its arguments name, but for the
// options in reaching.
func isPlain(program string) bool {
	_, isListed := reaching[program]
	return isListed && !slices.Contains(running, program) || shell.TakesApart(program) || slices.Contains(plainPrograms, program)
}

// scripted are programs that take their input for a script though their arguments, but for
// options in reaching, are none.
var scripted = []string{"awk", "emacs", "mysql", "psql", "sed", "sqlite3", "ssh", "vim"}

// commanded are those of the programs in reaching that take their input for commands, with
// which they can do what a star does not stand for.
var commanded = []string{"emacs", "mysql", "psql", "sftp", "sqlite3", "vim"}

// takesCommands returns the program of a step that takes the input, which the line gives to
// it, for commands. It returns "" if there is none.
func (st step) takesCommands() string {
	isFile := func(r shell.Redirect) bool { return r.Op == "<" && r.To != "/dev/null" }
	if st.simple.Joint != "|" && !slices.ContainsFunc(st.simple.Redirects, isFile) {
		return ""
	}
	for _, run := range st.runs {
		if program := programOf(run.Words); slices.Contains(commanded, knownAs(program)) || takesProgram(run.Words) {
			return program
		}
	}
	return ""
}

// takesScripts reports whether the program of a command may take its input, or a file that
// it is given, for a script.
func takesScripts(words []string) bool {
	program := knownAs(programOf(words))
	return !isPlain(program) || shell.RunsScripts(program) || slices.Contains(scripted, program)
}

// knownAs returns the name under which a program is listed in reaching.
func knownAs(program string) string {
	if same, ok := sameOptions[program]; ok {
		return same
	}
	isListed := func(name string) bool {
		return sameOptions[name] != "" || reaching[name] != "" || reachingTexts[name] != nil || slices.Contains(plainPrograms, name) || name == "sed"
	}
	if name := unversioned(program, isListed); name != program {
		return knownAs(name)
	}
	return program
}

// versioned matches the name of a program with its version, or with the system for which a
// compiler makes programs: gcc-12, lua5.4, pytest-3, x86_64-linux-gnu-gcc-12.
var versioned = lazyregexp.New(`^(?:[a-z0-9_]+-(?:[a-z0-9_]+-){1,3})?([a-z][a-z+_.-]*?)(?:[-.]?[0-9]+(?:\.[0-9]+)*)?$`)

// unversioned returns the name of a program without its version, if the name is listed then,
// and was not before.
func unversioned(program string, isListed func(name string) bool) string {
	if isListed(program) {
		return program
	}
	parts := versioned.FindStringSubmatch(program)
	if parts == nil || !isListed(parts[1]) {
		return program
	}
	return parts[1]
}

// textsThatRun returns the words of a command that may name another command which its
// program runs. For a program that is not known these are all words but the subcommand;
// for others, those from an option in reaching on.
func textsThatRun(words []string) []string {
	program := knownAs(programOf(words))
	switch {
	case program == "sed" && onlyEdits(words[1:]):
		return nil
	case program == "awk" && !slices.ContainsFunc(words[1:], reachingTexts["awk"].MatchString):
		return nil
	case !isPlain(program):
		return slices.Concat(words[:1], withoutSubcommand(words))
	}
	var texts []string
	for i := 1; i < len(words); i++ {
		isSetting := program == "git" && (words[i] == "-c" || strings.HasPrefix(words[i], "--config-env"))
		switch {
		case isSetting && i+1 < len(words):
			texts = append(texts, words[i], words[i+1])
		case program == "git" && strings.Contains(words[i], "ext::"): // an address that is a command
			texts = append(texts, words[i])
		case !strings.Contains(words[i], shell.Unknown) && reaches(words, i):
			return append(texts, words[i:]...)
		}
	}
	return texts
}

// withoutSubcommand returns the arguments of a command, without the subcommand of a program
// that has some: docker rm runs no rm. What npx is given first is a program.
func withoutSubcommand(words []string) []string {
	if program := programOf(words); !shell.HasSubcommands(program) || program == "npx" {
		return words[1:]
	}
	at := slices.IndexFunc(words[1:], func(w string) bool { return !strings.HasPrefix(w, "-") })
	if at < 0 {
		return words[1:]
	}
	return slices.Concat(words[1:1+at], words[2+at:])
}

// isSpoken reports whether texts have the words of the pattern that are no options, in
// order, with whatever between them.
func (p wordPattern) isSpoken(texts []string) bool {
	var want []string
	for _, w := range p.words {
		if !strings.HasPrefix(w, "-") {
			want = append(want, path.Base(w))
		}
	}
	if len(want) == 0 || strings.Trim(want[0], star) == "" { // it is about any program
		return false
	}
	var found []string
	for _, text := range texts {
		for _, part := range append(joinedValues(text), text) {
			for _, name := range namesOf(part) {
				found = append(found, path.Base(name))
			}
		}
	}
	return isSubsequence(want, found)
}

// joinedValues returns what may be the value of a short option in the same word: -Osudo,
// -nOsudo.
func joinedValues(word string) (list []string) {
	if len(word) < 3 || word[0] != '-' || word[1] == '-' {
		return nil
	}
	const most = 6
	for i := 2; i < min(most, len(word)); i++ {
		list = append(list, word[i:])
	}
	return list
}

// copying are programs that give files other names, or copy them. Other programs print what
// is in a file, which the shell can write to another one.
var copying = []string{"cp", "dd", "install", "ln", "mv", "rsync", "scp", "tar"}

// looking are programs that do nothing with the program whose path they are given.
var looking = strings.Fields("[ basename command dirname echo file ls printf readlink realpath rm stat test type whereis which")

// isProgram reports whether a word names the program of the pattern by a path: any path, or
// one in a folder of programs.
func (p wordPattern) isProgram(w string, anywhere bool) bool {
	name := path.Base(p.words[0])
	if strings.Trim(name, star) == "" {
		return false
	}
	want := strings.Split(name, star)
	return slices.ContainsFunc(namesIn(w), func(file string) bool {
		return strings.Contains(file, "/") && matchStars(want, path.Base(file)) && (anywhere || isProgramFolder(path.Dir(file)))
	})
}

func isProgramFolder(dir string) bool { return path.Base(dir) == "bin" || path.Base(dir) == "sbin" }

// isCopied reports whether a command gives another name to the program of the pattern, or
// may be used to do so: it reads the program's file.
func (p wordPattern) isCopied(words []string) bool {
	program := programOf(words)
	if slices.Contains(looking, program) {
		return false
	}
	return slices.ContainsFunc(words[1:], func(w string) bool { return p.isProgram(w, slices.Contains(copying, program)) })
}

// copiesProgram reports whether a script copies the program of a pattern without a word that
// is its path: from its standard input, from a folder that it has changed to, or by a path
// that which has found.
func (d *reading) copiesProgram(p wordPattern) bool {
	name := strings.Split(path.Base(p.words[0]), star)
	names := func(w string) bool { return matchStars(name, w) }
	inFolder, isFound, copiesName, copiesUnknown := false, false, false, false
	for _, words := range d.calls.Words {
		isCopying := slices.Contains(copying, programOf(words))
		inFolder = inFolder || isChange(words) && isProgramFolder(path.Clean(words[len(words)-1]))
		isFound = isFound || slices.Contains(looking, programOf(words)) && slices.ContainsFunc(words[1:], names)
		copiesName = copiesName || isCopying && slices.ContainsFunc(words[1:], names)
		copiesUnknown = copiesUnknown || isCopying && slices.ContainsFunc(words[1:], func(w string) bool { return strings.Contains(w, shell.Unknown) })
	}
	return inFolder && copiesName || isFound && copiesUnknown || slices.ContainsFunc(d.calls.Files, func(w string) bool { return p.isProgram(w, false) })
}

// namesOf returns the parts of a text that can be names of programs, files or subcommands.
func namesOf(text string) []string {
	return strings.FieldsFunc(text, func(c rune) bool {
		return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c > 0x7f || strings.ContainsRune("_-./~+", c))
	})
}

// gitCommands are the subcommands of git, which no alias replaces. Missing are those that
// run others, such as subtree push, and those that people do not use, some of which write
// files that their operands name.
var gitCommands = strings.Fields(`add am annotate apply archive bisect blame branch bugreport bundle cat-file check-attr check-ignore check-mailmap check-ref-format checkout checkout-index cherry
	cherry-pick clean clone column commit commit-graph commit-tree config count-objects describe diagnose diff diff-files diff-index diff-tree difftool fast-export fast-import fetch fetch-pack
	fmt-merge-msg for-each-ref format-patch fsck gc get-tar-commit-id grep gui hash-object help index-pack init init-db interpret-trailers log ls-files ls-remote ls-tree maintenance
	merge merge-base merge-tree mergetool mktag mktree multi-pack-index mv name-rev notes pack-refs patch-id prune prune-packed pull push range-diff read-tree rebase reflog
	remote repack replace request-pull rerere reset restore rev-list rev-parse revert rm shortlog show show-branch show-index show-ref sparse-checkout stage stash status stripspace submodule switch
	symbolic-ref tag unpack-file unpack-objects update-index update-ref update-server-info var verify-commit verify-pack verify-tag version whatchanged worktree write-tree`)
