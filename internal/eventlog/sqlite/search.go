package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/eventlog/record"
	"github.com/abide-run/abide/internal/memory/rank"
)

// A searchIndex is the full-text index of the messages of a store. It is a file of its
// own beside the store, so that filling it costs appends nothing, and damage to it costs
// no event: it can be made again from the log at any time.
//
// Appends only note which sessions have changed. When the store is quiet, and before each
// search, the index takes in what they have added. What changed in other processes is found when
// the index is opened, by comparing the ends of all sessions.
type searchIndex struct {
	store *Store
	delay time.Duration // time without appends before the index is filled

	mu    sync.Mutex // held while the index is used; never while the store commits
	db    *sql.DB
	conn  *sql.Conn // nil if the index is not open
	own   bool      // true if the open file is known to be an index, so that it may be replaced
	stale []staleSession

	touched struct {
		sync.Mutex
		sessions    map[event.SessionID]bool
		timer       *time.Timer // fills the index; nil if nothing is to be done
		first, last time.Time   // times of the first and the last change that the index lacks
		closed      bool
	}
	filling sync.WaitGroup
}

// A staleSession is a session with events that the index lacks.
type staleSession struct {
	row int64
	id  event.SessionID
	has eventlog.End // end up to which the index has it
}

// indexID marks the file as a search index of abide: "abix" in ASCII.
const indexID = 0x61626978

// indexSchema is the schema of the index. The rows of messages have the keys of their
// events as numbers: messages has what users and models said, and terms has that, too, and what
// was done, by the stems of its words. The words are separated already, and in lower case.
const indexSchema = `
	CREATE TABLE indexed (session INTEGER PRIMARY KEY, seq INTEGER NOT NULL, head BLOB NOT NULL) STRICT;
	CREATE VIRTUAL TABLE messages USING fts5(words, tokenize = 'ascii', columnsize = 0);
	INSERT INTO messages (messages, rank) VALUES ('secure-delete', 1);
	CREATE VIRTUAL TABLE terms USING fts5(stems, tokenize = 'ascii', columnsize = 0, detail = none);
	INSERT INTO terms (terms, rank) VALUES ('secure-delete', 1);
	PRAGMA user_version = 2`

// indexVersion is the version of the schema. An index of another version is made again.
const indexVersion = 2

// The index is filled when nothing was appended for fillDelay, so that turns that are
// running are not disturbed, but no later than fillLatest after the first append: a search
// would have to wait for all of it.
const (
	fillDelay  = 30 * time.Second
	fillLatest = 10 * time.Minute
)

// touch notes that a session has changed.
func (x *searchIndex) touch(id event.SessionID) {
	t := &x.touched
	t.Lock()
	defer t.Unlock()
	if t.closed {
		return
	}
	if t.sessions == nil {
		t.sessions = make(map[event.SessionID]bool)
	}
	t.sessions[id] = true
	t.last = time.Now()
	if t.timer == nil {
		t.first = t.last
		x.filling.Add(1)
		t.timer = time.AfterFunc(x.delay, x.fillInBackground) // close waits for it
	}
}

// isQuiet reports whether the index is to be filled now. If not, it sets the timer again.
func (x *searchIndex) isQuiet() bool {
	t := &x.touched
	t.Lock()
	defer t.Unlock()
	wait := min(x.delay-time.Since(t.last), fillLatest-time.Since(t.first))
	if wait > 0 && !t.closed {
		t.timer.Reset(wait)
		return false
	}
	t.timer = nil
	return true
}

// fillInBackground takes in what has changed, in small parts with pauses. After an error the
// next search opens the index again, and finds out what it lacks.
func (x *searchIndex) fillInBackground() {
	if !x.isQuiet() {
		return
	}
	defer x.filling.Done()
	for {
		began := time.Now()
		x.mu.Lock()
		err := x.open(context.Background())
		if err == nil {
			err = x.fillPart()
		}
		if err != nil {
			x.disconnect()
		}
		left := len(x.stale)
		x.mu.Unlock()
		if err != nil || left == 0 || !x.pause(min(4*time.Since(began), 100*time.Millisecond)) {
			return
		}
	}
}

