package turn

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/model"
)

// TurnFinish is what the log says of answers that were not whole: cut off at their limit, or
// empty. The model is asked again, a limited number of times. A turn in which that does
// not help ends with an error, and so does one whose answer was refused.
type TurnFinish struct {
	Said      string // text of the answer so far, while the model is asked to go on with it
	MaxOutput int    // tokens that an answer may have; the default of the model if zero
	Again     bool   // the model is asked again although its answer asks for no calls
	Failure   *event.SessionErrorData

	continued int // times in a row that the model was asked to go on
	repeated  int // times in a row that it was asked again because it was cut off too early
	emptied   int // times in a row that it was asked again because it said nothing
}

// The number of times that the model is asked again in a row.
const (
	maxContinued = 4
	maxRepeated  = 3
	maxEmptied   = 1
)

// What the model is told before it is asked again. Its own words of people stay the newest
// ones, because the text is marked as that of the runtime.
const (
	goOn    = "<system_reminder>Your answer was cut off because it reached the limit of its length. Go on exactly where it stopped. Do not repeat anything, and do not comment on this.</system_reminder>"
	shorter = "<system_reminder>Your answer was cut off because it reached the limit of its length before it was complete, so none of its tool calls was made. Answer again and keep it short. If a call is long, make several small ones: write a long file in parts, for example.</system_reminder>"
	resume  = "<system_reminder>Your answer was interrupted because it took long. Go on exactly where it stopped. Do not repeat anything, and do not comment on this.</system_reminder>"
	speak   = "<system_reminder>Your answer was empty. Answer now. If everything is done, say in a sentence what you did.</system_reminder>"
)

// fold takes in how an answer ended.
func (f *TurnFinish) fold(t *Turn, body event.Payload) {
	switch d := body.(type) {
	case event.AssistantTurnStartData:
		f.Again = false
	case event.AssistantUnfinishedData:
		f.takeUnfinished(d)
		t.addCalls(nil)
	case event.AssistantMessageData:
		*f = TurnFinish{MaxOutput: f.MaxOutput, Failure: d.Failure}
	}
}

func (f *TurnFinish) takeUnfinished(d event.AssistantUnfinishedData) {
	f.Again = true
	f.MaxOutput = cmp.Or(d.MaxOutput, f.MaxOutput)
	switch {
	case d.Action == event.ActionCorrect:
		f.Said = ""
	case d.Action == event.ActionContinue:
		f.Said += d.Content
		f.continued++
	case d.Cause == event.CauseEmpty:
		f.emptied++
	default:
		f.repeated++
	}
}

// giveUp returns the step that ends a turn because of how its answer ended.
func (f *TurnFinish) giveUp() GiveUp { return GiveUp{f.Failure.ErrorType, f.Failure.Message} }

// A Reply is how a model has ended an answer.
type Reply struct {
	Reason string // reason why it stopped: model.FinishStop or another
	Words  string // reason why it declined, in the provider's words; empty if it gave none
	Most   int    // tokens that an answer of the model can have; zero if that is not known
}

// Settle decides what becomes of an answer, and returns what is to be recorded of it: the
// answer itself, or that it is not whole and the model is asked again.
func Settle(s *State, m event.AssistantMessageData, r Reply) event.Payload {
	f := s.Turn.Finish
	if again, ok := f.again(m, r); ok {
		return again
	}
	m.Failure = f.failure(m, r)
	if again, ok := s.Turn.Output.settle(f, &m); ok {
		return again
	}
	if m.Failure != nil { // what was cut off or refused is not done
		m.ToolRequests = []event.ToolRequest{}
	}
	m.Earlier = len(f.Said)
	m.Content = f.Said + m.Content
	return m
}

// again returns that the model is asked again, and false if it is not.
func (f TurnFinish) again(m event.AssistantMessageData, r Reply) (event.AssistantUnfinishedData, bool) {
	d := unfinished(m)
	for _, c := range m.ToolRequests {
		d.Calls = append(d.Calls, c.Name)
	}
	switch whole := len(m.ToolRequests) == 0 && strings.TrimSpace(m.Content) != ""; {
	case r.Reason == model.FinishLength && whole:
		d.Cause, d.Action, d.Instruction = event.CauseCutOff, event.ActionContinue, goOn
		return d, f.continued < maxContinued
	case r.Reason == model.FinishLength:
		d.Cause, d.Action = event.CauseCutOff, event.ActionAgain
		if d.MaxOutput = f.larger(m.OutputTokens, r.Most); d.MaxOutput == 0 || f.repeated == maxRepeated-1 {
			d.Instruction = shorter
		}
		return d, f.repeated < maxRepeated
	case r.Reason == model.FinishPause && len(m.ToolRequests) == 0:
		d.Cause, d.Action, d.Instruction = event.CausePaused, event.ActionContinue, resume
		return d, f.continued < maxContinued
	case f.isEmpty(m) && !declined(r.Reason):
		d.Cause, d.Action, d.Instruction = event.CauseEmpty, event.ActionAgain, speak
		return d, f.emptied < maxEmptied
	}
	return d, false
}

// unfinished returns the record of an answer that the model is asked again for, without a cause.
func unfinished(m event.AssistantMessageData) event.AssistantUnfinishedData {
	return event.AssistantUnfinishedData{
		MessageID: m.MessageID, Model: m.Model, Content: m.Content, InteractionID: m.InteractionID, TurnID: m.TurnID,
		OutputTokens: m.OutputTokens, RequestID: m.RequestID,
		ReasoningText: m.ReasoningText, ReasoningOpaque: m.ReasoningOpaque, EncryptedContent: m.EncryptedContent,
	}
}

