// Package answer reads structured answers: a model that is asked for one calls a tool,
// and the arguments of the call are the answer.
//
// A reply of a model may lack the call, or its arguments may have the wrong form. The
// errors are written for the model, which is told what was wrong and tries again.
package answer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/abide-run/abide/internal/model"
)

// Read decodes the arguments of the last call of a tool, and reports whether there is
// such a call. Unknown fields are an error.
func Read(reply *model.Reply, tool string, into any) (called bool, err error) {
	for _, c := range slices.Backward(reply.Calls) {
		if c.Name != tool {
			continue
		}
		if err := decode(c.Arguments, into); err != nil {
			return true, fmt.Errorf("the arguments of %s are not as its schema says: %w", tool, err)
		}
		return true, nil
	}
	return false, nil
}

// decode decodes an object. It accepts an object inside a string or a list of one
// element, because some models write that.
func decode(raw json.RawMessage, into any) error {
	raw = bytes.TrimSpace(raw)
	var text string
	if json.Unmarshal(raw, &text) == nil && len(raw) > 0 && raw[0] == '"' {
		raw = bytes.TrimSpace([]byte(text))
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) == nil && len(list) == 1 {
		raw = bytes.TrimSpace(list[0])
	}
	if len(raw) == 0 || raw[0] != '{' {
		return fmt.Errorf("they have to be one JSON object")
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return fmt.Errorf("something follows the JSON object")
	}
	return nil
}
