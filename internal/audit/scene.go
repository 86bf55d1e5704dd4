package audit

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"github.com/abide-run/abide/internal/audit/stored"
)

// A scene is the state of a session after some events, as far as several rule sets need
// it. Each rule set looks at the scene before an event is folded into it. The scene
// itself checks nothing: it folds invalid events as well as it can.
type scene struct {
	*findings
	folder  *stored.Folder
	places  places
	options Options
	session stored.Session
	seq     int64  // position of the last event that was folded
	parent  string // name of the session that it was forked from; empty if that was deleted
	own     bool   // true if the current event is the session's own, and not its parent's

	config    *body // body of the last session.configured; never nil
	name      string
	idle      bool // true if nothing has happened since the last session.idle
	aborted   bool // true if the last turn was stopped and no message came since
	suspended bool

	queue map[string]int64             // positions at which the waiting inputs were accepted, by id
	words map[string][sha256.Size]byte // digests of what the waiting inputs say, by id; without those that a hook may have changed
	last  string                       // kind of the last event
	turn  *turn                        // nil if there is none
	left  map[string]*call             // open calls of the parent, which a fork has to close

	exchanges  map[string]string // kinds of the events that asked open forms and commands, by request id
	compaction string            // id of the open compaction
	restores   int               // number of rewinds whose files are not restored yet
	tasks      map[string]*task  // background tasks, by key
	reports    map[int64]*report // reports that the model was not told, by position
}

// A turn is the work on one input.
type turn struct {
	interaction string
	next        int  // number of the next step
	open        bool // true if a step was started and not ended
	answered    bool // true if the model has answered in that step
	unanswered  bool // true if the last step has ended without an answer
	parked      bool // true if the step waits for its model
	calls       map[string]*call
}

// A call is a tool call of the current step.
type call struct {
	id, name    string
	arguments   json.RawMessage // as hooks have changed them
	asks        json.RawMessage // as the model has asked for them
	requested   int64           // position of the answer that asked for the call
	started     int64           // position of tool.execution_start
	begun       int64           // position of the last tool.execution_begun
	attempt     int
	key         string
	detaches    bool
	done        int64  // position of the terminal record
	interrupted bool   // true if the result says that the call was interrupted
	question    string // id of the open question; empty if there is none
	asked       string // kind of the event that asked it
	answer      string // outcome of the permission
	answered    string // request of the permission that has the outcome
	decision    *decision
	replay      string // replay class of the call
	shown       json.RawMessage
	hook        string // decision of a hook
	held        bool   // true if the call has ended and a hook is asked about its result
}

// A task is a command or an agent that runs on after the call that started it.
type task struct {
	started int64
	last    string // status that was reported last
	stopped time.Time
}

// A report is news of a task.
type report struct {
	key, text string
	ended     bool
}

func newScene(f *findings, folder *stored.Folder, places places, options Options, session stored.Session) *scene {
	return &scene{
		findings: f, folder: folder, places: places, options: options, session: session, idle: true, config: new(body),
		queue: make(map[string]int64), words: make(map[string][sha256.Size]byte), exchanges: make(map[string]string), tasks: make(map[string]*task), reports: make(map[int64]*report),
	}
}

// broken notes that a rule is broken at a position. What happened before a fork is
// its parent's.
func (s *scene) broken(rule string, seq int64, format string, args ...any) {
	if s.own || seq > s.session.Shared {
		s.add(Finding{Rule: rule, Session: s.session.Name, Seq: seq, Text: fmt.Sprintf(format, args...)})
	}
}

// unknown notes that a rule cannot be decided.
func (s *scene) unknown(rule string, seq int64, format string, args ...any) {
	if s.own || seq > s.session.Shared {
		s.doubt(Finding{Rule: rule, Session: s.session.Name, Seq: seq, Text: fmt.Sprintf(format, args...)})
	}
}

// call returns the call of an id: of the current step, or one that a fork has to
// close. It is nil if nobody asked for such a call.
func (s *scene) call(id string) *call {
	if s.turn != nil {
		if c := s.turn.calls[id]; c != nil {
			return c
		}
	}
	return s.left[id]
}

// expectCall returns the call that an event is about. It reports a call that the model has
// not requested and one that is finished, under the given rules, and then returns nil.
// does is what the event does, such as "begins".
func (s *scene) expectCall(e *stored.Event, b *body, does, unrequested, finished string) *call {
	c := s.call(b.ToolCallID)
	switch {
	case c == nil && s.turn == nil && s.aborted: // the turn was stopped: the rules of I8 report it
	case c == nil:
		s.broken(unrequested, e.Seq, "event %d %s the call %s, which the model has not requested in this step", e.Seq, does, b.ToolCallID)
	case c.done != 0:
		s.broken(finished, e.Seq, "event %d %s the call %s, which event %d has finished", e.Seq, does, c.id, c.done)
		return nil
	}
	return c
}

