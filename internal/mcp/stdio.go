package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
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
	maxLine   = 32 << 20         // maximum bytes of a message from a server; it must fit into what is kept
	keptBytes = 64 << 20         // bytes of disk for the output of a server that was not read yet
	endTime   = 10 * time.Second // time that a server gets to end when it is closed
	leaveTime = 500 * time.Millisecond
)

// A program is a transport to a server that is a program. It is used for one connection.
//
// The program has a keeper, and does not end with the engine: the next engine finds it by the
// journal and goes on with it. It is not greeted again, because a server refuses a second
// handshake; what it has answered to the first is answered for it. A call has the same id in
// each engine, so that an answer that came meanwhile is that of the call, and the keeper
// passes on what it was sent twice only once.
type program struct {
	processes workspace.Processes
	owner     process.Owner
	spec      process.Spec
	config    string        // fingerprint of the configuration
	kept      time.Duration // time without use after which it is ended
	journal   *journal
	log       *serverLog
	work      *sync.WaitGroup // counts the goroutines of the connection
	leaving   *atomic.Bool    // true if the engine ends: nothing is sent any more

	pipe *pipe // set by Connect
}

// Connect starts the program, or goes on with the one of an earlier engine.
func (p *program) Connect(ctx context.Context) (sdk.Connection, error) {
	c := &pipe{
		program: p, settled: make(chan struct{}, 1), messages: make(chan jsonrpc.Message, 64), over: make(chan struct{}),
		ids: make(map[jsonrpc.ID]jsonrpc.ID), wires: make(map[jsonrpc.ID]jsonrpc.ID), greets: make(map[jsonrpc.ID]string),
		rounds: make(map[string]int), answers: make(map[string]*jsonrpc.Response), questions: make(map[string]string), marks: marks{waiting: make(map[string]*mark)},
	}
	info, found := p.find(ctx)
	if !found {
		if err := p.journal.begin(p.spec.Key, p.config); err != nil {
			return nil, fmt.Errorf("the start cannot be noted: %w", err)
		}
		var err error
		if info, _, err = p.processes.Start(ctx, p.spec); err != nil {
			return nil, err
		}
	}
	var err error
	if c.number, err = p.journal.connect(); err != nil {
		return nil, fmt.Errorf("the connection cannot be noted: %w", err)
	}
	c.id, c.key, c.keepsAll = info.ID, info.Key, info.Pipe
	if found {
		_, _, c.greetings, _, c.marks.at = p.journal.state()
		c.adopted, c.trimmed = true, c.marks.at
	}
	c.ctx, c.cancel = context.WithCancel(context.WithoutCancel(ctx))
	p.pipe = c
	p.work.Go(c.follow)
	p.work.Go(c.watchRest)
	return c, nil
}

// find returns the process of an earlier engine, if it can be gone on with. It ends one that
// cannot: it has another configuration, or was not ready.
func (p *program) find(ctx context.Context) (process.Info, bool) {
	key, config, _, ready, _ := p.journal.state()
	if key == "" {
		return process.Info{}, false
	}
	info, err := p.processes.Find(ctx, p.owner, key)
	if err != nil || info.Gone {
		return process.Info{}, false
	}
	if info.State == process.Running && ready && config == p.config && !p.journal.torn() {
		return info, true
	}
	p.work.Go(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
		defer cancel()
		p.stop(ctx, info.ID)
	})
	return process.Info{}, false
}

// stop ends a process with all its children.
func (p *program) stop(ctx context.Context, id process.ID) {
	if _, err := p.processes.Stop(ctx, p.owner, id); errors.Is(err, process.ErrNotFound) {
		return // it was ended with its session, which was deleted
	} else if err != nil {
		p.log.note(p.owner, "the program could not be ended: %v", err)
		return
	}
	_ = p.processes.MarkSeen(ctx, p.owner, id) // otherwise its record is kept for longer
}

// TakeLeft takes from a session the programs that an earlier engine has left, so that nobody
// goes on with them, and returns a function that ends them; nil if there are none.
func TakeLeft(o Options, id event.SessionID) (end func(context.Context)) {
	dir := o.state(id)
	if dir == "" || o.Processes == nil {
		return nil
	}
	list, _ := journals(dir) // of one that cannot be read nobody knows the process
	if len(list) == 0 {
		return nil
	}
	for _, j := range list {
		j.drop()
	}
	return func(ctx context.Context) {
		p := program{processes: o.Processes, owner: Owner(id), log: &serverLog{}}
		for _, j := range list {
			if info, err := o.Processes.Find(ctx, p.owner, j.left); err == nil && !info.Gone {
				p.stop(ctx, info.ID)
			}
		}
	}
}

// specOf returns what is run for a server.
func specOf(s Server, in Surroundings) (process.Spec, error) {
	spec := process.Spec{
		Key: s.Name + "/" + event.NewID(), Owner: Owner(in.Session), Args: append([]string{s.Command}, s.Args...), Dir: s.dirIn(in),
		Env: s.environment(in.Env), Title: "MCP server " + s.Name, Class: process.Service, Stdin: true, Pipe: true, Quota: keptBytes,
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

// dirIn returns the working directory of a program.
func (s Server) dirIn(in Surroundings) string {
	switch {
	case s.Dir == "":
		return in.Dir
	case filepath.IsAbs(s.Dir):
		return s.Dir
	}
	return filepath.Join(in.Dir, s.Dir)
}

// fingerprintOf returns a text that differs for servers that one process cannot be. The
// environment of the session is not part of it: it is not the same for two commands of a
// person at the same terminal.
func (c *client) fingerprintOf(s Server) string {
	in, asks := c.set.in, c.set.events.Elicit != nil
	parts := []any{greetingVersion, s.Command, s.Args, s.Dir, s.Env, s.Sandbox, s.Source, in.Dir, in.Sealed, asks, in.Shared}
	if c.maySample() {
		parts = append(parts, "sampling")
	}
	text, err := json.Marshal(parts)
	if err != nil { // texts
		panic(err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// greetingVersion changes when a server is greeted with other abilities of ours.
const greetingVersion = 1

// The sources of configurations.
const (
	SourceUser    = "user"      // configuration file of the user
	SourceProject = "workspace" // file of a project that the user trusts
	SourceSession = "session"   // program that has created the session
)
