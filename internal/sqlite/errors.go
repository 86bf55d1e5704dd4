package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	driver "modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"
)

// oldest is the first SQLite without the bug that could lose a write-ahead log
// being reset while another connection reads.
var oldest = [3]int{3, 51, 3}

// checkVersion refuses an SQLite that is known to lose data.
func checkVersion(ctx context.Context, conn *sql.Conn) error {
	var text string
	if err := conn.QueryRowContext(ctx, "SELECT sqlite_version()").Scan(&text); err != nil {
		return err
	}
	return sound(text)
}

func sound(text string) error {
	var v [3]int
	if _, err := fmt.Sscanf(text, "%d.%d.%d", &v[0], &v[1], &v[2]); err != nil {
		return fmt.Errorf("SQLite says that its version is %q: build abide with %d.%d.%d or newer", text, oldest[0], oldest[1], oldest[2])
	}
	for i := range v {
		if v[i] != oldest[i] {
			if v[i] > oldest[i] {
				return nil
			}
			return fmt.Errorf("SQLite %s can lose data: build abide with %d.%d.%d or newer", text, oldest[0], oldest[1], oldest[2])
		}
	}
	return nil
}

// code returns SQLite's primary result code of an error, or 0.
func code(err error) int {
	var e *driver.Error
	if errors.As(err, &e) {
		return e.Code() & 0xff
	}
	return 0
}

// corrupt reports whether SQLite found a page that cannot be what it wrote.
func corrupt(err error) bool {
	c := code(err)
	return c == lib.SQLITE_CORRUPT || c == lib.SQLITE_NOTADB
}

// fatal reports whether the disk failed, so that nothing more may be written.
func fatal(err error) bool {
	switch code(err) {
	case lib.SQLITE_FULL, lib.SQLITE_IOERR, lib.SQLITE_READONLY, lib.SQLITE_CANTOPEN, lib.SQLITE_NOMEM:
		return true
	}
	return false
}

// explain says in one sentence what is wrong with the file, why, and what to do.
func explain(path string, err error) error {
	if err == nil {
		return nil
	}
	why, do := "", ""
	switch code(err) {
	case lib.SQLITE_FULL:
		why, do = "the disk is full", "free some space"
	case lib.SQLITE_READONLY:
		why, do = "it cannot be written", "check the permissions, and that the disk is not mounted read-only"
	case lib.SQLITE_CANTOPEN, lib.SQLITE_PERM, lib.SQLITE_AUTH:
		why, do = "it cannot be opened", "check that the folder exists and is yours to write in"
	case lib.SQLITE_NOTADB:
		why, do = "it is not an abide store", "choose another data folder, or move the file away"
	case lib.SQLITE_CORRUPT:
		why, do = "the file is damaged", "restore it from a backup, or move it away to begin anew"
	case lib.SQLITE_BUSY:
		why, do = "another process keeps it locked", "end that process"
	case lib.SQLITE_IOERR:
		why, do = "the disk reports an error", "check the disk and its quota"
	}
	switch {
	case why != "":
	case errors.Is(err, fs.ErrPermission):
		why, do = "it may not be opened", "check the permissions of the file and its folder"
	case errors.Is(err, syscall.EROFS):
		why, do = "the disk is mounted read-only", "choose a data folder that can be written"
	case errors.Is(err, fs.ErrNotExist):
		why, do = "its folder does not exist", "make the folder, or choose another"
	case errors.Is(err, syscall.ENOSPC):
		why, do = "the disk is full", "free some space"
	default:
		return fmt.Errorf("store %s: %w", path, err)
	}
	return fmt.Errorf("store %s: %s: %s (%w)", path, why, do, err)
}
