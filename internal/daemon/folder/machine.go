package folder

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/abide-run/abide/internal/durable"
)

// machineName is the name of the file with the id of a data folder. Files and commands of sessions
// without a workspace elsewhere are in it, so that only its engine can go on with them.
const machineName = "machine-id"

// Machine returns the id of the data folder, and makes it if there is none.
func (f *Folder) Machine() (string, error) {
	path := f.path(machineName)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		id := rand.Text()
		return id, durable.Replace(path, []byte(id+"\n"))
	}
	if err != nil {
		return "", err
	}
	id := strings.TrimSpace(string(text))
	if id == "" {
		return "", fmt.Errorf("%s is empty: restore it, or remove it if no session works in this data folder", path)
	}
	return id, nil
}
