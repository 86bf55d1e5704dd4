// Package turn is the loop of an agent: decide from the log, do, record.
//
// [State] is what a session's log says, and nothing else: folding the same
// events gives the same state, in any process. [Next] decides from it what
// comes next, and is pure. Whoever carries a step out records it before the next
// one is chosen, so that going on after a crash is the same as going on.
//
// A call goes intended → permitted → begun → finished. It is begun only after
// that was stored, and it has exactly one terminal record.
package turn

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/transcript"
	"github.com/abide-run/abide/internal/window"
)

// A State is what the log says of a session: one part for each feature.
type State struct {
	Position
	About      About
	Setup      Setup
	Prompt     Prompt
	Permission Permission
	Queue      Queue
	Life       Life
	Hooks      Hooks
	Exchanges  Exchanges // what clients were asked beside the model's calls
	Tasks      Tasks
	Context    Context
	Skills     Skills
	Rewind     Rewind
	Keys       Keys

	Turn    *Turn              // nil between turns
	History transcript.History // what the model sees
	Memory  Memory             // how far the session was remembered
	todos   todos              // what the model has written down to be done
}

// Position is which session it is, and where its log ends.
type Position struct {
	ID     event.SessionID
	Seq    event.Seq // the last event that was folded
	Parent string    // id of the last event that clients are shown
	Shown  event.Seq // number of events that clients are shown
}

// About is what lists of sessions say.
type About struct {
	Started   time.Time
	Name      string
	AutoNamed bool   // nobody gave the session its name
	Summary   string // the first line of the first message
	Totals    event.Totals
}

// Setup is what the session was told to be like.
type Setup struct {
	Config   event.SessionConfiguredData
	Declared event.ClientDeclaredData
	Tools    []event.ExternalTool // the tools of clients, as last declared
	Offered  int                  // changes when the offered tools may have changed
	Model    string
	mode     string // the mode that the session works in, unless a message names another
}

// Prompt is what the system prompt is made of.
type Prompt struct {
	System  string // the prompt as it was last stored
	Context string // what hooks have added to it
	Loaded  string // what the project's files tell the model
}

// Permission is what is allowed beside the configuration.
type Permission struct {
	Grants []event.Grant     // what people have allowed for the rest of the session
	Rules  event.ClientRules // what clients have said about permissions
}

// Queue is what was accepted and is not delivered yet.
type Queue struct {
	Inputs []event.InputAcceptedData
	Paused bool // the queue is held until somebody lets it go
	Halted bool // the queue is held until something new comes
}

// Life is where the session stands between its turns.
type Life struct {
	Idle      bool    // nothing has happened since session.idle
	Aborted   bool    // the last turn was stopped from outside
	Suspended bool    // nothing is begun until somebody comes back
	Entry     string  // how the session was opened, until it is idle again: "new", "resume" or ""
	Last      *Ending // the turn that is over, until the session is idle
}

// Hooks is what clients with hooks are being asked.
type Hooks struct {
	Open   []event.HookStartData
	Inputs map[string]HookedInput // what hooks have made of accepted inputs, by their ids
}

// Tasks is what goes on in the background, and what the model was not told of it.
type Tasks struct {
	Open    []Task   // the oldest first
	Reports []Report // news of tasks that the model was not told yet
}

// Context is how full the model's window is, and what is done about it.
type Context struct {
	Compaction *Compaction // the compaction that was begun and has not ended
	Epochs     int         // number of epochs that were opened, hidden ones included
	Gate       window.Gate // keeps thresholds from firing for nothing
	Measured   Measured
	Switched   bool // the model was changed and has not answered yet
}

// Skills is which skills there are, and what the model was told of them.
type Skills struct {
	Found   []event.Skill
	told    map[string]bool // the skills that were invoked, by name
	waiting []Words         // the texts of invoked skills that the model is told before its next request
}

// Rewind is what was taken back.
type Rewind struct {
	Hidden  []event.HistoryHiddenData // in the order in which it was taken back
	Restore []event.HistoryHiddenData // the rewinds whose files have yet to be restored
}

