package session

import (
	"context"
	"slices"

	"github.com/abide-run/abide/internal/event"
)

// Questions asks people something, and knows what they were asked.
type Questions struct{ host *Host }

// A Reminder is an open question that is put to a client again.
type Reminder struct {
	RequestID string
	Asked     event.Event // as it was asked first
	Attempt   int         // how often it was put to clients, this time included
	Own       bool        // the session itself asks, and not an agent that works for it
}

// Open returns the open questions of a session and of the agents that work for
// it, that the filter wants.
func (qs Questions) Open(ctx context.Context, id event.SessionID, filter func(event.Type) bool) ([]Reminder, error) {
	st, err := qs.host.Status(ctx, id)
	var open []Reminder
	for i, e := range st.Questions {
		if filter(e.Type) {
			open = append(open, Reminder{RequestID: requestOf(e), Asked: e, Own: i < st.own})
		}
	}
	return open, err
}

// requestOf reads the id that every question has.
func requestOf(e event.Event) string {
	d, err := event.As[struct {
		RequestID string `json:"requestId"`
	}](e)
	if err != nil {
		return ""
	}
	return d.RequestID
}

// Redeliver counts one more attempt for each of these questions that is still
// open, and returns those. That is stored when it returns.
func (qs Questions) Redeliver(ctx context.Context, id event.SessionID, again []Reminder) ([]Reminder, error) {
	still, err := qs.Open(ctx, id, func(event.Type) bool { return true })
	if err != nil {
		return nil, err
	}
	again = slices.DeleteFunc(slices.Clone(again), func(r Reminder) bool {
		return !slices.ContainsFunc(still, func(o Reminder) bool { return o.RequestID == r.RequestID })
	})
	if len(again) == 0 {
		return nil, nil
	}
	err = qs.host.do(ctx, id, func(tx *txn) error {
		d := event.QuestionsRedeliveredData{}
		for _, r := range again {
			d.RequestIDs = append(d.RequestIDs, r.RequestID)
		}
		if err := tx.Record(d); err != nil {
			return err
		}
		for i := range again {
			again[i].Attempt = tx.State.Attempt(again[i].RequestID)
		}
		return nil
	})
	return again, err
}
