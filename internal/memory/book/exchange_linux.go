package book

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// exchange swaps two files, and then checks the text of the old one. In this order, an
// edit that was saved at the last moment is noticed, and the swap is undone.
func exchange(dir *os.Root, with, name string, was Digest) error {
	d, err := dir.Open(".")
	if err != nil {
		return err
	}
	defer d.Close()
	swap := func() error {
		return unix.Renameat2(int(d.Fd()), with, int(d.Fd()), name, unix.RENAME_EXCHANGE)
	}
	err = swap()
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) { // not every file system supports it
		return dir.Rename(with, name)
	}
	if errors.Is(err, unix.ENOENT) {
		return ErrChanged
	}
	if err != nil {
		return err
	}
	before, err := read(dir, with)
	if err == nil && digest(before) == was {
		return nil
	}
	return errors.Join(ErrChanged, err, swap())
}
