package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/process/sandbox"
	"github.com/abide-run/abide/internal/workspace"
)

// OwnerPrefix is how the owners of the processes of servers begin; the name of a session
// follows. The commands of the session itself have the session as their owner, so that
// neither is listed with the other.
const OwnerPrefix = "mcp/"

// Owner returns the owner of the processes of the servers of a session.
func Owner(id event.SessionID) process.Owner { return process.Owner(OwnerPrefix + string(id)) }

const (
	maxLine   = 64 << 20         // maximum bytes of a message from a server
	keptBytes = 64 << 20         // bytes of disk for the output of a server that was not read yet
	endTime   = 10 * time.Second // time that a server gets to end when it is closed
	leaveTime = 500 * time.Millisecond
)

// A program is a transport to a server that is a program. It is used for one connection.
type program struct {
	processes workspace.Processes
	owner     process.Owner
	spec      process.Spec
	log       *serverLog
	work      *sync.WaitGroup // counts the goroutines of the connection
}

// Connect starts the program.
func (p *program) Connect(ctx context.Context) (sdk.Connection, error) {
	info, _, err := p.processes.Start(ctx, p.spec)
	if err != nil {
		return nil, err
	}
	c := &pipe{program: p, id: info.ID, messages: make(chan jsonrpc.Message, 64), over: make(chan struct{})}
	c.ctx, c.cancel = context.WithCancel(context.WithoutCancel(ctx))
	p.work.Go(c.follow)
	return c, nil
}

// A pipe is a connection to a program. What the program prints and is no message is logged
// and skipped: many programs greet before they serve.
type pipe struct {
	*program
	id       process.ID
	ctx      context.Context
	cancel   context.CancelFunc
	messages chan jsonrpc.Message
	over     chan struct{} // closed when no message comes any more
	err      error         // reason for that

	writing sync.Mutex
	closing sync.Once

	mu       sync.Mutex
	unheard  map[jsonrpc.ID]*time.Timer // requests that are given up if nobody answers in time
	givenUp  map[jsonrpc.ID]bool
	rest     []byte // beginning of a line that is not complete
	skipping bool   // true while the rest of a line that is too long is skipped
}

func (c *pipe) SessionID() string { return "" }

// follow reads what the program prints until it ends.
func (c *pipe) follow() {
	err := errors.New("the program ended")
	for frame, failed := range c.processes.Follow(c.ctx, c.owner, c.id, 0) {
		switch {
		case failed != nil:
			err = failed
		case frame.End != nil:
			err = ended(*frame.End)
		case frame.Omitted > 0:
			err = errors.New("the program prints faster than its messages can be read")
			c.cancel()
		case frame.Stream == process.Stderr:
			c.log.write(c.owner, frame.Data)
		default:
			c.take(frame.Data)
		}
	}
	c.err = err
	close(c.over)
}

// ended says how a program ended.
func ended(info process.Info) error {
	switch {
	case info.State == process.FailedToStart:
		return fmt.Errorf("the program could not be started: %s", info.Reason)
	case info.Exit != nil && info.Exit.Signal != "":
		return fmt.Errorf("the program was ended by %s", info.Exit.Signal)
	case info.Exit != nil:
		return fmt.Errorf("the program ended with exit code %d", info.Exit.Code)
	}
	return errors.New("the program ended")
}

// take cuts output into lines.
func (c *pipe) take(data []byte) {
	for len(data) > 0 {
		line, more, whole := bytes.Cut(data, []byte{'\n'})
		switch {
		case c.skipping:
			c.skipping = !whole
		case len(c.rest)+len(line) > maxLine:
			c.log.note(c.owner, "a line of more than %d bytes was skipped", maxLine)
			c.rest, c.skipping = nil, !whole
		case !whole:
			c.rest = append(c.rest, line...)
		default:
			c.takeLine(append(c.rest, line...))
			c.rest = nil
		}
		data = more
	}
}

// takeLine takes in a line, which is a message, several messages, or something else.
func (c *pipe) takeLine(line []byte) {
	line = bytes.TrimSpace(line)
	if len(line) == 0 {
		return
	}
	if line[0] == '[' {
		var batch []json.RawMessage
		if json.Unmarshal(line, &batch) == nil {
			for _, one := range batch {
				c.takeMessage(one)
			}
			return
		}
	}
	c.takeMessage(line)
}

