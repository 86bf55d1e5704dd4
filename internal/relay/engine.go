package relay

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/abide-run/abide/internal/jsonrpc"
)

// A link is the connection to one engine.
type link struct {
	conn net.Conn
	out  *jsonrpc.Outbox
	over chan struct{} // closed when the engine is lost
	end  func()

	mu    sync.Mutex
	calls map[string]chan *jsonrpc.Error // answers to requests of the relay, by id
}

func newLink(conn net.Conn) *link {
	l := &link{
		conn:  conn,
		out:   jsonrpc.NewOutbox(conn, outboxSize, 0), // the engine may take its time
		over:  make(chan struct{}),
		calls: make(map[string]chan *jsonrpc.Error),
	}
	l.end = sync.OnceFunc(func() {
		close(l.over)
		conn.Close()
	})
	return l
}

var errLost = errors.New("the engine is gone")

// ErrRefused means that the engine does not serve this process: it has another store.
var ErrRefused = errors.New("the engine refuses this connection")

const (
	// codeShuttingDown is the error code of an engine that is about to end; another engine
	// will take over.
	codeShuttingDown = -32000
	// codeToken is the error code of an engine that was not shown its token.
	codeToken = -32002
)

// errToken means that the engine does not know the token. It is read again: the engine puts
// it back if it was removed or changed.
var errToken = errors.New("the engine does not know the token of its data folder")

// tokenTries is the number of engines in a row that may refuse the token before the client
// is refused. That takes some seconds.
const tokenTries = 8

// engines serves the client with one engine after the other.
func (r *Relay) engines(ctx context.Context) error {
	for failures := 0; ; failures++ {
		conn, err := r.opt.Dial(ctx)
		if delay, ok := errors.AsType[*Delay](err); ok {
			r.postpone(ctx, delay)
			continue
		}
		if err != nil {
			return r.noEngine(ctx, err)
		}
		served, err := r.serve(ctx, conn)
		if errors.Is(err, errToken) && failures >= tokenTries {
			err = fmt.Errorf("%w: %w", ErrRefused, err)
		}
		if errors.Is(err, ErrRefused) {
			return r.noEngine(ctx, err)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		r.log.Info("the engine is gone; looking for another", "why", err)
		if served {
			failures = 0
		}
		pause(ctx, failures)
	}
}

// noEngine ends the relay because no engine will serve the client. The reason is recorded
// before the client is told: a client that leaves at once must not hide it.
func (r *Relay) noEngine(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	r.end(err)
	r.failOpenRequests(err)
	return err
}

// pause waits before the next engine is dialled, longer after each engine in a row that
// was lost before it served.
func pause(ctx context.Context, failures int) {
	if failures == 0 {
		return
	}
	timer := time.NewTimer(min(10*time.Millisecond<<min(failures, 10), time.Second))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// serve connects the client with an engine until either is gone. It reports
// whether the engine ever served, and how it ended.
func (r *Relay) serve(ctx context.Context, conn net.Conn) (served bool, err error) {
	l := newLink(conn)
	stop := context.AfterFunc(ctx, l.end)
	defer stop()
	r.mu.Lock()
	r.link = l
	r.mu.Unlock()

	var parts sync.WaitGroup
	parts.Go(func() {
		defer l.end()
		l.out.Run()
	})
	var ended error
	parts.Go(func() {
		defer l.end()
		ended = r.readEngine(ctx, l)
	})
	answered := make(chan struct{})
	parts.Go(func() { r.reportSilence(l, answered) })
	err = r.restoreClient(ctx, l)
	close(answered)
	if err == nil {
		<-l.over
		served = true
	}
	l.end()
	l.out.Close()
	parts.Wait()
	r.requeueUnanswered(ctx, l)
	return served, cmp.Or(err, ended)
}

// reportSilence calls Silent once a second until the engine has answered or is lost.
func (r *Relay) reportSilence(l *link, answered <-chan struct{}) {
	tick := time.NewTicker(silence)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			r.opt.Silent()
		case <-answered:
			return
		case <-l.over:
			return
		}
	}
}

// restoreClient connects to a new engine and restores the settings, attachments and open
// requests of the client.
func (r *Relay) restoreClient(ctx context.Context, l *link) error {
	if err := r.connect(ctx, l); err != nil {
		return err
	}
	if err := r.repeatSettings(ctx, l, false); err != nil {
		return err
	}
	if err := r.attach(ctx, l); err != nil {
		return err
	}
	if err := r.repeatSettings(ctx, l, true); err != nil {
		return err
	}
	return r.deliver(ctx, l)
}

