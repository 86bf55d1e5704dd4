package session

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/abide-run/abide/internal/event"
)

// An attachment is a client of a session.
type attachment struct {
	spec  *Client
	view  *View
	from  event.Seq       // events after this position are sent to it as they happen
	since time.Time       // time at which it came; questions that agents ask later are sent to it
	asked map[string]bool // the ids of the questions that were put to it besides
	shown map[string]bool // the ids of the questions that it is sent again because it wants them
	gone  bool            // true after a hook got no answer because the client had vanished

	// undecided is true if the client came back to pending work and no message waits
	// behind a question: that nobody is available is no answer to what it is sent again.
	undecided bool

	interest map[string]event.Type // the kinds of events that it looks after, by handle
}

// clients are those who are attached to a session.
type clients struct {
	mu      sync.Mutex
	list    []*attachment
	grace   time.Time            // time until which the session counts as attached
	arrived chan struct{}        // closed when a client comes; nil if nobody waits
	missed  time.Time            // time until which hooks wait for a client that vanished
	left    []event.ExternalTool // the tools of the client that left last
}

func (cs *clients) add(a *attachment) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.list = append(cs.list, a)
	cs.arriveLocked()
}

// remove removes a client, closes its view, and reports whether it was there.
func (cs *clients) remove(c *Client) bool {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for i, a := range cs.list {
		if a.spec == c {
			cs.list = append(cs.list[:i:i], cs.list[i+1:]...)
			if a.view != nil {
				a.view.Close()
			}
			return true
		}
	}
	return false
}

// removeAll removes all clients and closes their views.
func (cs *clients) removeAll() {
	cs.mu.Lock()
	list := cs.list
	cs.list, cs.grace = nil, time.Time{}
	cs.mu.Unlock()
	for _, a := range list {
		if a.view != nil {
			a.view.Close()
		}
	}
}

// any reports whether somebody is attached.
func (cs *clients) any() bool {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return len(cs.list) > 0
}

// some reports whether there is a client that the filter is for.
func (cs *clients) some(filter func(*attachment) bool) bool {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return slices.ContainsFunc(cs.list, filter)
}

// has reports whether a client is still attached.
func (cs *clients) has(a *attachment) bool {
	return cs.some(func(other *attachment) bool { return other == a })
}

// find returns an attached client that can do something, or nil.
func (cs *clients) find(can func(*Client) bool) *attachment {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return cs.findLocked(can)
}

func (cs *clients) findLocked(can func(*Client) bool) *attachment {
	for _, a := range cs.list {
		if can(a.spec) {
			return a
		}
	}
	return nil
}

// change lets f change what is known of a client, if it is attached.
func (cs *clients) change(c *Client, f func(*attachment)) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for _, a := range cs.list {
		if a.spec == c {
			f(a)
		}
	}
}

// clash returns the name of a tool that a client brings and another one carries out
// already; empty if there is none.
func (cs *clients) clash(c *Client) string {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for _, other := range cs.list {
		if name := commonTool(c.Tools, other.spec.Tools); name != "" && !sameClient(other.spec, c) {
			return name
		}
	}
	return ""
}

// commonTool returns the name of a tool that is in both lists; empty if none is.
func commonTool(a, b []event.ExternalTool) string {
	for _, x := range a {
		for _, y := range b {
			if x.Name == y.Name {
				return x.Name
			}
		}
	}
	return ""
}

// sameClient reports whether two clients are the same connection: one that
// attaches again replaces itself.
func sameClient(a, b *Client) bool { return a == b || (a.Viewer != nil && a.Viewer == b.Viewer) }

// attached reports whether the session has clients, or had one a moment ago.
func (cs *clients) attached() bool {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return len(cs.list) > 0 || time.Now().Before(cs.grace)
}

// succeeds reports whether a client takes the place of the one that left last: nobody
// else is attached, and it brings a tool of that one. So it is a program that was
// started again, which knows nothing of what it was asked before.
func (cs *clients) succeeds(c *Client) bool {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return len(cs.list) == 0 && c != nil && commonTool(c.Tools, cs.left) != ""
}

// awaitBack lets the session count as attached for a while, because a client vanished.
// The zero time ends that.
func (cs *clients) awaitBack(c *Client, until time.Time) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.grace, cs.left = until, c.Tools
	if c.Hook != nil && !until.IsZero() {
		cs.missed = until
	}
}

// miss remembers that a client that has hooks vanished, and until when it is awaited.
func (cs *clients) miss(a *attachment, until time.Time) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	a.gone = true
	cs.missed = until
}

// missedUntil returns until when hooks wait for a client that vanished.
func (cs *clients) missedUntil() time.Time {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return cs.missed
}

