package turn

import "github.com/abide-run/abide/internal/event"

// Life is what is known of the session as a whole between its turns.
type Life struct {
	Idle      bool    // no work was begun since session.idle
	Aborted   bool    // the last turn was stopped from outside
	Suspended bool    // no step is taken until a client resumes the session
	Entry     string  // way in which the session was opened, until it is idle again: "new", "resume" or ""
	Last      *Ending // end of the last turn; nil once the session is idle
}

func (l *Life) fold(body event.Payload) {
	switch d := body.(type) {
	case event.SessionStartData:
		l.Entry = "new"
	case event.SessionResumeData:
		l.Entry = "resume"
	case event.SessionSuspendedData:
		l.Suspended = d.Suspended
	case event.UserMessageData:
		l.Idle, l.Aborted = false, false
	case event.SystemNotificationData:
		l.Idle = false
	case event.CommandExecuteData:
		l.leaveIdle(d.InputID)
	case event.CommandQueuedData:
		l.leaveIdle(d.InputID)
	case event.CommandDoneData:
		l.leaveIdle(d.InputID)
	}
}

// leaveIdle ends the idle time if a command was taken out of the queue.
func (l *Life) leaveIdle(inputID string) {
	if inputID != "" {
		l.Idle, l.Aborted = false, false
	}
}

// markAsked remembers that a hook about the end of the turn was asked. It reports
// false if no turn has ended.
func (l *Life) markAsked(kind string) bool {
	if l.Last == nil {
		return false
	}
	l.Last.Asked = l.Last.Asked || kind == event.HookAgentStop
	l.Last.Closed = l.Last.Closed || kind == event.HookSessionEnd
	return true
}

// clearEntry remembers that the hook about the opening of the session was asked.
func (l *Life) clearEntry() { l.Entry = "" }

// An Ending is how a turn ended.
type Ending struct {
	Turn   Turn
	Reason string // "complete", "error" or "abort"
	Error  string
	Final  bool // the model ended the turn with an answer without calls
	Asked  bool // the hook agentStop was asked
	Closed bool // the hook sessionEnd was asked
}

// The reasons of an Ending.
const (
	endComplete = "complete"
	endError    = "error"
	endAbort    = "abort"
)

// endingOf returns how a turn ends by the event with the given body.
func endingOf(t *Turn, body event.Payload) *Ending {
	if t == nil {
		return nil
	}
	end := &Ending{Turn: t.withoutCalls(), Reason: endAbort}
	switch d := body.(type) {
	case event.SessionErrorData:
		end.Reason, end.Error = endError, d.Message
	case event.AssistantTurnEndData:
		end.Reason, end.Final = endComplete, !t.Stop
	}
	return end
}

// Suspend returns what is to be recorded when a session is suspended during its
// work: open permission questions are cancelled, and everything else waits.
func Suspend(s *State) []event.Payload {
	asks := func(c *Call) bool { return c.Stage == WaitingPermission }
	return append(Interrupt(s, "Session suspended", asks), event.SessionSuspendedData{Suspended: true})
}

// Abort returns what is to be recorded when a turn is stopped from outside: its calls
// are over, its questions and hooks are closed, and what its calls have begun is to be
// ended, unless the turn only makes room for what waits in the queue.
func Abort(s *State, d event.AbortData) []event.Payload {
	const reason = "Session aborted"
	record := interrupt(s, reason, func(*Call) bool { return true }, d.Stops())
	record = append(record, CloseHooks(s, reason, func(h event.HookStartData) bool {
		return len(h.Calls) == 0 && (h.InputID == "" || !d.KeepQueue)
	})...)
	record = append(record, s.closeBudget()...)
	return append(append(record, s.DropCommand(reason)...), d)
}
