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

// Follow implements workspace.Processes. When the connection is lost it comes back
// to the process where the output stopped.
func (c remoteProcesses) Follow(ctx context.Context, owner process.Owner, id process.ID, offset int64) iter.Seq2[workspace.Frame, error] {
	return func(yield func(workspace.Frame, error) bool) {
		h, err := handle(owner, id)
		if err != nil {
			yield(workspace.Frame{}, err)
			return
		}
		f := &following{c: c, handle: h, offset: offset, yield: yield}
		for {
			err := persist(ctx, c.retries, func() error { return f.run(ctx) })
			switch {
			case errors.Is(err, errMoved):
				continue // some output came, so that there is new hope
			case err != nil && err != errLeft:
				yield(workspace.Frame{}, fromWire(ctx, err))
			}
			return
		}
	}
}

// A following is one who reads on, over one stream after the other.
type following struct {
	c      remoteProcesses
	handle *pb.Handle
	offset int64
	yield  func(workspace.Frame, error) bool
}

// What ends a stream before the process ends.
var (
	errLeft  = &answer{text: "nobody wants to see more"}
	errMoved = &answer{text: "the stream was lost after it had brought something"}
)

// run shows what one stream brings.
func (f *following) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	stream, err := f.c.rpc.Exec(ctx)
	if err != nil {
		cancel()
		return err
	}
	defer func() {
		cancel() // what nobody wants to see need not be sent
		_ = stream.CloseResponse()
	}()
	attach := &pb.ExecRequest_Attach{Handle: f.handle, Offset: f.offset}
	err = stream.Send(&pb.ExecRequest{Part: &pb.ExecRequest_Attach_{Attach: attach}})
	// There is no input to come, and only a request that is complete is given up
	// when its context ends.
	_ = stream.CloseRequest()
	if err != nil && !errors.Is(err, io.EOF) { // at the end of the stream, the answer says why
		return err
	}
	before := f.offset
	err = f.frames(stream)
	if f.offset > before && isLost(ctx, err) {
		return errMoved
	}
	return err
}

func (f *following) frames(stream *connect.BidiStreamForClientSimple[pb.ExecRequest, pb.ExecResponse]) error {
	for {
		m, err := stream.Receive()
		if errors.Is(err, io.EOF) {
			return io.ErrUnexpectedEOF // the exit comes first
		}
		if err != nil {
			return err
		}
		frame, ok := f.frameOf(m)
		if !ok {
			continue
		}
		f.offset = frame.Offset + int64(len(frame.Data))
		if !f.yield(frame, nil) {
			return errLeft
		}
		if frame.End != nil {
			return nil
		}
	}
}

// frameOf makes a frame of a message, if it is about output or the end.
func (f *following) frameOf(m *pb.ExecResponse) (workspace.Frame, bool) {
	switch part := m.GetPart().(type) {
	case *pb.ExecResponse_Output_:
		o := part.Output
		return workspace.Frame{Stream: streamOf(o.GetStream()), Offset: o.GetOffset(), Data: o.GetData(), Omitted: o.GetOmitted()}, true
	case *pb.ExecResponse_Exit:
		end := processOf(part.Exit)
		return workspace.Frame{Offset: f.offset, End: &end}, true
	}
	return workspace.Frame{}, false
}
