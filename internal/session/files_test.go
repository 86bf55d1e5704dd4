package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/model/offline"
	"github.com/abide-run/abide/internal/project/instructions"
	"github.com/abide-run/abide/internal/project/skills"
	"github.com/abide-run/abide/internal/session"
	"github.com/abide-run/abide/internal/session/sessiontest"
	"github.com/abide-run/abide/internal/turn"
	"github.com/abide-run/abide/internal/workspace"
	"github.com/abide-run/abide/internal/workspace/bridge/bridgetest"
	"github.com/abide-run/abide/internal/workspace/local"
)

// A switchedFiles is a workspace that can be away.
type switchedFiles struct {
	workspace.Files
	away atomic.Pointer[error] // error of every call; nil if the workspace is there
}

func (s *switchedFiles) Collect(ctx context.Context, which ...workspace.Selection) ([][]workspace.Collected, error) {
	if err := s.away.Load(); err != nil {
		return nil, *err
	}
	return s.Files.Collect(ctx, which...)
}

func (s *switchedFiles) Count(ctx context.Context, paths ...string) ([]int, error) {
	if err := s.away.Load(); err != nil {
		return nil, *err
	}
	return s.Files.Count(ctx, paths...)
}

func (s *switchedFiles) Folders(ctx context.Context) (workspace.Folders, error) {
	if err := s.away.Load(); err != nil {
		return workspace.Folders{}, *err
	}
	return s.Files.Folders(ctx)
}

// project makes a project with instructions, a skill and a file.
func project(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		".git/HEAD": "", "AGENTS.md": "Be kind.", "notes": "a\nb\n", ".github/skills/dance/SKILL.md": "---\nname: dance\ndescription: How to dance\n---\nDo it twice.",
	} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// inProject starts a host whose sessions have the files, and a session that works in a
