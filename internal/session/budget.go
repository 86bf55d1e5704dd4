package session

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/turn"
	"github.com/abide-run/abide/internal/window"
)

// A session may have limits in money and in tokens, for itself and for a day. They are
// compared with the sums of the ledger before each model request, whatever it is for. A
// request that would exceed a limit is not made: the session asks whether to go on, and its
// turn waits for the answer. The question of an agent is asked by the session with which the
// agent is counted, once for all its agents.
//
// The question and its answer are in the log. Requests under way are claims in memory until
// their costs are stored, so that several at the same time do not exceed a limit together.

// ErrBudget means that a model request was not made because it would exceed the budget of
// its session.
var ErrBudget = errors.New("the budget of the session is used up")

// overBudget is the error of a request that was not made.
type overBudget struct {
	asked   turn.Purchase
	day     string
	refused bool // true if somebody has answered that the session does not go on
}

func (e *overBudget) Error() string {
	if e.refused {
		return ErrBudget.Error() + ", and the answer was not to go on"
	}
	return ErrBudget.Error() + ": see abide questions, or raise the limits of [budget] in the configuration"
}

func (e *overBudget) Is(target error) bool { return target == ErrBudget }

// budgets are the requests under way of sessions that have limits, and the sessions that wait
// for the answer to another one's question. It is safe for concurrent use.
type budgets struct {
	admitting sync.Mutex // held while the ledger is read and a claim made: two that fit alone may not fit together

	mu      sync.Mutex // never held while the store is used: every transaction takes it
	claims  map[*claim]bool
	ended   int           // number of claims that have ended
	changed chan struct{} // closed when a claim ends; nil if nobody waits for that
	held    map[event.SessionID]map[event.SessionID]bool
}

// A claim is a model request under way.
type claim struct {
	budgets *budgets
	root    event.SessionID // session with which it is counted
	next    turn.Spending   // what it takes at least
}

// limited reports whether a session has limits.
func limited(c *event.SessionConfiguredData) bool {
	return c.Budget != event.BudgetRules{} || c.Limit != event.BudgetRules{}
}

// sizeOf returns the estimated number of tokens of a request.
func sizeOf(q *model.Request) int {
	var m window.Meter
	return m.Read(q).Tokens
}

// today returns the day that requests are counted with now.
func today() string { return time.Now().In(time.Local).Format(time.DateOnly) }

