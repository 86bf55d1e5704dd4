package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/eventlog/record"
	"github.com/abide-run/abide/internal/seal"
)

// An Arrival brings the sessions of another store to this one. They are hidden until Show: nobody
// sees, claims or changes them before. It needs neither the store for itself nor a server of its
// own, and fences nobody. It is used by one goroutine.
type Arrival struct {
	place   string
	conn    *pgx.Conn
	keys    *seal.File
	move    []byte
	origin  []byte
	machine []byte
	noted   []seal.ID // keys that the table of keys has
	version int       // version of the tables, if nothing is to be stored; 0 if there are none
}

// Moving describes a move.
type Moving struct {
	Name    string // name of the move
	Origin  string // where the sessions come from, for people
	Machine string // id of the data folder with the files and commands of the sessions
	Known   bool   // true if the move has to be known: its sessions have arrived
	Look    bool   // true if nothing is to be stored; then only Others can be called
}

// A Coming is a session that is to arrive.
type Coming struct {
	record.Entry
	Digest [sha256.Size]byte
}

// ErrUnknownMove means that a database knows nothing of a move.
var ErrUnknownMove = errors.New("it knows nothing of the move")

// ErrMovedBefore means that the sessions of a move are shown already.
var ErrMovedBefore = errors.New("the sessions of this data folder were moved there before")

// Arrive connects to a database, and makes the tables if there are none.
func Arrive(ctx context.Context, url string, opts eventlog.Options, m Moving) (a *Arrival, err error) {
	config, err := parse(url[len(Scheme)+1:])
	if err != nil {
		return nil, err
	}
	a = &Arrival{place: placeOf(config), move: []byte(m.Name), origin: []byte(m.Origin), machine: []byte(m.Machine)}
	if a.keys, err = seal.OpenFile(opts.KeyFile); err != nil {
		return nil, err
	}
	// What is sent together may take long, and nobody waits for the rows that it locks.
	config.RuntimeParams["idle_in_transaction_session_timeout"] = "10min"
	if a.conn, err = dial(ctx, config, eventlog.Full); err != nil {
		return nil, explain(a.place, err)
	}
	if err := a.begin(ctx, opts, m); err != nil {
		a.Close()
		return nil, explain(a.place, err)
	}
	return a, nil
}

// begin takes the move for this process: it waits for the connection of one that was killed.
func (a *Arrival) begin(ctx context.Context, opts eventlog.Options, m Moving) error {
	if err := checkServer(ctx, a.conn, opts); err != nil {
		return err
	}
	if m.Look || m.Known {
		if err := a.look(ctx); err != nil || m.Look {
			return err
		}
		if a.version < movesVersion {
			return ErrUnknownMove // no tables are made for nothing
		}
	}
	if err := migrate(ctx, a.conn, eventlog.Options{}); err != nil {
		return err
	}
	a.version = schemaVersion
	if _, err := a.conn.Exec(ctx, "SET lock_timeout = '45s'"); err != nil {
		return err
	}
	if _, err := a.conn.Exec(ctx, "SELECT pg_advisory_lock(hashtextextended(encode($1, 'hex'), $2))", a.move, int64(migrationLock)); err != nil {
		return err
	}
	if err := a.checkKeys(ctx); err != nil {
		return err
	}
	done, err := a.isDone(ctx)
	switch {
	case m.Known:
		return err
	case errors.Is(err, ErrUnknownMove):
		return nil
	case err == nil && done:
		return ErrMovedBefore
	}
	return err
}

// Begin notes that the move has begun. It is called before the first session arrives.
func (a *Arrival) Begin(ctx context.Context) error {
	_, err := a.conn.Exec(ctx, "INSERT INTO moves (name, origin) VALUES ($1, $2) ON CONFLICT DO NOTHING", a.move, a.origin)
	return explain(a.place, err)
}

// look checks that sessions could be stored, and stores nothing.
func (a *Arrival) look(ctx context.Context) error {
	var tables, allowed bool
	err := a.conn.QueryRow(ctx, `SELECT to_regclass('version') IS NOT NULL,
		CASE WHEN current_schema() IS NULL THEN has_database_privilege(current_database(), 'CREATE') ELSE has_schema_privilege(current_schema(), 'CREATE') END`).Scan(&tables, &allowed)
	switch {
	case err != nil:
		return err
	case !tables && !allowed:
		return errors.New(remedies[noRight])
	case !tables:
		return nil
	}
	if a.version, err = knownVersion(ctx, a.conn); err != nil {
		return err
	}
	return a.checkKeys(ctx)
}

