package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"

	copilot "github.com/github/copilot-sdk/go"
)

const token = "bench"

// A program uses the built binary through the SDK, over TCP.
type program struct {
	*copilot.Client
	abide, home string
	server      *exec.Cmd
	provider    *copilot.ProviderConfig
	tally
}

var listening = regexp.MustCompile(`listening on port (\d+)`)

func newProgram(abide, dir, url string) (*program, error) {
	home, err := os.MkdirTemp(dir, "home-")
	if err != nil {
		return nil, err
	}
	p := &program{abide: abide, home: filepath.Join(home, "data"), provider: &copilot.ProviderConfig{BaseURL: url, APIKey: "bench"}}
	return p, p.start()
}

// start starts the server and connects to it.
func (p *program) start() error {
	p.server = exec.Command(p.abide, "--headless", "--no-auto-update")
	p.server.Env = append(os.Environ(), "ABIDE_DUMPABLE=1", "COPILOT_HOME="+p.home, "COPILOT_CONNECTION_TOKEN="+token)
	p.server.Stderr = os.Stderr
	out, err := p.server.StdoutPipe()
	if err == nil {
		err = p.server.Start()
	}
	if err != nil {
		return err
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	m := listening.FindStringSubmatch(line)
	if m == nil {
		p.stop()
		return fmt.Errorf("%s did not say where it listens: %q", p.abide, line)
	}
	p.Client = copilot.NewClient(&copilot.ClientOptions{Connection: copilot.URIConnection{URL: "localhost:" + m[1], ConnectionToken: token}})
	return p.Start(context.Background())
}

func (p *program) restart() error {
	p.close()
	return p.start()
}

func (p *program) stop() {
	_ = p.server.Process.Kill()
	_ = p.server.Wait()
}

func (p *program) close() {
	p.ForceStop()
	p.stop()
}

// open makes a session like that of the engine: it has no tools, and a short
// prompt.
func (p *program) open(stream bool) (session, error) {
	s := &programSession{program: p, follower: newFollower(), stream: stream}
	var err error
	s.session, err = p.CreateSession(context.Background(), &copilot.SessionConfig{
		Model: "instant", Provider: p.provider, Streaming: &stream, OnEvent: s.event,
		AvailableTools: []string{}, SystemMessage: brief,
	})
	if err == nil {
		<-s.first
	}
	return s, err
}

var brief = &copilot.SystemMessageConfig{Mode: "replace", Content: "You are a helpful assistant."}

type programSession struct {
	*program
	*follower
	session *copilot.Session
	stream  bool
}

// event takes what the SDK shows.
func (s *programSession) event(e copilot.SessionEvent) {
	delta := ""
	switch d := e.Data.(type) {
	case *copilot.AssistantMessageDeltaData:
		delta = d.DeltaContent
	case *copilot.SessionErrorData:
		s.fail(errors.New(d.Message))
	}
	s.take(string(e.Type()), delta)
}

func (s *programSession) turn(prompt string) ([]string, error) {
	return s.follow(func() error {
		_, err := s.session.SendPrompt(context.Background(), prompt)
		return err
	})
}

func (s *programSession) leave() error { return s.session.Disconnect() }

func (s *programSession) back() error {
	s.follower = newFollower()
	var err error
	s.session, err = s.ResumeSession(context.Background(), s.session.SessionID, &copilot.ResumeSessionConfig{
		Model: "instant", Provider: s.provider, Streaming: &s.stream, OnEvent: s.event,
		AvailableTools: []string{}, SystemMessage: brief,
	})
	if err == nil {
		<-s.first
	}
	return err
}

// weigh tells what a server weighs with many attached sessions, each of which
// has had a turn.
func weigh(abide, dir, url, only string) (err error) {
	if only != "" {
		return nil
	}
	defer stopping(&err)
	p := got(newProgram(abide, dir, url))
	defer p.close()
	empty := got(p.memory())
	fmt.Printf("\nan empty server weighs %.1f MB\n", float64(empty)/1e6)
	const many = 1000
	for range many {
		s := got(p.open(false))
		got(s.turn(prompt))
	}
	runtime.GC()
	full := got(p.memory())
	fmt.Printf("with %d attached sessions %.1f MB, which is %.3f MB for each\n", many, float64(full)/1e6, float64(full-empty)/1e6/many)
	return nil
}

// memory is the proportional set size of the server and its launcher, in bytes.
func (p *program) memory() (sum int64, err error) {
	launcher := p.server.Process.Pid
	list, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", launcher))
	pids := append(strings.Fields(string(list)), strconv.Itoa(launcher))
	for _, pid := range pids {
		more, wrong := proportional(pid)
		sum, err = sum+more, errors.Join(err, wrong)
	}
	return sum, err
}

// proportional is the proportional set size of a process, in bytes.
func proportional(pid string) (int64, error) {
	data, err := os.ReadFile("/proc/" + pid + "/smaps_rollup")
	if err != nil {
		return 0, err
	}
	for line := range bytes.Lines(data) {
		if rest, ok := bytes.CutPrefix(line, []byte("Pss:")); ok {
			kb, err := strconv.ParseInt(string(bytes.Fields(rest)[0]), 10, 64)
			return kb * 1024, err
		}
	}
	return 0, errors.New("no Pss in smaps_rollup")
}
