package rpc_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/session"
	"github.com/abide-run/abide/internal/workspace"
)

func TestOptionsOfASessionAreChanged(t *testing.T) {
	r := newFiled(t)
	p := r.open(api.SessionCreate, object{"requestUserInput": true, "requestPermission": true, "excludedTools": []string{"x"}})
	config := func() event.SessionConfiguredData {
		t.Helper()
		st, err := r.host.Status(t.Context(), "s")
		if err != nil {
			t.Fatal(err)
		}
		return st.Config
	}
	update := func(patch object) {
		t.Helper()
		patch["sessionId"] = "s"
		var done api.Success
		p.must(api.OptionsUpdate, patch, &done)
		if !done.Success {
			t.Errorf("%v is no success", patch)
		}
	}
	before, dir := config(), t.TempDir()
	// What SDKs in their empty mode say: features that there are none of.
	update(object{"skipCustomInstructions": true, "customAgentsLocalOnly": true, "coauthorEnabled": false, "manageScheduleEnabled": false, "installedPlugins": []any{}})
	if got := config(); !got.SkipInstructions || !slices.Equal(got.ExcludedTools, before.ExcludedTools) || got.WorkingDirectory != before.WorkingDirectory {
		t.Errorf("the options are %+v", got)
	}
	update(object{"askUserDisabled": true, "workingDirectory": dir, "clientName": "me", "reasoningEffort": "high", "enableStreaming": true})
	if got := config(); got.WorkingDirectory != dir || got.ClientName != "me" || got.ReasoningEffort != "high" || !got.Streaming || !slices.Equal(got.ExcludedTools, []string{"x", "builtin:ask_user"}) {
		t.Errorf("the options are %+v", got)
	}
	update(object{"askUserDisabled": false, "skipCustomInstructions": false, "availableTools": []string{"view"}, "model": "other"})
	if got := config(); got.SkipInstructions || !slices.Equal(got.ExcludedTools, []string{"x"}) || !slices.Equal(got.AvailableTools, []string{"view"}) || got.Model != "other" {
		t.Errorf("the options are %+v", got)
	}
	update(object{"provider": object{"type": "openai", "baseUrl": "http://localhost:1/v1", "apiKey": "secret"}})
	var at api.EndpointResult
	p.must(api.ProviderEndpoint, object{"sessionId": "s"}, &at)
	if at.BaseURL != "http://localhost:1/v1" || at.APIKey != "secret" || strings.Contains(string(config().Provider), "secret") {
		t.Errorf("the endpoint is %+v, and the log says %s", at, config().Provider)
	}
	for _, test := range []struct {
		want  string
		patch object
	}{
		{"workingDirectory: want an absolute path", object{"workingDirectory": "x"}},
		{"model: it is empty", object{"model": ""}},
		{"availableTools: want array", object{"availableTools": 7}},
		{"provider.baseUrl: it is empty", object{"provider": object{}}},
		{"provider.baseUrl: it is empty", object{"provider": nil}},
		{"provider.maxOutputTokens: want number, have string", object{"provider": object{"baseUrl": "http://b", "maxOutputTokens": "many"}}},
		{"provider: want object, have array", object{"provider": []any{}}},
	} {
		test.patch["sessionId"], test.patch["clientName"] = "s", "nobody"
		if fault := p.refused(api.OptionsUpdate, test.patch); !strings.Contains(fault.Message, test.want) {
			t.Errorf("%v: %s", test.patch, fault.Message)
		}
	}
	if got := config(); got.ClientName != "me" {
		t.Errorf("options that were refused made the client %q", got.ClientName)
	}
}

func TestInstructionsAreShown(t *testing.T) {
	repo := t.TempDir()
	dir := filepath.Join(repo, "sub")
	for _, d := range []string{filepath.Join(repo, ".git"), dir} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for path, text := range map[string]string{filepath.Join(repo, "AGENTS.md"): "of the root", filepath.Join(dir, "AGENTS.md"): "of the folder"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := newFiled(t).open(api.SessionCreate, object{"workingDirectory": dir})
	var r api.InstructionsResult
	p.must(api.InstructionSources, object{"sessionId": "s"}, &r)
	if len(r.Sources) != 2 || r.Sources[0].Content != "of the root" || r.Sources[1].SourcePath != "sub/AGENTS.md" || r.Sources[1].Location != "repository" || r.Sources[1].ID == "" {
		t.Errorf("the sources are %+v", r.Sources)
	}
	p.must(api.OptionsUpdate, object{"sessionId": "s", "skipCustomInstructions": true}, nil)
	p.must(api.InstructionSources, object{"sessionId": "s"}, &r)
	if r.Sources == nil || len(r.Sources) > 0 {
		t.Errorf("the sources are %+v", r.Sources)
	}
	p.must(api.InstructionDiscover, object{"projectPaths": []string{dir, t.TempDir()}}, &r)
	if len(r.Sources) != 2 || r.Sources[0].ProjectPath != dir {
		t.Errorf("discovered are %+v", r.Sources)
	}
	var paths api.PlacesResult
	p.must(api.InstructionPaths, object{"projectPaths": []string{dir}}, &paths)
	if len(paths.Paths) != 2 || paths.Paths[0].Path != dir || paths.Paths[0].Preferred || paths.Paths[1].Path != repo || !paths.Paths[1].Preferred {
		t.Errorf("the paths are %+v", paths.Paths)
	}
	if fault := p.refused(api.InstructionDiscover, object{"projectPaths": []string{"x"}}); !strings.Contains(fault.Message, "projectPaths[0]") {
		t.Error(fault)
	}
}

// A session that skips instructions is told none.
func TestInstructionsThatAreSkippedAreNotRead(t *testing.T) {
	for _, skip := range []bool{false, true} {
		r := newTestServerWith(t, instructing)
		p := r.open(api.SessionCreate, object{"skipCustomInstructions": skip})
		p.must(api.SessionSend, object{"sessionId": "s", "prompt": "Reply with exactly: HI"}, nil)
		if d := data[event.SystemMessageData](t, p.await(event.SystemMessage)); strings.Contains(d.Content, "be brief") == skip {
			t.Errorf("skipping is %v, and the model is told %q", skip, d.Content)
		}
		p.await(event.SessionIdle)
	}
}

func TestHowFullAContextIs(t *testing.T) {
	p := newFiled(t).open(api.SessionCreate, nil)
	p.must(api.SessionSend, object{"sessionId": "s", "prompt": "Reply with exactly: HI"}, nil)
	p.await(event.SessionIdle)
	var info api.ContextInfoResult
	p.must(api.ContextInfo, object{"sessionId": "s", "promptTokenLimit": 50000, "outputTokenLimit": 1000, "selectedModel": "m"}, &info)
	u := info.Info
	if u.Model != "m" || u.Prompt != 50000 || u.Limit != 51000 || u.Total <= 0 || u.System <= 0 || u.Conversation <= 0 {
		t.Errorf("the context is %+v", u)
	}
	var counted api.RecomputeResult
	p.must(api.RecomputeContext, object{"sessionId": "s", "modelId": "m"}, &counted)
	if counted.Total != counted.System+counted.Messages || counted.Messages != u.Conversation {
		t.Errorf("counted is %+v", counted)
	}
}

// instructing tells every session to be brief.
var instructing = session.Options{Instructions: func(context.Context, workspace.Projects, string, ...string) (string, []event.InstructionSource, error) {
	return "be brief", []event.InstructionSource{{Path: "/AGENTS.md"}}, nil
}}
