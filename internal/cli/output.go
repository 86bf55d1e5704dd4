package cli

import (
	"encoding/json"
	"strings"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/schema"
	"github.com/abide-run/abide/internal/turn"
)

// outputSchema returns the schema of --output-schema; empty if there is none.
func (f *runFlags) outputSchema() (json.RawMessage, error) {
	if f.schema == "" {
		return nil, nil
	}
	text, err := readFile(f.schema, schema.MaxBytes)
	if err == nil {
		_, err = schema.Parse(text)
	}
	if err != nil {
		return nil, usagef("--output-schema %s: %w", f.schema, err)
	}
	return text, nil
}

// accepted notes the schema that the answer to an input must match.
func (o *outcome) accepted(d event.InputAcceptedData) {
	if len(d.OutputSchema) == 0 {
		return
	}
	if o.schemas == nil {
		o.schemas = make(map[string]json.RawMessage)
	}
	o.schemas[d.InputID] = d.OutputSchema
}

// wrongForm returns the error of an answer that does not match the schema although the turn has
// ended well, because a tool has ended it; nil if it matches.
func (o *outcome) wrongForm() error {
	if len(o.schema) == 0 {
		return nil
	}
	wrong := turn.CheckOutput(o.schema, o.answer)
	if wrong == nil {
		return nil
	}
	message := "The answer does not have the form of the output schema: " + wrong.Error() + "."
	return &exitError{exitOutput, &turnFailed{event.SessionErrorData{ErrorType: event.CauseOutput, Message: message}}}
}

// structured returns the answer as a JSON value if it has the form of a schema; nil otherwise.
func (o *outcome) structured() json.RawMessage {
	if len(o.schema) == 0 {
		return nil
	}
	return json.RawMessage(strings.TrimSpace(o.answer))
}
