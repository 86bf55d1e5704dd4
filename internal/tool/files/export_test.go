package files

import "github.com/abide-run/abide/internal/tool/files/checkpoint"

// Names of this package for its external tests.

type Record = checkpoint.Record

// Save stores the old content, and records that a call is about to write.
func (c *Checkpoints) Save(r Record, old []byte) error { return c.store.Save(r, old) }

// Records returns the records in the order of their writes.
func (c *Checkpoints) Records() ([]Record, error) { return c.store.Records() }
