// Package sqlite stores the log in one SQLite file. It implements
// [eventlog.Store].
//
//   - Appends of all sessions share transactions: those that arrive while one
//     transaction is synced are committed together in the next. An append that fails
//     does not affect the others.
//   - An append returns after its transaction is synced, never before, and succeeds
//     only if the files are still where they were opened.
//   - After a failed commit the store closes itself and says why. It never tries
//     again: what is on the disk is only known after the store was opened again.
//   - Opening a store fences the process that had it open before.
//   - A reader holds no lock and no connection while its caller handles events.
//   - Secrets are sealed before they are written. The key is never in a file of the store.
//
// docs/INTEGRITY.md says which damage is detected and which cannot be.
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
	"sync"
	"sync/atomic"
	"syscall"

	_ "modernc.org/sqlite" // the driver

	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/eventlog/group"
)

// Options configure a store. The zero value is the safe choice.
type Options struct {
	Sync eventlog.Sync // guarantee of an acknowledged append; eventlog.Full if zero
	Used bool          // true if a file that is there and empty has lost its sessions: it is refused
	// KeyFile is the path of the file with the key of the secrets; seal.FileName beside the
	// store if empty. A missing file is made when the first secret is stored.
	KeyFile string
	Warn    func(line string) // called with a line for a person while the store is opened; may be nil
}

// Stats counts what was written since the store was opened.
type Stats struct {
	Commits int64 // number of transactions; with eventlog.Full each is synced once
	Appends int64 // number of batches that were stored, including forks
	Events  int64 // number of events that were stored
}

// A Store is a log in a file. It is safe for concurrent use.
type Store struct {
	path    string
	writing *sql.DB
	reading *sql.DB
	read    *reading   // prepared statements
	write   *writing   // used only by the goroutine that commits the queue
	broken  error      // reason for which nothing can be written any more; used by the same goroutine
	files   storeFiles // files of the store; an append fails if one of them was moved

	queue     *group.Queue[*op]
	closeOnce sync.Once
	closeErr  error

	heads   heads
	search  searchIndex
	sealing *eventlog.Sealing
	clear   int // what the table meta says of bytes that were not sealed

	upkeep  upkeep
	shrinks bool // true if free pages can be given back to the file system

	commits, appends, events atomic.Int64
	fetched                  atomic.Int64 // number of records that were read, for tests
}

var _ eventlog.Store = (*Store)(nil)

// Open opens the store in a file, and creates it if it does not exist. A process that
// has the store open already gets eventlog.ErrFenced from then on.
func Open(ctx context.Context, path string, opts Options) (*Store, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("store %s: %w", path, err)
	}
	isNew, err := makeFile(path)
	if err != nil {
		return nil, err
	}
	if other := neighbour(path); isNew && other != "" && opts.Warn != nil {
		opts.Warn(fmt.Sprintf("store %s did not exist and is made now, but %s is there: if you meant that one, correct store.url", path, other))
	}
	opts.Used = !isNew && (opts.Used || hasRemains(path))
	s := newStore(path)
	s.search.store, s.search.delay = s, fillDelay
	keys, err := openKeys(path, opts.KeyFile)
	if err != nil {
		return nil, err
	}
	s.sealing = eventlog.NewSealing(keys, keyTable{s})
	if err := s.connect(ctx, opts); err != nil {
		s.disconnect()
		return nil, err
	}
	if err := s.checkKeys(ctx, opts.Warn); err != nil {
		s.disconnect()
		return nil, err
	}
	if s.freePages() >= freeAllowed { // an earlier process was killed before it was done
		s.startUpkeep()
	}
	return s, nil
}

func newStore(path string) *Store {
	s := &Store{path: path, heads: newHeads()}
	s.queue = group.New(s.commit)
	return s
}

