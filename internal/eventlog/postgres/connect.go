package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/abide-run/abide/internal/eventlog"
)

//go:embed migrations/*.sql
var migrations embed.FS

// schemaVersion is the number of the last migration, and oldestVersion that of the oldest
// program that may use the tables after it.
const schemaVersion = 5

// defaultSchema is where the tables are if the URL names no search_path.
const defaultSchema = "abide"

// dialTimeout limits how long the server may take to accept a connection.
const dialTimeout = 10 * time.Second

// parse reads the part of a URL after its scheme and colon. Its errors contain no password.
func parse(rest string) (*pgx.ConnConfig, error) {
	if !strings.HasPrefix(rest, "//") {
		return nil, errors.New("two slashes are missing after the scheme")
	}
	config, err := pgx.ParseConfig(Scheme + ":" + rest)
	if err != nil {
		return nil, errors.New("it is not understood as the URL of a database: " + why(err))
	}
	if config.Database == "" {
		return nil, errors.New("it names no database")
	}
	if config.RuntimeParams["search_path"] == "" {
		config.RuntimeParams["search_path"] = defaultSchema
	}
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "abide"
	}
	for name, value := range sessionSettings {
		if config.RuntimeParams[name] == "" {
			config.RuntimeParams[name] = value
		}
	}
	config.DialFunc = newDialer().DialContext
	if config.ValidateConnect == nil {
		config.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite // a standby would show an older log
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = dialTimeout
	}
	return config, nil
}

// sessionSettings make the server notice that a client is gone, so that its locks do not outlive it
// for long.
var sessionSettings = map[string]string{
	"idle_in_transaction_session_timeout": "30s",
	"tcp_keepalives_idle":                 "10",
	"tcp_keepalives_interval":             "5",
	"tcp_keepalives_count":                "3",
}

// newDialer returns a dialer whose connections notice within half a minute that the server is gone.
func newDialer() *net.Dialer {
	return &net.Dialer{
		Timeout:         dialTimeout,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 3},
		ControlContext:  limitUnacknowledged,
	}
}

// why returns the reason of an error of parsing, without the URL that it quotes.
func why(err error) string {
	var wrong *url.Error
	if errors.As(err, &wrong) {
		return wrong.Err.Error()
	}
	text := err.Error()
	if at := strings.LastIndex(text, "`: "); at >= 0 {
		return text[at+len("`: "):]
	}
	return "check user, host, port and settings"
}

// placeOf returns the name of a database for error messages.
func placeOf(c *pgx.ConnConfig) string {
	return fmt.Sprintf("postgres database %q at %s", c.Database, net.JoinHostPort(c.Host, fmt.Sprint(c.Port)))
}

// dial connects, and refuses what is not the server itself: a pooler may give each
// transaction to another backend, so that the lock of a transaction would not hold what it
// seems to.
func dial(ctx context.Context, config *pgx.ConnConfig, sync eventlog.Sync) (*pgx.Conn, error) {
	conn, err := pgx.ConnectConfig(ctx, config.Copy())
	if err != nil {
		return nil, err
	}
	var pid uint32
	if err = conn.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&pid); err == nil && pid != conn.PgConn().PID() {
		err = errPooler
	}
	if err == nil && sync == eventlog.Full {
		// A server, database or role may be configured to acknowledge before anything is on a disk.
		_, err = conn.Exec(ctx, "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'")
	}
	if err != nil {
		closeConn(conn)
		return nil, err
	}
	return conn, nil
}

var errPooler = errors.New("a connection pooler stands between abide and the server: name the server itself in store.url")

// checkServer refuses a server that is too old or only reads, and warns of one that may lose
// what it has acknowledged.
func checkServer(ctx context.Context, conn *pgx.Conn, opts eventlog.Options) error {
	var version int
	var standby bool
	var fsync string
	err := conn.QueryRow(ctx, "SELECT current_setting('server_version_num')::int, pg_is_in_recovery(), current_setting('fsync')").Scan(&version, &standby, &fsync)
	switch {
	case err != nil:
		return err
	case version < 130000:
		return fmt.Errorf("the server has version %d: abide needs PostgreSQL 13 or later", version/10000)
	case standby:
		return errors.New("the server is a standby, which cannot be written: name the primary in store.url")
	case fsync != "on" && opts.Warn != nil:
		opts.Warn("PostgreSQL runs with fsync = off: a power cut can lose or damage sessions; switch it on")
	}
	return nil
}