// pause waits, and reports whether the store is still open.
func (x *searchIndex) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-x.store.queue.Closed():
		return false
	}
}

// close stops filling and closes the index.
func (x *searchIndex) close() error {
	t := &x.touched
	t.Lock()
	t.closed = true
	if t.timer != nil && t.timer.Stop() {
		x.filling.Done()
	}
	t.Unlock()
	x.filling.Wait()
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.disconnect()
}

func (x *searchIndex) disconnect() (err error) {
	if x.conn != nil {
		err = x.conn.Close()
	}
	if x.db != nil {
		err = errors.Join(err, x.db.Close())
	}
	x.conn, x.db, x.stale, x.own = nil, nil, nil, false
	return err
}

// path returns the path of the file.
func (x *searchIndex) path() string { return x.store.path + "-search" }

// open opens the index. One that cannot be used is replaced by an empty one. A file that
// is not known to be an index stays as it is, and sessions are searched without one.
func (x *searchIndex) open(ctx context.Context) error {
	if err := x.store.queue.Open(ctx); err != nil || x.conn != nil {
		return err
	}
	err := x.connect(ctx)
	if err != nil && x.own && !isTemporary(err) && x.store.queue.Open(ctx) == nil {
		if err = x.drop(); err == nil {
			err = x.connect(ctx)
		}
	}
	if err != nil {
		x.disconnect()
	}
	return err
}

// drop removes the index, which is open.
func (x *searchIndex) drop() error {
	if !x.own {
		return fmt.Errorf("%s is not known to be a search index: move it away", x.path())
	}
	err := x.disconnect()
	for _, side := range sides {
		err = errors.Join(err, ignore(os.Remove(x.path()+side), fs.ErrNotExist))
	}
	return err
}

// connect opens the file, makes its tables if it is new, and finds the sessions that it
// lacks.
func (x *searchIndex) connect(ctx context.Context) (err error) {
	if _, err := makeFile(x.path()); err != nil {
		return err
	}
	x.db, err = sql.Open("sqlite", dsn(x.path(), Options{Sync: eventlog.Normal}, "_pragma=cache_size(-4096)&_txlock=immediate"))
	if err != nil {
		return err
	}
	if x.conn, err = x.db.Conn(ctx); err != nil {
		return err
	}
	if err := x.claim(ctx); err != nil {
		return err
	}
	var version int
	if err := x.conn.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return err
	}
	if version != 0 && version != indexVersion {
		return fmt.Errorf("search index %s has version %d", x.path(), version)
	}
	if version == 0 {
		if err := x.exec(indexSchema); err != nil {
			return err
		}
	}
	log := url.URL{Scheme: "file", OmitHost: true, Path: x.store.path, RawQuery: "mode=ro"}
	if err := x.exec("ATTACH ? AS log", log.String()); err != nil {
		return err
	}
	if err := x.purge(); err != nil {
		return err
	}
	x.stale, err = x.compare("")
	return err
}

// claim makes sure that the open file is an index before anything is written to it, and
// marks it as one if it is new or has no mark. It refuses every other file: a store may
// have been given the name of an index.
func (x *searchIndex) claim(ctx context.Context) error {
	var app int
	if err := x.conn.QueryRowContext(ctx, "PRAGMA application_id").Scan(&app); err != nil {
		return err
	}
	if app != indexID { // earlier versions did not mark the file
		var tables, own int
		row := x.conn.QueryRowContext(ctx, "SELECT count(*), count(*) FILTER (WHERE name IN ('indexed', 'messages')) FROM sqlite_schema")
		if err := row.Scan(&tables, &own); err != nil {
			return err
		}
		if app != 0 || tables > 0 && own < 2 {
			return fmt.Errorf("%s is a database, but no search index: move it away", x.path())
		}
	}
	x.own = true
	return x.exec(fmt.Sprintf("PRAGMA journal_mode = WAL; PRAGMA application_id = %d", indexID))
}