// makeFile creates the file, which no other user can read, and reports whether there was
// none. It refuses what can be no store, and changes nothing of a file that exists: the path
// may be a mistake. Such a file is never opened here either: closing it would release the
// locks that SQLite has on it.
func makeFile(path string) (isNew bool, err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	switch {
	case err == nil:
		return true, f.Close()
	case !errors.Is(err, fs.ErrExist):
		return false, explain(path, err)
	}
	if _, err := statFile(path); err != nil {
		return false, err
	}
	return false, explain(path, syscall.Access(path, readAndWrite))
}

// neighbour returns the path of what seems to be another store in the folder of a store, or
// nothing. It opens no file, because that could release locks that SQLite has on it.
func neighbour(path string) string {
	entries, _ := os.ReadDir(filepath.Dir(path)) // a folder that cannot be read shows no other store
	for _, e := range entries {
		other := filepath.Join(filepath.Dir(path), e.Name())
		if info, err := e.Info(); err == nil && info.Size() > 0 && filepath.Ext(other) == ".db" && other != path {
			return other
		}
	}
	return ""
}

// hasRemains reports whether there is something beside the file that only a store with
// sessions has: an index of messages, or a write-ahead log of a file without a first page. A
// store that a crash has interrupted while it was made has neither: SQLite stores the first
// page before there is a log.
func hasRemains(path string) bool {
	if info, err := os.Stat(path + "-search"); err == nil && info.Size() > 0 {
		return true
	}
	info, err := os.Stat(path)
	if err != nil || info.Size() > 0 {
		return false
	}
	log, err := os.Stat(path + "-wal")
	return err == nil && log.Size() > 0
}

// statFile describes the file of a store. It refuses what is not a file: opening a pipe
// would wait for ever.
func statFile(path string) (fs.FileInfo, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, explain(path, err)
	case info.IsDir():
		return nil, fmt.Errorf("store %s is a folder: name a file in it", path)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("store %s is not a file: name a file", path)
	}
	return info, nil
}

// hideFiles corrects the modes of the files of a store, so that no other user can read
// them. SQLite gives new side files the mode of the database.
func hideFiles(path string) error {
	for _, side := range sides {
		info, err := os.Stat(path + side)
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			err = os.Chmod(path+side, 0o600)
		}
		if err = ignore(err, fs.ErrNotExist); err != nil {
			return explain(path, err)
		}
	}
	return nil
}

// readAndWrite is the mode for access(2). SQLite itself would open a file that it may
// only read, and fail later with a less helpful error.
const readAndWrite = 4 | 2

// readers is the number of connections that read at the same time. Reading is fast, and
// each connection costs memory. The page cache of each is small (256 KiB), because a
// session is read from one end to the other, and no page twice.
const (
	readers  = 4
	readOnly = "_pragma=query_only(1)&_pragma=cache_size(-256)"
)

// connect opens the connections, checks and migrates the file, and takes the store
// over.
func (s *Store) connect(ctx context.Context, opts Options) (err error) {
	if s.writing, err = sql.Open("sqlite", dsn(s.path, opts, "_txlock=immediate")); err != nil {
		return explain(s.path, err)
	}
	conn, err := s.writing.Conn(ctx)
	if err != nil {
		return explain(s.path, err)
	}
	s.write = &writing{conn: conn}
	if err := checkVersion(ctx, conn); err != nil {
		return explain(s.path, err)
	}
	version, err := knownVersion(ctx, conn, s.path)
	if err == nil && version == 0 && opts.Used {
		err = fmt.Errorf("store %s is empty, although there is something of sessions beside it: restore it from a backup (abide restore), or move the file away to begin anew without them", s.path)
	}
	if err == nil {
		err = refuseMoved(ctx, conn, s.path, version)
	}
	if err != nil {
		return err // nothing was changed yet
	}
	if err := hideFiles(s.path); err != nil {
		return err
	}
	if err := useWAL(ctx, conn, s.path); err != nil {
		return err
	}
	if err = migrate(ctx, conn, s.path, s.sealing.Keys()); err != nil {
		return err
	}
	if err := s.write.prepare(ctx); err != nil {
		return explain(s.path, err)
	}
	if s.reading, err = sql.Open("sqlite", dsn(s.path, opts, readOnly)); err != nil {
		return explain(s.path, err)
	}
	s.reading.SetMaxOpenConns(readers)
	s.reading.SetMaxIdleConns(readers)
	if s.read, err = prepareReading(ctx, s.reading); err != nil {
		return explain(s.path, err)
	}
	if s.shrinks, err = canShrink(ctx, conn); err != nil {
		return explain(s.path, err)
	}
	s.files, err = findFiles(s.path)
	return err
}