// Shown reports whether what has arrived is shown.
func (a *Arrival) Shown(ctx context.Context) (bool, error) {
	done, err := a.isDone(ctx)
	return done, explain(a.place, err)
}

func (a *Arrival) isDone(ctx context.Context) (done bool, err error) {
	err = a.conn.QueryRow(ctx, "SELECT done FROM moves WHERE name = $1", a.move).Scan(&done)
	if errors.Is(err, pgx.ErrNoRows) {
		err = ErrUnknownMove
	}
	return done, err
}

// errOtherArrivalKey means that whoever uses the database could not open what would arrive.
var errOtherArrivalKey = errors.New("the key file has none of the keys that seal secrets there: name the key file of its servers with --cluster-key-file")

// checkKeys refuses a key file that the servers of the database do not have.
func (a *Arrival) checkKeys(ctx context.Context) error {
	rows, err := a.conn.Query(ctx, "SELECT id FROM keys")
	if err != nil {
		return err
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
	if err != nil {
		return err
	}
	for _, id := range ids {
		if len(id) == len(seal.ID{}) && slices.Contains(a.keys.IDs(), seal.ID(id)) {
			a.noted = append(a.noted, seal.ID(id))
		}
	}
	if len(ids) > 0 && len(a.noted) == 0 {
		return errOtherArrivalKey
	}
	return nil
}

// Close disconnects.
func (a *Arrival) Close() { closeConn(a.conn) }

// Place returns the name of the database, for people.
func (a *Arrival) Place() string { return a.place }

// Keys returns the key file with which secrets have to be sealed.
func (a *Arrival) Keys() *seal.File { return a.keys }

// Others returns those of some sessions that the store has from elsewhere.
func (a *Arrival) Others(ctx context.Context, ids []event.SessionID) (found []event.SessionID, err error) {
	query, args := "SELECT s.name FROM sessions s WHERE s.name = ANY($1)", []any{namesOf(ids)}
	switch {
	case a.version == 0:
		return nil, nil
	case a.version >= movesVersion:
		query += " AND NOT EXISTS (SELECT 1 FROM arrivals a WHERE a.session = s.id AND a.move = $2)"
		args = append(args, a.move)
	}
	rows, err := a.conn.Query(ctx, query+" ORDER BY s.name", args...)
	if err != nil {
		return nil, explain(a.place, err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
	for _, name := range names {
		found = append(found, event.SessionID(name))
	}
	return found, explain(a.place, err)
}

// movesVersion is the first version of the tables that has those of moves.
const movesVersion = 5

// Missing returns those of some sessions that have not arrived as they are, in their order. Of the
// rows of the other store between two numbers, it drops what has arrived and is not there any more.
func (a *Arrival) Missing(ctx context.Context, after, upTo int64, list []Coming) ([]Coming, error) {
	origins := []int64{} // without elements it is not NULL, as nil would be
	for _, c := range list {
		origins = append(origins, c.Session)
	}
	err := pgx.BeginFunc(ctx, a.conn, func(tx pgx.Tx) error {
		return a.drop(ctx, tx, "origin > $2 AND origin <= $3 AND origin <> ALL($4)", after, upTo, origins)
	})
	if err != nil {
		return nil, explain(a.place, err)
	}
	rows, err := a.conn.Query(ctx, `SELECT a.origin, a.digest FROM arrivals a JOIN sessions s ON s.id = a.session
		WHERE a.move = $1 AND a.origin = ANY($2) AND s.damaged IS NULL`, a.move, origins)
	if err != nil {
		return nil, explain(a.place, err)
	}
	has := make(map[int64][sha256.Size]byte)
	var origin int64
	var digest []byte
	if _, err = pgx.ForEachRow(rows, []any{&origin, &digest}, func() error {
		has[origin] = record.Hash(digest)
		return nil
	}); err != nil {
		return nil, explain(a.place, err)
	}
	return slices.DeleteFunc(slices.Clone(list), func(c Coming) bool {
		digest, arrived := has[c.Session]
		return arrived && digest == c.Digest
	}), nil
}

// drop removes sessions that have arrived, for whose row of arrivals a condition holds.
func (a *Arrival) drop(ctx context.Context, tx pgx.Tx, where string, args ...any) error {
	found, err := tx.Query(ctx, "SELECT session FROM arrivals WHERE move = $1 AND "+where, append([]any{a.move}, args...)...)
	if err != nil {
		return err
	}
	rows, err := pgx.CollectRows(found, pgx.RowTo[int64])
	if err != nil || len(rows) == 0 {
		return err
	}
	for _, text := range []string{
		"DELETE FROM records WHERE session = ANY($1)",
		"DELETE FROM secrets WHERE session = ANY($1)",
		"DELETE FROM sessions WHERE id = ANY($1)",
		"DELETE FROM arrivals WHERE session = ANY($1)",
	} {
		if _, err := tx.Exec(ctx, text, rows); err != nil {
			return err
		}
	}
	return nil
}

// Put stores the first of some sessions, as many as are enough for a transaction: at least one. What
// has arrived of them before is replaced. records yields the records of one; it may set the damage of
// its session, which is stored after them.
func (a *Arrival) Put(ctx context.Context, list []Coming, records func(*Coming) iter.Seq2[record.Record, error]) (stored int, err error) {
	err = a.noteKeys(ctx, list)
	if err == nil {
		err = pgx.BeginFunc(ctx, a.conn, func(tx pgx.Tx) (err error) {
			stored, err = a.put(ctx, tx, list, records)
			return err
		})
	}
	if err != nil {
		return 0, explain(a.place, err)
	}
	return stored, nil
}

// enough is the number of bytes of records after which a transaction takes no further session.
const enough = 8 << 20

// put stores sessions inside a transaction.
func (a *Arrival) put(ctx context.Context, tx pgx.Tx, list []Coming, records func(*Coming) iter.Seq2[record.Record, error]) (int, error) {
	rows, err := a.rowsOf(ctx, tx, list)
	if err != nil {
		return 0, err
	}
	firsts := make([][]byte, len(list)) // family of each agent
	stored, size := 0, 0
	all := func(yield func([]any, error) bool) {
		for ; stored < len(list) && (stored == 0 || size < enough); stored++ {
			c := &list[stored]
			for r, err := range records(c) {
				if err != nil {
					yield(nil, err)
					return
				}
				if len(r.Body) > maxBatch {
					yield(nil, fmt.Errorf("session %s: an append of it has %d MiB, and the database takes %d MiB at once: delete it, or export it and delete it", c.ID, len(r.Body)>>20, maxBatch>>20))
					return
				}
				if r.First == c.Shared+1 {
					firsts[stored] = familyIn(c.Head, c.ID, r)
				}
				if size += len(r.Body); !yield([]any{rows[c.Session], int64(r.First), r.Head, r.Body}, nil) {
					return
				}
			}
		}
	}
	next, stop := iter.Pull2(all)
	defer stop()
	_, err = tx.CopyFrom(ctx, pgx.Identifier{"records"}, []string{"session", "first", "head", "body"}, pgx.CopyFromFunc(func() ([]any, error) {
		row, err, _ := next()
		return row, err
	}))
	if err != nil {
		return 0, err
	}
	return stored, a.putRows(ctx, tx, list[:stored], rows, firsts)
}

// familyIn returns the family of an agent whose first record is given; nil for any other session.
func familyIn(h record.Head, id event.SessionID, r record.Record) []byte {
	links, f := r.Open(eventlog.End{Seq: h.Shared, Hash: h.Base}, nil)
	if f != nil {
		return nil
	}
	var events []event.Event
	for _, l := range links {
		events = append(events, l.Event)
	}
	return (&addition{id: id, family: familyOf(id, events)}).agentOf()
}

// rowsOf returns the rows of sessions and of their parents, by their rows in the other store. What
// has arrived keeps its row, because forks may name it, and is removed otherwise.
func (a *Arrival) rowsOf(ctx context.Context, tx pgx.Tx, list []Coming) (map[int64]int64, error) {
	var origins, wanted []int64
	for _, c := range list {
		origins = append(origins, c.Session)
		wanted = append(wanted, c.Session, c.Parent)
	}
	found, err := tx.Query(ctx, "SELECT a.origin, a.session FROM arrivals a WHERE a.move = $1 AND a.origin = ANY($2)", a.move, wanted)
	if err != nil {
		return nil, err
	}
	rows := make(map[int64]int64)
	var origin, row int64
	if _, err := pgx.ForEachRow(found, []any{&origin, &row}, func() error { rows[origin] = row; return nil }); err != nil {
		return nil, err
	}
	if err := a.drop(ctx, tx, "origin = ANY($2)", origins); err != nil {
		return nil, err
	}
	fresh := slices.DeleteFunc(origins, func(origin int64) bool { _, known := rows[origin]; return known })
	found, err = tx.Query(ctx, "SELECT nextval(pg_get_serial_sequence('sessions', 'id')) FROM generate_series(1, $1)", len(fresh))
	if err != nil {
		return nil, err
	}
	_, err = pgx.ForEachRow(found, []any{&row}, func() error { rows[fresh[0]], fresh = row, fresh[1:]; return nil })
	return rows, err
}

// putRows stores the rows of sessions whose records are stored.
func (a *Arrival) putRows(ctx context.Context, tx pgx.Tx, list []Coming, rows map[int64]int64, families [][]byte) error {
	var sessions, secrets, arrivals [][]any
	for i, c := range list {
		id := rows[c.Session]
		var info eventlog.Info
		_ = json.Unmarshal(c.Info, &info) // what cannot be read is damage, which reading the session tells
		e, err := newEntry(info)
		if err != nil {
			return err
		}
		var parent, base, damaged, reason any
		if c.Parent != 0 {
			parent, base = rows[c.Parent], c.Base[:]
		}
		if c.Damage != nil {
			damaged, reason = int64(c.Damage.Seq), []byte(c.Damage.Reason)
		}
		place := a.machine
		if info.Workspace != nil {
			place = []byte{}
		}
		sessions = append(sessions, []any{id, []byte(c.ID), int64(c.End.Seq), c.End.Hash[:], c.Created, c.Modified, parent, int64(c.Shared), base, true, damaged, reason,
			*e.active, c.Info, e.dir, *e.busy, *e.listed, int64(c.End.Seq), c.Counted, families[i], place})
		arrivals = append(arrivals, []any{id, a.move, c.Session, c.Digest[:], c.Deleted})
		for _, one := range c.Secrets {
			secrets = append(secrets, []any{id, []byte(one.Name), one.Value})
		}
	}
	for _, t := range []struct {
		name    string
		columns []string
		rows    [][]any
	}{
		{"sessions", []string{"id", "name", "seq", "head", "created", "modified", "parent", "shared", "base", "deleted", "damaged", "reason", "active", "info", "dir", "busy", "listed", "words", "counted", "family", "machine"}, sessions},
		{"arrivals", []string{"session", "move", "origin", "digest", "kept"}, arrivals},
		{"secrets", []string{"session", "name", "value"}, secrets},
	} {
		if _, err := tx.CopyFrom(ctx, pgx.Identifier{t.name}, t.columns, pgx.CopyFromRows(t.rows)); err != nil {
			return a.taken(err)
		}
	}
	return nil
}

// taken returns the error for a session that somebody has made meanwhile.
func (a *Arrival) taken(err error) error {
	if said, ok := errors.AsType[*pgconn.PgError](err); ok && said.Code == "23505" {
		return fmt.Errorf("a session of the same id has just been made there: move again, which names it (%w)", err)
	}
	return err
}

// noteKeys notes the keys that have sealed the secrets of sessions, as far as the key file has them.
func (a *Arrival) noteKeys(ctx context.Context, list []Coming) error {
	for _, c := range list {
		for _, one := range c.Secrets {
			id, ok := seal.KeyOf(one.Value)
			if !ok || slices.Contains(a.noted, id) || !slices.Contains(a.keys.IDs(), id) {
				continue
			}
			if _, err := a.conn.Exec(ctx, "INSERT INTO keys (id) VALUES ($1) ON CONFLICT DO NOTHING", id[:]); err != nil {
				return err
			}
			a.noted = append(a.noted, id)
		}
	}
	return nil
}