// connect shows the token to a new engine, and then says who this is. An engine of an older
// version wants no token, and accepts any.
func (r *Relay) connect(ctx context.Context, l *link) error {
	if token := r.opt.Token(); token != "" {
		params := slices.Concat([]byte(`{"token":`), quote(token), closing)
		if err := r.greet(ctx, l, params); err != nil {
			return err
		}
	}
	return r.greet(ctx, l, r.connectParams)
}

// greet sends a connect request.
func (r *Relay) greet(ctx context.Context, l *link, params []byte) error {
	answer, err := r.call(ctx, l, "connect", params)
	if err != nil {
		return err
	}
	fault, err := l.wait(answer)
	switch {
	case err != nil:
		return err
	case fault != nil && fault.Code == codeShuttingDown:
		return errLost
	case fault != nil && fault.Code == codeToken:
		return fmt.Errorf("%w: %w", errToken, fault)
	case fault != nil:
		return fmt.Errorf("%w: %w", ErrRefused, fault)
	}
	return nil
}

// attach attaches the client to its sessions again. Other requests wait until that is
// done: the engine would not know their sessions.
func (r *Relay) attach(ctx context.Context, l *link) error {
	attachments := r.attachments()
	answers := make([]<-chan *jsonrpc.Error, len(attachments))
	for i, a := range attachments {
		var err error
		if answers[i], err = r.call(ctx, l, "abide.attach", a.encode()); err != nil {
			return err
		}
	}
	for i, a := range attachments {
		fault, err := l.wait(answers[i])
		if err != nil {
			return err
		}
		if fault != nil {
			r.log.Warn("a session could not be attached again", "session", a.session, "err", fault)
		}
	}
	return nil
}

// deliver sends the backlog; from then on messages are sent at once.
func (r *Relay) deliver(ctx context.Context, l *link) error {
	for {
		p, after := r.next()
		if p == nil {
			return nil
		}
		if err := l.out.Put(ctx, p.body(after)...); err != nil {
			return errLost
		}
		if err := r.deliverCancel(ctx, l, p); err != nil {
			return errLost
		}
	}
}

// next removes and returns the first queuedMessage of the backlog. If there is none, the
// engine is ready.
func (r *Relay) next() (*queuedMessage, int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.backlog) == 0 {
		r.ready = true
		r.changed.Broadcast()
		return nil, 0
	}
	p := r.backlog[0]
	r.backlog = r.backlog[1:]
	r.queued -= p.size()
	after := r.afterLocked(p)
	p.sends++
	return p, after
}

// deliverCancel repeats the client's cancellation after a repeated request. The
// cancellation of a new request is in the backlog itself.
func (r *Relay) deliverCancel(ctx context.Context, l *link, p *queuedMessage) error {
	r.mu.Lock()
	cancel, repeated := p.cancel, p.sends > 1
	r.mu.Unlock()
	if cancel == nil || !repeated {
		return nil
	}
	return l.out.Put(ctx, cancel)
}

// requeueUnanswered puts all unanswered requests back into the backlog, in their old order.
func (r *Relay) requeueUnanswered(ctx context.Context, l *link) {
	r.mu.Lock()
	r.link, r.ready = nil, false
	r.dropRepeatsLocked()
	unsure := r.forgetAsksLocked(l)
	hopeless := r.requeueLocked()
	r.mu.Unlock()
	for _, a := range unsure {
		r.forward(ctx, r.answerRequest(a))
	}
	for _, p := range hopeless {
		r.refuse(ctx, json.RawMessage(p.id), jsonrpc.Errorf(jsonrpc.CodeInternal,
			"%s: %d engines have died while they worked on this request; it is not tried again", p.method, p.sends))
	}
}

// requeueLocked rebuilds the backlog from the messages that are unanswered or were
// never sent, and returns the requests that seem to kill engines.
func (r *Relay) requeueLocked() (hopeless []*queuedMessage) {
	r.backlog = slices.DeleteFunc(r.backlog, func(p *queuedMessage) bool { return p.id != "" })
	for id, p := range r.requests {
		if p.sends >= maxSends {
			delete(r.requests, id)
			hopeless = append(hopeless, p)
		}
	}
	r.backlog = slices.AppendSeq(r.backlog, maps.Values(r.requests))
	slices.SortFunc(r.backlog, func(a, b *queuedMessage) int { return cmp.Compare(a.n, b.n) })
	r.queued = 0
	for _, p := range r.backlog {
		r.queued += p.size()
	}
	return slices.DeleteFunc(hopeless, func(p *queuedMessage) bool { return p.own })
}

