package rpc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/jsonrpc"
	"github.com/abide-run/abide/internal/session"
	"github.com/abide-run/abide/internal/turn"
)

// These methods list open questions and answer them.
var _ = register(map[string]method{
	api.AnswerPermission:   on((*conn).answerPermission),
	api.AnswerTool:         on((*conn).answerTool),
	api.AnswerUserInput:    on((*conn).answerUserInput),
	api.PendingPermissions: on((*conn).pendingPermissions),
	api.Questions:          on((*conn).questions),
})

// answer gives an answer to a session. That it is too late, or that nobody
// asked, is not an error.
func (c *conn) answer(ctx context.Context, id event.SessionID, a turn.Answer) (api.Success, error) {
	if a.RequestID == "" {
		return api.Success{}, missing("requestId")
	}
	won, err := c.server.host.Answer(ctx, id, a)
	return api.Success{Success: won}, noSession(id, err)
}

// unchanged checks that an open question says what the client was shown, if the client gives
// a digest of that. Whether the question is still open, the answer finds out.
func (c *conn) unchanged(ctx context.Context, id event.SessionID, request, digest string) error {
	if digest == "" {
		return nil
	}
	st, err := c.server.host.Status(ctx, id)
	for _, e := range st.Questions {
		if d, err := event.As[struct {
			RequestID string `json:"requestId"`
		}](e); err == nil && d.RequestID == request && e.Digest() != digest {
			return jsonrpc.Errorf(api.CodeChanged, "the question %s is not the one that was answered: it has changed since it was shown, so nothing was answered", request)
		}
	}
	return noSession(id, err)
}

func (c *conn) answerPermission(ctx context.Context, p api.AnswerPermissionParams) (api.Success, error) {
	var d turn.Decision
	if err := json.Unmarshal(p.Result, &d); err != nil {
		return api.Success{}, errBadParams{fmt.Errorf("result: %w", err)}
	}
	if err := c.unchanged(ctx, p.SessionID, p.RequestID, p.Digest); err != nil {
		return api.Success{}, err
	}
	if c.undecided(p.SessionID, p.RequestID, d) {
		return api.Success{}, nil
	}
	keep, err := c.remembered(ctx, p, &d)
	if err != nil {
		return api.Success{}, err
	}
	if err := keep.save(); err != nil {
		return api.Success{}, err
	}
	result, err := c.answer(ctx, p.SessionID, turn.Answer{RequestID: p.RequestID, Key: p.Key, Permission: &d})
	if err != nil || !result.Success {
		err = errors.Join(err, keep.takeBack())
	}
	return result, err
}

func (c *conn) answerTool(ctx context.Context, p api.AnswerToolParams) (api.Success, error) {
	r, err := toolResult(p)
	if err == nil {
		err = fits(r)
	}
	if err != nil {
		return api.Success{}, errBadParams{err}
	}
	if err := c.unchanged(ctx, p.SessionID, p.RequestID, p.Digest); err != nil {
		return api.Success{}, err
	}
	return c.answer(ctx, p.SessionID, turn.Answer{RequestID: p.RequestID, Key: p.Key, External: &r})
}

// toolResult reads what a client's tool gave: an error, a text, or an object.
func toolResult(p api.AnswerToolParams) (turn.ExternalResult, error) {
	var r turn.ExternalResult
	switch {
	case p.Error != nil:
		return turn.ExternalResult{Thrown: true, Error: *p.Error}, nil
	case len(p.Result) == 0 || string(p.Result) == "null":
		return r, nil
	case p.Result[0] == '"':
		return r, json.Unmarshal(p.Result, &r.Text)
	}
	if err := json.Unmarshal(p.Result, &r); err != nil {
		return r, fmt.Errorf("result: %w", err)
	}
	return r, nil
}

// maxPart is how long a part of a result may be that every client is sent, and
// many models: only a text can be kept in a file instead.
const maxPart = 32 << 20

// fits names the part of a result that is too long.
func fits(r turn.ExternalResult) error {
	failure := "result.error"
	if r.Thrown {
		failure = "error"
	}
	for _, part := range []struct {
		name string
		size int
	}{{"result.sessionLog", len(r.Log)}, {"result.contents", len(r.Contents)}, {"result.binaryResultsForLlm", len(r.Binary)}, {failure, len(r.Error)}} {
		if part.size > maxPart {
			return fmt.Errorf("%s: %d MB are more than the %d MB that fit; give a text, which is kept in a file, or the name of one", part.name, part.size>>20, maxPart>>20)
		}
	}
	return nil
}

func (c *conn) answerUserInput(ctx context.Context, p api.AnswerUserInputParams) (api.Success, error) {
	if err := c.unchanged(ctx, p.SessionID, p.RequestID, p.Digest); err != nil {
		return api.Success{}, err
	}
	return c.answer(ctx, p.SessionID, turn.Answer{
		RequestID: p.RequestID, Key: p.Key,
		User: &turn.UserReply{Answer: p.Response.Answer, WasFreeform: p.Response.WasFreeform},
	})
}

func (c *conn) pendingPermissions(ctx context.Context, p api.SessionParams) (api.PendingResult, error) {
	result := api.PendingResult{Items: []api.PendingItem{}}
	st, err := c.server.host.Status(ctx, p.SessionID)
	for _, e := range st.Questions {
		if e.Type != event.PermissionAsked {
			continue
		}
		d, err := event.As[event.PermissionAskedData](e)
		if err != nil {
			return result, err
		}
		result.Items = append(result.Items, api.PendingItem{RequestID: d.RequestID, Request: d.PromptRequest})
	}
	return result, noSession(p.SessionID, err)
}

// hidesNoOther reports whether an error is about one session alone: in a list of all
// it is left out. A damaged one was reported when that was found.
func hidesNoOther(err error) bool {
	var damage *eventlog.Damage
	return errors.As(err, &damage) || errors.Is(err, session.ErrNotFound)
}

// questions lists the open questions of one session, or of all.
func (c *conn) questions(ctx context.Context, p api.SessionParams) (api.QuestionsResult, error) {
	result := api.QuestionsResult{Questions: []api.Question{}}
	if p.SessionID == "" {
		all, err := c.server.host.Questions.All(ctx, hidesNoOther)
		for _, q := range all {
			result.Questions = append(result.Questions, api.Question{SessionID: q.Session, Event: bytes.Clone(q.Asked.Bytes)})
		}
		return result, err
	}
	st, err := c.server.host.Status(ctx, p.SessionID)
	for _, e := range st.Questions {
		result.Questions = append(result.Questions, api.Question{SessionID: p.SessionID, Event: bytes.Clone(e.Bytes)})
	}
	c.server.host.Unload(p.SessionID)
	return result, noSession(p.SessionID, err)
}

// noSession is how the protocol says, in a request about a session, that there
// is no such session.
func noSession(id event.SessionID, err error) error {
	if id == "" && errors.Is(err, session.ErrNotFound) {
		return missing("sessionId")
	}
	if errors.Is(err, session.ErrNotFound) {
		return said("Session not found for sessionId: %s", id)
	}
	return err
}
