package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/abide-run/abide/internal/seal"
)

// applicationID marks the file as a store of abide: "abid" in ASCII.
const applicationID = 0x61626964

//go:embed migrations/*.sql
var migrations embed.FS

// schemaVersion is the schema version that every store is brought to. A program refuses a
// newer one.
const schemaVersion = 8

// sealedVersion is the first schema version in which secrets are sealed.
const sealedVersion = 6

// migrate brings the schema to the current version. It refuses a store of a newer abide. A
// damaged page costs the sessions on it at most: a store that has one is migrated around it,
// because otherwise nobody could open it any more.
func migrate(ctx context.Context, conn *sql.Conn, path string, keys *seal.File) (err error) {
	seals := func(tx *sql.Tx) error { return sealStored(ctx, tx, keys) }
	for way := straight; way <= pastRows; way++ {
		if err = migrateBy(ctx, conn, path, way, seals); !corrupt(err) {
			return err
		}
	}
	salvaged, err := salvageSecrets(ctx, conn) // a page of the secrets may be damaged, too
	if err != nil {
		return explain(path, err)
	}
	seals = func(tx *sql.Tx) error { return sealSalvaged(ctx, tx, keys, salvaged) }
	for way := straight; way <= pastRows; way++ {
		if err = migrateBy(ctx, conn, path, way, seals); !corrupt(err) {
			return err
		}
	}
	return err
}

// The ways to migrate a store. The next one is taken if a damaged page is in the way, which
// ends the transaction.
const (
	straight  = iota
	pastOrder // a page of the order of version 3 may be damaged
	pastRows  // a page of the table of sessions may be damaged, too
)

// textBy returns what is run of a migration.
func textBy(way int, name, text string) string {
	switch {
	case way == pastOrder && name == "005_recent.sql":
		return removeModified + text
	case way == pastRows && name == "005_recent.sql":
		return removeModified + computeRecent
	case way == pastRows && name == "003_listing.sql":
		return ""
	}
	return text
}

// removeModified removes the order of version 3. SQLite cannot remove an index with a damaged
// page, so the entry of the schema is removed; the pages stay unused until the file is
// vacuumed.
const removeModified = `PRAGMA writable_schema = ON;
	DELETE FROM sqlite_schema WHERE name = 'sessions_modified';
	PRAGMA writable_schema = RESET;`

// computeRecent adds the column of migration 5 to a table with a damaged page, without
// reading or writing a row: its values are computed. There is no index, because making it
// would read all rows; a listing, which would do so, too, is salvaged.
const computeRecent = `PRAGMA writable_schema = ON;
	UPDATE sqlite_schema SET sql = substr(sql, 1, length(sql) - length(') STRICT')) || ', recent INTEGER NOT NULL AS (modified >> 20)) STRICT'
		WHERE type = 'table' AND name = 'sessions';
	PRAGMA writable_schema = RESET;`

// migrateBy runs the numbered files that the store lacks, all of them or none, and seals the
// secrets of a store that has them in clear.
func migrateBy(ctx context.Context, conn *sql.Conn, path string, way int, seals func(*sql.Tx) error) error {
	files, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return err
	}
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return explain(path, err)
	}
	defer tx.Rollback()
	version, err := knownVersion(ctx, tx, path)
	if err != nil || version == schemaVersion {
		return err
	}
	for _, name := range files[version:] {
		text, err := migrations.ReadFile(name)
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, textBy(way, filepath.Base(name), string(text))); err != nil {
			return explain(path, fmt.Errorf("%s: %w", name, err))
		}
	}
	if version > 0 && version < sealedVersion {
		if err := seals(tx); err != nil {
			return explain(path, err)
		}
	}
	mark := fmt.Sprintf("PRAGMA user_version = %d; PRAGMA application_id = %d", schemaVersion, applicationID)
	if _, err := tx.ExecContext(ctx, mark); err != nil {
		return explain(path, err)
	}
	return explain(path, tx.Commit())
}

// knownVersion returns the schema version of a store. It refuses a store of a newer
// abide.
func knownVersion(ctx context.Context, q querier, path string) (version int, err error) {
	if version, err = storedVersion(ctx, q, path); err == nil && version > schemaVersion {
		err = fmt.Errorf("store %s has version %d, this abide knows versions up to %d: use a newer abide, or another data folder", path, version, schemaVersion)
	}
	return version, err
}

// storedVersion returns the schema version of a store, which is 0 for an empty file. It
// refuses a database of another program, a store without its tables, and one whose version
// was changed.
func storedVersion(ctx context.Context, q querier, path string) (version int, err error) {
	var app, tables, own int
	row := q.QueryRowContext(ctx, `SELECT
		(SELECT user_version FROM pragma_user_version),
		(SELECT application_id FROM pragma_application_id),
		(SELECT count(*) FROM sqlite_schema),
		(SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name IN ('meta', 'sessions', 'records', 'secrets'))`)
	if err := row.Scan(&version, &app, &tables, &own); err != nil {
		return 0, explain(path, err)
	}
	switch {
	case app != applicationID && tables > 0:
		return 0, fmt.Errorf("store %s is a database of another program: choose another data folder", path)
	case (version > 0 || app == applicationID) && own < 4:
		return 0, fmt.Errorf("store %s lacks tables, which another program has removed: restore it from a backup (abide restore), or move the file away to begin anew", path)
	case version < 1 && tables > 0:
		return 0, fmt.Errorf("store %s has version %d, which no abide writes, so another program has changed it: restore it from a backup (abide restore)", path, version)
	}
	return version, nil
}
