package turn

// Waits reports whether an engine that has just started would do nothing: every
// next step is somebody else's, who has to answer a question or to resume the
// session. Clients with hooks may or may not come back, so both must agree.
func (s *State) Waits() bool {
	nothing := func(string) bool { return false }
	for _, hooks := range []bool{false, true} {
		_, waits := Next(s, Now{Running: nothing, Fresh: nothing, Asked: nothing, Hooks: hooks && s.Setup.Declared.Hooks}).(Wait)
		if !waits {
			return false
		}
	}
	return true
}
