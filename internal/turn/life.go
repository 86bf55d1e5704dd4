package turn

import "github.com/abide-run/abide/internal/event"

// Life is where the session stands between its turns.
type Life struct {
	Idle      bool    // nothing has happened since session.idle
	Aborted   bool    // the last turn was stopped from outside
	Suspended bool    // nothing is begun until somebody comes back
	Entry     string  // how the session was opened, until it is idle again: "new", "resume" or ""
	Last      *Ending // the turn that is over, until the session is idle
}

// An Ending is a turn that is over, until the session is idle.
type Ending struct {
	Turn   Turn
	Reason string // "complete", "error" or "abort"
	Error  string
	Final  bool // the model had the last word
	Asked  bool // agentStop was asked
	Closed bool // sessionEnd was asked
}

// The reasons of an Ending.
const (
	EndComplete = "complete"
	EndError    = "error"
	EndAbort    = "abort"
)

// Suspend returns what is to be recorded when a session is to rest in the middle
// of what it does: open permissions are cancelled, all else waits.
func Suspend(s *State) []event.Payload {
	asks := func(c *Call) bool { return c.Stage == WaitingPermission }
	return append(Interrupt(s, "Session suspended", asks), event.SessionSuspendedData{Suspended: true})
}
