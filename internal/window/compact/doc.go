// Package compact replaces the older part of a conversation by a summary, so that
// the rest fits into the model's window.
//
// A [Job] is one compaction. It does no I/O: it returns the next request for a model, is
// given the reply, and has a [Result] after at most [MostAsks] requests, whatever the
// model does.
//
//   - A call is never separated from its result, and signed reasoning never from its
//     call. One very long turn is cut between its steps.
//   - Messages that the model has not seen, because they came after the last request
//     that it answered, are neither summarised nor dropped. They are kept as they are,
//     as long as they fit.
//   - Requests of people are kept in their own words, the newest one in full. If there
//     are too many, older ones are shortened or only counted, and the head says so.
//   - The size of requests to the summariser is limited: a long conversation is read in
//     parts, each with the summary so far. If it fits, the summary is instead asked for
//     at the end of the session's own conversation, which the provider has in its cache.
//   - The messages of a successful result fit into the given number of tokens. If no
//     model writes a summary and the next request does not fit, a [Digest] replaces the
//     summary; if even that does not fit, the result is an error. Each attempt only
//     makes the result smaller, so there is no endless loop.
//   - If there is nothing to summarise, no model is asked, and the outcome is skipped. A
//     result that is not smaller than what it replaces is a failure, unless a person asked
//     for it.
//
// # Epochs
//
// A compaction opens an epoch in the same session. An epoch is a view of the log: its
// head, and every message from a position on. Nothing is deleted.
//
//	context.epoch {epochId, number, kind, baseEpochId, from, through, most, earlier, head}
//
// kind is compaction or undo; from is the position of the first message that is kept;
// through that of the newest one that was there, so that most ([Result].Most) applies up
// to it; earlier is what applied before; head is a [Head]. The event is hidden from
// ordinary clients. Numbers never repeat. Undo appends an epoch with the head, from,
// through and most of the base of the current one: what was said since is in it, because
// everything after from is. A rewind takes back the epochs that were opened in the range
// that it hides: the newest of the others is current again.
//
// Around it, in the protocol's words, with fields of ours after the semicolon:
//
//	session.compaction_start    {trigger, conversationTokens, systemTokens, toolDefinitionsTokens, currentTokens, tokenLimit, model;
//	                             compactionId, point, baseEpochId, through, estimateSource}
//	system.message              {role, content; epochId}   the summary: Head.SummaryMessage
//	system.message              {role, content; epochId}   the tasks: State.Snapshot
//	session.compaction_complete {success, preCompactionTokens, preCompactionMessagesLength, postCompactionTokens, messagesRemoved,
//	                             tokensRemoved, summaryContent, checkpointNumber, checkpointPath, tokenLimit, trigger,
//	                             compactionTokensUsed, requestId, error;
//	                             compactionId, outcome, epochId, itemsKept, digest, durationMs, estimateSource}
//
// A start is always followed by one complete with the same compactionId. The messages,
// the epoch and the complete of one that is done are a single append, in this order, so a
// crash leaves either the old epoch or the new one. A system.message with an epochId is
// not the system prompt, and no state may be folded from it. An epochId of a complete is
// that of the current epoch, also if it failed. summaryContent is Result.Summary.
//
// # Before a run, and between two requests
//
//  1. The input is accepted and stored. Nothing below can lose it.
//  2. The request is made as it would be sent: the view of the epoch, pruned by
//     window.Pruner, with the system prompt (instructions read anew after a compaction),
//     the tools, and State.Reminder in its volatile tail.
//  3. window.Meter reads it and window.Policy decides, at BeforeRun for the first request
//     of a run and at BetweenRequests for any other. This is the step turn.Measure, which
//     turn.Next asks for before the model is asked; it depends on the log alone.
//  4. Go: the model is asked. Prepare: a job is begun in the background (below), and the
//     model is asked. Compact and Must: no request is made yet; if a job is under way it
//     is waited for, else one is begun.
//  5. To begin: hooks before compaction are asked (they may add instructions, or say no,
//     which is the outcome skipped). compaction_start is appended. [New] gets the items
//     of the view, Room from Meter.Room, Retain from Policy.Retain, Must from the verdict,
//     Ride with Left = limit - Reading.Tokens if the session's model summarises itself.
//     A job that is skipped at once for a threshold appends start and complete together.
//  6. The job is driven beside the session's goroutine: Next, ask, Take, until Next gives
//     nil. Attempts that fail for a moment are repeated as for any request, before Take.
//     Each request has a time-out of its own, which is handed to Take as an error. An
//     abort of the turn, or a client that cancels, is handed to Abort.
//  7. The result comes back as an intent. Done: if the current epoch is still baseEpochId
//     and nothing up to through was hidden since, the append above; else the outcome is
//     failed, because the history has changed. Failed and skipped: the complete alone.
//     Then hooks after compaction. The checkpoint file (named by its number and [Title])
//     is written after the append; it is a copy, and is written again if it is missing.
//  8. Back to 3 with the new view. Compact that failed does not come again, because the
//     window.Gate is closed: the request is made. Must that failed ends the turn with the
//     error of the result; the session can go on, since an older message can be shortened.
//
// If a provider refuses a request although it should fit (KindOverflow), Meter.Refused is
// told, and 3 says Must; the trigger is context_limit_retry. A step does this three times
// at most, then the turn ends with the provider's error. After a change of the model the
// trigger of what follows is model_switch.
//
// # In the background, ahead of need
//
// The same, except that nothing waits: the items are those up to the last message whose
// calls are all finished, and messages that come meanwhile are after through and stay as
// they are. One job for each session at a time. cancelBackgroundCompaction is Abort.
//
// # By hand
//
// session.history.compact begins a job whenever none is under way, with trigger manual,
// Retain from compact_retained_tokens or 0, and instructions. Between two requests of a
// turn it is begun at step 3; otherwise at once. abortManualCompaction is Abort. The
// answer is sent after the complete was stored. summarizeForHandoff drives a job with
// Retain 0 and returns Result.Summary, without events and without an epoch; one that is
// skipped gives the empty text.
//
// # After a crash
//
// A start without its complete is found when the log is folded. The first append of the
// session then has the complete: failed, interrupted. The old epoch is current, and step 3
// decides anew.
package compact
