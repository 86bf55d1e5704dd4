package relay

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/abide-run/abide/internal/jsonrpc"
)

const cancelMethod = "$/cancelRequest"

// readClient reads the client's messages until it leaves.
func (r *Relay) readClient(ctx context.Context) error {
	in := jsonrpc.NewReader(r.client, r.opt.FirstFrame)
	for r.waitForSpace(ctx) {
		if r.isAdmitted() {
			in.SetMax(r.opt.MaxFrame)
		}
		body, err := in.Next(nil)
		if err == io.EOF {
			r.leave(ctx)
			return errLeft
		}
		if err != nil {
			return ordinary(r.refuseFrame(ctx, err))
		}
		r.fromClient(ctx, body)
	}
	return context.Cause(ctx)
}

// refuseFrame answers a malformed frame with an error, and returns the error of the
// read.
func (r *Relay) refuseFrame(ctx context.Context, err error) error {
	if fault, ok := errors.AsType[*jsonrpc.FrameError](err); ok {
		r.refuse(ctx, nil, jsonrpc.Errorf(jsonrpc.CodeParse, "%v", fault))
	}
	return err
}

// waitForSpace waits while there is no engine and the backlog is full. It returns false
// if ctx is done.
func (r *Relay) waitForSpace(ctx context.Context) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for !r.ready && (r.queued >= r.opt.Queue || len(r.requests) >= maxWaiting) && ctx.Err() == nil {
		r.changed.Wait()
	}
	return ctx.Err() == nil
}

// leave cancels the client's requests and waits a while for their answers: the client
// may have closed only its sending side.
func (r *Relay) leave(ctx context.Context) {
	r.mu.Lock()
	pending := slices.Collect(maps.Keys(r.requests))
	r.mu.Unlock()
	for _, id := range pending {
		r.cancelRequest(ctx, json.RawMessage(id))
	}
	ctx, cancel := context.WithTimeout(ctx, r.opt.Drain)
	defer cancel()
	stop := context.AfterFunc(ctx, r.wake)
	defer stop()
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.requests) > 0 && ctx.Err() == nil {
		r.changed.Wait()
	}
}

func (r *Relay) fromClient(ctx context.Context, body []byte) {
	m, fault := jsonrpc.Parse(body)
	if fault == nil {
		fault = r.check(m)
	}
	switch {
	case fault != nil:
		r.refuse(ctx, m.ID, fault)
	case !r.isAdmitted():
		// Only requests are answered before the client is admitted.
	case m.IsAnswer():
		r.reply(ctx, m)
	case m.Method == cancelMethod:
		r.cancelRequest(ctx, member(m.Params, "id"))
	default:
		r.forward(ctx, newQueuedMessage(m, r.nextKey()))
	}
}

// check returns the error of an invalid request of the client, or nil.
func (r *Relay) check(m jsonrpc.Message) *jsonrpc.Error {
	switch {
	case !m.IsRequest():
		return nil
	case m.Params != nil && !jsonrpc.IsObject(m.Params):
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "%s: the params must be an object", m.Method)
	case member(m.Params, "abideKey") != nil || member(m.Params, "abideAfter") != nil:
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "%s: abideKey and abideAfter are reserved", m.Method)
	case r.inFlight(m.ID):
		return jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "the id %s belongs to a request in flight", m.ID)
	case r.isAdmitted():
		return nil
	}
	fault := r.opt.Admit(m)
	r.admitted.Store(fault == nil && m.Method == "connect")
	return fault
}

func (r *Relay) isAdmitted() bool { return r.opt.Admit == nil || r.admitted.Load() }

func (r *Relay) inFlight(id json.RawMessage) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.requests[string(id)] != nil
}

// nextKey returns a key for a request that is never used again. The client's ids would
// not do: it may reuse an id when its request was answered.
func (r *Relay) nextKey() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count++
	return r.id + "/" + strconv.FormatInt(r.count, 10)
}

