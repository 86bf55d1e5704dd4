package approval

import (
	"slices"
	"strings"

	"github.com/abide-run/abide/internal/lazyregexp"
)

// Compilers have hundreds of options, and new ones with each version: some run a program
// (-fmodule-mapper=|x, -B, -wrapper, --gcc-toolchain, --ptxas-path), some write another file
// than the one of -o (-fopt-info-all=x, -aux-info, -MJ). So the forms of options that a star
// stands for are a closed list, as for runners. The files of -o and -MF are judged as
// files that are written, see writtenFiles.

// compilerOption matches the options of compilers that neither run a program nor write a file
// of their own name. Those that begin with -f and -Wl are looked at by their names.
var compilerOption = lazyregexp.New(`^-([cSEgvwsPCHQr]|###|CC|[ILDUl].*|O([0-9gsz]|fast)?|g[a-z0-9]+(-[0-9])?|W|W[a-zA-Z0-9][a-zA-Z0-9+-]*(=[\w:,+-]+)?|-?std=[\w+:-]+|ansi|pedantic(-errors)?|` +
	`m[\w.=,+-]+|x[a-z+-]*|o.*|M[MDGP]*|MMD|M[TQF].*|d[MDNIU]|i(system|quote|dirafter|framework|nclude|macros|sysroot).*|pthreads?|pipe|p|pg|static(-(libgcc|libstdc\+\+|pie))?|shared(-libgcc)?|` +
	`rdynamic|pie|no-pie|nostd(lib|inc)(\+\+)?|nolibc|nodefaultlibs|nostartfiles|symbolic|traditional(-cpp)?|trigraphs|undef|remap|framework|arch|save-temps|dumpversion|dumpfullversion|dumpmachine|` +
	`-?print-(search-dirs|libgcc-file-name|(file|prog)-name=[\w.+-]+|multi-[a-z]+|multiarch|sysroot|target-triple|effective-triple|resource-dir|supported-cpus|targets)|` +
	`-?target(=[\w.-]+)?|-param(=.*)?|-coverage|-version|-help(=[\w,+^-]+)?)$`)

// compilerFeature matches an option that begins with -f, with a value that is no path.
var compilerFeature = lazyregexp.New(`^-f([a-zA-Z0-9+-]+)(=[\w.,+:-]*)?$`)

// compilerDoes are the beginnings of the names of features that run a program, load code, or
// write a file.
var compilerDoes = strings.Fields("auto-profile build-session callgraph-info crash-diagnostics create-profile diagnostics-add-output diagnostics-format diagnostics-set-output dump embed-offload module no-integrated " +
	"offload opt-info optimization-record pass-plugin plugin pre-include save-optimization-record thin-link thinlto time-trace use-ld")

// linkerOption matches what a star stands for in one part of -Wl,…: a flag, or the value of one.
var linkerOption = lazyregexp.New(`^(-rpath(-link)?(=.*)?|--(no-)?as-needed|--gc-sections|--print-gc-sections|-[sSxE]|--strip-(all|debug)|-O[0-9]|--build-id(=\w+)?|--hash-style=\w+|-z|--(start|end)-group|-[()]|` +
	`--(no-)?whole-archive|--no-undefined|--export-dynamic|--icf=\w+|-soname(=[^/]*)?|--allow-multiple-definition|--(no-)?(warn|fatal)-[\w-]+|-dead_strip|-undefined|-headerpad_max_install_names|-B(static|dynamic|symbolic)[\w-]*|` +
	`--(enable|disable)-new-dtags|--exclude-libs(=.*)?|--wrap(=\w+)?|--defsym=[\w=.]+|--sort-common|--no-allow-shlib-undefined|--unresolved-symbols=[\w-]+|[\w./$][^@]*)$`)

// compiles reports whether a word of a compiler is one that a star stands for.
func compiles(word string) bool {
	switch feature := compilerFeature.FindStringSubmatch(word); {
	case strings.HasPrefix(word, "@"), word == "-mllvm": // a file with options, and an option of another program
		return false
	case word == "-" || !strings.HasPrefix(word, "-"):
		return true
	case strings.HasPrefix(word, "-Wl,"):
		return !slices.ContainsFunc(strings.Split(word, ",")[1:], func(w string) bool { return !linkerOption.MatchString(w) })
	case feature != nil:
		name := strings.TrimPrefix(feature[1], "no-")
		begins := func(start string) bool { return strings.HasPrefix(name, start) || strings.HasPrefix(feature[1], start) }
		return !slices.ContainsFunc(compilerDoes, begins) && (!begins("profile") || feature[2] == "")
	}
	return compilerOption.MatchString(word)
}
