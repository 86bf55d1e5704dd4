// Package window tells how full a model's window is, and what to do about it.
//
//   - A [Meter] measures a request: system prompt, tools, messages, pictures and
//     volatile state. What a provider counted of the last request counts, with
//     what has come since; without that, an estimate does, corrected by what was
//     learned. A reading says which of the two it is. It is never below the plain
//     estimate.
//   - The limit of a request is the window less what is reserved for its answer
//     ([Limits.Request]). Thresholds only trigger; shares that clients send are
//     shares of that limit, because a share of the window can lie beyond it.
//   - [Policy.Decide] says what to do before a request. Nothing switches the check
//     against the limit off. Thresholds ask a [Gate]: after a compaction they fire
//     again only when the history has grown.
//   - A [Pruner] leaves old output of tools out of the request, in few steps that
//     are each worth the loss of the provider's cache.
//
// Everything here is a function of what is passed in: there is no clock, no I/O
// and no goroutine. Meters and pruners only remember what they have counted.
//
// # What the log keeps for it
//
// The event assistant.usage carries the [Anchor] that [Meter.Learn] returns, in a
// field of ours named anchor. When a session is loaded, the anchor of the newest
// assistant.usage goes to [Meter.Restore], with the messages that the model sees
// if no context.epoch and no history.hidden came after it, else with nil. A Gate
// is folded from session.compaction_complete (done: Settled with
// postCompactionTokens; skipped: Skipped with what was there; failed: Failed with preCompactionTokens and the event's
// time), and Reset by user.message, session.model_change and a
// session.compaction_start with the trigger manual.
package window