// Keys remembers the requests that came with idempotency keys.
type Keys struct{ sent, won recent }

// A Task is what goes on without the call that began it.
type Task struct {
	Key  string
	Last string // the status that was reported last
}

// A Report is news of a task.
type Report struct {
	Seq event.Seq
	event.TaskReportedData
}

// recent remembers the idempotency keys of the last requests, for clients that
// lost the reply and ask again.
type recent []event.Request

// maxRecent is how many requests are remembered: more than a client has under
// way at a time.
const maxRecent = 64

func (r *recent) add(q event.Request) {
	if *r = append(*r, q); len(*r) > maxRecent {
		*r = append((*r)[:0:0], (*r)[1:]...)
	}
}

// Sent returns what identifies the request that came with a key, if it came
// lately: the id of an input, the position of a resume.
func (s *State) Sent(key string) string {
	for _, k := range s.Keys.sent {
		if key != "" && k.Key == key {
			return k.ID
		}
	}
	return ""
}

// Resumed returns the position of the session.resume that came with a key, and
// zero if none came lately.
func (s *State) Resumed(key string) event.Seq {
	n, _ := strconv.ParseInt(s.Sent(key), 10, 64) // zero for anything else
	return event.Seq(n)
}

// Won reports whether the answer that closed a question lately came with that
// key.
func (s *State) Won(requestID, key string) bool {
	for _, k := range s.Keys.won {
		if key != "" && k.Key == key && k.ID == requestID {
			return true
		}
	}
	return false
}

// A Turn is the work on one input, and on what was said meanwhile.
type Turn struct {
	InteractionID string
	Mode          string // in which the agent works on it; empty: that of the session
	Phase         Phase
	Step          int // number of the current model request, from 0
	Calls         []*Call
	Stop          bool                    // end after this step, whatever the model would say
	Repeats       int                     // how often in a row the same calls gave the same results
	Prompt        string                  // what was said first
	Headers       []string                // the inputs that came with headers for its requests
	Words         []Words                 // of hooks, that the model is to be told
	Kept          bool                    // a hook did not let it end
	Failure       *event.SessionErrorData // what it is given up for, if no hook objects
	Retries       int                     // how often a hook has objected
	Compactions   int                     // that its next request has waited for
	Full          string                  // why the next request cannot be made to fit
	last          [sha256.Size]byte
}

// A Phase is where a turn stands.
type Phase int

// The phases of a turn.
const (
	Ready    Phase = iota // the model is to be asked
	Asking                // it is being asked
	Calling               // its calls are being made
	Answered              // the step can be ended
)

// A Call is a tool call of the current step.
type Call struct {
	Request  event.ToolRequest
	Stage    Stage
	Question string          // request id of the open question, in the Waiting stages
	Asked    event.Event     // the question itself
	Grants   []event.Grant   // of a permission: what a yes for the whole session covers
	Shown    json.RawMessage // of a permission: what was to be decided
	Granted  bool            // more than the session's scope allows it
	Detaches bool            // what it does can go on without it
	Key      string
	Attempt  int
	Begun    time.Time               // when the first attempt was recorded
	Verdict  Verdict                 // of the hook that was asked before it
	Outcome  *event.ToolCompleteData // what it gave, while a hook is asked about that
	Heard    bool                    // that hook was heard
	result   [sha256.Size]byte
}

// A Stage is how far a call has come.
type Stage int

// The stages of a call.
const (
	Requested         Stage = iota // the model asked for it
	Intended                       // tool.execution_start is stored
	Checking                       // a hook is asked about it
	Cleared                        // the hook was heard
	WaitingPermission              // somebody has to say yes
	Permitted                      // somebody said yes
	WaitingExternal                // a client carries it out
	WaitingUser                    // a person has to answer
	WaitingPlan                    // a person has to approve a plan
	Begun                          // it was begun in this runtime
	Held                           // it was made, and a hook is asked about what it gave
	Finished                       // it has its terminal record
)

// Waiting reports whether the call waits for an answer from outside.
func (c *Call) Waiting() bool {
	return c.Stage == WaitingPermission || c.Stage == WaitingExternal || c.Stage == WaitingUser || c.Stage == WaitingPlan
}

