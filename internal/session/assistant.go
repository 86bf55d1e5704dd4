package session

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/transcript"
	"github.com/abide-run/abide/internal/turn"
)

// A request is a model request under way.
type request struct {
	cancel  context.CancelCauseFunc
	turnID  string
	parent  string // the parent of the events that are sent meanwhile
	message string // the id of the answer that is arriving
	asked   *model.Request
	view    *model.Request // the request as it was measured
	said    string         // text of the earlier parts of the answer
	stream  bool           // true if the answer is wanted in pieces from the provider
	over    chan struct{}  // closed when nothing is sent any more
	permit  *permit        // lets a parked turn ask; nil if the turn was not parked
	waited  time.Duration  // how long the turn was parked before
	size    int            // estimated number of tokens, if the session has limits
	claim   *claim         // the request in the budget; nil if the session has no limits
}

// asking is the activity of asking the model.
type asking struct {
	now    *request   // nil if none is under way
	ending []*request // requests that were cancelled and may not be over yet
}

func (a *asking) busy() bool { return a.now != nil }

func (a *asking) stop(cause error) {
	if a.now != nil {
		a.now.cancel(cause)
		a.ending = append(a.unfinished(), a.now)
		a.now = nil
	}
}

// unfinished returns the requests that were cancelled and are not over yet.
func (a *asking) unfinished() []*request {
	return slices.DeleteFunc(a.ending, func(r *request) bool {
		select {
		case <-r.over:
			return true
		default:
			return false
		}
	})
}

// requests returns what is closed when the requests under way are over, also those that
// were cancelled before.
func (a *asking) requests() (list []<-chan struct{}) {
	a.ending = a.unfinished()
	for _, r := range a.ending {
		list = append(list, r.over)
	}
	if a.now != nil {
		list = append(list, a.now.over)
	}
	return list
}

func (a *asking) abort(*txn, event.AbortData) error {
	a.stop(errAborted)
	return nil
}

// startAsking makes the model request as soon as the transaction is stored.
func (s *Session) startAsking(tx *txn, turnID string) {
	ctx, cancel := context.WithCancelCause(s.host.ctx)
	r := &request{cancel: cancel, turnID: turnID, said: s.state.Turn.Finish.Said, stream: streams(s.state.ReadSettings()) || s.clients.streaming(), over: make(chan struct{})}
	s.asking.now = r
	tx.takePermit(r)
	tx.afterCommit = append(tx.afterCommit, func() {
		r.parent = s.state.Parent
		question, err := s.buildRequest()
		config, name, tasks := s.state.Setup.Config, s.state.AskedModel(), taskKeys(s.state.Tasks.Open)
		if err == nil { // headers are read now: they end with the turn, which may be aborted at any time
			question.Headers = s.headers(ctx, s.state.Turn.Headers, &config, name)
			if limited(&config) {
				r.size = s.measure(question).Tokens
			}
		}
		if !s.spawn(func() {
			defer close(r.over)
			defer cancel(nil)
			defer r.permit.giveBack()
			if err != nil {
				s.finishAsking(r, nil, Endpoint{}, 0, err)
				return
			}
			question.Tail = join(question.Tail, s.summariseTasks(ctx, tasks))
			view := *question
			r.view = &view
			s.askUntilAnswered(ctx, r, &config, name, question)
		}) {
			cancel(ErrClosed)
			close(r.over)
		}
	})
}

// buildRequest builds the request from the state.
func (s *Session) buildRequest() (*model.Request, error) {
	messages, err := s.state.History.Messages()
	if err != nil {
		return nil, err
	}
	return &model.Request{
		Session: string(s.id), System: s.state.Prompt.System, Tools: s.tools(), Messages: s.prune(messages),
		ReasoningEffort: s.state.Setup.Config.ReasoningEffort, Tail: s.reminder(), MaxOutput: s.maxOutput(), Schema: s.outputForm(),
	}, nil
}

// join returns two texts as paragraphs of one; either may be empty.
func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n\n" + b
}

// tools returns the tools that the session offers to its model.
func (s *Session) tools() *model.Tools {
	if mode := s.state.Mode(); s.offer.tools == nil || s.offer.version != s.state.Setup.Offered || s.offer.mode != mode {
		s.offer.tools = s.host.offers.share(string(s.state.Setup.Config.Provider), s.host.opts.Tools.Offer(s.state))
		s.offer.version, s.offer.mode = s.state.Setup.Offered, mode
	}
	if len(s.offer.tools.List) == 0 {
		return nil
	}
	return s.offer.tools
}

