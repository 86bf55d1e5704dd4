package session

import (
	"context"
	"encoding/json"
	"errors"
	"maps"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/turn"
)

// secretForms names the forms in the store that hold what a person has typed as a secret: a
// JSON object by the ids of the requests. The log has them without it. They are kept for
// the program that asked, which may ask again because the reply was lost.
const secretForms = "forms"

// keepForm keeps the content of a form beside the log if a part of it is secret. Forms that
// nobody asks for any more are removed.
func (tx *txn) keepForm(requestID string, content json.RawMessage) error {
	form := tx.State.Exchanges.Find(requestID)
	if form == nil {
		return nil
	}
	if _, secret := form.Redact(content); !secret {
		return nil
	}
	kept, err := tx.forms()
	if err != nil {
		return err
	}
	maps.DeleteFunc(kept, func(id string, _ json.RawMessage) bool {
		_, recent := tx.State.Exchanges.Closed(id)
		return !recent
	})
	kept[requestID] = content
	b, err := json.Marshal(kept)
	if err == nil {
		tx.keepSecret(secretForms, b)
	}
	return err
}

func (tx *txn) forms() (map[string]json.RawMessage, error) {
	if pending := tx.pendingSecret(secretForms); pending != nil {
		return parseForms(pending)
	}
	b, _, err := tx.s.readSecret(tx.s.host.ctx, secretForms)
	if err != nil {
		return nil, err
	}
	return parseForms(b)
}

func parseForms(b []byte) (map[string]json.RawMessage, error) {
	kept := make(map[string]json.RawMessage)
	if b == nil {
		return kept, nil
	}
	return kept, json.Unmarshal(b, &kept)
}

// errFormGone means that a form was filled in too long ago, or that the store cannot open it.
var errFormGone = errors.New("the form was filled in, but what was typed as a secret cannot be read any more: ask again")

// filled returns what a person made of a form, with what was typed as a secret.
func (s *Session) filled(ctx context.Context, asked event.ElicitationAskedData, done event.ElicitationDoneData) (turn.Filled, error) {
	f := turn.Filled{Action: done.Action, Content: done.Content}
	if _, secret := turn.Redact(asked.Schema, done.Content); !secret {
		return f, nil
	}
	b, lost, err := s.readSecret(ctx, secretForms)
	if err != nil {
		return turn.Filled{}, err
	}
	kept, err := parseForms(b)
	if content, has := kept[done.RequestID]; has {
		f.Content = content
		return f, nil
	}
	return turn.Filled{}, errors.Join(errFormGone, lost, err)
}
