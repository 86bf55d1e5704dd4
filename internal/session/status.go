package session

import (
	"context"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
)

// A Status is a summary of a session's state.
type Status struct {
	ID        event.SessionID
	End       eventlog.End
	Active    bool
	Name      string
	AutoNamed bool // true if no person gave it the name
	Summary   string
	Started   time.Time
	Model     string
	Config    event.SessionConfiguredData
	Totals    event.Totals
	Queue     []event.InputAcceptedData
	Questions []event.Event             // the events that asked the open questions
	Dirs      map[string]string         // the working directories in which calls were asked about, by the ids of the open questions
	own       int                       // number of questions that are the session's own; those of agents follow
	hidden    []event.HistoryHiddenData // the ranges that were taken back
	Rules     event.ClientRules
	AllowsAll bool
	Paused    bool
	Mode      string
}

// Hides reports whether the event at a position was taken back.
func (s Status) Hides(n event.Seq) bool {
	return slices.ContainsFunc(s.hidden, func(d event.HistoryHiddenData) bool { return n >= d.From && n <= d.To })
}

// TakenBack returns the ranges of events that were taken back.
func (s Status) TakenBack() []event.HistoryHiddenData { return s.hidden }

// Status returns a summary of a session's state, with the open questions of its
// agents.
func (h *Host) Status(ctx context.Context, id event.SessionID) (Status, error) {
	var st Status
	var working []event.SessionID
	err := h.inspect(ctx, id, func(tx *txn) error {
		s := tx.State
		st = Status{
			ID: s.ID, End: tx.s.log.end, Active: s.Active(),
			Name: s.About.Name, AutoNamed: s.About.AutoNamed, Summary: s.About.Summary, Started: s.About.Started, Model: s.Setup.Model, Config: s.Setup.Config, Totals: s.About.Totals,
			Queue: append([]event.InputAcceptedData{}, s.Queue.Inputs...), hidden: s.Rewind.Hidden, Rules: s.Permission.Rules, AllowsAll: s.AllowsAll(), Paused: s.Queue.Paused, Mode: s.Mode(),
		}
		st.Questions, st.Dirs = openQuestions(s), make(map[string]string)
		for _, c := range s.Questions() {
			st.Dirs[c.Question] = c.Dir
		}
		st.own, working = len(st.Questions), h.opts.Tools.Working(s)
		return nil
	})
	for _, agent := range working {
		if its, err := h.Status(ctx, agent); err == nil {
			st.Questions = append(st.Questions, its.Questions...)
			maps.Copy(st.Dirs, its.Dirs)
		}
	}
	return st, err
}

// List yields the sessions that a query selects, as [eventlog.Store.Sessions] does.
func (h *Host) List(ctx context.Context, q eventlog.Query) iter.Seq2[eventlog.Session, error] {
	return h.store.Sessions(ctx, q)
}

// Info returns what the index knows of a session.
func (h *Host) Info(ctx context.Context, id event.SessionID) (eventlog.Session, error) {
	return h.store.Session(ctx, id)
}
