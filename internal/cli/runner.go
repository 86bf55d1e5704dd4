package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/client"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/model/offline"
)

// A runner follows one session until there is an answer, or a reason why there is none.
type runner struct {
	app     *app
	flags   *runFlags
	client  *client.Client
	view    view
	started time.Time
	schema  json.RawMessage   // JSON schema of the answer to the prompt; empty if its form is free
	files   []json.RawMessage // attachments of the prompt

	id              event.SessionID
	watching        bool // true when the first event has arrived
	again           bool // true if an earlier run has shown the session
	managed         bool // true if the session cannot be set to allow everything
	away            bool // true if the session works in another workspace than the machine of the engine
	seen            outcome
	before          spent // what the session had spent when the run began
	events          feed
	prompter        *prompter        // nil without a terminal
	left            bool             // true if the person at the terminal has left a question with Ctrl-D
	refuses         bool             // true if the command itself refuses something
	offlineReported bool             // true when the use of the offline model was reported, or need not be
	poll            <-chan time.Time // times at which to look for new events without a notification; nil for never
	answered        map[string]bool  // ids of the questions that this run has answered
	interrupted     <-chan struct{}  // closed when the turn is to be stopped; nil before there is one
	queues          bool             // true if a turn was under way when the prompt was sent, which waits for its end
	acknowledged    atomic.Bool      // true when the stop of the turn is stored
	shown           event.Seq        // position of the last stored event that was shown or read
}

func (a *app) newRunner(f *runFlags) *runner {
	return &runner{
		app: a, flags: f, view: a.newView(f.format), started: time.Now(),
		prompter: a.newPrompter(), answered: make(map[string]bool),
	}
}

// run opens the session, sends the prompt and follows the turn.
func (r *runner) run(ctx context.Context, prompt string) error {
	open := r.create
	if r.flags.resumes() {
		open = r.resume
	}
	active, err := open(ctx)
	if err != nil {
		return err
	}
	r.queues = active
	if err := r.answerGiven(ctx); err != nil {
		return err
	}
	if strings.TrimSpace(prompt) == "" {
		if !active {
			return r.nothingToDo()
		}
		return r.follow(ctx)
	}
	if r.prompter == nil && r.waiting() {
		return r.needs(true)
	}
	r.takeInterrupt()
	id, err := r.client.Send(ctx, api.SendParams{
		SessionID: r.id, Prompt: prompt, OutputSchema: r.schema, Attachments: r.files, RequireAttachments: true,
	})
	if err != nil {
		return attachError(err)
	}
	r.seen.expect(id)
	r.seen.accepted(event.InputAcceptedData{InputID: id, OutputSchema: r.schema}) // clients are not shown input.accepted
	if r.flags.detach {
		return nil
	}
	return r.follow(ctx)
}

// takeInterrupt makes Ctrl-C stop the turn from now on. Requests that may begin a turn
// are not cancelled by it: the turn could begin after it was stopped.
func (r *runner) takeInterrupt() {
	r.interrupted = r.app.opts.signals.takeInterrupt(r.leaveAtOnce)
}

// create creates the session. The client chooses its id, so that no event is missed.
func (r *runner) create(ctx context.Context) (active bool, err error) {
	r.id = event.SessionID(event.NewID())
	p, err := r.openParams()
	if err != nil {
		return false, err
	}
	elsewhere, err := r.elsewhere()
	if err != nil {
		return false, err
	}
	r.away = elsewhere
	if r.files, err = r.attached(); err != nil { // before a session is made for nothing
		return false, err
	}
	if elsewhere && r.flags.workspace != "" {
		if err := r.checkChoice(ctx, r.flags.workspace); err != nil {
			return false, err
		}
	}
	if !elsewhere {
		if p.WorkingDirectory, err = r.app.here(); err != nil {
			return false, err
		}
	}
	r.events = &attachedFeed{stream: r.client.Watch(r.id)}
	if _, err := r.client.Create(ctx, p); err != nil {
		return false, err
	}
	if elsewhere {
		if p.WorkingDirectory, err = r.notePlace(ctx); err != nil {
			return false, err
		}
	}
	r.begin(p, p.WorkingDirectory)
	return false, r.watch(ctx)
}

