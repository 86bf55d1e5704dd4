package session

import "github.com/abide-run/abide/internal/event"

// An activity is something that a session does beside its own goroutine. Its
// fields belong to the goroutine that drains the inbox; what the activity finds out
// comes back as an intent, which first checks that the activity was not stopped
// meanwhile.
type activity interface {
	// busy reports whether something is under way in this process.
	busy() bool
	// stop gives up what is under way and records nothing: the log decides whether
	// it is done again.
	stop(cause error)
	// abort gives up what is under way for the turn, and records how it ended. What is
	// under way for inputs that the abort keeps in the queue goes on.
	abort(tx *txn, d event.AbortData) error
}

// activities are all that a session can do at the same time. Whatever has to know
// or to end what is under way goes through this list.
func (s *Session) activities() [9]activity {
	return [...]activity{&s.asking, &s.calls, &s.hooks, &s.compacting, &s.handoffs, &s.samplings, &s.prompt, &s.restoring, &s.looking}
}

// isQuiet reports whether nothing is under way in this process. Whoever waits for an
// answer keeps the session in the host's list, and not its state in memory.
func (s *Session) isQuiet() bool {
	for _, a := range s.activities() {
		if a.busy() {
			return false
		}
	}
	return true
}

// stopWork gives up everything that is under way.
func (s *Session) stopWork(cause error) {
	for _, a := range s.activities() {
		a.stop(cause)
	}
}

// abortWork gives up everything that is under way for the turn.
func (tx *txn) abortWork(d event.AbortData) error {
	for _, a := range tx.s.activities() {
		if err := a.abort(tx, d); err != nil {
			return err
		}
	}
	return nil
}
