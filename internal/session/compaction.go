package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/transcript"
	"github.com/abide-run/abide/internal/turn"
	"github.com/abide-run/abide/internal/window"
	"github.com/abide-run/abide/internal/window/compact"
)

// A compaction is a compaction that is under way in this process.
type compaction struct {
	start  event.CompactionStartData
	in     compact.Input
	job    *compact.Job
	items  []transcript.Item
	seen   int // number of messages in the request that it began with
	began  time.Time
	config event.SessionConfiguredData
	model  string // the model that summarises
	inputs []string
	cancel context.CancelCauseFunc
	done   chan event.CompactionCompleteData // buffered; nil if nobody waits
	over   chan struct{}                     // closed when no more requests are made

	purpose string                    // why the model is asked, for the ledger
	asked   []event.LedgerRequestData // requests that were answered and are not recorded yet
	cost    cost                      // price of all requests
	refused *overBudget               // why the budget did not let a request be made; nil if it did
}

// compacting is the activity of compacting the context.
type compacting struct {
	now *compaction // nil if none is under way
}

func (a *compacting) busy() bool { return a.now != nil }

func (a *compacting) stop(cause error) {
	c := a.now
	if c == nil {
		return
	}
	c.cancel(cause)
	a.now = nil
	if c.done != nil {
		d := c.complete(time.Now())
		d.Outcome, d.Cause, d.Error = event.OutcomeFailed, event.CauseInterrupted, cause.Error()
		c.done <- d
	}
}

// abort stops a compaction that the turn waits for. One that runs beside the turn is of
// use to the next turn, so it goes on if there is one. If somebody has stopped the
// session it is stopped too, because it would make further requests.
func (a *compacting) abort(tx *txn, d event.AbortData) error {
	concerned := (*turn.Compaction).Waited
	if d.Stops() {
		concerned = anyCompaction
	}
	_, err := tx.stopCompaction(errAborted, concerned)
	return err
}

// An occasion says why and how a session is compacted.
type occasion struct {
	trigger, point string
	must           bool
	retain         int
	limit          int // number of tokens that a request may have afterwards
	instructions   string
	key            string // idempotency key of the request; empty if there is none
	done           chan event.CompactionCompleteData
}

// defaultSummaryTime is how long one request for a summary may take.
const defaultSummaryTime = 5 * time.Minute

var (
	// ErrCompacting means that a session is being compacted already.
	ErrCompacting = errors.New("the session is being compacted already: wait until that is done, or cancel it")
	errStale      = errors.New("the history has changed meanwhile")
	errEnded      = errors.New("the runtime ended meanwhile")
)

// compactFor begins a compaction because the next request would be too large.
func (tx *txn) compactFor(step turn.Compact) error {
	g := tx.s.currentGauge()
	o := occasion{
		trigger: event.TriggerThreshold, point: step.Point, must: step.Verdict.Action == window.Must,
		retain: g.policy.Retain(step.Verdict.Threshold), limit: g.policy.Limit,
	}
	if tx.State.Context.Switched {
		o.trigger = event.TriggerModel
	}
	return tx.compact(o)
}

// compact begins a compaction. It ends at once if no model has to be asked.
func (tx *txn) compact(o occasion) error {
	c, err := tx.s.planCompaction(tx, o)
	if err != nil {
		return err
	}
	if err := tx.record(c.start); err != nil {
		return err
	}
	if c.job.Result() != nil {
		return tx.recordCompaction(c)
	}
	tx.s.startCompacting(tx, c)
	return nil
}

