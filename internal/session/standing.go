package session

import (
	"cmp"
	"slices"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/turn"
)

// judge finds out whether a call may be made, by what is allowed now.
func (tx *txn) judge(call *turn.Call) error {
	if err := tx.takeStanding(); err != nil {
		return err
	}
	return tx.begin(call, tx.s.host.opts.Tools.Judge(tx.State, call))
}

// takeStanding records what is allowed in the place where the session works, if
// that is not what it was: so that it holds at once, in every session there, and
// the log says by which rules a call was judged. If it cannot be known, nothing
// is.
func (tx *txn) takeStanding() error {
	s := tx.s
	if s.host.opts.Standing == nil {
		return nil
	}
	to := tx.State.Permission.Rules
	place, rules, err := s.host.opts.Standing(cmp.Or(to.Location, tx.State.Setup.Config.WorkingDirectory))
	if err != nil {
		s.host.log.Error("what is allowed in a place is not known", "session", s.id, "err", err)
	}
	if slices.EqualFunc(rules, to.FromThere, func(a, b event.Rule) bool { return turn.RuleText(a) == turn.RuleText(b) }) {
		return nil
	}
	to.Location, to.FromThere = place, rules
	return tx.Record(to)
}
