package approval

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/abide-run/abide/internal/approval/shell"
	"github.com/abide-run/abide/internal/lazyregexp"
)

// maxFolders is the maximum number of folders in which the commands of a script are looked
// at.
const maxFolders = 40

// foldersOf returns the folders in which commands of a script may run that starts in dir:
// that one, those that cd and pushd change to, and those that options such as tar -C name.
// In which of them a command runs is not followed, because that depends on what fails. The
// result known is false if there are others, which are not known in advance.
func (d *reading) foldersOf(calls shell.Calls, dir string) (dirs []string, known bool) {
	dirs, known = []string{dir}, true
	for _, words := range calls.Words {
		names, certain := folderNames(words)
		known = known && certain
		for _, at := range slices.Clone(dirs) {
			for _, name := range names {
				if to := absolute(at, name); isChange(words) || d.isDir(to) {
					dirs = addOnce(dirs, to)
				}
				if real, ok := follow(d.disk, at, name); ok && d.isDir(real) { // cd -P follows links before ..
					dirs = addOnce(dirs, real)
				}
			}
		}
		if len(dirs) > maxFolders {
			return dirs[:maxFolders], false
		}
	}
	return dirs, known
}

// isChange reports whether a command changes the folder of those after it.
func isChange(words []string) bool {
	return words[0] == "cd" || words[0] == "chdir" || words[0] == "pushd"
}

// changingOption matches the options with which programs run in another folder: -C of tar,
// git, make and others, also among other letters, and long names.
var changingOption = lazyregexp.New(`^(-[A-Za-z]*C|--(base-?)?(dir|directory|chdir|cd|cwd|work-?dir|working-directory|work-tree|git-dir|prefix|project|project-directory)(=|$))`)

// folderNames returns the names of the folders that a command may change to. Of a program
// with an option that changes the folder these are all of its words, because which of them
// belongs to the option differs between programs. A script in another language can change
// to a folder that it names. The result known is false if there are others.
func folderNames(words []string) (names []string, known bool) {
	isUnknown := slices.ContainsFunc(words[1:], func(w string) bool { return strings.Contains(w, shell.Unknown) })
	switch program := programOf(words); {
	case isChange(words):
		return changeNames(words), !isUnknown
	case slices.Contains(words, "-execdir"), slices.Contains(words, "-okdir"):
		return nil, false
	case slices.ContainsFunc(words[1:], changingOption.MatchString), program == "tar" && len(words) > 1 && strings.Contains(words[1], "C"), program == "sudo" && slices.Contains(words, "-D"):
		for _, w := range words[1:] {
			names = append(names, namesIn(w)...)
		}
		return names, !isUnknown
	}
	for _, text := range textsThatRun(words) {
		names = append(names, namesOf(text)...)
	}
	return names, true
}

// changeNames returns the folder that cd or pushd changes to. Without an operand cd changes
// to the home directory; cd - and pushd +1 lead to a folder where the script was before.
func changeNames(words []string) []string {
	at := slices.IndexFunc(words[1:], func(w string) bool { return w == "" || w[0] != '-' && (w[0] != '+' || words[0] != "pushd") })
	if at >= 0 {
		return namesIn(words[1+at])
	}
	if home, err := os.UserHomeDir(); err == nil && words[0] != "pushd" && !slices.Contains(words, "-") {
		return []string{filepath.Clean(home)}
	}
	return nil
}
