package postgres

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
)

// A searchIndex fills the table of the words of messages. Appends do not touch it: each row of
// a session says how much of the session the table has, and a search takes in the rest first.
type searchIndex struct {
	store *Store
	mu    sync.Mutex // held while the table is filled
}

// Search implements eventlog.Store.
func (s *Store) Search(ctx context.Context, q eventlog.Search) (found eventlog.Found, err error) {
	phrases, err := q.Phrases()
	if err != nil {
		return found, err
	}
	if err := s.queue.Open(ctx); err != nil {
		return found, err
	}
	if q.Rebuild {
		if err := s.search.clear(ctx); err != nil {
			return found, err
		}
	}
	if err := s.search.fill(ctx, q.Patience); err != nil {
		return found, err
	}
	err = s.reading.QueryRow(ctx, "SELECT count(*) FROM sessions WHERE words < seq AND listed AND NOT deleted").Scan(&found.Behind)
	if err != nil {
		return found, s.readError(err)
	}
	return found, s.collect(ctx, phrases, q.Limit(), &found)
}

// collect adds the matches of a search. What the table finds is read and checked, because the
// table knows neither the order of words nor what has changed meanwhile.
func (s *Store) collect(ctx context.Context, phrases []eventlog.Phrase, limit int, found *eventlog.Found) error {
	for offset, rows := 0, limit+1; ; offset, rows = offset+rows, 2*rows {
		places, err := s.places(ctx, tsquery(phrases), rows, offset)
		if err != nil {
			return err
		}
		for _, p := range places {
			m, ok, err := s.match(ctx, p, phrases)
			if err != nil {
				return err
			}
			if !ok {
				continue
			}
			if found.More = len(found.Matches) == limit; found.More {
				return nil
			}
			found.Matches = append(found.Matches, m)
		}
		if len(places) < rows {
			return nil
		}
	}
}

// tsquery returns the query for messages that have all words of phrases. The words consist of
// letters, digits and marks alone.
func tsquery(phrases []eventlog.Phrase) string {
	var all []string
	for _, p := range phrases {
		for i, w := range p.Words {
			w = "'" + w + "'"
			if p.Prefix && i == len(p.Words)-1 {
				w += ":*"
			}
			all = append(all, w)
		}
	}
	return strings.Join(all, " & ")
}

// A place is where a message is.
type place struct {
	id  event.SessionID
	seq event.Seq
}

// places returns the places of messages that may match, those of the last modified session first.
func (s *Store) places(ctx context.Context, query string, rows, offset int) ([]place, error) {
	list, err := collect(ctx, s.reading, scanPlace, `SELECT s.name, m.seq FROM messages m JOIN sessions s ON s.id = m.session
		WHERE (m.words @@ $1::tsquery OR m.words IS NULL) AND NOT s.deleted AND s.listed
		ORDER BY s.modified DESC, s.id DESC, m.seq LIMIT $2 OFFSET $3`, query, rows, offset)
	return list, s.readError(err)
}

func scanPlace(row pgx.CollectableRow) (p place, err error) {
	var name []byte
	err = row.Scan(&name, &p.seq)
	p.id = event.SessionID(name)
	return p, err
}

// match reads a message. ok is false if it does not match, or cannot be read any more because
// its session was deleted or is damaged.
func (s *Store) match(ctx context.Context, p place, phrases []eventlog.Phrase) (m eventlog.Match, ok bool, err error) {
	m.Session, err = s.Session(ctx, p.id)
	if err == nil {
		for e, failed := range s.Read(ctx, p.id, p.seq-1) {
			m.Event, err = e, failed
			break
		}
	}
	if _, damaged := errors.AsType[*eventlog.Damage](err); damaged || errors.Is(err, eventlog.ErrNotFound) {
		return m, false, nil
	}
	if err != nil {
		return m, false, err
	}
	text, _ := eventlog.Said(m.Event)
	m.Line, ok = eventlog.Excerpt(text, phrases)
	return m, ok, nil
}

// clear empties the table, so that the next search fills it anew.
func (x *searchIndex) clear(ctx context.Context) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.store.queue.Do(ctx, &op{apply: func(ctx context.Context, _ *writing, tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "DELETE FROM messages"); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "UPDATE sessions SET words = -1 WHERE NOT deleted")
		return err
	}})
}

