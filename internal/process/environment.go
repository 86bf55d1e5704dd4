package process

import (
	"os"
	"slices"
	"strings"
)

// plain are the variables that say where a command is, whose it is and how it
// writes. None of them holds a key.
var plain = []string{"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TERM", "TMPDIR", "TZ"}

// PlainEnv returns the environment of commands that nobody gave one: of this
// program's own only what every command needs. All else may be a key or a token.
func PlainEnv() []string {
	return slices.DeleteFunc(os.Environ(), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return !slices.Contains(plain, name) && !strings.HasPrefix(name, "LC_")
	})
}
