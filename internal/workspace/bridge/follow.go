package bridge

import (
	"context"
	"errors"
	"io"
	"iter"

	"connectrpc.com/connect"

	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/workspace"
	pb "github.com/abide-run/abide/internal/workspace/workspacepb"
)

// Follow implements workspace.Processes. After a lost connection it attaches to the
// process again and continues where the output stopped.
func (c remoteProcesses) Follow(ctx context.Context, owner process.Owner, id process.ID, offset int64) iter.Seq2[workspace.Frame, error] {
	return func(yield func(workspace.Frame, error) bool) {
		h, err := handle(owner, id)
		if err != nil {
			yield(workspace.Frame{}, err)
			return
		}
		f := &follower{c: c, handle: h, offset: offset, yield: yield}
		for {
			err := retry(ctx, c.retries, func() error { return f.run(ctx) })
			switch {
			case errors.Is(err, errProgress):
				continue // some output was received, so all retries are available again
			case err != nil && err != errStopped:
				yield(workspace.Frame{}, fromWire(ctx, err))
			}
			return
		}
	}
}

// A follower is the state of one call of Follow, over one or several streams.
type follower struct {
	c      remoteProcesses
	handle *pb.Handle
	offset int64
	yield  func(workspace.Frame, error) bool
}

// Errors that end a stream before the process ends.
var (
	errStopped  = &answer{text: "nobody wants to see more"}
	errProgress = &answer{text: "the stream was lost after it had brought something"}
)

// run yields the frames of one stream.
func (f *follower) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	stream, err := f.c.rpc.Exec(ctx)
	if err != nil {
		cancel()
		return err
	}
	defer func() {
		cancel() // the server need not send the rest
		_ = stream.CloseResponse()
	}()
	attach := &pb.ExecRequest_Attach{Handle: f.handle, Offset: f.offset}
	err = stream.Send(&pb.ExecRequest{Part: &pb.ExecRequest_Attach_{Attach: attach}})
	// No input follows. The request is closed because only a complete request is
	// cancelled when its context ends.
	_ = stream.CloseRequest()
	if err != nil && !errors.Is(err, io.EOF) { // after io.EOF the answer says why the stream ended
		return err
	}
	before := f.offset
	err = f.frames(stream)
	if f.offset > before && isLost(ctx, err) {
		return errProgress
	}
	return err
}

func (f *follower) frames(stream *connect.BidiStreamForClientSimple[pb.ExecRequest, pb.ExecResponse]) error {
	for {
		m, err := stream.Receive()
		if errors.Is(err, io.EOF) {
			return io.ErrUnexpectedEOF // a stream ends with the exit of the process
		}
		if err != nil {
			return err
		}
		frame, ok, err := f.frameOf(m)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		f.offset = frame.Offset + int64(len(frame.Data))
		if !f.yield(frame, nil) {
			return errStopped
		}
		if frame.End != nil {
			return nil
		}
	}
}

// frameOf converts a message to a frame, if it is about output or the end. Output comes once:
// what begins before the offset that was reached is refused.
func (f *follower) frameOf(m *pb.ExecResponse) (frame workspace.Frame, ok bool, err error) {
	switch part := m.GetPart().(type) {
	case *pb.ExecResponse_Output_:
		o := part.Output
		if o.GetOffset() < f.offset {
			return frame, false, errMoreThanAsked
		}
		return workspace.Frame{Stream: streamOf(o.GetStream()), Offset: o.GetOffset(), Data: o.GetData(), Omitted: o.GetOmitted()}, true, nil
	case *pb.ExecResponse_Exit:
		end, err := checkProcess(processOf(part.Exit))
		return workspace.Frame{Offset: f.offset, End: &end}, true, err
	}
	return frame, false, nil
}
