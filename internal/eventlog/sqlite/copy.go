package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"syscall"

	driver "modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"github.com/abide-run/abide/internal/event"
)

// errChanged means that a process began to write while the file was copied as one that
// nobody writes to.
var errChanged = errors.New("another process began to write meanwhile")

// copyAttempts is how often a copy is begun anew because a process began to write.
const copyAttempts = 5

// Copy copies the store in the file from to the new file to, as it is at one moment. It
// needs nothing of the process that has the store open, and does not fence it: appends go
// on meanwhile. Damaged pages are copied as they are. The copy is one file, without a
// write-ahead log, and is on the disk when Copy returns. progress is called with the
// number of bytes so far and in total.
func Copy(ctx context.Context, from, to string, progress func(done, total int64)) error {
	for range copyAttempts - 1 {
		if err := copyStore(ctx, from, to, progress); !errors.Is(err, errChanged) {
			return err
		}
	}
	return copyStore(ctx, from, to, progress)
}

func copyStore(ctx context.Context, from, to string, progress func(done, total int64)) error {
	src, err := openSource(ctx, from)
	if err != nil {
		return err
	}
	defer src.close()
	if err := makeEmpty(to); err != nil {
		return err
	}
	if err := src.copyTo(ctx, to, progress); code(err) == lib.SQLITE_FULL {
		return &fs.PathError{Op: "write", Path: to, Err: syscall.ENOSPC} // only the copy is written
	} else if err != nil {
		return explain(from, err)
	}
	if err := src.check(); err != nil {
		return explain(from, err)
	}
	return syncFile(to)
}