// exec runs a statement that returns no rows. It is not interrupted: the connection would
// be lost.
func (x *searchIndex) exec(text string, args ...any) error {
	_, err := x.conn.ExecContext(context.Background(), text, args...)
	return err
}

// compare returns the sessions with events that the index lacks, the last modified first:
// of all sessions, or that with the given name.
func (x *searchIndex) compare(name event.SessionID) (list []staleSession, err error) {
	which, args := "", []any{}
	if name != "" {
		which, args = " AND s.name = ?", []any{string(name)}
	}
	rows, err := x.conn.QueryContext(context.Background(), `SELECT s.id, s.name, coalesce(i.seq, 0), coalesce(i.head, zeroblob(32))
		FROM log.sessions s LEFT JOIN indexed i ON i.session = s.id
		WHERE NOT s.deleted AND (i.seq IS NULL OR i.seq <> s.seq OR i.head <> s.head)`+which+" ORDER BY s.modified DESC", args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var one staleSession
		var head []byte
		if err := rows.Scan(&one.row, &one.id, &one.has.Seq, &head); err != nil {
			return nil, err
		}
		one.has.Hash = record.Hash(head)
		list = append(list, one)
	}
	return list, rows.Err()
}

// purge removes what the index has of sessions that do not exist any more: an engine
// that was killed may have left it.
func (x *searchIndex) purge() error {
	gone, err := x.numbers(`SELECT i.session FROM indexed i LEFT JOIN log.sessions s ON s.id = i.session AND NOT s.deleted WHERE s.id IS NULL`)
	if err != nil {
		return err
	}
	for _, row := range gone {
		if err := x.store.queue.Open(context.Background()); err != nil {
			return err
		}
		if err := x.transact(func() error { return x.removeSession(row) }); err != nil {
			return err
		}
	}
	return nil
}

// transact runs f in a transaction of the index.
func (x *searchIndex) transact(f func() error) error {
	if err := x.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	err := f()
	if err == nil {
		err = x.exec("COMMIT")
	}
	if err != nil {
		_ = x.exec("ROLLBACK") // SQLite may have ended the transaction already
	}
	return err
}

// removeSession removes a session from the index.
func (x *searchIndex) removeSession(row int64) error {
	if err := x.removeRange(row, 0, maxSeq); err != nil {
		return err
	}
	return x.exec("DELETE FROM indexed WHERE session = ?", row)
}

// removeRange removes the messages of a session from one position to another.
func (x *searchIndex) removeRange(row int64, from, to event.Seq) error {
	if err := x.exec("DELETE FROM messages WHERE rowid BETWEEN ? AND ?", key(row, from), key(row, to)); err != nil {
		return err
	}
	return x.exec("DELETE FROM terms WHERE rowid BETWEEN ? AND ?", key(row, from), key(row, to))
}

// forget removes a deleted session from the index at once. If that fails, nothing of the
// index is left: a deleted text must not stay.
func (x *searchIndex) forget(row int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if _, err := os.Stat(x.path()); errors.Is(err, fs.ErrNotExist) {
		return
	}
	err := x.open(context.Background())
	if err == nil {
		err = x.transact(func() error { return x.removeSession(row) })
	}
	if err != nil {
		_ = x.drop()
	}
}

// maxCompared is the number of changed sessions that are compared with the index one by one.
// One look at all sessions takes less time than looks at more of them.
const maxCompared = 1000

