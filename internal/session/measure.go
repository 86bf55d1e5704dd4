package session

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/turn"
	"github.com/abide-run/abide/internal/window"
)

// A gauge is what a session knows about its model's window. It belongs to the
// draining goroutine.
type gauge struct {
	of       gaugeOf
	limits   window.Limits
	policy   window.Policy
	warnings []string // warnings about the configured thresholds
	told     []string // the warnings that clients were sent

	meter  window.Meter
	pruner window.Pruner
	read   *turn.State // the state that the meter was restored for
}

// gaugeOf is what the limits depend on. They are looked up again only if it has
// changed.
type gaugeOf struct {
	state   *turn.State
	offered int // changes with the configuration
	model   string
	window  int64 // window that the provider told when the model was last asked
}

// currentGauge returns the session's gauge for its present model.
func (s *Session) currentGauge() *gauge {
	g := &s.gauge
	if of := (gaugeOf{s.state, s.state.Setup.Offered, s.state.AskedModel(), s.told.Load()}); g.of != of {
		if g.of.model != of.model && g.of.state == of.state {
			g.meter.Forget() // another model counts in its own way
		}
		g.of, g.limits = of, s.limits()
		g.policy, g.warnings = s.settings().Policy(g.limits)
	}
	return g
}

// hurry is how long the session's goroutine waits for what a provider says of a model. If
// that takes longer, it is known when the model has been asked.
const hurry = 250 * time.Millisecond

// limits returns the limits of the session's model. Nothing is known of a model that
// the provider has yet to choose.
func (s *Session) limits() window.Limits {
	var to Endpoint
	if name := s.state.AskedModel(); name != "" || s.state.Setup.Config.Provider == nil {
		to, _ = s.resolveModel(model.WithHurry(s.host.ctx, hurry), s.state.ReadSettings(), name) // the error is reported when the model is asked
	}
	can := model.Capabilities{Window: cmp.Or(s.state.Setup.Config.Window, to.Window), MaxOutput: to.Output}
	return window.LimitsOf(can, 0)
}

// settings returns the thresholds from the configuration and from the session's
// client.
func (s *Session) settings() window.Settings {
	rules := s.state.Setup.Config.Compaction
	set := window.Settings{Threshold: rules.Threshold, RequestThreshold: rules.RequestThreshold, Retained: rules.Retained}
	if said := s.state.Setup.Config.Infinite; said != nil {
		set.Enabled, set.Background, set.Exhaustion = said.Enabled, said.Background, said.Exhaustion
	}
	return set
}

// tailOfTask is how many tokens a running task takes in the changing part of a
// request.
const tailOfTask = 200

// measure returns how full the window is with a request.
func (s *Session) measure(q *model.Request) window.Reading {
	g := s.currentGauge()
	if g.read != s.state {
		g.read = s.state
		g.meter = window.Meter{}
		list := q.Messages
		if s.state.Context.Measured.Stale {
			list = nil
		}
		if a := s.state.Context.Measured.Anchor; !s.state.Context.Switched {
			g.meter.Restore(list, window.Anchor{Counted: a.Counted, Estimated: a.Estimated, Messages: a.Messages, Rates: a.Rates})
		}
	}
	r := g.meter.Read(q)
	if tail := len(s.state.Tasks.Open) * tailOfTask; tail > 0 {
		r.Tail += tail
		r.Tokens += tail
	}
	return r
}

// judgeSize measures the next request and decides whether it needs a compaction first.
func (s *Session) judgeSize(tx *txn) window.Verdict {
	q, err := s.buildRequest()
	if err != nil {
		return window.Verdict{} // the error is reported when the request is made
	}
	g := s.currentGauge()
	if !slices.Equal(g.warnings, g.told) {
		for _, w := range g.warnings {
			tx.send(event.SessionWarningData{WarningType: "compaction", Message: w})
		}
		g.told = g.warnings
	}
	return g.policy.Decide(s.state.Turn.At(), s.measure(q), s.state.Context.Gate, tx.now)
}

// prune leaves old results of tools out of what the model sees.
func (s *Session) prune(list []*model.Message) []*model.Message {
	if s.state.Setup.Config.Compaction.KeepAll {
		return list
	}
	g := s.currentGauge()
	pruned, _ := g.pruner.Prune(list, window.PruningFor(g.policy.Limit))
	return pruned
}

// A Fill tells what fills the window of a session's model.
type Fill struct {
	window.Reading
	Limits   window.Limits
	Policy   window.Policy
	Messages int // number of messages
	Asked    int // tokens of the messages of people
	Answered int // tokens of the messages of the model
	Gave     int // tokens of the results of calls
	Head     int // tokens of the summary that the epoch begins with
	Pruned   int // tokens that are left out of requests
	EpochID  string
	Epoch    int // the number of the epoch; zero before the first
	Model    string
}

// measureFill measures the session as it is now.
func (tx *txn) measureFill() (Fill, error) {
	s := tx.s
	all, err := tx.State.History.Messages()
	if err != nil {
		return Fill{}, err
	}
	head, _, err := tx.State.History.Items()
	if err != nil {
		return Fill{}, err
	}
	q, err := s.buildRequest()
	if err != nil {
		return Fill{}, err
	}
	g := s.currentGauge()
	f := Fill{
		Reading: s.measure(q), Limits: g.limits, Policy: g.policy, Messages: len(q.Messages),
		Model: tx.State.Setup.Model,
	}
	if epoch, ok := tx.State.History.Epoch(); ok {
		f.EpochID, f.Epoch = epoch.EpochID, epoch.Number
	}
	for i, m := range q.Messages {
		n := window.Of(m)
		f.Pruned += window.Of(all[i]) - n
		switch {
		case i == 0 && head != nil:
			f.Head += n
		case m.CallID != "":
			f.Gave += n
		case m.Role == model.Assistant:
			f.Answered += n
		default:
			f.Asked += n
		}
	}
	return f, nil
}

// calibrate corrects the meter by what the provider counted, and returns what the log
// keeps of that.
func (s *Session) calibrate(r *request, u model.Usage) *event.Anchor {
	s.measure(r.view) // a new meter is restored from the log first
	a := s.gauge.meter.Learn(r.view, u)
	if a.Counted == 0 {
		return nil
	}
	return &event.Anchor{Counted: a.Counted, Estimated: a.Estimated, Messages: a.Messages, Rates: a.Rates.Rounded()}
}

// sendUsage sends clients how full the model's window is after an answer.
func (tx *txn) sendUsage(r *request, u model.Usage) {
	reading := tx.s.measure(r.view)
	tx.send(event.UsageInfoData{
		TokenLimit: tx.s.currentGauge().limits.Window, MessagesLength: len(r.asked.Messages) + 1, IsInitial: tx.State.About.Totals.Steps == 0,
		CurrentTokens: int64(reading.Tokens) + u.Output,
	})
}

// Fill tells what fills the window of a session's model.
func (cx Context) Fill(ctx context.Context, id event.SessionID) (f Fill, err error) {
	err = cx.host.inspectAny(ctx, id, func(tx *txn) (err error) {
		if err = tx.exists(); err == nil {
			f, err = tx.measureFill()
		}
		return err
	})
	return f, err
}