func (c *pipe) takeMessage(text []byte) {
	message, err := jsonrpc.DecodeMessage(bytes.Clone(text))
	if err != nil {
		c.log.note(c.owner, "skipped, because it is no message: %s", text[:min(len(text), 1000)])
		return
	}
	if r, ok := message.(*jsonrpc.Response); ok && !c.hear(r.ID) {
		return
	}
	c.deliver(message)
}

func (c *pipe) deliver(message jsonrpc.Message) {
	select {
	case c.messages <- message:
	case <-c.ctx.Done():
	}
}

// hear notes an answer. It reports false if the request was given up.
func (c *pipe) hear(id jsonrpc.ID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if timer := c.unheard[id]; timer != nil {
		timer.Stop()
		delete(c.unheard, id)
	}
	return !c.givenUp[id]
}

// giveUp answers a request in the place of a server that ignores it.
func (c *pipe) giveUp(id jsonrpc.ID) {
	c.mu.Lock()
	waits := c.unheard[id] != nil
	if waits {
		delete(c.unheard, id)
		if c.givenUp == nil {
			c.givenUp = make(map[jsonrpc.ID]bool)
		}
		c.givenUp[id] = true
	}
	c.mu.Unlock()
	if waits {
		c.deliver(&jsonrpc.Response{ID: id, Error: &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "the server did not answer"}})
	}
}

// Read returns the next message. Messages that came before the end are returned first.
func (c *pipe) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case m := <-c.messages:
		return m, nil
	default:
	}
	select {
	case m := <-c.messages:
		return m, nil
	case <-c.over:
		select {
		case m := <-c.messages:
			return m, nil
		default:
		}
		return nil, c.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Write sends a message. A server that does not answer server/discover is an older one.
func (c *pipe) Write(ctx context.Context, m jsonrpc.Message) error {
	text, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	if r, ok := m.(*jsonrpc.Request); ok && r.Method == discoverMethod {
		c.mu.Lock()
		if c.unheard == nil {
			c.unheard = make(map[jsonrpc.ID]*time.Timer)
		}
		c.unheard[r.ID] = time.AfterFunc(discover, func() { c.giveUp(r.ID) })
		c.mu.Unlock()
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	return c.processes.WriteStdin(ctx, c.owner, c.id, process.Input{Data: append(text, '\n')})
}

const discoverMethod = "server/discover"

// Close ends the program with all its children: it is told that nobody writes any more, and
// has a moment to leave.
func (c *pipe) Close() error {
	c.closing.Do(func() {
		c.mu.Lock()
		for _, t := range c.unheard {
			t.Stop()
		}
		c.mu.Unlock()
		c.work.Go(c.end)
	})
	return nil
}

func (c *pipe) end() {
	defer c.cancel()
	ctx, cancel := context.WithTimeout(context.Background(), endTime)
	defer cancel()
	soon, done := context.WithTimeout(ctx, leaveTime)
	defer done()
	_ = c.processes.WriteStdin(soon, c.owner, c.id, process.Input{Close: true}) // it may have ended
	select {
	case <-c.over:
	case <-soon.Done():
	}
	if _, err := c.processes.Stop(ctx, c.owner, c.id); errors.Is(err, process.ErrNotFound) {
		return // it was ended with its session, which was deleted
	} else if err != nil {
		c.log.note(c.owner, "the program could not be ended: %v", err)
		return
	}
	_ = c.processes.MarkSeen(ctx, c.owner, c.id) // otherwise its record is kept for longer
}

// specOf returns what is run for a server.
func specOf(s Server, in Surroundings) (process.Spec, error) {
	dir := s.Dir
	if dir == "" {
		dir = in.Dir
	} else if !filepath.IsAbs(dir) {
		dir = filepath.Join(in.Dir, dir)
	}
	spec := process.Spec{
		Key: s.Name + "/" + event.NewID(), Owner: Owner(in.Session), Args: append([]string{s.Command}, s.Args...), Dir: dir,
		Env: s.environment(in.Env), Title: "MCP server " + s.Name, Class: process.Service, Stdin: true, Quota: keptBytes,
		Root: in.Dir, Family: process.Owner(in.Session),
	}
	switch {
	case in.Sealed || s.Sandbox == SandboxSealed:
		spec.Profile = sandbox.Sealed
	case s.Sandbox == SandboxWorkspace:
	case s.Sandbox == SandboxNone, s.Source != SourceProject:
		spec.Free = true
	}
	return spec, nil
}

// The sources of configurations.
const (
	SourceUser    = "user"      // configuration file of the user
	SourceProject = "workspace" // file of a project that the user trusts
	SourceSession = "session"   // program that has created the session
)
