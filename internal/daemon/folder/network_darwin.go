package folder

import "golang.org/x/sys/unix"

// networkKind returns the kind of the network file system that a folder is on; empty for a
// local one.
func networkKind(dir string) (string, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil || s.Flags&unix.MNT_LOCAL != 0 {
		return "", err
	}
	return unix.ByteSliceToString(s.Fstypename[:]), nil
}
