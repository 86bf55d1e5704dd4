package session

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/turn"
)

// Questions asks people something, and knows what they were asked.
type Questions struct{ host *Host }

// Answer answers an open question. It reports whether this answer counts: false means
// that there is no such question, or that another answer came first. The same answer
// with the same key counts again.
func (h *Host) Answer(ctx context.Context, id event.SessionID, a turn.Answer) (won bool, err error) {
	var working []event.SessionID
	if won, working, err = h.answerOne(ctx, id, a); won || err != nil {
		return won, err
	}
	for _, agent := range working { // agents may have agents of their own
		if won, err = h.Answer(ctx, agent, a); won || (err != nil && !errors.Is(err, ErrNotFound)) {
			return won, err
		}
	}
	return false, nil
}

// answerOne answers a question of one session, and returns the agents that work for
// it.
func (h *Host) answerOne(ctx context.Context, id event.SessionID, a turn.Answer) (won bool, working []event.SessionID, err error) {
	taken := false
	if a.External != nil {
		saved := h.saveLargeResult(ctx, id, a.External)
		defer func() {
			if saved != "" && !taken {
				h.dropLargeResult(ctx, id, saved)
			}
		}()
	}
	err = h.change(ctx, id, func(tx *txn) error {
		record, ok, err := a.Give(tx.State)
		if err != nil {
			return err
		}
		taken, won, working = ok, ok || tx.State.Won(a.RequestID, a.Key), h.opts.Tools.Working(tx.State)
		return tx.recordOutcome(record...)
	})
	return won, working, err
}

// Answered reports whether a question that is not about a call was answered lately.
func (qs Questions) Answered(ctx context.Context, id event.SessionID, requestID string) (settled bool, err error) {
	err = qs.host.inspectAny(ctx, id, func(tx *txn) error {
		_, settled = tx.State.Exchanges.Closed(requestID)
		return tx.exists()
	})
	return settled, err
}

// A Reminder is an open question that is put to a client again.
type Reminder struct {
	RequestID string
	Asked     event.Event // the event that first asked it
	Attempt   int         // number of times that clients were asked, this time included
	Own       bool        // true if the session itself asks, and not one of its agents
}

// Open returns the open questions of a session, and of the agents that work for it,
// that the filter accepts.
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

// An Unanswered is an open question, with the session in which it is answered. That is
// another session than the one that asks if an agent asks.
type Unanswered struct {
	Session event.SessionID
	Asker   event.SessionID // session that asks: Session, or an agent that works for it
	Asked   event.Event
}

// All returns the open questions of all sessions, also of those that are not listed:
// agents, and sessions without a message. A session that skip accepts the error of is
// left out.
func (qs Questions) All(ctx context.Context, skip func(error) bool) ([]Unanswered, error) {
	var asking []event.SessionID
	for s, err := range qs.host.store.Sessions(ctx, eventlog.Query{Busy: true}) {
		if err != nil {
			return nil, err
		}
		if s.Info.Questions > 0 && s.Damage == nil {
			asking = append(asking, s.ID)
		}
	}
	var list []Unanswered
	for _, id := range asking {
		own, err := qs.own(ctx, id)
		if err != nil && !skip(err) {
			return nil, err
		}
		for _, e := range own {
			list = append(list, Unanswered{Session: qs.answeredIn(ctx, id), Asker: id, Asked: e})
		}
		qs.host.Unload(id) // there may be more sessions than fit into memory
	}
	return list, nil
}

// own returns the open questions of a session without those of its agents.
func (qs Questions) own(ctx context.Context, id event.SessionID) (own []event.Event, err error) {
	err = qs.host.inspect(ctx, id, func(tx *txn) error {
		own = openQuestions(tx.State)
		return nil
	})
	return own, err
}

// openQuestions returns the events that asked the open questions of a session.
func openQuestions(s *turn.State) (open []event.Event) {
	for _, form := range s.Exchanges.Forms() {
		open = append(open, form.Asked)
	}
	for _, c := range s.Questions() {
		open = append(open, c.Asked)
	}
	return open
}

// answeredIn returns the session in which the questions of a session are answered: for
// an agent, the one that it works for.
func (qs Questions) answeredIn(ctx context.Context, id event.SessionID) event.SessionID {
	var parent event.SessionID
	_ = qs.host.inspect(ctx, id, func(tx *txn) error { // without a state there is no parent either
		if of := tx.State.Setup.Config.Agent; of != nil {
			parent = of.Session
		}
		return nil
	})
	if parent == "" {
		return id
	}
	works := false
	_ = qs.host.inspect(ctx, parent, func(tx *txn) error { // a parent that is gone has no agents
		works = slices.Contains(qs.host.opts.Tools.Working(tx.State), id)
		return nil
	})
	if !works {
		return id
	}
	return qs.answeredIn(ctx, parent)
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

// Redeliver records one more attempt for each of these questions that is still open,
// and returns those.
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
	err = qs.host.changeAny(ctx, id, func(tx *txn) error {
		d := event.QuestionsRedeliveredData{}
		for _, r := range again {
			d.RequestIDs = append(d.RequestIDs, r.RequestID)
		}
		if err := tx.record(d); err != nil {
			return err
		}
		for i := range again {
			again[i].Attempt = tx.State.Attempt(again[i].RequestID)
		}
		return nil
	})
	return again, err
}

