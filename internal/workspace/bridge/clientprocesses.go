package bridge

import (
	"context"
	"crypto/rand"
	"fmt"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/workspace"
	pb "github.com/abide-run/abide/internal/workspace/workspacepb"
)

// handle returns the name of a process on the wire. Names on the wire must be UTF-8.
func handle(owner process.Owner, id process.ID) (*pb.Handle, error) {
	if !utf8.ValidString(string(id)) {
		return nil, process.ErrNotFound
	}
	return &pb.Handle{Owner: string(owner), Id: string(id)}, text("owner", string(owner))
}

func text(what, s string) error {
	if utf8.ValidString(s) {
		return nil
	}
	return fmt.Errorf("%w: the %s %q is not UTF-8", process.ErrInvalid, what, s)
}

// Start implements workspace.Processes.
func (c remoteProcesses) Start(ctx context.Context, spec process.Spec) (process.Info, bool, error) {
	for what, s := range map[string]string{"key": spec.Key, "owner": string(spec.Owner), "class": string(spec.Class)} {
		if err := text(what, s); err != nil {
			return process.Info{}, false, err
		}
	}
	r, err := c.rpc.Start(ctx, &pb.StartRequest{Spec: specTo(spec)})
	if err != nil {
		return process.Info{}, false, fromWire(ctx, err)
	}
	info, err := checkProcess(processOf(r.GetProcess()))
	return info, r.GetAttached(), err
}

// Find implements workspace.Processes.
func (c remoteProcesses) Find(ctx context.Context, owner process.Owner, key string) (process.Info, error) {
	if !utf8.ValidString(key) {
		return process.Info{}, process.ErrNotFound
	}
	if err := text("owner", string(owner)); err != nil {
		return process.Info{}, err
	}
	r, err := c.rpc.Find(ctx, &pb.FindRequest{Owner: string(owner), Key: key})
	if err != nil {
		return process.Info{}, fromWire(ctx, err)
	}
	return checkProcess(processOf(r.GetProcess()))
}

// Get implements workspace.Processes.
func (c remoteProcesses) Get(ctx context.Context, owner process.Owner, id process.ID) (process.Info, error) {
	h, err := handle(owner, id)
	if err != nil {
		return process.Info{}, err
	}
	r, err := c.rpc.Get(ctx, &pb.GetRequest{Handle: h})
	if err != nil {
		return process.Info{}, fromWire(ctx, err)
	}
	return checkProcess(processOf(r.GetProcess()))
}