// elsewhere reports whether a new session works in another workspace than the machine of
// the engine, or with servers on other machines, which decide where it works.
func (r *runner) elsewhere() (bool, error) {
	if len(r.app.servers) > 0 {
		return true, nil
	}
	loaded, err := r.app.settings()
	if err != nil {
		return false, err
	}
	choice := cmp.Or(r.flags.workspace, loaded.Config.Workspace.Default, event.LocalWorkspace)
	return choice != event.LocalWorkspace, nil
}

// notePlace says in which workspace a session works, if that is not the machine of the
// engine, and returns its working directory.
func (r *runner) notePlace(ctx context.Context) (dir string, err error) {
	info, err := r.client.Metadata(ctx, r.id)
	if err != nil || info == nil {
		return "", err
	}
	dir = place(*info)
	if info.Abide != nil && info.Abide.Workspace != nil {
		r.note(fmt.Sprintf("the session works in the workspace %s, in %s", plain(info.Abide.Workspace.Label()), plain(dir)))
	}
	return dir, nil
}

// watch waits for the first event, which shows that the client is attached. Before that,
// events that are not stored, such as the pieces of an answer, would be missed.
func (r *runner) watch(ctx context.Context) error {
	for {
		if err := r.showEvents(ctx); err != nil || r.watching {
			return err
		}
		if err := r.wait(ctx); err != nil {
			return err
		}
	}
}

// openParams returns the parameters of the session.
func (r *runner) openParams() (api.OpenParams, error) {
	model, provider, err := r.flags.answerer(r.app)
	p := api.OpenParams{
		SessionID: r.id, Model: model, Provider: provider, ReasoningEffort: r.flags.effort, ClientName: api.ClientCLI,
		RequestPermission: true, RequestUserInput: true, Streaming: r.streaming(),
		Abide: &api.OpenAbide{Name: r.flags.name, Approve: r.flags.rules(), MaxSteps: r.flags.maxSteps, Keep: true, Sealed: r.flags.sealed},
	}
	if err != nil {
		return p, err
	}
	if p.Abide.Limit, err = r.flags.limit(); err != nil {
		return p, err
	}
	if p.SystemMessage, err = r.flags.systemMessage(); err != nil {
		return p, err
	}
	if p.Abide.Workspace, err = chosenWorkspace(r.flags.workspace); err != nil {
		return p, err
	}
	// This process ends with the answer: a summary in the background would be lost,
	// and requested again by the next run.
	p.InfiniteSessions = &event.InfiniteSessions{Background: new(float64)}
	return p, err
}

// streaming reports whether answers are wanted in pieces.
func (r *runner) streaming() bool {
	switch r.flags.format {
	case formatText:
		return terminal(r.app.out) != nil
	case formatStream:
		return r.flags.partial
	}
	return false
}

func (r *runner) begin(p api.OpenParams, cwd string) {
	if r.again {
		return
	}
	r.view.begin(opening{
		Type: "system", Subtype: "init", SessionID: r.id, Cwd: cwd, Model: p.Model,
		Approve: p.Abide.Approve, Resumed: r.flags.resumes(), Version: r.app.opts.Version,
	})
}

// resume attaches to a session and reads its state.
func (r *runner) resume(ctx context.Context) (active bool, err error) {
	info, err := r.findSession(ctx)
	if err != nil {
		return false, err
	}
	r.id = info.SessionID
	r.away = info.Abide != nil && info.Abide.Workspace != nil
	if r.files, err = r.attached(); err != nil {
		return false, err
	}
	p, err := r.openParams()
	if err != nil {
		return false, err
	}
	keep := true
	p.ContinuePending = &keep
	joined := &attachedFeed{stream: r.client.Watch(r.id)}
	r.events = joined
	r.takeInterrupt()
	r.before, _ = r.ledger(ctx)
	if _, err := r.client.Resume(ctx, p); err != nil {
		return false, err
	}
	st, err := r.client.Status(ctx, r.id)
	if err != nil {
		return false, err
	}
	if r.away {
		if _, err := r.notePlace(ctx); err != nil {
			return false, err
		}
	}
	r.begin(p, place(info))
	r.offlineReported = true // it was reported when the session began
	if err := r.readStored(ctx, joined); err != nil {
		return false, err
	}
	if r.managed && r.flags.yolo {
		r.note("--yolo has no effect: the client that made this session does not let it allow everything, so it asks as its rules say")
	}
	return st.Active, nil
}

