package relay

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/abide-run/abide/internal/jsonrpc"
)

// questions are the methods by which an engine asks the user, each with the method
// that gives the answer later.
var questions = map[string]string{
	"userInput.request":    "session.ui.handlePendingUserInput",
	"exitPlanMode.request": "session.ui.handlePendingExitPlanMode",
}

// An ask is a request of an engine to the client. The relay gives it an id of its own,
// because the ids of two engines may be the same.
type ask struct {
	link    *link           // the engine that asked
	id      json.RawMessage // the engine's id
	session string          // session of a question to the user
	request string          // id of a question to the user; empty for any other ask
	handle  string          // method that gives the answer of a question to another engine
	answer  json.RawMessage // result that the client gave
	handed  bool            // true if the answer was passed on to another engine
}

// ask passes a request of an engine on to the client. A question that the client has
// already is not asked twice.
func (r *Relay) ask(ctx context.Context, l *link, m jsonrpc.Message) error {
	a := &ask{link: l, id: slices.Clone(m.ID)}
	if a.handle = questions[m.Method]; a.handle != "" {
		a.session, a.request = textMember(m.Params, "sessionId"), textMember(m.Params, "requestId")
	}
	if known := r.answeredAsk(a); known != nil {
		return l.answer(ctx, a.id, known.answer)
	}
	id := r.addAsk(a)
	if id == "" {
		return nil
	}
	return r.out.Put(ctx, appendHead(nil, []byte(id), m.Method), orEmpty(m.Params), closing)
}

// answeredAsk returns the same question of an engine that is gone, if the client
// has answered it.
func (r *Relay) answeredAsk(a *ask) *ask {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, old := range slices.Backward(r.answered) {
		if a.isRepetitionOf(old) {
			return old
		}
	}
	return nil
}

// isRepetitionOf reports whether old is the same question to the user, asked by another
// engine.
func (a *ask) isRepetitionOf(old *ask) bool {
	return a.request != "" && a.request == old.request && a.session == old.session && a.link != old.link
}

// addAsk remembers an ask and returns its id for the client. The id is empty if the
// client has the same question from an engine that is gone.
func (r *Relay) addAsk(a *ask) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, old := range r.asks {
		if a.isRepetitionOf(old) {
			r.asks[id] = a
			return ""
		}
	}
	r.count++
	id := strconv.FormatInt(r.count, 10)
	r.asks[id] = a
	return id
}

// reply passes the client's answer on to the engine that asked. If that engine is
// gone, an answer of the user goes to the next engine, and any other is dropped.
func (r *Relay) reply(ctx context.Context, m jsonrpc.Message) {
	a, current := r.removeAsk(m)
	switch {
	case a == nil:
		r.log.Debug("dropped an answer to an unknown request", "id", string(m.ID))
	case current && m.Err != nil:
		a.link.refusal(ctx, a.id, m.Err)
	case current:
		a.link.answer(ctx, a.id, m.Result)
	case m.Err == nil:
		r.forward(ctx, r.answerRequest(a))
	}
}

// removeAsk removes and returns the ask that the client answers, and reports whether the
// engine that asked is still there.
func (r *Relay) removeAsk(m jsonrpc.Message) (a *ask, current bool) {
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
		r.answered = r.answered[max(0, len(r.answered)-maxAnswered):]
	}
	return a, current
}

// answerRequest makes the request that gives an answer of the user to another engine. An
// engine that gets it twice ignores the second one.
func (r *Relay) answerRequest(a *ask) *queuedMessage {
	id := quote(r.nextKey())
	p := &queuedMessage{id: string(id), method: a.handle, own: true}
	p.head = slices.Concat(appendHead(nil, id, p.method), []byte(`{"sessionId":`), quote(a.session),
		[]byte(`,"requestId":`), quote(a.request), []byte(`,"response":`), a.answer, closing)
	return p
}

// forgetAsksLocked drops the asks of a lost engine, except questions to the user. It
// returns the questions whose answers may not have reached the engine.
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

// cancelAsk passes an engine's cancellation of an ask on to the client.
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
