package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/approval/protect"
	"github.com/abide-run/abide/internal/client"
	"github.com/abide-run/abide/internal/event"
)

// A guardedPlace is a workspace elsewhere with a repository and a home. The machine of the
// engine has no such files.
type guardedPlace struct {
	*elsewhere
	hook, config, rc string
}

// The commands that change protected files, and what the files held before.
const (
	evilHook   = "#!/bin/sh\nexit 1\n"
	evilConfig = "[core]\n\tbare = false\n[alias]\n\tst = !evil\n"
	evilRC     = "alias ls=evil\n"
	goodConfig = "[core]\n\tbare = false\n"
	goodRC     = "alias ls=ls\n"
)

func newGuardedPlace(t *testing.T) *guardedPlace {
	t.Helper()
	g := &guardedPlace{elsewhere: newMachines(t)}
	src, home := filepath.Join(g.there, "src"), filepath.Join(g.there, "user")
	g.hook, g.config, g.rc = filepath.Join(src, ".git", "hooks", "pre-commit"), filepath.Join(src, ".git", "config"), filepath.Join(home, ".bashrc")
	g.put(filepath.Join(src, ".git", "HEAD"), "ref: refs/heads/main\n")
	g.put(g.config, goodConfig)
	g.put(g.rc, goodRC)
	must(t, os.MkdirAll(filepath.Dir(g.hook), 0o755))
	g.put(filepath.Join(src, "evil.sh"), fmt.Sprintf("printf '%s' >'%s'\nprintf '%s' >'%s'\nprintf '%s' >'%s'\necho changed\n",
		quoted(evilHook), g.hook, quoted(evilConfig), g.config, quoted(evilRC), g.rc))
	socket := filepath.Join(g.there, "w.sock")
	g.args, g.env = []string{"--listen", "unix:" + socket}, []string{"HOME=" + home, "XDG_CONFIG_HOME=", "ABIDE_COMMANDS_SANDBOX=off"} // a command in the sandbox cannot kill its workspace
	g.configure("[workspaces.box]\naddress = \"unix:" + socket + "\"\n")
	g.serve()
	return g
}

func quoted(text string) string { return strings.ReplaceAll(text, "\n", "\\n") }

func (g *guardedPlace) put(path, text string) {
	g.t.Helper()
	must(g.t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(g.t, os.WriteFile(path, []byte(text), 0o644))
}

// wantFiles checks what the protected files hold: what the command wrote, or what was there
// before it.
func (g *guardedPlace) wantFiles(when string, changed bool) {
	g.t.Helper()
	want := map[string]string{g.hook: "", g.config: goodConfig, g.rc: goodRC}
	if changed {
		want = map[string]string{g.hook: evilHook, g.config: evilConfig, g.rc: evilRC}
	}
	for path, text := range want {
		if got, err := os.ReadFile(path); string(got) != text || (text == "") != os.IsNotExist(err) {
			g.t.Errorf("%s, %s holds %q, want %q; %v", when, path, got, text, err)
		}
	}
}

// begin begins a session that everything is allowed in, with a client that is asked.
func (s *servedEngine) beginAsked() (event.SessionID, *client.Stream) {
	s.t.Helper()
	id := event.SessionID(event.NewID())
	stream := s.client.Watch(id)
	_, err := s.client.Create(s.t.Context(), api.OpenParams{SessionID: id, Model: "offline", RequestPermission: true, Abide: &api.OpenAbide{Approve: "all", Workspace: "box"}})
	must(s.t, err)
	return id, stream
}

// resumeAsked comes back to a session, to be asked.
func (s *servedEngine) resumeAsked(id event.SessionID) *client.Stream {
	s.t.Helper()
	stream := s.client.Watch(id)
	_, err := s.client.Resume(s.t.Context(), api.OpenParams{SessionID: id, RequestPermission: true, ContinuePending: new(true), Abide: &api.OpenAbide{Keep: true}})
	must(s.t, err)
	return stream
}

// question returns the next question about changes that were put back.
func question(t *testing.T, stream *client.Stream) (id, diff string) {
	t.Helper()
	e := awaitEvent(t, stream, event.PermissionAsked, `"putBack":true`)
	var asked event.PermissionAskedData
	must(t, e.Decode(&asked))
	var shown struct{ Diff string }
	must(t, json.Unmarshal(asked.PermissionRequest, &shown))
	return asked.RequestID, shown.Diff
}

func (s *servedEngine) reply(id event.SessionID, request string, yes bool) {
	s.t.Helper()
	result := `{"kind":"reject"}`
	if yes {
		result = `{"kind":"approve-once"}`
	}
	if ok, err := s.client.AnswerPermission(s.t.Context(), api.AnswerPermissionParams{SessionID: id, RequestID: request, Result: json.RawMessage(result)}); err != nil || !ok {
		s.t.Fatalf("answer: %v, %v", ok, err)
	}
}

// wantDiff checks that a person is shown all three changes.
func wantDiff(t *testing.T, g *guardedPlace, diff string) {
	t.Helper()
	for _, part := range []string{g.hook, "+exit 1", g.config, "+\tst = !evil", g.rc, "-alias ls=ls", "+alias ls=evil"} {
		if !strings.Contains(diff, part) {
			t.Errorf("the diff lacks %q:\n%s", part, diff)
		}
	}
}

func TestWhatACommandElsewhereDoesToProtectedFilesIsPutBackAndAsked(t *testing.T) {
	for name, yes := range map[string]bool{"Yes": true, "No": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGuardedPlace(t)
			engine := g.engine()
			id, stream := engine.beginAsked()
			engine.send(id, "Run `sh evil.sh`")
			request, diff := question(t, stream)
			wantDiff(t, g, diff)
			g.wantFiles("before the answer", false)
			engine.reply(id, request, yes)
			done := awaitEvent(t, stream, event.ToolComplete, "changed")
			if want := map[bool]string{true: "The user allowed the change", false: "The user did not allow the change"}[yes]; !strings.Contains(string(done.Bytes), want) {
				t.Errorf("the model reads %s", done.Bytes)
			}
			awaitEvent(t, stream, event.SessionIdle, "")
			g.wantFiles("after the answer", yes)
			// A person's change between commands is left alone.
			g.put(g.rc, "mine\n")
			engine.send(id, "Run `echo second`")
			awaitEvent(t, stream, event.ToolComplete, "second")
			awaitEvent(t, stream, event.SessionIdle, "")
			if got, err := os.ReadFile(g.rc); string(got) != "mine\n" {
				t.Errorf("a person's change became %q, %v", got, err)
			}
			engine.stop()
		})
	}
}

