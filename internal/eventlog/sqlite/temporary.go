package sqlite

import lib "modernc.org/sqlite/lib"

// isTemporary reports whether an error of Open may go away by itself: the disk is full,
// fails or is read-only for now, another process has the file locked, or permissions
// are missing. A damaged file, a file of another program and a file of a newer abide do
// not change by themselves.
func isTemporary(err error) bool {
	switch code(err) {
	case lib.SQLITE_BUSY, lib.SQLITE_LOCKED, lib.SQLITE_PERM, lib.SQLITE_PROTOCOL:
		return true
	}
	return fatal(err)
}