// folder of them.
func inProject(t *testing.T, m *recordingModel, dir string, files workspace.Files) (*sessiontest.Fixture, *sessiontest.Viewer) {
	t.Helper()
	b := sessiontest.New(t, m)
	b.Options.Files = func(event.SessionID) (workspace.Files, error) { return files, nil }
	b.Options.Instructions, b.Options.Skills = instructions.Rules{}.Read, skills.Library{}
	b.Restart()
	v := b.Create("s", &session.Client{Tools: []event.ExternalTool{{Name: "act", SkipPermission: true}}})
	err := b.Host.Configure(t.Context(), "s", func(c *event.SessionConfiguredData) error {
		c.WorkingDirectory, c.Skills = dir, event.SkillRules{Discover: true}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b, v
}

// A session is told the same of its files wherever they are, byte for byte.
func TestASessionUsesTheFilesOfItsWorkspace(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	long, seen := strings.Repeat("x", 30_000), map[string]string{}
	for _, network := range []string{"local", "memory", "unix", "tcp"} {
		dir := project(t)
		ws := local.New(dir, nil)
		if network != "local" {
			ws = bridgetest.Over(t, network, ws)
		}
		m := &recordingModel{}
		b, v := inProject(t, m, dir, ws.Files)
		b.Send("s", event.InputAcceptedData{Prompt: "Reply with exactly: OK", Attachments: []json.RawMessage{json.RawMessage(`{"type":"file","path":"` + dir + `/notes"}`)}})
		_, at := v.Await(t, 0, event.SessionIdle)
		b.Send("s", event.InputAcceptedData{Prompt: `Use skill with {"skill":"dance"}, then reply with the result`})
		_, at = v.Await(t, at, event.SessionIdle)
		b.Send("s", event.InputAcceptedData{Prompt: useAct})
		asked, _ := v.Await(t, at, event.ExternalAsked)
		d, _ := event.As[event.ExternalAskedData](asked)
		if won, err := b.Host.Answer(t.Context(), "s", turn.Answer{RequestID: d.RequestID, External: &turn.ExternalResult{Text: long}}); err != nil || !won {
			t.Fatal(won, err)
		}
		v.Await(t, at, event.SessionIdle)
		text := m.last().System
		for _, message := range m.last().Messages {
			text += "\n" + message.Text
		}
		for _, want := range []string{"Be kind.", "Do it twice.", dir + "/notes (2 lines)", "Saved to: " + temp} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: the model does not read %q in %q", network, want, text)
			}
		}
		text = strings.ReplaceAll(text, dir, "DIR")
		seen[network] = regexp.MustCompile(`\d+-copilot-tool-output-\w+|<current_datetime>.*?<`).ReplaceAllString(text, "*")
		b.Host.Close()
	}
	for network, text := range seen {
		if text != seen["local"] {
			t.Errorf("%s: the model reads\n%s\nand locally\n%s", network, text, seen["local"])
		}
	}
	kept, _ := filepath.Glob(temp + "/*-copilot-tool-output-*.txt")
	for _, path := range kept {
		if text, err := os.ReadFile(path); string(text) != long || err != nil {
			t.Errorf("%s has %d bytes, %v", path, len(text), err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
	if len(kept) != 4 {
		t.Errorf("kept are %q", kept)
	}
}

// While a workspace is away, turns go on with what is known of it, and answers count.
func TestASessionGoesOnWhileItsWorkspaceIsAway(t *testing.T) {
	for _, away := range []error{workspace.ErrLost, workspace.ErrToken} {
		dir := project(t)
		files := &switchedFiles{Files: local.New(dir, nil).Files}
		m := &recordingModel{}
		b, v := inProject(t, m, dir, files)
		b.Send("s", event.InputAcceptedData{Prompt: "Reply with exactly: ONE"})
		_, at := v.Await(t, 0, event.SessionIdle)
		system := m.last().System
		files.away.Store(&away)
		b.Send("s", event.InputAcceptedData{Prompt: useAct, Attachments: []json.RawMessage{json.RawMessage(`{"type":"file","path":"` + dir + `/notes"}`)}})
		asked, _ := v.Await(t, at, event.ExternalAsked)
		d, _ := event.As[event.ExternalAskedData](asked)
		if won, err := b.Host.Answer(t.Context(), "s", turn.Answer{RequestID: d.RequestID, External: &turn.ExternalResult{Text: strings.Repeat("x", 30_000)}}); err != nil || !won {
			t.Fatal(won, err)
		}
		v.Await(t, at, event.SessionIdle)
		if m.last().System != system || !strings.Contains(system, "Be kind.") {
			t.Errorf("the model was told %q, and now %q", system, m.last().System)
		}
		if text := m.last().Messages[2].Text; !strings.Contains(text, "* "+dir+"/notes\n") {
			t.Errorf("the attachment is %q", text)
		}
		if got := lastAnswer(t, b.Verify("s")); !strings.HasPrefix(got, "Output too large to read at once (29.3 KB), and it could not be saved: "+away.Error()) || !strings.HasSuffix(got, strings.Repeat("x", 500)) {
			t.Errorf("%v: the result is %q", away, got)
		}
		b.Host.Close()
	}
}

// A workspace that says nothing keeps an answer waiting for a moment, and a turn for a
// limited time.
func TestASilentWorkspaceIsNotWaitedForWithoutEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := sessiontest.New(t, offline.Model{})
		b.Options.Files = func(event.SessionID) (workspace.Files, error) { return silentFiles{}, nil }
		b.Options.Instructions = instructions.Rules{}.Read
		b.Restart()
		v := b.Create("s", &session.Client{Tools: []event.ExternalTool{{Name: "act", SkipPermission: true}}})
		b.Send("s", event.InputAcceptedData{Prompt: useAct})
		time.Sleep(time.Minute)
		asked, _ := v.Await(t, 0, event.ExternalAsked)
		d, _ := event.As[event.ExternalAskedData](asked)
		if won, err := b.Host.Answer(t.Context(), "s", turn.Answer{RequestID: d.RequestID, External: &turn.ExternalResult{Text: strings.Repeat("x", 30_000)}}); err != nil || !won {
			t.Fatal(won, err)
		}
		v.Await(t, 0, event.SessionIdle)
		if got := lastAnswer(t, b.Verify("s")); !strings.Contains(got, "it has not answered in time") {
			t.Errorf("the result is %q", got)
		}
		b.Host.Close()
	})
}

// silentFiles never answer.
type silentFiles struct{ workspace.Files }

func (silentFiles) Collect(ctx context.Context, _ ...workspace.Selection) ([][]workspace.Collected, error) {
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

func (silentFiles) Folders(ctx context.Context) (workspace.Folders, error) {
	<-ctx.Done()
	return workspace.Folders{}, context.Cause(ctx)
}