// canShrink reports whether free pages of the file can be given back in small steps. Files
// of older versions cannot before they are compacted.
func canShrink(ctx context.Context, conn *sql.Conn) (bool, error) {
	const incremental = 2
	var mode int
	err := conn.QueryRowContext(ctx, "PRAGMA auto_vacuum").Scan(&mode)
	return mode == incremental, err
}

// pageSize is the size of a page in bytes. A record of a simple turn has about 1 kB, and
// the rest of a page into which no record fits is wasted.
const pageSize = 8192

// useWAL makes a new file use a write-ahead log, and checks that an old one does. The
// page size, and that the file can be made smaller, have to be set before that, and only
// once: setting them again would write to the file.
func useWAL(ctx context.Context, conn *sql.Conn, path string) error {
	var pages int
	if err := conn.QueryRowContext(ctx, "PRAGMA page_count").Scan(&pages); err != nil {
		return explain(path, err)
	}
	if pages == 0 {
		if _, err := conn.ExecContext(ctx, fmt.Sprintf("PRAGMA page_size = %d; PRAGMA auto_vacuum = INCREMENTAL", pageSize)); err != nil {
			return explain(path, err)
		}
	}
	var mode string
	if err := conn.QueryRowContext(ctx, "PRAGMA journal_mode = WAL").Scan(&mode); err != nil {
		return explain(path, err)
	}
	if mode != "wal" {
		return fmt.Errorf("store %s: this file system cannot share memory between processes: choose a data folder on a local disk", path)
	}
	return nil
}

// busyTimeout is how long a connection waits for a lock, in milliseconds: another process
// may be taking over.
const busyTimeout = "5000"

// dsn returns the name of the data source: the file, and the settings of every
// connection to it.
func dsn(path string, opts Options, more string) string {
	file := url.URL{Scheme: "file", OmitHost: true, Path: path}
	return file.String() + "?_error_rc=1" +
		"&_pragma=busy_timeout(" + busyTimeout + ")" +
		"&_pragma=synchronous(" + opts.Sync.String() + ")" +
		"&_pragma=secure_delete(ON)" + // deleted data is overwritten
		"&_pragma=journal_size_limit(16777216)" +
		"&" + more
}

// Close waits for appends that have begun and closes the file.
func (s *Store) Close() error {
	s.queue.Shut(eventlog.ErrClosed)
	s.upkeep.stop()
	s.queue.WaitIdle()
	s.closeOnce.Do(func() { s.closeErr = s.disconnect() })
	return s.closeErr
}

// disconnect closes the connections, those of readers first: the last connection that
// is closed copies the write-ahead log into the file.
func (s *Store) disconnect() error {
	errs := []error{s.search.close()}
	if s.reading != nil {
		errs = append(errs, s.reading.Close())
	}
	if s.write != nil {
		errs = append(errs, s.write.close())
	}
	if s.writing != nil {
		errs = append(errs, s.writing.Close())
	}
	return errors.Join(errs...)
}

// Stats returns the counters.
func (s *Store) Stats() Stats {
	return Stats{Commits: s.commits.Load(), Appends: s.appends.Load(), Events: s.events.Load()}
}