// takeTouched adds the sessions that have changed to the stale ones.
func (x *searchIndex) takeTouched() (err error) {
	t := &x.touched
	t.Lock()
	changed := t.sessions
	t.sessions = nil
	t.Unlock()
	if len(changed) > maxCompared {
		x.stale, err = x.compare("")
		return err
	}
	var more []staleSession
	renewed := make(map[int64]bool)
	for id := range changed {
		list, err := x.compare(id)
		if err != nil {
			return err
		}
		for _, one := range list {
			more, renewed[one.row] = append(more, one), true
		}
	}
	if len(more) > 0 {
		x.stale = slices.DeleteFunc(x.stale, func(one staleSession) bool { return renewed[one.row] })
		x.stale = append(x.stale, more...)
	}
	return nil
}

// The size of a part of the work of filling.
const (
	partSessions = 100
	partBytes    = 1 << 20
)

// fillPart takes in some of what the index lacks, in one transaction. A long session is taken
// in by several parts, so that whoever closes the store waits for one of them at most.
func (x *searchIndex) fillPart() error {
	if err := x.takeTouched(); err != nil {
		return err
	}
	done, size := 0, 0
	var rest []staleSession
	err := x.transact(func() error {
		for done < len(x.stale) && done < partSessions && size < partBytes {
			if err := x.store.queue.Open(context.Background()); err != nil {
				return err
			}
			n, left, err := x.takeIn(x.stale[done], partBytes-size)
			if err != nil {
				return err
			}
			size, rest = size+n, append(rest, left...)
			done++
		}
		return nil
	})
	if err == nil {
		x.stale = append(rest, x.stale[done:]...)
	}
	return err
}

// takeIn takes in what the index lacks of a session, about most bytes of it. It returns how
// much that was, and the session if the index lacks more of it.
func (x *searchIndex) takeIn(one staleSession, most int) (size int, left []staleSession, err error) {
	end := one.has
	for e, err := range x.store.ReadFrom(context.Background(), one.id, one.has) {
		switch {
		case errors.Is(err, eventlog.ErrNotFound): // it was deleted
			return size, nil, x.removeSession(one.row)
		case errors.Is(err, eventlog.ErrConflict) && one.has != (eventlog.End{}): // the index is of another log
			if err := x.removeSession(one.row); err != nil {
				return size, nil, err
			}
			one.has = eventlog.End{}
			return x.takeIn(one, most)
		case is[*eventlog.Damage](err):
			return size, nil, x.setEnd(one.row, end) // events after the damage are taken in when they can be read
		case err != nil:
			return size, nil, err
		}
		if size >= most {
			left = []staleSession{{one.row, one.id, end}}
			break
		}
		if err := x.add(one.row, e); err != nil {
			return size, nil, err
		}
		size += len(e.Bytes)
		end = end.Next(e.Bytes)
	}
	return size, left, x.setEnd(one.row, end)
}

func (x *searchIndex) setEnd(row int64, end eventlog.End) error {
	return x.exec("INSERT OR REPLACE INTO indexed (session, seq, head) VALUES (?, ?, ?)", row, int64(end.Seq), end.Hash[:])
}

// add takes in an event.
func (x *searchIndex) add(row int64, e event.Event) error {
	if from, to, hides := eventlog.Hides(e); hides {
		return x.removeRange(row, max(0, from), min(to, maxSeq))
	}
	said, isSaid := eventlog.Said(e)
	if isSaid && said != "" {
		if err := x.exec("INSERT OR REPLACE INTO messages (rowid, words) VALUES (?, ?)", key(row, e.Seq), strings.Join(eventlog.Words(said), " ")); err != nil {
			return err
		}
	}
	done, isDone := eventlog.Done(e)
	if !isSaid && !isDone {
		return nil
	}
	terms := rank.Terms(said + "\n" + done)
	slices.Sort(terms)
	if terms = slices.Compact(terms); len(terms) == 0 {
		return nil
	}
	return x.exec("INSERT OR REPLACE INTO terms (rowid, stems) VALUES (?, ?)", key(row, e.Seq), strings.Join(terms, " "))
}

