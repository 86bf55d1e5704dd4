package relay

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"github.com/abide-run/abide/internal/jsonrpc"
)

// A session is what the relay knows about a session that the client is attached to.
type session struct {
	id     string
	n      int64           // number of the request that attached the client; zero if there is none yet
	method string          // method of that request
	params json.RawMessage // params of that request
	last   int64           // position of the last event that the client was sent
	floor  int64           // position up to which events of a new engine are repetitions
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
	id := textMember(p.params, "sessionId")
	r.updateSettingsLocked(p, m)
	switch {
	case attaches(p.method) && m.Err == nil:
		if given := textMember(m.Result, "sessionId"); given != "" {
			id = given
		}
		s := r.sessionLocked(id)
		s.n, s.method, s.params = p.n, p.method, orEmpty(p.params)
		if start, err := strconv.ParseInt(string(member(m.Result, "abidePosition")), 10, 64); err == nil {
			s.last = max(s.last, start)
		}
	case attaches(p.method):
		if s := r.sessions[id]; s != nil && s.n == 0 {
			delete(r.sessions, id)
		}
	case detaches(p.method) && m.Err == nil && string(member(m.Result, "success")) != "false":
		delete(r.sessions, id)
		r.dropSettingsLocked(func(s setting) bool { return s.session == id && id != "" })
	}
}

// recordPosition records the position of an event, and reports whether the event is to be sent
// to the client.
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
	if n <= s.floor {
		return false
	}
	s.last = max(s.last, n)
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

// resetFloorLocked prepares a session for a client that attaches again by itself: the
// client gets every event that the engine sends for that.
func (r *Relay) resetFloorLocked(p *queuedMessage) {
	if !attaches(p.method) {
		return
	}
	if s := r.sessions[textMember(p.params, "sessionId")]; s != nil {
		s.floor = 0
	}
}

// afterLocked returns the position from which a repeated request continues; zero if
// it was not sent before.
func (r *Relay) afterLocked(p *queuedMessage) int64 {
	if p.sends == 0 || !attaches(p.method) {
		return 0
	}
	if s := r.sessions[textMember(p.params, "sessionId")]; s != nil {
		return s.last
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
			all = append(all, attachment{s.id, s.last, s.method, s.params})
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
