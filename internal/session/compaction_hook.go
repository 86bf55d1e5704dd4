package session

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/window/compact"
)

// compactHooks are the clients whose hooks are asked about a compaction. Their
// answers are not recorded: a compaction that was interrupted begins anew, if at all.
type compactHooks struct {
	s       *Session
	c       *compaction
	clients []*attachment
}

func (s *Session) compactHooks(c *compaction) compactHooks {
	if !s.state.Setup.Declared.Hooks {
		return compactHooks{}
	}
	return compactHooks{s, c, s.clients.withHooks()}
}

// compactInput is what a hook is told about a compaction.
type compactInput struct {
	SessionID    event.SessionID `json:"sessionId"`
	Cwd          string          `json:"cwd"`
	Trigger      string          `json:"trigger"`
	CompactionID string          `json:"compactionId"`
	Instructions string          `json:"customInstructions,omitempty"`
	Tokens       int             `json:"currentTokens"`
	Limit        int             `json:"tokenLimit"`
	Outcome      string          `json:"outcome,omitempty"`
	Summary      string          `json:"summaryContent,omitempty"`
}

// compactOutput is what a hook can answer before a compaction.
type compactOutput struct {
	Instructions string `json:"customInstructions"`
	Block        bool   `json:"block"`
	Reason       string `json:"reason"`
}

func (h compactHooks) input() compactInput {
	return compactInput{
		SessionID: h.s.id, Cwd: h.c.config.WorkingDirectory, Trigger: h.c.start.Trigger, CompactionID: h.c.start.CompactionID,
		Instructions: h.c.in.Instructions, Tokens: h.c.start.CurrentTokens, Limit: h.c.start.TokenLimit,
	}
}

// ask asks the clients' hooks. A hook that nobody answers counts as absent.
func (h compactHooks) ask(ctx context.Context, kind string, in compactInput) (said compactOutput) {
	ctx, cancel := context.WithTimeout(ctx, hookTime)
	defer cancel()
	input, err := json.Marshal(in)
	if err != nil {
		return said
	}
	output, err := h.s.askHookClients(ctx, kind, input, h.clients)
	if err == nil && output != nil {
		_ = json.Unmarshal(output, &said) // an output that cannot be decoded changes nothing
	}
	return said
}

// before asks the hooks for instructions before a compaction. A hook cannot block a
// compaction without which the next request does not fit.
func (h compactHooks) before(ctx context.Context) {
	if len(h.clients) == 0 {
		return
	}
	said := h.ask(ctx, event.HookPreCompact, h.input())
	switch {
	case said.Block && !h.c.in.Must:
		reason := said.Reason
		if reason == "" {
			reason = "a hook does not want it"
		}
		h.c.job.Skip(errors.New(reason))
	case said.Instructions != "":
		h.c.in.Instructions = said.Instructions
		h.c.job = compact.New(h.c.in)
	}
}

// after tells the hooks the outcome.
func (h compactHooks) after(ctx context.Context) {
	if len(h.clients) == 0 || ctx.Err() != nil {
		return
	}
	in := h.input()
	if r := h.c.job.Result(); r != nil {
		in.Outcome, in.Summary = string(r.Outcome), r.Summary
	}
	h.ask(ctx, event.HookPostCompact, in)
}
