package client

import (
	"context"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
)

// What is remembered.

// Memory shows pages of memory.
func (c *Client) Memory(ctx context.Context, p api.MemoryParams) (api.MemoryResult, error) {
	return call[api.MemoryResult](ctx, c, api.MemoryShow, p)
}

// SearchMemory looks for lines in the pages.
func (c *Client) SearchMemory(ctx context.Context, p api.MemorySearchParams) (api.MemorySearchResult, error) {
	return call[api.MemorySearchResult](ctx, c, api.MemorySearch, p)
}

// EditMemory gives a page another text.
func (c *Client) EditMemory(ctx context.Context, p api.MemoryEditParams) (api.MemoryEdited, error) {
	return call[api.MemoryEdited](ctx, c, api.MemoryEdit, p)
}

// MemoryHistory lists the versions of a page.
func (c *Client) MemoryHistory(ctx context.Context, p api.MemoryParams) (api.MemoryHistoryResult, error) {
	return call[api.MemoryHistoryResult](ctx, c, api.MemoryHistory, p)
}

// RevertMemory gives a page the text of an earlier version.
func (c *Client) RevertMemory(ctx context.Context, p api.MemoryParams) (api.MemoryEdited, error) {
	return call[api.MemoryEdited](ctx, c, api.MemoryRevert, p)
}

// Forget removes what came only from a session.
func (c *Client) Forget(ctx context.Context, p api.MemoryForgetParams) (api.MemoryForgotten, error) {
	return call[api.MemoryForgotten](ctx, c, api.MemoryForget, p)
}

// Consolidate has a session remembered, and returns the id of the job before anything
// was done.
func (c *Client) Consolidate(ctx context.Context, id event.SessionID) (string, error) {
	r, err := call[api.JobParams](ctx, c, api.MemoryConsolidate, api.SessionParams{SessionID: id})
	return r.JobID, err
}

// Jobs lists the jobs of a session, or of all if id is empty.
func (c *Client) Jobs(ctx context.Context, id event.SessionID) (api.JobsResult, error) {
	return call[api.JobsResult](ctx, c, api.Jobs, api.SessionParams{SessionID: id})
}

// RetryJob has a job tried again that was set aside.
func (c *Client) RetryJob(ctx context.Context, id string) error {
	_, err := call[api.Success](ctx, c, api.JobRetry, api.JobParams{JobID: id})
	return err
}

// WaitJob waits until a job is done.
func (c *Client) WaitJob(ctx context.Context, id string) error {
	_, err := call[api.Success](ctx, c, api.JobWait, api.JobParams{JobID: id})
	return err
}