// askUntilAnswered asks the model. A request that fails because of earlier reasoning is
// made again at once; any other failure is recorded before anything follows from it.
func (s *Session) askUntilAnswered(ctx context.Context, r *request, config *event.SessionConfiguredData, name string, q *model.Request) {
	started := time.Now()
	to, err := s.resolveModel(ctx, config, name)
	if err != nil {
		s.finishFailed(r, to, started, err)
		return
	}
	q.Model, r.asked = to.Name, q
	s.told.Store(int64(to.Window))
	if blind(config, to) {
		q.Messages = transcript.Unseen(q.Messages)
	}
	if r.claim, err = s.host.admit(ctx, s.id, config, to, r.size); err != nil {
		s.finishAsking(r, nil, to, time.Since(started), err)
		return
	}
	reply, err := s.askRecording(ctx, r, to, q)
	if rejectsReasoning(err) && !q.Forget {
		s.publishForget(r, to, err)
		forgetful := *q
		forgetful.Forget = true
		reply, err = s.askRecording(ctx, r, to, &forgetful)
	}
	if err != nil {
		s.finishFailed(r, to, started, err)
		return
	}
	s.host.outages.succeeded(to)
	s.finishAsking(r, reply, to, time.Since(started), nil)
}

// askRecording makes a request, and records what the provider has counted of one that fails.
func (s *Session) askRecording(ctx context.Context, r *request, to Endpoint, q *model.Request) (*model.Reply, error) {
	reply, err := s.askOnce(ctx, r, to, q)
	if err != nil {
		s.recordFailed(event.PurposeTurn, to, err)
	}
	return reply, err
}

// finishFailed records the outcome of a request that failed.
func (s *Session) finishFailed(r *request, to Endpoint, started time.Time, err error) {
	if isTemporary(err) {
		r.permit.failed()
	}
	s.finishAsking(r, nil, to, time.Since(started), err)
}

// isTemporary reports whether the same request may succeed later.
func isTemporary(err error) bool {
	failure, ok := errors.AsType[*model.Error](err)
	return ok && failure.Temporary()
}

// streams reports whether a session wants answers in pieces from the provider, whoever watches.
// Sessions of our own program do: a provider that sends nothing until the answer is whole
// cannot be told from one that is stuck. Other programs get what they have asked for.
func streams(c *event.SessionConfiguredData) bool { return c.Streaming || c.ClientName == ownClient }

// ownClient is the name with which our own program opens sessions.
const ownClient = "abide"

// rejectsReasoning reports whether a provider refuses reasoning that it gave earlier,
// for example because a key was changed or the reasoning is too old.
func rejectsReasoning(err error) bool {
	var failure *model.Error
	return errors.As(err, &failure) && failure.Kind == model.KindReasoning
}

// retryDelay returns how long to wait before another attempt at a request for which no
// turn is parked, and whether another attempt makes sense. The caller limits the time.
func (s *Session) retryDelay(ctx context.Context, attempt int, err error) (time.Duration, bool) {
	failure, _ := errors.AsType[*model.Error](err)
	if ctx.Err() != nil || attempt >= len(s.host.opts.Retries) || !isTemporary(err) {
		return 0, false
	}
	return jitter(s.host.opts.Retries[attempt]) + failure.RetryAfter, true
}

// askOnce makes one request. The pieces of a streamed answer are passed on under an
// id of this attempt alone, so that pieces of a broken attempt are never mixed with
// those of the next.
func (s *Session) askOnce(ctx context.Context, r *request, to Endpoint, q *model.Request) (*model.Reply, error) {
	r.message = event.NewID()
	s.publish(r, event.ModelCallStartData{TurnID: r.turnID, Model: to.Name})
	if !r.stream {
		return to.Model.Ask(ctx, q, nil)
	}
	d := deltas{s: s, r: r}
	return to.Model.Ask(ctx, q, d.on)
}

// publish sends the clients an event that is not stored.
func (s *Session) publish(r *request, p event.Payload) {
	e, err := event.Encode(event.Head{ID: event.NewID(), Time: time.Now(), Parent: r.parent, Ephemeral: true}, p)
	if err == nil {
		s.feed.send(e)
	}
}

