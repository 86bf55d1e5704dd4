package session

import (
	"context"
	"errors"
	"fmt"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/transcript"
	"github.com/abide-run/abide/internal/turn"
)

// Send gives a session an input and returns the input's id. The input is stored when
// Send returns, and the requests to models that it interrupts are over; the turn goes on
// without the caller. An input with the key of an earlier one is not accepted again: the
// id of the earlier one is returned.
func (h *Host) Send(ctx context.Context, id event.SessionID, in event.InputAcceptedData) (string, error) {
	return h.SendWith(ctx, id, in, nil)
}

// SendWith is Send with headers for the model requests of the input's turn.
func (h *Host) SendWith(ctx context.Context, id event.SessionID, in event.InputAcceptedData, headers map[string]string) (string, error) {
	return h.sendUnless(ctx, id, in, headers, func() error { return nil })
}

// sendUnless is SendWith, but for an input that a check refuses when it is about to be accepted.
func (h *Host) sendUnless(ctx context.Context, id event.SessionID, in event.InputAcceptedData, headers map[string]string, check func() error) (string, error) {
	if in.InputID == "" {
		in.InputID = event.NewID()
	}
	if in.Mode == "" {
		in.Mode = event.ModeQueue
	}
	var cut interruption
	err := h.change(ctx, id, func(tx *txn) error {
		if err := check(); err != nil {
			return err
		}
		if before := tx.State.Sent(in.Key); before != "" {
			in.InputID = before
			return nil
		}
		in.Headers = len(headers) > 0
		if err := tx.accept(in, &cut); err != nil || !in.Headers {
			return err
		}
		tx.err = tx.keepHeaders(in.InputID, headers) // the input is not stored without them
		return tx.err
	})
	if err != nil {
		return in.InputID, err
	}
	return in.InputID, h.awaitInterrupted(ctx, &cut)
}

// ErrQueueFull means that too many messages of a session wait already.
var ErrQueueFull = errors.New("the queue is full")

func (tx *txn) accept(in event.InputAcceptedData, cut *interruption) error {
	switch in.Mode {
	case event.ModeQueue, event.ModeSteer, event.ModeInterrupt:
	default:
		return fmt.Errorf("mode: %q is unknown; use %s, %s or %s", in.Mode, event.ModeQueue, event.ModeSteer, event.ModeInterrupt)
	}
	if err := tx.unsuspend(); err != nil {
		return err
	}
	in = tx.asCommand(in)
	if waiting := len(tx.State.Queue.Inputs); in.Mode != event.ModeInterrupt && waiting >= tx.s.host.opts.MaxQueue {
		return fmt.Errorf("%w: %d messages wait already; send it when one of them was taken, or with mode %s", ErrQueueFull, waiting, event.ModeInterrupt)
	}
	tx.send(event.Empty(event.PendingMessagesModified))
	if in.Mode == event.ModeInterrupt {
		d := event.AbortFor("interrupted by a new message")
		d.KeepQueue = true
		if err := tx.interrupt(d, cut); err != nil {
			return err
		}
	}
	return tx.record(in)
}

// deliver records an accepted input as a message of the conversation.
func (tx *txn) deliver(step turn.Deliver) error {
	said, _ := tx.State.Said(step.Input)
	reads := ""
	if settled := tx.State.Hooks.Inputs[step.Input.InputID].Transformed; settled != nil {
		reads = *settled
	} else if text, err := tx.inputText(step.Input); err != nil {
		return err
	} else if text != said { // the same text need not be stored twice
		reads = transcript.Dated(text, tx.now)
	}
	interaction := ""
	if tx.State.Turn != nil {
		interaction = tx.State.Turn.InteractionID
	} else {
		interaction = event.NewID()
		if err := tx.openTurn(interaction); err != nil {
			return err
		}
	}
	first := tx.State.About.Summary == ""
	if step.How != "idle" { // accept has sent the event already if the session is idle
		tx.send(event.Empty(event.PendingMessagesModified))
	}
	err := tx.record(event.UserMessageData{
		Content: said, TransformedContent: reads, Attachments: transcript.Completed(step.Input.Attachments), Delivery: step.How,
		InteractionID: interaction, AgentMode: step.Input.AgentMode, Source: step.Input.Source, InputID: step.Input.InputID,
	})
	if first && tx.State.About.Name == "" && err == nil {
		tx.send(event.TitleChangedData{Title: tx.State.About.Summary})
	}
	return err
}
