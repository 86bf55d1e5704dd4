package approval

import (
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/abide-run/abide/internal/approval/shell"
)

// namesIn returns the names of files that a word may have: itself, or what follows an
// option or a sign: --file=NAME, -fNAME, if=NAME, @NAME, HEAD:NAME, ~/NAME, file://NAME.
func namesIn(w string) []string {
	if w == "" || strings.Contains(w, shell.Unknown) {
		return nil
	}
	names := []string{w}
	if below, ok := strings.CutPrefix(w, "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			names = append(names, filepath.Join(home, below))
		}
	}
	if at := strings.Index(strings.ToLower(w), "file:"); at >= 0 {
		if u, err := url.Parse(w[at:]); err == nil && u.Path != "" {
			names = append(names, u.Path)
		}
	}
	const mostNames, mostShort = 20, 6
	for i := 1; i < len(w) && len(names) < mostNames; i++ {
		inOptions := w[0] == '-' && w[1] != '-' && i >= 2 && i < mostShort
		if inOptions || strings.IndexByte("=:,)@<", w[i-1]) >= 0 {
			names = append(names, w[i:])
			if end := strings.IndexAny(w[i:], ";,:"); end > 0 {
				names = append(names, w[i:i+end])
			}
		}
	}
	return names
}

// filesIn returns the words of a command that may be names of files, or have some. What a
// program is told to leave out is none, and neither is the text that it looks for.
func filesIn(words []string) []string {
	program := knownAs(programOf(words))
	left := slices.Clone(words)
	if at := searched(program, words); at > 0 {
		left[at] = ""
	}
	options := strings.Fields(excluding[program])
	if program == "find" && slices.ContainsFunc(words, isFindAction) {
		options = nil
	}
	for i, w := range optionsOf(words) {
		name, _, joined := strings.Cut(w, "=")
		switch {
		case !slices.Contains(options, name) || takesNext(program, words, i):
		case joined:
			left[i+1] = ""
		case i+2 < len(words):
			left[i+2] = ""
		}
	}
	if program == "sed" && !onlyEdits(words[1:]) {
		left = append(left, namesInSed(words[1:])...)
	}
	return left
}

// placedFiles returns the files that a command makes in a folder under the names that they
// have elsewhere: cp other/Makefile ., wget https://example.org/Makefile.
func placedFiles(words []string) (names []string) {
	program, folders := knownAs(programOf(words)), []string{}
	var files []string
	for i, w := range words[1:] {
		isTarget := isReaching(placeOptions[program], w)
		switch {
		case isTarget && i+2 < len(words):
			folders = append(folders, append(namesIn(w), words[i+2])...)
		case isTarget:
			folders = append(folders, namesIn(w)...)
		case w != "" && !strings.HasPrefix(w, "-"):
			files = append(files, w)
		}
	}
	switch fetches := program == "wget" || program == "curl" && slices.ContainsFunc(words[1:], func(w string) bool { return isReaching("-O --remote-name --remote-name-all", w) }); {
	case fetches:
		folders = append(folders, ".")
	case !slices.Contains([]string{"cp", "install", "ln", "mv", "rsync", "scp"}, program) || len(files) == 0:
		return nil
	case len(folders) == 0:
		folders, files = files[len(files)-1:], files[:len(files)-1]
	}
	for _, folder := range folders {
		for _, file := range files {
			names = append(names, path.Join(folder, path.Base(file)))
		}
	}
	return names
}

// placeOptions are the options that name the folder in which programs make files.
var placeOptions = map[string]string{"cp": "-t --target-directory", "curl": "--output-dir", "install": "-t --target-directory", "ln": "-t --target-directory", "mv": "-t --target-directory", "wget": "-P --directory-prefix"}

// optionsOf returns the arguments of a command that can be options: those before --.
func optionsOf(words []string) []string {
	if at := slices.Index(words, "--"); at > 0 {
		return words[1:at]
	}
	return words[1:]
}