// asking returns the call that waits for the answer to a question.
func (s *scene) asking(requestID string) *call {
	for _, list := range []map[string]*call{s.calls(), s.left} {
		for _, c := range list {
			if c.question == requestID && requestID != "" {
				return c
			}
		}
	}
	return nil
}

// calls are those of the current step.
func (s *scene) calls() map[string]*call {
	if s.turn == nil {
		return nil
	}
	return s.turn.calls
}

// active reports whether there is something left to do.
func (s *scene) active() bool {
	return !s.idle || len(s.queue) > 0 || s.restores > 0 || s.compaction != ""
}

// questions counts the open questions that the index counts.
func (s *scene) questions() (n int) {
	for _, c := range s.calls() {
		if c.question != "" {
			n++
		}
	}
	for _, kind := range s.exchanges {
		if kind == "elicitation.requested" {
			n++
		}
	}
	return n
}

// take takes an event in.
func (s *scene) take(e *stored.Event, b *body) {
	s.seq, s.last = e.Seq, e.Type
	switch e.Type {
	case "session.configured":
		if s.config = b; s.turn != nil {
			s.turn.parked = false
		}
	case "session.named":
		s.name = b.Name
	case "input.accepted":
		s.queue[b.InputID] = e.Seq
		s.words[b.InputID] = sha256.Sum256([]byte(b.Prompt))
	case "queue.changed":
		s.reorder(b.Order)
	case "user.message":
		delete(s.queue, b.InputID)
		delete(s.words, b.InputID)
		s.speak(b.InteractionID)
		s.aborted = false
	case "system.notification":
		delete(s.reports, b.Report)
		s.speak(b.InteractionID)
	case "session.suspended":
		s.suspended = b.Suspended
	case "session.forked":
		s.fork()
	case "history.hidden":
		s.turn, s.idle, s.suspended = nil, true, false
		if string(b.Files) == "true" {
			s.restores++
		}
	case "files.restored":
		s.restores = max(0, s.restores-1)
	case "session.compaction_start":
		s.compaction = b.CompactionID
	case "session.compaction_complete":
		s.compaction = ""
	case "task.started":
		s.tasks[b.Key] = &task{started: e.Seq}
	case "task.reported":
		s.takeNews(e.Seq, b)
	case "abort":
		s.takeAbort(e, b)
	case "session.idle":
		s.turn, s.idle, s.aborted, s.suspended = nil, true, b.Aborted, false
	case "session.error":
		if b.EndsTurn {
			s.turn = nil
		}
	case "turn.ended":
		s.turn = nil
	default:
		s.takeExchange(e, b)
		s.takeStep(e, b)
	}
}

// speak opens a turn, or goes on with the one that there is.
func (s *scene) speak(interaction string) {
	s.idle = false
	if s.turn == nil || s.turn.interaction != interaction {
		s.turn = &turn{interaction: interaction, calls: make(map[string]*call)}
	}
}

func (s *scene) reorder(order []string) {
	kept := make(map[string]int64)
	for _, id := range order {
		if at, waits := s.queue[id]; waits {
			kept[id] = at
		}
	}
	s.queue = kept
	maps.DeleteFunc(s.words, func(id string, _ [sha256.Size]byte) bool { _, waits := kept[id]; return !waits })
}

// fork lets go of what is the parent's. Calls that it has open are the fork's to
// close.
func (s *scene) fork() {
	s.left = make(map[string]*call)
	for id, c := range s.calls() {
		if c.done == 0 {
			s.left[id] = c
		}
	}
	s.turn, s.idle, s.restores, s.suspended = nil, true, 0, false
	clear(s.queue)
	clear(s.words)
	clear(s.exchanges)
	clear(s.tasks)
	clear(s.reports)
}

func (s *scene) takeNews(seq int64, b *body) {
	if t := s.tasks[b.Key]; t != nil {
		if t.last = b.Status; b.Ended {
			delete(s.tasks, b.Key)
		}
	}
	if b.Text != "" {
		s.reports[seq] = &report{b.Key, b.Text, b.Ended}
	}
}

