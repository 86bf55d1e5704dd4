package main

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/client"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/workspace/bridge"
)

// A talk is a session of an engine of a matrix.
type talk struct {
	m     *matrix
	on    *client.Client
	id    event.SessionID
	watch *client.Stream
}

// talk begins a session in a workspace, with changes of the usual request.
func (m *matrix) talk(e *matrixEngine, place string, changes ...func(*api.OpenParams)) *talk {
	m.t.Helper()
	k := &talk{m: m, on: e.client, id: event.SessionID(event.NewID())}
	k.watch = k.on.Watch(k.id)
	p := api.OpenParams{SessionID: k.id, Model: "offline", RequestUserInput: true, Abide: &api.OpenAbide{Approve: "all", Workspace: place}}
	for _, change := range changes {
		change(&p)
	}
	_, err := k.on.Create(m.t.Context(), p)
	must(m.t, err)
	return k
}

func (k *talk) send(prompt string) {
	k.m.t.Helper()
	_, err := k.on.Send(k.m.t.Context(), api.SendParams{SessionID: k.id, Prompt: prompt})
	must(k.m.t, err)
}

// await waits for an event of a type that contains a text.
func (k *talk) await(kind event.Type, text string) event.Event {
	k.m.t.Helper()
	return awaitEvent(k.m.t, k.watch, kind, text)
}

// waits makes the session wait for a command that ends when there is a file go-NAME.
func (k *talk) waits(name string) {
	k.m.t.Helper()
	up := k.m.src("up-" + name)
	must(k.m.t, syscall.Mkfifo(up, 0o622))
	must(k.m.t, os.Chmod(up, 0o622))
	k.send("Run `echo up >up-" + name + "; while [ ! -e go-" + name + " ]; do sleep 0.02; done; echo ended >>ended-" + name + "`")
	_, err := os.ReadFile(up) // the command runs
	must(k.m.t, err)
}

// asks makes the session ask, and returns the request.
func (k *talk) asks() string {
	k.m.t.Helper()
	k.send("Ask me: which?")
	d, err := event.As[event.UserInputAskedData](k.await(event.UserInputAsked, ""))
	must(k.m.t, err)
	return d.RequestID
}

func (k *talk) answer(request string) {
	k.m.t.Helper()
	won, err := k.on.AnswerUserInput(k.m.t.Context(), api.AnswerUserInputParams{SessionID: k.id, RequestID: request, Response: api.UserInputResult{Answer: "this"}})
	if !won || err != nil {
		k.m.t.Errorf("the answer was not taken: %v", err)
	}
}

func (k *talk) abort() {
	k.m.t.Helper()
	_, err := k.on.Abort(k.m.t.Context(), api.AbortParams{SessionID: k.id, Reason: "user_initiated"})
	must(k.m.t, err)
}

// figures are how long things take.
type figures map[string]time.Duration

// measure notes how long something takes.
func (f figures) measure(what string, do func()) {
	began := time.Now()
	do()
	f[what] = time.Since(began).Round(time.Millisecond)
}

// An engine does what does not need a workspace, while that is silent, as it does when the
// workspace is there: nothing here ends before the wire speaks again unless it needs no wire.
func TestMatrixSilentWorkspaceDelaysNobody(t *testing.T) {
	m := newMatrix(t, matrixOptions{})
	e, err := m.start("")
	must(t, err)
	all := make(map[wireState]figures)
	var stopped, gone *talk // their commands are to be stopped while the workspace is silent
	for _, state := range []wireState{wireOpen, wireSilent} {
		f, name := make(figures), []string{"open", "", "", "silent"}[state]
		all[state] = f
		working, asking, fresh, other := m.talk(e, "box"), m.talk(e, "box"), m.talk(e, "box"), m.talk(e, "local")
		deleted := m.talk(e, "box")
		deleted.send("Run `sleep 1000` in the background")
		deleted.await(event.SessionIdle, "")
		working.waits(name)
		stopped, gone = working, deleted
		request := asking.asks()
		m.wire.set(state)
		f.measure("abort", func() { working.abort(); working.await(event.SessionIdle, "") })
		f.measure("answer", func() { asking.answer(request); asking.await(event.SessionIdle, "") })
		f.measure("turn of another session", func() {
			other.send("Run `echo $PLACE`")
			other.await(event.AssistantMessage, "here")
			other.await(event.SessionIdle, "")
		})
		f.measure("delete", func() {
			_, err := e.client.Delete(t.Context(), deleted.id)
			must(t, err)
		})
		f.measure("list of tasks", func() {
			_, err := e.client.Tasks(t.Context(), api.TasksParams{All: true})
			must(t, err)
		})
		fresh.send(`Use create with {"path":"` + m.src("never") + `","file_text":"x"}`)
		f.measure("abort of a turn that begins", func() {
			fresh.abort()
			fresh.await(event.SessionIdle, "")
		})
	}
	for what, took := range all[wireSilent] {
		t.Logf("%-28s %8v with a silent workspace, %8v with one that answers", what, took, all[wireOpen][what])
	}
	f := make(figures)
	f.measure("stop", e.stop)
	t.Logf("stop of the engine while the workspace is silent: %v", f["stop"])
	if _, err := os.Stat(filepath.Join(m.there, "src", "ended-silent")); err == nil {
		t.Error("the command has ended by itself")
	}
	m.wire.set(wireOpen)
	e, err = m.start("") // it stops what the other one could not
	must(t, err)
	stopped.isKilled()
	gone.isKilled()
	e.stop()
	m.audit()
}

// isKilled waits for the end of the session's only command, and checks that it was killed.
func (k *talk) isKilled() {
	k.m.t.Helper()
	ws := connect(k.m.t, bridge.ClientOptions{Address: k.m.args[4]})
	list, err := ws.Processes.List(k.m.t.Context(), process.Owner(k.id))
	must(k.m.t, err)
	ctx, cancel := context.WithTimeout(k.m.t.Context(), storyTime)
	defer cancel()
	if info, err := ws.Processes.Wait(ctx, process.Owner(k.id), list[0].ID); err != nil || info.State != process.Killed {
		k.m.t.Errorf("%+v, %v", info, err)
	}
}

// A command whose turn was stopped while its workspace was away is stopped when the
// workspace is back, also if whoever waits for the command has not noticed anything.
func TestMatrixStopIsCarriedOutWhenTheWorkspaceIsBack(t *testing.T) {
	for name, away := range map[string]wireState{"Refused": wireRefused, "Silent": wireSilent} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMatrix(t, matrixOptions{})
			e, err := m.start("")
			must(t, err)
			k := m.talk(e, "box")
			k.waits("x")
			m.wire.set(away)
			k.abort()
			k.await(event.SessionIdle, "")
			m.wire.set(wireOpen)
			k.isKilled()
			e.stop()
			m.lacks("ended-x")
			m.audit()
		})
	}
}