// migrationLock is the number of the advisory lock under which tables are made: "abide" in ASCII.
const migrationLock = 0x6162696465

// migrate brings the tables to the version of this program. It refuses those of a newer one,
// unless they say that this one may use them.
func migrate(ctx context.Context, conn *pgx.Conn, opts eventlog.Options) error {
	tx, err := conn.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback(context.Background())
	if _, err := tx.Exec(ctx, "SET LOCAL lock_timeout = '20s'"); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", int64(migrationLock)); err != nil {
		return err
	}
	version, err := storedVersion(ctx, tx)
	switch {
	case err != nil:
		return err
	case version == 0 && opts.Used:
		return errors.New("it has no sessions, although there is something of sessions in the data folder: restore the database, or choose another data folder (--home) to begin anew")
	case version >= schemaVersion:
		return nil // newer tables were checked by knownVersion
	}
	names, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return err
	}
	for _, name := range names[version:] {
		text, err := migrations.ReadFile(name)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, string(text)); err != nil {
			return err
		}
	}
	if _, err := tx.Exec(ctx, "UPDATE version SET version = $1", schemaVersion); err != nil {
		return err
	}
	return tx.Commit(ctx)
}

// storedVersion returns the version of the tables; 0 if there are none yet. It makes the schema
// and the table that says so.
func storedVersion(ctx context.Context, tx pgx.Tx) (version int, err error) {
	var schema *string
	path := tx.Conn().Config().RuntimeParams["search_path"]
	if err := tx.QueryRow(ctx, "SELECT current_schema()").Scan(&schema); err != nil {
		return 0, err
	}
	if schema == nil {
		first, _, _ := strings.Cut(path, ",")
		name := pgx.Identifier{strings.Trim(strings.TrimSpace(first), `"`)}
		if _, err := tx.Exec(ctx, "CREATE SCHEMA "+name.Sanitize()); err != nil {
			return 0, err
		}
	}
	if _, err := tx.Exec(ctx, "CREATE TABLE IF NOT EXISTS version (version integer NOT NULL)"); err != nil {
		return 0, err
	}
	if version, err = knownVersion(ctx, tx); errors.Is(err, pgx.ErrNoRows) {
		_, err = tx.Exec(ctx, "INSERT INTO version VALUES (0)")
	}
	return version, err
}

// knownVersion returns the version of tables that this program may use, or refuses them.
func knownVersion(ctx context.Context, q querier) (version int, err error) {
	err = q.QueryRow(ctx, "SELECT version FROM version").Scan(&version)
	if err != nil || version <= schemaVersion {
		return version, err
	}
	var oldest int
	if err := q.QueryRow(ctx, "SELECT oldest FROM meta").Scan(&oldest); err != nil {
		return 0, err
	}
	if oldest > schemaVersion {
		return 0, fmt.Errorf("its tables have version %d, and this abide knows %d: use a newer abide", version, schemaVersion)
	}
	return version, nil
}

// errShared means that a server has joined while this process was about to take the store.
var errShared = errors.New("another server has just joined: it is shared")

// takeOver counts the generation up, which fences the process that had the store open before,
// and frees the jobs that it holds. It waits for a transaction of that process that is about
// to be committed.
func takeOver(ctx context.Context, conn *pgx.Conn) (generation int64, err error) {
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SET LOCAL lock_timeout = '60s'"); err != nil {
			return err
		}
		err := tx.QueryRow(ctx, "UPDATE meta SET generation = generation + 1, shared = false RETURNING generation").Scan(&generation)
		if err != nil {
			return err
		}
		var shared bool
		if err := tx.QueryRow(ctx, "SELECT EXISTS (SELECT 1 FROM writers)").Scan(&shared); err != nil {
			return err
		}
		if shared {
			return errShared
		}
		for _, text := range []string{"DELETE FROM owners", "DELETE FROM servers"} {
			if _, err := tx.Exec(ctx, text); err != nil {
				return err
			}
		}
		_, err = tx.Exec(ctx, "UPDATE jobs SET holder = '', due = $1 WHERE holder <> ''", time.Now().UnixMicro())
		return err
	})
	return generation, err
}

