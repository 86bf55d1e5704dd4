package upgradetest

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
)

// A program is a running program of any version, and its client.
type program struct {
	*peer
	dir string // holds the data folder, the files of the sessions and the scenario
	cmd *exec.Cmd
}

// startProgram starts the program on the data folder in dir, in an environment that says
// nothing about this machine.
func startProgram(t *testing.T, binary, dir string) *program {
	t.Helper()
	p := &program{dir: dir}
	p.cmd = exec.Command(binary, "--headless", "--stdio", "--home", filepath.Join(dir, "home"))
	p.cmd.Dir, p.cmd.Stderr = dir, os.Stderr
	p.cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=" + dir}
	in, err := p.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.peer = newPeer(t, pipe{out, in})
	return p
}

type pipe struct {
	io.ReadCloser
	in io.WriteCloser
}

func (p pipe) Write(b []byte) (int, error) { return p.in.Write(b) }
func (p pipe) Close() error                { return p.in.Close() }

// leave ends the connection, and with it the program.
func (p *program) leave() {
	p.close()
	_ = p.cmd.Wait() // its exit code says only how it was ended
}

// kill ends the program as a crash would.
func (p *program) kill() {
	if err := p.cmd.Process.Kill(); err != nil {
		p.t.Fatal(err)
	}
	p.leave()
}

// open makes a session that works in the folder "work".
func (p *program) open(id, model string, more object) {
	p.t.Helper()
	params := object{
		"sessionId": id, "model": model, "workingDirectory": filepath.Join(p.dir, "work"), "availableTools": nil,
		"requestPermission": true, "requestUserInput": true, "requestElicitation": true, "requestExitPlanMode": true,
		"tools":    []object{{"name": "lookup", "description": "Looks a thing up.", "skipPermission": true}},
		"commands": []object{{"name": "tidy", "description": "Tidies up."}},
	}
	for key, value := range more {
		params[key] = value
	}
	p.call(api.SessionCreate, params, nil)
}

// send gives a session an input and does not wait for what follows.
func (p *program) send(id, prompt string, more object) {
	p.t.Helper()
	params := object{"sessionId": id, "prompt": prompt}
	for key, value := range more {
		params[key] = value
	}
	p.call(api.SessionSend, params, nil)
}

// say gives a session an input and waits until it is idle.
func (p *program) say(id, prompt string) {
	p.t.Helper()
	n := p.count(id, event.SessionIdle)
	p.send(id, prompt, nil)
	p.until(id, event.SessionIdle, n+1)
}

// consent sends an input, gives one decision for each permission that it asks for,
// and waits until the session is idle.
func (p *program) consent(id, prompt string, decisions ...object) {
	p.t.Helper()
	asked, idle := p.count(id, event.PermissionAsked), p.count(id, event.SessionIdle)
	p.send(id, prompt, nil)
	for i, d := range decisions {
		p.decide(id, p.until(id, event.PermissionAsked, asked+i+1), d)
	}
	p.until(id, event.SessionIdle, idle+1)
}

func (p *program) decide(id string, asked event.Event, decision object) {
	p.t.Helper()
	p.call(api.AnswerPermission, object{"sessionId": id, "requestId": requestID(p.t, asked), "result": decision, "abideKey": "key-" + requestID(p.t, asked)}, nil)
}
