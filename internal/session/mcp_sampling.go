package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/mcp"
	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/turn"
)

// samplings is the activity of asking the model for MCP servers. A request of a server is
// kept by the server alone: one that the engine does not answer, because it was killed, is
// read and answered by the next one.
type samplings struct {
	running map[*sampling]bool
}

// A sampling is a request that is made in this process.
type sampling struct {
	config  event.SessionConfiguredData
	model   string   // name of the model
	inputs  []string // inputs of the turn, whose headers the request has
	cancel  context.CancelCauseFunc
	over    chan struct{} // closed when no more requests are made
	session *Session
}

func (l *samplings) busy() bool { return len(l.running) > 0 }

func (l *samplings) stop(cause error) {
	for run := range l.running {
		run.cancel(cause)
	}
	l.running = nil
}

// abort stops all requests if somebody has stopped the session.
func (l *samplings) abort(_ *txn, d event.AbortData) error {
	if d.Stops() {
		l.stop(errAborted)
	}
	return nil
}

// requests returns what is closed when the requests under way are over.
func (l *samplings) requests() (list []<-chan struct{}) {
	for run := range l.running {
		list = append(list, run.over)
	}
	return list
}

func (l *samplings) add(run *sampling) {
	if l.running == nil {
		l.running = make(map[*sampling]bool)
	}
	l.running[run] = true
}

// samplingTime is how long the model may take for a request of an MCP server.
const samplingTime = 5 * time.Minute

// sampleForMCP asks the model of a session for one of its MCP servers, and a person before,
// unless a rule or a permission of the session allows it.
func (h *Host) sampleForMCP(ctx context.Context, owner event.SessionID, server, key string, q mcp.Sample) (mcp.Sampled, error) {
	if err := h.allowSampling(ctx, owner, server, key, q); err != nil {
		return mcp.Sampled{}, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	run := &sampling{cancel: cancel, over: make(chan struct{})}
	err := h.maintain(ctx, owner, func(tx *txn) error {
		if err := tx.exists(); err != nil {
			return err
		}
		run.session, run.config, run.model = tx.s, tx.State.Setup.Config, tx.State.AskedModel()
		if tx.State.Turn != nil {
			run.inputs = tx.State.Turn.Headers
		}
		tx.s.samplings.add(run)
		return nil
	})
	if err != nil {
		return mcp.Sampled{}, err
	}
	answer, err := run.ask(ctx, q)
	close(run.over)
	run.session.post(func(tx *txn) error {
		delete(tx.s.samplings.running, run)
		return nil
	})
	return answer, err
}

// allowSampling returns an error if a server may not ask the model now.
func (h *Host) allowSampling(ctx context.Context, owner event.SessionID, server, key string, q mcp.Sample) error {
	var verdict approval.Decision
	var name string
	err := h.inspect(ctx, owner, func(tx *txn) error {
		verdict, name = tx.State.Sampling(server), tx.State.AskedModel()
		return nil
	})
	switch {
	case err != nil:
		return err
	case verdict.Verdict == approval.Deny:
		return mcp.SampleRefused(fmt.Sprintf("the rules of the session do not let the server ask the model (%s)", strings.Join(verdict.Rules, ", ")))
	case verdict.Verdict != approval.Ask:
		return nil
	}
	asked := event.ElicitationAskedData{Message: samplingMessage(server, name, q), Schema: json.RawMessage(turn.SamplingForm), Source: server, Key: key, Sampling: true}
	filled, err := h.Questions.elicit(ctx, owner, asked, func() bool { return h.ctx.Err() != nil }, func(tx *txn) bool {
		return tx.State.Setup.Declared.Permission // it is one, and whoever answers those can answer it
	})
	switch {
	case errors.Is(err, ErrNobody):
		return mcp.SampleRefused(fmt.Sprintf("nobody is there who can be asked whether the server may ask the model; a rule %s(%s) in permissions.allow allows it", approval.MCPSampling, server))
	case err != nil:
		return err
	case filled.Action != turn.Accept:
		return mcp.SampleRefused("the user does not let the server ask the model")
	}
	return nil
}

// samplingMessage returns the question whether a server may ask the model. It has all that the
// model would be sent.
func samplingMessage(server, name string, q mcp.Sample) string {
	var b strings.Builder
	fmt.Fprintf(&b, "The MCP server %s wants to ask the model %s, for an answer of at most %d tokens. The model would be sent:", server, name, q.MaxTokens)
	if q.System != "" {
		fmt.Fprintf(&b, "\n\nsystem: %s", q.System)
	}
	for _, m := range q.Messages {
		fmt.Fprintf(&b, "\n\n%s: %s", m.Role, m.Text)
	}
	return b.String()
}

// ask makes the request, and stores what it has cost before the answer is passed on.
func (r *sampling) ask(ctx context.Context, q mcp.Sample) (mcp.Sampled, error) {
	s := r.session
	to, err := s.resolveModel(ctx, &r.config, r.model)
	if err != nil {
		return mcp.Sampled{}, err
	}
	request := samplingRequest(s.id, to, q)
	request.Headers = s.headers(ctx, r.inputs, &r.config, r.model)
	claim, err := s.host.admit(ctx, s.id, &r.config, to, sizeOf(request))
	if err != nil {
		return mcp.Sampled{}, err
	}
	defer claim.release()
	reply, err := s.askAside(ctx, event.PurposeSampling, "answer", to, request, samplingTime)
	if err != nil {
		return mcp.Sampled{}, err
	}
	if err := s.host.Ledger.Record(ctx, s.id, event.PurposeSampling, to, reply, nil); err != nil {
		return mcp.Sampled{}, err
	}
	return mcp.Sampled{Model: to.Name, Text: reply.Text, Cut: reply.Finish == model.FinishLength}, context.Cause(ctx)
}

// samplingRequest returns what the model is sent: what the server says, and nothing of the
// session.
func samplingRequest(id event.SessionID, to Endpoint, q mcp.Sample) *model.Request {
	request := &model.Request{Session: string(id), Model: to.Name, System: q.System, MaxOutput: q.MaxTokens, Temperature: q.Temperature}
	if to.Longest > 0 {
		request.MaxOutput = min(request.MaxOutput, to.Longest)
	}
	for _, m := range q.Messages {
		request.Messages = append(request.Messages, &model.Message{Role: model.Role(m.Role), Text: m.Text})
	}
	return request
}
