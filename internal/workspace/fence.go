package workspace

import "errors"

// A Fence says on whose behalf a workspace is changed, where several servers share the work. A
// session and its agents have one server at a time. The fence of a later one is greater. A
// workspace refuses changes with a fence that is lower than one it has seen for the session, and
// begins none with a greater one before those with lower ones have ended.
type Fence struct {
	Session string // name of the session, or of the one that it works for; empty if there is one server
	Era     int64  // counts what may have lost numbers
	Number  int64
}

// Before reports whether the fence is lower than another one of the same session.
func (f Fence) Before(other Fence) bool {
	return f.Era < other.Era || f.Era == other.Era && f.Number < other.Number
}

// ErrFenced means that a later server has changed the workspace for the session.
var ErrFenced = errors.New("another server goes on with the session, so nothing was changed for this one")
