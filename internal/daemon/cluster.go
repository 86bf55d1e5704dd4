package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/eventlog/postgres"
	"github.com/abide-run/abide/internal/server/rpc"
	"github.com/abide-run/abide/internal/session"
	"github.com/abide-run/abide/internal/workspace"
)

// A Cluster makes the engine one of several servers that share a log in a database. Their key files
// have the same key.
type Cluster struct {
	Advertise string        // HOST:PORT at which the other servers reach this one
	Listener  net.Listener  // listener behind that address
	Token     string        // token of clients whose relays connect to it; none can if it is empty
	Pace      postgres.Pace // pace of the beats; the usual one if zero
}

// openStore opens the log. shared is the same store if other servers share it, and nil otherwise.
func (n *Node) openStore(ctx context.Context) (store eventlog.Store, shared *postgres.Store, err error) {
	opts := eventlog.Options{
		Sync: n.config.Sync, Dir: n.folder.Dir(), KeyFile: KeyFile(n.config.KeyFile, n.folder.Dir()), Warn: n.warn, Used: n.folder.HasSessions(),
	}
	c := n.config.Cluster
	if c == nil {
		store, err = stores.Open(ctx, n.config.Store, opts)
		return store, nil, err
	}
	machine, err := n.folder.Machine()
	if err != nil {
		return nil, nil, err
	}
	opts.Used = false // what is in the folder may be of sessions that another server has made
	me := postgres.Server{Machine: machine, Address: c.Advertise, Version: n.config.Version}
	shared, err = postgres.Join(ctx, n.config.Store, opts, me, c.Pace)
	if err != nil {
		return nil, nil, err
	}
	return shared, shared, nil
}

// checkCluster refuses a store that servers cannot share.
func (c Config) checkCluster() error {
	if scheme, _, _ := strings.Cut(c.Store, ":"); c.Cluster != nil && scheme != postgres.Scheme {
		return fmt.Errorf("several servers need a log in a database: set store.url or --store to %s (it begins with %q)", postgres.Kind.Form, scheme+":")
	}
	return nil
}

// owners returns what says which server works on a session; nil if there is only this one.
func (e *engine) owners() session.Owners {
	if e.shared == nil {
		return nil
	}
	return e.shared
}

// fence returns what returns the fences of changes in workspaces elsewhere; nil if there is only this
// server.
func (e *engine) fence() func(context.Context, event.SessionID) (workspace.Fence, error) {
	if e.shared == nil {
		return nil
	}
	return func(ctx context.Context, id event.SessionID) (workspace.Fence, error) {
		f, err := e.shared.Fence(ctx, id)
		return workspace.Fence{Session: string(f.Family), Era: f.Era, Number: f.Number}, err
	}
}

// sweepSize is how many families a server claims at once, because there is something to do.
const sweepSize = 32

// drainTime is how long a server that is drained waits for model requests and calls before it hands
// their sessions over as after a crash.
const drainTime = 5 * time.Minute

// takePart goes on with what nobody works on, at each beat, until the engine ends.
func (n *Node) takePart(e *engine) {
	e.running.Go(func() { n.servePeers(e) })
	tick := time.NewTicker(e.shared.Beats())
	defer tick.Stop()
	var drained time.Time // time at which the draining began; zero if it has not
	for {
		e.dropDead()
		e.shared.NoteBusy(e.host.Work.BusyCount())
		if e.shared.Draining() {
			if drained.IsZero() {
				drained = time.Now()
				n.log.Info("this server hands its sessions over")
			}
			e.handOver(n, time.Since(drained) > drainTime)
		} else if err := e.claimDue(); err != nil && e.ctx.Err() == nil {
			n.log.Warn("could not look for sessions that nobody works on", "err", err)
		}
		select {
		case <-tick.C:
		case <-e.ctx.Done():
			return
		}
	}
}

// claimDue claims what is due and goes on with it.
func (e *engine) claimDue() error {
	for {
		claimed, err := e.shared.ClaimDue(e.ctx, sweepSize)
		if err != nil || len(claimed) == 0 {
			return err
		}
		e.host.Work.Continue(e.ctx, claimed)
	}
}

// handOver gives up what this server owns, as far as nothing is under way in it, or all of it at
// once.
func (e *engine) handOver(n *Node, atOnce bool) {
	for _, id := range e.shared.OwnedFamilies() {
		related := func(other event.SessionID) bool { return e.shared.IsOfFamily(other, id) }
		if _, err := e.host.Work.HandOver(e.ctx, id, related, atOnce); err != nil && e.ctx.Err() == nil {
			n.log.Warn("could not hand a session over; it is tried again", "session", id, "err", err)
		}
	}
}

// rejoin makes this process a server anew, after the others have taken it for dead. Its sessions
// are theirs; its clients stay, and their relays find the new engine.
func (n *Node) rejoin(e *engine) {
	n.log.Warn("the other servers took this one for dead: it drops its sessions and joins again")
	n.mu.Lock()
	n.engine, n.promoted = nil, make(chan struct{})
	n.mu.Unlock()
	e.cancel()
	e.running.Wait()
	if err := e.close(); err != nil {
		n.log.Warn("the engine that was taken for dead did not end well", "err", err)
	}
	n.takeOver()
}

// servers shows the servers that share the store to clients.
type servers struct{ store *postgres.Store }

func (e *engine) listServers() rpc.Servers {
	if e.shared == nil {
		return nil
	}
	return servers{e.shared}
}

// List implements rpc.Servers.
func (s servers) List(ctx context.Context) ([]api.Server, error) {
	list, err := s.store.Servers(ctx)
	if err != nil {
		return nil, err
	}
	all := make([]api.Server, 0, len(list))
	for _, one := range list {
		shown := api.Server{ID: one.ID, Address: one.Address, Version: one.Version, Machine: one.Machine, Status: api.ServerLive, Sessions: one.Sessions, Busy: one.Busy, Beat: one.Beat, Self: one.Self}
		switch {
		case one.Dead:
			shown.Status = api.ServerDead
		case one.Draining:
			shown.Status = api.ServerDraining
		}
		all = append(all, shown)
	}
	return all, nil
}

// Drain implements rpc.Servers.
func (s servers) Drain(ctx context.Context, id string) error {
	err := s.store.Drain(ctx, id)
	if errors.Is(err, postgres.ErrNoServer) {
		return fmt.Errorf("there is no live server with the id %q: see abide servers", id)
	}
	return err
}
