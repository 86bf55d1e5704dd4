package backup

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// syncTree writes everything below a folder to disk: the file system as a whole, because a
// sync of each of many small files would take much longer.
func syncTree(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(unix.Syncfs(int(dir.Fd())), dir.Close())
}
