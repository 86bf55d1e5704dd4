package sqlite

import (
	"context"
	"database/sql"
	"github.com/abide-run/abide/internal/eventlog/group"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// The limits of upkeep. SQLite itself copies the write-ahead log into the file after each
// 1000 pages (8 MiB), and begins the log anew if nobody is reading it at that moment.
const (
	freeAllowed = 512      // number of free pages (4 MiB) from which on the file is made smaller
	freeKept    = 256      // number of free pages (2 MiB) that stay for the next appends
	stepPages   = 64       // number of pages that are given back in one transaction: it takes some milliseconds
	walLimit    = 16 << 20 // size in bytes from which on the write-ahead log is cut
	diskNeeded  = 16 << 20 // bytes of free disk below which the file is left as it is: a step needs some in the log
	walCheck    = 4 << 20  // number of appended bytes after which the size of the log is looked at
)

// How long an attempt to cut the log waits for readers, in milliseconds. Appends wait
// meanwhile. Readers of this process need less than the first; the second is for a log of
// twice the limit, because a log that grows without end is worse than a delay.
const (
	cutWait     = "50"
	longCutWait = "250"
)

// The pauses between two attempts to cut the log while another process reads it: the
// first one, and the longest one.
const (
	firstCutPause = 100 * time.Millisecond
	lastCutPause  = 5 * time.Second
)

// upkeep gives free pages back to the file system and keeps the write-ahead log small.
// Its goroutine runs only while there is something to do. Each step is a change like an
// append and waits in the same queue, so that appends come between any two of them.
type upkeep struct {
	mu      sync.Mutex
	running bool
	again   bool // true if something was changed since the goroutine has looked
	stopped bool
	work    sync.WaitGroup
}

// start runs f in the goroutine of upkeep, again if f is running already.
func (u *upkeep) start(f func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.again = true
	if u.running || u.stopped {
		return
	}
	u.running = true
	u.work.Go(func() { // Close waits for it
		for u.next() {
			f()
		}
	})
}

// next reports whether there is something to look at. If not, the goroutine is over.
func (u *upkeep) next() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.running = u.again && !u.stopped
	u.again = false
	return u.running
}

// stop prevents further upkeep and waits for the goroutine.
func (u *upkeep) stop() {
	u.mu.Lock()
	u.stopped = true
	u.mu.Unlock()
	u.wait()
}

func (u *upkeep) wait() { u.work.Wait() }

// startUpkeep looks in the background whether there is upkeep to do, and does it.
func (s *Store) startUpkeep() {
	s.upkeep.start(func() {
		s.scrubLater()
		s.shrink()
		s.boundLog()
	})
}

// countWritten counts what a transaction has appended, and has the size of the write-ahead
// log looked at from time to time.
func (s *Store) countWritten(group []*op) {
	for _, o := range group {
		s.write.written += o.bytes
	}
	if s.write.written >= walCheck {
		s.write.written = 0
		s.startUpkeep()
	}
}

// shrink gives free pages back in small steps. Between two steps it pauses as long as the
// last one took, so that appends have at least half of the time.
func (s *Store) shrink() {
	free := s.freePages()
	if free < freeAllowed {
		return
	}
	for before := free + 1; free > freeKept && free < before && s.diskHasRoom(); {
		began := time.Now()
		if err := s.queue.Do(context.Background(), shrinkStep()); err != nil {
			return // the store is closed, or the file is damaged there
		}
		if !s.pause(time.Since(began)) {
			return
		}
		before, free = free, s.freePages()
	}
	s.cutLog() // the file gets shorter when the log is copied into it
}

// diskHasRoom reports whether a step can be written. A store that cannot write closes
// itself, and nobody waits for this step.
func (s *Store) diskHasRoom() bool {
	var disk syscall.Statfs_t
	err := syscall.Statfs(filepath.Dir(s.path), &disk)
	return err == nil && uint64(disk.Bavail)*uint64(disk.Bsize) >= diskNeeded
}

