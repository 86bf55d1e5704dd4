//go:build !linux

package book

import "os"

// exchange replaces the file name by the file with.
func exchange(dir *os.Root, with, name string, _ Digest) error { return dir.Rename(with, name) }