// findSession returns the session that the flags name.
func (r *runner) findSession(ctx context.Context) (api.SessionInfo, error) {
	if !r.flags.last {
		return find(ctx, r.client, r.flags.resume)
	}
	cwd, err := r.app.here()
	if err != nil {
		return api.SessionInfo{}, err
	}
	for last, err := range r.client.Sessions(ctx, api.Filter{Cwd: cwd}) {
		return last, err
	}
	return api.SessionInfo{}, usagef("there is no session of %s to continue: start one with abide run, or name one with --resume", cwd)
}

func place(info api.SessionInfo) string {
	if info.Context == nil {
		return ""
	}
	return info.Context.Cwd
}

// readStored folds the stored events of the session. Events that arrive both from the log
// and live are counted once.
func (r *runner) readStored(ctx context.Context, joined *attachedFeed) error {
	agents := make(map[event.SessionID]string) // ids of calls
	for e, err := range r.client.Events(ctx, r.id, 0) {
		if err != nil {
			return err
		}
		if err := joined.markStored(e); err != nil {
			return err
		}
		if err := r.noteConfigured(e); err != nil {
			return err
		}
		if err := noteAgent(e, agents); err != nil {
			return err
		}
		r.shown = e.Seq
		if err := r.seen.apply(e); err != nil {
			return err
		}
	}
	return r.readAgents(ctx, agents)
}

// noteAgent remembers which call may have started an agent: the key of the call is the id of
// the agent's session.
func noteAgent(e event.Event, agents map[event.SessionID]string) error {
	if e.Type != event.ToolBegun {
		return nil
	}
	return decodeFor(e, func(d event.ToolBegunData) { agents[event.SessionID(d.Key)] = d.ToolCallID })
}

// readAgents folds the open questions of the agents that the turn waits for. They are in the
// logs of the agents, and are not sent again.
func (r *runner) readAgents(ctx context.Context, agents map[event.SessionID]string) error {
	for id, call := range agents {
		if !r.seen.calls[call] {
			continue
		}
		open, err := r.client.Questions(ctx, id)
		if err != nil {
			continue // the call has started no agent
		}
		r.seen.spentMore = true
		for _, q := range open {
			e, err := event.Parse(0, q.Event)
			if err != nil {
				return err
			}
			if err := r.seen.apply(e.OfAgent(id)); err != nil {
				return err
			}
		}
	}
	return nil
}

// noteConfigured remembers whether the session can be set to allow everything.
func (r *runner) noteConfigured(e event.Event) error {
	if e.Type != event.SessionConfigured {
		return nil
	}
	return decodeFor(e, func(d event.SessionConfiguredData) { r.managed = d.Managed != nil && d.Managed.NoBypass })
}

// nothingToDo ends a run without an unfinished turn, with the last answer. A turn that
// was stopped is over and has none.
func (r *runner) nothingToDo() error {
	if r.seen.aborted && r.seen.failure == nil {
		return fmt.Errorf("the last turn was stopped, and no prompt waits; to go on, send a message: abide run --resume %s \"…\"", r.id)
	}
	r.note("no turn is unfinished; this is the result of the last one")
	return r.turnResult()
}

// turnResult returns the error of a turn that is over, or nil. A command that was given a
// no has done what it was told, also if the turn ends because of it.
func (r *runner) turnResult() error {
	err := r.seen.ending(r.id)
	if refused, ok := errors.AsType[*turnRefused](err); ok && r.refuses {
		r.note(refused.Error())
		return nil
	}
	if err == nil && r.seen.answer == "" {
		r.note("the turn ended without an answer")
	}
	return err
}

// note prints a note on stderr.
func (r *runner) note(text string) {
	if !r.app.quiet {
		r.app.err.printf("abide: %s\n", text)
	}
}

