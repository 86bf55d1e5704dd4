package cli

import (
	"bytes"
	"testing"

	"github.com/abide-run/abide/internal/event"
)

// On a terminal no part of an answer that was cut off is written twice, and none is missing.
func TestAContinuedAnswerIsWrittenOnce(t *testing.T) {
	piece := func(id, text string) event.Payload {
		return event.MessageDeltaData{MessageID: id, DeltaContent: text}
	}
	message := func(id, text string, earlier int) event.Payload {
		return event.AssistantMessageData{MessageID: id, Content: text, Earlier: earlier}
	}
	for name, test := range map[string]struct {
		events []event.Payload
		want   string
	}{
		"it goes on":         {[]event.Payload{piece("a", "one, "), piece("b", "one, "), piece("b", "two"), message("b", "one, two", 5)}, "one, two\n"},
		"nothing was left":   {[]event.Payload{piece("a", "all"), message("b", "all", 3)}, "all\n"},
		"it was stopped":     {[]event.Payload{piece("a", "one, "), piece("b", "one, "), piece("b", "tw"), message("c", "one, ", 5)}, "one, tw…\n"},
		"the view came late": {[]event.Payload{message("c", "one, ", 5)}, "one, \n"},
		"two answers":        {[]event.Payload{piece("a", "same"), message("a", "same", 0), piece("b", "same"), message("b", "same", 0)}, "same\nsame\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errors bytes.Buffer
			v := &textView{out: &printer{w: &out}, progress: &progress{err: &printer{w: &errors}, names: map[string]string{}}, live: true}
			for _, p := range test.events {
				e, err := event.Encode(event.Head{ID: event.NewID()}, p)
				if err != nil {
					t.Fatal(err)
				}
				v.event(e)
			}
			if v.breakOff(); out.String() != test.want {
				t.Errorf("written %q, want %q", out.String(), test.want)
			}
		})
	}
}
