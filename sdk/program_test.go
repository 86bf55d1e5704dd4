package sdk

import (
	"context"
	"fmt"
	"sync"

	copilot "github.com/github/copilot-sdk/go"
	"github.com/github/copilot-sdk/go/rpc"
)

// A program is one that was written with the SDK. It can die at any time.
type program struct {
	*copilot.Client
	home *home

	mu       sync.Mutex
	sessions []*copilot.Session
}

// program starts one. It is dead at the end of the test in any case.
func (h *home) program(door copilot.RuntimeConnection) *program {
	h.t.Helper()
	p, err := h.tryProgram(door)
	h.must(err)
	return p
}

func (h *home) tryProgram(door copilot.RuntimeConnection) (*program, error) {
	p := &program{Client: copilot.NewClient(&copilot.ClientOptions{Connection: door}), home: h}
	h.t.Cleanup(p.die)
	return p, p.Start(h.ctx)
}

// die ends the program as SIGKILL does: what it started is killed, and its
// connection is cut. The SDK leaves the goroutines of its sessions behind, which
// are collected here.
func (p *program) die() {
	p.ForceStop()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.sessions {
		_ = s.Disconnect() // nobody hears it
	}
	p.sessions = nil
}

// A part is what a program has to say about a session, and who is to be asked.
type part struct {
	id         string
	tools      []copilot.Tool
	permission copilot.PermissionHandlerFunc // none if nil
	input      copilot.UserInputHandler      // none if nil
	pending    *bool                         // resume: continuePendingWork
	streaming  bool
	plan       copilot.ExitPlanModeRequestHandler // none if nil
	form       copilot.ElicitationHandler         // none if nil
}

// A session is one that a program is attached to.
type session struct {
	*copilot.Session
	*record
	program *program
}

func (p *program) create(o part) *session {
	p.home.t.Helper()
	s, err := p.begin(p.home.ctx, newRecord(p.home), o)
	p.home.must(err)
	return s
}

func (p *program) resume(id string, o part) *session {
	p.home.t.Helper()
	s, err := p.join(p.home.ctx, newRecord(p.home), id, o)
	p.home.must(err)
	return s
}

// begin makes a session.
func (p *program) begin(ctx context.Context, r *record, o part) (*session, error) {
	s, err := p.CreateSession(ctx, &copilot.SessionConfig{
		SessionID: o.id, Tools: o.tools, OnPermissionRequest: o.permission, OnUserInputRequest: o.input, OnEvent: r.take,
		Model: p.home.model.name, Provider: p.home.model.provider, Streaming: copilot.Bool(o.streaming),
		OnExitPlanModeRequest: o.plan, OnElicitationRequest: o.form,
	})
	return p.attached(s, r), err
}

// join comes to a session that exists.
func (p *program) join(ctx context.Context, r *record, id string, o part) (*session, error) {
	s, err := p.ResumeSession(ctx, id, &copilot.ResumeSessionConfig{
		Tools: o.tools, OnPermissionRequest: o.permission, OnUserInputRequest: o.input, OnEvent: r.take,
		ContinuePendingWork: o.pending, Streaming: copilot.Bool(o.streaming),
		Model: p.home.model.name, Provider: p.home.model.provider,
		OnExitPlanModeRequest: o.plan, OnElicitationRequest: o.form,
	})
	return p.attached(s, r), err
}

func (p *program) attached(s *copilot.Session, r *record) *session {
	if s == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sessions = append(p.sessions, s)
	return &session{Session: s, record: r, program: p}
}

// say gives the session an input.
func (s *session) say(prompt string) {
	s.home.t.Helper()
	_, err := s.SendPrompt(s.home.ctx, prompt)
	s.home.must(err)
}

// ask gives the session an input and returns what it is answered.
func (s *session) ask(prompt string) string {
	s.home.t.Helper()
	before := s.count(idle)
	s.say(prompt)
	return s.answer(before + 1)
}

// answer waits until the session has been idle so many times since it was
// attached, and returns the last words.
func (s *session) answer(times int) string {
	s.home.t.Helper()
	s.until("the turn has ended", func(events []copilot.SessionEvent) bool { return number(events, idle) >= times })
	for _, e := range s.seen() {
		if d, ok := e.Data.(*copilot.SessionErrorData); ok {
			s.home.t.Errorf("the session says: %s", d.Message)
		}
	}
	return lastWords(s.seen())
}

