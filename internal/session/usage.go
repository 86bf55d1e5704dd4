package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/turn"
)

// blind reports whether the model does not see images. What the session's client
// says of it is more than what is known of its name.
func blind(c event.SessionConfiguredData, to Endpoint) bool {
	if c.Vision != nil {
		return !*c.Vision
	}
	return to.Blind
}

// failed gives the turn up because the model gave no answer, unless a hook has a
// say in that.
func (tx *txn) failed(err error) error {
	d := modelError(err)
	if !tx.s.hooked() {
		return tx.fail(d)
	}
	var failure *model.Error
	temporary := errors.As(err, &failure) && failure.Temporary()
	return tx.Record(turn.ErrorHook(tx.State, d, temporary, tx.now))
}

// learn takes in what a provider counted, and returns what the log keeps of it.
func (s *Session) learn(r *request, u model.Usage) *event.Anchor {
	s.measure(r.view) // a meter that has just been made goes on from the log first
	a := s.gauge.meter.Learn(r.view, u)
	if a.Counted == 0 {
		return nil
	}
	return &event.Anchor{Counted: a.Counted, Estimated: a.Estimated, Messages: a.Messages}
}

// tellUsage tells how full the model's window is after an answer.
func (tx *txn) tellUsage(r *request, u model.Usage) {
	reading := tx.s.measure(r.view)
	tx.Tell(event.UsageInfoData{
		TokenLimit: tx.s.gauged().limits.Window, MessagesLength: len(r.asked.Messages) + 1, IsInitial: tx.State.Totals.Steps == 0,
		CurrentTokens: int64(reading.Tokens) + u.Output,
	})
}

// SecretHeaders names the headers that inputs came with, as JSON, by the ids of
// the inputs.
const SecretHeaders = "headers"

// KeepHeaders keeps the headers that an input comes with for the model requests of
// its turn. They may be secret, so they are kept beside the log. Those of inputs
// that are done with are let go.
func (h *Host) KeepHeaders(ctx context.Context, id event.SessionID, inputID string, headers map[string]string) error {
	h.heading.Lock()
	defer h.heading.Unlock()
	kept, err := h.readHeaders(ctx, id)
	if err != nil {
		return err
	}
	var needed []string
	err = h.look(ctx, id, func(tx *txn) error {
		if tx.State.Turn != nil {
			needed = slices.Clone(tx.State.Turn.Headers)
		}
		for _, in := range tx.State.Queue {
			needed = append(needed, in.InputID)
		}
		return tx.exists()
	})
	if err != nil {
		return err
	}
	maps.DeleteFunc(kept, func(old string, _ map[string]string) bool { return !slices.Contains(needed, old) })
	kept[inputID] = headers
	b, err := json.Marshal(kept)
	if err != nil {
		return err
	}
	if err := h.store.PutSecret(ctx, id, SecretHeaders, b); err != nil {
		return fmt.Errorf("keep the headers of a message to session %s: %w", id, err)
	}
	return nil
}

func (h *Host) readHeaders(ctx context.Context, id event.SessionID) (map[string]map[string]string, error) {
	kept := make(map[string]map[string]string)
	b, err := h.store.Secret(ctx, id, SecretHeaders)
	if err != nil || b == nil {
		return kept, err
	}
	return kept, json.Unmarshal(b, &kept)
}

// headers are what the inputs of a turn want sent along with its requests.
func (s *Session) headers(ctx context.Context, inputs []string) map[string]string {
	if len(inputs) == 0 {
		return nil
	}
	kept, err := s.host.readHeaders(ctx, s.id)
	if err != nil {
		s.host.log.Warn("the headers of a message could not be read", "session", s.id, "err", err)
	}
	all := make(map[string]string)
	for _, id := range inputs {
		maps.Copy(all, kept[id])
	}
	return all
}
