package rpc_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/server/rpc"
)

func TestASessionThatIsNotInfiniteHasNoWorkspaceAndIsCompactedAllTheSame(t *testing.T) {
	r := newFiled(t)
	off, on := object{"enabled": false}, object{"enabled": true, "backgroundCompactionThreshold": 0.5}
	p := r.connect(rpc.Door{})
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
	p.must(api.SessionSend, object{"sessionId": "s", "prompt": "Reply with exactly: " + strings.Repeat("long ", 500)}, nil)
	p.await(event.SessionIdle)
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
