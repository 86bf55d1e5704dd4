package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/seal"
)

// A Server is one of the processes that share the tables.
type Server struct {
	ID      string // new at each start
	Machine string
	Address string // where other servers reach it
	Version string

	Beat     int64 // counts up for as long as the server lives
	Dead     bool  // true if another server has found that it does not
	Sessions int   // number of sessions that it owns, without their agents
	Busy     int   // number of sessions in which something is under way
	Draining bool  // true if it claims nothing, and hands over what it owns
	Self     bool  // true for the server that was asked
}

// A Pace says how servers watch each other. A zero value stands for the usual one.
type Pace struct {
	Beat    time.Duration // time between two beats; 2 s if zero
	Suspend time.Duration // time without a successful beat after which a server writes nothing; 6 s if zero
	Dead    time.Duration // time without a beat after which the others mark a server as dead; 8 s if zero
}

func (p Pace) orUsual() Pace {
	or := func(d *time.Duration, usual time.Duration) {
		if *d == 0 {
			*d = usual
		}
	}
	or(&p.Beat, 2*time.Second)
	or(&p.Suspend, 6*time.Second)
	or(&p.Dead, 8*time.Second)
	return p
}

// Join opens the store as one of several servers. Each session is written by the server that owns
// it. The first write to a session that nobody owns claims it; a write to one that a live server
// owns is an *[Owned]. Reading claims nothing.
//
// A server that is dead, because the others have not seen a beat of it for some time, is fenced:
// its store closes with eventlog.ErrFenced, and what it owned can be claimed. One that cannot
// reach the database waits before it writes, and goes on if it was not marked meanwhile. A
// process that has the store open with [Open] is fenced by the first server that joins.
func Join(ctx context.Context, url string, opts eventlog.Options, me Server, pace Pace) (*Store, error) {
	me.ID = rand.Text()
	keys, err := seal.OpenFile(opts.KeyFile)
	if err == nil {
		_, err = keys.Ready()
	}
	if err != nil {
		return nil, err
	}
	return start(ctx, url, opts, &life{me: me, keys: keys.IDs(), pace: pace.orUsual(), seen: watch{}, stopped: make(chan struct{}), beaten: make(chan struct{})})
}

// applicationName is the name of a server's connections in the database.
func applicationName(server string) string { return "abide " + server }

// A life is what makes a store one of several servers.
type life struct {
	store *Store
	me    Server
	keys  []seal.ID // keys of this server; all servers have one of them
	pace  Pace
	seen  watch // used only by run

	draining atomic.Bool  // true if the server claims nothing any more
	busy     atomic.Int64 // number of sessions in which something is under way

	stop    context.CancelFunc
	stopped chan struct{} // closed when run has returned

	mu     sync.Mutex
	last   time.Duration // time since boot just before the last successful beat was sent
	beaten chan struct{} // closed at the next successful beat
}

// join adds the row of the server. The first one fences the process that had the store open alone.
func (l *life) join(ctx context.Context, conn *pgx.Conn) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		var shared bool
		if _, err := tx.Exec(ctx, "SET LOCAL lock_timeout = '60s'"); err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, "SELECT shared FROM meta WHERE id = 1 FOR UPDATE").Scan(&shared); err != nil {
			return err
		}
		if err := l.checkKeys(ctx, tx); err != nil {
			return err
		}
		if !shared {
			// Programs that know nothing of owners must not write from now on.
			if _, err := tx.Exec(ctx, "UPDATE meta SET shared = true, generation = generation + 1, oldest = greatest(oldest, 3)"); err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, freeAllJobs); err != nil {
				return err
			}
		}
		// Rows of dead servers are kept for as long as they own something.
		if _, err := tx.Exec(ctx, `DELETE FROM servers s WHERE dead AND NOT EXISTS (SELECT 1 FROM writers w WHERE w.server = s.id)
			AND NOT EXISTS (SELECT 1 FROM owners o WHERE o.server = s.id)`); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "INSERT INTO servers (id, machine, address, version) VALUES ($1, $2, $3, $4)",
			[]byte(l.me.ID), []byte(l.me.Machine), []byte(l.me.Address), []byte(l.me.Version)); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "INSERT INTO writers (server, generation) VALUES ($1, 1)", []byte(l.me.ID))
		return err
	})
}

// errOtherKey means that a server could not open what the others have sealed.
var errOtherKey = errors.New("the key file of this server has none of the keys of the log: give all servers the same file as --cluster-key-file, which for the log of a single engine is its " + seal.FileName)

// checkKeys refuses a server with another key than the others have, and notes the key of the first.
func (l *life) checkKeys(ctx context.Context, tx pgx.Tx) error {
	var ids [][]byte
	for _, id := range l.keys {
		ids = append(ids, id[:])
	}
	var some, ours bool
	if err := tx.QueryRow(ctx, "SELECT EXISTS (SELECT 1 FROM keys), EXISTS (SELECT 1 FROM keys WHERE id = ANY($1))", ids).Scan(&some, &ours); err != nil {
		return err
	}
	if some && !ours {
		return errOtherKey
	}
	_, err := tx.Exec(ctx, "INSERT INTO keys (id) VALUES ($1) ON CONFLICT DO NOTHING", ids[0])
	return err
}