// readEngine reads the engine's messages until the engine or the client is lost.
func (r *Relay) readEngine(ctx context.Context, l *link) error {
	in := jsonrpc.NewReader(l.conn, r.opt.MaxFrame)
	var buf []byte
	for {
		body, err := in.Next(buf)
		if err != nil {
			return err
		}
		if err := r.fromEngine(ctx, l, body); err != nil {
			return err
		}
		if buf = body; cap(buf) > outboxSize {
			buf = nil
		}
	}
}

// fromEngine handles a message of the engine. The caller reuses its bytes afterwards.
// The error is that of the client's or the engine's outbox.
func (r *Relay) fromEngine(ctx context.Context, l *link, body []byte) error {
	m, fault := jsonrpc.Scan(body)
	switch {
	case fault != nil:
		r.log.Warn("the engine sent an invalid message", "err", fault)
		return nil
	case m.IsAnswer():
		return r.answer(ctx, l, m, body)
	case m.IsRequest():
		return r.ask(ctx, l, m)
	case m.Method == cancelMethod:
		return r.cancelAsk(ctx, l, member(m.Params, "id"))
	case m.Method == "session.event" && !r.recordPosition(m.Params):
		return nil
	case m.Method == "session.lifecycle":
		r.forgetDeleted(m.Params)
	}
	return r.out.Put(ctx, body)
}

// answer passes an answer of the engine on to the caller. A second answer is dropped.
func (r *Relay) answer(ctx context.Context, l *link, m jsonrpc.Message, body []byte) error {
	if l.answered(m) || !r.finishRequest(m) {
		return nil
	}
	return r.out.Put(ctx, body)
}

// finishRequest removes a request that was answered, and reports whether its answer is for
// the client.
func (r *Relay) finishRequest(m jsonrpc.Message) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.requests[string(m.ID)]
	if p == nil {
		return string(m.ID) == "null"
	}
	if fault := m.Failure(); fault != nil && fault.Code == codeShuttingDown {
		return false // the next engine gets it
	}
	delete(r.requests, p.id)
	r.changed.Broadcast()
	r.applyAnswerLocked(p, m)
	if p.own && m.Err != nil {
		r.log.Warn("could not pass an answer of the user on to the engine", "err", m.Failure())
	}
	return !p.own
}

// call sends a request of the relay.
func (r *Relay) call(ctx context.Context, l *link, method string, params []byte) (<-chan *jsonrpc.Error, error) {
	id := quote(r.nextKey())
	answer := l.expect(id)
	if l.out.Put(ctx, appendHead(nil, id, method), params, closing) != nil {
		return nil, errLost
	}
	return answer, nil
}

// expect returns the channel for the answer to a request of the relay.
func (l *link) expect(id []byte) <-chan *jsonrpc.Error {
	answer := make(chan *jsonrpc.Error, 1)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls[string(id)] = answer
	return answer
}

// answered delivers an answer to a request of the relay, and reports whether it was
// one.
func (l *link) answered(m jsonrpc.Message) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	answer := l.calls[string(m.ID)]
	if answer == nil {
		return false
	}
	delete(l.calls, string(m.ID))
	answer <- m.Failure()
	return true
}

// wait waits for the answer to a request of the relay.
func (l *link) wait(answer <-chan *jsonrpc.Error) (*jsonrpc.Error, error) {
	select {
	case fault := <-answer:
		return fault, nil
	case <-l.over:
		return nil, errLost
	}
}

// answer sends the result of an ask to the engine.
func (l *link) answer(ctx context.Context, id, result json.RawMessage) error {
	return l.out.Put(ctx, []byte(`{"jsonrpc":"2.0","id":`), id, []byte(`,"result":`), result, closing)
}

// refusal sends the error of an ask to the engine.
func (l *link) refusal(ctx context.Context, id, fault json.RawMessage) error {
	return l.out.Put(ctx, []byte(`{"jsonrpc":"2.0","id":`), id, []byte(`,"error":`), fault, closing)
}