// Search implements eventlog.Store. If the index cannot be used, for example because the
// disk is full, it reads the sessions instead.
func (s *Store) Search(ctx context.Context, q eventlog.Search) (eventlog.Found, error) {
	phrases, err := q.Phrases()
	if err != nil {
		return eventlog.Found{}, err
	}
	places, behind, err := s.search.find(ctx, q, matchText(phrases))
	if closed := s.queue.Open(ctx); closed != nil {
		return eventlog.Found{}, closed
	}
	if err != nil {
		return eventlog.Scan(ctx, s, q)
	}
	found := eventlog.Found{Behind: behind}
	if found.More = len(places) > q.Limit(); found.More {
		places = places[:q.Limit()]
	}
	for _, p := range places {
		m, ok, err := s.match(ctx, p, phrases)
		if err != nil {
			return eventlog.Found{}, err
		}
		if ok {
			found.Matches = append(found.Matches, m)
		}
	}
	return found, nil
}

// matchText returns phrases in the language of FTS5. Words have only letters, digits and
// marks, so that none of them means something else there.
func matchText(phrases []eventlog.Phrase) string {
	parts := make([]string, len(phrases))
	for i, p := range phrases {
		parts[i] = `"` + strings.Join(p.Words, " ") + `"`
		if p.Prefix {
			parts[i] += " *"
		}
	}
	return strings.Join(parts, " AND ")
}

// A messagePlace is the place of a message.
type messagePlace struct {
	id  event.SessionID
	seq event.Seq
}

// find brings the index up to date and returns the places of messages, one more than the
// search wants if there are so many. behind is the number of sessions for which there was
// no time.
func (x *searchIndex) find(ctx context.Context, q eventlog.Search, match string) (places []messagePlace, behind int, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if q.Rebuild {
		if err := errors.Join(x.open(ctx), x.drop()); err != nil {
			return nil, 0, err
		}
	}
	if err := x.fill(ctx, q.Patience); err != nil {
		x.disconnect() // opening the index again finds out what is wrong
		return nil, 0, err
	}
	places, err = x.query(match, q.Limit()+1)
	if corrupt(err) {
		err = errors.Join(err, x.drop())
	}
	return places, len(x.stale), err
}

// fill brings the index up to date, as far as there is time.
func (x *searchIndex) fill(ctx context.Context, patience time.Duration) error {
	began := time.Now()
	if err := x.open(ctx); err != nil {
		return err
	}
	for more := true; more; more = len(x.stale) > 0 && (patience == 0 || time.Since(began) < patience) {
		if err := x.store.queue.Open(ctx); err != nil {
			return err
		}
		if err := x.fillPart(); err != nil {
			return err
		}
	}
	return nil
}

// The limits of how a search finds the newest matches.
const (
	maxSorted = 1000 // number of matches that are sorted
	maxProbed = 500  // number of sessions that are asked one by one for matches
)

// isListed is true for the sessions that are searched.
const isListed = " NOT s.deleted AND CASE WHEN json_valid(s.info) THEN s.info ->> '$.listed' END"

// query returns the places of messages, those of the last modified session first. A common
// word is in most messages, and only the newest of them are wanted: then the last sessions are
// asked one by one, which takes as long in a large store as in a small one. A word that is in
// many messages, but not in those, is looked for in all of them.
func (x *searchIndex) query(match string, most int) ([]messagePlace, error) {
	some, err := x.numbers("SELECT rowid FROM messages WHERE words MATCH ? LIMIT ?", match, maxSorted+1)
	if err != nil || len(some) == 0 {
		return nil, err
	}
	if len(some) <= maxSorted {
		return x.places(most, nil, `SELECT s.name, m.rowid
			FROM messages m CROSS JOIN log.sessions s ON s.id = m.rowid >> 32
			WHERE m.words MATCH ? AND`+isListed+" ORDER BY s.modified DESC, m.rowid LIMIT ?", match, most)
	}
	if places, err := x.probe(match, most); err != nil || len(places) == most {
		return places, err
	}
	matches, err := x.matches(match)
	if err != nil {
		return nil, err
	}
	return x.newest(matches, most)
}

