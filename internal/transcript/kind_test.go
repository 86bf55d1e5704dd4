package transcript

import (
	"fmt"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/event"
)

// TestWhatShapesTheConversationIsRead: the row of a kind says that it changes what the
// model sees if and only if History reads it.
func TestWhatShapesTheConversationIsRead(t *testing.T) {
	for _, k := range event.Kinds() {
		e, err := event.Parse(1, fmt.Appendf(nil, `{"type":%q,"id":"i","timestamp":"2026-11-15T12:00:00.000Z","parentId":null,"data":{}}`, k.Type))
		if err != nil {
			t.Fatal(err)
		}
		var h History
		err = h.read(e)
		switch reads := err == nil || !strings.Contains(err.Error(), "has no case"); {
		case k.Shapes && !reads:
			t.Errorf("%v: give it one in internal/transcript/transcript.go, or do not make the kind Shapes in its row in internal/event", err)
		case reads && !k.Shapes:
			t.Errorf("History.read has a case for %s, which never gets there: make the kind Shapes in its row in internal/event", k.Type)
		}
	}
}
