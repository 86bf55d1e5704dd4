package sqlite

import "context"

// Closed returns a channel that is closed when the store takes no more appends,
// because of Close or because one could not be stored. Err says which.
func (s *Store) Closed() <-chan struct{} { return s.closing }

// Err returns why the store takes no more appends, and nil while it does.
func (s *Store) Err() error { return s.open(context.Background()) }