func lastWords(events []copilot.SessionEvent) (last string) {
	for _, e := range events {
		if d, ok := e.Data.(*copilot.AssistantMessageData); ok {
			last = d.Content
		}
	}
	return last
}

// events reads the session's history.
func (s *session) events() []copilot.SessionEvent {
	s.home.t.Helper()
	events, err := s.GetEvents(s.home.ctx)
	s.home.must(err)
	return events
}

// giveTool answers the call of a tool, and reports whether that counts.
func (s *session) giveTool(requestID, result string) bool {
	s.home.t.Helper()
	r, err := s.RPC.Tools.HandlePendingToolCall(s.home.ctx, &rpc.HandlePendingToolCallRequest{
		RequestID: requestID, Result: rpc.ExternalToolStringResult(result),
	})
	s.home.must(err)
	return r.Success
}

// decide answers a permission request, and reports whether that counts.
func (s *session) decide(requestID string, d rpc.PermissionDecision) bool {
	s.home.t.Helper()
	r, err := s.RPC.Permissions.HandlePendingPermissionRequest(s.home.ctx, &rpc.PermissionDecisionRequest{RequestID: requestID, Result: d})
	s.home.must(err)
	return r.Success
}

// tell answers a question to a person, and reports whether that counts.
func (s *session) tell(requestID, answer string) bool {
	s.home.t.Helper()
	r, err := s.RPC.UI.HandlePendingUserInput(s.home.ctx, &rpc.UIHandlePendingUserInputRequest{
		RequestID: requestID, Response: rpc.UIUserInputResponse{Answer: answer, WasFreeform: true},
	})
	s.home.must(err)
	return r.Success
}

// A record is what a program was shown of a session, in order.
type record struct {
	home *home

	mu      sync.Mutex
	events  []copilot.SessionEvent
	changed chan struct{}
	each    func(n int) // called for the nth event, before anybody knows of it; may be nil
}

func newRecord(h *home) *record { return &record{home: h, changed: make(chan struct{})} }

func (r *record) take(e copilot.SessionEvent) {
	r.mu.Lock()
	n := len(r.events) + 1
	r.mu.Unlock()
	if r.each != nil {
		r.each(n)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
	close(r.changed)
	r.changed = make(chan struct{})
}

func (r *record) seen() []copilot.SessionEvent {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]copilot.SessionEvent(nil), r.events...)
}

// until waits until something is true of what was shown.
func (r *record) until(what string, is func([]copilot.SessionEvent) bool) {
	r.home.t.Helper()
	if err := r.wait(r.home.ctx, is); err != nil {
		r.home.t.Fatalf("%v before %s; it was shown %v", err, what, kinds(r.seen()))
	}
}