// New returns the state before the first event.
func New(id event.SessionID) *State {
	return &State{Position: Position{ID: id}, Life: Life{Idle: true}}
}

// Active reports whether there is anything left to do.
func (s *State) Active() bool {
	return s.Turn != nil || len(s.Queue.Inputs) > 0 || !s.Life.Idle || len(s.Rewind.Restore) > 0
}

// Questions returns the calls that wait for an answer.
func (s *State) Questions() []*Call {
	if s.Turn == nil {
		return nil
	}
	var open []*Call
	for _, c := range s.Turn.Calls {
		if c.Waiting() {
			open = append(open, c)
		}
	}
	return open
}

// Asks reports whether a question to a person is open.
func (s *State) Asks() bool {
	for _, c := range s.Questions() {
		if c.Stage == WaitingUser || c.Stage == WaitingPlan {
			return true
		}
	}
	return false
}

// Question returns the call that waits for an answer to the given request.
func (s *State) Question(requestID string) *Call {
	for _, c := range s.Questions() {
		if c.Question == requestID {
			return c
		}
	}
	return nil
}

// Load folds a stored log. The state is the one that folding every event gives,
// but most of what happened before the session was last idle is never decoded.
// Two rules make that so, and whoever changes the fold has to keep them:
//
//   - What only some kinds of events change (see lasts) depends on nothing else.
//   - Everything else is cleared when the session is idle (see rest).
func (s *State) Load(events []event.Event) error {
	before, rest := cutAtIdle(events)
	for _, e := range before {
		s.count(e)
		if s.lasts(e) {
			if err := s.fold(e); err != nil {
				return err
			}
		}
	}
	if err := s.loadKeys(before); err != nil {
		return err
	}
	for _, e := range rest {
		s.count(e)
		if err := s.take(e); err != nil {
			return err
		}
	}
	s.History.Load(events)
	if err := s.measured(events); err != nil {
		return err
	}
	return s.lastShown(events)
}

// cutAtIdle cuts a log in two. The second part begins with the last session.idle,
// or is the whole log if there is none.
func cutAtIdle(events []event.Event) (before, rest []event.Event) {
	for i, e := range slices.Backward(events) {
		if e.Type == event.SessionIdle {
			return events[:i], events[i:]
		}
	}
	return nil, events
}

// lasts reports whether an event changes what an idle session still knows. A
// message does so only as long as the session has no summary, or as a skill waits
// to be told.
func (s *State) lasts(e event.Event) bool {
	return e.Kind().Lasting || (e.Type == event.UserMessage && (s.About.Summary == "" || len(s.Skills.waiting) > 0))
}

// rest clears all that is not kept while the session is idle. It is cleared even
// if there should be nothing: what Load has skipped must not make a difference.
func (s *State) rest(d event.SessionIdleData) {
	s.Life.Idle, s.Life.Aborted, s.About.Totals = true, d.Aborted, d.Totals
	s.Turn, s.Queue.Inputs = nil, nil
	s.Hooks.Open, s.Hooks.Inputs, s.Life.Entry, s.Life.Last = nil, nil, "", nil
	s.Queue.Halted, s.Life.Suspended, s.Context.Switched = false, false, false
	s.Context.Gate.Reset()
}

// loadKeys remembers the keys that folding the events would remember. It reads
// backwards, until no older key would still be remembered.
func (s *State) loadKeys(events []event.Event) error {
	for _, e := range slices.Backward(events) {
		if len(s.Keys.sent) == maxRecent && len(s.Keys.won) == maxRecent {
			break
		}
		if !e.Kind().Keyed || len(*s.recent(e)) == maxRecent || !e.Mentions("key") {
			continue
		}
		q, err := requestOf(e)
		if err != nil {
			return err
		}
		if q.Key != "" {
			*s.recent(e) = append(*s.recent(e), q)
		}
	}
	slices.Reverse(s.Keys.sent)
	slices.Reverse(s.Keys.won)
	return nil
}

