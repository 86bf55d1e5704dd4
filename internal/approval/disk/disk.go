// Package disk answers what the judgement of a command needs to know about files: where
// links lead, which programs are the system's, and what repositories say.
//
// The answers come from the machine that the command will run on. For one on another
// machine they are collected first: a judgement is made with what is known, notes what it
// lacks, and is made again when that was asked for. See [Known].
package disk

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/abide-run/abide/internal/approval/glob"
	"github.com/abide-run/abide/internal/approval/places"
	"github.com/abide-run/abide/internal/approval/protect"
	"github.com/abide-run/abide/internal/approval/scope"
	"github.com/abide-run/abide/internal/approval/shell"
)

// A Kind says what a question is about.
type Kind int

// The kinds of questions. The path of a program is its name.
const (
	Leads      Kind = iota + 1 // where a path leads without links: OK if it can be followed, and Text
	Folder                     // whether a path leads to a folder: OK
	Name                       // whether there is anything of the name, be it a link to nothing: OK
	Place                      // the place of a folder: Text is its key, OK if it is a repository
	Program                    // whether a program, searched for in the folders With, is the system's: OK
	Submodules                 // a repository inside of a folder whose configuration runs code: Text is its path, More the key. With says that it needs not be in the index, see WholeTree
	Remotes                    // the remotes of the repository of a folder: Text in JSON
	Repository                 // whether a folder has a repository in it, or a link to another folder: OK; Text is the number of files that were searched
	Hidden                     // whether no file such as .gitignore says that a path is to be searched although its name begins with a dot: OK
)

// WholeTree is the With of a question about submodules that is about every repository in
// the work tree.
const WholeTree = "tree"

// A Question is about a file.
type Question struct {
	Kind Kind
	Path string
	With string
}

// An Answer is what is known.
type Answer struct {
	OK   bool
	Text string
	More string
}

// A Source answers questions.
type Source interface {
	Ask(Question) Answer
	// Judge applies the rules of a scope to a path.
	Judge(s *scope.Scope, path string, mode scope.Mode) (scope.Finding, error)
}

// Here is the disk of this machine.
var Here Source = here{}

type here struct{}

func (here) Judge(s *scope.Scope, path string, mode scope.Mode) (scope.Finding, error) {
	return s.Judge(path, mode)
}

func (here) Ask(q Question) (a Answer) {
	switch q.Kind {
	case Leads:
		real, err := filepath.EvalSymlinks(q.Path)
		return Answer{OK: err == nil, Text: real}
	case Folder:
		info, err := os.Stat(q.Path)
		return Answer{OK: err == nil && info.IsDir()}
	case Name:
		_, err := os.Lstat(q.Path)
		return Answer{OK: err == nil}
	case Place:
		at := places.Locate(q.Path)
		return Answer{OK: at.Kind == "repo", Text: at.Key}
	case Program:
		return Answer{OK: shell.Trusted(q.With)(q.Path)}
	case Submodules:
		search := protect.CodeInSubmodules
		if q.With == WholeTree {
			search = protect.CodeInWorkTree
		}
		a.Text, a.More = search(q.Path)
		a.OK = a.Text != ""
		return a
	case Remotes:
		text, err := json.Marshal(protect.ReadRemotes(q.Path))
		return Answer{OK: err == nil, Text: string(text)}
	case Repository:
		found, files := holdsRepository(q.Path)
		return Answer{OK: found, Text: strconv.Itoa(files)}
	case Hidden:
		return Answer{OK: staysHidden(q.Path)}
	}
	return Unknown(q)
}

// Unknown returns what an answer that nobody has counts as, which is the worse: nothing can
// be followed, no program is the system's, every name is there, is a folder and holds a
// repository.
func Unknown(q Question) Answer {
	return Answer{OK: q.Kind == Folder || q.Kind == Name || q.Kind == Repository}
}

// ignoreFiles are the files of a folder with patterns of what searches leave out, and of what
// they search nevertheless.
var ignoreFiles = []string{".gitignore", ".ignore", ".rgignore", ".git/info/exclude"}

// maxIgnoreFile is the maximum length of such a file that is looked at.
const maxIgnoreFile = 256 << 10