// excluding are the options that name what a program leaves out. Those of find also say
// what it prints: the names of files, and not what is in them.
var excluding = map[string]string{
	"ack":   "--ignore-dir --ignore-directory",
	"ag":    "--ignore --ignore-dir",
	"diff":  "-x --exclude",
	"du":    "--exclude",
	"fd":    "-E --exclude",
	"find":  "-iname -ipath -iregex -iwholename -name -path -regex -wholename",
	"grep":  "--exclude --exclude-dir",
	"ls":    "-I --hide --ignore",
	"rsync": "--exclude",
	"tar":   "--exclude",
	"tree":  "-I",
}

// isFindAction reports whether find, with this word, does something with the files that it
// finds.
func isFindAction(w string) bool {
	return strings.HasPrefix(w, "-exec") || strings.HasPrefix(w, "-ok") || strings.HasPrefix(w, "-fprint") || w == "-fls" || w == "-delete"
}

// shortWithValue are the short options of programs whose value is the rest of the word, or
// the next one. Programs that only print names of files need no entry.
var shortWithValue = map[string]string{
	"ack": "ABCm", "ag": "ABCGWmp", "diff": "CFILSUWXx", "grep": "ABCDXdefm", "rg": "ABCEMTdefgjmrt", "rsync": "@BMTef", "tar": "CFHIKLNTVXbfg",
}

// longWithout are long options of these programs that have no value.
var longWithout = strings.Fields("--archive --case-sensitive --count --create --delete --extended-regexp --files-with-matches --fixed-strings --gzip --hidden --ignore-case " +
	"--invert-match --line-number --multiline --no-heading --no-ignore --no-index --null --only-matching --perl-regexp --recursive --smart-case --text --untracked --verbose --with-filename --word-regexp")

// takesNext reports whether the word of a command at a position may be an option whose
// value is the next word, whatever that looks like.
func takesNext(program string, words []string, at int) bool {
	short, w := shortWithValue[program], words[at]
	switch {
	case short == "" || at == 0:
		return false
	case program == "tar" && at == 1 && !strings.HasPrefix(w, "-"): // its options may stand without a dash
		return strings.ContainsAny(w, short)
	case strings.HasPrefix(w, "--"):
		return w != "--" && !strings.Contains(w, "=") && !slices.Contains(longWithout, w)
	}
	return len(w) > 1 && w[0] == '-' && strings.IndexAny(w[1:], short) == len(w)-2 // the first that has a value has the rest of the word
}

// searched returns the position of the text that a program looks for, or 0 if it is not
// known. With an option that gives the text, all operands are files.
func searched(program string, words []string) int {
	if !slices.Contains([]string{"ack", "ag", "grep", "rg"}, program) || givesText(program, words) {
		return 0
	}
	ended := false
	for i, w := range words[1:] {
		switch isValue := !ended && takesNext(program, words, i); {
		case isValue && (program == "ag" || program == "ack" || strings.HasPrefix(words[i], "--") && words[i] != "--glob"):
			return 0 // the option may name a file
		case isValue:
		case ended || !strings.HasPrefix(w, "-") || w == "-":
			return i + 1
		}
		ended = ended || w == "--"
	}
	return 0
}

// givesText reports whether an option gives the text that a program looks for.
func givesText(program string, words []string) bool {
	return slices.ContainsFunc(words[1:], func(w string) bool {
		if strings.HasPrefix(w, "--") {
			return strings.HasPrefix(w, "--reg") || strings.HasPrefix(w, "--file")
		}
		return strings.HasPrefix(w, "-") && (strings.ContainsAny(w, "ef") || program != "rg" && strings.Contains(w, "g"))
	})
}