// List implements workspace.Processes.
func (c remoteProcesses) List(ctx context.Context, owner process.Owner) ([]process.Info, error) {
	if err := text("owner", string(owner)); err != nil {
		return nil, err
	}
	r, err := c.rpc.List(ctx, &pb.ListRequest{Owner: string(owner)})
	if err != nil {
		return nil, fromWire(ctx, err)
	}
	all := make([]process.Info, len(r.GetProcesses()))
	for i, p := range r.GetProcesses() {
		if all[i], err = checkProcess(processOf(p)); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Wait implements workspace.Processes.
func (c remoteProcesses) Wait(ctx context.Context, owner process.Owner, id process.ID) (process.Info, error) {
	h, err := handle(owner, id)
	if err != nil {
		return process.Info{}, err
	}
	r, err := c.rpc.Wait(ctx, &pb.WaitRequest{Handle: h})
	if err != nil {
		return process.Info{}, fromWire(ctx, err)
	}
	return checkProcess(processOf(r.GetProcess()))
}

// Read implements workspace.Processes.
func (c remoteProcesses) Read(ctx context.Context, owner process.Owner, id process.ID, r process.ReadRequest) (process.Chunk, error) {
	h, err := handle(owner, id)
	if err != nil {
		return process.Chunk{}, err
	}
	chunk, err := c.output(ctx, readTo(h, r))
	if err == nil {
		err = checkChunk(chunk, r)
	}
	if err != nil {
		return process.Chunk{}, err
	}
	return chunk, nil
}

// Tail implements workspace.Processes.
func (c remoteProcesses) Tail(ctx context.Context, owner process.Owner, id process.ID, n int, stream process.Stream) (process.Chunk, error) {
	h, err := handle(owner, id)
	if err != nil {
		return process.Chunk{}, err
	}
	chunk, err := c.output(ctx, &pb.OutputRequest{Handle: h, Tail: true, Limit: int64(n), Stream: streamTo(stream)})
	if err == nil && len(chunk.Data) > n {
		return process.Chunk{}, errMoreThanAsked
	}
	return chunk, err
}

func (c remoteProcesses) output(ctx context.Context, r *pb.OutputRequest) (process.Chunk, error) {
	answer, err := c.rpc.Output(ctx, r)
	if err != nil {
		return process.Chunk{}, fromWire(ctx, err)
	}
	return chunkOf(answer), nil
}

// View implements workspace.Processes.
func (c remoteProcesses) View(ctx context.Context, owner process.Owner, id process.ID, stream process.Stream) (string, *process.TruncationInfo, error) {
	h, err := handle(owner, id)
	if err != nil {
		return "", nil, err
	}
	r, err := c.rpc.View(ctx, &pb.ViewRequest{Handle: h, Stream: streamTo(stream)})
	if err != nil {
		return "", nil, fromWire(ctx, err)
	}
	if len(r.GetText()) > maxView {
		return "", nil, errMoreThanAsked
	}
	return string(r.GetText()), truncationOf(r.GetTruncation()), nil
}

// WriteStdin implements workspace.Processes. An input without a key gets one, so that
// the request can be repeated.
func (c remoteProcesses) WriteStdin(ctx context.Context, owner process.Owner, id process.ID, in process.Input) error {
	h, err := handle(owner, id)
	if err != nil {
		return err
	}
	if err := text("key", in.Key); err != nil {
		return err
	}
	if in.Key == "" {
		in.Key = rand.Text()
	}
	return fromWire(ctx, retry(ctx, c.retries, func() error {
		_, err := c.rpc.Stdin(ctx, &pb.StdinRequest{Handle: h, Input: inputTo(in)})
		return err
	}))
}

// Consume implements workspace.Processes.
func (c remoteProcesses) Rest(context.Context, process.Owner, process.ID, time.Duration) error {
	return nil
}

func (c remoteProcesses) Consume(context.Context, process.Owner, process.ID, int64) error { return nil }

// Resize implements workspace.Processes.
func (c remoteProcesses) Resize(ctx context.Context, owner process.Owner, id process.ID, size process.Size) error {
	h, err := handle(owner, id)
	if err != nil {
		return err
	}
	_, err = c.rpc.Resize(ctx, &pb.ResizeRequest{Handle: h, Size: sizeTo(size)})
	return fromWire(ctx, err)
}

// Signal implements workspace.Processes.
func (c remoteProcesses) Signal(ctx context.Context, owner process.Owner, id process.ID, sig syscall.Signal) error {
	h, err := handle(owner, id)
	if err != nil {
		return err
	}
	_, err = c.rpc.Signal(ctx, &pb.SignalRequest{Handle: h, Signal: workspace.SignalName(sig)})
	return fromWire(ctx, err)
}

// Stop implements workspace.Processes.
func (c remoteProcesses) Stop(ctx context.Context, owner process.Owner, id process.ID) (process.Info, error) {
	return c.end(ctx, owner, id, false)
}

// Interrupt implements workspace.Processes. A workspace of an older version sends TERM at
// once.
func (c remoteProcesses) Interrupt(ctx context.Context, owner process.Owner, id process.ID) (process.Info, error) {
	return c.end(ctx, owner, id, true)
}

func (c remoteProcesses) end(ctx context.Context, owner process.Owner, id process.ID, interrupt bool) (process.Info, error) {
	h, err := handle(owner, id)
	if err != nil {
		return process.Info{}, err
	}
	r, err := c.rpc.Stop(ctx, &pb.StopRequest{Handle: h, Interrupt: interrupt})
	if err != nil {
		return process.Info{}, fromWire(ctx, err)
	}
	return checkProcess(processOf(r.GetProcess()))
}

// MarkSeen implements workspace.Processes.
func (c remoteProcesses) MarkSeen(ctx context.Context, owner process.Owner, id process.ID) error {
	h, err := handle(owner, id)
	if err != nil {
		return err
	}
	_, err = c.rpc.MarkSeen(ctx, &pb.MarkSeenRequest{Handle: h})
	return fromWire(ctx, err)
}