// The engine dies while the command runs, after the files were put back, and after the
// answer: each time the next one goes on, and the person is asked one question.
func TestAnEngineThatIsKilledForgetsNoProtectedFileElsewhere(t *testing.T) {
	t.Parallel()
	g := newGuardedPlace(t)
	engine := g.engine()
	id, _ := engine.beginAsked()
	up := filepath.Join(g.there, "src", "up")
	must(t, syscall.Mkfifo(up, 0o600))
	engine.send(id, "Run `sh evil.sh; echo up >up; while [ ! -e go ]; do sleep 0.02; done`")
	_, err := os.ReadFile(up) // the files are changed, and the command runs
	must(t, err)
	engine.kill()
	g.wantFiles("while nobody looks", true)
	g.letGo()
	engine = g.engine()
	stream := engine.resumeAsked(id)
	first, diff := question(t, stream)
	wantDiff(t, g, diff)
	g.wantFiles("after the first crash", false)
	engine.kill()
	engine = g.engine()
	engine.resumeAsked(id)
	request := ""
	for e, err := range engine.client.Events(t.Context(), id, 0) {
		must(t, err)
		if e.Type == event.PermissionAsked {
			var asked event.PermissionAskedData
			must(t, e.Decode(&asked))
			request = asked.RequestID
		}
	}
	if request != first {
		t.Errorf("another question: %s, %s", request, first)
	}
	engine.reply(id, request, true)
	engine.kill() // at some point of carrying out the answer
	engine = g.engine()
	stream = engine.resumeAsked(id)
	engine.send(id, "Reply with exactly: DONE")
	awaitEvent(t, stream, event.AssistantMessage, "DONE")
	g.wantFiles("after the answer", true)
	engine.stop()
}

