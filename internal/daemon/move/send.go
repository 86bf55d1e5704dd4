package move

import (
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/eventlog/postgres"
	"github.com/abide-run/abide/internal/eventlog/record"
	"github.com/abide-run/abide/internal/seal"
)

// sendSome sends the first of some sessions, as many as fit into one transaction.
func (m *mover) sendSome(ctx context.Context, list []postgres.Coming) (int, error) {
	list = slices.Clone(list)
	for i := range list {
		if err := m.reseal(&list[i]); err != nil {
			return 0, err
		}
	}
	return m.target.Put(ctx, list, func(c *postgres.Coming) iter.Seq2[record.Record, error] { return m.records(ctx, c) })
}

// records yields the sound records of a session, and notes its damage.
func (m *mover) records(ctx context.Context, c *postgres.Coming) iter.Seq2[record.Record, error] {
	return func(yield func(record.Record, error) bool) {
		m.AtStep("session")
		err := m.origin(ctx, c)
		if err == nil {
			err = m.own(ctx, c, yield)
		}
		if errors.Is(err, errEnough) {
			return
		}
		if f, damaged := errors.AsType[*record.Fault](err); damaged {
			m.damaged[c.Session] = f.At
			if c.Damage == nil || f.At < c.Damage.Seq {
				c.Damage = &eventlog.Damage{Session: c.ID, Seq: f.At, Reason: f.Reason}
			}
		} else if err != nil {
			yield(record.Record{}, err)
			return
		}
		if c.Damage != nil && !c.Deleted { // people know nothing of those that are kept for their forks
			m.report.Damaged = append(m.report.Damaged, c.Damage)
		}
	}
}

// errEnough means that no more records are wanted.
var errEnough = errors.New("enough")

// own yields the records of a session itself.
func (m *mover) own(ctx context.Context, c *postgres.Coming, yield func(record.Record, error) bool) error {
	for r, err := range record.Follow(c.Head, m.source.Records(ctx, c.Entry)) {
		if err == nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return err
		}
		m.report.Bytes += int64(len(r.Body))
		m.AtStep("record")
		if !yield(r, nil) {
			return errEnough
		}
	}
	return nil
}

// origin returns a *record.Fault if what a fork shares with its parent is damaged.
func (m *mover) origin(ctx context.Context, c *postgres.Coming) error {
	if at, damaged := m.damaged[c.Parent]; damaged && at <= c.Shared {
		return &record.Fault{At: at, Reason: "the session that it was forked from is damaged there"}
	}
	return m.source.CheckOrigin(ctx, c.Entry)
}

// reseal seals the secrets of a session with the key of the database's servers, unless they have the
// key that has sealed them. What cannot be opened is sent as it is: a key that is found again opens it.
func (m *mover) reseal(c *postgres.Coming) error {
	to := m.target.Keys()
	c.Secrets = slices.Clone(c.Secrets)
	for i, one := range c.Secrets {
		id, known := seal.KeyOf(one.Value)
		if known && slices.Contains(to.IDs(), id) {
			continue
		}
		value, err := m.source.Secret(context.Background(), c.ID, one.Name)
		if errors.Is(err, eventlog.ErrSealed) {
			m.report.Unopened++
			continue
		}
		if err != nil {
			return err
		}
		if _, err := to.Ready(); err != nil {
			return err
		}
		one.Value = value
		if c.Secrets[i].Value, err = eventlog.SealSecret(to, c.ID, one); err != nil {
			return err
		}
		m.report.Resealed++
	}
	return nil
}