// publishForget tells clients that the model is asked again without its earlier
// reasoning.
func (s *Session) publishForget(r *request, to Endpoint, err error) {
	failure, _ := errors.AsType[*model.Error](err)
	for _, p := range failureEvents(r.turnID, to.Name, failure) {
		s.publish(r, p)
	}
	s.publish(r, event.SessionInfoData{InfoType: "model_retry", Message: to.Name + " does not take its earlier reasoning back; it is asked again without."})
}

// failureKind returns the protocol's word for a kind of failure.
func failureKind(k model.Kind) string {
	switch k {
	case model.KindNetwork, model.KindStream, model.KindTimeout:
		return event.FailureTransport
	}
	return event.FailureAPI
}

// failureEvents returns what clients are sent when a request has failed and is made
// again.
func failureEvents(turnID, name string, failure *model.Error) [2]event.Payload {
	reason := "api_error"
	if failure.Kind == model.KindRateLimit {
		reason = "rate_limit"
	}
	return [...]event.Payload{
		event.ModelCallFailureData{
			Source: "top_level", Model: name, StatusCode: failure.Status,
			ErrorMessage: failure.Message, FailureKind: failureKind(failure.Kind), ErrorType: string(failure.Kind),
		},
		event.AssistantTurnRetryData{TurnID: turnID, Reason: reason},
	}
}

// deltas passes on the pieces of an answer.
type deltas struct {
	s       *Session
	r       *request
	started bool
	size    int
	told    int // the size in the last report
}

// sizeStep is how many bytes arrive between two reports of the size.
const sizeStep = 4096

func (d *deltas) on(piece model.Delta) {
	first := d.size == 0
	d.size += len(piece.Text) + len(piece.Reasoning) + len(piece.Arguments)
	if first || d.size-d.told >= sizeStep {
		d.told = d.size
		d.s.publish(d.r, event.StreamingDeltaData{TotalResponseSizeBytes: d.size})
	}
	switch {
	case piece.Reasoning != "":
		d.s.publish(d.r, event.ReasoningDeltaData{ReasoningID: d.r.message, DeltaContent: piece.Reasoning})
	case piece.Arguments != "":
		d.s.publish(d.r, event.ToolCallDeltaData{ToolCallID: piece.CallID, ToolName: piece.CallName, ToolType: "function", InputDelta: piece.Arguments})
	case piece.Text != "":
		if !d.started {
			d.started = true
			d.s.publish(d.r, event.MessageStartData{MessageID: d.r.message})
			d.repeatSaid()
		}
		d.s.publish(d.r, event.MessageDeltaData{MessageID: d.r.message, DeltaContent: piece.Text})
	}
}

// finishAsking records the outcome of a request. The outcome of a request that was
// stopped is dropped, but not what it has cost.
func (s *Session) finishAsking(r *request, reply *model.Reply, from Endpoint, took time.Duration, err error) {
	s.postReleasing(r.claim, func(tx *txn) error {
		if tx.s.asking.now != r {
			return tx.recordDropped(from, reply)
		}
		tx.s.asking.now = nil
		if tx.State.Turn == nil || tx.State.Turn.Phase != turn.Asking || tx.s.host.ctx.Err() != nil {
			return tx.recordDropped(from, reply)
		}
		if over, is := errors.AsType[*overBudget](err); is {
			return tx.askBudget(over)
		}
		if err != nil {
			if again, err := tx.compactAfterRefusal(r, err); again || err != nil {
				return err
			}
			return tx.handleFailure(r, from, took, err)
		}
		return tx.recordAnswer(r, reply, from, took)
	})
}

// recordAnswer records what the model said.
func (tx *txn) recordAnswer(r *request, reply *model.Reply, from Endpoint, took time.Duration) error {
	name := from.Name
	if name != tx.State.Setup.Model && tx.State.Turn.Outage.Model == "" {
		if err := tx.record(event.SessionModelChangeData{NewModel: name, PreviousModel: tx.State.Setup.Model}); err != nil {
			return err
		}
	}
	tx.tellAnother(reply, name)
	anchor := tx.s.calibrate(r, reply.Usage)
	tx.sendUsage(r, reply.Usage)
	return tx.record(
		event.AssistantUsageData{
			Model: name, InputTokens: reply.Usage.Input, OutputTokens: reply.Usage.Output,
			CacheReadTokens: reply.Usage.CacheRead, CacheWriteTokens: reply.Usage.CacheWrite, CacheWrite1h: reply.Usage.CacheWrite1h,
			ReasoningTokens: reply.Usage.Reasoning, Duration: took.Milliseconds(),
			FinishReason: reply.Finish, NumToolCalls: len(reply.Calls), CostUSD: reply.Cost, Anchor: anchor, AgentOf: tx.State.Setup.Config.Agent.Counted(),
			AnsweredBy: answeredBy(reply, name),
		},
		tx.settleAnswer(tx.assistantMessage(r, reply, name), reply, from),
	)
}