// recent is where the request is remembered that an event records.
func (s *State) recent(e event.Event) *recent {
	if e.Type.Closes() {
		return &s.Keys.won
	}
	return &s.Keys.sent
}

// foldKey remembers the key that a request came with.
func (s *State) foldKey(e event.Event) error {
	if !e.Kind().Keyed {
		return nil
	}
	q, err := requestOf(e)
	if err == nil && q.Key != "" {
		s.recent(e).add(q)
	}
	return err
}

// requestOf reads which request an event of a keyed kind records.
func requestOf(e event.Event) (event.Request, error) {
	body, err := e.Body()
	if err != nil {
		return event.Request{}, err
	}
	q := body.(event.Requester).Request()
	q.ID = cmp.Or(q.ID, strconv.FormatInt(int64(e.Seq), 10))
	return q, nil
}

// lastShown finds the event that the next one names as its parent.
func (s *State) lastShown(events []event.Event) error {
	for i := len(events) - 1; i >= 0; i-- {
		if events[i].Kind().Listed() {
			head, err := events[i].Head()
			s.Parent = head.ID
			return err
		}
	}
	return nil
}

// Apply takes in the next event.
func (s *State) Apply(e event.Event) error {
	s.count(e)
	s.History.Add(e)
	return s.take(e)
}

func (s *State) take(e event.Event) error {
	if e.Kind().Listed() {
		head, err := e.Head()
		if err != nil {
			return err
		}
		s.Parent = head.ID
	}
	if err := s.foldKey(e); err != nil {
		return err
	}
	return s.fold(e)
}

func (s *State) count(e event.Event) {
	s.Seq = e.Seq
	if e.Kind().Listed() {
		s.Shown++
	}
	s.Memory.count(e)
}

