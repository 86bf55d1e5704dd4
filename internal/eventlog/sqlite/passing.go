package sqlite

import lib "modernc.org/sqlite/lib"

// canPass reports whether opening a store failed for a reason that may end by
// itself: the disk is full, fails or is read-only for now, somebody has the file
// locked, or it may not be opened. A damaged file, one of another program and one
// of a newer abide stay what they are.
func canPass(err error) bool {
	switch code(err) {
	case lib.SQLITE_BUSY, lib.SQLITE_LOCKED, lib.SQLITE_PERM, lib.SQLITE_PROTOCOL:
		return true
	}
	return fatal(err)
}
