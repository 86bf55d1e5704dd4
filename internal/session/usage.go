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

// defaultWindow is the window of a model of which nothing is known.
const defaultWindow = 128_000

// bytesPerToken is what a token is taken for where nobody counts.
const bytesPerToken = 4

// tellUsage tells how full the model's window is after an answer.
func (tx *txn) tellUsage(r *request, u model.Usage, from Endpoint) {
	d := event.UsageInfoData{
		TokenLimit: from.Window, MessagesLength: len(r.asked.Messages) + 1, IsInitial: tx.State.Totals.Steps == 0,
		CurrentTokens: u.Input + u.CacheRead + u.CacheWrite + u.Output,
	}
	if tx.State.Config.Window > 0 {
		d.TokenLimit = tx.State.Config.Window
	}
	if d.TokenLimit == 0 {
		d.TokenLimit = defaultWindow
	}
	if d.CurrentTokens == 0 {
		d.CurrentTokens = guess(r.asked)
	}
	tx.Tell(d)
}

// guess is how many tokens a request may have that nobody counted.
func guess(q *model.Request) int64 {
	size := len(q.System)
	for _, m := range q.Messages {
		size += len(m.Text)
	}
	return int64(size/bytesPerToken + 1)
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
