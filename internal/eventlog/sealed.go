package eventlog

import (
	"fmt"
	"io/fs"

	"github.com/abide-run/abide/internal/seal"
)

// ExposedKey returns the line for a person about a key file that other users could read.
func ExposedKey(file *seal.File, mode fs.FileMode) string {
	return fmt.Sprintf("the key file %s had mode %04o, so that other users could use it: it should be 0600; if one of them may have a copy of the log, replace the keys of your providers", file.Path(), mode)
}

// UnreadableSecrets returns the line for a person about secrets whose key is not in the key file.
func UnreadableSecrets(id seal.ID, sessions int, file *seal.File) string {
	whose := fmt.Sprintf("%d sessions", sessions)
	if sessions == 1 {
		whose = "1 session"
	}
	found, remedy := "does not exist", "put it back"
	if has := file.IDs(); len(has) > 0 {
		found, remedy = "has another key ("+has[0].String()+")", "add the lines of the right key file to it"
	}
	return fmt.Sprintf("the secrets of %s are sealed with key %s, and the key file %s %s: the sessions go on, but keys of providers and environments have to be given again, as abide run --resume does; to read them, %s",
		whose, id, file.Path(), found, remedy)
}
