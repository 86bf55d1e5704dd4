package eventlog

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/abide-run/abide/internal/event"
)

// A Memory is a Store in memory, for tests. It keeps every promise of a store except
// that its content ends with the process.
type Memory struct {
	closed chan struct{}

	mu       sync.Mutex
	sessions map[event.SessionID]*branch
	jobs     map[string]Job
	costs    map[event.SessionID][]Cost // what the log of each session says; the empty id for deleted sessions
	clock    time.Time                  // time of the last change
}

// A branch is a session: the events it shares with its parent, then its own.
type branch struct {
	id       event.SessionID
	parent   *branch
	shared   event.Seq
	own      []link // only ever appended to, so that readers need no lock for the part that they have
	forks    int    // number of forks that share its events
	deleted  bool   // true if it was deleted and is only kept for its forks
	created  time.Time
	modified time.Time
	info     Info
	damage   *Damage
	secrets  map[string][]byte
}

// A link is an event and the hash of the chain after it.
type link struct {
	event.Event
	hash Hash
}

// NewMemory returns an empty store.
func NewMemory() *Memory {
	return &Memory{closed: make(chan struct{}), sessions: make(map[event.SessionID]*branch), jobs: make(map[string]Job), costs: make(map[event.SessionID][]Cost)}
}

// Append implements Log.
func (m *Memory) Append(ctx context.Context, id event.SessionID, batch Batch) (End, error) {
	end, err := batch.End()
	if err != nil {
		return End{}, fmt.Errorf("append to %s: %w", id, err)
	}
	unlock, err := m.lock(ctx)
	if err != nil {
		return End{}, err
	}
	defer unlock()
	b, exists := m.sessions[id]
	switch {
	case !exists:
		b = &branch{id: id}
	case b.damage != nil:
		return End{}, b.damage
	}
	if b.deleted || b.end() != batch.After {
		return End{}, fmt.Errorf("append to %s after event %d: %w", id, batch.After.Seq, ErrConflict)
	}
	m.add(b, batch)
	return end, nil
}

// Fork implements Store.
func (m *Memory) Fork(ctx context.Context, child, parent event.SessionID, batch Batch) (End, error) {
	end, err := batch.End()
	if err != nil {
		return End{}, fmt.Errorf("fork %s from %s: %w", child, parent, err)
	}
	unlock, err := m.lock(ctx)
	if err != nil {
		return End{}, err
	}
	defer unlock()
	from, err := m.find(parent)
	if err != nil {
		return End{}, err
	}
	if from.damage != nil && batch.After.Seq >= from.damage.Seq {
		return End{}, from.damage
	}
	if m.sessions[child] != nil || !from.has(batch.After) {
		return End{}, fmt.Errorf("fork %s from %s at event %d: %w", child, parent, batch.After.Seq, ErrConflict)
	}
	b := &branch{id: child, parent: from, shared: batch.After.Seq}
	from.forks++
	m.add(b, batch)
	return end, nil
}

// add puts a checked batch at the end of a branch.
func (m *Memory) add(b *branch, batch Batch) {
	end := batch.After
	for _, e := range batch.Events {
		end = end.Next(e.Bytes)
		e.Seq = end.Seq
		b.own = append(b.own, link{e, end.Hash})
	}
	if batch.Info != nil {
		b.info = *batch.Info
	}
	for _, c := range batch.Jobs {
		m.change(c)
	}
	b.put(batch.Secrets)
	m.addCosts(b.id, CostsIn(b.id, batch.Events))
	b.modified = m.tick()
	if m.sessions[b.id] == nil {
		b.created = b.modified
		m.sessions[b.id] = b
	}
}

