package client

import (
	"context"
	"fmt"
	"iter"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
)

// The runtime.

// Ping asks for a sign of life.
func (c *Client) Ping(ctx context.Context, message string) (api.PingResult, error) {
	return call[api.PingResult](ctx, c, api.Ping, api.PingParams{Message: message})
}

// RuntimeStatus returns the version of the engine.
func (c *Client) RuntimeStatus(ctx context.Context) (api.RuntimeStatus, error) {
	return call[api.RuntimeStatus](ctx, c, api.StatusGet, struct{}{})
}

// Opening and leaving sessions.

// Create makes a session and attaches to it.
func (c *Client) Create(ctx context.Context, p api.OpenParams) (api.OpenResult, error) {
	return call[api.OpenResult](ctx, c, api.SessionCreate, p)
}

// Resume attaches to a session that exists.
func (c *Client) Resume(ctx context.Context, p api.OpenParams) (api.OpenResult, error) {
	return call[api.OpenResult](ctx, c, api.SessionResume, p)
}

// Giving sessions something to do.

// Send gives a session an input and returns its id. It is stored when Send
// returns.
func (c *Client) Send(ctx context.Context, p api.SendParams) (string, error) {
	r, err := call[api.SendResult](ctx, c, api.SessionSend, p)
	return r.MessageID, err
}

// Abort stops the turn of a session and its commands, and tells what was stopped. The
// commands have ended when it returns.
func (c *Client) Abort(ctx context.Context, p api.AbortParams) (api.AbortResult, error) {
	return call[api.AbortResult](ctx, c, api.SessionAbort, p)
}

// Rename gives a session a name.
func (c *Client) Rename(ctx context.Context, id event.SessionID, name string) error {
	return c.rpc.Call(ctx, api.NameSet, api.NameParams{SessionID: id, Name: name}, nil)
}

// Open questions. An answer reports whether it won: false means that there is
// no such question, or that somebody was faster.

// AnswerPermission answers a permission question.
func (c *Client) AnswerPermission(ctx context.Context, p api.AnswerPermissionParams) (bool, error) {
	return c.won(ctx, api.AnswerPermission, p)
}

// AnswerTool gives the result of an external call.
func (c *Client) AnswerTool(ctx context.Context, p api.AnswerToolParams) (bool, error) {
	return c.won(ctx, api.AnswerTool, p)
}

// AnswerUserInput gives what a person said.
func (c *Client) AnswerUserInput(ctx context.Context, p api.AnswerUserInputParams) (bool, error) {
	return c.won(ctx, api.AnswerUserInput, p)
}

// AnswerPlan says whether a plan may be carried out. It reports whether this answer counted.
func (c *Client) AnswerPlan(ctx context.Context, p api.AnswerExitPlanParams) (bool, error) {
	return c.won(ctx, api.AnswerExitPlan, p)
}

// AnswerForm gives what a person made of a form. It reports whether this answer counted.
func (c *Client) AnswerForm(ctx context.Context, p api.AnswerElicitationParams) (bool, error) {
	return c.won(ctx, api.AnswerElicitation, p)
}

func (c *Client) won(ctx context.Context, method string, p any) (bool, error) {
	r, err := call[api.Success](ctx, c, method, p)
	return r.Success, err
}

// Questions lists the open questions of a session, or of all if id is empty.
func (c *Client) Questions(ctx context.Context, id event.SessionID) ([]api.Question, error) {
	r, err := call[api.QuestionsResult](ctx, c, api.Questions, api.SessionParams{SessionID: id})
	return r.Questions, err
}

// Looking at sessions.

// List lists the sessions, the last modified first: those of a working
// directory, or all if it is empty.
func (c *Client) List(ctx context.Context, cwd string) ([]api.SessionInfo, error) {
	var p api.ListParams
	p.Filter.Cwd = cwd
	r, err := call[api.ListResult](ctx, c, api.SessionList, p)
	return r.Sessions, err
}

