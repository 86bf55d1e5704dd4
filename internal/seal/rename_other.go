//go:build !linux

package seal

import "os"

// renameNew renames a file.
func renameNew(from, to string) error { return os.Rename(from, to) }