// fold is the meaning of every event.
func (s *State) fold(e event.Event) error {
	switch e.Type {
	case event.SessionStart:
		return with(e, func(d event.SessionStartData) {
			s.About.Started, _ = time.Parse(time.RFC3339, d.StartTime)
			s.Setup.Model, s.Life.Entry = d.SelectedModel, "new"
		})
	case event.SessionConfigured:
		s.Setup.Offered++
		return with(e, func(d event.SessionConfiguredData) { s.Setup.Config = d })
	case event.ClientDeclared:
		s.Setup.Offered++
		return with(e, func(d event.ClientDeclaredData) { s.Setup.Declared = d })
	case event.ToolsDeclared:
		s.Setup.Offered++
		return with(e, func(d event.ToolsDeclaredData) { s.Setup.Tools = d.Tools })
	case event.SessionNamed:
		return with(e, func(d event.SessionNamedData) { s.About.Name, s.About.AutoNamed = d.Name, d.Auto })
	case event.ModeChanged:
		return with(e, func(d event.ModeChangedData) {
			s.Setup.mode = d.NewMode
			if s.Turn != nil {
				s.Turn.Mode = ""
			}
		})
	case event.SessionModelChange:
		s.Context.Gate.Reset()
		return with(e, func(d event.SessionModelChangeData) {
			s.Setup.Model, s.Context.Switched = d.NewModel, d.PreviousModel != ""
		})
	case event.CompactionStart, event.CompactionComplete, event.ContextEpoch:
		return s.foldContext(e)
	case event.InstructionsLoaded:
		return with(e, func(d event.InstructionsLoadedData) { s.Prompt.Loaded = d.Text })
	case event.SystemMessage:
		return with(e, func(d event.SystemMessageData) {
			if d.EpochID != "" {
				return // what a compaction tells is not the prompt
			}
			s.Prompt.System, s.Prompt.Context = d.Content, d.Context
			if s.Turn != nil {
				s.Turn.Words = spoken(s.Turn.Words, SourceSessionStart)
			}
		})
	case event.InputAccepted:
		return with(e, s.inputAccepted)
	case event.UserMessage:
		return with(e, s.userMessage)
	case event.SessionIdle:
		return with(e, s.rest)
	case event.SessionForked:
		s.Turn, s.Queue.Inputs, s.Life.Idle, s.Rewind.Restore = nil, nil, true, nil
		s.Tasks.Open, s.Tasks.Reports = nil, nil // the parent's
		s.Hooks.Open, s.Hooks.Inputs, s.Life.Entry, s.Life.Last = nil, nil, "", nil
		s.Exchanges, s.Queue.Paused, s.Queue.Halted, s.Life.Suspended = Exchanges{}, false, false, false
	case event.SessionResume:
		s.Life.Entry = "resume"
		return nil
	case event.HookStart:
		return with(e, s.hookStarted)
	case event.HookEnd:
		return with(e, s.hookEnded)
	case event.HistoryHidden:
		s.forgetTurn()
		s.Skills.told, s.Skills.waiting = nil, nil // what the model was told may be among it
		s.outdate()
		s.Turn, s.Life.Idle, s.Life.Suspended = nil, true, false
		return with(e, func(d event.HistoryHiddenData) {
			if d.Files {
				s.Rewind.Restore = append(s.Rewind.Restore, d)
			}
			s.todos.hide(e.Seq, d)
			s.Rewind.Hidden = append(slices.Clip(s.Rewind.Hidden), d)
		})
	case event.TaskStarted:
		return with(e, func(d event.TaskStartedData) { s.Tasks.Open = append(s.Tasks.Open, Task{Key: d.Key}) })
	case event.TaskReported:
		return with(e, func(d event.TaskReportedData) { s.reported(e.Seq, d) })
	case event.MemoryExtracted, event.MemoryConsolidated, event.MemoryRecalled:
		return s.foldMemory(e)
	case event.TodoChanged:
		return with(e, func(d event.TodoChangedData) { s.todos.changed(e.Seq, d) })
	case event.SystemNotification:
		return with(e, s.notified)
	case event.FilesRestored:
		s.Rewind.Restore = s.Rewind.Restore[min(1, len(s.Rewind.Restore)):]
	case event.SessionError:
		return with(e, func(d event.SessionErrorData) {
			if d.EndsTurn {
				s.over(EndError, d.Message)
			}
		})
	case event.Abort:
		return with(e, s.aborted)
	case event.TurnEnded:
		s.over(EndAbort, "")
	default:
		if err := s.foldExchange(e); err != nil {
			return err
		}
	}
	if s.Turn == nil {
		return s.between(e)
	}
	return s.foldTurn(e)
}

// foldTurn is the meaning of the events of a running turn.
func (s *State) foldTurn(e event.Event) error {
	t := s.Turn
	switch e.Type {
	case event.AssistantTurnStart:
		t.Phase, t.Compactions = Asking, 0
	case event.AssistantUsage:
		return with(e, s.used)
	case event.AssistantMessage:
		s.Context.Switched = false
		return with(e, t.answered)
	case event.AssistantTurnEnd:
		s.stepEnded()
	case event.ToolStart:
		return with(e, func(d event.ToolStartData) { t.move(d.ToolCallID, Intended) })
	case event.PermissionAsked:
		return with(e, func(d event.PermissionAskedData) {
			if c := t.ask(e, d.ToolCallID, WaitingPermission, d.RequestID); c != nil {
				c.Grants, c.Shown = d.Grants, d.PermissionRequest
			}
		})
	case event.PermissionDone:
		return s.permissionDone(e)
	case event.ExternalAsked:
		return with(e, func(d event.ExternalAskedData) {
			t.ask(e, d.ToolCallID, WaitingExternal, d.RequestID)
		})
	case event.UserInputAsked:
		return with(e, func(d event.UserInputAskedData) {
			t.ask(e, d.ToolCallID, WaitingUser, d.RequestID)
		})
	case event.ExitPlanAsked:
		return with(e, func(d event.ExitPlanAskedData) {
			t.ask(e, d.ToolCallID, WaitingPlan, d.RequestID)
		})
	case event.ToolBegun:
		head, err := e.Head()
		if err != nil {
			return err
		}
		return with(e, func(d event.ToolBegunData) {
			if c := t.move(d.ToolCallID, Begun); c != nil {
				if c.Begun.IsZero() {
					c.Begun = head.Time
				}
				c.Key, c.Attempt, c.Granted, c.Detaches = d.Key, d.Attempt, d.Granted, d.Detaches
			}
		})
	case event.ToolComplete:
		return with(e, s.callFinished)
	case event.TaskDone:
		t.Stop = true
	}
	return nil
}

