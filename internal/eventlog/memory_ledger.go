package eventlog

import (
	"context"

	"github.com/abide-run/abide/internal/event"
)

// everyKey sums up by all keys.
var everyKey = CostQuery{BySession: true, ByDay: true, ByModel: true, ByPurpose: true}

// addCosts adds what events of a session have cost.
func (m *Memory) addCosts(id event.SessionID, more []Cost) {
	if len(more) > 0 {
		m.costs[id] = SumCosts(append(m.costs[id], more...), everyKey)
	}
}

// keepCosts keeps the costs of a session that is deleted, without its name, and without the
// names of deleted sessions that they are counted with.
func (m *Memory) keepCosts(id event.SessionID) {
	gone := append(m.costs[""], m.costs[id]...)
	for i, c := range gone {
		if b := m.sessions[c.Session]; b == nil || b.deleted {
			gone[i].Session = ""
		}
	}
	delete(m.costs, id)
	delete(m.costs, "")
	m.addCosts("", gone)
}

// Costs implements Ledger.
func (m *Memory) Costs(ctx context.Context, q CostQuery) ([]Cost, error) {
	unlock, err := m.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	var all []Cost
	for _, costs := range m.costs {
		all = append(all, costs...)
	}
	return SumCosts(all, q), nil
}

// Uncounted implements Ledger. Nothing in memory is of an older version.
func (m *Memory) Uncounted(ctx context.Context) ([]event.SessionID, error) {
	unlock, err := m.lock(ctx)
	if err != nil {
		return nil, err
	}
	unlock()
	return nil, nil
}

// Recount implements Ledger.
func (m *Memory) Recount(ctx context.Context, id event.SessionID, at End, own []event.Event) error {
	unlock, err := m.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	b, err := m.find(id)
	if err == nil && b.end() == at {
		delete(m.costs, id)
		m.addCosts(id, CostsIn(id, own))
	}
	return err
}
