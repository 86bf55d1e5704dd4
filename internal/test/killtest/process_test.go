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

// A process is a victim, running or ended.
type process struct {
	t        *testing.T
	cmd      *exec.Cmd
	in, out  *os.File      // the parent's ends of its standard streams
	onReport func(report)  // called for each report of the victim
	dead     chan struct{} // closed when the process has ended

	mu     sync.Mutex
	stderr bytes.Buffer
}

// start starts a victim, which is killed at the latest at the end of the test.
func start(t *testing.T, o instructions, told func(report), change ...func(*exec.Cmd)) *process {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, cmd: exec.Command(o.program(), o.arguments()...), onReport: told, dead: make(chan struct{})}
	p.cmd.Env = []string{
		instructionsVariable + "=" + string(text), "GORACE=halt_on_error=1 atexit_sleep_ms=0",
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

// pipes makes the streams. The victim does not inherit the parent's ends, so that
// each stream ends with the victim.
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

// Write records what the victim prints on standard error.
func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stderr.Write(b)
}

func (p *process) stderrText() string {
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
		p.onReport(r)
	}
}

func (p *process) wait(reports *os.File) {
	defer close(p.dead)
	p.read(reports)
	_ = p.cmd.Wait() // the state tells
}

// kill kills the victim if it has not ended yet.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
}

// wasKilled returns nil if SIGKILL ended the victim, and otherwise how it ended.
func (p *process) wasKilled() error {
	<-p.dead
	if status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() && status.Signal() == syscall.SIGKILL {
		return nil
	}
	return p.endError("it was not killed")
}

// leave closes the victim's standard input, and returns nil if it then exits with 0.
func (p *process) leave() error {
	p.in.Close()
	<-p.dead
	if p.cmd.ProcessState.Success() {
		return nil
	}
	return p.endError("it did not end well")
}

func (p *process) endError(what string) error {
	return fmt.Errorf("%s: %v: %s", what, p.cmd.ProcessState, p.stderrText())
}

// stdio is a connection over a victim's standard streams. Closing it closes the
// victim's input only, so that its output can be read until it ends.
type stdio struct{ *process }

func (s stdio) Read(b []byte) (int, error)  { return s.out.Read(b) }
func (s stdio) Write(b []byte) (int, error) { return s.in.Write(b) }
func (s stdio) Close() error                { return s.in.Close() }
