package audit

// Rules are the names of all rules, for tests that hold the table against the
// documents and against what is tried.
func Rules() map[string]string { return rules }
