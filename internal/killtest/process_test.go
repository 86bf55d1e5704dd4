package killtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
)

// A process is a victim that lives, or has lived.
type process struct {
	t       *testing.T
	cmd     *exec.Cmd
	in, out *os.File      // the parent's ends of its standard streams
	told    func(report)  // what it reports
	dead    chan struct{} // closed when it was waited for

	mu     sync.Mutex
	stderr bytes.Buffer
}

// start starts a victim. It is dead at the end of the test in any case.
func start(t *testing.T, o orders, told func(report), change ...func(*exec.Cmd)) *process {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, cmd: exec.Command(os.Args[0], o.arguments()...), told: told, dead: make(chan struct{})}
	p.cmd.Env = []string{
		ordersVariable + "=" + string(text), "GORACE=halt_on_error=1 atexit_sleep_ms=0",
		"HOME=" + filepath.Dir(o.Dir), "TMPDIR=" + os.TempDir(),
	}
	p.cmd.Stderr = p
	childIn, childOut, reports := p.pipes()
	p.cmd.Stdin, p.cmd.Stdout = childIn, childOut
	for _, f := range change {
		f(p.cmd)
	}
	err = p.cmd.Start()
	childIn.Close()
	childOut.Close()
	p.cmd.ExtraFiles[0].Close()
	if err != nil {
		p.in.Close()
		p.out.Close()
		reports.Close()
		t.Fatal(err)
	}
	go p.wait(reports) // ends with the victim
	t.Cleanup(func() { p.kill(); <-p.dead; p.in.Close(); p.out.Close() })
	return p
}

// pipes makes the streams. The parent's ends are its own alone, so that each
// ends with the victim.
func (p *process) pipes() (in, out, reports *os.File) {
	in, p.in = pipe(p.t)
	p.out, out = pipe(p.t)
	reports, childReports := pipe(p.t)
	p.cmd.ExtraFiles = []*os.File{childReports}
	return in, out, reports
}

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	return r, w
}

// Write takes what the victim says on standard error.
func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stderr.Write(b)
}

func (p *process) said() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stderr.String()
}

func (p *process) read(from *os.File) {
	defer from.Close()
	for in := json.NewDecoder(from); ; {
		var r report
		if in.Decode(&r) != nil {
			return
		}
		p.told(r)
	}
}

func (p *process) wait(reports *os.File) {
	defer close(p.dead)
	p.read(reports)
	_ = p.cmd.Wait() // the state tells
}

// kill kills the victim, which may be dead already.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
}

// wasKilled returns nil if the victim died of SIGKILL, and else how it ended.
func (p *process) wasKilled() error {
	<-p.dead
	if status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() && status.Signal() == syscall.SIGKILL {
		return nil
	}
	return p.ended("it was not killed")
}

// leave ends the victim by leaving it, and returns nil if it then ended well.
func (p *process) leave() error {
	p.in.Close()
	<-p.dead
	if p.cmd.ProcessState.Success() {
		return nil
	}
	return p.ended("it did not end well")
}

func (p *process) ended(what string) error {
	return fmt.Errorf("%s: %v: %s", what, p.cmd.ProcessState, p.said())
}

// stdio makes a connection of a victim's streams. Closing it leaves the victim,
// and lets it say what it has to say until it ends.
type stdio struct{ *process }

func (s stdio) Read(b []byte) (int, error)  { return s.out.Read(b) }
func (s stdio) Write(b []byte) (int, error) { return s.in.Write(b) }
func (s stdio) Close() error                { return s.in.Close() }