// with decodes an event's body and hands it on.
func with[T any](e event.Event, use func(T)) error {
	d, err := event.As[T](e)
	if err == nil {
		use(d)
	}
	return err
}

func (s *State) inputAccepted(d event.InputAcceptedData) {
	s.Queue.Halted = false
	if d.Mode == event.ModeInterrupt {
		s.Queue.Inputs = append([]event.InputAcceptedData{d}, s.Queue.Inputs...)
		return
	}
	s.Queue.Inputs = append(s.Queue.Inputs, d)
}

func (s *State) unqueue(inputID string) {
	for i, in := range s.Queue.Inputs {
		if in.InputID == inputID {
			s.Queue.Inputs = append(s.Queue.Inputs[:i:i], s.Queue.Inputs[i+1:]...)
			delete(s.Hooks.Inputs, inputID)
			return
		}
	}
}

func (s *State) userMessage(d event.UserMessageData) {
	headers := s.headed(d.InputID)
	s.unqueue(d.InputID)
	s.Context.Gate.Reset()
	s.Life.Idle, s.Life.Aborted = false, false
	if s.About.Summary == "" {
		s.About.Summary = summary(d.Content)
	}
	if s.Turn == nil {
		s.forgetTurn()
		s.Turn = &Turn{InteractionID: d.InteractionID, Prompt: d.Content}
		s.About.Totals.Turns++
	}
	if headers {
		s.Turn.Headers = append(slices.Clip(s.Turn.Headers), d.InputID)
	}
	s.Skills.waiting = spoken(s.Skills.waiting, d.Source)
	s.Turn.Words = spoken(s.Turn.Words, d.Source)
	if d.AgentMode != "" {
		s.Turn.Mode = d.AgentMode
	}
}

// headed reports whether an input that waits came with headers.
func (s *State) headed(inputID string) bool {
	return slices.ContainsFunc(s.Queue.Inputs, func(in event.InputAcceptedData) bool { return in.InputID == inputID && in.Headers })
}

// spoken returns what is left to be told when the model was told the first words
// of a source.
func spoken(words []Words, source string) []Words {
	for i, w := range words {
		if w.Source == source {
			return slices.Delete(slices.Clone(words), i, i+1)
		}
	}
	return words
}

// over ends the turn.
func (s *State) over(reason, message string) {
	t := s.Turn
	s.forgetTurn()
	if s.Turn = nil; t == nil {
		return
	}
	last := *t
	last.Calls = nil
	s.Life.Last = &Ending{Turn: last, Reason: reason, Error: message, Final: reason == EndComplete && !t.Stop}
}

// forgetTurn lets go of what was asked about a turn. Hooks of inputs that wait
// are not about one.
func (s *State) forgetTurn() {
	s.Life.Last = nil
	s.Hooks.Open = slices.DeleteFunc(slices.Clone(s.Hooks.Open), func(h event.HookStartData) bool { return h.InputID == "" })
}

// summary is the first line of a text, cut to what fits a list.
func summary(text string) string {
	const most = 100
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if runes := []rune(line); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return line
}

// reported takes in news of a task.
func (s *State) reported(seq event.Seq, d event.TaskReportedData) {
	for i := range s.Tasks.Open {
		if s.Tasks.Open[i].Key != d.Key {
			continue
		}
		if s.Tasks.Open[i].Last = d.Status; d.Ended {
			s.Tasks.Open = slices.Delete(slices.Clone(s.Tasks.Open), i, i+1)
		}
		break
	}
	if d.Text != "" {
		s.Tasks.Reports = append(s.Tasks.Reports, Report{seq, d})
	}
}