// tick returns the current time, or a later one if it was returned before: sessions are
// listed by the time of their last change, so no two changes have the same time. Times
// are as precise as those that stores write to disk.
func (m *Memory) tick() time.Time {
	m.clock = later(time.Now().Truncate(time.Microsecond), m.clock.Add(time.Microsecond))
	return m.clock
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// end returns the current end of the branch.
func (b *branch) end() End {
	return b.at(b.shared + event.Seq(len(b.own)))
}

// at returns the end after n events, which must exist.
func (b *branch) at(n event.Seq) End {
	switch {
	case n == 0:
		return End{}
	case n <= b.shared:
		return b.parent.at(n)
	}
	return End{Seq: n, Hash: b.own[n-b.shared-1].hash}
}

// has reports whether the branch's chain passes through an end.
func (b *branch) has(end End) bool {
	return end.Seq >= 0 && end.Seq <= b.end().Seq && b.at(end.Seq) == end
}

// first returns the first n events, those of the oldest ancestor first.
func (b *branch) first(n event.Seq) [][]link {
	if b == nil || n <= 0 {
		return nil
	}
	parts := b.parent.first(min(n, b.shared))
	if own := n - b.shared; own > 0 {
		parts = append(parts, b.own[:own:own])
	}
	return parts
}

// Read implements Log.
func (m *Memory) Read(ctx context.Context, id event.SessionID, after event.Seq) iter.Seq2[event.Event, error] {
	return m.walk(ctx, id, func(b *branch) End { return b.at(max(0, min(after, b.end().Seq))) })
}

// ReadFrom implements Log.
func (m *Memory) ReadFrom(ctx context.Context, id event.SessionID, after End) iter.Seq2[event.Event, error] {
	return m.walk(ctx, id, func(*branch) End { return after })
}

// EndAt implements Log.
func (m *Memory) EndAt(ctx context.Context, id event.SessionID, n event.Seq) (End, error) {
	unlock, err := m.lock(ctx)
	if err != nil {
		return End{}, err
	}
	defer unlock()
	b, err := m.find(id)
	switch {
	case err != nil:
		return End{}, err
	case n < 0 || n > b.end().Seq:
		return End{}, noEnd(id, n)
	case b.damage != nil && n >= b.damage.Seq:
		return End{}, b.damage
	}
	return b.at(n), nil
}

func noEnd(id event.SessionID, n event.Seq) error {
	return fmt.Errorf("read %s after event %d: %w", id, n, ErrConflict)
}

// walk yields the events after the end that from chooses.
func (m *Memory) walk(ctx context.Context, id event.SessionID, from func(*branch) End) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		parts, after, damage, err := m.snapshot(ctx, id, from)
		if err != nil {
			yield(event.Event{}, err)
			return
		}
		for _, part := range parts {
			for _, l := range part {
				if l.Seq <= after.Seq {
					continue
				}
				if after = after.Next(l.Bytes); after.Hash != l.hash {
					yield(event.Event{}, &Damage{id, l.Seq, "its bytes were changed"})
					return
				}
				if !yield(l.Event, nil) {
					return
				}
			}
		}
		if damage != nil {
			yield(event.Event{}, damage)
		}
	}
}

// snapshot returns the events of a session that can be read now, the end to start from,
// and the damage that reading ends with.
func (m *Memory) snapshot(ctx context.Context, id event.SessionID, from func(*branch) End) ([][]link, End, *Damage, error) {
	unlock, err := m.lock(ctx)
	if err != nil {
		return nil, End{}, nil, err
	}
	defer unlock()
	b, err := m.find(id)
	if err != nil {
		return nil, End{}, nil, err
	}
	after := from(b)
	if !b.has(after) {
		return nil, End{}, nil, noEnd(id, after.Seq)
	}
	n := b.end().Seq
	if b.damage != nil {
		n = min(n, b.damage.Seq-1)
	}
	return b.first(n), after, b.damage, nil
}

// Session implements Store.
func (m *Memory) Session(ctx context.Context, id event.SessionID) (Session, error) {
	unlock, err := m.lock(ctx)
	if err != nil {
		return Session{}, err
	}
	defer unlock()
	b, err := m.find(id)
	if err != nil {
		return Session{}, err
	}
	return b.session(), nil
}

// session returns the branch as the index describes it.
func (b *branch) session() Session {
	s := Session{
		ID: b.id, End: b.end(), Created: b.created, Modified: b.modified,
		Shared: b.shared, Damage: b.damage, Info: b.info,
	}
	if b.parent != nil {
		s.Parent = b.parent.id
	}
	return s
}

// Sessions implements Store.
func (m *Memory) Sessions(ctx context.Context, q Query) iter.Seq2[Session, error] {
	return func(yield func(Session, error) bool) {
		if q.After.Moved() {
			return
		}
		listing := NewListing(q)
		for s, err := range m.list(ctx) {
			if err == nil && (q.After != Place{} && !q.After.precedes(s.Place(s.Modified)) || !listing.Yields(s)) {
				continue
			}
			if !yield(s, err) || err != nil {
				return
			}
		}
		if listing.Began().IsZero() {
			return
		}
		for s, err := range m.list(ctx) {
			if err == nil && (!s.Modified.After(listing.Began()) || !listing.YieldsMoved(s)) {
				continue
			}
			if !yield(s, err) || err != nil {
				return
			}
		}
	}
}

