package session_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/model/offline"
	"github.com/abide-run/abide/internal/session"
	"github.com/abide-run/abide/internal/session/sessiontest"
	"github.com/abide-run/abide/internal/turn"
)

func TestASystemPromptThatWasLookedOverStaysWhileNobodyIsThere(t *testing.T) {
	m := &recordingModel{}
	b := sessiontest.New(t, m)
	v := sessiontest.NewViewer()
	custom := json.RawMessage(`{"mode":"customize","sections":{"tone":{"action":"transform"}}}`)
	c := &session.Client{Viewer: v, Transform: func(_ context.Context, _ event.SessionID, sections map[string]string) (map[string]string, error) {
		return map[string]string{"tone": "MARK " + sections["tone"]}, nil
	}}
	view, err := b.Host.Create(t.Context(), "s", session.Spec{Config: event.SessionConfiguredData{SystemMessage: custom}}, c)
	if err != nil {
		t.Fatal(err)
	}
	if err := view.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.Send("s", event.InputAcceptedData{Prompt: "Reply with exactly: ONE"})
	_, at := v.Await(t, 0, event.SessionIdle)
	first := m.last().System
	b.Host.Detach("s", c, false)
	b.Send("s", event.InputAcceptedData{Prompt: "Reply with exactly: TWO"})
	awaitAnswer(t, b, "s", "TWO")
	if !strings.Contains(first, "MARK When") || m.last().System != first {
		t.Errorf("system prompt = %q, then %q (%d)", first, m.last().System, at)
	}
}

func TestWhatSessionStartAddsIsReadBeforeTheFirstRequest(t *testing.T) {
	m := &recordingModel{}
	b := sessiontest.New(t, m)
	e := &hookClient{says: map[string]string{event.HookSessionStart: `{"additionalContext":"MARK"}`}}
	v := b.Create("s", &session.Client{Hook: e.hook})
	b.Send("s", event.InputAcceptedData{Prompt: "Reply with exactly: ONE"})
	_, at := v.Await(t, 0, event.SessionIdle)
	check := func(when string, requests int) {
		t.Helper()
		req := m.last()
		if strings.Contains(req.System, "MARK") {
			t.Errorf("%s the system prompt is %q", when, req.System)
		}
		if n := notices(req, "MARK"); n != 1 || !strings.HasSuffix(req.Messages[0].Text, "MARK") || !strings.HasSuffix(req.Messages[1].Text, "ONE") || len(req.Messages) != 2*requests {
			t.Errorf("%s the model reads %d messages, that begin with %q and %q", when, len(req.Messages), req.Messages[0].Text, req.Messages[1].Text)
		}
	}
	check("at first", 1)
	b.Send("s", event.InputAcceptedData{Prompt: "Reply with exactly: TWO"})
	v.Await(t, at, event.SessionIdle)
	check("later", 2)
	if n := e.count(event.HookSessionStart); n != 1 {
		t.Errorf("sessionStart was asked %d times", n)
	}
	b.Host.Close()
	b.Start()
	b.Send("s", event.InputAcceptedData{Prompt: "Reply with exactly: THREE"})
	awaitAnswer(t, b, "s", "THREE")
	check("after a restart", 3)
}

func TestToolsThatAreGoneAreSaidToBe(t *testing.T) {
	m := &recordingModel{}
	b := sessiontest.New(t, m)
	owner := &session.Client{Tools: external("fleeting")}
	v := b.Create("s", owner)
	b.Send("s", event.InputAcceptedData{Prompt: "Reply with exactly: ONE"})
	v.Await(t, 0, event.SessionIdle)
	b.Host.Detach("s", owner, false)
	v = b.Resume("s", session.Resume{}, &session.Client{})
	b.Send("s", event.InputAcceptedData{Prompt: "Reply with exactly: TWO"})
	v.Await(t, 0, event.SessionIdle)
	if text := m.last().Messages[2].Text; !strings.Contains(text, "Tools no longer available: fleeting\n") || !strings.HasSuffix(text, "</tools_changed_notice>\n\nReply with exactly: TWO") {
		t.Errorf("the model reads %q", text)
	}
	if got := lastAnswer(t, b.Verify("s")); got != "TWO" {
		t.Errorf("answer = %q", got)
	}
}

