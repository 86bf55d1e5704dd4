package folder

import "golang.org/x/sys/unix"

// Network returns the kind of the network file system that a folder is on. It is empty for
// a local one, and if the kind cannot be found out.
func Network(dir string) string {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil || s.Flags&unix.MNT_LOCAL != 0 {
		return ""
	}
	return unix.ByteSliceToString(s.Fstypename[:])
}