func (r *record) wait(ctx context.Context, is func([]copilot.SessionEvent) bool) error {
	for {
		r.mu.Lock()
		done, changed := is(r.events), r.changed
		r.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// kinds names events, for people.
func kinds(events []copilot.SessionEvent) (all []copilot.SessionEventType) {
	for _, e := range events {
		all = append(all, e.Type())
	}
	return all
}

// The kinds of events that are counted.
const (
	idle    = copilot.SessionEventType("session.idle")
	resumed = copilot.SessionEventType("session.resume")
)

func number(events []copilot.SessionEvent, kind copilot.SessionEventType) (n int) {
	for _, e := range events {
		if e.Type() == kind {
			n++
		}
	}
	return n
}

func (r *record) count(kind copilot.SessionEventType) int { return number(r.seen(), kind) }

// all waits for so many events of one kind and returns them.
func all[T any](r *record, n int) (found []*T) {
	r.home.t.Helper()
	r.until(fmt.Sprintf("%d times %T", n, *new(T)), func(events []copilot.SessionEvent) bool {
		found = pick[T](events)
		return len(found) >= n
	})
	return found
}

// pick returns the events of one kind.
func pick[T any](events []copilot.SessionEvent) (found []*T) {
	for _, e := range events {
		if d, ok := e.Data.(any).(*T); ok {
			found = append(found, d)
		}
	}
	return found
}

// calls waits for the calls of these tools. It returns the ids of the requests.
func (r *record) calls(tools ...string) map[string]string {
	r.home.t.Helper()
	ids := make(map[string]string)
	for _, d := range all[copilot.ExternalToolRequestedData](r, len(tools)) {
		ids[d.ToolName] = d.RequestID
	}
	for _, name := range tools {
		if ids[name] == "" {
			r.home.t.Fatalf("the calls are %v, want %v", ids, tools)
		}
	}
	return ids
}

// A tally counts what happened.
type tally struct {
	home *home

	mu      sync.Mutex
	values  []string
	changed chan struct{}
}

func newTally(h *home) *tally { return &tally{home: h, changed: make(chan struct{})} }

func (y *tally) add(value string) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.values = append(y.values, value)
	close(y.changed)
	y.changed = make(chan struct{})
}

// asked are the values so far.
func (y *tally) asked() []string {
	y.mu.Lock()
	defer y.mu.Unlock()
	return append([]string(nil), y.values...)
}

// await waits for so many values.
func (y *tally) await(n int) {
	y.home.t.Helper()
	for {
		y.mu.Lock()
		done, changed := len(y.values) >= n, y.changed
		y.mu.Unlock()
		if done {
			return
		}
		select {
		case <-changed:
		case <-y.home.ctx.Done():
			y.home.t.Fatalf("%v: a handler was called for %q, want %d values", context.Cause(y.home.ctx), y.asked(), n)
		}
	}
}

// A lookup is a tool that counts how often it was asked.
type lookup struct {
	*tally
	name string
	give func(value string) string
	over <-chan struct{}
}

// lookup makes a tool. One without give holds its callers until the test is
// over, and gives something then that must not count.
func (h *home) lookup(name string, give func(string) string) *lookup {
	return &lookup{newTally(h), name, give, h.never()}
}

// tool is how it is declared.
func (l *lookup) tool() copilot.Tool {
	return copilot.Tool{
		Name: l.name, Description: "Looks up a value", Handler: l.run,
		Parameters: map[string]any{
			"type": "object", "required": []string{"value"},
			"properties": map[string]any{"value": map[string]any{"type": "string", "description": "Value to look up"}},
		},
	}
}

func (l *lookup) run(i copilot.ToolInvocation) (copilot.ToolResult, error) {
	arguments, _ := i.Arguments.(map[string]any)
	value, _ := arguments["value"].(string)
	l.add(value)
	if l.give == nil {
		<-l.over
		return copilot.ToolResult{TextResultForLLM: "ORIGINAL_SHOULD_NOT_WIN"}, nil
	}
	return copilot.ToolResult{TextResultForLLM: l.give(value)}, nil
}

// A judge decides about permissions, and counts how often.
type judge struct {
	*tally
	decision rpc.PermissionDecision
}

func (h *home) judge(d rpc.PermissionDecision) *judge { return &judge{newTally(h), d} }

func (j *judge) decide(copilot.PermissionRequest, copilot.PermissionInvocation) (rpc.PermissionDecision, error) {
	j.add("asked")
	return j.decision, nil
}

// A person answers questions, and counts how often.
type person struct {
	*tally
	words string
	when  <-chan struct{} // closed when the person speaks
}

// at makes a person who says the same to everything, at some time.
func (h *home) at(when <-chan struct{}, words string) *person {
	return &person{newTally(h), words, when}
}

// now has come.
var now = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// never comes before the test is over.
func (h *home) never() <-chan struct{} {
	c := make(chan struct{})
	h.t.Cleanup(func() { close(c) })
	return c
}

func (p *person) answer(r copilot.UserInputRequest, _ copilot.UserInputInvocation) (copilot.UserInputResponse, error) {
	p.add(r.Question)
	<-p.when
	return copilot.UserInputResponse{Answer: p.words, WasFreeform: true}, nil
}

// Some judges say nothing: what they are asked stays open.
var (
	yes     = &rpc.PermissionDecisionApproveOnce{}
	no      = &rpc.PermissionDecisionReject{}
	nobody  = &rpc.PermissionDecisionUserNotAvailable{}
	silence = &rpc.PermissionDecisionNoResult{}
)

// approve says yes to everything.
var approve = copilot.PermissionHandler.ApproveAll