// notified takes in that the model is told something, which opens a turn if
// there is none.
func (s *State) notified(d event.SystemNotificationData) {
	s.Tasks.Reports = slices.DeleteFunc(slices.Clone(s.Tasks.Reports), func(r Report) bool { return r.Seq == d.Report })
	s.Life.Idle = false
	if s.Turn == nil {
		s.forgetTurn()
		s.Turn = &Turn{InteractionID: d.InteractionID}
		s.About.Totals.Turns++
	}
}

func (s *State) aborted(d event.AbortData) {
	s.over(EndAbort, "")
	s.Life.Aborted = true
	s.Queue.Halted, s.Life.Suspended = false, false
	if !d.KeepQueue {
		s.Queue.Inputs, s.Hooks.Inputs, s.Hooks.Open = nil, nil, nil
	}
}

func (t *Turn) answered(d event.AssistantMessageData) {
	t.Phase, t.Calls = Calling, make([]*Call, len(d.ToolRequests))
	for i, r := range d.ToolRequests {
		t.Calls[i] = &Call{Request: r}
	}
	t.settle()
}

// move brings a call to a stage. Calls that are not part of the current step,
// or are finished, stay as they are.
func (t *Turn) move(callID string, to Stage) *Call {
	for _, c := range t.Calls {
		if c.Request.ToolCallID == callID && c.Stage != Finished {
			c.Stage, c.Question, c.Asked = to, "", event.Event{}
			return c
		}
	}
	return nil
}

// ask makes a call wait for the answer to a question.
func (t *Turn) ask(e event.Event, callID string, stage Stage, requestID string) *Call {
	c := t.move(callID, stage)
	if c != nil {
		c.Question, c.Asked = requestID, e
	}
	return c
}

// settle ends the calling phase when every call is finished.
func (t *Turn) settle() {
	for _, c := range t.Calls {
		if c.Stage != Finished {
			return
		}
	}
	t.Phase = Answered
}

func (s *State) permissionDone(e event.Event) error {
	d, err := event.As[event.PermissionDoneData](e)
	if err != nil {
		return err
	}
	switch d.Result.Kind {
	case event.Approved, event.ApprovedForSession, event.ApprovedForLocation:
		s.Turn.move(d.ToolCallID, Permitted)
	}
	s.Permission.Grants = append(s.Permission.Grants, d.Grants...)
	return nil
}

// between is the meaning of the events of a turn that is over already.
func (s *State) between(e event.Event) error {
	switch e.Type {
	case event.PermissionDone: // what was allowed for the rest of the session is kept
		return with(e, func(d event.PermissionDoneData) { s.Permission.Grants = append(s.Permission.Grants, d.Grants...) })
	case event.AssistantUsage:
		return with(e, s.anchored)
	}
	return nil
}

func (s *State) callFinished(d event.ToolCompleteData) {
	c := s.Turn.move(d.ToolCallID, Finished)
	if c == nil {
		return
	}
	if s.final(c, d) {
		s.Turn.Stop = true
	}
	c.result = sha256.Sum256([]byte(transcript.ResultText(d)))
	s.Turn.settle()
}

// external returns the client tool of that name.
func (s *State) external(name string) (event.ExternalTool, bool) {
	for _, t := range s.Setup.Tools {
		if t.Name == name {
			return t, true
		}
	}
	return event.ExternalTool{}, false
}

// stepEnded closes a step: the turn is over, or the model is to be asked again.
func (s *State) stepEnded() {
	t := s.Turn
	if t.Stop || len(t.Calls) == 0 {
		s.over(EndComplete, "")
		return
	}
	t.countRepeats()
	t.Phase, t.Calls = Ready, nil
	t.Step++
}

// countRepeats watches for a model that runs in circles.
func (t *Turn) countRepeats() {
	h := sha256.New()
	enc := json.NewEncoder(h)
	for _, c := range t.Calls {
		_ = enc.Encode(c.Request.Name) // a hash takes everything
		h.Write(c.Request.Arguments)
		h.Write(c.result[:])
	}
	var sum [sha256.Size]byte
	h.Sum(sum[:0])
	if sum != t.last {
		t.Repeats = 0
	}
	t.Repeats++
	t.last = sum
}
