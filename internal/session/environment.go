package session

import (
	"context"

	"github.com/abide-run/abide/internal/event"
)

// Environment returns the environment of a session's commands; nil if it has
// none of its own.
func (set Settings) Environment(ctx context.Context, id event.SessionID) ([]string, error) {
	return set.host.get(id).environment(ctx)
}
