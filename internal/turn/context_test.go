package turn_test

import (
	"encoding/json"

	"github.com/abide-run/abide/internal/event"
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
}
