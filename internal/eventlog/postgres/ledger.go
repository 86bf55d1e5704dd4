package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/eventlog/record"
)

// costColumns are the columns of a sum without its session: the key, then the numbers.
const costColumns = "root, day, model, purpose, requests, failed, unpriced, unreported, input, output, cacheread, cachewrite, cachewrite1h, reasoning, nanousd"

// onSameCost adds a row to the one with the same key.
const onSameCost = ` ON CONFLICT (session, root, day, model, purpose) DO UPDATE SET requests = costs.requests + excluded.requests, failed = costs.failed + excluded.failed,
	unpriced = costs.unpriced + excluded.unpriced, unreported = costs.unreported + excluded.unreported,
	input = costs.input + excluded.input, output = costs.output + excluded.output, cacheread = costs.cacheread + excluded.cacheread,
	cachewrite = costs.cachewrite + excluded.cachewrite, cachewrite1h = costs.cachewrite1h + excluded.cachewrite1h,
	reasoning = costs.reasoning + excluded.reasoning, nanousd = costs.nanousd + excluded.nanousd`

// The numbers of columns of a key and of numbers in costColumns.
const (
	keyColumns    = 4
	numberColumns = 11
)

// unnestCosts returns the table of the costs that costArrays gives, whose first argument has the
// given number.
func unnestCosts(first int) string {
	var arrays []string
	for i := range keyColumns + numberColumns {
		kind := "bytea"
		if i >= keyColumns {
			kind = "bigint"
		}
		arrays = append(arrays, fmt.Sprintf("$%d::%s[]", first+i, kind))
	}
	return fmt.Sprintf("unnest(%s) AS added (%s)", strings.Join(arrays, ", "), costColumns)
}

// costArrays returns costs as arguments of unnestCosts: an array for each column.
func costArrays(costs []eventlog.Cost) []any {
	texts := make([][][]byte, keyColumns)
	numbers := make([][]int64, numberColumns)
	for _, c := range costs {
		for i, text := range []string{string(c.Session), c.Day, c.Model, c.Purpose} {
			texts[i] = append(texts[i], []byte(text))
		}
		for i, n := range []int64{c.Requests, c.Failed, c.Unpriced, c.Unreported, c.Input, c.Output, c.CacheRead, c.CacheWrite, c.CacheWrite1h, c.Reasoning, c.NanoUSD} {
			numbers[i] = append(numbers[i], n)
		}
	}
	var args []any
	for _, a := range texts {
		args = append(args, a)
	}
	for _, a := range numbers {
		args = append(args, a)
	}
	return args
}

// keepCosts keeps the costs of a session that is deleted, without its name. What its agents have
// cost that were deleted before is kept without its name, too.
func keepCosts(ctx context.Context, tx pgx.Tx, session int64) error {
	const named = "(SELECT name FROM sessions WHERE id = $1)"
	const which = " FROM costs WHERE (session = " + named + " OR session = '' AND root = " + named + ")"
	_, rest, _ := strings.Cut(costColumns, ", ")
	var sums []string
	for i, column := range strings.Split(rest, ", ") {
		if i < keyColumns-1 {
			sums = append(sums, column)
		} else {
			sums = append(sums, "sum("+column+")::bigint")
		}
	}
	// The rows are removed first and in the same statement, so that none of them is counted twice.
	_, err := tx.Exec(ctx, `WITH gone AS (DELETE`+which+` RETURNING *)
		INSERT INTO costs (session, `+costColumns+`)
		SELECT '', kept, `+strings.Join(sums, ", ")+` FROM (
			SELECT gone.*, CASE WHEN EXISTS (SELECT 1 FROM sessions s WHERE s.name = gone.root AND NOT s.deleted AND s.id <> $1) THEN gone.root ELSE ''::bytea END AS kept FROM gone) k
		GROUP BY kept, day, model, purpose`+onSameCost, session)
	return err
}

// Costs implements eventlog.Ledger.
func (s *Store) Costs(ctx context.Context, q eventlog.CostQuery) ([]eventlog.Cost, error) {
	if err := s.queue.Open(ctx); err != nil {
		return nil, err
	}
	list, err := collect(ctx, s.reading, scanCost, selectCosts(q), []byte(q.Session), []byte(q.Since))
	if list == nil {
		list = []eventlog.Cost{}
	}
	return list, s.readError(err)
}

func scanCost(row pgx.CollectableRow) (c eventlog.Cost, err error) {
	var session, day, model, purpose []byte
	err = row.Scan(&session, &day, &model, &purpose, &c.Requests, &c.Failed, &c.Unpriced, &c.Unreported,
		&c.Input, &c.Output, &c.CacheRead, &c.CacheWrite, &c.CacheWrite1h, &c.Reasoning, &c.NanoUSD)
	c.CostKey = eventlog.CostKey{Session: event.SessionID(session), Day: string(day), Model: string(model), Purpose: string(purpose)}
	return c, err
}

// selectCosts returns the query for the sums. A column that it does not group by is empty.
func selectCosts(q eventlog.CostQuery) string {
	columns := strings.Split(costColumns, ", ")
	for i, by := range []bool{q.BySession, q.ByDay, q.ByModel, q.ByPurpose} {
		if !by {
			columns[i] = "''::bytea"
		}
	}
	for i := keyColumns; i < len(columns); i++ {
		columns[i] = "sum(" + columns[i] + ")::bigint"
	}
	which := "($1::bytea = '' OR root = $1)"
	if q.Session != "" {
		which = "root = $1::bytea" // this form of the condition lets the database use the index
	}
	return "SELECT " + strings.Join(columns, ", ") + " FROM costs WHERE " + which + " AND day >= $2::bytea GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4"
}

// Uncounted implements eventlog.Ledger.
func (s *Store) Uncounted(ctx context.Context) ([]event.SessionID, error) {
	if err := s.queue.Open(ctx); err != nil {
		return nil, err
	}
	list, err := collect(ctx, s.reading, func(row pgx.CollectableRow) (event.SessionID, error) {
		var name []byte
		err := row.Scan(&name)
		return event.SessionID(name), err
	}, "SELECT name FROM sessions WHERE NOT counted AND NOT deleted ORDER BY id")
	return list, s.readError(err)
}

// Recount implements eventlog.Ledger.
func (s *Store) Recount(ctx context.Context, id event.SessionID, at eventlog.End, own []event.Event) error {
	costs := eventlog.CostsIn(id, own)
	err := s.change(ctx, id, func(ctx context.Context, tx pgx.Tx, h record.Head) error {
		if h.End != at {
			return nil
		}
		if _, err := tx.Exec(ctx, "DELETE FROM costs WHERE session = $1", []byte(id)); err != nil {
			return err
		}
		if len(costs) > 0 {
			text := fmt.Sprintf("INSERT INTO costs (session, %s) SELECT $1, %s FROM %s%s", costColumns, costColumns, unnestCosts(2), onSameCost)
			if _, err := tx.Exec(ctx, text, append([]any{[]byte(id)}, costArrays(costs)...)...); err != nil {
				return err
			}
		}
		_, err := tx.Exec(ctx, "UPDATE sessions SET counted = true WHERE id = $1", h.Session)
		return err
	})
	if err != nil {
		return fmt.Errorf("count the costs of %s: %w", id, err)
	}
	return nil
}
