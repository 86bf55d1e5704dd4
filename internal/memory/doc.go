// Package memory decides what is remembered: which part of a log is read next,
// what a model is asked about it, what its answer has to look like, and which
// sessions are due.
//
//   - An extraction reads the log from a position on, so that a compaction neither loses
//     nor repeats anything: each batch begins right after the last one.
//   - Messages are read in full; only results of tools are shortened. A batch that is
//     too long for one request is read with several.
//   - The answer of the model has to be valid in all its parts. Four empty lists are
//     valid.
//   - A session is idle if its last stored event is older than a limit. A session with
//     an unfinished turn is never due. A limit of zero turns consolidation off, and a
//     threshold of zero turns extraction off.
//   - The functions are pure: the time is an argument, and there is no I/O.
//
// Package worker carries the decisions out, and package book stores the pages.
// docs/MEMORY.md describes the whole feature.
//
// # Jobs
//
// A job is a row of the store (eventlog.Job). The pointer of a session is the To of its
// newest memory.extracted, so it is a fold over the log and cannot be lost.
//
// # Extraction, step by step
//
//  1. When a turn is over, in the transaction that ends it: if enough was said since the
//     pointer, a row is written. Nothing else happens before the client has its answer.
//  2. A worker takes the row, reads the log from the pointer on, asks [Next] for the
//     batch, and drives an [Extraction] with a model: Next, Ask, Take, until Next gives
//     nil. It has a time-out of its own, and nothing that a turn waits for.
//  3. The result is handed to the session as an intent, like any answer of a model.
//     The session's goroutine compares: if the pointer is still From-1 and nothing was
//     taken back meanwhile, it appends memory.extracted and deletes the row in one
//     transaction; else the batch is read again. So a job and the next turn share one
//     linear log, and a compaction meanwhile does not matter.
//  4. If the attempt failed, the row gets [Attempts] with one more failure and is due
//     at [Attempts.Again]. When it is [Attempts.Quarantined], memory.extracted is
//     appended with quarantined and the error and no findings: the pointer goes on, and
//     the range can be extracted again by hand.
//  5. If there is enough again, there is a next row.
//
// # Consolidation, step by step
//
//  1. The memory.extracted that found something writes a row, due when the session may
//     have been idle for long enough. Then [DueAt] decides by the time of the last stored
//     event, and the row is put off if it is not due.
//  2. A worker takes the row if the session is not busy, and turns the findings into
//     facts with [Extracted.Facts].
//  3. For each kind the page is read and changed with Page.Add. One that cannot be read
//     is left as it is, reported, and the job fails for this session alone.
//     ErrUnchanged means that there is nothing to write.
//  4. Pages are written by compare-and-set on the digest of what was read: if somebody
//     has edited it meanwhile, it is read and changed again. The old version is kept.
//  5. memory.consolidated is appended with the position through which findings are in the
//     pages. If the daemon dies between 4 and 5 the job runs again, and Add finds
//     nothing new: facts are the same by their text and their sources.
//  6. Forgetting a session runs Page.Forget on every page, and on what is kept of it.
package memory
