package client

import (
	"context"
	"sync"

	"github.com/abide-run/abide/internal/event"
)

// A Stream holds the events of one session, in order, until they are taken. Events that
// are not taken stay in memory.
type Stream struct {
	client *Client
	id     event.SessionID
	ready  chan struct{} // holds a token if there may be new events

	mu    sync.Mutex
	queue []event.Event
}

// Watch opens the stream of a session. Open it before the session is created or
// resumed, so that nothing is missed. A second stream of the same session takes
// the place of the first.
func (c *Client) Watch(id event.SessionID) *Stream {
	s := &Stream{client: c, id: id, ready: make(chan struct{}, 1)}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.streams[id] = s
	return s
}

// Close ends the stream. The client stays attached to the session.
func (s *Stream) Close() {
	s.client.mu.Lock()
	defer s.client.mu.Unlock()
	if s.client.streams[s.id] == s {
		delete(s.client.streams, s.id)
	}
}

func (s *Stream) put(e event.Event) {
	s.mu.Lock()
	s.queue = append(s.queue, e)
	s.mu.Unlock()
	s.hint()
}

// hint wakes the goroutine that waits for Ready.
func (s *Stream) hint() {
	select {
	case s.ready <- struct{}{}:
	default:
	}
}

// Ready returns a channel that receives a token when there are events to take, and when
// the session has changed: a client that is not attached can then read the log. Wait for
// the client's Done as well.
func (s *Stream) Ready() <-chan struct{} { return s.ready }

// Take returns the events that have arrived since it was called last.
func (s *Stream) Take() []event.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := s.queue
	s.queue = nil
	return taken
}

// Next waits for the next event. When the connection is over, the events that
// arrived before come first; then its error is the connection's.
func (s *Stream) Next(ctx context.Context) (event.Event, error) {
	for {
		if e, ok := s.first(); ok {
			return e, nil
		}
		select {
		case <-s.ready:
		case <-ctx.Done():
			return event.Event{}, context.Cause(ctx)
		case <-s.client.done: // no more events arrive
			if e, ok := s.first(); ok {
				return e, nil
			}
			return event.Event{}, s.client.Err()
		}
	}
}

// first takes one event off the queue.
func (s *Stream) first() (event.Event, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) == 0 {
		return event.Event{}, false
	}
	e := s.queue[0]
	s.queue[0] = event.Event{} // the queue must not keep its bytes in memory
	s.queue = s.queue[1:]
	return e, true
}
