package main

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/process/sandbox"
)

// confinedScript says whether the command that runs it is confined.
const confinedScript = "grep NoNewPrivs /proc/self/status; echo in $PLACE"

// Commands in a workspace elsewhere are confined there, and one that a person has allowed to
// run without is not.
func TestCommandsElsewhereAreConfined(t *testing.T) {
	if sandbox.Kernel() == 0 {
		t.Skip("skipped: this kernel has no Landlock")
	}
	e := newElsewhere(t)
	if out := e.answer("--workspace", "box", "Run `"+confinedScript+"`"); !strings.Contains(out, "NoNewPrivs:\t1\nin there") {
		t.Errorf("it printed %q", out)
	}
	_, stderr, code := e.run("--workspace", "box", `Use bash with {"command":"`+confinedScript+`","description":"try","unsandboxed":true}`)
	if code != 5 || !strings.Contains(stderr, "it is to run without the sandbox") {
		t.Fatalf("exit code %d, %s", code, stderr)
	}
	answer := e.command("answer", string(e.last()), "yes")
	out, err := answer.Output()
	if err != nil || !strings.Contains(string(out), "NoNewPrivs:\t0\nin there") {
		t.Errorf("%v, it printed %q, %s", err, out, answer.stderr)
	}
}

// A command elsewhere does not get a repository above by removing the one that its session
// began with, and neither does one in a folder that became a link.
func TestFoldersElsewhereAreWhatTheyWere(t *testing.T) {
	if sandbox.Kernel() == 0 {
		t.Skip("skipped: this kernel has no Landlock")
	}
	e := newElsewhere(t)
	out, stderr, _ := e.run("--workspace", "box", "--name", "first", "Run `cd .. && mv src moved && ln -s moved src && echo done`")
	if !strings.Contains(out, "done") {
		t.Fatalf("it printed %q, %s", out, stderr)
	}
	if out, stderr, _ = e.run("--resume", string(e.last()), "Run `echo still`"); strings.Contains(out, "still\n") || !strings.Contains(out+stderr, "and led to") {
		t.Errorf("it printed %q, %s", out, stderr)
	}
}

// What the settings of the engine demand of commands holds elsewhere, too.
func TestTheEngineDemandsAsMuchElsewhere(t *testing.T) {
	if sandbox.Kernel() < sandbox.MinABI {
		t.Skip("skipped: this kernel has no Landlock")
	}
	e := newMachines(t)
	must(t, os.MkdirAll(filepath.Join(e.there, "home"), 0o700))
	must(t, os.WriteFile(filepath.Join(e.there, "home", "config.toml"), []byte("commands.sandbox = 'off'\n"), 0o600))
	socket := filepath.Join(e.there, "w.sock")
	e.args = []string{"--listen", "unix:" + socket}
	box := "[workspaces.box]\naddress = \"unix:" + socket + "\"\n"
	e.configure(box)
	e.serve()
	if out := e.answer("--workspace", "box", "Run `"+confinedScript+"`"); !strings.Contains(out, "NoNewPrivs:\t0") {
		t.Errorf("it printed %q", out)
	}
	e.configure("[commands]\nsandbox = 'require'\n" + box)
	if out, _, _ := e.run("--workspace", "box", "Run `"+confinedScript+"`"); strings.Contains(out, "NoNewPrivs") || !strings.Contains(out, "and off where its commands run") {
		t.Errorf("it printed %q", out)
	}
	if sandbox.TrySealed() != nil {
		t.Skip("the rest needs namespaces")
	}
	e.configure("[commands]\nnetwork = 'off'\n" + box)
	if out := e.answer("--workspace", "box", "Run `grep -c : /proc/net/dev`"); !strings.HasPrefix(out, "1\n") {
		t.Errorf("it has more than one interface: %q", out)
	}
}