// makeEmpty makes an empty file that no other user can read.
func makeEmpty(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

func syncFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// A source is a store that is open for reading only, beside the process that has it open.
type source struct {
	path   string
	db     *sql.DB
	conn   *sql.Conn
	frozen fs.FileInfo // the file as it was, if it is read as one that nobody writes to

	version int // schema version
}

// openSource opens a store for reading and begins the transaction that everything is read
// in. It refuses a store whose sessions were moved to another one.
func openSource(ctx context.Context, path string) (*source, error) {
	s, err := openEvenMoved(ctx, path)
	if err != nil {
		return nil, err
	}
	if err := refuseMoved(ctx, s.conn, s.path, s.version); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// openEvenMoved does the same, and refuses no store.
func openEvenMoved(ctx context.Context, path string) (*source, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("store %s: %w", path, err)
	}
	info, err := statFile(path)
	if err != nil {
		return nil, err
	}
	s := &source{path: path}
	if !s.hasLog() {
		s.frozen = info
	}
	if err := s.connect(ctx); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// hasLog reports whether there is a write-ahead log, which a process has open or a killed
// one has left. Without one, everything is in one file. An empty log alone, without the
// shared-memory index that every process makes, is left over and means nothing.
func (s *source) hasLog() bool {
	info, err := os.Stat(s.path + "-wal")
	if err == nil && info.Size() == 0 {
		_, err = os.Stat(s.path + "-shm")
	}
	return err == nil
}

// connect begins a transaction. A file that nobody writes to is opened as immutable:
// otherwise SQLite would leave files beside it.
func (s *source) connect(ctx context.Context) (err error) {
	if s.db, err = sql.Open("sqlite", readOnlyDSN(s.path, s.frozen != nil)); err != nil {
		return explain(s.path, err)
	}
	if s.conn, err = s.db.Conn(ctx); err != nil {
		return explain(s.path, err)
	}
	if _, err := s.conn.ExecContext(ctx, "BEGIN"); err != nil {
		return explain(s.path, err)
	}
	s.version, err = knownVersion(ctx, s.conn, s.path) // the moment that is read begins here
	if err == nil && s.version == 0 {
		err = fmt.Errorf("store %s: %w", s.path, errors.New("it is empty: nothing was stored yet, or everything was lost"))
	}
	return err
}

// readOnlyDSN returns the name of a data source that changes nothing.
func readOnlyDSN(path string, immutable bool) string {
	file := url.URL{Scheme: "file", OmitHost: true, Path: path}
	dsn := file.String() + "?_error_rc=1&mode=ro&_pragma=query_only(1)&_pragma=busy_timeout(" + busyTimeout + ")"
	if immutable {
		dsn += "&immutable=1"
	}
	return dsn
}

// check returns errChanged if what was read may be a mixture of two moments. It is called
// after everything was read.
func (s *source) check() error {
	if s.frozen == nil {
		return nil
	}
	now, err := os.Stat(s.path)
	if err != nil || s.hasLog() || !now.ModTime().Equal(s.frozen.ModTime()) || now.Size() != s.frozen.Size() {
		return errChanged
	}
	return nil
}

func (s *source) close() {
	if s.conn != nil {
		s.conn.Close()
	}
	if s.db != nil {
		s.db.Close()
	}
}

// copyPages is the number of pages that are copied between two reports of the progress.
const copyPages = 1024

// copyTo copies all pages to another file. The file is not synced on the way, because it
// is worth nothing before all of it is there.
func (s *source) copyTo(ctx context.Context, to string, progress func(done, total int64)) error {
	file := url.URL{Scheme: "file", OmitHost: true, Path: to}
	target := file.String() + "?_error_rc=1&_pragma=synchronous(OFF)&_pragma=journal_mode(OFF)"
	return s.conn.Raw(func(c any) error {
		b, err := c.(interface {
			NewBackup(string) (*driver.Backup, error)
		}).NewBackup(target)
		if err != nil {
			return err
		}
		for more := true; more && err == nil; {
			if more, err = b.Step(copyPages); err == nil {
				progress(int64(b.PageCount()-b.Remaining())*pageSize, int64(b.PageCount())*pageSize)
				err = context.Cause(ctx)
			}
		}
		return errors.Join(err, b.Finish())
	})
}

// A Copied is a copy of a store that nobody writes to, open for reading.
type Copied struct{ store *Store }

// OpenCopy opens a copy. It changes nothing.
func OpenCopy(ctx context.Context, path string) (*Copied, error) {
	s := newStore(path)
	var err error
	if s.reading, err = sql.Open("sqlite", readOnlyDSN(path, true)); err != nil {
		return nil, explain(path, err)
	}
	if _, err = knownVersion(ctx, s.reading, path); err == nil {
		s.read, err = prepareReading(ctx, s.reading)
	}
	if err != nil {
		return nil, errors.Join(explain(path, err), s.reading.Close())
	}
	s.reading.SetMaxOpenConns(readers)
	s.reading.SetMaxIdleConns(readers)
	return &Copied{s}, nil
}

// Close closes the copy.
func (c *Copied) Close() error { return c.store.reading.Close() }

// Names returns the names of all sessions that are not deleted.
func (c *Copied) Names(ctx context.Context) ([]event.SessionID, error) {
	names, err := currentNames(ctx, c.store.reading)
	return names, explain(c.store.path, err)
}

// Verify reads every event of a session and checks it against the hash chain. The error is
// an *eventlog.Damage if the session is damaged, and eventlog.ErrNotFound if it is deleted.
func (c *Copied) Verify(ctx context.Context, id event.SessionID) error {
	for _, err := range c.store.Read(ctx, id, 0) {
		if err != nil {
			return err
		}
	}
	return nil
}

// Names returns the names of all sessions in a store that are not deleted, without
// fencing the process that has it open.
func Names(ctx context.Context, path string) ([]event.SessionID, error) {
	src, err := openSource(ctx, path)
	if err != nil {
		return nil, err
	}
	defer src.close()
	names, err := currentNames(ctx, src.conn)
	if err == nil {
		err = src.check()
	}
	return names, explain(path, err)
}

// A Space is how a store uses its file, in bytes.
type Space struct {
	Size, Free int64
	Shrinks    bool // true if free space is given back by itself
}

// Inspect returns how a store uses its file, without fencing the process that has it open.
func Inspect(ctx context.Context, path string) (Space, error) {
	src, err := openSource(ctx, path)
	if err != nil {
		return Space{}, err
	}
	defer src.close()
	var space Space
	for _, q := range []struct {
		pragma string
		into   *int64
	}{{"page_count", &space.Size}, {"freelist_count", &space.Free}} {
		if err := src.conn.QueryRowContext(ctx, "PRAGMA "+q.pragma).Scan(q.into); err != nil {
			return Space{}, explain(path, err)
		}
		*q.into *= pageSize
	}
	space.Shrinks, err = canShrink(ctx, src.conn)
	return space, explain(path, err)
}

// currentNames returns the names of all sessions that are not deleted. If a page of the
// table is damaged, they come from SQLite's index of names, which is on other pages, and
// include deleted ones.
func currentNames(ctx context.Context, q rowsQuerier) ([]event.SessionID, error) {
	names, err := queryNames(ctx, q, "SELECT name FROM sessions WHERE NOT deleted")
	if corrupt(err) {
		return queryNames(ctx, q, selectNames)
	}
	return names, err
}

// A rowsQuerier is a connection, or a pool of them.
type rowsQuerier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// queryNames returns the names that a query selects.
func queryNames(ctx context.Context, q rowsQuerier, query string) (all []event.SessionID, err error) {
	rows, err := q.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var id event.SessionID
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		all = append(all, id)
	}
	return all, rows.Err()
}
