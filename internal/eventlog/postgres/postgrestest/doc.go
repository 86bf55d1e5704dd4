// Package postgrestest starts a PostgreSQL server of its own for tests, from the programs that
// are installed. Where there are none, tests are skipped with one line; where ABIDE_REQUIRE
// contains postgres, they fail.
package postgrestest
