package relay

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/abide-run/abide/internal/jsonrpc"
)

// questions are what an engine asks the user, and how an answer is given later.
var questions = map[string]string{
	"userInput.request":    "session.ui.handlePendingUserInput",
	"exitPlanMode.request": "session.ui.handlePendingExitPlanMode",
}

// An ask is a request of an engine to the client. The client knows it by an id
// of ours, since the ids of two engines may be the same.
type ask struct {
	link    *link           // the engine that asked
	id      json.RawMessage // the engine's id
	session string          // of a question to the user
	request string          // the id of a question to the user; empty for any other ask
	handle  string          // the method that gives a question's answer to another engine
	answer  json.RawMessage // the result that the client gave
	handed  bool            // the answer was handed to another engine
}

// ask passes an engine's request on. A question that the client has already
// is not asked twice.
func (r *Relay) ask(ctx context.Context, l *link, m jsonrpc.Message) error {
	a := &ask{link: l, id: slices.Clone(m.ID)}
	if a.handle = questions[m.Method]; a.handle != "" {
		a.session, a.request = textMember(m.Params, "sessionId"), textMember(m.Params, "requestId")
	}
	if known := r.knownAsk(a); known != nil {
		return l.answer(ctx, a.id, known.answer)
	}
	id := r.keepAsk(a)
	if id == "" {
		return nil
	}
	return r.out.Put(ctx, appendHead(nil, []byte(id), m.Method), orEmpty(m.Params), closing)
}

// knownAsk returns the same question of an engine that is gone, if the client
// has answered it.
func (r *Relay) knownAsk(a *ask) *ask {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, old := range slices.Backward(r.answered) {
		if a.repeats(old) {
			return old
		}
	}
	return nil
}

// repeats reports whether another engine has asked the user the same.
func (a *ask) repeats(old *ask) bool {
	return a.request != "" && a.request == old.request && a.session == old.session && a.link != old.link
}

// keepAsk remembers an ask and returns the id that the client knows it by;
// none if the client is working on it already, on behalf of an engine that is
// gone.
func (r *Relay) keepAsk(a *ask) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, old := range r.asks {
		if a.repeats(old) {
			r.asks[id] = a
			return ""
		}
	}
	r.count++
	id := strconv.FormatInt(r.count, 10)
	r.asks[id] = a
	return id
}

// reply passes the client's answer on to the engine that asked. If that is
// gone, an answer of the user goes to the next engine, and any other nowhere.
func (r *Relay) reply(ctx context.Context, m jsonrpc.Message) {
	a, current := r.takeAsk(m)
	switch {
	case a == nil:
		r.log.Debug("an answer that nobody waits for", "id", string(m.ID))
	case current && m.Err != nil:
		a.link.refusal(ctx, a.id, m.Err)
	case current:
		a.link.answer(ctx, a.id, m.Result)
	case m.Err == nil:
		r.forward(ctx, r.handOver(a))
	}
}

// takeAsk finds what the client answers, and whether the engine that asked is
// still there.
func (r *Relay) takeAsk(m jsonrpc.Message) (a *ask, current bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a = r.asks[string(m.ID)]
	if a == nil {
		return nil, false
	}
	delete(r.asks, string(m.ID))
	current = a.link == r.link
	if a.request != "" && m.Err == nil {
		a.answer, a.handed = m.Result, !current
		r.answered = append(r.answered, a)
		r.answered = r.answered[max(0, len(r.answered)-maxRemember):]
	}
	return a, current
}

// handOver makes the request that gives a user's answer to another engine.
// Giving it twice does no harm: the first one counts.
func (r *Relay) handOver(a *ask) *parcel {
	id := quote(r.nextKey())
	p := &parcel{id: string(id), method: a.handle, own: true}
	p.head = slices.Concat(appendHead(nil, id, p.method), []byte(`{"sessionId":`), quote(a.session),
		[]byte(`,"requestId":`), quote(a.request), []byte(`,"response":`), a.answer, closing)
	return p
}

// forgetAsksLocked drops what a lost engine asked, except questions to the user, and
// returns those that the client answered too late for it to be sure.
func (r *Relay) forgetAsksLocked(l *link) (unsure []*ask) {
	for id, a := range r.asks {
		if a.link == l && a.request == "" {
			delete(r.asks, id)
		}
	}
	for _, a := range r.answered {
		if a.link == l && !a.handed {
			a.handed = true
			unsure = append(unsure, a)
		}
	}
	return unsure
}

// cancelAsk passes on that an engine does not want an answer any more.
func (r *Relay) cancelAsk(ctx context.Context, l *link, engineID json.RawMessage) error {
	r.mu.Lock()
	var known string
	for id, a := range r.asks {
		if a.link == l && string(a.id) == string(engineID) {
			known = id
		}
	}
	r.mu.Unlock()
	if known == "" {
		return nil
	}
	return r.out.Put(ctx, cancellation([]byte(known)))
}
