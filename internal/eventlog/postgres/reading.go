package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A querier is a connection, a transaction, or the connections of readers.
type querier interface {
	QueryRow(ctx context.Context, text string, args ...any) pgx.Row
}

// reading are the connections of readers. A query whose connection is lost is made again: reading
// twice is harmless.
type reading struct {
	pool    *pgxpool.Pool
	closing <-chan struct{} // closed when the store accepts no more changes
}

// A rowFunc is the row of a query that is made when it is scanned.
type rowFunc func(dest ...any) error

func (f rowFunc) Scan(dest ...any) error { return f(dest...) }

// QueryRow queries one row. The query is made when the row is scanned.
func (r *reading) QueryRow(ctx context.Context, text string, args ...any) pgx.Row {
	return rowFunc(func(dest ...any) error {
		return r.again(ctx, func() error { return r.pool.QueryRow(ctx, text, args...).Scan(dest...) })
	})
}

// collect queries all rows.
func collect[T any](ctx context.Context, r *reading, scan pgx.RowToFunc[T], text string, args ...any) (list []T, err error) {
	err = r.again(ctx, func() error {
		rows, err := r.pool.Query(ctx, text, args...)
		if err != nil {
			return err
		}
		list, err = pgx.CollectRows(rows, scan)
		return err
	})
	return list, err
}

// again makes a query, and makes it again while its connections are lost, for as long as changes
// wait for the server, too.
func (r *reading) again(ctx context.Context, query func() error) error {
	began := time.Now()
	for pause := time.Millisecond; ; pause = min(2*pause, time.Second) {
		err := query()
		if !lost(err) || ctx.Err() != nil || time.Since(began) > patience {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-r.closing:
			return err
		case <-time.After(pause):
		}
	}
}