// forward sends a queuedMessage to the engine, or leaves it for the next one.
func (r *Relay) forward(ctx context.Context, p *queuedMessage) {
	if l := r.accept(p); l != nil {
		l.out.Put(ctx, p.body(0)...) // if the engine is lost, the next one gets the queuedMessage
	}
}

// accept registers a queuedMessage, and returns the engine if it is ready. Otherwise the
// queuedMessage waits in the backlog.
func (r *Relay) accept(p *queuedMessage) *link {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.allowRepeatsLocked(p)
	r.registerLocked(p)
	if r.ready {
		p.sends++
		return r.link
	}
	r.backlog = append(r.backlog, p)
	r.queued += p.size()
	return nil
}

func (r *Relay) registerLocked(p *queuedMessage) {
	r.count++
	p.n = r.count
	if p.id != "" {
		r.requests[p.id] = p
	}
}

// cancelRequest passes the client's cancellation of a request on to the engine.
func (r *Relay) cancelRequest(ctx context.Context, id json.RawMessage) {
	cancel := cancellation(id)
	r.mu.Lock()
	p := r.requests[string(id)]
	known := p != nil && !p.own
	if known {
		p.cancel = cancel // the next engine is told, too
	}
	r.mu.Unlock()
	if known {
		r.forward(ctx, &queuedMessage{head: cancel[:len(cancel)-1]})
	}
}

func cancellation(id []byte) []byte {
	return slices.Concat(appendHead(nil, nil, cancelMethod), []byte(`{"id":`), id, []byte(`}}`))
}

// refuse answers a request of the client with an error.
func (r *Relay) refuse(ctx context.Context, id json.RawMessage, fault *jsonrpc.Error) {
	if id == nil {
		id = json.RawMessage("null")
	}
	text, err := json.Marshal(fault)
	if err != nil {
		text, _ = json.Marshal(&jsonrpc.Error{Code: fault.Code, Message: fault.Message})
	}
	r.out.Put(ctx, []byte(`{"jsonrpc":"2.0","id":`), id, []byte(`,"error":`), text, closing)
}

// postpone refuses the requests that no engine has seen: they were not begun, and the
// client can send them again.
func (r *Relay) postpone(ctx context.Context, why *Delay) {
	r.mu.Lock()
	var refused []*queuedMessage
	r.backlog = slices.DeleteFunc(r.backlog, func(p *queuedMessage) bool {
		unseen := p.id != "" && !p.own && p.sends == 0
		if unseen {
			refused = append(refused, p)
			delete(r.requests, p.id)
			r.queued -= p.size()
		}
		return unseen
	})
	r.changed.Broadcast()
	r.mu.Unlock()
	for _, p := range refused {
		r.refuse(ctx, json.RawMessage(p.id), jsonrpc.Errorf(jsonrpc.CodeInternal,
			"%s was not begun, because there is no engine for now; it can be tried again: %v", p.method, why))
	}
}

// failOpenRequests answers all open requests with an error, because no engine will answer them.
// A client without an open request gets an error as well: otherwise it would only see
// its connection end.
func (r *Relay) failOpenRequests(cause error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	r.mu.Lock()
	lost := slices.DeleteFunc(slices.Collect(maps.Values(r.requests)), func(p *queuedMessage) bool { return p.own })
	clear(r.requests)
	r.mu.Unlock()
	for _, p := range lost {
		doubt := ""
		if p.sends > 0 {
			doubt = " (it is not known whether " + p.method + " was carried out: look before it is tried again)"
		}
		r.refuse(ctx, json.RawMessage(p.id), jsonrpc.Errorf(jsonrpc.CodeInternal, "%v%s", cause, doubt))
	}
	if len(lost) == 0 && r.isAdmitted() {
		r.refuse(ctx, nil, jsonrpc.Errorf(jsonrpc.CodeInternal, "%v", cause))
	}
}
