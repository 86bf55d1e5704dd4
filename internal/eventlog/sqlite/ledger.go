package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
)

// addCost adds to a sum.
const addCost = `INSERT INTO costs (session, root, day, model, purpose,
		requests, failed, unpriced, unreported, input, output, cacheread, cachewrite, cachewrite1h, reasoning, nanousd)
	VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)` + onSameCost

// onSameCost adds a row to the one with the same key.
const onSameCost = ` ON CONFLICT DO UPDATE SET requests = requests + excluded.requests, failed = failed + excluded.failed,
	unpriced = unpriced + excluded.unpriced, unreported = unreported + excluded.unreported,
	input = input + excluded.input, output = output + excluded.output, cacheread = cacheread + excluded.cacheread,
	cachewrite = cachewrite + excluded.cachewrite, cachewrite1h = cachewrite1h + excluded.cachewrite1h,
	reasoning = reasoning + excluded.reasoning, nanousd = nanousd + excluded.nanousd`

// brokenCosts is the error of a change that fails because a page of the sums is damaged.
type brokenCosts struct{ error }

func (b brokenCosts) Unwrap() error { return b.error }

// addCosts adds what an addition says of costs to the sums.
func (w *writing) addCosts(id event.SessionID, costs []eventlog.Cost) error {
	for _, c := range costs {
		_, err := w.cost.Exec(string(id), string(c.Session), c.Day, c.Model, c.Purpose, c.Requests, c.Failed, c.Unpriced, c.Unreported,
			c.Input, c.Output, c.CacheRead, c.CacheWrite, c.CacheWrite1h, c.Reasoning, c.NanoUSD)
		if corrupt(err) {
			return brokenCosts{err}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// addCostsOf adds the costs of an addition. If the sums are damaged, its session is counted
// again later: the events are in the log.
func (w *writing) addCostsOf(a *addition, session int64) error {
	if !a.uncounted {
		return w.addCosts(a.id, a.costs)
	}
	if len(a.costs) == 0 {
		return nil
	}
	return w.exec("INSERT OR IGNORE INTO uncounted VALUES (?)", session)
}

// withCosts makes a change to the log and the sums. If the sums are damaged, it makes the
// change without them: losing sums is better than losing events.
func withCosts(a *addition, change func() error) error {
	err := change()
	if is[brokenCosts](err) {
		a.uncounted = true
		return change()
	}
	return err
}

// keepCosts keeps the costs of a session that is deleted, without its name. What its agents
// have cost that were deleted before is kept without its name, too.
func (w *writing) keepCosts(session int64) error {
	const columns = "day, model, purpose, requests, failed, unpriced, unreported, input, output, cacheread, cachewrite, cachewrite1h, reasoning, nanousd"
	const named = "(SELECT name FROM sessions WHERE id = ?1)"
	const which = " FROM costs WHERE (session = " + named + " OR session = '' AND root = " + named + ")"
	for _, text := range []string{
		"INSERT INTO costs (session, root, " + columns + ") SELECT '', CASE WHEN EXISTS (SELECT 1 FROM sessions WHERE name = root AND NOT deleted) THEN root ELSE '' END, " +
			columns + which + onSameCost,
		"DELETE" + which,
		"DELETE FROM uncounted WHERE session = ?1",
	} {
		err := w.exec(text, session)
		if corrupt(err) && !w.renewedCosts {
			return brokenCosts{err}
		}
		if err != nil && !corrupt(err) {
			return err
		}
	}
	return nil
}

// renewCosts makes the sums anew, once. All sessions have to be counted again; what deleted
// sessions have cost is kept as far as it can be read. SQLite could not remove tables with
// damaged pages, so their entries in the schema are removed instead, as with the order of
// sessions.
func (w *writing) renewCosts() error {
	if w.renewedCosts {
		return errRenewed
	}
	w.renewedCosts = true
	kept := w.costsOfDeleted() // before the transaction, which could not go on after an error
	if _, err := w.begin.Exec(); err != nil {
		return err
	}
	err := w.replaceCosts(kept)
	if err == nil {
		_, err = w.commit.Exec()
	}
	if err != nil {
		w.rollback()
		_ = w.exec("PRAGMA writable_schema = RESET") // reads the schema again
	}
	return err
}

// costsOfDeleted returns what deleted sessions have cost, as far as it can be read.
func (w *writing) costsOfDeleted() []eventlog.Cost {
	rows, err := w.conn.QueryContext(context.Background(), "SELECT root, day, model, purpose, "+sums+" FROM costs WHERE session = '' GROUP BY root, day, model, purpose")
	if err != nil {
		return nil
	}
	kept, _ := scanCosts(rows) // the rest is lost
	return kept
}

func (w *writing) replaceCosts(kept []eventlog.Cost) error {
	if err := w.makeAnew("tbl_name = 'costs'"); err != nil {
		return err
	}
	if err := w.exec("INSERT OR IGNORE INTO uncounted SELECT id FROM sessions INDEXED BY names"); err != nil {
		return err
	}
	return w.addCosts("", kept)
}

// Costs implements eventlog.Ledger.
func (s *Store) Costs(ctx context.Context, q eventlog.CostQuery) ([]eventlog.Cost, error) {
	if err := s.queue.Open(ctx); err != nil {
		return nil, err
	}
	rows, err := s.reading.QueryContext(ctx, selectCosts(q), string(q.Session), q.Since)
	var list []eventlog.Cost
	if err == nil {
		list, err = scanCosts(rows)
	}
	if corrupt(err) && s.renewCosts(ctx, err) == nil {
		return nil, eventlog.ErrUncounted
	}
	if err != nil {
		return nil, s.readError("", 0, err)
	}
	return list, nil
}

// renewCosts makes the sums anew, because reading them failed. It fails if that was done
// before: they are not to blame then.
func (s *Store) renewCosts(ctx context.Context, broken error) error {
	begun := false
	return s.queue.Do(ctx, &op{
		apply: func(w *writing) error {
			if w.renewedCosts && begun {
				return nil
			}
			begun = true
			return brokenCosts{broken}
		},
		committed: func() {},
	})
}

// scanCosts returns the sums that can be read.
func scanCosts(rows *sql.Rows) ([]eventlog.Cost, error) {
	defer rows.Close()
	list := []eventlog.Cost{}
	for rows.Next() {
		var c eventlog.Cost
		if err := rows.Scan(&c.Session, &c.Day, &c.Model, &c.Purpose, &c.Requests, &c.Failed, &c.Unpriced, &c.Unreported,
			&c.Input, &c.Output, &c.CacheRead, &c.CacheWrite, &c.CacheWrite1h, &c.Reasoning, &c.NanoUSD); err != nil {
			return list, err
		}
		list = append(list, c)
	}
	return list, rows.Err()
}

// sums are the columns of a sum, without its key.
const sums = `sum(requests), sum(failed), sum(unpriced), sum(unreported), sum(input), sum(output),
	sum(cacheread), sum(cachewrite), sum(cachewrite1h), sum(reasoning), sum(nanousd)`

// selectCosts returns the query for the sums. A column that it does not group by is empty.
func selectCosts(q eventlog.CostQuery) string {
	keys := []string{"''", "''", "''", "''"}
	for i, k := range []struct {
		by     bool
		column string
	}{{q.BySession, "root"}, {q.ByDay, "day"}, {q.ByModel, "model"}, {q.ByPurpose, "purpose"}} {
		if k.by {
			keys[i] = k.column
		}
	}
	which := "WHERE (?1 = '' OR root = ?1) AND day >= ?2"
	if q.Session != "" {
		which = "WHERE root = ?1 AND day >= ?2" // this form of the condition lets the database use the index
	}
	return "SELECT " + strings.Join(keys, ", ") + ", " + sums + " FROM costs " + which + " GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4"
}

// Uncounted implements eventlog.Ledger.
func (s *Store) Uncounted(ctx context.Context) ([]event.SessionID, error) {
	if err := s.queue.Open(ctx); err != nil {
		return nil, err
	}
	list, err := queryNames(ctx, s.reading, "SELECT s.name FROM uncounted u JOIN sessions s ON s.id = u.session WHERE NOT s.deleted ORDER BY u.session")
	return list, s.readError("", 0, err)
}

// Recount implements eventlog.Ledger.
func (s *Store) Recount(ctx context.Context, id event.SessionID, at eventlog.End, own []event.Event) error {
	costs := eventlog.CostsIn(id, own)
	err := s.queue.Do(ctx, &op{
		apply: func(w *writing) error {
			h, err := w.session(id)
			if err != nil || h.End != at {
				return err
			}
			if err := w.exec("DELETE FROM costs WHERE session = ?", string(id)); corrupt(err) {
				return brokenCosts{err}
			} else if err != nil {
				return err
			}
			if err := w.addCosts(id, costs); err != nil {
				return err
			}
			return w.exec("DELETE FROM uncounted WHERE session = ?", h.Session)
		},
		committed: func() {},
	})
	if err != nil && !errors.Is(err, eventlog.ErrNotFound) {
		return fmt.Errorf("count the costs of %s: %w", id, err)
	}
	return err
}
