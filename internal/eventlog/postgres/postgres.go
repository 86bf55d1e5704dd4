// Package postgres stores the log in a PostgreSQL database. It implements
// [eventlog.Store].
//
//   - Appends of all sessions share transactions, as in package sqlite: those that arrive
//     while one is committed go together into the next. A transaction of appends alone is one
//     round trip to the server.
//   - An append that is refused changes no row. It is never an error of SQL, which would end
//     the transaction of the others.
//   - Opening a store alone ([Open]) fences the process that had it open before. So does a
//     process itself when it connects again: what its lost connection may still do is then over
//     or refused, and what was in doubt is looked up and made again only if it is not there.
//   - Several processes can share a store ([Join]). Each session is then written by the one that
//     owns it: every write checks its fence in its own transaction. What a process owned that has
//     died can be claimed after its connections have been ended. No clock of one machine is
//     compared with that of another.
//   - While the server is away, changes wait. After [patience] the store closes itself and
//     says why.
//   - A reader holds no connection while its caller handles events.
//   - Secrets are sealed before they are sent. The key is never in the database.
//
// The tables are in the first schema of the search_path of the URL, or in the schema abide.
package postgres

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/eventlog/group"
	"github.com/abide-run/abide/internal/seal"
)

// Scheme is the scheme of URLs of stores in a database.
const Scheme = "postgres"

// Kind is the kind of store that a URL of the form postgres://… names.
var Kind = eventlog.Kind{Form: Scheme + "://USER@HOST:PORT/DATABASE", Open: openURL, Check: checkURL, IsTemporary: isTemporary}

// checkURL refuses what pgx cannot read. The error does not quote the URL, which may contain a
// password.
func checkURL(rest string) error {
	if _, err := parse(rest); err != nil {
		return err
	}
	return nil
}

func openURL(ctx context.Context, rest string, opts eventlog.Options) (eventlog.Store, error) {
	if opts.KeyFile == "" {
		opts.KeyFile = filepath.Join(opts.Dir, seal.FileName)
	}
	s, err := Open(ctx, Scheme+":"+rest, opts)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// readers is the number of connections that read at the same time.
const readers = 8

// A Store is a log in a database. It is safe for concurrent use.
type Store struct {
	place   string // host and name of the database, for error messages
	sync    eventlog.Sync
	config  *pgx.ConnConfig
	reading *reading
	write   *writing // used only by the goroutine that commits the queue
	broken  error    // reason for which nothing can be written any more; used by the same goroutine

	queue     *group.Queue[*op]
	closeOnce sync.Once

	life   *life // nil if the store is open alone
	era    era
	claims claims

	sealing *eventlog.Sealing
	search  searchIndex
}

var _ eventlog.Store = (*Store)(nil)

// Open opens the store in a database, and makes its tables if there are none. A process that
// has the store open already gets eventlog.ErrFenced from then on. The KeyFile of the options
// is needed, their Dir is not.
func Open(ctx context.Context, url string, opts eventlog.Options) (*Store, error) {
	return start(ctx, url, opts, nil)
}

// start opens the store, alone if life is nil.
func start(ctx context.Context, url string, opts eventlog.Options, life *life) (*Store, error) {
	config, err := parse(url[len(Scheme)+1:])
	if err != nil {
		return nil, fmt.Errorf("store.url: %w", err)
	}
	if opts.Sync == eventlog.Normal {
		config.RuntimeParams["synchronous_commit"] = "off"
	}
	s := &Store{place: placeOf(config), sync: opts.Sync, config: config, life: life}
	if life != nil {
		life.store = s
		config.RuntimeParams["application_name"] = applicationName(life.me.ID)
	}
	s.queue = group.New(s.commitGroup)
	s.search.store = s
	keys, err := seal.OpenFile(opts.KeyFile)
	if err != nil {
		return nil, err
	}
	s.sealing = eventlog.NewSealing(keys, keyTable{s})
	if err := s.connect(ctx, opts); err != nil {
		s.disconnect()
		return nil, err
	}
	if life != nil {
		if err := life.start(ctx); err != nil {
			s.Close()
			return nil, s.explain(err)
		}
	}
	if err = s.checkKeys(ctx, opts.Warn); err == nil {
		err = s.warnOfMoves(ctx, opts.Warn)
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// connect makes the tables, takes the store over and opens the connections.
func (s *Store) connect(ctx context.Context, opts eventlog.Options) error {
	conn, err := dial(ctx, s.config, s.sync)
	if err != nil {
		return s.explain(err)
	}
	s.write = &writing{conn: conn}
	if err := checkServer(ctx, conn, opts); err != nil {
		return s.explain(err)
	}
	if err := migrate(ctx, conn, opts); err != nil {
		return s.explain(err)
	}
	if err := s.begin(ctx, conn); err != nil {
		return s.explain(err)
	}
	if err := s.checkEra(ctx, conn); err != nil {
		return s.explain(err)
	}
	if s.write.clock, err = lastChange(ctx, conn); err != nil {
		return s.explain(err)
	}
	pool, err := pgxpool.ParseConfig("")
	if err != nil {
		return s.explain(err)
	}
	pool.ConnConfig = s.config.Copy()
	pool.MaxConns, pool.MinConns = readers, 0
	pool.MaxConnIdleTime = time.Minute
	pool.PingTimeout = 5 * time.Second
	connections, err := pgxpool.NewWithConfig(context.WithoutCancel(ctx), pool)
	if err != nil {
		return s.explain(err)
	}
	s.reading = &reading{connections, s.queue.Closed()}
	return nil
}

// begin gets the right to write.
func (s *Store) begin(ctx context.Context, conn *pgx.Conn) (err error) {
	if s.life != nil {
		s.write.generation, s.write.fence, s.write.current = 1, fenceOf(s.life.me.ID), currentOf(s.life.me.ID)
		return s.life.join(ctx, conn)
	}
	s.write.fence, s.write.current = fence, current
	if err := aloneAfter(ctx, conn, Pace{}.orUsual()); err != nil {
		return err
	}
	s.write.generation, err = takeOver(ctx, conn)
	return err
}

// Close waits for appends that have begun, and disconnects. A server gives up what it owns.
func (s *Store) Close() error {
	s.queue.Shut(eventlog.ErrClosed)
	s.queue.WaitIdle()
	s.closeOnce.Do(func() {
		if s.life != nil {
			s.life.end()
			if s.broken == nil {
				ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
				defer cancel()
				_ = s.life.leave(ctx, s.write.conn) // if it cannot, the others mark it as dead
			}
		}
		s.disconnect()
	})
	return nil
}

// Closed implements eventlog.Store.
func (s *Store) Closed() <-chan struct{} { return s.queue.Closed() }

// Err implements eventlog.Store.
func (s *Store) Err() error { return s.queue.Err() }

// disconnect closes the connections. It does not wait for a server that is away.
func (s *Store) disconnect() {
	if s.write != nil && s.write.conn != nil {
		closeConn(s.write.conn)
	}
	if s.reading != nil {
		s.reading.pool.Close()
	}
}

// closeConn closes a connection, and gives up on a server that is away.
func closeConn(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	_ = conn.Close(ctx) // nothing is to be done about it
}
