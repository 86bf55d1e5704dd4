// Package window measures how full a model's window is, and decides what to do about
// it.
//
//   - A [Meter] measures a request: system prompt, tools, messages, images and volatile
//     tail. It starts from the provider's count of the last request, if there is one,
//     and adds an estimate of what was added since. Otherwise it estimates everything.
//     Estimates are corrected by what earlier counts have shown of each script. A
//     [Reading] says which of the two it is. As long as nothing was counted, it is the
//     plain estimate, which is rather too high than too low.
//   - The limit of a request is the window minus the tokens that are reserved for its
//     answer ([Limits.Request]). Thresholds are below the limit and only start a
//     compaction. Clients send thresholds as shares; they are shares of the limit,
//     because a share of the window could be above the limit.
//   - [Policy.Decide] decides what to do before a request. The check against the limit
//     cannot be turned off. A [Gate] decides whether thresholds apply: after a
//     compaction they do so only when the history has grown.
//   - A [Pruner] shortens old results of tools in requests, once there is little room. It
//     does so in few steps, because each step invalidates the provider's cache.
//
// All functions depend only on their arguments: there is no clock, no I/O and no
// goroutine. Meters and pruners only cache what they have counted.
//
// # What is stored in the log
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
