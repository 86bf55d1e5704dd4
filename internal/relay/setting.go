package relay

import (
	"context"
	"slices"

	"github.com/abide-run/abide/internal/jsonrpc"
)

// A setting is a request of the client that configures the connection. The engine
// forgets it when the connection ends, so the relay repeats it to the next engine.
type setting struct {
	method  string
	params  []byte // params with the key of the request, by which the engine recognises it
	session string // id of the session; empty if the setting is about all sessions
	handle  string // handle that the engine returned to the client
}

const (
	setInference = "llmInference.setProvider"
	addInterest  = "session.eventLog.registerInterest"
	dropInterest = "session.eventLog.releaseInterest"
	continueAll  = "abide.continueAll"
)

// updateSettingsLocked updates the settings after the answer to a request.
func (r *Relay) updateSettingsLocked(p *queuedMessage, m jsonrpc.Message) {
	if m.Err != nil {
		return
	}
	switch p.method {
	case setInference, continueAll:
		r.dropSettingsLocked(func(s setting) bool { return s.method == p.method })
	case addInterest:
	case dropInterest:
		handle := textMember(p.params, "handle")
		r.dropSettingsLocked(func(s setting) bool { return s.handle == handle && handle != "" })
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

func (r *Relay) dropSettingsLocked(which func(setting) bool) {
	r.settings = slices.DeleteFunc(r.settings, which)
}

// repeatSettings sends the settings to a new engine: those of single sessions if sessions is
// true, and otherwise those of the whole connection.
func (r *Relay) repeatSettings(ctx context.Context, l *link, sessions bool) error {
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
			r.log.Warn("the new engine refused a setting of the connection", "method", s.method, "err", fault)
		}
	}
	return nil
}
