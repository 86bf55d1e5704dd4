package server_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/server"
)

// said lets something be said in session s.
func (p *peer) said(text string) {
	p.t.Helper()
	p.must(api.SessionSend, object{"sessionId": "s", "prompt": "Reply with exactly: " + text}, nil)
	p.await(event.SessionIdle)
}

func TestASessionIsCompactedByHandAndThatIsUndone(t *testing.T) {
	p := newFiled(t).open(api.SessionCreate, nil)
	p.said(strings.Repeat("long ", 2000))
	var before, after api.ContextResult
	p.must(api.HistoryContext, object{"sessionId": "s"}, &before)
	if sum := before.SystemTokens + before.ToolDefinitionsTokens + before.Asked + before.Answered + before.Tail; sum != before.CurrentTokens || before.Epochs != 0 {
		t.Errorf("the parts are %d tokens of %+v", sum, before)
	}
	var r api.CompactResult
	p.must(api.HistoryCompact, object{"sessionId": "s", "customInstructions": "mind the names"}, &r)
	p.must(api.HistoryContext, object{"sessionId": "s"}, &after)
	if !r.Success || r.Outcome != event.OutcomeDone || r.MessagesRemoved == 0 || r.TokensRemoved == 0 || *r.ContextWindow != after.ContextWindow {
		t.Errorf("%+v, then %+v", r, after)
	}
	if after.EpochID != r.EpochID || after.Summary == 0 || after.Epochs != 1 || after.CurrentTokens >= before.CurrentTokens {
		t.Errorf("the context is %+v", after)
	}
	if d := data[event.CompactionCompleteData](t, p.await(event.CompactionComplete)); d.CustomInstructions != "mind the names" || d.EpochID != r.EpochID {
		t.Errorf("%+v", d)
	}
	p.must(api.HistoryCompact, object{"sessionId": "s"}, &r)
	if !r.Success || r.Outcome != event.OutcomeSkipped || r.Error != "there is nothing to summarise" {
		t.Errorf("again: %+v", r)
	}
	p.must(api.HistoryUncompact, object{"sessionId": "s"}, nil)
	p.must(api.HistoryContext, object{"sessionId": "s"}, &after)
	if after.ContextWindow != before.ContextWindow || after.Summary != 0 {
		t.Errorf("undone: %+v, want %+v", after, before)
	}
}

func TestWithNothingUnderWayThereIsNothingToCancel(t *testing.T) {
	p := newFiled(t).open(api.SessionCreate, nil)
	var cancelled api.CancelledResult
	p.must(api.HistoryCancel, object{"sessionId": "s"}, &cancelled)
	var aborted api.AbortedResult
	p.must(api.HistoryAbort, object{"sessionId": "s"}, &aborted)
	if cancelled.Cancelled || aborted.Aborted {
		t.Errorf("%+v, %+v", cancelled, aborted)
	}
	if fault := p.refused(api.HistoryUncompact, object{"sessionId": "s"}); !strings.Contains(fault.Message, "was not compacted") {
		t.Error(fault)
	}
	for _, method := range []string{api.HistoryCompact, api.HistoryCancel, api.HistoryAbort, api.HistoryHandoff, api.HistoryUncompact, api.HistoryContext} {
		if fault := p.refused(method, object{"sessionId": "nope"}); !strings.Contains(fault.Message, "not found") {
			t.Errorf("%s: %v", method, fault)
		}
	}
}

func TestASessionThatIsNotInfiniteHasNoWorkspaceAndIsCompactedAllTheSame(t *testing.T) {
	r := newFiled(t)
	off, on := object{"enabled": false}, object{"enabled": true, "backgroundCompactionThreshold": 0.5}
	p := r.connect(server.Door{})
	workspace := func(method string, id string, infinite object) string {
		params := object{"sessionId": id, "workingDirectory": t.TempDir()}
		if infinite != nil {
			params["infiniteSessions"] = infinite
		}
		var opened json.RawMessage
		p.must(method, params, &opened)
		var shot api.SnapshotResult
		p.must(api.Snapshot, object{"sessionId": id}, &shot)
		var result struct{ WorkspacePath *string }
		if err := json.Unmarshal(opened, &result); err != nil {
			t.Fatal(err)
		}
		if (result.WorkspacePath == nil) != (shot.WorkspacePath == nil) || (shot.Workspace == nil) != (shot.WorkspacePath == nil) {
			t.Errorf("%s %v: %s, but %+v", method, infinite, opened, shot)
		}
		if result.WorkspacePath == nil {
			return ""
		}
		return filepath.Base(*result.WorkspacePath)
	}
	for _, test := range []struct {
		method, id string
		infinite   object
		want       string
	}{
		{api.SessionCreate, "s", off, ""},
		{api.SessionCreate, "other", nil, "other"},
		{api.SessionCreate, "another", on, "another"},
		{api.SessionResume, "s", off, ""},
		{api.SessionResume, "s", on, "s"},
		{api.SessionResume, "s", off, ""},
	} {
		if got := workspace(test.method, test.id, test.infinite); got != test.want {
			t.Errorf("%s %s with %v: the workspace is %q, want %q", test.method, test.id, test.infinite, got, test.want)
		}
	}
	p.said(strings.Repeat("long ", 500))
	var done api.CompactResult
	p.must(api.HistoryCompact, object{"sessionId": "s"}, &done)
	if done.Outcome != event.OutcomeDone {
		t.Errorf("%+v", done)
	}
	if d := data[event.CompactionCompleteData](t, p.await(event.CompactionComplete)); d.CheckpointPath != "" || d.CheckpointNumber != 0 {
		t.Errorf("a copy of the summary is in %+v", d)
	}
	var now api.ContextResult
	p.must(api.HistoryContext, object{"sessionId": "s"}, &now)
	if now.BeforeRun+now.Between+now.Ahead != 0 || now.TokenLimit == 0 {
		t.Errorf("thresholds are not off: %+v", now)
	}
}
