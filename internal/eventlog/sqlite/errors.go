package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	driver "modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"github.com/abide-run/abide/internal/eventlog"
)

// code returns SQLite's primary result code of an error, or 0.
func code(err error) int { return extendedCode(err) & 0xff }

// extendedCode returns SQLite's extended result code of an error, or 0.
func extendedCode(err error) int {
	if e, ok := errors.AsType[*driver.Error](err); ok {
		return e.Code()
	}
	return 0
}

// corrupt reports whether SQLite found a damaged page.
func corrupt(err error) bool {
	c := code(err)
	return c == lib.SQLITE_CORRUPT || c == lib.SQLITE_NOTADB
}

// fatal reports whether the disk failed. After that, nothing more is written.
func fatal(err error) bool {
	switch code(err) {
	case lib.SQLITE_FULL, lib.SQLITE_IOERR, lib.SQLITE_READONLY, lib.SQLITE_CANTOPEN, lib.SQLITE_NOMEM:
		return true
	}
	return false
}

// A knownError is an error that a person can do something about.
type knownError struct {
	code           int    // result code of SQLite, primary or extended
	cause          error  // error of the system; nil if there is none
	reason, remedy string // reason and way out, for the error message
}

var knownErrors = []knownError{
	// The shared memory of the write-ahead log is a file, too: this is how a full disk shows when a store is opened.
	{lib.SQLITE_IOERR_SHMSIZE, nil, "the disk is full, or its quota is used up", "free some space"},
	{lib.SQLITE_FULL, syscall.ENOSPC, "the disk is full", "free some space"},
	{lib.SQLITE_READONLY, syscall.EROFS, "it cannot be written", "check the permissions, and that the disk is not mounted read-only"},
	{lib.SQLITE_PERM, fs.ErrPermission, "it may not be opened", "check the permissions of the file and its folder"},
	{lib.SQLITE_CANTOPEN, fs.ErrNotExist, "it cannot be opened", "check that its folder exists and is yours"},
	{lib.SQLITE_NOTADB, nil, "it is not an abide store", "choose another data folder, or move the file away"},
	{lib.SQLITE_CORRUPT, nil, "the file is damaged", "restore it from a backup, or move it away to begin anew"},
	{lib.SQLITE_BUSY, nil, "another process keeps it locked", "end that process"},
	{lib.SQLITE_IOERR, nil, "the disk reports an error", "check the disk and its quota"},
}

// explain returns an error that names the file, the reason and the way out.
func explain(path string, err error) error {
	if _, clear := errors.AsType[*eventlog.Damage](err); clear || err == nil {
		return err
	}
	if a, ok := known(extendedCode(err), err); ok {
		return fmt.Errorf("store %s: %s: %s (%w)", path, a.reason, a.remedy, err)
	}
	return fmt.Errorf("store %s: %w", path, err)
}

// known returns what is known of an error with an extended result code of SQLite.
func known(extended int, err error) (knownError, bool) {
	for _, a := range knownErrors {
		if a.code == extended || a.code == extended&0xff || a.cause != nil && errors.Is(err, a.cause) {
			return a, true
		}
	}
	return knownError{}, false
}