// Elicit puts a form to a person behind one of the clients, and waits for the answer.
// The form stays open until somebody answers it, even if this process ends. If ctx is
// done first, the form is cancelled, unless keep reports that the caller will ask
// again.
func (qs Questions) Elicit(ctx context.Context, id event.SessionID, d event.ElicitationAskedData, keep func() bool) (turn.Filled, error) {
	return qs.elicit(ctx, id, d, keep, func(tx *txn) bool {
		forms, _ := tx.s.clients.abilities()
		return forms
	})
}

// elicit is Elicit with a function that reports whether there is anybody who can answer.
func (qs Questions) elicit(ctx context.Context, id event.SessionID, d event.ElicitationAskedData, keep func() bool, can func(*txn) bool) (turn.Filled, error) {
	d.RequestID = event.NewID()
	e, err := qs.host.exchange(ctx, id, func(tx *txn) (string, error) {
		if before := tx.State.Sent(d.Key); before != "" {
			return before, nil
		}
		if !can(tx) {
			return "", fmt.Errorf("elicitation is not supported: %w", ErrNobody)
		}
		return d.RequestID, tx.record(d)
	}, func(s *turn.State, requestID string) []event.Payload {
		if keep() {
			return nil
		}
		record, _, _ := s.FillIn(requestID, "", turn.Filled{Action: turn.Cancel})
		return record
	})
	if err != nil {
		return turn.Filled{}, err
	}
	done, err := event.As[event.ElicitationDoneData](e)
	if err != nil {
		return turn.Filled{}, err
	}
	return qs.host.get(id).filled(ctx, d, done)
}

// FillIn answers a form, and reports whether this answer came first.
func (qs Questions) FillIn(ctx context.Context, id event.SessionID, requestID, key string, f turn.Filled) (won bool, err error) {
	err = qs.host.change(ctx, id, func(tx *txn) error {
		record, ok, err := tx.State.FillIn(requestID, key, f)
		if err != nil {
			return err
		}
		won = ok || tx.State.Won(requestID, key)
		if ok {
			if err := tx.keepForm(requestID, f.Content); err != nil {
				tx.err = err // the form is not closed without what was typed
				return err
			}
		}
		return tx.record(record...)
	})
	return won, err
}

// askOpenQuestions asks a client every open question that no attached client was
// asked.
func (s *Session) askOpenQuestions() {
	for _, c := range s.state.Questions() {
		if !s.clients.haveInHand(c.Question) {
			s.askPerson(c)
			s.askPlan(c)
		}
	}
}

// askPerson asks a client to put a question to a person. If the client goes away, the
// question stays open for the next one.
func (s *Session) askPerson(c *turn.Call) {
	a := s.clients.find(func(c *Client) bool { return c.AskUser != nil })
	if a == nil || c.Stage != turn.WaitingUser {
		return
	}
	question, err := event.As[event.UserInputAskedData](c.Asked)
	if err != nil {
		return
	}
	s.clients.markAsked(a, question.RequestID, true)
	s.spawn(func() {
		reply, err := a.spec.AskUser(s.host.ctx, s.id, question)
		if err != nil {
			return
		}
		s.post(func(tx *txn) error {
			if reply.Unable && !s.clients.has(a) {
				return nil // the client has left without an answer
			}
			tx.onFailure = append(tx.onFailure, func() { s.clients.markAsked(a, question.RequestID, false) })
			record, ok, err := turn.Answer{RequestID: question.RequestID, User: &reply}.Give(tx.State)
			if !ok || err != nil {
				return err
			}
			return tx.recordOutcome(record...)
		})
	})
}

// askPlan asks a client whether a plan may be carried out. If the client goes away,
// the question stays open for the next one.
func (s *Session) askPlan(c *turn.Call) {
	a := s.clients.find(func(c *Client) bool { return c.ExitPlan != nil })
	if a == nil || c.Stage != turn.WaitingPlan {
		return
	}
	question, err := event.As[event.ExitPlanAskedData](c.Asked)
	if err != nil {
		return
	}
	s.clients.markAsked(a, question.RequestID, true)
	s.spawn(func() {
		reply, err := a.spec.ExitPlan(s.host.ctx, s.id, question)
		if err != nil {
			return
		}
		s.post(func(tx *txn) error {
			tx.onFailure = append(tx.onFailure, func() { s.clients.markAsked(a, question.RequestID, false) })
			record, ok, err := turn.Answer{RequestID: question.RequestID, Plan: &reply}.Give(tx.State)
			if !ok || err != nil {
				return err
			}
			return tx.recordOutcome(record...)
		})
	})
}
