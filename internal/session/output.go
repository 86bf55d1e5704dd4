package session

import "github.com/abide-run/abide/internal/model"

// outputForm returns the form that the answer of the turn must have; nil if it is free.
func (s *Session) outputForm() *model.Schema {
	if s.state.Turn == nil || len(s.state.Turn.Output.Schema) == 0 {
		return nil
	}
	text := s.state.Turn.Output.Schema
	return &model.Schema{JSON: text, Strict: model.Enforceable(text)}
}