// answeredBy returns the provider's name of the model that answered; empty if it is the one
// that was asked.
func answeredBy(reply *model.Reply, asked string) string {
	if reply.Model == asked {
		return ""
	}
	return reply.Model
}

// tellAnother warns people, once for each model, that the provider has let another model
// answer than the one that was asked.
func (tx *txn) tellAnother(reply *model.Reply, asked string) {
	if !reply.Another || tx.s.another == reply.Model || !tx.s.clients.any() {
		return
	}
	tx.s.another = reply.Model
	tx.send(event.SessionWarningData{WarningType: "model_other", Message: fmt.Sprintf(
		"The provider has answered with the model %s, although %s was asked. Costs are counted with the price of %s.", reply.Model, asked, asked)})
}

func (tx *txn) assistantMessage(r *request, reply *model.Reply, name string) event.AssistantMessageData {
	m := event.AssistantMessageData{
		MessageID: r.message, Model: name, Content: reply.Text, ToolRequests: tx.nameMCPTools(toolRequests(reply.Calls)),
		InteractionID: tx.State.Turn.InteractionID, TurnID: strconv.Itoa(tx.State.Turn.Step),
		OutputTokens: reply.Usage.Output, RequestID: reply.RequestID,
	}
	if t := reply.Reasoning; t != nil {
		m.ReasoningText, m.ReasoningOpaque, m.EncryptedContent = t.Text, t.Opaque, t.Encrypted
	}
	return m
}

// toolRequests converts the model's calls. Each gets an id of its own, and arguments
// that are a JSON object.
func toolRequests(calls []model.Call) []event.ToolRequest {
	list := make([]event.ToolRequest, len(calls))
	seen := make(map[string]bool)
	for i, c := range calls {
		for c.ID == "" || seen[c.ID] {
			c.ID = newCallID()
		}
		seen[c.ID] = true
		list[i] = event.ToolRequest{ToolCallID: c.ID, Name: c.Name, Kind: "function", Arguments: json.RawMessage("{}")}
		if object, ok := compactObject(c.Arguments); ok {
			list[i].Arguments = object
		} else {
			list[i].Malformed = strings.TrimSpace(string(c.Arguments))
		}
	}
	return list
}

// newCallID returns an id that every provider accepts: OpenAI allows 40 characters.
func newCallID() string { return "call_" + strings.ReplaceAll(event.NewID(), "-", "") }

// compactObject writes a JSON object the way it is stored, so that a request
// that is built from memory has the same bytes as one built from the log.
func compactObject(arguments json.RawMessage) (json.RawMessage, bool) {
	var b bytes.Buffer
	if event.CheckDepth(arguments) != nil {
		return nil, false
	}
	if err := json.Compact(&b, arguments); err != nil || b.Len() == 0 || b.Bytes()[0] != '{' {
		return json.RawMessage("{}"), len(bytes.TrimSpace(arguments)) == 0
	}
	return b.Bytes(), true
}

// modelError describes to people why the model gave no answer.
func modelError(err error) event.SessionErrorData {
	var failure *model.Error
	if errors.As(err, &failure) {
		return event.SessionErrorData{ErrorType: string(failure.Kind), Message: failure.Message, StatusCode: failure.Status}
	}
	return event.SessionErrorData{ErrorType: "model", Message: err.Error()}
}

// blind reports whether the model cannot see images. What the session's client says
// of the model overrides what is known of its name.
func blind(c *event.SessionConfiguredData, to Endpoint) bool {
	if c.Vision != nil {
		return !*c.Vision
	}
	return to.Blind
}

// handleModelError ends the turn because the model gave no answer, or asks the hooks
// about the error first.
func (tx *txn) handleModelError(err error) error {
	d := modelError(err)
	if !tx.s.hasHooks() {
		return tx.failTurn(d)
	}
	return tx.record(turn.ErrorHook(tx.State, d, isTemporary(err), tx.now))
}