func shrinkStep() *op {
	return &op{
		apply:     func(w *writing) error { return w.exec("PRAGMA incremental_vacuum(" + strconv.Itoa(stepPages) + ")") },
		committed: func() {},
	}
}

// freePages returns the number of pages that can be given back. It is zero for a file of
// an older version, whose pages stay until it is compacted.
func (s *Store) freePages() (free int) {
	if s.shrinks {
		// If the number cannot be read, there is nothing to give back.
		_ = s.reading.QueryRow("PRAGMA freelist_count").Scan(&free)
	}
	return free
}

// boundLog cuts the write-ahead log if it is too long. While another process reads in one
// long transaction that is not possible: it is tried again until that ends.
func (s *Store) boundLog() {
	for pause := firstCutPause; s.logSize() > walLimit; pause = min(2*pause, lastCutPause) {
		if s.cutLog() || !s.pause(pause) {
			return
		}
	}
}

// cutWait returns how long the next attempt to cut the log waits for readers.
func (s *Store) cutWait() string {
	if s.logSize() > 2*walLimit {
		return longCutWait
	}
	return cutWait
}

func (s *Store) logSize() int64 {
	info, err := os.Stat(s.path + "-wal")
	if err != nil {
		return 0
	}
	return info.Size()
}

// cutLog copies the write-ahead log into the file and empties it, and reports whether it
// is done with that: it is, or the store is closed.
func (s *Store) cutLog() bool {
	busy, wait := false, s.cutWait()
	err := s.queue.Do(context.Background(), &op{Op: group.Op{Alone: true}, committed: func() {}, apply: func(w *writing) (err error) {
		busy, err = w.checkpoint(wait)
		return err
	}})
	return err != nil || !busy
}

// checkpoint copies the write-ahead log into the file and empties it, unless somebody
// still reads it after the given number of milliseconds. It reports whether that is so.
func (w *writing) checkpoint(wait string) (busy bool, err error) {
	if err := w.exec("PRAGMA busy_timeout = " + wait); err != nil {
		return false, err
	}
	var pages, copied int
	row := w.conn.QueryRowContext(context.Background(), "PRAGMA wal_checkpoint(TRUNCATE)")
	err = row.Scan(&busy, &pages, &copied)
	if again := w.exec("PRAGMA busy_timeout = " + busyTimeout); err == nil {
		err = again
	}
	return busy, err
}

// Compact writes the file anew without free pages, and makes a file of an older version one
// that gets smaller by itself after sessions were deleted. It is one transaction, which a
// crash undoes. Everything else waits meanwhile, and the disk must have room for a second
// copy.
func (s *Store) Compact(ctx context.Context) error {
	return s.queue.Do(ctx, &op{
		Op: group.Op{Alone: true},
		apply: func(w *writing) error {
			for _, text := range []string{"PRAGMA auto_vacuum = INCREMENTAL", "VACUUM"} {
				if err := w.exec(text); err != nil {
					return err
				}
			}
			_, err := w.checkpoint(busyTimeout)
			return err
		},
		committed: func() {},
	})
}

// oneFile makes a copy of a store that nobody has open one file, without a write-ahead log.
const oneFile = "PRAGMA journal_mode = DELETE;"

// Convert makes a store of an older version that nobody has open one that gets smaller by
// itself. Its tables stay as they are: the engine that opens it has the key of the secrets.
func Convert(ctx context.Context, path string) error {
	db, err := sql.Open("sqlite", dsn(path, Options{}, "_txlock=immediate"))
	if err != nil {
		return explain(path, err)
	}
	defer db.Close()
	conn, err := db.Conn(ctx)
	if err != nil {
		return explain(path, err)
	}
	defer conn.Close()
	shrinks, err := canShrink(ctx, conn)
	if err == nil && !shrinks {
		_, err = conn.ExecContext(ctx, oneFile+"PRAGMA auto_vacuum = INCREMENTAL; VACUUM")
	}
	return explain(path, err)
}

// pause waits, and reports whether the store is still open.
func (s *Store) pause(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-s.queue.Closed():
		return false
	}
}
