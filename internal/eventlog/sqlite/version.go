package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
)

// oldest is the first version of SQLite that does not lose the write-ahead log when it
// is reset while another connection reads it.
var oldest = []int{3, 51, 3}

// checkVersion returns an error if this version of SQLite is known to lose data.
func checkVersion(ctx context.Context, conn *sql.Conn) error {
	var version string
	if err := conn.QueryRowContext(ctx, "SELECT sqlite_version()").Scan(&version); err != nil {
		return err
	}
	return checkOldest(version)
}

// checkOldest returns an error if a version of SQLite is older than oldest.
func checkOldest(version string) error {
	v := make([]int, len(oldest))
	_, err := fmt.Sscanf(version, "%d.%d.%d", &v[0], &v[1], &v[2])
	if err != nil || slices.Compare(v, oldest) < 0 {
		return fmt.Errorf("SQLite %q can lose data: build abide with %d.%d.%d or newer", version, oldest[0], oldest[1], oldest[2])
	}
	return nil
}
