// Package offline is a model that needs no key and no network.
//
// It understands instructions in a small language in the newest user message, and
// replies to everything else with a description of that language. The reply depends
// only on the request: the same request gets the same reply, byte for byte, in any
// process and at any time. It never fails, except with the error of its context.
//
// The language is described for users in docs/MODELS.md.
package offline

import (
	"context"
	"strings"

	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/local"
)

// Name is the name of the model.
const Name = "offline"

// Model is the offline model. Its zero value is ready.
type Model struct{}

var _ model.Model = Model{}

// Ask replies to a request.
func (Model) Ask(ctx context.Context, req *model.Request, on func(model.Delta)) (*model.Reply, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	reply := answer(req)
	if on == nil {
		return reply, nil
	}
	if err := stream(ctx, reply, on); err != nil {
		return nil, err
	}
	return reply, nil
}

// answer chooses the reply.
func answer(req *model.Request) *model.Reply {
	text, calls := decide(local.Read(req.Messages))
	local.Identify(req.Messages, calls)
	reply := &model.Reply{Text: text, Calls: calls, Finish: "stop", Model: Name}
	if len(calls) > 0 {
		reply.Finish = "tool_calls"
	}
	reply.Usage = local.Estimate(req, reply)
	return reply
}

// decide returns the reply in a turn: a text or calls.
func decide(turn local.Turn) (text string, calls []model.Call) {
	if turn.Notice != "" && (turn.Answered || turn.Instruction == "") {
		return turn.Notice, nil // nothing else is left to do
	}
	order, ok := parse(turn.Instruction)
	switch {
	case !ok:
		return introduction, nil
	case len(order.calls) == 0:
		return order.text, nil
	case len(turn.Outcomes) == 0:
		return "", order.calls
	}
	return report(turn.Outcomes), nil
}

// report describes the results of calls, in the order of the calls.
func report(outcomes []local.Outcome) string {
	lines := make([]string, len(outcomes))
	for i, o := range outcomes {
		lines[i] = reportOne(o)
	}
	return strings.Join(lines, "\n")
}

func reportOne(o local.Outcome) string {
	switch {
	case o.Result == nil || o.Result.Text == "" && !o.Result.Failed:
		return o.Call.Name + " gave no result."
	case o.Result.Failed:
		return o.Call.Name + " failed: " + o.Result.Text
	}
	return o.Result.Text
}

// stream calls on with the pieces of a reply.
func stream(ctx context.Context, reply *model.Reply, on func(model.Delta)) error {
	for _, piece := range local.Pieces(reply.Text) {
		if err := ctx.Err(); err != nil {
			return err
		}
		on(model.Delta{Text: piece})
	}
	for _, c := range reply.Calls {
		on(model.Delta{Arguments: string(c.Arguments), CallID: c.ID, CallName: c.Name})
	}
	return nil
}
