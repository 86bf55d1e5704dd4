package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/workspace/local"
)

// engineVariable is an environment variable that makes the test program an engine that can be
// killed.
const engineVariable = "ABIDE_TEST_MCP_ENGINE"

// An engine is what an engine has of MCP servers, on folders that outlive it.
type engine struct {
	Set       *Set
	Manager   *process.Manager
	Questions chan string // the keys of the questions of servers, and of their requests of the model
	Answers   chan string // the answers to them

	ctx    context.Context // of the calls
	cancel context.CancelFunc
}

// startEngine opens the processes and the servers of a session.
func startEngine(dir string, servers ...Server) (*engine, error) {
	m, err := process.Open(filepath.Join(dir, "processes"), process.Options{Shell: process.Shell()})
	if err != nil {
		return nil, err
	}
	e := &engine{Manager: m, Questions: make(chan string, 30), Answers: make(chan string, 30)}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	o := Options{
		Processes: local.New(dir, m).Processes, Logs: OpenLogs(filepath.Join(dir, "logs")), Lists: filepath.Join(dir, "lists"),
		State: func(event.SessionID) string { return stateOf(dir) },
	}
	e.Set = Open(o, Surroundings{Session: "s1", Dir: dir, Env: os.Environ()}, servers, Events{
		Status: func(string, Status, string) {}, Changed: func(string, event.Type) {},
		Elicit: func(ctx context.Context, _, key string, _ *sdk.ElicitParams) (*sdk.ElicitResult, error) {
			e.Questions <- key
			select {
			case a := <-e.Answers:
				return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"colour": a}}, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		},
		Sample: func(ctx context.Context, _, key string, q Sample) (Sampled, error) {
			e.Questions <- key
			select {
			case a := <-e.Answers:
				switch a {
				case "no":
					return Sampled{}, SampleRefused("the user says no")
				case "broken":
					return Sampled{}, errors.New("it is broken")
				}
				return Sampled{Model: "m", Text: q.System + "/" + q.Messages[0].Text + "/" + a}, nil
			case <-ctx.Done():
				return Sampled{}, context.Cause(ctx)
			}
		},
	})
	return e, nil
}

func stateOf(dir string) string { return filepath.Join(dir, "state") }

// Close ends the engine as one that may have calls under way.
func (e *engine) Close() {
	e.Set.Detach()
	e.cancel()
	e.Set.Close()
	e.Manager.Close()
}

// An engineOrder tells an engine that can be killed what to do.
type engineOrder struct {
	Dir     string
	Server  Server
	Request sentRequest
	Answers []string // to the questions of the server
}

// A sentRequest is a call without the function that is told of its progress.
type sentRequest struct {
	Server, Tool, Key string
	Again             bool
	Arguments         json.RawMessage
}

func (q sentRequest) request() Request {
	return Request{Server: q.Server, Tool: q.Tool, Key: q.Key, Again: q.Again, Arguments: q.Arguments}
}

// runEngine makes a call, and prints each question of a server and the result.
func runEngine(text string) error {
	var o engineOrder
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	os.Unsetenv(engineVariable)
	e, err := startEngine(o.Dir, o.Server)
	if err != nil {
		return err
	}
	for _, a := range o.Answers {
		e.Answers <- a
	}
	go func() {
		for key := range e.Questions {
			fmt.Println("asked", key)
		}
	}()
	r, err := e.Set.Call(context.Background(), o.Request.request())
	fmt.Println("result", r.Text, err)
	bufio.NewReader(os.Stdin).ReadString(0) // until the test kills this engine
	return nil
}

// A killableEngine is an engine in a process of its own.
type killableEngine struct {
	t     *testing.T
	cmd   *exec.Cmd
	lines *bufio.Scanner
}

func startKillableEngine(t *testing.T, o engineOrder) *killableEngine {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	e := &killableEngine{t: t, cmd: exec.Command("/proc/self/exe")}
	e.cmd.Env = append(os.Environ(), engineVariable+"="+string(text))
	e.cmd.Stderr = os.Stderr
	if _, err := e.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := e.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	e.lines = bufio.NewScanner(out)
	if err := e.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.kill)
	return e
}

// line returns the next line of the engine that begins with a word.
func (e *killableEngine) line(word string) string {
	e.t.Helper()
	for e.lines.Scan() {
		if rest, ok := strings.CutPrefix(e.lines.Text(), word+" "); ok {
			return rest
		}
	}
	e.t.Fatalf("the engine has ended without a line %q: %v", word, e.lines.Err())
	return ""
}

func (e *killableEngine) kill() {
	_ = e.cmd.Process.Kill() // it may have been killed
	_ = e.cmd.Wait()         // the same
}