func TestFilesThatAreAttachedAreNamedAndCounted(t *testing.T) {
	m := &recordingModel{}
	b := sessiontest.New(t, m)
	dir := t.TempDir()
	for name, text := range map[string]string{"none": "", "one": "x", "two": "x\ny\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	attach := func(kind, path string) json.RawMessage {
		raw, _ := json.Marshal(map[string]string{"type": kind, "path": path})
		return raw
	}
	v := b.Create("s", &session.Client{})
	b.Send("s", event.InputAcceptedData{Prompt: "Reply with exactly: OK", Attachments: []json.RawMessage{
		attach("file", dir+"/none"), attach("file", dir+"/one"), attach("file", dir+"/two"), attach("directory", dir), attach("file", dir+"/gone")}})
	v.Await(t, 0, event.SessionIdle)
	want := "<tagged_files>\n* D/none (0 lines)\n* D/one (1 lines)\n* D/two (2 lines)\n* D (3 items)\n* D/gone\n</tagged_files>"
	if got := strings.ReplaceAll(m.last().Messages[0].Text, dir, "D"); !strings.HasSuffix(got, want) {
		t.Errorf("the model reads %q", got)
	}
}

func TestALongResultIsKeptInAFile(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	b := sessiontest.New(t, offline.Model{})
	v := b.Create("s", &session.Client{Tools: []event.ExternalTool{{Name: "act", SkipPermission: true}}})
	long := strings.Repeat("ä", 15_000)
	at := 0
	for _, text := range []string{strings.Repeat("x", 20<<10), long} {
		b.Send("s", event.InputAcceptedData{Prompt: useAct})
		asked, next := v.Await(t, at, event.ExternalAsked)
		d, _ := event.As[event.ExternalAskedData](asked)
		for range 2 { // the second time the reply was lost
			won, err := b.Host.Answer(t.Context(), "s", turn.Answer{RequestID: d.RequestID, Key: d.RequestID, External: &turn.ExternalResult{Text: text}})
			if err != nil || !won {
				t.Fatal(won, err)
			}
		}
		_, at = v.Await(t, next, event.SessionIdle)
	}
	files, err := filepath.Glob(filepath.Join(os.TempDir(), "*-copilot-tool-output-*.txt"))
	if err != nil || len(files) != 1 {
		t.Fatalf("files = %v, %v, want one", files, err)
	}
	if kept, err := os.ReadFile(files[0]); err != nil || string(kept) != long {
		t.Errorf("kept %d bytes, %v", len(kept), err)
	}
	got := lastAnswer(t, b.Verify("s"))
	if !strings.HasPrefix(got, "Output too large to read at once (29.3 KB). Saved to: "+files[0]+"\n") || !strings.HasSuffix(got, "Preview (first 500 chars):\n"+strings.Repeat("ä", 500)) {
		t.Errorf("answer = %q", got)
	}
}

func TestTheWindowIsTold(t *testing.T) {
	b := sessiontest.New(t, offline.Model{})
	v := b.Create("s", &session.Client{})
	b.Send("s", event.InputAcceptedData{Prompt: "Reply with exactly: OK"})
	e, _ := v.Await(t, 0, event.UsageInfo)
	d, err := event.As[event.UsageInfoData](e)
	if err != nil || d.CurrentTokens <= 0 || d.MessagesLength != 2 || d.TokenLimit <= 0 || !d.IsInitial {
		t.Errorf("usage = %+v, %v", d, err)
	}
	v.Await(t, 0, event.SessionIdle)
}
