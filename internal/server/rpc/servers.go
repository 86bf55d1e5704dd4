package rpc

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/jsonrpc"
)

// These methods are about the servers that share the store.
var _ = register(map[string]method{
	api.ServersList:  on((*conn).listServers),
	api.ServersDrain: on((*conn).drainServer),
})

// Servers are the servers that share a store.
type Servers interface {
	List(ctx context.Context) ([]api.Server, error)
	// Drain makes a server hand over what it works on.
	Drain(ctx context.Context, id string) error
}

var errAlone = errors.New("this server shares its log with no other: start several with abide serve --advertise")

func (c *conn) listServers(ctx context.Context, _ struct{}) (api.ServersResult, error) {
	if c.server.opts.Servers == nil {
		return api.ServersResult{}, errAlone
	}
	list, err := c.server.opts.Servers.List(ctx)
	return api.ServersResult{Servers: list}, err
}

func (c *conn) drainServer(ctx context.Context, p api.DrainParams) (struct{}, error) {
	switch {
	case c.server.opts.Servers == nil:
		return struct{}{}, errAlone
	case p.ID == "":
		return struct{}{}, missing("id")
	}
	return struct{}{}, c.server.opts.Servers.Drain(ctx, p.ID)
}

// elsewhere is the error for what another server has to do.
func elsewhere(err error) *jsonrpc.Error {
	fault := jsonrpc.Errorf(api.CodeElsewhere, "%v", err)
	var place api.Elsewhere
	if owned, ok := errors.AsType[*eventlog.Owned](err); ok {
		place = api.Elsewhere{Server: owned.Server, Address: owned.Address}
	}
	fault.Data, _ = json.Marshal(place) // strings cannot fail
	return fault
}
