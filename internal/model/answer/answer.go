// Package answer reads what a model was told to hand in through a tool.
//
// That a model has answered is no success: what it hands in has to be there and
// has to have the right form. The errors are written for the model, which is told
// what was wrong and tries again.
package answer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/abide-run/abide/internal/model"
)

// Read decodes the arguments of the last call of a tool, and reports whether
// there is such a call. Fields that are not known are refused.
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

// decode reads an object. Some models put it into a string, or into a list.
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