// maxAhead is how far the time of a change may be ahead of the clock so that later changes
// follow it. A time further ahead was a mistake of a clock.
const maxAhead = 24 * time.Hour

// lastChange returns the time of the last change of any session, in microseconds; zero if there
// is none.
func lastChange(ctx context.Context, conn *pgx.Conn) (last int64, err error) {
	most := time.Now().Add(maxAhead).UnixMicro()
	err = conn.QueryRow(ctx, "SELECT coalesce(max(modified), 0) FROM sessions WHERE NOT deleted AND modified <= $1", most).Scan(&last)
	return last, err
}

// lost reports whether an error means that the connection is gone, so that nobody knows what
// became of a transaction.
func lost(err error) bool {
	if said, ok := errors.AsType[*pgconn.PgError](err); ok {
		// It is being shut down, or has ended the connection, perhaps because the transaction stood still.
		return strings.HasPrefix(said.Code, "57P") || strings.HasPrefix(said.Code, "08") || strings.HasPrefix(said.Code, "25P0") && said.Code >= "25P03"
	}
	_, network := errors.AsType[net.Error](err)
	_, dialing := errors.AsType[*pgconn.ConnectError](err)
	return network || dialing || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || pgconn.SafeToRetry(err)
}

// isTemporary reports whether an error of Open may go away by itself.
func isTemporary(err error) bool {
	var dialing *pgconn.ConnectError
	var said *pgconn.PgError
	switch {
	case errors.As(err, &said):
		return strings.HasPrefix(said.Code, "57P") || strings.HasPrefix(said.Code, "53") || said.Code == lockTimeout
	case errors.As(err, &dialing):
		return true
	}
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, context.DeadlineExceeded)
}

// The codes of errors of the server that a person can do something about.
const (
	lockTimeout     = "55P03"
	deadlock        = "40P01"
	badPassword     = "28P01"
	badUser         = "28000"
	noDatabase      = "3D000"
	noRight         = "42501"
	diskFull        = "53100"
	tooManyClients  = "53300"
	readOnly        = "25006"
	undefinedObject = "42704"
)

var remedies = map[string]string{
	lockTimeout:     "another process holds a lock on the tables: end it, or wait",
	badPassword:     "the password is wrong: correct store.url",
	badUser:         "the server does not let this user in: correct store.url, or pg_hba.conf of the server",
	noDatabase:      "there is no such database: make it with createdb, or correct store.url",
	noRight:         "the user may not do this: give it the right to create a schema in the database, or make the schema for it",
	diskFull:        "the disk of the server is full: free some space",
	tooManyClients:  "the server has too many connections: raise max_connections, or end some",
	readOnly:        "the database can only be read: name the primary server in store.url",
	undefinedObject: "a setting of the URL is unknown to the server: correct store.url",
}

// plain are the errors that say all that a caller has to know.
var plain = []error{eventlog.ErrConflict, eventlog.ErrNotFound, eventlog.ErrClosed, eventlog.ErrFenced, eventlog.ErrNotOwner, context.Canceled}

// explain returns an error that names the database, the reason and the way out.
func (s *Store) explain(err error) error { return explain(s.place, err) }

func explain(place string, err error) error {
	if err == nil {
		return nil
	}
	if _, clear := errors.AsType[*eventlog.Damage](err); clear || slices.ContainsFunc(plain, func(known error) bool { return errors.Is(err, known) }) {
		return err
	}
	if said, ok := errors.AsType[*pgconn.PgError](err); ok {
		if remedy := remedies[said.Code]; remedy != "" {
			return fmt.Errorf("%s: %s (%w)", place, remedy, err)
		}
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok && strings.Contains(err.Error(), "read only") {
		return fmt.Errorf("%s: %s (%w)", place, remedies[readOnly], err)
	} else if ok {
		return fmt.Errorf("%s cannot be reached: check that the server runs and that store.url is right (%w)", place, err)
	}
	return fmt.Errorf("%s: %w", place, err)
}
