// Package sessiontest is a host of sessions for the tests of all packages that need
// one: it can be stopped and started again, and every append to its store is checked.
package sessiontest

import (
	"context"
	"os"
	"testing"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/eventlog/eventlogtest"
	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/offline"
	"github.com/abide-run/abide/internal/model/provider"
	"github.com/abide-run/abide/internal/session"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/tool/builtin"
	"github.com/abide-run/abide/internal/turn"
	"github.com/abide-run/abide/internal/turn/turntest"
	"github.com/abide-run/abide/internal/workspace"
	"github.com/abide-run/abide/internal/workspace/local"
)

// A Fixture is a host on a store that outlives it.
type Fixture struct {
	T         testing.TB
	Store     eventlog.Store        // checks after every append that loading equals folding
	Unchecked eventlog.Store        // the same store without the checks, for events that no version would write
	Options   session.Options       // the options of the next host that is started
	Host      *session.Host         // the host that was started last; nil before Start
	Watched   *eventlogtest.Watched // the store that tells when it was appended to; Store may be around it
}

// New starts a host on a memory store, with the tools and a model that answers every
// session.
func New(t testing.TB, m model.Model, tools ...tool.Tool) *Fixture {
	f := On(t, eventlog.NewMemory(), session.Options{Resolve: Always(session.Endpoint{Model: m, Name: "test"}), Tools: tools})
	f.Start()
	return f
}

// On returns a fixture on a store. No host runs before Start. Unless the options say
// otherwise, the offline model answers, sessions have the files of this machine, and the
// built-in tools without those that start agents.
func On(t testing.TB, store eventlog.Store, opts session.Options) *Fixture {
	if opts.Resolve == nil {
		opts.Resolve = Always(session.Endpoint{Model: offline.Model{}, Name: offline.Name})
	}
	if opts.ToolsOf == nil {
		opts.ToolsOf = func(h *session.Host) turn.Catalog { return builtin.WithoutAgents(h.Skills) }
	}
	if opts.Files == nil {
		here := local.New(os.TempDir(), nil).Files
		opts.Files = func(event.SessionID) (workspace.Files, error) { return here, nil }
	}
	opts.Version = "test"
	watched := eventlogtest.Watch(turntest.Check(t, store))
	f := &Fixture{T: t, Unchecked: store, Store: watched, Options: opts, Watched: watched}
	t.Cleanup(func() {
		if f.Host != nil {
			f.Host.Close()
		}
	})
	return f
}

// Always resolves every model of every session to the same endpoint.
func Always(to session.Endpoint) session.Resolver {
	return func(context.Context, provider.Choice) (session.Endpoint, error) {
		return to, nil
	}
}

// Open makes a host with the options as they are now. It does nothing before it is
// started.
func (f *Fixture) Open() { f.Host = session.New(f.Store, f.Options) }

// Start starts a host with the options as they are now.
func (f *Fixture) Start() {
	f.T.Helper()
	f.Open()
	if err := f.Host.Start(f.T.Context()); err != nil {
		f.T.Fatal(err)
	}
}

// Restart stops the host the way a crash would leave the log, and starts another.
func (f *Fixture) Restart() {
	f.T.Helper()
	f.Host.Close()
	f.Start()
}

// Create makes a session with a client, and shows the client all of it.
func (f *Fixture) Create(id event.SessionID, c *session.Client) *Viewer {
	f.T.Helper()
	return f.show(c, func() (*session.View, error) { return f.Host.Create(f.T.Context(), id, session.Spec{}, c) })
}

// Resume comes back to a session with a client, and shows the client what follows.
func (f *Fixture) Resume(id event.SessionID, r session.Resume, c *session.Client) *Viewer {
	f.T.Helper()
	return f.show(c, func() (*session.View, error) { return f.Host.Resume(f.T.Context(), id, r, c) })
}

// show gives a client a viewer, attaches it, and lets the viewer catch up.
func (f *Fixture) show(c *session.Client, attach func() (*session.View, error)) *Viewer {
	f.T.Helper()
	v := NewViewer()
	c.Viewer = v
	view, err := attach()
	if err == nil {
		err = view.CatchUp(f.T.Context())
	}
	if err != nil {
		f.T.Fatal(err)
	}
	return v
}

// Send gives a session an input, and returns the input's id.
func (f *Fixture) Send(id event.SessionID, in event.InputAcceptedData) string {
	f.T.Helper()
	got, err := f.Host.Send(f.T.Context(), id, in)
	if err != nil {
		f.T.Fatal(err)
	}
	return got
}

// AwaitStored waits until a session has stored an event of a kind after an end.
func (f *Fixture) AwaitStored(id event.SessionID, after eventlog.End, kind event.Type) event.Event {
	f.T.Helper()
	return f.Watched.Await(f.T, id, after, func(e event.Event) bool { return e.Type == kind })
}

// Verify reads a session and checks its chain, and that every call has exactly one
// terminal record.
func (f *Fixture) Verify(id event.SessionID) []event.Event {
	f.T.Helper()
	var events []event.Event
	open := map[string]int{}
	for e, err := range f.Store.Read(context.Background(), id, 0) {
		if err != nil {
			f.T.Fatal(err)
		}
		events = append(events, e)
		switch e.Type {
		case event.AssistantMessage:
			d, _ := event.As[event.AssistantMessageData](e)
			for _, r := range d.ToolRequests {
				open[r.ToolCallID]++
			}
		case event.ToolComplete:
			d, _ := event.As[event.ToolCompleteData](e)
			open[d.ToolCallID]--
		}
	}
	for call, n := range open {
		if n != 0 {
			f.T.Errorf("call %s: %+d terminal records are missing", call, n)
		}
	}
	return events
}