// The length of the first page of a list, which is to be there at once, and of others.
const (
	firstPage = 50
	laterPage = 500
)

// Sessions yields the sessions that a filter selects, the last modified first, and reads
// them page by page. None that exists all the while is missed or repeated.
func (c *Client) Sessions(ctx context.Context, f api.Filter) iter.Seq2[api.SessionInfo, error] {
	return func(yield func(api.SessionInfo, error) bool) {
		seen := make(map[event.SessionID]bool)
		p := api.ListParams{Filter: f, Limit: firstPage}
		for {
			page, err := call[api.ListResult](ctx, c, api.SessionList, p)
			if err != nil {
				yield(api.SessionInfo{}, err)
				return
			}
			for _, s := range page.Sessions {
				if seen[s.SessionID] {
					continue
				}
				if seen[s.SessionID] = true; !yield(s, nil) {
					return
				}
			}
			if page.NextCursor == "" {
				return
			}
			p.Cursor, p.Limit = page.NextCursor, laterPage
		}
	}
}

// Metadata describes a session; nil if there is none.
func (c *Client) Metadata(ctx context.Context, id event.SessionID) (*api.SessionInfo, error) {
	r, err := call[api.MetadataResult](ctx, c, api.SessionGetMetadata, api.SessionParams{SessionID: id})
	return r.Session, err
}

// Status tells how a session stands.
func (c *Client) Status(ctx context.Context, id event.SessionID) (api.StatusResult, error) {
	return call[api.StatusResult](ctx, c, api.Status, api.SessionParams{SessionID: id})
}

// Read returns one page of a session's stored events.
func (c *Client) Read(ctx context.Context, p api.ReadParams) (api.ReadResult, error) {
	return call[api.ReadResult](ctx, c, api.Events, p)
}

// DamageError tells that a session cannot be read any further.
type DamageError struct {
	Session event.SessionID
	After   event.Seq // the last event that is whole
	Reason  string
}

func (e *DamageError) Error() string { return e.Reason }

// Events yields all stored events of a session after a position, hidden kinds
// too, page by page. It ends with a *DamageError where the log cannot be
// trusted.
func (c *Client) Events(ctx context.Context, id event.SessionID, after event.Seq) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		hash := ""
		for more := true; more; {
			page, err := c.Read(ctx, api.ReadParams{SessionID: id, After: after, Hash: hash})
			if err != nil {
				yield(event.Event{}, err)
				return
			}
			for _, raw := range page.Events {
				after++
				e, err := event.Parse(after, raw)
				if !yield(e, err) || err != nil {
					return
				}
			}
			if after != page.Next {
				yield(event.Event{}, fmt.Errorf("read session %s: the page ends at event %d, want %d", id, after, page.Next))
				return
			}
			if page.Damage != "" {
				yield(event.Event{}, &DamageError{Session: id, After: after, Reason: page.Damage})
				return
			}
			more, hash = page.More, page.Hash
		}
	}
}

// Search looks for a text in what was said.
func (c *Client) Search(ctx context.Context, p api.SearchParams) (api.SearchResult, error) {
	return call[api.SearchResult](ctx, c, api.Search, p)
}

// Verify checks a session's chain.
func (c *Client) Verify(ctx context.Context, id event.SessionID) (api.VerifyResult, error) {
	return call[api.VerifyResult](ctx, c, api.Verify, api.SessionParams{SessionID: id})
}

// Managing sessions.

// Fork makes a session that shares the events of another.
func (c *Client) Fork(ctx context.Context, p api.ForkParams) (api.ForkResult, error) {
	return call[api.ForkResult](ctx, c, api.SessionsFork, p)
}

// Rewind takes back an event and all after it, and what calls did to files.
func (c *Client) Rewind(ctx context.Context, p api.RewindParams) (api.RewindResult, error) {
	return call[api.RewindResult](ctx, c, api.HistoryRewind, p)
}

