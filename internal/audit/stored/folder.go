// Package stored reads what is on disk in a data folder: the log and its index,
// the records of processes, and the folders of sessions. It is the eyes of
// package audit.
//
//   - It shares no code with what writes the folder: it has its own reader of
//     every format, so that a mistake of the writer is not repeated here.
//   - It changes nothing. The log is read in one transaction, so that a running
//     engine neither waits nor disturbs: what is seen of it is of one moment.
//   - It streams: one record of the log is in memory at a time.
//   - It does not judge. What is malformed is returned as it is, or as an error
//     that belongs to one session or process.
package stored

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"modernc.org/sqlite"
)

// A Folder is a data folder that is open for reading.
type Folder struct {
	ProcessRecords
	log   string // path of the database
	db    *sql.DB
	tx    *sql.Tx
	jobs  bool // true if the schema has a table of jobs
	costs bool // true if it has one of costs

	records, jobsOf *sql.Stmt // queries about a single session; jobsOf is nil without that table

	frozen os.FileInfo // the database as it was, if it is read without its write-ahead log
}

const (
	applicationID = 0x61626964 // "abid"
	newestSchema  = 8
)

// ErrChanged means that an engine began to write while the folder was read as one
// that nobody writes to. What was read is worth nothing: read it again.
var ErrChanged = errors.New("an engine began to write to the folder meanwhile")

// Open opens the data folder for reading. The path of its log may be empty if the log is
// the file abide.db in the folder. The error says what is wrong with the folder as a
// whole, and what can be done.
func Open(ctx context.Context, dir, log string) (*Folder, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("data folder %s: %w", dir, err)
	}
	f := &Folder{ProcessRecords: ProcessRecords{dir}, log: cmp.Or(log, filepath.Join(dir, "abide.db"))}
	info, err := os.Stat(f.log)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("data folder %s holds no log (%s): name the folder of an abide with --home or ABIDE_HOME", dir, filepath.Base(f.log))
	case err != nil:
		return nil, fmt.Errorf("data folder %s cannot be read: %w; read it as its owner", dir, err)
	case info.IsDir():
		return nil, fmt.Errorf("store %s is a folder, not a file: name another data folder with --home or ABIDE_HOME", f.log)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("store %s is not a file: name another data folder with --home or ABIDE_HOME", f.log)
	}
	if !f.hasJournal() {
		f.frozen = info
	}
	if err := f.connect(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("store %s: %w", f.log, notALog(err)), f.Close())
	}
	return f, nil
}

// hasJournal reports whether there is a write-ahead log with something in it.
// Without one, nobody has the log open for writing, and everything is in one file.
func (f *Folder) hasJournal() bool {
	info, err := os.Stat(f.log + "-wal")
	return err == nil && info.Size() > 0
}

// connect begins the one transaction that everything is read in. A file that
// nobody writes to is opened as immutable: otherwise SQLite would leave files of
// its own beside it.
func (f *Folder) connect(ctx context.Context) (err error) {
	file := url.URL{Scheme: "file", OmitHost: true, Path: f.log}
	dsn := file.String() + "?mode=ro&_pragma=query_only(1)&_pragma=cache_size(-2048)&_pragma=busy_timeout(5000)"
	if f.frozen != nil {
		dsn += "&immutable=1"
	}
	if f.db, err = sql.Open("sqlite", dsn); err != nil {
		return err
	}
	f.db.SetMaxOpenConns(1)
	if f.tx, err = f.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true}); err != nil {
		return err
	}
	return f.checkSchema(ctx)
}

var errNotALog = errors.New("it is not a log of abide: name another data folder")

// notALog replaces SQLite's error for a file that is no database.
func notALog(err error) error {
	const notADatabase = 26
	if e, ok := errors.AsType[*sqlite.Error](err); ok && e.Code() == notADatabase {
		return errNotALog
	}
	return err
}

// checkSchema refuses what is not a log of ours, and one that is newer than we are.
func (f *Folder) checkSchema(ctx context.Context) error {
	var version, app int
	row := f.tx.QueryRowContext(ctx, `SELECT (SELECT user_version FROM pragma_user_version), (SELECT application_id FROM pragma_application_id)`)
	if err := row.Scan(&version, &app); err != nil {
		return err
	}
	switch {
	case app != applicationID:
		return errNotALog
	case version > newestSchema:
		return fmt.Errorf("it has version %d, this abide knows versions up to %d: use a newer abide", version, newestSchema)
	}
	f.jobs, f.costs = version >= 2, version >= 7
	var n int
	if err := f.tx.QueryRowContext(ctx, "SELECT count(*) FROM sessions WHERE id = 0").Scan(&n); err != nil { // the moment that is read begins here
		return err
	}
	return f.prepare(ctx)
}

func (f *Folder) prepare(ctx context.Context) (err error) {
	f.records, err = f.tx.PrepareContext(ctx, "SELECT key, head, body FROM records WHERE key >= ? AND key <= ? ORDER BY key")
	if err == nil && f.jobs {
		f.jobsOf, err = f.tx.PrepareContext(ctx, "SELECT id, kind, first, last, attempts FROM jobs WHERE session = ? ORDER BY id")
	}
	return err
}

// Check returns ErrChanged if what was read may be a mixture of two moments. It is
// to be called when everything was read.
func (f *Folder) Check() error {
	if f.frozen == nil {
		return nil
	}
	now, err := os.Stat(f.log)
	if err != nil || f.hasJournal() || !now.ModTime().Equal(f.frozen.ModTime()) || now.Size() != f.frozen.Size() {
		return ErrChanged
	}
	return nil
}

// Close lets go of the folder.
func (f *Folder) Close() error {
	var errs []error
	if f.tx != nil {
		errs = append(errs, f.tx.Rollback())
	}
	if f.db != nil {
		errs = append(errs, f.db.Close())
	}
	return errors.Join(errs...)
}

// Dir returns the folder's absolute path.
func (f *Folder) Dir() string { return f.dir }

// Exists reports whether there is a session of that name now, which may be later
// than the moment that is read. It is asked about what looks left behind, because
// a session may have been made meanwhile.
func (f *Folder) Exists(ctx context.Context, name string) (bool, error) {
	now, err := Open(ctx, f.dir, f.log)
	if err != nil {
		return false, err
	}
	defer now.Close()
	var n int
	err = now.tx.QueryRowContext(ctx, "SELECT count(*) FROM sessions WHERE name = ? AND NOT deleted", name).Scan(&n)
	return n > 0, err
}

// micros is a time as the index has it.
func micros(n int64) time.Time { return time.UnixMicro(n) }