// admit waits until the budget of a session lets a request be made, as long as that depends
// on other requests under way. The error is an overBudget if the request is not to be made. The
// claim is nil if the session has no limits; otherwise it is released when the cost of the
// request is stored.
func (h *Host) admit(ctx context.Context, id event.SessionID, config *event.SessionConfiguredData, to Endpoint, tokens int) (*claim, error) {
	if !limited(config) {
		return nil, nil
	}
	root := id
	if of := config.Agent.Counted(); of != "" {
		root = of
	}
	for {
		c, wait, err := h.tryAdmit(ctx, root, to, tokens)
		if c != nil || err != nil {
			return c, err
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// tryAdmit is admit without waiting: it returns what to wait for if that is needed.
func (h *Host) tryAdmit(ctx context.Context, root event.SessionID, to Endpoint, tokens int) (*claim, <-chan struct{}, error) {
	var limits turn.Limits
	day := today()
	if err := h.inspect(ctx, root, func(tx *txn) error { limits = tx.State.Limits(day); return nil }); err != nil {
		return nil, nil, fmt.Errorf("find the budget: %w", err)
	}
	asked := turn.Purchase{Next: turn.Spending{Tokens: int64(tokens)}, Model: to.Name, Unpriced: to.Price == nil}
	if to.Price != nil {
		asked.Next.NanoUSD = turn.NanoUSD(to.Price.Cost(model.Usage{Input: int64(tokens)}))
	}
	b := &h.budgets
	b.admitting.Lock()
	defer b.admitting.Unlock()
	ofSession, ofAll, ended := b.claimed(root) // before the ledger is read: what ends meanwhile is counted twice, and never not at all
	if err := h.spent(ctx, root, day, limits, &asked); err != nil {
		return nil, nil, err
	}
	if limits.Refused || limits.Exceeds(asked) != nil {
		return nil, nil, &overBudget{asked, day, limits.Refused}
	}
	with := asked
	with.Session, with.Day = with.Session.Plus(ofSession), with.Day.Plus(ofAll)
	if limits.Exceeds(with) != nil { // the requests under way may take less than they could
		return nil, b.nextEnd(ended), nil
	}
	return b.claim(root, asked.Next), nil, nil
}

// claimed returns what the requests under way take at least, those of one session and all, and
// how many have ended so far.
func (b *budgets) claimed(root event.SessionID) (session, all turn.Spending, ended int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for c := range b.claims {
		all = all.Plus(c.next)
		if c.root == root {
			session = session.Plus(c.next)
		}
	}
	return session, all, b.ended
}

// nextEnd returns a channel that is closed as soon as more claims have ended.
func (b *budgets) nextEnd(ended int) <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended != ended {
		now := make(chan struct{})
		close(now)
		return now
	}
	if b.changed == nil {
		b.changed = make(chan struct{})
	}
	return b.changed
}

// claim makes a claim.
func (b *budgets) claim(root event.SessionID, next turn.Spending) *claim {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := &claim{b, root, next}
	if b.claims == nil {
		b.claims = make(map[*claim]bool)
	}
	b.claims[c] = true
	return c
}

// spent finds out what was spent before a request.
func (h *Host) spent(ctx context.Context, root event.SessionID, day string, limits turn.Limits, asked *turn.Purchase) error {
	sums, _, err := h.Ledger.Costs(ctx, eventlog.CostQuery{Session: root, ByModel: true})
	if err != nil {
		return fmt.Errorf("find out what was spent: %w", err)
	}
	for _, c := range sums {
		asked.Session = asked.Session.Plus(spending(c, asked))
	}
	if !limits.OfDay() {
		return nil
	}
	if sums, _, err = h.Ledger.Costs(ctx, eventlog.CostQuery{Since: day, ByDay: true, ByModel: true}); err != nil {
		return fmt.Errorf("find out what was spent today: %w", err)
	}
	for _, c := range sums {
		if c.Day == day {
			asked.Day = asked.Day.Plus(spending(c, asked))
		}
	}
	return nil
}

// spending returns what requests to one model have cost. Those that the provider has not
// counted are taken for as large as the next request, because they were not free: otherwise
// no limit would ever be reached. Their price is that of the next request if they were made
// to the same model; the price of another model is not known here.
func spending(c eventlog.Cost, next *turn.Purchase) turn.Spending {
	s := turn.Spending{NanoUSD: c.NanoUSD, Tokens: c.Input + c.Output + c.CacheRead + c.CacheWrite}
	s = s.Plus(turn.Spending{Tokens: next.Next.Tokens}.Times(c.Unreported))
	if c.Model == next.Model {
		s = s.Plus(turn.Spending{NanoUSD: next.Next.NanoUSD}.Times(c.Unpriced))
	}
	return s
}

// release ends a claim, because the cost of its request is in the ledger.
func (c *claim) release() {
	if c == nil {
		return
	}
	b := c.budgets
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.claims, c)
	b.ended++
	if b.changed != nil {
		close(b.changed)
		b.changed = nil
	}
}

// postReleasing posts what follows from a request, and ends its claim when that is stored, or
// when it is known that it never will be.
func (s *Session) postReleasing(c *claim, f func(*txn) error) {
	if c == nil {
		s.post(f)
		return
	}
	s.postIntent(&intent{
		do: func(tx *txn) error {
			tx.afterCommit, tx.onFailure = append(tx.afterCommit, c.release), append(tx.onFailure, c.release)
			return f(tx)
		},
		upkeep: true,
		unread: func(_ *Session, err error) error { c.release(); return err },
	})
}

// Admit is for a request that a job makes for a session. The error is ErrBudget if the request
// is not to be made. The returned function is called when the request is recorded.
func (l Ledger) Admit(ctx context.Context, id event.SessionID, config event.SessionConfiguredData, to Endpoint, q *model.Request) (release func(), err error) {
	if !limited(&config) {
		return func() {}, nil
	}
	c, err := l.host.admit(ctx, id, &config, to, sizeOf(q))
	return c.release, err
}

// askBudget asks whether to go on after a request of the turn was not made. For an agent, the
// session is asked with which it is counted, and the agent waits.
func (tx *txn) askBudget(over *overBudget) error {
	of := tx.State.Setup.Config.Agent.Counted()
	switch {
	case of == "":
		return tx.openBudget(over)
	case over.refused:
		return tx.failTurn(event.SessionErrorData{ErrorType: turn.ErrorBudget, Message: over.Error()})
	}
	h := tx.s.host
	tx.s.held = true
	h.budgets.hold(of, tx.s.id)
	tx.afterCommit = append(tx.afterCommit, func() {
		h.spawn(func() {
			h.get(of).post(func(tx *txn) error {
				if tx.State.Seq == 0 {
					return nil
				}
				return tx.openBudget(over)
			})
		})
	})
	return nil
}

// openBudget records the question whether to go on, unless it is open or was answered
// meanwhile.
func (tx *txn) openBudget(over *overBudget) error {
	limits := tx.State.Limits(over.day)
	reached := limits.Exceeds(over.asked)
	if reached == nil || limits.Refused || tx.State.Budget.Open != nil {
		return nil
	}
	asked := turn.AskBudget(event.NewID(), *reached)
	if err := tx.record(asked); err != nil {
		return err
	}
	if tx.State.Setup.Config.ClientName != ownClient { // our own program shows the form
		tx.send(event.SessionWarningData{WarningType: "budget", Message: asked.Message})
	}
	return nil
}

// hold remembers that a session waits for the answer to the question of another one.
func (b *budgets) hold(root, id event.SessionID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.held == nil {
		b.held = make(map[event.SessionID]map[event.SessionID]bool)
	}
	if b.held[root] == nil {
		b.held[root] = make(map[event.SessionID]bool)
	}
	b.held[root][id] = true
}

// freeHeld lets the agents go on that wait for an answer which the session has. One that the
// answer does not help asks again.
func (s *Session) freeHeld() {
	if s.state.Budget.Open != nil {
		return
	}
	b := &s.host.budgets
	b.mu.Lock()
	defer b.mu.Unlock()
	for id := range b.held[s.id] {
		s.host.spawn(func() {
			s.host.get(id).post(func(tx *txn) error { tx.s.held = false; return nil })
		})
	}
	delete(b.held, s.id)
}
