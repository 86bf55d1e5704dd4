package eventlog

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"sync"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/seal"
)

// A KeyTable is where a store keeps the ids of the keys that have sealed a value, so that a
// missing key is noticed.
type KeyTable interface {
	// Ready returns an error if nothing can be stored: a store that is closed makes no key.
	Ready(ctx context.Context) error
	// AddKey adds a key to those that have sealed a value.
	AddKey(ctx context.Context, id seal.ID) error
}

// A Sealing seals the secrets of a store before they are stored. It is safe for concurrent use.
type Sealing struct {
	keys  *seal.File
	table KeyTable

	mu    sync.Mutex
	known []seal.ID // keys that the table has
}

// NewSealing returns a sealing with the keys of a file.
func NewSealing(keys *seal.File, table KeyTable) *Sealing { return &Sealing{keys: keys, table: table} }

// Keys returns the file with the keys.
func (s *Sealing) Keys() *seal.File { return s.keys }

// Known tells the sealing which keys the table has.
func (s *Sealing) Known(ids ...seal.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known = ids
}

// labels are what the sealed value of a secret is bound to.
func labels(id event.SessionID, name string) []string { return []string{string(id), name} }

// SealSecret returns the value of a secret of a session as it is stored.
func SealSecret(keys *seal.File, id event.SessionID, one Secret) ([]byte, error) {
	return keys.Seal(one.Value, labels(id, one.Name)...)
}

// Seal returns secrets of a session as they are stored.
func (s *Sealing) Seal(ctx context.Context, id event.SessionID, secrets []Secret) ([]Secret, error) {
	if !slices.ContainsFunc(secrets, func(one Secret) bool { return one.Value != nil }) {
		return secrets, nil
	}
	if err := s.recordKey(ctx); err != nil {
		return nil, err
	}
	sealed := make([]Secret, len(secrets))
	for i, one := range secrets {
		sealed[i].Name = one.Name
		if one.Value == nil {
			continue
		}
		var err error
		if sealed[i].Value, err = SealSecret(s.keys, id, one); err != nil {
			return nil, err
		}
	}
	return sealed, nil
}

// recordKey records that the key has sealed a value, before it seals the first one. The key
// itself is on the disk by then.
func (s *Sealing) recordKey(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ids := s.keys.IDs(); len(ids) > 0 && slices.Contains(s.known, ids[0]) {
		return nil
	}
	if err := s.table.Ready(ctx); err != nil {
		return err
	}
	id, err := s.keys.Ready()
	if err != nil {
		return err
	}
	if err := s.table.AddKey(ctx, id); err != nil {
		return err
	}
	s.known = append(s.known, id)
	return nil
}

// Unseal returns the value of a secret of a session. The error is ErrSealed if it cannot be opened.
func (s *Sealing) Unseal(id event.SessionID, name string, sealed []byte) ([]byte, error) {
	value, err := s.keys.Open(sealed, labels(id, name)...)
	if err != nil {
		return nil, fmt.Errorf("secret %q of session %s: %w: %w", name, id, ErrSealed, err)
	}
	return value, nil
}

// ExposedKey returns the line for a person about a key file that other users could read.
func ExposedKey(file *seal.File, mode fs.FileMode) string {
	return fmt.Sprintf("the key file %s had mode %04o, so that other users could use it: it should be 0600; if one of them may have a copy of the log, replace the keys of your providers", file.Path(), mode)
}

// UnreadableSecrets returns the line for a person about secrets whose key is not in the key file.
func UnreadableSecrets(id seal.ID, sessions int, file *seal.File) string {
	whose := fmt.Sprintf("%d sessions", sessions)
	if sessions == 1 {
		whose = "1 session"
	}
	found, remedy := "does not exist", "put it back"
	if has := file.IDs(); len(has) > 0 {
		found, remedy = "has another key ("+has[0].String()+")", "add the lines of the right key file to it"
	}
	return fmt.Sprintf("the secrets of %s are sealed with key %s, and the key file %s %s: the sessions go on, but keys of providers and environments have to be given again, as abide run --resume does; to read them, %s",
		whose, id, file.Path(), found, remedy)
}
