package local

import (
	"context"
	"errors"
	"iter"

	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/workspace"
)

// Follow implements workspace.Processes.
//
// It ends when the process itself ends, even if children still run and write: their
// output can be read later, but Follow does not wait for it.
func (p *processes) Follow(ctx context.Context, owner process.Owner, id process.ID, offset int64) iter.Seq2[workspace.Frame, error] {
	return func(yield func(workspace.Frame, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		end := p.waitEnd(ctx, owner, id)
		defer end.join()
		defer cancel()
		f := &follower{p: p, owner: owner, id: id, offset: offset, yield: yield}
		if err := f.run(ctx, end); err != nil && !f.stopped {
			yield(workspace.Frame{}, err)
		}
	}
}

// An endWaiter waits for the end of a process.
type endWaiter struct {
	reached context.Context // done when the process has ended, or waiting has failed
	joined  chan struct{}   // closed when the goroutine has ended; the fields below are set then
	info    process.Info
	err     error
}

func (p *processes) waitEnd(ctx context.Context, owner process.Owner, id process.ID) *endWaiter {
	reached, reach := context.WithCancel(ctx)
	e := &endWaiter{reached: reached, joined: make(chan struct{})}
	go func() { // joined by Follow
		defer close(e.joined)
		e.info, e.err = p.manager.Wait(ctx, owner, id)
		reach()
	}()
	return e
}

func (e *endWaiter) join() { <-e.joined }

// A follower is the state of one call of Follow.
type follower struct {
	p       *processes
	owner   process.Owner
	id      process.ID
	offset  int64
	yield   func(workspace.Frame, error) bool
	stopped bool // true if the consumer has stopped
}

// errStopped means that the consumer has stopped.
var errStopped = errors.New("left")

func (f *follower) run(ctx context.Context, end *endWaiter) error {
	if err := f.yieldLive(end); err != nil {
		return err
	}
	end.join()
	if end.err != nil {
		return end.err
	}
	if err := f.yieldRest(ctx, end.info.Output.Bytes); err != nil {
		return err
	}
	return f.yieldFrame(workspace.Frame{Offset: f.offset, End: &end.info})
}

// yieldLive yields output as it is printed, until the process has ended. It does not wait
// for children, which may write for ever.
func (f *follower) yieldLive(end *endWaiter) error {
	for end.reached.Err() == nil {
		chunk, err := f.p.manager.Read(end.reached, f.owner, f.id, process.ReadRequest{Offset: f.offset, Wait: true})
		switch {
		case err != nil && end.reached.Err() != nil:
			return nil // the process has ended, or waiting for it has failed
		case err != nil:
			return err
		}
		if err := f.yieldChunk(chunk); err != nil {
			return err
		}
		if chunk.End {
			return nil
		}
	}
	return nil
}

// yieldRest yields the remaining output that was written before the process ended.
func (f *follower) yieldRest(ctx context.Context, until int64) error {
	for f.offset < until {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		chunk, err := f.p.manager.Read(ctx, f.owner, f.id, process.ReadRequest{Offset: f.offset, Until: until})
		if err != nil {
			return err
		}
		if chunk.Next == f.offset {
			return nil
		}
		if err := f.yieldChunk(chunk); err != nil {
			return err
		}
	}
	return nil
}

// yieldChunk yields a chunk, with one frame for consecutive runs of the same stream.
func (f *follower) yieldChunk(c process.Chunk) error {
	data := c.Data
	for runs := c.Runs; len(runs) > 0; {
		first, n := runs[0], 0
		for len(runs) > 0 && runs[0].Stream == first.Stream && runs[0].Offset == first.Offset+int64(n) {
			n += runs[0].Len
			runs = runs[1:]
		}
		frame := workspace.Frame{Stream: first.Stream, Offset: first.Offset, Data: data[:n], Omitted: first.Offset - f.offset}
		if err := f.yieldFrame(frame); err != nil {
			return err
		}
		data = data[n:]
	}
	if c.Next > f.offset { // the last bytes were not kept
		return f.yieldFrame(workspace.Frame{Offset: c.Next, Omitted: c.Next - f.offset})
	}
	return nil
}

func (f *follower) yieldFrame(frame workspace.Frame) error {
	f.offset = frame.Offset + int64(len(frame.Data))
	if !f.yield(frame, nil) {
		f.stopped = true
		return errStopped
	}
	return nil
}
