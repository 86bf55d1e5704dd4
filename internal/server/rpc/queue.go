package rpc

import (
	"cmp"
	"context"
	"errors"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/session"
)

// These methods look at what waits in a session's queue, and change it. A request
// that is made again because its reply was lost changes nothing.
var _ = register(map[string]method{
	api.QueuePending:      on((*conn).queue),
	api.QueueSnapshot:     on((*conn).queue),
	api.QueueHasPending:   on((*conn).hasPending),
	api.QueueClear:        on((*conn).clearQueue),
	api.QueueRemoveRecent: on((*conn).removeRecent),
	api.QueueRemoveAt:     on((*conn).removeAt),
	api.QueueInsertAt:     on((*conn).insertAt),
	api.QueueDuplicateAt:  on((*conn).duplicateAt),
	api.QueueMoveItem:     on((*conn).moveItem),
	api.QueueUpdateText:   on((*conn).updateText),
	api.QueueSendNow:      on((*conn).sendNow),
	api.QueueSetPaused:    on((*conn).setPaused),
})

func (c *conn) queue(ctx context.Context, p api.SessionParams) (api.QueueResult, error) {
	result := api.QueueResult{Items: []api.QueueItem{}, Steering: []string{}}
	st, err := c.server.host.Status(ctx, p.SessionID)
	for _, in := range st.Queue {
		text := cmp.Or(in.DisplayPrompt, in.Prompt)
		if in.Mode == event.ModeSteer {
			result.Steering = append(result.Steering, text)
			continue
		}
		item := api.QueueItem{ID: in.InputID, Kind: "message", Display: text, AgentMode: cmp.Or(in.AgentMode, "interactive"), MessageID: in.InputID}
		if in.Kind == event.InputCommand {
			item.Kind, item.MessageID = event.InputCommand, ""
		}
		result.Items = append(result.Items, item)
	}
	return result, noSession(p.SessionID, err)
}

func (c *conn) hasPending(ctx context.Context, p api.SessionParams) (api.HasPendingResult, error) {
	st, err := c.server.host.Status(ctx, p.SessionID)
	return api.HasPendingResult{HasPending: len(st.Queue) > 0}, noSession(p.SessionID, err)
}

// change changes the queue. What was done before, for a request whose reply was
// lost, was done.
func (c *conn) change(ctx context.Context, id event.SessionID, key string, f func(*session.Queue) bool) (bool, error) {
	done := false
	before, err := c.server.host.Queues.Change(ctx, id, key, func(q *session.Queue) error {
		done = f(q)
		return nil
	})
	return done || before != "", noSession(id, err)
}

func (c *conn) clearQueue(ctx context.Context, p api.QueueParams) (any, error) {
	_, err := c.change(ctx, p.SessionID, p.Key, func(q *session.Queue) bool { q.Clear(); return true })
	return nil, err
}

func (c *conn) removeRecent(ctx context.Context, p api.QueueParams) (api.RemovedResult, error) {
	done, err := c.change(ctx, p.SessionID, p.Key, func(q *session.Queue) bool {
		return len(q.Items) > 0 && q.Remove(q.Items[len(q.Items)-1].InputID)
	})
	return api.RemovedResult{Removed: done}, err
}

var errNoItem = errBadParams{errors.New("id: it is empty")}

func (c *conn) removeAt(ctx context.Context, p api.QueueParams) (api.RemovedResult, error) {
	if p.ID == "" {
		return api.RemovedResult{}, errNoItem
	}
	done, err := c.change(ctx, p.SessionID, p.Key, func(q *session.Queue) bool { return q.Remove(p.ID) })
	return api.RemovedResult{Removed: done}, err
}

func (c *conn) moveItem(ctx context.Context, p api.MoveParams) (api.ChangedResult, error) {
	if p.ID == "" {
		return api.ChangedResult{}, errNoItem
	}
	done, err := c.change(ctx, p.SessionID, p.Key, func(q *session.Queue) bool { return q.Move(p.ID, p.To) })
	return api.ChangedResult{Changed: done}, err
}

func (c *conn) updateText(ctx context.Context, p api.UpdateTextParams) (api.UpdatedResult, error) {
	if p.ID == "" {
		return api.UpdatedResult{}, errNoItem
	}
	done, err := c.change(ctx, p.SessionID, p.Key, func(q *session.Queue) bool { return q.Edit(p.ID, p.Prompt, p.Display) })
	return api.UpdatedResult{Updated: done}, err
}

func (c *conn) sendNow(ctx context.Context, p api.QueueParams) (api.SteeredResult, error) {
	if p.ID == "" {
		return api.SteeredResult{}, errNoItem
	}
	done, err := c.change(ctx, p.SessionID, p.Key, func(q *session.Queue) bool { return q.Steer(p.ID) })
	return api.SteeredResult{Steered: done}, err
}

func (c *conn) insertAt(ctx context.Context, p api.InsertParams) (api.ItemResult, error) {
	if p.Message.Prompt == "" {
		return api.ItemResult{}, errBadParams{errors.New("message.prompt: it is empty")}
	}
	return c.add(ctx, p.SessionID, p.Key, func(q *session.Queue) (string, error) {
		return q.Insert(event.InputAcceptedData{
			Prompt: p.Message.Prompt, DisplayPrompt: p.Message.DisplayPrompt, Attachments: p.Message.Attachments,
			AgentMode: p.Message.AgentMode, Source: p.Message.Source,
		}, p.Position)
	})
}

func (c *conn) duplicateAt(ctx context.Context, p api.QueueParams) (api.ItemResult, error) {
	if p.ID == "" {
		return api.ItemResult{}, errNoItem
	}
	return c.add(ctx, p.SessionID, p.Key, func(q *session.Queue) (string, error) {
		id, err := q.Duplicate(p.ID)
		if errors.Is(err, session.ErrPosition) {
			err = said("Queued item not found: %s", p.ID)
		}
		return id, err
	})
}

func (c *conn) add(ctx context.Context, id event.SessionID, key string, f func(*session.Queue) (string, error)) (api.ItemResult, error) {
	var added string
	before, err := c.server.host.Queues.Change(ctx, id, key, func(q *session.Queue) (err error) {
		added, err = f(q)
		return err
	})
	return api.ItemResult{ID: cmp.Or(added, before)}, noSession(id, err)
}

func (c *conn) setPaused(ctx context.Context, p api.PauseParams) (any, error) {
	if p.Paused == nil {
		return nil, errBadParams{errors.New("paused: it is missing")}
	}
	_, err := c.server.host.Queues.Change(ctx, p.SessionID, p.Key, func(q *session.Queue) error { return q.Pause(*p.Paused) })
	return nil, noSession(p.SessionID, err)
}
