package approval

import (
	"slices"
	"strings"

	"github.com/abide-run/abide/internal/lazyregexp"
)

// onlyEdits reports whether sed, with these arguments, prints and changes the files that
// it is given, and nothing else: its language can also write other files and run commands.
// Understood are the options -n, -E, -r, -s, -z, -i and -e, addresses, and the commands
// s, p, d, q and =.
func onlyEdits(args []string) bool {
	_, ok := editedFiles(args)
	return ok
}

// editedFiles returns the files that sed writes with these arguments, with the copies of
// the old ones. They are none without -i. It reports false if sed may do more, see onlyEdits.
func editedFiles(args []string) (files []string, ok bool) {
	var scripts, operands []string
	suffix, inPlace := "", false
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a == "-e" && i+1 < len(args):
			i++
			scripts = append(scripts, args[i])
		case a == "-n", a == "-E", a == "-r", a == "-s", a == "-z", a == "-nE", a == "-nr":
		case strings.HasPrefix(a, "-i") && isSuffix(a[2:]):
			suffix, inPlace = a[2:], true
		case strings.HasPrefix(a, "-"):
			return nil, false
		default:
			operands = append(operands, a)
		}
	}
	if len(scripts) == 0 && len(operands) > 0 {
		scripts, operands = operands[:1], operands[1:]
	}
	for _, s := range scripts {
		if !isEdit(s) {
			return nil, false
		}
	}
	for _, name := range operands {
		if inPlace {
			files = append(files, name, name+suffix)
		}
	}
	return slices.Compact(files), len(scripts) > 0
}

// isSuffix reports whether a text can be what sed -i adds to the names of the old files.
// With a slash or a star it would be the name of another file.
func isSuffix(text string) bool { return !strings.ContainsAny(text, "/*") }

// isEdit reports whether a script of sed consists of commands that onlyEdits understands.
func isEdit(script string) bool {
	if script == "" || strings.ContainsAny(script, "\n{}") {
		return false
	}
	for rest, ok := script, true; ; {
		if rest, ok = cutAddresses(strings.TrimLeft(rest, " ;")); !ok {
			return false
		}
		switch {
		case rest == "":
			return true
		case strings.ContainsRune("pdq=", rune(rest[0])):
			rest = rest[1:]
		default:
			if rest, ok = cutReplacement(rest); !ok {
				return false
			}
		}
		if rest = strings.TrimLeft(rest, " "); rest != "" && rest[0] != ';' {
			return false
		}
	}
}

// cutAddresses removes the addresses before a command.
func cutAddresses(script string) (rest string, ok bool) {
	rest, ok = cutAddress(script)
	if after, second := strings.CutPrefix(rest, ","); ok && second {
		rest, ok = cutAddress(strings.TrimPrefix(after, "+"))
	}
	return strings.TrimLeft(rest, " !"), ok
}

// cutAddress removes an address, if there is one: a number, $ or /pattern/.
func cutAddress(script string) (rest string, ok bool) {
	switch {
	case strings.HasPrefix(script, "/"):
		return cutPart(script[1:], '/')
	case strings.HasPrefix(script, "$"):
		return script[1:], true
	}
	return strings.TrimLeft(script, "0123456789"), true
}

// cutReplacement removes the command s with flags that neither write nor run.
func cutReplacement(script string) (rest string, ok bool) {
	if len(script) < 4 || script[0] != 's' || strings.IndexByte("/#|,@:%!~_", script[1]) < 0 {
		return "", false
	}
	delimiter := script[1]
	if rest, ok = cutPart(script[2:], delimiter); ok {
		rest, ok = cutPart(rest, delimiter)
	}
	return strings.TrimLeft(rest, "gpiI0123456789"), ok
}

// cutPart removes what stands before the next delimiter, and the delimiter. A text in
// which the delimiter may stand for itself is not understood.
func cutPart(script string, delimiter byte) (rest string, ok bool) {
	part, rest, ok := strings.Cut(script, string(delimiter))
	return rest, ok && closed.MatchString(part) && !strings.Contains(part, "[]") && !strings.Contains(part, "[^]")
}

// closed matches a text at whose end neither a backslash nor a class is open, in which some
// versions of sed take the delimiter for itself. What is in a class may be the name of
// another one, and no other bracket.
var closed = lazyregexp.New(`^([^\\\[]|\\.|\[([^\\\[\]]|\\[^\[\]]|\[:[a-z]+:\])+\])*$`)
