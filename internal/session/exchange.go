package session

import (
	"context"
	"errors"
	"fmt"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/turn"
)

// ErrNobody means that no client of the session can do what is asked.
var ErrNobody = errors.New("no client of this session can do that")

// exchange asks the clients of a session something and waits for the answer. The
// function open records the question, or finds the one that an earlier request with a
// lost reply recorded. If ctx is done first, the events that drop returns are
// recorded.
func (h *Host) exchange(ctx context.Context, id event.SessionID, open func(*txn) (string, error), drop func(*turn.State, string) []event.Payload) (event.Event, error) {
	var requestID string
	done := make(chan event.Event, 1)
	err := h.changeAny(ctx, id, func(tx *txn) (err error) {
		if err = tx.exists(); err != nil {
			return err
		}
		if requestID, err = open(tx); err != nil {
			return err
		}
		if tx.s.waiting == nil {
			tx.s.waiting = make(map[chan event.Event]string)
		}
		tx.s.waiting[done] = requestID
		tx.onFailure = append(tx.onFailure, func() { delete(tx.s.waiting, done) })
		return nil
	})
	if err != nil {
		return event.Event{}, err
	}
	select {
	case e, ok := <-done:
		if !ok {
			return e, fmt.Errorf("session %s: %w", id, ErrNotFound)
		}
		return e, nil
	case <-h.ctx.Done():
		return event.Event{}, ErrClosed
	case <-ctx.Done():
	}
	h.get(id).post(func(tx *txn) error {
		delete(tx.s.waiting, done)
		if tx.State.Seq == 0 || drop == nil {
			return nil
		}
		return tx.record(drop(tx.State, requestID)...)
	})
	return event.Event{}, context.Cause(ctx)
}

// finishExchanges gives the answers to those who wait for them. The channel is closed
// if the session does not know the question any more.
func (s *Session) finishExchanges() {
	for done, requestID := range s.waiting {
		e, ended := s.state.Exchanges.Closed(requestID)
		switch {
		case ended:
			done <- e
		case s.state.Exchanges.Find(requestID) == nil:
			close(done)
		default:
			continue
		}
		delete(s.waiting, done)
	}
}