// A socket without a token is not for commands of the workspace: they could start others
// that are not confined.
func TestACommandElsewhereCannotUseItsWorkspace(t *testing.T) {
	if sandbox.Kernel() == 0 {
		t.Skip("skipped: this kernel has no Landlock")
	}
	e := newElsewhere(t)
	program := lookPath(t, "abide")
	check := program + " workspace check unix:" + filepath.Join(e.there, "w.sock") + " --home " + filepath.Join(e.there, "other")
	if out := e.answer("--workspace", "box", "Run `"+check+"; echo code $?`"); !strings.Contains(out, "code 1") || strings.Contains(out, "protocol") {
		t.Errorf("it printed %q", out)
	}
}

// httpDoor is the process API of an engine.
type httpDoor struct {
	t          *testing.T
	url, token string
}

func (e *elsewhere) http() httpDoor {
	e.t.Helper()
	p := e.command("serve", "--http", "127.0.0.1:0")
	p.begin()
	address := p.await(`^HTTP on (\S+)\n`)[1]
	token, err := os.ReadFile(p.await(`^token in (\S+)\n`)[1])
	must(e.t, err)
	return httpDoor{e.t, "http://" + strings.TrimPrefix(address, "http://") + "/api/v0/processes", strings.TrimSpace(string(token))}
}

// ask makes a request, and returns the answer.
func (d httpDoor) ask(method, path, session, body string) (int, string) {
	d.t.Helper()
	r, err := http.NewRequestWithContext(d.t.Context(), method, d.url+path, strings.NewReader(body))
	must(d.t, err)
	r.Header.Set("Authorization", "Bearer "+d.token)
	r.Header.Set("Abide-Session-Id", session)
	answer, err := http.DefaultClient.Do(r)
	must(d.t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	must(d.t, err)
	return answer.StatusCode, string(text)
}

// run runs a command, and returns what it printed.
func (d httpDoor) run(session, command string) string {
	d.t.Helper()
	status, text := d.ask(http.MethodPost, "/start", session, `{"command":"`+command+`"}`)
	if status != http.StatusOK {
		d.t.Fatalf("%d %s", status, text)
	}
	_, id, _ := strings.Cut(text, `"id":"`)
	id, _, _ = strings.Cut(id, `"`)
	_, text = d.ask(http.MethodGet, "/"+id+"/output?wait=true", session, "")
	return text
}

// A command over HTTP is started where its session works, and in its profile: nowhere on
// this machine if that is elsewhere, and sealed in a sealed session.
func TestCommandsOverHTTPRunWhereTheirSessionsWork(t *testing.T) {
	e := newElsewhere(t)
	e.answer("--workspace", "box", "Reply with exactly: HI")
	away := string(e.last())
	sealed := sandbox.TrySealed() == nil
	shut := ""
	if sealed {
		work := t.TempDir()
		p := e.command("run", "--model", "offline", "--sealed", "Reply with exactly: HI")
		p.Dir = work
		p.Env = append(p.Env, "ABIDE_HOME="+filepath.Join(e.dir, "home"))
		if out, err := p.Output(); err != nil {
			t.Fatalf("%v, %s, %s", err, out, p.stderr)
		}
		shut = string(e.last())
	}
	d := e.http()
	if out := d.run(away, "echo in $PLACE,$ONLY_HERE$OPENAI_API_KEY; cat f"); !strings.Contains(out, `"in there,\ntext there\n"`) {
		t.Errorf("the command of a session elsewhere printed %s", out)
	}
	if shut != "" {
		if out := d.run(shut, "grep -c : /proc/net/dev; pwd; ls /proc | grep -c '^[0-9]'; echo $ONLY_HERE"); !strings.Contains(out, `"1\n`) {
			t.Errorf("the command of a sealed session printed %s", out)
		}
	}
	e.kill()
	if status, text := d.ask(http.MethodPost, "/start", away, `{"command":"echo here"}`); status != http.StatusServiceUnavailable {
		t.Errorf("a command was started although its workspace is away: %d %s", status, text)
	}
}