// planCompaction collects what a compaction works on.
func (s *Session) planCompaction(tx *txn, o occasion) (*compaction, error) {
	q, err := s.buildRequest()
	if err != nil {
		return nil, err
	}
	head, items, err := s.state.History.Items()
	if err != nil {
		return nil, err
	}
	items, q.Messages = s.withoutOpenCalls(items, q.Messages)
	g := s.currentGauge()
	r := s.measure(q)
	c := &compaction{
		start: event.CompactionStartData{
			ConversationTokens: r.Messages, SystemTokens: r.System, ToolDefinitionsTokens: r.Tools, CurrentTokens: r.Tokens,
			TokenLimit: o.limit, Trigger: o.trigger, Model: s.state.AskedModel(),
			CompactionID: event.NewID(), Point: o.point, BaseEpochID: s.state.EpochID(), EstimateSource: string(r.Source), Must: o.must, Key: o.key,
		},
		purpose: event.PurposeCompaction, items: items, seen: len(q.Messages), began: tx.now, config: s.state.Setup.Config, model: s.state.AskedModel(), done: o.done,
		in: compact.Input{
			Head: head, Room: g.meter.Room(r, o.limit), Retain: o.retain, Must: o.must, Instructions: o.instructions,
			Shrink: o.trigger != event.TriggerManual,
			Ask:    model.Request{Session: string(s.id)}, AskRoom: g.limits.Request(),
		},
	}
	if base, ok := s.state.History.Epoch(); ok {
		c.start.Through = base.From - 1 // nothing but the head is shown
	}
	if len(items) > 0 {
		c.start.Through = items[len(items)-1].At
	}
	for _, it := range items {
		c.in.Items = append(c.in.Items, it.Item)
	}
	if own := s.state.Setup.Config.Compaction.Model; own != "" && own != s.state.AskedModel() {
		c.model, c.start.Model = own, own
		if to, err := s.resolveModel(model.WithHurry(s.host.ctx, hurry), s.state.ReadSettings(), own); err == nil {
			c.in.AskRoom = to.limits().Request()
		}
	} else {
		c.in.Ride, c.in.Left = q, g.limits.Request()-r.Tokens
	}
	if s.state.Turn != nil {
		c.inputs = s.state.Turn.Headers
	}
	c.job = compact.New(c.in)
	return c, nil
}

// withoutOpenCalls leaves out the answer whose calls are under way, and everything
// after it, because the results of the calls are not known yet.
func (s *Session) withoutOpenCalls(items []transcript.Item, view []*model.Message) ([]transcript.Item, []*model.Message) {
	if s.state.Turn == nil || s.state.Turn.Phase != turn.Calling {
		return items, view
	}
	for i := len(items) - 1; i >= 0; i-- {
		if len(items[i].Calls) > 0 {
			return items[:i], view[:len(view)-len(items)+i]
		}
	}
	return items, view
}

// startCompacting runs the compaction beside the session as soon as the transaction
// is stored.
func (s *Session) startCompacting(tx *txn, c *compaction) {
	ctx, cancel := context.WithCancelCause(s.host.ctx)
	c.cancel, c.over = cancel, make(chan struct{})
	s.compacting.now = c
	tx.afterCommit = append(tx.afterCommit, func() {
		hooks := s.compactHooks(c)
		headers := s.headers(ctx, c.inputs, &c.config, c.model) // read now: headers end with the turn, which the compaction may outlast
		if !s.spawn(func() {
			defer cancel(nil)
			hooks.before(ctx)
			s.summarise(ctx, c, headers)
			close(c.over)
			s.post(func(tx *txn) error {
				if tx.s.compacting.now != c || tx.s.host.ctx.Err() != nil {
					return tx.recordRequests(c.asked...) // it was stopped, and what it has cost is due all the same
				}
				tx.s.compacting.now = nil
				if c.refused != nil && tx.State.Turn != nil {
					return errors.Join(tx.endCompaction(c, event.CauseBudget, c.refused), tx.askBudget(c.refused))
				}
				return tx.recordCompaction(c)
			})
			hooks.after(s.host.ctx)
		}) {
			cancel(ErrClosed)
			close(c.over)
		}
	})
}

// summarise asks the model until the compaction has a result.
func (s *Session) summarise(ctx context.Context, c *compaction, headers map[string]string) {
	to, err := s.resolveModel(ctx, &c.config, c.model)
	for q := c.job.Next(); q != nil; q = c.job.Next() {
		var reply *model.Reply
		var claim *claim
		if err == nil {
			if claim, err = s.admitSummary(ctx, c, to, q); c.refused != nil {
				c.job.Abort(err)
				return
			}
		}
		if err == nil {
			q.Model, q.Headers = to.Name, headers
			if blind(&c.config, to) {
				q.Messages = transcript.Unseen(q.Messages)
			}
			reply, err = s.askAside(ctx, c.purpose, "summary", to, q, time.Duration(c.config.Compaction.TimeoutMs)*time.Millisecond)
		}
		s.recordAsked(c, to, reply, claim)
		if ctx.Err() != nil {
			c.job.Abort(context.Cause(ctx))
			return
		}
		c.job.Take(reply, err)
		err = nil
	}
}

// admitSummary waits until the budget lets a request for a summary be made.
func (s *Session) admitSummary(ctx context.Context, c *compaction, to Endpoint, q *model.Request) (*claim, error) {
	if !limited(&c.config) {
		return nil, nil
	}
	claim, err := s.host.admit(ctx, s.id, &c.config, to, sizeOf(q))
	c.refused, _ = errors.AsType[*overBudget](err)
	return claim, err
}

