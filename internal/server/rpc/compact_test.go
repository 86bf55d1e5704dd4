package rpc_test

import (
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
)

func TestAClientCompactsASessionAndTakesItBack(t *testing.T) {
	p := newFiled(t).open(api.SessionCreate, nil)
	at := object{"sessionId": "s"}
	var r api.CompactResult
	if p.must(api.HistoryCompact, at, &r); r.Outcome != event.OutcomeSkipped || !r.Success || r.SummaryContent != "" {
		t.Errorf("an empty session: %+v", r)
	}
	p.await(event.CompactionComplete)
	p.must(api.SessionSend, object{"sessionId": "s", "prompt": "Reply with exactly: HELLO"}, nil)
	p.await(event.SessionIdle)
	var before, after api.ContextResult
	p.must(api.HistoryContext, at, &before)
	p.must(api.HistoryCompact, object{"sessionId": "s", "customInstructions": "Be short.", "tokenLimit": 9000}, &r)
	d := data[event.CompactionCompleteData](t, p.await(event.CompactionComplete))
	if r.Outcome != event.OutcomeDone || r.EpochID != d.EpochID || r.SummaryContent == "" || r.SummaryContent != d.SummaryContent || r.ContextWindow == nil || d.TokenLimit != 9000 {
		t.Errorf("result %+v, event %+v", r, d)
	}
	p.must(api.HistoryContext, at, &after)
	if before.Epoch != 0 || before.Summary != 0 || before.Answered == 0 || after.Epoch != 1 || after.Summary == 0 || after.Answered != 0 || after.EpochID != r.EpochID || after.Window == 0 || after.Source == "" {
		t.Errorf("before %+v, after %+v", before, after)
	}
	var back api.UncompactResult
	p.must(api.HistoryUncompact, at, &back)
	if p.must(api.HistoryContext, at, &after); after.Answered != before.Answered || after.EpochID != back.EpochID || after.Summary != 0 {
		t.Errorf("after an undo: %+v, before %+v", after, before)
	}
	var text api.HandoffResult
	if p.must(api.HistoryHandoff, at, &text); text.Summary == "" {
		t.Error("no summary for whoever takes over")
	}
}

// TestARepeatedCompactionIsAnsweredFromTheLog: a relay sends a request again whose reply was lost.
func TestARepeatedCompactionIsAnsweredFromTheLog(t *testing.T) {
	p := newFiled(t).open(api.SessionCreate, nil)
	p.must(api.SessionSend, object{"sessionId": "s", "prompt": "Reply with exactly: HELLO"}, nil)
	p.await(event.SessionIdle)
	var first, again, other api.CompactResult
	p.must(api.HistoryCompact, object{"sessionId": "s", "abideKey": "k"}, &first)
	p.must(api.HistoryCompact, object{"sessionId": "s", "abideKey": "k"}, &again)
	p.must(api.HistoryCompact, object{"sessionId": "s", "abideKey": "l"}, &other)
	if first.Outcome != event.OutcomeDone || again.Outcome != first.Outcome || again.EpochID != first.EpochID || again.SummaryContent != first.SummaryContent {
		t.Errorf("first %+v, then %+v", first, again)
	}
	if other.Outcome != event.OutcomeSkipped {
		t.Errorf("another request: %+v", other)
	}
}

func TestNothingToCancelIsNoError(t *testing.T) {
	p := newFiled(t).open(api.SessionCreate, nil)
	var c api.CancelledResult
	var a api.AbortedResult
	p.must(api.HistoryCancel, object{"sessionId": "s"}, &c)
	p.must(api.HistoryAbort, object{"sessionId": "s"}, &a)
	if c.Cancelled || a.Aborted {
		t.Errorf("%+v, %+v", c, a)
	}
}

func TestContextsOfNobodyAreAnError(t *testing.T) {
	p := newFiled(t).open(api.SessionCreate, nil)
	for _, method := range []string{api.HistoryCompact, api.HistoryCancel, api.HistoryAbort, api.HistoryHandoff, api.HistoryUncompact, api.HistoryContext} {
		if fault := p.refused(method, object{"sessionId": "nope"}); !strings.Contains(fault.Message, "not found") {
			t.Errorf("%s: %s", method, fault.Message)
		}
	}
	if fault := p.refused(api.HistoryUncompact, object{"sessionId": "s"}); !strings.Contains(fault.Message, "not compacted") {
		t.Errorf("undo of nothing: %s", fault.Message)
	}
}
