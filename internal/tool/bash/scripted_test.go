package bash_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/tool/bash"
	"github.com/abide-run/abide/internal/workspace"
)

// The processes of any workspace can be used by the tools.
var _ bash.Processes = workspace.Processes(nil)

// scriptedProcesses are processes in memory that do what a test says, so that a test can use
// fake time.
type scriptedProcesses struct {
	mu      sync.Mutex
	all     []*scriptedProcess
	changed chan struct{} // closed, and replaced, at every change
	refuse  error         // error that Start returns
	onGet   func(a *scriptedProcess)
}

// A scriptedProcess is one scripted process.
type scriptedProcess struct {
	s     *scriptedProcesses
	info  process.Info
	spec  process.Spec
	data  []byte
	runs  []process.Run
	stdin []byte
	keys  []string
	sizes []process.Size // sizes that the terminal was given
	until int64          // end of the output that was not kept
	from  int64          // beginning of the output that was not kept
	purge bool           // true if no output was kept
}

func newScripted() *scriptedProcesses { return &scriptedProcesses{changed: make(chan struct{})} }

func (s *scriptedProcesses) broadcastLocked() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// started returns the i-th process.
func (s *scriptedProcesses) started(i int) *scriptedProcess {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[i]
}

func (s *scriptedProcesses) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.all)
}

func (a *scriptedProcess) print(stream process.Stream, text string) {
	a.s.mu.Lock()
	defer a.s.mu.Unlock()
	a.printLocked(stream, text)
}

func (a *scriptedProcess) printLocked(stream process.Stream, text string) {
	a.runs = append(a.runs, process.Run{Stream: stream, Offset: int64(len(a.data)), Len: len(text), Time: time.Now()})
	a.data = append(a.data, text...)
	a.info.Output.Bytes = int64(len(a.data))
	a.s.broadcastLocked()
}

// read sets whether the process waits for somebody to type.
func (a *scriptedProcess) read(yes bool) {
	a.s.mu.Lock()
	defer a.s.mu.Unlock()
	a.info.Reading = yes
	a.s.broadcastLocked()
}

// drop removes some of the output, as a quota would.
func (a *scriptedProcess) drop(from, until int64) {
	a.s.mu.Lock()
	defer a.s.mu.Unlock()
	a.from, a.until = from, until
}

func (a *scriptedProcess) exit(code int) {
	a.s.mu.Lock()
	defer a.s.mu.Unlock()
	a.exitLocked(process.Exited, &process.Exit{Code: code})
}

func (a *scriptedProcess) exitLocked(state process.State, exit *process.Exit) {
	if a.info.State.Ended() {
		return
	}
	a.info.State, a.info.Exit, a.info.Ended, a.info.Gone = state, exit, time.Now(), true
	a.s.broadcastLocked()
}

func (s *scriptedProcesses) Start(_ context.Context, spec process.Spec) (process.Info, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.all {
		if a.spec.Key == spec.Key && a.spec.Owner == spec.Owner {
			return a.info, true, nil
		}
	}
	if s.refuse != nil {
		return process.Info{}, false, s.refuse
	}
	a := &scriptedProcess{s: s, spec: spec, info: process.Info{
		ID: process.ID("p-" + spec.Key), Key: spec.Key, Owner: spec.Owner, Command: spec.Command, Dir: spec.Dir, Title: spec.Title, Class: spec.Class,
		TTY: spec.TTY != nil, Stdin: spec.Stdin, State: process.Running, PID: 1000 + len(s.all), Created: time.Now(), Started: time.Now(),
	}}
	s.all = append(s.all, a)
	s.broadcastLocked()
	return a.info, false, nil
}

func (s *scriptedProcesses) findLocked(owner process.Owner, id process.ID) (*scriptedProcess, error) {
	i := slices.IndexFunc(s.all, func(a *scriptedProcess) bool { return a.info.Owner == owner && a.info.ID == id })
	if i < 0 {
		return nil, process.ErrNotFound
	}
	return s.all[i], nil
}

func (s *scriptedProcesses) Find(_ context.Context, owner process.Owner, key string) (process.Info, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, err := s.findLocked(owner, process.ID("p-"+key))
	if err != nil {
		return process.Info{}, err
	}
	return a.info, nil
}

func (s *scriptedProcesses) Get(_ context.Context, owner process.Owner, id process.ID) (process.Info, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, err := s.findLocked(owner, id)
	if err != nil {
		return process.Info{}, err
	}
	if s.onGet != nil {
		s.onGet(a)
	}
	return a.info, nil
}

func (s *scriptedProcesses) List(_ context.Context, owner process.Owner) ([]process.Info, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []process.Info
	for _, a := range s.all {
		if a.info.Owner == owner {
			list = append(list, a.info)
		}
	}
	return list, nil
}

