package relay

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"github.com/abide-run/abide/internal/jsonrpc"
)

// A session is a session that the client is attached to, or is about to be: events may
// come before the answer to the request that attaches the client.
type session struct {
	id     string
	n      int64           // number of the request that attached the client; zero before its answer
	method string          // method of that request
	params json.RawMessage // params of that request

	// sent is the position of the newest event that the client was sent. The next
	// engine is asked for the events after it.
	sent int64
	// known is the value of sent when the last engine was lost. The next engine may
	// repeat events up to known, and the relay drops them. It is zero if the client
	// attached by itself since then: it wants the events that it asked for.
	known int64
}

func (r *Relay) sessionLocked(id string) *session {
	s := r.sessions[id]
	if s == nil {
		s = &session{id: id}
		r.sessions[id] = s
	}
	return s
}

func attaches(method string) bool {
	return method == "session.create" || method == "session.resume"
}

func detaches(method string) bool {
	return method == "session.destroy" || method == "session.detach" || method == "session.delete" || method == "session.shutdown"
}

// applyAnswerLocked updates the sessions and settings of the client after the answer to a
// request.
func (r *Relay) applyAnswerLocked(p *queuedMessage, m jsonrpc.Message) {
	r.updateSettingsLocked(p, m)
	id := textMember(p.params, "sessionId")
	switch {
	case attaches(p.method) && m.Err == nil:
		r.setAttachedLocked(cmp.Or(textMember(m.Result, "sessionId"), id), p, m.Result)
	case attaches(p.method):
		if s := r.sessions[id]; s != nil && s.n == 0 {
			delete(r.sessions, id)
		}
	case detaches(p.method) && m.Err == nil && string(member(m.Result, "success")) != "false":
		delete(r.sessions, id)
		r.dropSettingsLocked(func(s setting) bool { return s.session == id && id != "" })
	}
}

// setAttachedLocked records that the request p attached the client to a session.
func (r *Relay) setAttachedLocked(id string, p *queuedMessage, result json.RawMessage) {
	s := r.sessionLocked(id)
	s.n, s.method, s.params = p.n, p.method, orEmpty(p.params)
	if start, err := strconv.ParseInt(string(member(result, "abidePosition")), 10, 64); err == nil {
		s.sent = max(s.sent, start) // the client gets only the events after it
	}
}

// recordPosition records the position of an event, and reports whether the event is to be
// sent to the client.
func (r *Relay) recordPosition(params json.RawMessage) bool {
	var id, seq json.RawMessage
	for key, value := range jsonrpc.Members(params) {
		switch string(key) {
		case "sessionId":
			id = value
		case "seq":
			seq = value
		}
	}
	n, err := strconv.ParseInt(string(seq), 10, 64)
	if err != nil || n <= 0 {
		return true // an ephemeral event
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.sessionLocked(jsonrpc.Text(id))
	if n <= s.known {
		return false
	}
	s.sent = max(s.sent, n)
	return true
}

// forgetDeleted forgets a session that was deleted: the positions of a new session
// with the same id start again.
func (r *Relay) forgetDeleted(params json.RawMessage) {
	if string(member(params, "type")) != `"session.deleted"` {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.sessions, textMember(params, "sessionId"))
}

// allowRepeatsLocked lets a client that attaches to a session again by itself have events
// that it was sent before.
func (r *Relay) allowRepeatsLocked(p *queuedMessage) {
	if !attaches(p.method) {
		return
	}
	if s := r.sessions[textMember(p.params, "sessionId")]; s != nil {
		s.known = 0
	}
}

// dropRepeatsLocked makes the relay drop the events that the client was already sent. It
// is called when the engine is lost.
func (r *Relay) dropRepeatsLocked() {
	for _, s := range r.sessions {
		s.known = s.sent
	}
}

// afterLocked returns the position after which a request that is sent again continues a
// session. It is zero for a request that no engine was sent, and if nothing of the
// session was sent to the client.
func (r *Relay) afterLocked(p *queuedMessage) int64 {
	if p.sends == 0 || !attaches(p.method) {
		return 0
	}
	if s := r.sessions[textMember(p.params, "sessionId")]; s != nil {
		return s.sent
	}
	return 0
}

// attachments returns the attachments of the client to its sessions, in the order in
// which the client attached.
func (r *Relay) attachments() (all []attachment) {
	r.mu.Lock()
	defer r.mu.Unlock()
	ordered := slices.SortedFunc(maps.Values(r.sessions), func(a, b *session) int { return cmp.Compare(a.n, b.n) })
	for _, s := range ordered {
		if s.n > 0 {
			all = append(all, attachment{s.id, s.sent, s.method, s.params})
		}
	}
	return all
}

// An attachment holds the params of abide.attach.
type attachment struct {
	session string
	after   int64
	method  string
	params  json.RawMessage
}

func (a attachment) encode() []byte {
	b := append([]byte(`{"sessionId":`), quote(a.session)...)
	b = strconv.AppendInt(append(b, `,"after":`...), a.after, 10)
	b = append(append(b, `,"method":`...), quote(a.method)...)
	b = append(append(b, `,"params":`...), a.params...)
	return append(b, '}')
}
