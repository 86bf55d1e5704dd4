package turn_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/turn"
	"github.com/abide-run/abide/internal/window"
)

// waitedFor is a compaction that the turn waits for.
var waitedFor = event.CompactionStartData{CompactionID: "c1", Point: event.PointBeforeRun, Trigger: event.TriggerThreshold}

// compactionEvents are what may happen to the context.
var compactionEvents = []event.Payload{
	waitedFor,
	event.CompactionStartData{CompactionID: "c2", Point: event.PointBackground, Trigger: event.TriggerManual},
	event.CompactionCompleteData{CompactionID: "c1", Outcome: event.OutcomeDone, PostTokens: 100, EpochID: "e1"},
	event.CompactionCompleteData{CompactionID: "c1", Outcome: event.OutcomeFailed, PreTokens: 200, Must: true, Error: "no room"},
	event.CompactionCompleteData{CompactionID: "c1", Outcome: event.OutcomeSkipped, PreTokens: 300},
	event.CompactionCompleteData{CompactionID: "c1", Outcome: event.OutcomeFailed, Cause: event.CauseInterrupted},
	event.ContextEpochData{EpochID: "e1", Number: 1, Kind: event.EpochCompaction, From: 3, Through: 4, Head: json.RawMessage(`{"summary":"all is well"}`)},
	event.ContextEpochData{EpochID: "e2", Number: 2, Kind: event.EpochUndo, Tokens: 400},
	event.AssistantUsageData{InputTokens: 10, Anchor: &event.Anchor{Counted: 10, Estimated: 12, Messages: 1}},
	event.SystemMessageData{Role: "system", Content: "[Compacted context summary]", EpochID: "e1"},
	event.CompactionStartData{CompactionID: "c3", Point: event.PointBackground, Trigger: event.TriggerManual, Key: "k10"},
	event.CompactionCompleteData{CompactionID: "c3", Outcome: event.OutcomeFailed, Cause: event.CauseInterrupted},
}

// TestTheNextRequestIsMeasured: Next asks for a verdict where it decides by one, and
// nowhere else.
func TestTheNextRequestIsMeasured(t *testing.T) {
	begun := []event.Payload{start, accepted, message}
	compacting := append(begun[:3:3], waitedFor)
	failed := event.CompactionCompleteData{CompactionID: "c1", Outcome: event.OutcomeFailed, Must: true, Error: "no room"}
	stale := event.CompactionCompleteData{CompactionID: "c1", Outcome: event.OutcomeFailed, Cause: event.CauseStale}
	thrice := append(begun[:3:3], waitedFor, compactionEvents[2], waitedFor, compactionEvents[2], waitedFor, compactionEvents[2])
	for _, test := range []struct {
		name    string
		log     []event.Payload
		verdict *window.Verdict
		want    string
	}{
		{"nobody has measured", begun, nil, "turn.Measure"},
		{"it fits", begun, &window.Verdict{}, "turn.StartStep"},
		{"it nearly fills the window", begun, &window.Verdict{Action: window.Prepare}, "turn.Compact"},
		{"and is being compacted", compacting, &window.Verdict{Action: window.Prepare}, "turn.StartStep"},
		{"it is over a threshold", begun, &window.Verdict{Action: window.Compact}, "turn.Compact"},
		{"the turn waits for the compaction", compacting, &window.Verdict{Action: window.Compact}, "turn.Wait"},
		{"which is measured as well", compacting, nil, "turn.Measure"},
		{"it cannot be made to fit", append(compacting[:4:4], failed), &window.Verdict{Action: window.Must}, "turn.GiveUp"},
		{"the compaction was for nothing", append(compacting[:4:4], stale), &window.Verdict{Action: window.Must}, "turn.Compact"},
		{"no compaction helps", thrice, &window.Verdict{Action: window.Must}, "turn.GiveUp"},
		{"no compaction helps, but it fits", thrice, &window.Verdict{Action: window.Compact}, "turn.StartStep"},
		{"a new turn has its own compactions", append(thrice[:9:9], asked, words, ended, accepted, message), &window.Verdict{Action: window.Must}, "turn.Compact"},
		{"the request was made", append(begun[:3:3], asked), nil, "turn.AskModel"},
		{"an input waits", begun[:2], nil, "turn.Deliver"},
		{"all is done", append(begun[:3:3], asked, words, ended, idle), nil, "turn.Wait"},
	} {
		now := nothing
		now.Compacting, now.Verdict = true, test.verdict
		if got := fmt.Sprintf("%T", turn.Next(newWriter(t).add(test.log...).state, now)); got != test.want {
			t.Errorf("%s: next is %s, want %s", test.name, got, test.want)
		}
	}
}