// askAside makes one request that is no step of a turn, for what is named, and repeats it while
// another attempt makes sense.
func (s *Session) askAside(ctx context.Context, purpose, what string, to Endpoint, q *model.Request, most time.Duration) (*model.Reply, error) {
	if most <= 0 {
		most = defaultSummaryTime
	}
	ctx, cancel := context.WithTimeoutCause(ctx, most, fmt.Errorf("the %s was not there after %s", what, most))
	defer cancel()
	for attempt := 0; ; attempt++ {
		reply, err := to.Model.Ask(ctx, q, nil)
		s.recordFailed(purpose, to, err)
		if err != nil && ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		wait, again := s.retryDelay(ctx, attempt, err)
		if err == nil || !again {
			return reply, err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// recordCompaction records the outcome of a compaction.
func (tx *txn) recordCompaction(c *compaction) error {
	r := c.job.Result()
	if r.Outcome == compact.Done && (tx.State.Context.Compaction == nil || tx.State.Context.Compaction.Stale || tx.State.EpochID() != c.start.BaseEpochID) {
		return tx.endCompaction(c, event.CauseStale, errStale)
	}
	d := c.complete(tx.now)
	d.Outcome, d.Success = string(r.Outcome), r.Outcome == compact.Done
	if r.Err != nil {
		d.Error = r.Err.Error()
	}
	if r.Asked > 0 {
		d.CompactionTokensUsed = &event.CompactionUsage{
			InputTokens: r.Usage.Input, OutputTokens: r.Usage.Output, CacheReadTokens: r.Usage.CacheRead, CacheWriteTokens: r.Usage.CacheWrite,
			Model: c.start.Model, Duration: d.DurationMs, CostUSD: c.cost.total(), Counted: true,
		}
	}
	if err := tx.recordRequests(c.asked...); err != nil {
		return err
	}
	if !d.Success {
		d.EpochID = tx.State.EpochID()
		return tx.finishCompaction(c, d)
	}
	return tx.openEpoch(c, r, d)
}

// complete returns the fields that the end of every compaction has.
func (c *compaction) complete(now time.Time) event.CompactionCompleteData {
	return event.CompactionCompleteData{
		CompactionID: c.start.CompactionID, Trigger: c.start.Trigger, TokenLimit: c.start.TokenLimit, Must: c.start.Must,
		CustomInstructions: c.in.Instructions, PreTokens: c.start.CurrentTokens, ConversationTokens: c.start.ConversationTokens, PreMessages: c.seen,
		DurationMs: now.Sub(c.began).Milliseconds(), EstimateSource: c.start.EstimateSource, ItemsKept: len(c.items),
	}
}

// openEpoch records the new epoch, the messages that describe it, and the end of the
// compaction.
func (tx *txn) openEpoch(c *compaction, r *compact.Result, d event.CompactionCompleteData) error {
	head, err := json.Marshal(r.Head)
	if err != nil {
		return err
	}
	epoch := event.ContextEpochData{
		EpochID: event.NewID(), Number: tx.State.Context.Epochs + 1, Kind: event.EpochCompaction, BaseEpochID: c.start.BaseEpochID,
		From: c.start.Through + 1, Through: c.start.Through, Most: r.Most, Head: head,
	}
	if r.Cut < len(c.items) {
		epoch.From = c.items[r.Cut].At
	}
	base, _ := tx.State.History.Epoch()
	for _, before := range base.Reductions() {
		if before.Through >= epoch.From {
			epoch.Earlier = append(epoch.Earlier, before)
		}
	}
	err = tx.record(
		event.SystemMessageData{Role: "system", Content: r.Head.SummaryMessage(), EpochID: epoch.EpochID},
		event.SystemMessageData{Role: "system", Content: tx.s.openTodos().Snapshot(), EpochID: epoch.EpochID},
		epoch,
	)
	if err == nil {
		err = tx.refreshPrompt()
	}
	if err != nil {
		return err
	}
	d.EpochID, d.SummaryContent, d.Digest = epoch.EpochID, r.Summary, r.Summary == ""
	d.ItemsKept = len(c.items) - r.Cut
	if after, err := tx.s.buildRequest(); err == nil {
		d.PostTokens = tx.s.measure(after).Tokens
		d.TokensRemoved = max(0, d.PreTokens-d.PostTokens)
	}
	d.MessagesRemoved = max(0, c.seen-d.ItemsKept-1)
	if path := tx.s.checkpointPath(epoch.Number, r.Head.Summary); path != "" {
		d.CheckpointNumber, d.CheckpointPath = epoch.Number, path
		tx.afterCommit = append(tx.afterCommit, func() { tx.s.writeCheckpoint(path, r.Head.Summary) })
	}
	return tx.finishCompaction(c, d)
}

// refreshPrompt reads the instructions again in the middle of a turn, because the
// summary may lack them.
func (tx *txn) refreshPrompt() error {
	if tx.State.Turn == nil {
		return nil // the next turn begins with reading them
	}
	switch err := tx.recordInstructions(); {
	case errors.Is(err, errLooking): // the next turn begins with what is found
		return nil
	case err != nil:
		return err
	}
	prompt, err := tx.systemPrompt()
	if err != nil || prompt == tx.State.Prompt.System {
		return err
	}
	return tx.record(event.SystemMessageData{Role: "system", Content: prompt, InteractionID: tx.State.Turn.InteractionID, Context: tx.State.Prompt.Context})
}

// endCompaction records that a compaction failed for a reason outside of it.
func (tx *txn) endCompaction(c *compaction, cause string, err error) error {
	d := c.complete(tx.now)
	d.Outcome, d.Cause, d.Error, d.EpochID = event.OutcomeFailed, cause, err.Error(), tx.State.EpochID()
	return tx.finishCompaction(c, d)
}

func (tx *txn) finishCompaction(c *compaction, d event.CompactionCompleteData) error {
	if c.done != nil {
		tx.afterCommit = append(tx.afterCommit, func() { c.done <- d })
	}
	return tx.record(d)
}

// cancelCompaction stops the compaction under way if the filter accepts it. It
// reports whether it did.
func (tx *txn) cancelCompaction(cause string, err error, filter func(*turn.Compaction) bool) (bool, error) {
	c := tx.s.compacting.now
	if c == nil || tx.State.Context.Compaction == nil || !filter(tx.State.Context.Compaction) {
		return false, nil
	}
	c.cancel(err)
	tx.s.compacting.now = nil
	return true, tx.endCompaction(c, cause, err)
}

// stopCompaction stops the compaction under way if the filter accepts it, and those that
// ended with an earlier engine: a client that asks for one of them again finds that it was
// stopped. It reports whether there was one.
func (tx *txn) stopCompaction(why error, filter func(*turn.Compaction) bool) (bool, error) {
	stopped, err := tx.cancelCompaction(event.CauseAborted, why, filter)
	if open := tx.State.Context.Compaction; err == nil && open != nil && !tx.s.compacting.busy() && filter(open) {
		stopped, err = true, tx.endOrphan(event.CauseAborted, why)
	}
	if err != nil || tx.State.Context.Compaction != nil { // no other one can be recorded while one goes on
		return stopped, err
	}
	for _, broken := range slices.Clone(tx.State.Context.Broken) {
		if !filter(&turn.Compaction{CompactionStartData: broken}) {
			continue
		}
		stopped = true
		broken.CompactionID, broken.BaseEpochID = event.NewID(), tx.State.EpochID()
		if err := tx.record(broken); err != nil {
			return stopped, err
		}
		if err := tx.endOrphan(event.CauseAborted, why); err != nil {
			return stopped, err
		}
	}
	return stopped, nil
}

// endOrphan records the end of a compaction that is open in the log and not under way in
// this process.
func (tx *txn) endOrphan(cause string, err error) error {
	return tx.endCompaction(&compaction{start: tx.State.Context.Compaction.CompactionStartData, began: tx.now}, cause, err)
}

// endInterruptedCompaction records that a compaction was under way when the last
// runtime ended. The context is unchanged.
func (tx *txn) endInterruptedCompaction() error {
	return tx.endOrphan(event.CauseInterrupted, errEnded)
}

// compactAfterRefusal begins a compaction because a provider refused a request as too
// large. It reports false if that was tried often enough.
func (tx *txn) compactAfterRefusal(r *request, err error) (bool, error) {
	var failure *model.Error
	if r.view == nil || !errors.As(err, &failure) || failure.Kind != model.KindOverflow || tx.State.Context.Spent() {
		return false, nil
	}
	g := tx.s.currentGauge()
	g.meter.Refused(r.view, g.policy.Limit)
	if _, err := tx.cancelCompaction(event.CauseStale, errors.New("a request was refused as too large meanwhile"), anyCompaction); err != nil {
		return true, err
	}
	return true, tx.compact(occasion{
		trigger: event.TriggerRetry, point: event.PointBetween, must: true, retain: g.policy.Retain(g.policy.Limit), limit: g.policy.Limit,
	})
}

func anyCompaction(*turn.Compaction) bool { return true }