// Keep returns what is to be recorded of an answer that will not be completed, before the
// turn is stopped or fails: what the model has said so far, as a message that everybody is
// shown. It answers the open step, or one of its own if the model is not being asked.
func Keep(s *State, id string) []event.Payload {
	t := s.Turn
	if t == nil || t.Finish.Said == "" {
		return nil
	}
	var record []event.Payload
	step := t.Step
	if t.Phase == Answered {
		record = append(record, event.AssistantTurnEndData{TurnID: strconv.Itoa(step)})
		step++
	}
	if t.Phase != Asking {
		record = append(record, event.AssistantTurnStartData{TurnID: strconv.Itoa(step), InteractionID: t.InteractionID})
	}
	return append(record, event.AssistantMessageData{
		MessageID: id, Content: t.Finish.Said, Earlier: len(t.Finish.Said), ToolRequests: []event.ToolRequest{},
		InteractionID: t.InteractionID, TurnID: strconv.Itoa(step),
	})
}

// isEmpty reports whether an answer has neither text nor calls, together with its earlier
// parts.
func (f TurnFinish) isEmpty(m event.AssistantMessageData) bool {
	return len(m.ToolRequests) == 0 && strings.TrimSpace(f.Said+m.Content) == ""
}

// larger returns a limit that is larger than the one at which an answer was cut off, or zero
// if the model has none. An answer that was cut off has as many tokens as its limit.
func (f TurnFinish) larger(cutAt int64, most int) int {
	limit := max(int(min(cutAt, maxLimit)), f.MaxOutput)
	next := min(max(2*limit, minLimit), maxLimit)
	if most > 0 {
		next = min(next, most)
	}
	if next <= limit {
		return 0
	}
	return next
}

// minLimit and maxLimit are the smallest and the largest limit that is asked for, whatever a
// provider says: some servers stop after a hundred tokens unless they are told otherwise, and
// some count fewer than there are.
const (
	minLimit = 4096
	maxLimit = 1 << 20
)

// failure returns the error with which the turn ends because of how an answer ended; nil if
// it ended well.
func (f TurnFinish) failure(m event.AssistantMessageData, r Reply) *event.SessionErrorData {
	switch {
	case r.Reason == model.FinishLength && len(m.ToolRequests) > 0:
		return failure(event.CauseCutOff, "The model's tool calls were cut off at the limit of its answers %d times in a row, so none of them was made. Ask for smaller steps, or use a model with longer answers.", maxRepeated+1)
	case r.Reason == model.FinishLength && f.isEmpty(m):
		return failure(event.CauseCutOff, "The model reached the limit of its answers %d times in a row before it said anything. Lower the reasoning effort, or use a model with longer answers.", maxRepeated+1)
	case r.Reason == model.FinishLength:
		return failure(event.CauseCutOff, "The answer was cut off at the limit of the model's answers, although the model went on with it %d times. What it has said is kept. Ask for the rest, or for a shorter answer.", f.continued)
	case r.Reason == model.FinishPause && len(m.ToolRequests) == 0:
		return failure(event.CausePaused, "The provider paused the answer, although the model went on with it %d times. What it has said is kept. Send another message to go on.", f.continued)
	case r.Reason == model.FinishRefusal:
		return declining(event.ErrorRefusal, "The model refused to answer", cmp.Or(r.Words, strings.TrimSpace(m.Content)))
	case r.Reason == model.FinishFilter:
		return declining(event.ErrorFilter, "The provider's content filter stopped the answer", r.Words)
	case f.isEmpty(m):
		return failure(event.CauseEmpty, "The model's answer was empty, also when it was asked once more. Send another message, or use another model.")
	}
	return nil
}

func failure(kind, format string, args ...any) *event.SessionErrorData {
	return &event.SessionErrorData{ErrorType: kind, Message: fmt.Sprintf(format, args...)}
}

// maxWords is the number of bytes of a provider's reason that an error repeats.
const maxWords = 1000

// declining returns the error of an answer that was refused, with the provider's reason.
func declining(kind, what, words string) *event.SessionErrorData {
	if len(words) > maxWords {
		words = strings.ToValidUTF8(words[:maxWords], "") + "…"
	}
	if words != "" {
		what += ": " + strings.TrimSuffix(words, ".")
	}
	return failure(kind, "%s. Put the request in other words, or use another model.", what)
}

// declined reports whether the model or its provider did not want to answer.
func declined(reason string) bool {
	return reason == model.FinishRefusal || reason == model.FinishFilter
}

// Notice returns what people are told about an answer that is not whole.
func Notice(d event.AssistantUnfinishedData) string {
	switch {
	case d.Cause == event.CauseOutput:
		return "the answer does not have the form of the output schema; the model is asked once more"
	case d.Cause == event.CauseEmpty:
		return "the answer was empty; the model is asked once more"
	case d.Cause == event.CausePaused:
		return "the provider paused the answer; the model goes on with it"
	case d.Action == event.ActionContinue:
		return fmt.Sprintf("the answer was cut off at %d tokens; the model goes on with it", d.OutputTokens)
	case d.MaxOutput > 0:
		return fmt.Sprintf("the answer was cut off at %d tokens; the model is asked again with a limit of %d", d.OutputTokens, d.MaxOutput)
	}
	return fmt.Sprintf("the answer was cut off at %d tokens; the model is asked for a shorter one", d.OutputTokens)
}
