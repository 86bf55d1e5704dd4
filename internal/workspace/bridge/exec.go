package bridge

import (
	"context"
	"errors"
	"fmt"
	"io"

	"connectrpc.com/connect"

	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/workspace"
	pb "github.com/abide-run/abide/internal/workspace/workspacepb"
)

// An execStream is a stream with the input and output of a process.
type execStream = connect.BidiStream[pb.ExecRequest, pb.ExecResponse]

// Exec implements the service.
func (s *service) Exec(ctx context.Context, stream *execStream) error {
	first, err := stream.Receive()
	if err != nil {
		return fmt.Errorf("the first message: %w", err)
	}
	begun, offset, err := s.startOrAttach(ctx, first)
	if err != nil {
		return err
	}
	if err := stream.Send(&pb.ExecResponse{Part: &pb.ExecResponse_Begun_{Begun: begun}}); err != nil {
		return err
	}
	owner, id := process.Owner(begun.GetProcess().GetOwner()), process.ID(begun.GetProcess().GetId())
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if !s.inFlight.begin() {
		return errStopping
	}
	go func() { // ends when the stream ends, just after Exec returns
		defer s.inFlight.end()
		if err := s.receiveInputs(ctx, stream, owner, id); err != nil {
			cancel(err)
		}
	}()
	return s.sendOutputs(ctx, stream, owner, id, offset)
}

// startOrAttach starts a process, or finds the one that the client attaches to.
func (s *service) startOrAttach(ctx context.Context, first *pb.ExecRequest) (*pb.ExecResponse_Begun, int64, error) {
	switch part := first.GetPart().(type) {
	case *pb.ExecRequest_Start:
		begun := new(pb.ExecResponse_Begun)
		err := s.change(ctx, func() error {
			info, attached, err := s.ws.Processes.Start(ctx, specOf(part.Start))
			begun.Process, begun.Attached = processTo(info), attached
			return toWire(err)
		})
		return begun, 0, err
	case *pb.ExecRequest_Attach_:
		owner, id := handleOf(part.Attach.GetHandle())
		info, err := s.ws.Processes.Get(ctx, owner, id)
		if err != nil {
			return nil, 0, toWire(err)
		}
		return &pb.ExecResponse_Begun{Process: processTo(info), Attached: true}, part.Attach.GetOffset(), nil
	}
	return nil, 0, connect.NewError(connect.CodeInvalidArgument, errOrder)
}

// receiveInputs handles the messages of the client, in order. The end of the stream does not
// close the standard input of the process.
func (s *service) receiveInputs(ctx context.Context, stream *execStream, owner process.Owner, id process.ID) error {
	for {
		m, err := stream.Receive()
		if errors.Is(err, io.EOF) || err != nil && ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		err = s.change(ctx, func() error { return s.handleInput(ctx, m, owner, id) })
		if err != nil && !errors.Is(err, process.ErrEnded) { // outputs reports the end of the process
			return err
		}
	}
}

func (s *service) handleInput(ctx context.Context, m *pb.ExecRequest, owner process.Owner, id process.ID) error {
	switch part := m.GetPart().(type) {
	case *pb.ExecRequest_Stdin:
		return toWire(s.ws.Processes.WriteStdin(ctx, owner, id, inputOf(part.Stdin)))
	case *pb.ExecRequest_Resize:
		return toWire(s.ws.Processes.Resize(ctx, owner, id, sizeOf(part.Resize)))
	case *pb.ExecRequest_Signal:
		sig, err := workspace.ParseSignal(part.Signal)
		if err == nil {
			err = s.ws.Processes.Signal(ctx, owner, id, sig)
		}
		return toWire(err)
	}
	return connect.NewError(connect.CodeInvalidArgument, errOrder)
}

// sendOutputs sends the output of a process, and how it ended.
func (s *service) sendOutputs(ctx context.Context, stream *execStream, owner process.Owner, id process.ID, offset int64) error {
	for frame, err := range s.ws.Processes.Follow(ctx, owner, id, offset) {
		if err != nil {
			return streamError(ctx, err)
		}
		if err := stream.Send(frameTo(frame)); err != nil {
			return err
		}
	}
	return nil
}

// streamError returns why a stream ends early: the error of inputs if there is one, or
// else err.
func streamError(ctx context.Context, err error) error {
	var e *connect.Error
	if errors.As(context.Cause(ctx), &e) {
		return e
	}
	return toWire(err)
}

func frameTo(f workspace.Frame) *pb.ExecResponse {
	if f.End != nil {
		return &pb.ExecResponse{Part: &pb.ExecResponse_Exit{Exit: processTo(*f.End)}}
	}
	return &pb.ExecResponse{Part: &pb.ExecResponse_Output_{Output: &pb.ExecResponse_Output{
		Stream: pb.Stream(f.Stream), Offset: f.Offset, Data: f.Data, Omitted: f.Omitted,
	}}}
}