// surelyGivesText is givesText for whoever takes the first operand for a folder if the text
// is given: only options that are whole, and short ones that are no value of another, count.
func surelyGivesText(program string, words []string) bool {
	if program != "grep" && program != "rg" {
		return givesText(program, words)
	}
	return slices.ContainsFunc(words[1:], func(w string) bool {
		name, _, _ := strings.Cut(w, "=")
		at := strings.IndexAny(w, shortWithValue[program])
		return name == "--regexp" || name == "--file" || !strings.HasPrefix(w, "--") && strings.HasPrefix(w, "-") && at > 0 && strings.IndexByte("ef", w[at]) >= 0
	})
}

// namesInSed returns the names of files that commands of sed may have. They end with the
// line, and need no blank in front of them: rNAME, s/a/b/wNAME.
func namesInSed(args []string) (names []string) {
	const most = 50
	for _, script := range args {
		for line := range strings.Lines(script) {
			for i := 0; i < len(line) && len(names) < most; i++ {
				if strings.IndexByte("rRwW", line[i]) >= 0 {
					names = append(names, strings.TrimSpace(line[i+1:]))
				}
			}
		}
	}
	return names
}

// addSpellings adds commands as they are known by other names: a program of git's own
// folder, a link to a program, an address of which curl makes several.
func (d *reading) addSpellings(dir string) {
	for _, words := range slices.Clone(d.calls.Words) {
		program := programOf(words)
		if sub, ok := strings.CutPrefix(program, "git-"); ok {
			d.addCall(append([]string{"git", sub}, words[1:]...))
		}
		if real, ok := follow(d.disk, dir, words[0]); ok && strings.Contains(words[0], "/") && filepath.Base(real) != program {
			d.addCall(append([]string{real}, words[1:]...))
		}
		if command := commandOfFd(words); command != nil {
			d.addCall(append(command, shell.Unknown))
		}
		if listsNames(program, words) {
			d.addCall([]string{words[0], shell.Unknown})
		}
		if program == "curl" && slices.ContainsFunc(words[1:], hasSeveral) {
			masked := slices.Clone(words)
			for i, w := range words[1:] {
				if hasSeveral(w) {
					masked[i+1] = w[:strings.IndexAny(w, "{[")] + shell.Unknown + w[strings.LastIndexAny(w, "}]")+1:]
				}
			}
			d.addCall(masked)
		}
	}
}

// commandOfFd returns the command that fd runs with the files that it finds, or nil.
func commandOfFd(words []string) []string {
	if knownAs(programOf(words)) != "fd" {
		return nil
	}
	at := slices.IndexFunc(words[1:], func(w string) bool { return isReaching(reaching["fd"], w) }) + 1
	if at == 0 {
		return nil
	}
	_, joined, _ := strings.Cut(words[at], "=")
	if !strings.HasPrefix(words[at], "--") {
		joined = words[at][strings.IndexAny(words[at], "xX")+1:]
	}
	if command := slices.Clone(words[at+1:]); joined == "" && len(command) > 0 {
		return command
	} else if joined != "" {
		return append([]string{joined}, command...)
	}
	return nil
}

// listsNames reports whether a program takes the names of files, or addresses, from a file
// or from its input.
func listsNames(program string, words []string) bool {
	options := map[string]string{"curl": "-K --config", "tar": "-T", "wget": "-i --input-file"}[knownAs(program)]
	return program == "cpio" || program == "pax" || slices.ContainsFunc(words[1:], func(w string) bool {
		return isReaching(options, w) || strings.HasPrefix(w, "--files-from") || strings.HasPrefix(w, "--files0-from")
	})
}

func (d *reading) addCall(words []string) { d.calls.Words = append(d.calls.Words, words) }

// hasSeveral reports whether curl takes a word for several addresses.
func hasSeveral(w string) bool {
	open := strings.IndexAny(w, "{[")
	return open >= 0 && strings.LastIndexAny(w, "}]") > open && (strings.Contains(w, "/") || strings.Contains(w, "."))
}
