package turn

import (
	"encoding/json"
	"fmt"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/schema"
)

// TurnOutput is the form that the answer of a turn must have. An answer of another form is asked
// for once more. If that does not help, the turn ends with an error.
type TurnOutput struct {
	Schema json.RawMessage // JSON schema; empty if the form is free

	corrected int // number of times that the model was asked for another form
}

// maxCorrected is the number of times that the model is asked again for the form.
const maxCorrected = 1

// fold takes in the form that an input brings, before the input leaves the queue, and answers that
// did not have it.
func (o *TurnOutput) fold(q *Queue, body event.Payload) {
	switch d := body.(type) {
	case event.UserMessageData:
		if i := q.find(d.InputID); i >= 0 && len(q.Inputs[i].OutputSchema) > 0 {
			*o = TurnOutput{Schema: q.Inputs[i].OutputSchema}
		}
	case event.AssistantUnfinishedData:
		if d.Cause == event.CauseOutput {
			o.corrected++
		}
	}
}

// settle checks an answer that ends the turn. It returns that the model is asked again, and false
// if it is not; then the answer has a failure if it is not as it should be.
func (o TurnOutput) settle(f TurnFinish, m *event.AssistantMessageData) (event.AssistantUnfinishedData, bool) {
	if len(o.Schema) == 0 || m.Failure != nil || len(m.ToolRequests) > 0 {
		return event.AssistantUnfinishedData{}, false
	}
	wrong := CheckOutput(o.Schema, f.Said+m.Content)
	switch {
	case wrong == nil:
		return event.AssistantUnfinishedData{}, false
	case o.corrected >= maxCorrected:
		m.Failure = failure(event.CauseOutput, "The answer does not have the form of the output schema, also when the model was asked once more: %v. Ask in other words, make the schema simpler, or use another model.", wrong)
		return event.AssistantUnfinishedData{}, false
	}
	d := unfinished(*m)
	d.Cause, d.Action = event.CauseOutput, event.ActionCorrect
	d.Instruction = fmt.Sprintf("<system_reminder>Your answer does not have the form that is wanted: %v. Answer again with one JSON object that matches this JSON schema, without any other text and without a code fence:\n%s</system_reminder>", wrong, o.Schema)
	return d, true
}

// CheckOutput returns why an answer does not have the form of a schema; nil if it has.
func CheckOutput(form json.RawMessage, answer string) error {
	s, err := schema.Parse(form)
	if err != nil {
		return fmt.Errorf("the schema cannot be used: %w", err)
	}
	_, err = s.Check(answer)
	return err
}
