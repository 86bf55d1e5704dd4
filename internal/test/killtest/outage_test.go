package killtest

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/remote/remotetest"
	"github.com/abide-run/abide/internal/model/scripted"
)

// The scenario "retry" is a turn that is parked twice and goes on. The one
// below falls back.

// outageSource makes a model behind HTTP that fails as it is told to. A request is given to
// fault with its number and the name of its model.
func outageSource(t *testing.T, fault func(n int, name string, body []byte) remotetest.Fault) *modelSource {
	t.Helper()
	return outageOf(t, load(t, writeScript(t, false)), fault)
}

// load returns the scripted model of a file.
func load(t *testing.T, path string) model.Model {
	t.Helper()
	played, err := scripted.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	return played
}

// outageOf is outageSource for a model.
func outageOf(t *testing.T, m model.Model, fault func(n int, name string, body []byte) remotetest.Fault) *modelSource {
	t.Helper()
	server := chat.serve(m, remotetest.Options{Key: "key", Fault: func(n int, body []byte) remotetest.Fault {
		var asked struct{ Model string }
		if err := json.Unmarshal(body, &asked); err != nil {
			t.Errorf("a request cannot be read: %v", err)
		}
		return fault(n, asked.Model, body)
	}})
	t.Cleanup(server.Close)
	provider := chat.provider
	provider.BaseURL, provider.APIKey = server.URL, "key"
	return &modelSource{model: "m", provider: &provider, faults: noRequests, history: noRequests, settle: server.Settle}
}

// fallbackRun is a run of a turn that is parked once, and then goes on with another model.
func fallbackRun(t *testing.T) (*run, *modelSource) {
	t.Helper()
	return fallbackRunOf(t, load(t, writeScript(t, false)))
}

// fallbackRunOf is fallbackRun with a model.
func fallbackRunOf(t *testing.T, m model.Model) (*run, *modelSource) {
	t.Helper()
	w := outageOf(t, m, func(n int, name string, _ []byte) remotetest.Fault {
		switch {
		case name == "other":
			return nil
		case n == 1:
			return remotetest.Status(http.StatusServiceUnavailable, "out of order")
		}
		return remotetest.Status(http.StatusNotFound, "no such model")
	})
	r := newRun(t, scenarios[0].conversation(w))
	r.configure("[model]\nfallback = [\"other\"]\n")
	return r, w
}

// configure adds lines to the configuration of a run.
func (r *run) configure(lines string) {
	r.t.Helper()
	if err := os.MkdirAll(r.instructions.Dir, 0o700); err != nil {
		r.t.Fatal(err)
	}
	f, err := os.OpenFile(filepath.Join(r.instructions.Dir, "config.toml"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.WriteString(lines)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// judgeFallback checks that a turn has fallen back once, and was answered by the fallback.
func judgeFallback(t *testing.T, w *modelSource, out outcome) {
	t.Helper()
	var fell []event.TurnFallbackData
	var answered []string
	c := &checker{outcome: out}
	for _, e := range out.log {
		switch e.Type {
		case event.TurnFallback:
			fell = append(fell, as[event.TurnFallbackData](c, e))
		case event.AssistantMessage:
			answered = append(answered, as[event.AssistantMessageData](c, e).Model)
		}
	}
	if len(fell) != 1 || fell[0].Model != "other" || fell[0].From != "m" || !slices.Equal(answered, []string{"other"}) {
		t.Errorf("the turn fell back with %+v and was answered by %q", fell, answered)
	}
	judgeRun(t, w, out, expected{answers: []string{"HELLO"}})
}

func TestATurnThatFallsBackDoesSoOnceWhereverItIsKilled(t *testing.T) {
	r, w := fallbackRun(t)
	calm := r.play()
	judgeFallback(t, w, calm)
	if !slices.ContainsFunc(calm.log, func(e event.Event) bool { return e.Type == event.TurnParked }) {
		t.Error("the turn was not parked before")
	}
	for _, at := range stops(calm.writes, true, 0) {
		t.Run(at.String(), func(t *testing.T) {
			t.Parallel()
			t.Logf("the write stores %v", calm.writes[at.Write-1].Events)
			r, w := fallbackRun(t)
			judgeFallback(t, w, r.play(at))
		})
	}
}
