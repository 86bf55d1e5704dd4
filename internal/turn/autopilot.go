package turn

import "github.com/abide-run/abide/internal/event"

// final reports whether the result of a call ends the turn.
func (s *State) final(c *Call, d event.ToolCompleteData) bool {
	if d.Error != nil {
		return d.Error.Code == event.CodeRejected
	}
	x, external := s.external(c.Request.Name)
	return external && x.Terminal && d.Success
}
