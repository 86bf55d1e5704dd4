package session

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/turn"
)

// ErrPosition means that a session has no such event.
var ErrPosition = errors.New("no such event in this session")

// Fork makes a new session that shares the events of another one up to a position;
// zero is the end. An unfinished turn is interrupted in the fork.
func (h *Host) Fork(ctx context.Context, child, parent event.SessionID, at event.Seq, name string) (event.SessionID, error) {
	if child == "" {
		child = event.SessionID(event.NewID())
	}
	var end eventlog.End
	var events []event.Event
	for e, err := range h.store.Read(ctx, parent, 0) {
		if at > 0 && end.Seq == at {
			break // later events may be damaged
		}
		if err != nil {
			return "", err
		}
		events, end = append(events, e), end.Next(e.Bytes)
	}
	if end.Seq == 0 || end.Seq < at {
		return "", fmt.Errorf("position %d of session %s: %w; its last event is %d", at, parent, ErrPosition, end.Seq)
	}
	state := turn.New(child)
	if err := state.Load(events); err != nil {
		return "", fmt.Errorf("fork session %s: %w", parent, err)
	}
	return child, h.fork(ctx, state, parent, end, name)
}

// fork records the first events that the fork does not share.
func (h *Host) fork(ctx context.Context, state *turn.State, parent event.SessionID, end eventlog.End, name string) error {
	s := newSession(h, state.ID)
	tx := &txn{s: s, State: state, now: time.Now()}
	record := turn.Interrupt(state, "The session was forked", func(*turn.Call) bool { return true })
	record = append([]event.Payload{event.SessionForkedData{Parent: parent, At: end.Seq, Hash: hex.EncodeToString(end.Hash[:])}}, record...)
	if name != "" {
		record = append(record, event.SessionNamedData{Name: name})
	}
	if err := tx.record(record...); err != nil {
		return err
	}
	info := indexed(state)
	last, err := h.store.Fork(ctx, state.ID, parent, eventlog.Batch{After: end, Events: tx.stored, Info: &info})
	if err != nil {
		return fmt.Errorf("fork session %s: %w", parent, err)
	}
	h.watchers.notify(Notice{Created, eventlog.Session{ID: state.ID, End: last, Created: tx.now, Modified: tx.now, Parent: parent, Shared: end.Seq, Info: info}})
	return nil
}
