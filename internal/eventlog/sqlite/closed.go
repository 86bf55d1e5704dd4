package sqlite

// Closed implements eventlog.Store.
func (s *Store) Closed() <-chan struct{} { return s.queue.Closed() }

// Err implements eventlog.Store.
func (s *Store) Err() error { return s.queue.Err() }
