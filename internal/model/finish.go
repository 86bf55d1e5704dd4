package model

// The reasons for which a model stops, as Reply.Finish says them. Every wire turns the
// words of its providers into these; a reason that it does not know stays as the provider
// said it. They are recorded with the answer, so they never change.
const (
	FinishStop    = "stop"           // the model said all that it wanted to say
	FinishCalls   = "tool_calls"     // the model waits for the results of its calls
	FinishLength  = "length"         // the limit of the reply or of the window was reached: the last text or call is cut off
	FinishFilter  = "content_filter" // the provider suppressed the rest of the reply
	FinishRefusal = "refusal"        // the model declined to answer; the text may say why
	FinishPause   = "pause_turn"     // the provider paused a long turn: the same conversation with this reply goes on
)
