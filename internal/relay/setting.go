package relay

import (
	"context"
	"slices"

	"github.com/abide-run/abide/internal/jsonrpc"
)

// A setting is what the client has told an engine about this connection. The
// engine forgets it with the connection, so the next one is told again.
type setting struct {
	method  string
	params  []byte // with the key of the request, by which the engine knows it
	session string // that it is about; empty if it is about all
	handle  string // what the client calls it
}

const (
	setInference = "llmInference.setProvider"
	addInterest  = "session.eventLog.registerInterest"
	dropInterest = "session.eventLog.releaseInterest"
)

// noteLocked learns from the answer to a request what the engine was told.
func (r *Relay) noteLocked(p *parcel, m jsonrpc.Message) {
	if m.Err != nil {
		return
	}
	switch p.method {
	case setInference:
		r.forgetLocked(func(s setting) bool { return s.method == setInference })
	case addInterest:
	case dropInterest:
		handle := textMember(p.params, "handle")
		r.forgetLocked(func(s setting) bool { return s.handle == handle && handle != "" })
		return
	default:
		return
	}
	opening, rest := openObject(orEmpty(p.params), "abideKey", p.key)
	r.settings = append(r.settings, setting{
		method: p.method, params: append(opening, rest...),
		session: textMember(p.params, "sessionId"), handle: textMember(m.Result, "handle"),
	})
}

func (r *Relay) forgetLocked(which func(setting) bool) {
	r.settings = slices.DeleteFunc(r.settings, which)
}

// repeat tells an engine what the one before it was told: about all sessions, or
// about those that the client is attached to.
func (r *Relay) repeat(ctx context.Context, l *link, sessions bool) error {
	r.mu.Lock()
	settings := slices.Clone(r.settings)
	r.mu.Unlock()
	for _, s := range settings {
		if (s.session != "") != sessions {
			continue
		}
		answer, err := r.call(ctx, l, s.method, s.params)
		if err != nil {
			return err
		}
		fault, err := l.wait(answer)
		if err != nil {
			return err
		}
		if fault != nil {
			r.log.Warn("an engine does not take what the one before it took", "method", s.method, "err", fault)
		}
	}
	return nil
}
