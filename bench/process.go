package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/jsonrpc"
)

// listenVariable is the environment variable that makes this program a server that only
// listens, which is the least that a Go process does before it is ready.
const listenVariable = "ABIDE_BENCH_LISTEN"

func bareListener() {
	if os.Getenv(listenVariable) == "" {
		return
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		os.Exit(1)
	}
	fmt.Printf("listening on port %d\n", l.Addr().(*net.TCPAddr).Port)
	for {
		if _, err := l.Accept(); err != nil {
			os.Exit(0)
		}
	}
}

const token = "bench"

// A child is a server process that prints the port on which it listens.
type child struct {
	cmd   *exec.Cmd
	port  string
	ready time.Duration // time from the start to that line
}

var listening = regexp.MustCompile(`listening on port (\d+)`)

func start(env []string, name string, args ...string) (*child, error) {
	cmd := exec.Command(name, args...)
	cmd.Env, cmd.Stderr = append(append(os.Environ(), "ABIDE_DUMPABLE=1"), env...), os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	p := &child{cmd: cmd, ready: time.Since(begin)}
	if m := listening.FindStringSubmatch(line); err == nil && m != nil {
		p.port = m[1]
		return p, nil
	}
	p.stop()
	return nil, fmt.Errorf("%s did not say where it listens: %q, %w", name, line, err)
}

// pid returns the process of the program itself: the child of its launcher, if it has one.
func (p *child) pid() int {
	for _, pid := range children(p.cmd.Process.Pid) {
		if name, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil && !bytes.HasPrefix(name, []byte("abide-keeper")) {
			return pid
		}
	}
	return p.cmd.Process.Pid
}

func (p *child) stop() {
	if program, err := os.FindProcess(p.pid()); err == nil {
		_ = program.Kill() // its launcher ends with it
	}
	_ = p.cmd.Wait()
}

// memory returns the proportional set size of the program and its launcher, in bytes.
func (p *child) memory() (int64, error) {
	sum, err := memory(p.cmd.Process.Pid, "smaps_rollup", "Pss")
	if pid := p.pid(); pid != p.cmd.Process.Pid && err == nil {
		var more int64
		more, err = memory(pid, "smaps_rollup", "Pss")
		sum += more
	}
	return sum, err
}

// A binary is the built program, and the folder for its files.
type binary struct{ path, dir string }

func (b binary) start(home string) (*child, error) {
	return start([]string{"ABIDE_HOME=" + filepath.Join(b.dir, home), "COPILOT_HOME=", "COPILOT_CONNECTION_TOKEN=" + token},
		b.path, "--headless", "--no-auto-update", "--port", "0")
}

// starts compares the time until the program is ready with that of a bare listener.
func (b binary) starts(pairs int) error {
	var ours, bare []time.Duration
	self, err := os.Executable()
	if err != nil {
		return err
	}
	for i := range pairs {
		p, err := b.start(fmt.Sprintf("start-%d", i%2)) // a new folder, then one that exists
		if err != nil {
			return err
		}
		ours = append(ours, p.ready)
		p.stop()
		if p, err = start([]string{listenVariable + "=1"}, self); err != nil {
			return err
		}
		bare = append(bare, p.ready)
		p.stop()
	}
	slices.Sort(ours)
	slices.Sort(bare)
	mid := pairs / 2
	fmt.Printf("start to ready, best; middle of %d: abide %v; %v, a bare Go listener %v; %v, ratio %.1f; %.1f\n", pairs,
		ours[0].Round(time.Microsecond), ours[mid].Round(time.Microsecond), bare[0].Round(time.Microsecond), bare[mid].Round(time.Microsecond),
		float64(ours[0])/float64(bare[0]), float64(ours[mid])/float64(bare[mid]))
	return nil
}

// sessions measures the memory of a server with the given numbers of open sessions, each
// of which has run a turn and still has its client.
func (b binary) sessions(counts ...int) error {
	p, err := b.start("sessions")
	if err != nil {
		return err
	}
	defer p.stop()
	idle, err := p.memory()
	if err != nil {
		return err
	}
	fmt.Printf("idle server: %.1f MiB\n", float64(idle)/(1<<20))
	c, err := dial(p.port)
	if err != nil {
		return err
	}
	defer c.Close()
	for open := 0; len(counts) > 0; counts = counts[1:] {
		for ; open < counts[0]; open += 10 {
			if err := c.open(open, 10); err != nil {
				return err
			}
		}
		now, err := p.memory()
		if err != nil {
			return err
		}
		fmt.Printf("%d open sessions: %.1f MiB, %.1f KiB per session\n", open, float64(now)/(1<<20), float64(now-idle)/1024/float64(open))
	}
	return nil
}

// A caller is a client of a server.
type caller struct {
	*jsonrpc.Conn
	idle chan event.SessionID
	done chan event.ToolCompleteData // results of calls; those that do not fit are dropped
}

func dial(port string) (*caller, error) {
	conn, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", port))
	if err != nil {
		return nil, err
	}
	r := &caller{idle: make(chan event.SessionID, 100), done: make(chan event.ToolCompleteData, 1)}
	r.Conn = jsonrpc.New(conn, jsonrpc.Options{Handler: jsonrpc.HandlerFunc(r.handle)})
	go r.Run(context.Background()) // ends with the connection
	return r, r.Call(context.Background(), api.Connect, api.ConnectParams{Token: token}, nil)
}

func (r *caller) handle(_ context.Context, req *jsonrpc.Request) (any, error) {
	if req.Method != api.SessionEvent || !bytes.Contains(req.Params, []byte(event.SessionIdle)) && !bytes.Contains(req.Params, []byte(event.ToolComplete)) {
		return nil, nil
	}
	var p api.EventParams
	if err := json.Unmarshal(req.Params, &p); err != nil {
		return nil, err
	}
	e, err := event.Parse(0, p.Event)
	switch {
	case err != nil:
	case e.Type == event.SessionIdle:
		r.idle <- p.SessionID
	case e.Type == event.ToolComplete:
		done, _ := event.As[event.ToolCompleteData](e) // an invalid result times out the measurement
		select {
		case r.done <- done:
		default:
		}
	}
	return nil, nil
}

// open creates sessions, runs a turn in each, and waits for the turns.
func (r *caller) open(from, n int) error {
	var opened sync.WaitGroup
	errs := make([]error, n)
	for i := range n {
		opened.Go(func() {
			id := event.SessionID(fmt.Sprintf("bench-%d", from+i))
			errs[i] = r.Call(context.Background(), api.SessionCreate, api.OpenParams{SessionID: id}, nil)
			if errs[i] == nil {
				errs[i] = r.Call(context.Background(), api.SessionSend, api.SendParams{SessionID: id, Prompt: "Reply with exactly: " + answer}, nil)
			}
		})
	}
	opened.Wait()
	for range n {
		<-r.idle
	}
	runtime.GC() // garbage of this process must not disturb the measurement
	return errors.Join(errs...)
}