// leave removes the server with all that it owns. If the database is away, the others find out.
func (l *life) leave(ctx context.Context, conn *pgx.Conn) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		for _, text := range []string{freeJobsOf, "DELETE FROM owners WHERE server = $1", "DELETE FROM writers WHERE server = $1", "DELETE FROM servers WHERE id = $1"} {
			if _, err := tx.Exec(ctx, text, []byte(l.me.ID)); err != nil {
				return err
			}
		}
		return nil
	})
}

// start makes the first beat, and begins to beat.
func (l *life) start(ctx context.Context) error {
	conn, err := dial(ctx, l.store.config, l.store.sync)
	if err != nil {
		return err
	}
	if err := l.round(ctx, conn); err != nil {
		closeConn(conn)
		return err
	}
	ctx, l.stop = context.WithCancel(context.WithoutCancel(ctx))
	go l.run(ctx, conn) // end waits for it
	return nil
}

// end stops the beats.
func (l *life) end() {
	if l.stop != nil {
		l.stop()
		<-l.stopped
	}
}

// run beats, on a connection of its own, until the server is marked as dead.
func (l *life) run(ctx context.Context, conn *pgx.Conn) {
	defer close(l.stopped)
	timer := time.NewTicker(l.pace.Beat)
	defer timer.Stop()
	defer func() { closeConn(conn) }()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		err := l.tick(ctx, &conn)
		if errors.Is(err, eventlog.ErrFenced) {
			l.store.queue.Shut(fmt.Errorf("%s: %w", l.store.place, err))
			return
		}
		if err != nil {
			l.seen = watch{} // who was not looked at may have lived
		}
	}
}

// tick beats once. It connects again if it has to.
func (l *life) tick(ctx context.Context, conn **pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, l.pace.Suspend)
	defer cancel()
	if (*conn).IsClosed() {
		again, err := dial(ctx, l.store.config, l.store.sync)
		if err != nil {
			return err
		}
		*conn = again
		if err := l.store.checkEra(ctx, again); err != nil {
			closeConn(again) // the next attempt checks it again
			return err
		}
	}
	return l.round(ctx, *conn)
}

// round beats, looks at the others, and buries those that are dead.
func (l *life) round(ctx context.Context, conn *pgx.Conn) error {
	sent := sinceBoot()
	var draining bool
	err := conn.QueryRow(ctx, "UPDATE servers SET beat = beat + 1, busy = $2 WHERE id = $1 AND NOT dead RETURNING draining", []byte(l.me.ID), l.busy.Load()).Scan(&draining)
	if errors.Is(err, pgx.ErrNoRows) {
		return eventlog.ErrFenced
	}
	if err != nil {
		return err
	}
	l.draining.Store(draining)
	l.noteBeat(sent)
	others, err := readServers(ctx, conn, "WHERE s.id <> $1", []byte(l.me.ID))
	if err != nil {
		return err
	}
	for _, other := range l.seen.observe(sent, sinceBoot(), others, l.pace) {
		if err := l.mark(ctx, conn, other); err != nil {
			return err
		}
	}
	return bury(ctx, conn)
}

// noteBeat notes that the beat that was sent at a time has succeeded.
func (l *life) noteBeat(sent time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = sent
	close(l.beaten)
	l.beaten = make(chan struct{})
}

// await waits until the server has had a beat a short time ago. It returns when the store closes.
func (l *life) await(ctx context.Context) error {
	for {
		l.mu.Lock()
		fresh, beaten := sinceBoot()-l.last < l.pace.Suspend, l.beaten
		l.mu.Unlock()
		if fresh {
			return nil
		}
		select {
		case <-beaten:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-l.store.queue.Closed():
			return nil
		}
	}
}

// A watch is what a server has seen of the others.
type watch map[string]sight

// A sight is a beat of a server, and when it was seen first and last.
type sight struct {
	beat        int64
	first, last time.Duration // times since boot
}

// observe notes the beats that were read between two times, and returns the servers of which no
// other beat was seen for too long. A time in which nobody was looked at does not count: then this
// machine may have slept together with the others.
func (w watch) observe(asked, read time.Duration, others []Server, pace Pace) (dead []Server) {
	for _, s := range others {
		if s.Dead {
			delete(w, s.ID)
			continue
		}
		was, known := w[s.ID]
		if !known || was.beat != s.Beat || asked-was.last > pace.Suspend {
			w[s.ID] = sight{s.Beat, read, read}
			continue
		}
		was.last = read
		w[s.ID] = was
		if asked-was.first >= pace.Dead {
			dead = append(dead, s)
		}
	}
	return dead
}

// mark marks a server as dead, unless it has beaten meanwhile or this one is dead itself.
func (l *life) mark(ctx context.Context, conn *pgx.Conn, other Server) error {
	_, err := conn.Exec(ctx, `UPDATE servers SET dead = true WHERE id = $1 AND beat = $2 AND NOT dead
		AND EXISTS (SELECT 1 FROM servers WHERE id = $3 AND NOT dead)`, []byte(other.ID), other.Beat, []byte(l.me.ID))
	return err
}

