package cli

import (
	"context"
	"iter"

	"github.com/abide-run/abide/internal/client"
	"github.com/abide-run/abide/internal/event"
)

// A feed returns the events of a session, in order, each once.
type feed interface {
	// ready returns a channel that receives a token when there may be new events.
	ready() <-chan struct{}
	// take yields the events since the last call.
	take(context.Context) iter.Seq2[event.Event, error]
}

// An attachedFeed is the feed of an attached client. It also has the events that are
// not stored.
type attachedFeed struct {
	stream *client.Stream
	known  map[string]bool // ids of stored events that may also arrive by the stream
}

func (f *attachedFeed) ready() <-chan struct{} { return f.stream.Ready() }

// markStored records that an event was read from the log. A client that resumes is
// shown the events from its session.resume on, so only these can arrive twice.
func (f *attachedFeed) markStored(e event.Event) error {
	head, err := e.Head()
	if err != nil {
		return err
	}
	if e.Type == event.SessionResume {
		f.known = make(map[string]bool)
	}
	if f.known != nil {
		f.known[head.ID] = true
	}
	return nil
}

func (f *attachedFeed) take(context.Context) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for _, e := range f.stream.Take() {
			if twice, err := f.wasStored(e); !twice && !yield(e, err) {
				return
			}
		}
	}
}

// wasStored reports whether an event was already read from the log.
func (f *attachedFeed) wasStored(e event.Event) (bool, error) {
	if len(f.known) == 0 {
		return false, nil
	}
	head, err := e.Head()
	return f.known[head.ID], err
}

// A logFeed is a feed that only reads the log. It does not attach to the session, so it
// does not affect it.
type logFeed struct {
	client *client.Client
	stream *client.Stream // signals that the session has new events
	id     event.SessionID
	after  event.Seq
}

func newLogFeed(c *client.Client, id event.SessionID) *logFeed {
	return &logFeed{client: c, stream: c.Watch(id), id: id}
}

func (f *logFeed) ready() <-chan struct{} { return f.stream.Ready() }

func (f *logFeed) take(ctx context.Context) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for e, err := range f.client.Events(ctx, f.id, f.after) {
			f.after = max(f.after, e.Seq)
			if !yield(e, err) {
				return
			}
		}
	}
}