// takeAbort ends the turn. Tasks that its calls have left are remembered as
// stopped if a person wanted the session to stop, and not only to do what waits in
// the queue.
func (s *scene) takeAbort(e *stored.Event, b *body) {
	for _, c := range s.calls() {
		if t := s.tasks[c.key]; t != nil && c.interrupted && (!b.KeepQueue || b.Hold) {
			t.stopped = e.Time
		}
	}
	s.turn, s.aborted, s.suspended = nil, true, false
	if !b.KeepQueue {
		clear(s.queue)
		clear(s.words)
	}
}

// takeExchange takes in what clients are asked beside the model's calls.
func (s *scene) takeExchange(e *stored.Event, b *body) {
	switch e.Type {
	case "elicitation.requested", "command.execute", "command.queued":
		s.exchanges[b.RequestID] = e.Type
	case "elicitation.completed", "command.completed":
		delete(s.exchanges, b.RequestID)
	}
	switch e.Type {
	case "command.execute", "command.queued", "command.completed":
		if b.InputID != "" {
			delete(s.queue, b.InputID)
			delete(s.words, b.InputID)
			s.idle, s.aborted = false, false
		}
	}
}

// takeStep takes in what happens in a step.
func (s *scene) takeStep(e *stored.Event, b *body) {
	switch e.Type {
	case "assistant.turn_start":
		if t := s.turn; t != nil {
			t.next, t.open, t.answered, t.unanswered, t.parked = t.next+1, true, false, false, false
			t.calls = make(map[string]*call)
		}
	case "assistant.message", "assistant.unfinished":
		if t := s.turn; t != nil {
			t.answered, t.parked = true, false
			for _, r := range b.ToolRequests {
				t.calls[r.ToolCallID] = &call{id: r.ToolCallID, name: r.Name, arguments: r.Arguments, asks: r.Arguments, requested: e.Seq}
			}
		}
	case "assistant.turn_end":
		if t := s.turn; t != nil {
			t.open, t.unanswered, t.parked = false, t.open && !t.answered, false
			t.calls = make(map[string]*call)
		}
	case "turn.parked", "turn.fallback", "session.model_change":
		if t := s.turn; t != nil {
			t.parked = e.Type == "turn.parked"
		}
	case "hook.start":
		delete(s.words, b.InputID) // the hook may say something else
		for _, id := range b.ToolCallIDs {
			if c := s.call(id); c != nil && isObject(b.Outcome) {
				c.held = true
			}
		}
	case "hook.end":
		for id, said := range b.Outputs {
			if c := s.call(id); c != nil {
				c.heed(said)
			}
		}
	}
	if c := s.call(b.ToolCallID); c != nil {
		c.take(e, b)
	} else if c := s.asking(b.RequestID); c != nil {
		c.take(e, b)
	}
}

// heed takes in what a hook says of a call. Clients can say anything: what cannot
// be read says nothing.
func (c *call) heed(said json.RawMessage) {
	var v struct {
		Decision string          `json:"permissionDecision"`
		Args     json.RawMessage `json:"modifiedArgs"`
	}
	if json.Unmarshal(said, &v) != nil {
		return
	}
	if c.hook = v.Decision; len(v.Args) > 0 && v.Args[0] == '{' {
		c.arguments = v.Args
	}
}

// take takes in what happens to a call.
func (c *call) take(e *stored.Event, b *body) {
	switch e.Type {
	case "tool.execution_start":
		c.started = e.Seq
	case "permission.requested":
		c.question, c.asked, c.shown = b.RequestID, e.Type, b.PermissionRequest
	case "external_tool.requested", "user_input.requested", "exit_plan_mode.requested":
		c.question, c.asked = b.RequestID, e.Type
	case "permission.completed":
		c.answer, c.answered = resultKind(b.Result), b.RequestID
		c.question = ""
	case "external_tool.completed", "user_input.completed", "exit_plan_mode.completed":
		c.question = ""
	case "tool.execution_begun":
		c.begun, c.attempt, c.key, c.detaches = e.Seq, b.Attempt, b.Key, b.Detaches
		c.decision, c.replay = b.Decision, b.Replay
	case "tool.execution_complete":
		c.done, c.question, c.interrupted = e.Seq, "", errorCode(b.Error) == "interrupted"
	}
}

// errorCode is why a call gave nothing; empty if it gave something.
func errorCode(raw json.RawMessage) string {
	var e struct{ Code string }
	_ = json.Unmarshal(raw, &e) // without a code it is none
	return e.Code
}

// resultKind is how a permission ended.
func resultKind(raw json.RawMessage) string {
	var r struct{ Kind string }
	_ = json.Unmarshal(raw, &r) // without a kind it is none that allows anything
	return r.Kind
}