// An unread session has events that the table of words lacks.
type unread struct {
	session int64
	id      event.SessionID
	has     event.Seq // last event that the table has; negative if it has to be made anew
	end     event.Seq
}

// fill takes in what the table lacks, for as long as a search may wait.
func (x *searchIndex) fill(ctx context.Context, patience time.Duration) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	s, began := x.store, time.Now()
	for {
		list, err := collect(ctx, s.reading, scanUnread, "SELECT id, name, words, seq FROM sessions WHERE words < seq AND NOT deleted ORDER BY modified DESC LIMIT 100")
		if err != nil {
			return s.readError(err)
		}
		for _, u := range list {
			if err := x.take(ctx, u); err != nil {
				return err
			}
			if patience > 0 && time.Since(began) > patience {
				return nil
			}
		}
		if len(list) == 0 {
			return nil
		}
	}
}

func scanUnread(row pgx.CollectableRow) (u unread, err error) {
	var name []byte
	err = row.Scan(&u.session, &name, &u.has, &u.end)
	u.id = event.SessionID(name)
	return u, err
}

// maxWords is the number of bytes of words that the table takes of a message. The server refuses
// more than a mebibyte.
const maxWords = 500 << 10

// A message is a row of the table of words.
type message struct {
	seq   event.Seq
	words []string // nil if there are too many
}

// take takes in the events of a session that the table lacks. A rewind or a quarantine has it
// made anew.
func (x *searchIndex) take(ctx context.Context, u unread) error {
	return x.takeAfter(ctx, u, max(u.has, 0), u.has < 0)
}

// takeAfter takes in the events after a position, and replaces what the table has if it is made
// anew.
func (x *searchIndex) takeAfter(ctx context.Context, u unread, after event.Seq, anew bool) error {
	var said []message
	for e, err := range x.store.Read(ctx, u.id, after) {
		if _, damaged := errors.AsType[*eventlog.Damage](err); damaged {
			break // what is before the damage is found
		}
		if errors.Is(err, eventlog.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		if e.Seq > u.end {
			break
		}
		if from, to, hides := eventlog.Hides(e); hides {
			if from <= after && !anew {
				return x.takeAfter(ctx, u, 0, true)
			}
			said = without(said, from, to)
		}
		if text, ok := eventlog.Said(e); ok {
			said = append(said, message{e.Seq, wordsOf(text)})
		}
	}
	return x.store.queue.Do(ctx, &op{apply: func(ctx context.Context, _ *writing, tx pgx.Tx) error { return put(ctx, tx, u, anew, said) }})
}

// without returns messages without those of a range.
func without(said []message, from, to event.Seq) (left []message) {
	for _, m := range said {
		if m.seq < from || m.seq > to {
			left = append(left, m)
		}
	}
	return left
}

// wordsOf returns the words of a message, each once; nil if there are too many.
func wordsOf(text string) []string {
	seen, size := make(map[string]bool), 0
	words := []string{}
	for _, w := range eventlog.Words(text) {
		if seen[w] || w == "" {
			continue
		}
		if size += len(w) + 4; size > maxWords {
			return nil
		}
		seen[w] = true
		words = append(words, w)
	}
	return words
}

// put stores the words of messages, unless the session has been deleted or taken in meanwhile.
func put(ctx context.Context, tx pgx.Tx, u unread, anew bool, said []message) error {
	done, err := tx.Exec(ctx, "UPDATE sessions SET words = $3 WHERE id = $1 AND NOT deleted AND words = $2", u.session, int64(u.has), int64(u.end))
	if err != nil || done.RowsAffected() == 0 {
		return err
	}
	if anew {
		if _, err := tx.Exec(ctx, "DELETE FROM messages WHERE session = $1", u.session); err != nil {
			return err
		}
	}
	var b pgx.Batch
	for _, m := range said {
		b.Queue("INSERT INTO messages (session, seq, words) VALUES ($1, $2, array_to_tsvector($3::text[])) ON CONFLICT DO NOTHING", u.session, int64(m.seq), m.words)
	}
	return tx.SendBatch(ctx, &b).Close()
}
