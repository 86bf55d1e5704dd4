package main

import (
	"encoding/json"
	"strings"
	"syscall"
	"testing"

	"github.com/abide-run/abide/internal/api"
)

// abandon starts a run, kills its engine while the model is asked, and returns the id of
// the session, which is unfinished.
func abandon(t *testing.T, dir string, model *sharedProvider, name string) string {
	t.Helper()
	p := model.start(t, dir, name)
	must(t, syscall.Kill(p.pid(), syscall.SIGKILL))
	p.ends()
	var list []api.SessionInfo
	must(t, json.Unmarshal([]byte(output(t, dir, "sessions", "list", "--json")), &list))
	if !list[0].Abide.Unattended {
		t.Fatalf("the session is listed as %+v", list[0].Abide)
	}
	return string(list[0].SessionID)
}

func TestAnUnrelatedCommandDoesNotGoOnWithUnfinishedWork(t *testing.T) {
	const notice = "abide: 2 other sessions are unfinished"
	dir := t.TempDir()
	model := newSharedProvider(t, "first", "second")
	first := abandon(t, dir, model, "first")
	abandon(t, dir, model, "second")
	for _, c := range []struct {
		args []string
		told int // number of times that the notice is printed
	}{
		{[]string{"run", "Reply with exactly: HI"}, 1},
		{[]string{"run", "--quiet", "Reply with exactly: HI"}, 0},
		{[]string{"run", "--json", "Reply with exactly: HI"}, 0},
		{[]string{"run", "--output-format", "stream-json", "Reply with exactly: HI"}, 0},
		{[]string{"run", "--continue", "Reply with exactly: HI"}, 1},
		{[]string{"ps"}, 0},
		{[]string{"sessions", "show", first}, 0},
		{[]string{"memory", "forget", first}, 0},
	} {
		p := command(t, dir, c.args...)
		p.begin()
		if _, code := p.ends(); code != 0 {
			t.Errorf("%v: exit code %d; stderr: %s", c.args, code, p.stderr)
		}
		if got := strings.Count(p.stderr.String(), notice); got != c.told {
			t.Errorf("%v: the unfinished sessions are told %d times, want %d; stderr: %s", c.args, got, c.told, p.stderr)
		}
	}
	for _, name := range model.names {
		if got := model.requests(name); got != 1 {
			t.Errorf("the model was asked %d times for the %s", got, name)
		}
	}
	if got := output(t, dir, "sessions", "list"); strings.Count(got, "  unfinished  ") != 2 {
		t.Errorf("the sessions are listed as\n%s", got)
	}

	close(model.gate["first"])
	p := command(t, dir, "run", "--resume", first)
	p.Env = append(p.Env, "OPENAI_BASE_URL="+model.url)
	p.begin()
	if out, code := p.ends(); code != 0 || out != "answer to first\n" {
		t.Errorf("exit code %d, stdout %q, stderr: %s", code, out, p.stderr)
	}
	if !strings.Contains(p.stderr.String(), "abide: 1 other session is unfinished") {
		t.Errorf("stderr: %s", p.stderr)
	}
	if a, b := model.requests("first"), model.requests("second"); a != 2 || b != 1 {
		t.Errorf("the model was asked %d times for the first, %d times for the second", a, b)
	}
}

func TestAClientOfAnSDKDoesNotGoOnWithUnfinishedWork(t *testing.T) {
	dir := t.TempDir()
	model := newSharedProvider(t, "first")
	abandon(t, dir, model, "first")
	p := command(t, dir, "--headless", "--stdio")
	in, err := p.StdinPipe()
	must(t, err)
	p.begin()
	must(t, in.Close())
	if _, code := p.ends(); code != 0 || p.stderr.String() != "" || model.requests("first") != 1 {
		t.Errorf("exit code %d, stderr %q, %d requests", code, p.stderr, model.requests("first"))
	}
}

func TestAServerGoesOnWithEverything(t *testing.T) {
	for name, engine := range map[string]func(t *testing.T, dir string, model *sharedProvider){
		"engine": func(*testing.T, string, *sharedProvider) {},
		"relay": func(t *testing.T, dir string, model *sharedProvider) {
			p := model.start(t, dir, "other")
			t.Cleanup(func() {
				close(model.gate["other"])
				p.ends()
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			model := newSharedProvider(t, "first", "second", "other")
			abandon(t, dir, model, "first")
			abandon(t, dir, model, "second")
			engine(t, dir, model)
			server := start(t, dir, "serve")
			server.await("serves .*" + name)
			<-model.asked["first"]
			<-model.asked["second"]
			if got := output(t, dir, "sessions", "list"); strings.Contains(got, "unfinished") {
				t.Errorf("the sessions are listed as\n%s", got)
			}
			must(t, server.Process.Signal(syscall.SIGTERM))
			close(model.gate["first"])
			close(model.gate["second"])
			server.ends()
		})
	}
}
