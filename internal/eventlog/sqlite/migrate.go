package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"

	"github.com/abide-run/abide/internal/eventlog"
)

// applicationID marks the file as a store of abide: "abid" in ASCII.
const applicationID = 0x61626964

//go:embed migrations/*.sql
var migrations embed.FS

// The schema versions of a store. A program refuses one that it does not know.
const (
	// usualVersion is the version that every store is brought to.
	usualVersion = 3
	// elsewhereVersion is the version of a store that has, or had, a session whose files
	// and commands are in another workspace. Its tables are the usual ones, but a program
	// that does not know it would run the commands of that session on its own machine.
	elsewhereVersion = 4
)

// neededVersion returns the schema version that a program has to know to go on with a
// session.
func neededVersion(info *eventlog.Info) int {
	if info != nil && info.Workspace != nil {
		return elsewhereVersion
	}
	return usualVersion
}

// raiseVersion gives the file the version that a session needs, in the transaction that
// stores the session.
func (w *writing) raiseVersion(needed int) error {
	if needed <= w.version {
		return nil
	}
	w.raised = max(w.raised, needed)
	return w.exec(fmt.Sprintf("PRAGMA user_version = %d", w.raised))
}

// migrate brings the schema to the usual version by running the numbered files that the
// store lacks, all of them or none, and returns the version. It refuses a store of a newer
// abide.
func migrate(ctx context.Context, conn *sql.Conn, path string) (version int, err error) {
	files, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return 0, err
	}
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return 0, explain(path, err)
	}
	defer tx.Rollback()
	if version, err = knownVersion(ctx, tx, path); err != nil || version >= usualVersion {
		return version, err
	}
	for _, name := range files[version:usualVersion] {
		text, err := migrations.ReadFile(name)
		if err != nil {
			return 0, err
		}
		if _, err := tx.ExecContext(ctx, string(text)); err != nil {
			return 0, explain(path, fmt.Errorf("%s: %w", name, err))
		}
	}
	mark := fmt.Sprintf("PRAGMA user_version = %d; PRAGMA application_id = %d", usualVersion, applicationID)
	if _, err := tx.ExecContext(ctx, mark); err != nil {
		return 0, explain(path, err)
	}
	return usualVersion, explain(path, tx.Commit())
}

// knownVersion returns the schema version of a store. It refuses a store of a newer
// abide.
func knownVersion(ctx context.Context, q querier, path string) (version int, err error) {
	if version, err = schemaVersion(ctx, q, path); err == nil && version > elsewhereVersion {
		err = fmt.Errorf("store %s has version %d, this abide knows versions up to %d: use a newer abide, or another data folder", path, version, elsewhereVersion)
	}
	return version, err
}

// schemaVersion returns the schema version of a store, which is 0 for an empty file. It
// refuses a database of another program.
func schemaVersion(ctx context.Context, q querier, path string) (version int, err error) {
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