// follow shows events until the turn is over or needs an answer.
func (r *runner) follow(ctx context.Context) error {
	if v, ok := r.view.(*liveView); ok {
		var looking sync.WaitGroup
		defer looking.Wait()
		soon, cancel := context.WithCancel(ctx)
		defer cancel()
		looking.Go(func() { v.followTails(soon, r.client, r.id) })
	}
	for {
		if err := r.showEvents(ctx); err != nil {
			return err
		}
		switch {
		case r.seen.done:
			return r.turnResult()
		case r.prompter != nil:
			r.ask()
		case r.waiting():
			return r.needs(false)
		}
		if err := r.wait(ctx); err != nil {
			return err
		}
	}
}

// showEvents shows and folds the events that have arrived.
func (r *runner) showEvents(ctx context.Context) error {
	for e, err := range r.events.take(ctx) {
		if err != nil {
			return err
		}
		r.watching = true
		if !e.Type.Hidden() {
			r.view.event(e)
		}
		if err := r.seen.apply(e); err != nil {
			return err
		}
		r.dropAnswered()
		r.shown = max(r.shown, e.Seq)
		if e.Type == event.Abort {
			r.acknowledged.Store(true)
		}
		r.reportOffline()
		if r.seen.done {
			break
		}
	}
	return r.app.out.err
}

// reportOffline prints once that the offline model answers, if no model was named.
func (r *runner) reportOffline() {
	if r.offlineReported || r.seen.model == "" {
		return
	}
	r.offlineReported = true
	if r.flags.model == "" && r.seen.model == offline.Name {
		r.note("no provider is configured, so the built-in offline model answers; set OPENAI_API_KEY, or see docs/MODELS.md")
	}
}

// wait waits for events, for a typed line, or for the end.
func (r *runner) wait(ctx context.Context) error {
	select {
	case <-r.events.ready():
		return nil
	case <-r.poll:
		return nil
	case line, ok := <-r.prompter.line():
		return r.reply(ctx, line, ok)
	case <-r.interrupted:
		return errInterrupted
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-r.client.Done():
		return fmt.Errorf("lost the connection to the engine: %w", r.client.Err())
	}
}

// waiting reports whether the turn cannot continue without an answer.
func (r *runner) waiting() bool {
	return r.seen.waiting() && len(r.unanswered()) > 0
}

// unanswered returns the open questions that this run has not answered.
func (r *runner) unanswered() []question {
	var list []question
	for _, q := range r.seen.open {
		if !r.answered[q.RequestID] {
			list = append(list, q)
		}
	}
	return list
}

// needs returns the error that lists the open questions.
func (r *runner) needs(unsent bool) error {
	code, open := exitNeedsInput, r.unanswered()
	if slices.ContainsFunc(open, question.asksBudget) {
		code = exitLimit
	}
	return &exitError{code, &needsInput{session: r.id, questions: open, unsent: unsent, left: r.left}}
}

// end shows the result. If a signal ended the run, the error says what becomes of the
// turn.
func (r *runner) end(ctx context.Context, err error) error {
	r.showNothing()
	r.prompter.takeBack()
	var signal stopSignal
	if err != nil && errors.As(context.Cause(ctx), &signal) {
		switch err = signal; {
		case r.id == "":
		case r.acknowledged.Load():
			err = fmt.Errorf("%w; the turn is stopped; to go on: abide run --resume %s \"…\"", signal, r.id)
		case r.isInterrupted():
			err = fmt.Errorf("%w; it is not known whether the turn was stopped; to make sure: abide abort %s", signal, r.id)
		case r.app.stays:
			err = fmt.Errorf("%w; the turn goes on; to follow it: abide run --resume %s (to stop it: abide stop %s)", signal, r.id, r.id)
		default:
			err = fmt.Errorf("%w; to continue: abide run --resume %s (to drop the turn: abide abort %s)", signal, r.id, r.id)
		}
	}
	r.view.end(newResult(r.id, &r.seen, time.Since(r.started), err))
	return err
}

// isInterrupted reports whether a person has pressed Ctrl-C to stop the turn.
func (r *runner) isInterrupted() bool {
	select {
	case <-r.interrupted:
		return true
	default:
		return false
	}
}
