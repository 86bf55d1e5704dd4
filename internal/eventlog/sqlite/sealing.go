package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/eventlog/group"
	"github.com/abide-run/abide/internal/seal"
)

// openKeys reads the key file of a store.
func openKeys(store, path string) (*seal.File, error) {
	if path == "" {
		path = filepath.Join(filepath.Dir(store), seal.FileName)
	}
	return seal.OpenFile(path)
}

// keyTable is the eventlog.KeyTable of a store.
type keyTable struct{ s *Store }

// Ready implements eventlog.KeyTable. A store that is not at its place any more makes no key either.
func (t keyTable) Ready(ctx context.Context) error {
	return t.s.queue.Do(ctx, &op{apply: func(*writing) error { return nil }, committed: func() {}})
}

// AddKey implements eventlog.KeyTable. The table serves to notice a missing key, and nothing else.
func (t keyTable) AddKey(ctx context.Context, id seal.ID) error {
	err := t.s.queue.Do(ctx, &op{
		apply:     func(w *writing) error { return w.exec(insertKey, id[:]) },
		committed: func() {},
	})
	if corrupt(err) {
		return nil
	}
	return err
}

const insertKey = "INSERT OR IGNORE INTO keys (id) VALUES (?)"

// checkKeys reads which keys have sealed values, and warns of values that cannot be opened.
// It looks at the values only if a key is missing.
func (s *Store) checkKeys(ctx context.Context, warn func(string)) error {
	if warn == nil {
		warn = func(string) {}
	}
	known, err := storedKeys(ctx, s.reading)
	if err != nil && !corrupt(err) {
		return explain(s.path, err)
	}
	s.sealing.Known(known...)
	file := s.sealing.Keys()
	if mode := file.Exposed(); mode != 0 {
		warn(eventlog.ExposedKey(file, mode))
	}
	has := file.IDs()
	for _, id := range known {
		if slices.Contains(has, id) {
			continue
		}
		sessions, err := sealedWith(ctx, s.reading, id)
		if err == nil && sessions == 0 {
			err = s.forgetKey(ctx, id)
		}
		switch {
		case corrupt(err): // a damaged page costs the sessions on it at most
		case err != nil:
			return explain(s.path, err)
		case sessions > 0:
			warn(eventlog.UnreadableSecrets(id, sessions, file))
		}
	}
	return s.scrub(ctx, warn)
}

// storedKeys returns the ids of the keys that have sealed values.
func storedKeys(ctx context.Context, q rowsQuerier) (ids []seal.ID, err error) {
	rows, err := q.QueryContext(ctx, "SELECT id FROM keys")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var b []byte
		if err := rows.Scan(&b); err != nil {
			return nil, err
		}
		if len(b) == len(seal.ID{}) {
			ids = append(ids, seal.ID(b))
		}
	}
	return ids, rows.Err()
}

// sealedWith returns the number of sessions with secrets that a key has sealed.
func sealedWith(ctx context.Context, q querier, id seal.ID) (sessions int, err error) {
	err = q.QueryRowContext(ctx, "SELECT count(DISTINCT session) FROM secrets WHERE substr(value, 2, ?) = ?", len(id), id[:]).Scan(&sessions)
	return sessions, err
}

// forgetKey removes a key of which no value is left. It is not in the key file, so that nothing
// more is sealed with it.
func (s *Store) forgetKey(ctx context.Context, id seal.ID) error {
	return s.queue.Do(ctx, &op{
		apply:     func(w *writing) error { return w.exec("DELETE FROM keys WHERE id = ?", id[:]) },
		committed: func() {},
	})
}

// What the column clear of the table meta says.
const (
	noneClear    = iota
	clearInLog   // the write-ahead log may hold secrets that are not sealed
	clearInPages // so may pages of the file that no table has
)

// atStep is called between the steps of sealing what an older version has stored. Tests end
// the process there.
var atStep = func(step string) {}

// A clearSecret is a secret that an older version has stored, which did not seal it.
type clearSecret struct {
	row     int64 // row of the session
	session event.SessionID
	eventlog.Secret
}

