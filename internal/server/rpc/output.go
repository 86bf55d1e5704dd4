package rpc

import (
	"encoding/json"
	"fmt"

	"github.com/abide-run/abide/internal/schema"
)

// outputSchema returns the schema of an answer; nil if there is none. It refuses one that no
// answer could be checked against.
func outputSchema(text json.RawMessage) (json.RawMessage, error) {
	if len(text) == 0 || string(text) == "null" {
		return nil, nil
	}
	if _, err := schema.Parse(text); err != nil {
		return nil, errBadParams{fmt.Errorf("abideOutputSchema: %w", err)}
	}
	return text, nil
}
