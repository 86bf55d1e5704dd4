package bridge

import (
	"context"

	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/workspace"
	pb "github.com/abide-run/abide/internal/workspace/workspacepb"
)

func handleOf(h *pb.Handle) (process.Owner, process.ID) {
	return process.Owner(h.GetOwner()), process.ID(h.GetId())
}

// Start implements the service.
func (s *service) Start(ctx context.Context, r *pb.StartRequest) (*pb.StartResponse, error) {
	info, attached, err := s.ws.Processes.Start(ctx, specOf(r.GetSpec()))
	if err != nil {
		return nil, toWire(err)
	}
	return &pb.StartResponse{Process: processTo(info), Attached: attached}, nil
}

// Find implements the service.
func (s *service) Find(ctx context.Context, r *pb.FindRequest) (*pb.FindResponse, error) {
	info, err := s.ws.Processes.Find(ctx, process.Owner(r.GetOwner()), r.GetKey())
	if err != nil {
		return nil, toWire(err)
	}
	return &pb.FindResponse{Process: processTo(info)}, nil
}

// Get implements the service.
func (s *service) Get(ctx context.Context, r *pb.GetRequest) (*pb.GetResponse, error) {
	owner, id := handleOf(r.GetHandle())
	info, err := s.ws.Processes.Get(ctx, owner, id)
	if err != nil {
		return nil, toWire(err)
	}
	return &pb.GetResponse{Process: processTo(info)}, nil
}

// List implements the service.
func (s *service) List(ctx context.Context, r *pb.ListRequest) (*pb.ListResponse, error) {
	all, err := s.ws.Processes.List(ctx, process.Owner(r.GetOwner()))
	if err != nil {
		return nil, toWire(err)
	}
	list := make([]*pb.Process, len(all))
	for i, info := range all {
		list[i] = processTo(info)
	}
	return &pb.ListResponse{Processes: list}, nil
}

// Wait implements the service.
func (s *service) Wait(ctx context.Context, r *pb.WaitRequest) (*pb.WaitResponse, error) {
	owner, id := handleOf(r.GetHandle())
	info, err := s.ws.Processes.Wait(ctx, owner, id)
	if err != nil {
		return nil, toWire(err)
	}
	return &pb.WaitResponse{Process: processTo(info)}, nil
}

// Output implements the service.
func (s *service) Output(ctx context.Context, r *pb.OutputRequest) (*pb.OutputResponse, error) {
	owner, id := handleOf(r.GetHandle())
	var chunk process.Chunk
	var err error
	if r.GetTail() {
		chunk, err = s.ws.Processes.Tail(ctx, owner, id, clamp(r.GetLimit()), streamOf(r.GetStream()))
	} else {
		chunk, err = s.ws.Processes.Read(ctx, owner, id, readOf(r))
	}
	if err != nil {
		return nil, toWire(err)
	}
	return chunkTo(chunk), nil
}

// View implements the service.
func (s *service) View(ctx context.Context, r *pb.ViewRequest) (*pb.ViewResponse, error) {
	owner, id := handleOf(r.GetHandle())
	text, cut, err := s.ws.Processes.View(ctx, owner, id, streamOf(r.GetStream()))
	if err != nil {
		return nil, toWire(err)
	}
	return &pb.ViewResponse{Text: []byte(text), Truncation: truncationTo(cut)}, nil
}

// Stdin implements the service.
func (s *service) Stdin(ctx context.Context, r *pb.StdinRequest) (*pb.StdinResponse, error) {
	owner, id := handleOf(r.GetHandle())
	return &pb.StdinResponse{}, toWire(s.ws.Processes.WriteStdin(ctx, owner, id, inputOf(r.GetInput())))
}

// Resize implements the service.
func (s *service) Resize(ctx context.Context, r *pb.ResizeRequest) (*pb.ResizeResponse, error) {
	owner, id := handleOf(r.GetHandle())
	return &pb.ResizeResponse{}, toWire(s.ws.Processes.Resize(ctx, owner, id, sizeOf(r.GetSize())))
}

// Signal implements the service.
func (s *service) Signal(ctx context.Context, r *pb.SignalRequest) (*pb.SignalResponse, error) {
	owner, id := handleOf(r.GetHandle())
	sig, err := workspace.ParseSignal(r.GetSignal())
	if err == nil {
		err = s.ws.Processes.Signal(ctx, owner, id, sig)
	}
	return &pb.SignalResponse{}, toWire(err)
}

// Stop implements the service.
func (s *service) Stop(ctx context.Context, r *pb.StopRequest) (*pb.StopResponse, error) {
	owner, id := handleOf(r.GetHandle())
	end := s.ws.Processes.Stop
	if r.GetInterrupt() {
		end = s.ws.Processes.Interrupt
	}
	info, err := end(ctx, owner, id)
	if err != nil {
		return nil, toWire(err)
	}
	return &pb.StopResponse{Process: processTo(info)}, nil
}

// MarkSeen implements the service.
func (s *service) MarkSeen(ctx context.Context, r *pb.MarkSeenRequest) (*pb.MarkSeenResponse, error) {
	owner, id := handleOf(r.GetHandle())
	return &pb.MarkSeenResponse{}, toWire(s.ws.Processes.MarkSeen(ctx, owner, id))
}
