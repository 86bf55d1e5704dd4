package process

import (
	"os"
	"os/exec"
	"slices"
	"strings"
)

// plainNames are the names of variables that every command needs and that hold no secret.
var plainNames = []string{"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TERM", "TMPDIR", "TZ", "XDG_CONFIG_HOME"}

// PlainEnv returns the environment of commands that were given none: only those
// variables of this program that every command needs. The others may hold secrets.
func PlainEnv() []string {
	return slices.DeleteFunc(os.Environ(), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return !slices.Contains(plainNames, name) && !strings.HasPrefix(name, "LC_")
	})
}

// Shell returns the shell that runs the command lines of agents: bash, which models write
// for, or /bin/sh if there is no bash.
func Shell() string {
	if path, err := exec.LookPath("bash"); err == nil {
		return path
	}
	return "/bin/sh"
}