// sealStored seals the secrets that an older version has stored, inside the transaction of
// a migration. They are written to a new table: the pages of the old one become free as a
// whole, and SQLite overwrites free pages.
func sealStored(ctx context.Context, tx *sql.Tx, keys *seal.File) error {
	var some bool
	if err := tx.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM secrets)").Scan(&some); err != nil || !some {
		return err
	}
	names := make(map[int64]event.SessionID)
	if err := namesByRow(ctx, tx, "INDEXED BY names", names); err != nil {
		return err
	}
	id, err := keys.Ready()
	if err != nil {
		return err
	}
	atStep("made the key")
	if _, err := tx.ExecContext(ctx, "CREATE TABLE sealed "+secretColumns); err != nil {
		return err
	}
	for _, row := range slices.Sorted(maps.Keys(names)) {
		secrets, err := clearSecrets(ctx, tx, row, names[row])
		if err == nil {
			err = insertSealed(ctx, tx, keys, "sealed", secrets)
		}
		if err != nil {
			return err
		}
	}
	atStep("sealed the values")
	if _, err := tx.ExecContext(ctx, "DROP TABLE secrets; ALTER TABLE sealed RENAME TO secrets"); err != nil {
		return err
	}
	return recordSealed(ctx, tx, id, clearInLog)
}

const secretColumns = `(
	session INTEGER NOT NULL,
	name    TEXT    NOT NULL,
	value   BLOB    NOT NULL,
	PRIMARY KEY (session, name)
) STRICT, WITHOUT ROWID`

// salvageSecrets reads the secrets that are not on damaged pages. It is called outside of a
// transaction, because one in which SQLite has found a damaged page cannot change the schema.
func salvageSecrets(ctx context.Context, conn *sql.Conn) (all []clearSecret, err error) {
	names := make(map[int64]event.SessionID)
	if err = namesByRow(ctx, conn, "INDEXED BY names", names); corrupt(err) {
		err = namesByRow(ctx, conn, "NOT INDEXED", names)
	}
	if err != nil && !corrupt(err) {
		return nil, err
	}
	for row, id := range names {
		secrets, err := clearSecrets(ctx, conn, row, id)
		if err != nil && !corrupt(err) {
			return nil, err
		}
		all = append(all, secrets...)
	}
	return all, nil
}

// sealSalvaged seals what was read of a table of secrets with a damaged page. SQLite cannot
// remove such a table: only its entry in the schema goes, and its pages stay until the file
// is vacuumed.
func sealSalvaged(ctx context.Context, tx *sql.Tx, keys *seal.File, salvaged []clearSecret) error {
	id, err := keys.Ready()
	if err != nil {
		return err
	}
	const drop = `PRAGMA writable_schema = ON;
		DELETE FROM sqlite_schema WHERE tbl_name = 'secrets';
		PRAGMA writable_schema = RESET;`
	if _, err := tx.ExecContext(ctx, drop+"CREATE TABLE secrets "+secretColumns); err != nil {
		return err
	}
	if err := insertSealed(ctx, tx, keys, "secrets", salvaged); err != nil {
		return err
	}
	return recordSealed(ctx, tx, id, clearInPages)
}

// recordSealed records which key has sealed the secrets, and where they may be left in
// clear.
func recordSealed(ctx context.Context, tx *sql.Tx, id seal.ID, left int) error {
	if _, err := tx.ExecContext(ctx, insertKey, id[:]); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, "UPDATE meta SET clear = ?", left)
	return err
}

// namesByRow reads the names of all sessions by their row numbers: from SQLite's index of
// names, or from the sessions, which are on other pages. Either may be damaged.
func namesByRow(ctx context.Context, q rowsQuerier, from string, names map[int64]event.SessionID) error {
	rows, err := q.QueryContext(ctx, "SELECT id, name FROM sessions "+from)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var row int64
		var name event.SessionID
		if err := rows.Scan(&row, &name); err != nil {
			return err
		}
		names[row] = name
	}
	return rows.Err()
}

// clearSecrets reads the secrets of a session that are not sealed. With an error it returns
// those before the damage.
func clearSecrets(ctx context.Context, q rowsQuerier, row int64, id event.SessionID) (secrets []clearSecret, err error) {
	rows, err := q.QueryContext(ctx, "SELECT name, value FROM secrets WHERE session = ?", row)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		one := clearSecret{row: row, session: id}
		if err := rows.Scan(&one.Name, &one.Value); err != nil {
			return secrets, err
		}
		secrets = append(secrets, one)
	}
	return secrets, rows.Err()
}