// Active implements Store.
func (m *Memory) Active(ctx context.Context) iter.Seq2[Session, error] {
	return func(yield func(Session, error) bool) {
		for s, err := range m.list(ctx) {
			if (err != nil || s.Info.Attended()) && !yield(s, err) {
				return
			}
		}
	}
}

// Reindex implements Store.
func (m *Memory) Reindex(ctx context.Context, id event.SessionID, at End, info Info) error {
	unlock, err := m.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	b, err := m.find(id)
	if err == nil && b.end() == at {
		b.info = info
	}
	return err
}

// list yields the sessions that exist now, the last modified first.
func (m *Memory) list(ctx context.Context) iter.Seq2[Session, error] {
	return func(yield func(Session, error) bool) {
		unlock, err := m.lock(ctx)
		if err != nil {
			yield(Session{}, err)
			return
		}
		var all []Session
		for b := range maps.Values(m.sessions) {
			if !b.deleted {
				all = append(all, b.session())
			}
		}
		unlock()
		slices.SortFunc(all, func(a, b Session) int { return b.Modified.Compare(a.Modified) })
		for _, s := range all {
			if !yield(s, nil) {
				return
			}
		}
	}
}

// Delete implements Store.
func (m *Memory) Delete(ctx context.Context, id event.SessionID) error {
	unlock, err := m.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	b, err := m.find(id)
	if err != nil {
		return err
	}
	b.deleted = true
	b.secrets = nil
	maps.DeleteFunc(m.jobs, func(_ string, j Job) bool { return j.Session == id })
	b.info = Info{}
	m.keepCosts(id)
	m.release(b)
	return nil
}

// release removes a deleted session that has no forks left, and then its parent if the
// same is true of it.
func (m *Memory) release(b *branch) {
	for ; b != nil && b.deleted && b.forks == 0; b = b.parent {
		delete(m.sessions, b.id)
		if b.parent != nil {
			b.parent.forks--
		}
	}
}

// Quarantine implements Store.
func (m *Memory) Quarantine(ctx context.Context, id event.SessionID, d *Damage) error {
	unlock, err := m.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	b, err := m.find(id)
	if err != nil {
		return err
	}
	if b.damage = nil; d != nil {
		b.damage = &Damage{Session: id, Seq: d.Seq, Reason: d.Reason}
	}
	return nil
}

// PutSecrets implements Store.
func (m *Memory) PutSecrets(ctx context.Context, id event.SessionID, secrets ...Secret) error {
	unlock, err := m.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	b, err := m.find(id)
	if err != nil {
		return err
	}
	b.put(secrets)
	return nil
}

// put changes the secrets of the branch.
func (b *branch) put(secrets []Secret) {
	for _, s := range secrets {
		if s.Value == nil {
			delete(b.secrets, s.Name)
			continue
		}
		if b.secrets == nil {
			b.secrets = make(map[string][]byte)
		}
		b.secrets[s.Name] = bytes.Clone(s.Value)
	}
}

// Secret implements Store.
func (m *Memory) Secret(ctx context.Context, id event.SessionID, name string) ([]byte, error) {
	unlock, err := m.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	b, err := m.find(id)
	if err != nil {
		return nil, err
	}
	return bytes.Clone(b.secrets[name]), nil
}

// Close implements Store.
func (m *Memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	select {
	case <-m.closed:
	default:
		close(m.closed)
	}
	return nil
}

// Closed implements Store.
func (m *Memory) Closed() <-chan struct{} { return m.closed }

// Err implements Store.
func (m *Memory) Err() error {
	select {
	case <-m.closed:
		return ErrClosed
	default:
		return nil
	}
}

// lock locks the mutex. It fails if the store is closed or ctx is done.
func (m *Memory) lock(ctx context.Context) (unlock func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	select {
	case <-m.closed:
		m.mu.Unlock()
		return nil, ErrClosed
	default:
		return m.mu.Unlock, nil
	}
}

// find returns a session that was not deleted.
func (m *Memory) find(id event.SessionID) (*branch, error) {
	if b := m.sessions[id]; b != nil && !b.deleted {
		return b, nil
	}
	return nil, fmt.Errorf("session %s: %w", id, ErrNotFound)
}
