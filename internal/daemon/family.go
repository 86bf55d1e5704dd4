package daemon

import (
	"context"
	"sync"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
)

// A family tells which sessions belong together: a session, its agents, and theirs. It
// reads the log only, because it is asked while sessions wait for the answer.
type family struct {
	log   eventlog.Log
	roots sync.Map // from a session to the one that it works for in the end; this never changes
}

// root returns the session that a session works for in the end; itself if it is no agent.
func (f *family) root(ctx context.Context, id event.SessionID) event.SessionID {
	if known, ok := f.roots.Load(id); ok {
		return known.(event.SessionID)
	}
	root := id
	for f.log != nil {
		of, err := f.parent(ctx, root)
		if err != nil {
			return root // the next caller asks again
		}
		if of == "" {
			f.roots.Store(id, root)
			return root
		}
		root = of
	}
	return root
}

// parent returns the session that has started an agent; empty if the session is no agent.
func (f *family) parent(ctx context.Context, id event.SessionID) (event.SessionID, error) {
	for e, err := range f.log.Read(ctx, id, 0) {
		if err != nil {
			return "", err
		}
		if e.Type != event.SessionConfigured {
			continue
		}
		var config event.SessionConfiguredData
		if err := e.Decode(&config); err != nil || config.Agent == nil {
			return "", err
		}
		return config.Agent.Session, nil
	}
	return "", nil
}