// insertSealed seals secrets and adds them to a table.
func insertSealed(ctx context.Context, tx *sql.Tx, keys *seal.File, table string, secrets []clearSecret) error {
	for _, one := range secrets {
		sealed, err := eventlog.SealSecret(keys, one.session, one.Secret)
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "INSERT INTO "+table+" (session, name, value) VALUES (?, ?, ?)", one.row, one.Name, sealed); err != nil {
			return err
		}
	}
	return nil
}

// scrub removes what is left of secrets that were not sealed. A process that reads the
// store may be in the way: then upkeep tries again.
func (s *Store) scrub(ctx context.Context, warn func(string)) error {
	if err := s.reading.QueryRowContext(ctx, "SELECT clear FROM meta").Scan(&s.clear); err != nil {
		return explain(s.path, err)
	}
	if s.clear == noneClear {
		return nil
	}
	atStep("stored the sealed values")
	switch done, err := s.tryScrub(ctx); {
	case corrupt(err):
		warn(fmt.Sprintf("the store %s is damaged, and the part of it that is lost may hold secrets that an older version has stored in clear: do not give the file away", s.path))
	case err != nil:
		return err
	case !done:
		s.startUpkeep()
	}
	return nil
}

// tryScrub reports whether the files hold no secret any more that is not sealed.
func (s *Store) tryScrub(ctx context.Context) (done bool, err error) {
	err = s.queue.Do(ctx, &op{Op: group.Op{Alone: true}, committed: func() {}, apply: func(w *writing) error {
		if s.clear == clearInPages {
			if err := w.exec("VACUUM"); err != nil {
				return err
			}
		}
		busy, err := w.checkpoint(cutWait)
		if err != nil || busy {
			return err
		}
		atStep("emptied the write-ahead log")
		done = true
		return w.exec("UPDATE meta SET clear = 0")
	}})
	if done && err == nil {
		s.clear = noneClear
	}
	return done, err
}

// scrubLater tries to remove what is left of secrets that were not sealed until nobody is in
// the way any more.
func (s *Store) scrubLater() {
	for pause := firstCutPause; s.clear != noneClear; pause = min(2*pause, lastCutPause) {
		if _, err := s.tryScrub(context.Background()); err != nil || !s.pause(pause) {
			return
		}
	}
}

// Sealed describes how the secrets of a store are kept.
type Sealed struct {
	Keys  map[seal.ID]int // number of sessions with secrets that a key has sealed
	Clear bool            // true if the files may hold secrets that are not sealed
}

// InspectSecrets describes how the secrets of a store are kept, without fencing the process
// that has it open.
func InspectSecrets(ctx context.Context, path string) (Sealed, error) {
	src, err := openSource(ctx, path)
	if err != nil {
		return Sealed{}, err
	}
	defer src.close()
	found := Sealed{Keys: make(map[seal.ID]int)}
	version, err := knownVersion(ctx, src.conn, path)
	switch {
	case err != nil:
		return Sealed{}, err
	case version < sealedVersion:
		err := src.conn.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM secrets)").Scan(&found.Clear)
		return found, explain(path, err)
	}
	ids, err := storedKeys(ctx, src.conn)
	if err != nil {
		return Sealed{}, explain(path, err)
	}
	for _, id := range ids {
		if found.Keys[id], err = sealedWith(ctx, src.conn, id); err != nil {
			return Sealed{}, explain(path, err)
		}
	}
	err = src.conn.QueryRowContext(ctx, "SELECT clear <> 0 FROM meta").Scan(&found.Clear)
	return found, explain(path, err)
}

// DropClear removes the secrets from a copy of a store that nobody has open, if a version
// that did not seal them has stored them, and reports whether there were some.
func DropClear(ctx context.Context, path string) (dropped bool, err error) {
	db, err := sql.Open("sqlite", dsn(path, Options{}, "_txlock=immediate"))
	if err != nil {
		return false, explain(path, err)
	}
	defer db.Close()
	version, err := knownVersion(ctx, db, path)
	if err != nil {
		return false, err
	}
	if version < sealedVersion {
		err = db.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM secrets)").Scan(&dropped)
	}
	if err == nil && dropped {
		_, err = db.ExecContext(ctx, oneFile+"BEGIN; DROP TABLE secrets; CREATE TABLE secrets "+secretColumns+"; COMMIT")
	}
	if err != nil {
		return false, explain(path, err)
	}
	return dropped, nil
}
