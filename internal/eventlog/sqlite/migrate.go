package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"
)

// applicationID marks the file as a store of abide: "abid" in ASCII.
const applicationID = 0x61626964

//go:embed migrations/*.sql
var migrations embed.FS

// schemaVersion is the schema version that every store is brought to. A program refuses a
// newer one.
const schemaVersion = 5

// migrate brings the schema to the current version by running the numbered files that the
// store lacks, all of them or none. It refuses a store of a newer abide.
func migrate(ctx context.Context, conn *sql.Conn, path string) error {
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
		if _, err := tx.ExecContext(ctx, string(text)); err != nil {
			return explain(path, fmt.Errorf("%s: %w", name, err))
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
// refuses a database of another program.
func storedVersion(ctx context.Context, q querier, path string) (version int, err error) {
	var app, tables int
	row := q.QueryRowContext(ctx, `SELECT
		(SELECT user_version FROM pragma_user_version),
		(SELECT application_id FROM pragma_application_id),
		(SELECT count(*) FROM sqlite_schema)`)
	if err := row.Scan(&version, &app, &tables); err != nil {
		return 0, explain(path, err)
	}
	if app != applicationID && tables > 0 {
		return 0, fmt.Errorf("store %s is a database of another program: choose another data folder", path)
	}
	return version, nil
}
