package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/turn"
)

// ErrManaged means that a client has restricted the session for its life.
var ErrManaged = errors.New("the settings that manage this session do not permit to allow everything")

// Permissions changes what sessions may do without asking.
type Permissions struct{ host *Host }

// ChangeRules changes the rules that clients have set. What is denied from now on is
// denied to the agents that work for the session, too.
func (ps Permissions) ChangeRules(ctx context.Context, id event.SessionID, change func(*event.ClientRules) error) error {
	var agents []event.SessionID
	var denied []event.Rule
	err := ps.host.change(ctx, id, func(tx *txn) error {
		to := tx.State.Permission.Rules
		if err := change(&to); err != nil {
			return err
		}
		agents, denied = ps.host.opts.Tools.Working(tx.State), to.Deny
		return tx.record(to)
	})
	if err != nil || len(denied) == 0 {
		return err
	}
	return ps.forAgents(agents, func(agent event.SessionID) error {
		return ps.ChangeRules(ctx, agent, func(to *event.ClientRules) error {
			to.Deny = slices.Concat(to.Deny, denied)
			return nil
		})
	})
}

// forAgents restricts the agents that work for a session. One that has just ended needs
// no restriction.
func (ps Permissions) forAgents(agents []event.SessionID, restrict func(agent event.SessionID) error) error {
	for _, agent := range agents {
		if err := restrict(agent); err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
	}
	return nil
}

// AllowAll says whether all calls are allowed without asking. If they are not any more,
// that holds for the agents that work for the session, too.
func (ps Permissions) AllowAll(ctx context.Context, id event.SessionID, all bool) error {
	var agents []event.SessionID
	err := ps.host.change(ctx, id, func(tx *txn) error {
		agents = ps.host.opts.Tools.Working(tx.State)
		was := tx.State.AllowsAll()
		if was == all {
			return nil
		}
		if m := tx.State.Setup.Config.Managed; all && m != nil && m.NoBypass {
			return ErrManaged
		}
		to := tx.State.Permission.Rules
		to.AllowAll = all
		if err := tx.record(to); err != nil {
			return err
		}
		if config := tx.State.Setup.Config; !all && tx.State.AllowsAll() {
			config.Approve = ""
			if err := tx.record(config); err != nil {
				return err
			}
		}
		return tx.record(event.PermissionsChangedData{Mode: turn.PermissionMode(all), PreviousMode: turn.PermissionMode(was)})
	})
	if err != nil || all {
		return err
	}
	return ps.forAgents(agents, func(agent event.SessionID) error { return ps.AllowAll(ctx, agent, false) })
}

// ResetGrants revokes what was allowed for the rest of a session, also to the agents that
// work for it. With location, it also drops the rules of the place.
func (ps Permissions) ResetGrants(ctx context.Context, id event.SessionID, location bool) error {
	var agents []event.SessionID
	err := ps.host.change(ctx, id, func(tx *txn) error {
		agents = ps.host.opts.Tools.Working(tx.State)
		to := tx.State.Permission.Rules
		if location && to.FromThere != nil {
			to.Location, to.FromThere = "", nil
			if err := tx.record(to); err != nil {
				return err
			}
		}
		if len(tx.State.Permission.Grants) == 0 && !tx.State.MCP.LetsSample() {
			return nil
		}
		return tx.record(event.GrantsResetData{})
	})
	if err != nil {
		return err
	}
	return ps.forAgents(agents, func(agent event.SessionID) error { return ps.ResetGrants(ctx, agent, location) })
}

// restrictAgents puts restrictions that a client has added to a session on the agents that
// work for it.
func (ps Permissions) restrictAgents(ctx context.Context, agents []event.SessionID, more *event.ManagedRules) error {
	if more == nil {
		return nil
	}
	return ps.forAgents(agents, func(agent event.SessionID) error {
		return ps.host.change(ctx, agent, func(tx *txn) error { return tx.restrict(more) })
	})
}

// Declare records that a client of the session can answer permission questions.
func (ps Permissions) Declare(ctx context.Context, id event.SessionID) error {
	return ps.host.change(ctx, id, func(tx *txn) error {
		return tx.declare(&Client{Permission: true})
	})
}

// judgeCall decides by the rules of now whether a call may be made.
func (tx *txn) judgeCall(call *turn.Call) error {
	if err := tx.recordStandingRules(); err != nil {
		return err
	}
	if record := tx.s.host.opts.Tools.Reject(tx.State, call); record != nil {
		return tx.beginCall(call, record)
	}
	sight, err := tx.lookAtCall(call)
	if err != nil {
		return err
	}
	return tx.beginCall(call, tx.s.host.opts.Tools.JudgeSeen(tx.State, call, sight))
}

// lookAtCall returns what a call would do.
func (tx *txn) lookAtCall(call *turn.Call) (turn.Sight, error) {
	t, made, needed := tx.s.host.opts.Tools.Looks(tx.State, call)
	if !needed {
		return tx.s.host.opts.Tools.See(tx.State, call), nil
	}
	if made.Env = tx.env; made.Env == nil { // the programs that it leads to are not those of the engine
		var err error
		if made.Env, err = tx.s.environment(tx.s.host.ctx); err != nil {
			return turn.Sight{Err: fmt.Errorf("the environment of the session cannot be read: %w", err)}, nil
		}
	}
	return lookAt(tx.s, call.Request.ToolCallID, made, func(ctx context.Context) turn.Sight { return turn.Look(ctx, t, made) })
}

// recordStandingRules records the rules of the place where the session works, if they
// have changed. So they hold at once in every session there, and the log says by
// which rules a call was judged. If they cannot be read, there are none.
func (tx *txn) recordStandingRules() error {
	s := tx.s
	if s.host.opts.Standing == nil {
		return nil
	}
	to := tx.State.Permission.Rules
	place, rules, err := s.host.opts.Standing(cmp.Or(to.Location, tx.State.Setup.Config.Location()))
	if err != nil {
		s.host.log.Error("what is allowed in a place is not known", "session", s.id, "err", err)
	}
	if slices.EqualFunc(rules, to.FromThere, event.Rule.Equal) {
		return nil
	}
	to.Location, to.FromThere = place, rules
	return tx.record(to)
}
