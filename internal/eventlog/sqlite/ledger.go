package sqlite

import (
	"context"
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

// keepCosts keeps the costs of a session that is deleted, without its name.
func (w *writing) keepCosts(session int64) error {
	const columns = "day, model, purpose, requests, failed, unpriced, unreported, input, output, cacheread, cachewrite, cachewrite1h, reasoning, nanousd"
	const named = "(SELECT name FROM sessions WHERE id = ?1)"
	for _, text := range []string{
		"INSERT INTO costs (session, root, " + columns + ") SELECT '', CASE WHEN root = session THEN '' ELSE root END, " + columns +
			" FROM costs WHERE session = " + named + onSameCost,
		"DELETE FROM costs WHERE session = " + named,
		"DELETE FROM uncounted WHERE session = ?1",
	} {
		if err := w.exec(text, session); err != nil && !corrupt(err) {
			return err
		}
	}
	return nil
}

// Costs implements eventlog.Ledger.
func (s *Store) Costs(ctx context.Context, q eventlog.CostQuery) ([]eventlog.Cost, error) {
	if err := s.open(ctx); err != nil {
		return nil, err
	}
	rows, err := s.reading.QueryContext(ctx, selectCosts(q), string(q.Session), q.Since)
	if err != nil {
		return nil, s.readError("", 0, err)
	}
	defer rows.Close()
	list := []eventlog.Cost{}
	for rows.Next() {
		var c eventlog.Cost
		if err := rows.Scan(&c.Session, &c.Day, &c.Model, &c.Purpose, &c.Requests, &c.Failed, &c.Unpriced, &c.Unreported,
			&c.Input, &c.Output, &c.CacheRead, &c.CacheWrite, &c.CacheWrite1h, &c.Reasoning, &c.NanoUSD); err != nil {
			return nil, s.readError("", 0, err)
		}
		list = append(list, c)
	}
	return list, s.readError("", 0, rows.Err())
}

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
		which = "WHERE root = ?1 AND day >= ?2" // so that the index is used
	}
	return "SELECT " + strings.Join(keys, ", ") + `, sum(requests), sum(failed), sum(unpriced), sum(unreported), sum(input), sum(output),
		sum(cacheread), sum(cachewrite), sum(cachewrite1h), sum(reasoning), sum(nanousd) FROM costs ` + which +
		" GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4"
}

// Uncounted implements eventlog.Ledger.
func (s *Store) Uncounted(ctx context.Context) ([]event.SessionID, error) {
	if err := s.open(ctx); err != nil {
		return nil, err
	}
	list, err := queryNames(ctx, s.reading, "SELECT s.name FROM uncounted u JOIN sessions s ON s.id = u.session WHERE NOT s.deleted ORDER BY u.session")
	return list, s.readError("", 0, err)
}

// Recount implements eventlog.Ledger.
func (s *Store) Recount(ctx context.Context, id event.SessionID, at eventlog.End, own []event.Event) error {
	costs := eventlog.CostsIn(id, own)
	err := s.do(ctx, &op{
		apply: func(w *writing) error {
			h, err := w.session(id)
			if err != nil || h.end != at {
				return err
			}
			if err := w.exec("DELETE FROM costs WHERE session = ?", string(id)); err != nil {
				return err
			}
			if err := w.addCosts(id, costs); err != nil {
				return err
			}
			return w.exec("DELETE FROM uncounted WHERE session = ?", h.session)
		},
		committed: func() {},
	})
	if err != nil && !errors.Is(err, eventlog.ErrNotFound) {
		return fmt.Errorf("count the costs of %s: %w", id, err)
	}
	return err
}
