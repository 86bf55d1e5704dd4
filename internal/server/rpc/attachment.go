package rpc

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/jsonrpc"
	"github.com/abide-run/abide/internal/session"
)

// attachments returns the attachments of a message as they are stored: with the content of the
// files whose content is wanted.
func (c *conn) attachments(ctx context.Context, p api.SendParams) ([]json.RawMessage, error) {
	if len(p.Attachments) == 0 {
		return p.Attachments, nil
	}
	list, err := c.server.host.Attachments.WithContent(ctx, p.SessionID, p.Attachments)
	if err == nil && p.RequireAttachments {
		err = c.server.host.Attachments.Check(ctx, p.SessionID, list)
	}
	switch {
	case errors.Is(err, session.ErrAttachment):
		return nil, jsonrpc.Errorf(api.CodeAttachment, "%v", err)
	case errors.Is(err, session.ErrUnseen):
		return nil, jsonrpc.Errorf(api.CodeUnseen, "%v", err)
	}
	return list, noSession(p.SessionID, err)
}
