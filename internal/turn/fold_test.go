package turn_test

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/turn"
)

// TestEdgesOfParts: what the parts of the state hold after logs in which a small
// difference decides.
func TestEdgesOfParts(t *testing.T) {
	wait := event.CompactionStartData{Point: event.PointBetween}
	failed := event.CompactionCompleteData{Outcome: event.OutcomeFailed, Must: true, Error: "full"}
	paused := false
	for name, c := range map[string]struct {
		log  []event.Payload
		part func(*turn.State) any
		want any
	}{
		"a compaction that was interrupted does not count": {
			[]event.Payload{wait, event.CompactionCompleteData{Cause: event.CauseInterrupted}},
			func(s *turn.State) any { return s.Context.Compactions }, 0,
		},
		"one that failed counts": {
			[]event.Payload{wait, failed},
			func(s *turn.State) any { return s.Context.Compactions }, 1,
		},
		"one that is done makes room": {
			[]event.Payload{wait, failed, wait, event.CompactionCompleteData{Outcome: event.OutcomeDone}},
			func(s *turn.State) any { return s.Context.Full }, "",
		},
		"findings that are in the pages do not wait": {
			[]event.Payload{event.MemoryExtractedData{From: 1, To: 1, Found: 1}, event.MemoryConsolidatedData{Through: 2}},
			func(s *turn.State) any { return s.Memory.Waiting }, event.Seq(0),
		},
		"findings after them wait": {
			[]event.Payload{event.MemoryExtractedData{From: 1, To: 1, Found: 1}, event.MemoryConsolidatedData{Through: 1}},
			func(s *turn.State) any { return s.Memory.Waiting }, event.Seq(2),
		},
		"a part that was set aside and is extracted later moves nothing back": {
			[]event.Payload{
				event.MemoryExtractedData{From: 1, To: 4, Hash: "h4", Quarantined: true}, event.MemoryExtractedData{From: 5, To: 9, Hash: "h9"},
				event.MemoryExtractedData{From: 1, To: 4, Hash: "h4"},
			},
			func(s *turn.State) any { return []any{s.Memory.Pointer, s.Memory.Hash, len(s.Memory.Aside)} }, []any{event.Seq(9), "h9", 0},
		},
		"a queue that is emptied is not halted": {
			[]event.Payload{
				event.InputAcceptedData{InputID: "i"}, event.CommandDoneData{RequestID: "x", Stop: true},
				event.QueueChangedData{Order: []string{}, Paused: &paused},
			},
			func(s *turn.State) any { return s.Queue.Halted }, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newWriter(t).add(append([]event.Payload{start}, c.log...)...).state
			if got := c.part(s); !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// TestClosedExchangesAreForgotten: a session that lives long does not remember every
// form that was ever filled in.
func TestClosedExchangesAreForgotten(t *testing.T) {
	w := newWriter(t).add(start)
	for n := range 100 {
		id := fmt.Sprint("f", n)
		w.add(event.ElicitationAskedData{RequestID: id}, event.ElicitationDoneData{RequestID: id})
	}
	if _, known := w.state.Exchanges.Closed("f0"); known {
		t.Error("the first of 100 is still known")
	}
	if _, known := w.state.Exchanges.Closed("f99"); !known {
		t.Error("the last one is not known")
	}
}