// streaming reports whether some client wants answers in pieces.
func (cs *clients) streaming() bool {
	return cs.some(func(a *attachment) bool { return a.spec.Streaming })
}

// haveInHand reports whether a question was put to somebody who is still attached.
func (cs *clients) haveInHand(requestID string) bool {
	return cs.some(func(a *attachment) bool { return a.asked[requestID] })
}

// tools returns the tools given, with those of all attached clients added. It reports
// false if nobody is attached: then the tools stay as they were declared.
func (cs *clients) tools(kept []event.ExternalTool) ([]event.ExternalTool, bool) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	tools := append([]event.ExternalTool{}, kept...)
	for _, a := range cs.list {
		for _, t := range a.spec.Tools {
			tools = withTool(tools, t)
		}
	}
	return tools, len(cs.list) > 0
}

// withTool adds a tool, or replaces the one of the same name.
func withTool(tools []event.ExternalTool, t event.ExternalTool) []event.ExternalTool {
	for i := range tools {
		if tools[i].Name == t.Name {
			tools[i] = t
			return tools
		}
	}
	return append(tools, t)
}

// abilities tells what the clients of the session can do together.
func (cs *clients) abilities() (forms bool, commands []event.Command) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for _, a := range cs.list {
		forms = forms || a.spec.Forms
		for _, c := range a.spec.Commands {
			if !slices.ContainsFunc(commands, func(o event.Command) bool { return o.Name == c.Name }) {
				commands = append(commands, c)
			}
		}
	}
	return forms, commands
}

// interested reports whether some client has said that it looks after a kind of events.
func (cs *clients) interested(kind event.Type) bool {
	return cs.some(func(a *attachment) bool {
		for _, k := range a.interest {
			if k == kind {
				return true
			}
		}
		return false
	})
}

// withHooks returns the clients whose hooks can be asked, in the order in which they came.
func (cs *clients) withHooks() []*attachment {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	var list []*attachment
	for _, a := range cs.list {
		if a.spec.Hook != nil && !a.gone {
			list = append(list, a)
		}
	}
	return list
}

// transformer returns the client that rewrites the system prompt, or nil.
func (cs *clients) transformer() *Client {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for _, a := range slices.Backward(cs.list) {
		if a.spec.Transform != nil && !a.gone {
			return a.spec
		}
	}
	return nil
}

// await returns an attached client that can do something. If there is none
// it waits for one: the work goes on when somebody comes back.
func (cs *clients) await(ctx context.Context, can func(*Client) bool) (*Client, error) {
	for {
		cs.mu.Lock()
		a, arrived := cs.findLocked(can), cs.arrivalLocked()
		cs.mu.Unlock()
		if a != nil {
			return a.spec, nil
		}
		select {
		case <-arrived:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// awaitHooks returns the clients whose hooks can be asked. If there are none, it waits for
// one until ctx is done.
func (cs *clients) awaitHooks(ctx context.Context) []*attachment {
	for {
		cs.mu.Lock()
		arrived := cs.arrivalLocked()
		cs.mu.Unlock()
		if list := cs.withHooks(); len(list) > 0 {
			return list
		}
		select {
		case <-arrived:
		case <-ctx.Done():
			return nil
		}
	}
}

// arrivalLocked returns a channel that is closed when the next client comes.
func (cs *clients) arrivalLocked() <-chan struct{} {
	if cs.arrived == nil {
		cs.arrived = make(chan struct{})
	}
	return cs.arrived
}

// arriveLocked wakes those who wait for a client.
func (cs *clients) arriveLocked() {
	if cs.arrived != nil {
		close(cs.arrived)
		cs.arrived = nil
	}
}

func transports(c *Client) bool { return c.Transport != nil }

func tokens(c *Client) bool { return c.Token != nil }

// addTokens adds to the providers that a client gives tokens for, and wakes requests
// that wait for such a client.
func (cs *clients) addTokens(c *Client, endpoints map[string]string, token TokenFunc) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	all := maps.Clone(c.TokenFor)
	if all == nil {
		all = make(map[string]string)
	}
	maps.Copy(all, endpoints)
	if c.TokenFor = all; c.Token == nil {
		c.Token = token
	}
	cs.arriveLocked()
}

// giveTokensAt is givesTokensAt while providers may be added.
func (cs *clients) giveTokensAt(c *Client, provider, endpoint string) bool {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return c.givesTokensAt(provider, endpoint)
}

// givesTokensAt reports whether the client does not give the provider's tokens for
// another endpoint.
func (c *Client) givesTokensAt(provider, endpoint string) bool {
	own, said := c.TokenFor[provider]
	return !said || own == endpoint
}