// await waits until a condition holds, and returns with the lock held.
func (s *scriptedProcesses) await(ctx context.Context, owner process.Owner, id process.ID, so func(a *scriptedProcess) bool) (*scriptedProcess, error) {
	for {
		s.mu.Lock()
		a, err := s.findLocked(owner, id)
		if err != nil || so(a) {
			return a, err // with the lock held
		}
		changed := s.changed
		s.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			s.mu.Lock()
			return a, ctx.Err()
		}
	}
}

func (s *scriptedProcesses) Wait(ctx context.Context, owner process.Owner, id process.ID) (process.Info, error) {
	a, err := s.await(ctx, owner, id, func(a *scriptedProcess) bool { return a.info.State.Ended() })
	defer s.mu.Unlock()
	if err != nil {
		return process.Info{}, err
	}
	return a.info, nil
}

func (s *scriptedProcesses) Read(ctx context.Context, owner process.Owner, id process.ID, r process.ReadRequest) (process.Chunk, error) {
	a, err := s.await(ctx, owner, id, func(a *scriptedProcess) bool { return !r.Wait || a.info.Gone || int64(len(a.data)) > r.Offset })
	defer s.mu.Unlock()
	if err != nil {
		return process.Chunk{}, err
	}
	if a.purge {
		return process.Chunk{}, process.ErrDropped
	}
	end := int64(len(a.data))
	if r.Until > 0 {
		end = min(end, r.Until)
	}
	limit := 64 << 10
	if r.Limit > 0 {
		limit = r.Limit
	}
	c := process.Chunk{Next: min(r.Offset, end)}
	if c.Next >= a.from && c.Next < a.until {
		c.Omitted = min(a.until, end) - c.Next
		c.Next += c.Omitted
	} else if c.Next < a.from {
		end = min(end, a.from)
	}
	stop := max(c.Next, min(end, c.Next+int64(limit)))
	for _, run := range a.runs {
		from, to := max(run.Offset, c.Next), min(run.Offset+int64(run.Len), stop)
		if from < to {
			c.Runs = append(c.Runs, process.Run{Stream: run.Stream, Offset: from, Len: int(to - from), Time: run.Time})
		}
	}
	c.Data = slices.Clone(a.data[c.Next:stop])
	c.Next = stop
	c.End = a.info.Gone && c.Next == int64(len(a.data))
	return c, nil
}

func (s *scriptedProcesses) WriteStdin(_ context.Context, owner process.Owner, id process.ID, in process.Input) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, err := s.findLocked(owner, id)
	switch {
	case err != nil:
		return err
	case a.info.State.Ended():
		return process.ErrEnded
	case !a.info.Stdin:
		return process.ErrNoStdin
	case slices.Contains(a.keys, in.Key):
		return nil
	}
	a.keys = append(a.keys, in.Key)
	a.stdin = append(a.stdin, in.Data...)
	if in.Close {
		a.stdin = append(a.stdin, "<eof>"...)
	}
	s.broadcastLocked()
	return nil
}

func (s *scriptedProcesses) Consume(context.Context, process.Owner, process.ID, int64) error {
	return nil
}

func (s *scriptedProcesses) Resize(_ context.Context, owner process.Owner, id process.ID, size process.Size) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, err := s.findLocked(owner, id)
	switch {
	case err != nil:
		return err
	case !a.info.TTY:
		return process.ErrNoTerminal
	case a.info.State.Ended():
		return process.ErrEnded
	}
	a.sizes = append(a.sizes, size)
	return nil
}

func (s *scriptedProcesses) Stop(_ context.Context, owner process.Owner, id process.ID) (process.Info, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, err := s.findLocked(owner, id)
	if err != nil {
		return process.Info{}, err
	}
	if !a.info.State.Ended() {
		a.info.Reason = "stopped"
	}
	a.exitLocked(process.Killed, &process.Exit{Code: 143, Signal: "SIGTERM"})
	return a.info, nil
}

func (s *scriptedProcesses) MarkSeen(_ context.Context, owner process.Owner, id process.ID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, err := s.findLocked(owner, id)
	if err == nil {
		a.info.Seen = true
	}
	return err
}

func (s *scriptedProcesses) String() string { return fmt.Sprint(len(s.all), " processes") }

// firstLocked returns the first process.
func (s *scriptedProcesses) firstLocked() *scriptedProcess { return s.all[0] }

func (s *scriptedProcesses) Interrupt(ctx context.Context, owner process.Owner, id process.ID) (process.Info, error) {
	return s.Stop(ctx, owner, id)
}

// printSlowly prints lines with pauses, in runs that last up to a second as those of a real
// log do.
func (a *scriptedProcess) printSlowly(n int, line string) {
	var begun time.Time
	for range n {
		if time.Since(begun) >= process.MaxRun {
			begun = time.Now()
		}
		a.s.mu.Lock()
		a.printLocked(process.Stdout, line)
		a.runs[len(a.runs)-1].Time = begun
		a.s.mu.Unlock()
		time.Sleep(200 * time.Millisecond) // fake time
	}
}
