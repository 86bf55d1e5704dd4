package cli

import (
	"context"
	"iter"

	"github.com/abide-run/abide/internal/client"
	"github.com/abide-run/abide/internal/event"
)

// A feed gives the events of a session, in order, each once.
type feed interface {
	// ready gives a token when there may be something to take.
	ready() <-chan struct{}
	// take yields what has come since.
	take(context.Context) iter.Seq2[event.Event, error]
}

// attachedFeed is the feed of a client of the session: it has what is not stored,
// too.
type attachedFeed struct {
	stream *client.Stream
	known  map[string]bool // ids of stored events that may still arrive
}

func (f *attachedFeed) ready() <-chan struct{} { return f.stream.Ready() }

// markStored tells that an event was read from the log. A client that resumes is
// shown what comes from its session.resume on, so only these can come twice.
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

// wasStored reports whether an event was read from the log before.
func (f *attachedFeed) wasStored(e event.Event) (bool, error) {
	if len(f.known) == 0 {
		return false, nil
	}
	head, err := e.Head()
	return f.known[head.ID], err
}

// logFeed is the feed of somebody who only reads the log: whoever uses it is not
// a client of the session, and changes nothing by watching.
type logFeed struct {
	client *client.Client
	stream *client.Stream // tells when the session goes on
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
