package sqlite

import "github.com/abide-run/abide/internal/event"

// key returns the key of a session's record that begins at a position.
func key(session int64, first event.Seq) int64 { return session<<32 | int64(first) }

// maxSeq is the largest position that fits into a key.
const maxSeq = 1<<32 - 1

// brokenPage is the reason of the damage that SQLite itself finds.
const brokenPage = "the page of the file that holds it cannot be read"