// bury ends the connections of servers that are marked as dead, frees their jobs, and takes their
// right to write away. Only then can others claim what they own. Any server does it, as whoever
// has marked one may have died itself.
func bury(ctx context.Context, conn *pgx.Conn) error {
	dead, err := readServers(ctx, conn, "WHERE s.dead AND EXISTS (SELECT 1 FROM writers w WHERE w.server = s.id)")
	if err != nil {
		return err
	}
	for _, s := range dead {
		// A process that is stopped in the middle of a transaction keeps its locks until its backend ends.
		_, err := conn.Exec(ctx, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
			WHERE application_name = $1 AND datname = current_database() AND usename = current_user`, applicationName(s.ID))
		if err != nil {
			return err
		}
		err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, "SET LOCAL lock_timeout = '5s'"); err != nil {
				return err
			}
			for _, text := range []string{"DELETE FROM writers WHERE server = $1", freeJobsOf} {
				if _, err := tx.Exec(ctx, text, []byte(s.ID)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// The statements that free jobs whose holders are gone. They are due at once, whatever the clocks say.
const (
	freeAllJobs = "UPDATE jobs SET holder = '', due = 0 WHERE holder <> ''"
	freeJobsOf  = `UPDATE jobs j SET holder = '', due = 0 FROM sessions s JOIN owners o ON o.name = coalesce(s.family, s.name)
		WHERE s.id = j.session AND o.server = $1 AND j.holder <> ''`
)

// readServers reads the rows of servers for which a condition holds.
func readServers(ctx context.Context, conn *pgx.Conn, where string, args ...any) ([]Server, error) {
	rows, err := conn.Query(ctx, selectServers+where, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanServer)
}

const selectServers = `SELECT s.id, s.machine, s.address, s.version, s.beat, s.dead, s.draining, s.busy, (SELECT count(*) FROM owners o WHERE o.server = s.id) FROM servers s `

func scanServer(row pgx.CollectableRow) (s Server, err error) {
	var id, machine, address, version []byte
	err = row.Scan(&id, &machine, &address, &version, &s.Beat, &s.Dead, &s.Draining, &s.Busy, &s.Sessions)
	s.ID, s.Machine, s.Address, s.Version = string(id), string(machine), string(address), string(version)
	return s, err
}

// Servers returns the servers that share the tables, dead ones included.
func (s *Store) Servers(ctx context.Context) ([]Server, error) {
	if err := s.queue.Open(ctx); err != nil {
		return nil, err
	}
	list, err := collect(ctx, s.reading, scanServer, selectServers+"ORDER BY s.dead, s.address, s.id")
	for i := range list {
		list[i].Self = s.life != nil && list[i].ID == s.life.me.ID
	}
	return list, s.readError(err)
}

// NoteBusy notes in how many sessions something is under way. The next beat tells the others.
func (s *Store) NoteBusy(n int) {
	if s.life != nil {
		s.life.busy.Store(int64(n))
	}
}

// Draining reports whether this server is to claim nothing and to hand over what it owns.
func (s *Store) Draining() bool { return s.life != nil && s.life.draining.Load() }

// Drain makes a live server hand over what it owns. The error is ErrNoServer if there is none.
func (s *Store) Drain(ctx context.Context, id string) error {
	return s.queue.Do(ctx, &op{apply: func(ctx context.Context, _ *writing, tx pgx.Tx) error {
		done, err := tx.Exec(ctx, "UPDATE servers SET draining = true WHERE id = $1 AND NOT dead", []byte(id))
		if err == nil && done.RowsAffected() == 0 {
			return refusal{ErrNoServer}
		}
		return err
	}})
}

// ErrNoServer means that there is no live server with an id.
var ErrNoServer = errors.New("no such server")

// Beats returns the time between two beats of this server.
func (s *Store) Beats() time.Duration { return s.life.pace.Beat }

// aloneAfter waits until it is sure that no server shares the tables any more, and removes the
// rows of those that do not live. It is for a process that wants the store alone.
func aloneAfter(ctx context.Context, conn *pgx.Conn, pace Pace) error {
	const live = "WHERE EXISTS (SELECT 1 FROM writers w WHERE w.server = s.id)"
	before, err := readServers(ctx, conn, live)
	if err != nil || len(before) == 0 {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(pace.Dead):
	}
	beats := make(map[string]int64)
	for _, s := range before {
		beats[s.ID] = s.Beat
	}
	after, err := readServers(ctx, conn, live)
	if err != nil {
		return err
	}
	var alive []string
	for _, s := range after {
		if beat, known := beats[s.ID]; !known || beat != s.Beat {
			alive = append(alive, s.Address)
		}
	}
	if len(alive) > 0 {
		return fmt.Errorf("it is shared by other servers (%s): end them, or join them with abide serve --advertise", strings.Join(alive, ", "))
	}
	for _, s := range after {
		if _, err := conn.Exec(ctx, "UPDATE servers SET dead = true WHERE id = $1 AND beat = $2", []byte(s.ID), s.Beat); err != nil {
			return err
		}
	}
	return bury(ctx, conn)
}