// staysHidden reports whether no pattern that begins with ! in the folders above a path may
// be about a part of the path.
func staysHidden(path string) bool {
	names := strings.Split(strings.ToLower(strings.Trim(path, "/")), "/")
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		for _, name := range ignoreFiles {
			if shows(filepath.Join(dir, name), names) {
				return false
			}
		}
		if dir == filepath.Dir(dir) {
			return true
		}
	}
}

// shows reports whether a file with patterns has one that begins with ! and may be about one
// of the names. So may any in a file that cannot be read.
func shows(file string, names []string) bool {
	info, err := os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return false
	}
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxIgnoreFile {
		return true
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return true
	}
	for line := range strings.Lines(strings.TrimPrefix(string(text), "\ufeff")) {
		pattern, ok := strings.CutPrefix(strings.ToLower(strings.TrimSpace(line)), "!")
		if !ok {
			continue
		}
		pattern = strings.ReplaceAll("/"+strings.Trim(pattern, "/"), "/**/", "/")
		for part := range strings.SplitSeq(pattern[1:], "/") {
			p := glob.Git(part)
			if slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, ".") && p.Match(name) }) {
				return true
			}
		}
	}
	return false
}

// maxSearched is the maximum number of files of a folder that are searched for a repository.
const maxSearched = 3000

// holdsRepository reports whether a path is a folder with a repository in it, at any depth,
// or with a link to another folder, or has more files than are searched. It returns how many
// files were searched.
func holdsRepository(at string) (found bool, searched int) {
	if real, err := filepath.EvalSymlinks(at); err == nil {
		at = real
	}
	if _, err := os.Lstat(filepath.Join(at, "HEAD")); err == nil {
		return true, 1
	}
	_ = filepath.WalkDir(at, func(name string, f fs.DirEntry, err error) error { // a folder that cannot be read has nothing that git could use
		searched++
		isLink := err == nil && f.Type() == fs.ModeSymlink && Here.Ask(Question{Kind: Folder, Path: name}).OK
		if searched > maxSearched || isLink || name != at && filepath.Base(name) == ".git" {
			found = true
			return fs.SkipAll
		}
		return nil
	})
	return found, searched
}

// A Known is a Source of answers that were collected before. What it is asked beyond them
// it notes, and answers as [Unknown] does.
type Known struct {
	answers map[Question]Answer
	found   map[Judged]Judgement
	lacking map[Question]bool
	unfound map[Judged]bool
}

// A Judged is a path that the rules of the session are to be applied to.
type Judged struct {
	Path string
	Mode scope.Mode
}

// A Judgement is what the rules say of a path.
type Judgement struct {
	Finding scope.Finding
	Err     error // reason that the path cannot be followed
}

// NewKnown returns a Known that knows nothing.
func NewKnown() *Known {
	k := &Known{answers: make(map[Question]Answer), found: make(map[Judged]Judgement)}
	k.Restart()
	return k
}

// Restart forgets what was lacking.
func (k *Known) Restart() {
	k.lacking, k.unfound = make(map[Question]bool), make(map[Judged]bool)
}

// Lacking returns what was asked and is not known.
func (k *Known) Lacking() (questions []Question, judged []Judged) {
	for q := range k.lacking {
		questions = append(questions, q)
	}
	for j := range k.unfound {
		judged = append(judged, j)
	}
	return questions, judged
}

// Complete reports whether everything was known that was asked.
func (k *Known) Complete() bool { return len(k.lacking) == 0 && len(k.unfound) == 0 }

// Learn adds an answer.
func (k *Known) Learn(q Question, a Answer) { k.answers[q] = a }

// LearnJudgement adds what the rules say of a path.
func (k *Known) LearnJudgement(of Judged, j Judgement) { k.found[of] = j }

// Ask implements Source.
func (k *Known) Ask(q Question) Answer {
	if a, ok := k.answers[q]; ok {
		return a
	}
	k.lacking[q] = true
	return Unknown(q)
}

// Judge implements Source.
func (k *Known) Judge(_ *scope.Scope, path string, mode scope.Mode) (scope.Finding, error) {
	if j, ok := k.found[Judged{path, mode}]; ok {
		return j.Finding, j.Err
	}
	k.unfound[Judged{path, mode}] = true
	return scope.Finding{Path: path}, nil
}