// The workspace dies while the command runs, and between the question and the answer.
func TestAWorkspaceThatIsKilledForgetsNoProtectedFile(t *testing.T) {
	t.Parallel()
	g := newGuardedPlace(t)
	engine := g.engine()
	id, stream := engine.beginAsked()
	up := filepath.Join(g.there, "src", "up")
	must(t, syscall.Mkfifo(up, 0o600))
	engine.send(id, "Run `sh evil.sh; echo up >up; while [ ! -e go ]; do sleep 0.02; done`")
	_, err := os.ReadFile(up)
	must(t, err)
	g.kill()
	awaitEvent(t, stream, event.ToolComplete, "The workspace cannot be reached")
	awaitEvent(t, stream, event.SessionIdle, "")
	// No command starts while nobody can look.
	engine.send(id, "Run `echo unguarded >unguarded`")
	awaitEvent(t, stream, event.ToolComplete, "cannot be reached")
	awaitEvent(t, stream, event.SessionIdle, "")
	g.letGo()
	g.serve()
	// The end of the task is reported together with what was put back.
	awaitEvent(t, stream, event.SystemNotification, "put back")
	awaitEvent(t, stream, event.SessionIdle, "")
	g.wantFiles("when the workspace is back", false)
	if _, err := os.Stat(filepath.Join(g.there, "src", "unguarded")); !os.IsNotExist(err) {
		t.Errorf("a command was started unguarded: %v", err)
	}
	engine.send(id, "Run `echo next`")
	request, diff := question(t, stream)
	wantDiff(t, g, diff)
	g.kill()
	engine.reply(id, request, true)
	awaitEvent(t, stream, event.SessionIdle, "") // the answer could not be carried out
	g.wantFiles("after an answer that could not be carried out", false)
	g.serve()
	engine.send(id, "Run `echo again`")
	request, diff = question(t, stream)
	wantDiff(t, g, diff)
	engine.reply(id, request, true)
	awaitEvent(t, stream, event.ToolComplete, "The user allowed the change")
	awaitEvent(t, stream, event.SessionIdle, "")
	g.wantFiles("after the answer", true)
	engine.stop()
}

// A look that is due is made when the workspace is back, though no call needs it.
func TestALookElsewhereThatWasDueIsMade(t *testing.T) {
	t.Parallel()
	g := newGuardedPlace(t)
	engine := g.engine()
	id, stream := engine.beginAsked()
	// The command kills its workspace after it has changed the files, and stays until then.
	engine.send(id, fmt.Sprintf("Run `sh evil.sh; kill -9 %d`", g.serves.pid()))
	awaitEvent(t, stream, event.ToolComplete, "cannot be reached")
	g.serves.ends()
	awaitEvent(t, stream, event.SessionIdle, "")
	g.wantFiles("while the workspace is away", true)
	g.serve()
	for {
		if _, err := os.Stat(g.hook); os.IsNotExist(err) {
			break
		}
		must(t, t.Context().Err())
	}
	engine.send(id, "Run `echo next`")
	request, diff := question(t, stream)
	wantDiff(t, g, diff)
	g.wantFiles("when the workspace is back", false)
	engine.reply(id, request, false)
	awaitEvent(t, stream, event.SessionIdle, "")
	engine.stop()
}

// A file that is too large to be kept is not lost, though the engine is on another disk.
func TestALargeFileElsewhereIsNotLost(t *testing.T) {
	t.Parallel()
	g := newGuardedPlace(t)
	engine := g.engine()
	id, stream := engine.beginAsked()
	g.put(filepath.Join(g.there, "src", "large.sh"), fmt.Sprintf("head -c %d /dev/zero >'%s'\nchmod 755 '%s'\n", protect.MaxKept+1, g.hook, g.hook))
	engine.send(id, "Run `sh large.sh`")
	request, _ := question(t, stream)
	g.wantFiles("before the answer", false)
	engine.kill()
	g.kill()
	g.serve()
	engine = g.engine()
	stream = engine.resumeAsked(id)
	engine.reply(id, request, true)
	awaitEvent(t, stream, event.SessionIdle, "")
	if info, err := os.Stat(g.hook); err != nil || info.Size() != protect.MaxKept+1 || info.Mode() != 0o755 {
		t.Errorf("%+v, %v", info, err)
	}
	engine.stop()
}

// An agent's command counts as the session's own, also when it left a process behind.
func TestAnAgentElsewhereIsLookedAfter(t *testing.T) {
	t.Parallel()
	g := newGuardedPlace(t)
	engine := g.engine()
	id, stream := engine.beginAsked()
	late := "(while [ ! -e go ]; do sleep 0.02; done; sh evil.sh >/dev/null; touch over) >/dev/null 2>&1 &"
	g.put(filepath.Join(g.there, "src", "late.sh"), late+"\n")
	engine.send(id, `Use task with {"name":"n","description":"d","agent_type":"general-purpose","prompt":"Run `+"`setsid sh late.sh`"+`"}`)
	awaitEvent(t, stream, event.SessionIdle, "")
	engine.send(id, "Run `echo first`")
	awaitEvent(t, stream, event.SessionIdle, "")
	engine.kill()
	g.letGo()
	for {
		if _, err := os.Stat(filepath.Join(g.there, "src", "over")); err == nil {
			break
		}
		must(t, t.Context().Err())
	}
	engine = g.engine()
	stream = engine.resumeAsked(id)
	engine.send(id, "Run `echo second`")
	request, diff := question(t, stream)
	wantDiff(t, g, diff)
	g.wantFiles("after the agent's process has ended", false)
	engine.reply(id, request, false)
	awaitEvent(t, stream, event.SessionIdle, "")
	engine.stop()
}
