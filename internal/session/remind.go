package session

import (
	"context"
	"slices"

	"github.com/abide-run/abide/internal/event"
)

// canAnswer reports whether a client can answer an open question that was sent to
// clients as an event. Questions to a person and plans are not: they are put to one
// client, which askOpenQuestions chooses.
func (a *attachment) canAnswer(asked event.Event) bool {
	for _, kind := range a.interest {
		if kind == asked.Type {
			return true
		}
	}
	switch asked.Type {
	case event.PermissionAsked:
		return a.spec.Permission
	case event.ElicitationAsked:
		return a.spec.Forms
	case event.ExternalAsked:
		d, err := event.As[event.ExternalAskedData](asked)
		return err == nil && slices.ContainsFunc(a.spec.Tools, func(t event.ExternalTool) bool { return t.Name == d.ToolName })
	}
	return false
}

// markAsked remembers that a question was put to a client, or that it was not.
func (cs *clients) markAsked(a *attachment, requestID string, asked bool) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if asked {
		a.asked[requestID] = true
	} else {
		delete(a.asked, requestID)
	}
}

// show remembers that a client is sent questions again because it wants them.
func (a *attachment) show(again []Reminder) {
	for _, r := range again {
		a.shown[r.RequestID] = true
	}
}

// has reports whether a client was sent a question: when it was asked, or again.
func (a *attachment) has(r Reminder) bool {
	if a.asked[r.RequestID] || a.shown[r.RequestID] {
		return true
	}
	if r.Own {
		return r.Asked.Seq > a.from
	}
	head, err := r.Asked.Head()
	return err == nil && head.Time.After(a.since)
}

// Remind returns the open questions that a client can answer and that nobody who can
// was sent since it came. They count as sent to this client from now on. So a program
// that comes back after its end is asked what waits for it, and no work waits behind a
// question that nobody was shown.
func (qs Questions) Remind(ctx context.Context, id event.SessionID, c *Client) ([]Reminder, error) {
	open, err := qs.Open(ctx, id, event.Type.Question)
	if err != nil || len(open) == 0 {
		return nil, err
	}
	var unseen []Reminder
	err = qs.host.inspect(ctx, id, func(tx *txn) error {
		unseen = tx.s.clients.takeUnseen(c, open)
		return nil
	})
	if err != nil || len(unseen) == 0 {
		return nil, err
	}
	return qs.Redeliver(ctx, id, unseen)
}

// takeUnseen returns the questions that a client can answer and that no client who can
// has, and marks them as sent to it.
func (cs *clients) takeUnseen(c *Client, open []Reminder) []Reminder {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	at := slices.IndexFunc(cs.list, func(a *attachment) bool { return a.spec == c })
	if at < 0 {
		return nil // it has left meanwhile
	}
	var unseen []Reminder
	for _, r := range open {
		taken := slices.ContainsFunc(cs.list, func(a *attachment) bool { return a.canAnswer(r.Asked) && a.has(r) })
		if a := cs.list[at]; !taken && a.canAnswer(r.Asked) {
			a.asked[r.RequestID] = true
			unseen = append(unseen, r)
		}
	}
	return unseen
}

// Unremind forgets that a client was sent a question again, if it was because the client
// came back and nobody is available there yet. It reports whether that is so: then the
// client has not answered.
func (qs Questions) Unremind(id event.SessionID, c *Client, requestID string) (undecided bool) {
	s := qs.host.peek(id)
	if s == nil {
		return false
	}
	s.clients.change(c, func(a *attachment) {
		if undecided = a.undecided && a.asked[requestID]; undecided {
			delete(a.asked, requestID)
			delete(a.shown, requestID)
		}
	})
	return undecided
}

// CountAnswers lets every answer of the clients of a session count from now on, because
// a message waits behind its open questions.
func (qs Questions) CountAnswers(id event.SessionID) {
	if s := qs.host.peek(id); s != nil {
		s.clients.countAnswers()
	}
}

func (cs *clients) countAnswers() {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for _, a := range cs.list {
		a.undecided = false
	}
}

// Waiting reports whether a session in memory, or one of its agents, may have an open
// question.
func (qs Questions) Waiting(id event.SessionID) bool {
	s := qs.host.peek(id)
	return s != nil && s.waits.Load()
}

// remindOthers sends the questions of a client that has left to those who stay.
func (s *Session) remindOthers() {
	s.spawn(func() {
		for _, c := range s.clients.reminded() {
			if open, err := s.host.Questions.Remind(s.host.ctx, s.id, c); err == nil && len(open) > 0 {
				c.Remind(s.id, open)
			}
		}
	})
}

// reminded returns the clients that can be sent questions again.
func (cs *clients) reminded() []*Client {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	var list []*Client
	for _, a := range cs.list {
		if a.spec.Remind != nil {
			list = append(list, a.spec)
		}
	}
	return list
}
