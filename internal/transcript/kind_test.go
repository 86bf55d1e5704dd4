package transcript_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/transcript"
)

// TestWhatShapesTheConversationIsRead: the row of a kind says that it changes what the
// model sees, so History reads it.
func TestWhatShapesTheConversationIsRead(t *testing.T) {
	for _, k := range event.Kinds() {
		if !k.Shapes {
			continue
		}
		e, err := event.Parse(1, fmt.Appendf(nil, `{"type":%q,"id":"i","timestamp":"2026-11-15T12:00:00.000Z","parentId":null,"data":{}}`, k.Type))
		if err != nil {
			t.Fatal(err)
		}
		var h transcript.History
		h.Add(e)
		if _, err := h.Messages(); err != nil && strings.Contains(err.Error(), "has no case") {
			t.Errorf("%v: give it one in internal/transcript/transcript.go, or do not make the kind Shapes in its row in internal/event", err)
		}
	}
}
