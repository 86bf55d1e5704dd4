package session

// warnOnce tells the operator what is wrong with files that are looked at before
// every turn: once, and again only when something else is wrong.
func (s *Session) warnOnce(what string, err error) {
	about := what + ": " + err.Error()
	if s.warned[about] {
		return
	}
	if s.warned == nil {
		s.warned = make(map[string]bool)
	}
	s.warned[about] = true
	s.host.log.Warn(what, "session", s.id, "err", err)
}
