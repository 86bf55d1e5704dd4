package sqlite

import "context"

// Closed implements eventlog.Store.
func (s *Store) Closed() <-chan struct{} { return s.closing }

// Err implements eventlog.Store.
func (s *Store) Err() error { return s.open(context.Background()) }