// PreviewRewind says what a rewind would do to files.
func (c *Client) PreviewRewind(ctx context.Context, p api.RewindParams) (api.RewindPreview, error) {
	return call[api.RewindPreview](ctx, c, api.PreviewRewind, p)
}

// What the model sees of a session.

// Compact summarises the older part of a session, and returns when that is done. If it
// could not be done, the result says so. The work goes on if ctx is done first;
// AbortCompaction ends it.
func (c *Client) Compact(ctx context.Context, p api.CompactParams) (api.CompactResult, error) {
	return call[api.CompactResult](ctx, c, api.HistoryCompact, p)
}

// AbortCompaction gives up a compaction that Compact began. It reports false if
// none is under way.
func (c *Client) AbortCompaction(ctx context.Context, id event.SessionID) (bool, error) {
	r, err := call[api.AbortedResult](ctx, c, api.HistoryAbort, api.SessionParams{SessionID: id})
	return r.Aborted, err
}

// Uncompact returns to what the model saw before the last compaction, and names
// the epoch that it opens.
func (c *Client) Uncompact(ctx context.Context, id event.SessionID) (string, error) {
	r, err := call[api.UncompactResult](ctx, c, api.HistoryUncompact, api.SessionParams{SessionID: id})
	return r.EpochID, err
}

// Context tells what fills the window of a session's model.
func (c *Client) Context(ctx context.Context, id event.SessionID) (api.ContextResult, error) {
	return call[api.ContextResult](ctx, c, api.HistoryContext, api.SessionParams{SessionID: id})
}

// Commands.

// Tasks lists the commands of a session, or of all.
func (c *Client) Tasks(ctx context.Context, p api.TasksParams) (api.TasksResult, error) {
	return call[api.TasksResult](ctx, c, api.Tasks, p)
}

// TaskOutput returns a part of a command's output.
func (c *Client) TaskOutput(ctx context.Context, p api.TaskOutputParams) (api.TaskOutputResult, error) {
	return call[api.TaskOutputResult](ctx, c, api.TaskOutput, p)
}

// TypeInto types into a command.
func (c *Client) TypeInto(ctx context.Context, p api.TaskInputParams) error {
	_, err := call[api.Task](ctx, c, api.TaskInput, p)
	return err
}

// ResizeTask changes the size of a command's terminal.
func (c *Client) ResizeTask(ctx context.Context, p api.TaskResizeParams) error {
	_, err := call[api.Task](ctx, c, api.TaskResize, p)
	return err
}

// StopTask ends a command, and returns when nothing of it is left.
func (c *Client) StopTask(ctx context.Context, p api.TaskParams) (api.Task, error) {
	return call[api.Task](ctx, c, api.TaskStop, p)
}

// Workspaces lists the workspaces that sessions can work in.
func (c *Client) Workspaces(ctx context.Context) (api.WorkspacesResult, error) {
	return call[api.WorkspacesResult](ctx, c, api.WorkspacesList, struct{}{})
}

// Ending sessions.

// Delete removes a session. It reports false if there is none.
func (c *Client) Delete(ctx context.Context, id event.SessionID) (bool, error) {
	return c.won(ctx, api.SessionDelete, api.SessionParams{SessionID: id})
}

// Prune deletes old sessions, or says which would be deleted.
func (c *Client) Prune(ctx context.Context, p api.PruneParams) (api.PruneResult, error) {
	return call[api.PruneResult](ctx, c, api.SessionsPrune, p)
}

// Rules lists what is allowed for longer than a session.
func (c *Client) Rules(ctx context.Context) (api.RulesResult, error) {
	return call[api.RulesResult](ctx, c, api.Rules, struct{}{})
}

// RevokeRule takes back a rule. It reports whether there was one.
func (c *Client) RevokeRule(ctx context.Context, p api.RevokeParams) (bool, error) {
	done, err := call[api.Success](ctx, c, api.RuleRevoke, p)
	return done.Success, err
}