// inNewestOrder selects the sessions that are searched, the last modified first.
const inNewestOrder = "SELECT s.name, s.id FROM log.sessions s WHERE" + isListed + " ORDER BY s.recent DESC, s.modified DESC, s.id"

// probe returns the places of matches in the last sessions.
func (x *searchIndex) probe(match string, most int) (places []messagePlace, err error) {
	last, err := x.lastSessions()
	for _, s := range last {
		if err != nil || len(places) == most {
			break
		}
		var keys []int64
		keys, err = x.numbers("SELECT rowid FROM messages WHERE words MATCH ? AND rowid BETWEEN ? AND ? ORDER BY rowid LIMIT ?", match, key(s.row, 0), key(s.row, maxSeq), most-len(places))
		for _, k := range keys {
			places = append(places, messagePlace{s.id, event.Seq(k & maxSeq)})
		}
	}
	return places, err
}

// lastSessions returns the sessions that are probed, the last modified first.
func (x *searchIndex) lastSessions() (list []staleSession, err error) {
	rows, err := x.conn.QueryContext(context.Background(), inNewestOrder+" LIMIT ?", maxProbed)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var one staleSession
		if err := rows.Scan(&one.id, &one.row); err != nil {
			return nil, err
		}
		list = append(list, one)
	}
	return list, rows.Err()
}

// newest returns the places of sorted matches, those of the last modified session first.
func (x *searchIndex) newest(matches []int64, most int) ([]messagePlace, error) {
	of := func(row int64) []int64 {
		first, _ := slices.BinarySearch(matches, key(row, 0))
		end, _ := slices.BinarySearch(matches, key(row+1, 0))
		return matches[first:end]
	}
	return x.places(most, of, inNewestOrder)
}

// places returns the places that a query for names and keys finds, most at last. If of is not
// nil, the query is for names and rows of sessions, and of returns the keys of a row.
func (x *searchIndex) places(most int, of func(row int64) []int64, text string, args ...any) (places []messagePlace, err error) {
	rows, err := x.conn.QueryContext(context.Background(), text, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for len(places) < most && rows.Next() {
		var id event.SessionID
		var found int64
		if err := rows.Scan(&id, &found); err != nil {
			return nil, err
		}
		keys := []int64{found}
		if of != nil {
			keys = of(found)
		}
		for _, k := range keys[:min(len(keys), most-len(places))] {
			places = append(places, messagePlace{id, event.Seq(k & maxSeq)})
		}
	}
	return places, rows.Err()
}

// matches returns the keys of all matches, in order.
func (x *searchIndex) matches(match string) ([]int64, error) {
	return x.numbers("SELECT rowid FROM messages WHERE words MATCH ? ORDER BY rowid", match)
}

// numbers returns the rows of a query for numbers.
func (x *searchIndex) numbers(text string, args ...any) (list []int64, err error) {
	rows, err := x.conn.QueryContext(context.Background(), text, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var n int64
		if err := rows.Scan(&n); err != nil {
			return nil, err
		}
		list = append(list, n)
	}
	return list, rows.Err()
}

// match reads a message that the index has found. ok is false if it cannot be read any
// more, because its session was deleted or is damaged.
func (s *Store) match(ctx context.Context, p messagePlace, phrases []eventlog.Phrase) (m eventlog.Match, ok bool, err error) {
	m.Session, err = s.Session(ctx, p.id)
	if err == nil {
		for e, failed := range s.Read(ctx, p.id, p.seq-1) {
			m.Event, err = e, failed
			break
		}
	}
	if is[*eventlog.Damage](err) || errors.Is(err, eventlog.ErrNotFound) {
		return m, false, nil
	}
	if err != nil {
		return m, false, err
	}
	text, _ := eventlog.Said(m.Event)
	m.Line, ok = eventlog.Excerpt(text, phrases)
	return m, ok, nil
}
