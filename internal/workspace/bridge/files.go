package bridge

import (
	"context"
	"errors"
	"io"

	"connectrpc.com/connect"

	"github.com/abide-run/abide/internal/workspace"
	pb "github.com/abide-run/abide/internal/workspace/workspacepb"
)

const (
	maxMessage = workspace.MaxFile + 1<<20 // maximum bytes of a message, in both directions
	chunk      = 256 << 10                 // maximum bytes of a file in one message of a stream
)

// A service implements the gRPC service with a workspace.
type service struct {
	ws       workspace.Workspace
	about    workspace.Description
	inFlight *inFlight
	fences   *fences
}

// Stat implements the service.
func (s *service) Stat(ctx context.Context, r *pb.StatRequest) (*pb.StatResponse, error) {
	info, err := s.ws.Files.Stat(ctx, pathOf(r.GetPath()))
	if err != nil {
		return nil, toWire(err)
	}
	return &pb.StatResponse{Info: infoTo(info)}, nil
}

// ListDir implements the service.
func (s *service) ListDir(ctx context.Context, r *pb.ListDirRequest) (*pb.ListDirResponse, error) {
	l, err := s.ws.Files.List(ctx, pathOf(r.GetPath()), workspace.ListOptions{
		Recursive: r.GetRecursive(), Offset: clamp(r.GetOffset()), Limit: clamp(r.GetLimit()),
	})
	if err != nil {
		return nil, toWire(err)
	}
	entries := make([]*pb.FileInfo, len(l.Entries))
	for i, e := range l.Entries {
		entries[i] = infoTo(e)
	}
	return &pb.ListDirResponse{Entries: entries, Total: int64(l.Total)}, nil
}

// ReadFile implements the service.
func (s *service) ReadFile(ctx context.Context, r *pb.ReadFileRequest) (*pb.ReadFileResponse, error) {
	content, err := s.ws.Files.ReadFile(ctx, pathOf(r.GetPath()))
	if err != nil {
		return nil, toWire(err)
	}
	return &pb.ReadFileResponse{Content: content}, nil
}

// WriteFile implements the service.
func (s *service) WriteFile(ctx context.Context, r *pb.WriteFileRequest) (*pb.WriteFileResponse, error) {
	err := s.ws.Files.WriteFile(ctx, pathOf(r.GetPath()), r.GetContent(), optionsOf(r.GetOptions()))
	return &pb.WriteFileResponse{}, toWire(err)
}

// Mkdir implements the service.
func (s *service) Mkdir(ctx context.Context, r *pb.MkdirRequest) (*pb.MkdirResponse, error) {
	return &pb.MkdirResponse{}, toWire(s.ws.Files.Mkdir(ctx, pathOf(r.GetPath())))
}

// Rename implements the service.
func (s *service) Rename(ctx context.Context, r *pb.RenameRequest) (*pb.RenameResponse, error) {
	return &pb.RenameResponse{}, toWire(s.ws.Files.Rename(ctx, pathOf(r.GetFrom()), pathOf(r.GetTo())))
}

// Delete implements the service.
func (s *service) Delete(ctx context.Context, r *pb.DeleteRequest) (*pb.DeleteResponse, error) {
	return &pb.DeleteResponse{}, toWire(s.ws.Files.Delete(ctx, pathOf(r.GetPath()), r.GetEverything()))
}

// ReadRaw implements the service.
func (s *service) ReadRaw(ctx context.Context, r *pb.ReadRawRequest, out *connect.ServerStream[pb.ReadRawResponse]) error {
	f, err := s.ws.Files.Open(ctx, pathOf(r.GetPath()), r.GetOffset())
	if err != nil {
		return toWire(err)
	}
	defer func() { _ = f.Close() }()
	if err := out.Send(&pb.ReadRawResponse{}); err != nil { // tells the client that the file is open
		return err
	}
	buf := make([]byte, chunk)
	for {
		n, err := f.Read(buf)
		if n > 0 {
			if err := out.Send(&pb.ReadRawResponse{Content: buf[:n]}); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return toWire(err)
		}
	}
}

// errIncomplete is the answer to a stream that ends without a commit.
var errIncomplete = errors.New("the stream ended without a commit; the file was not written")

// errOrder is the answer to messages in a wrong order.
var errOrder = errors.New("the first message of a stream says what it is about, and no other one does")

// WriteRaw implements the service.
func (s *service) WriteRaw(ctx context.Context, in *connect.ClientStream[pb.WriteRawRequest]) (*pb.WriteRawResponse, error) {
	begin, err := firstPart(in)
	if err != nil {
		return nil, err
	}
	var d workspace.Draft
	err = s.change(ctx, func() (err error) {
		d, err = s.ws.Files.Create(ctx, pathOf(begin.GetPath()), optionsOf(begin.GetOptions()))
		return toWire(err)
	})
	if err != nil {
		return nil, err
	}
	defer func() { _ = d.Close() }()
	if err := writeContent(d, in); err != nil {
		return nil, err
	}
	return &pb.WriteRawResponse{}, s.change(ctx, func() error { return toWire(d.Commit()) })
}

func firstPart(in *connect.ClientStream[pb.WriteRawRequest]) (*pb.WriteRawRequest_Begin, error) {
	if !in.Receive() {
		return nil, errors.Join(in.Err(), connect.NewError(connect.CodeInvalidArgument, errOrder))
	}
	begin := in.Msg().GetBegin()
	if begin == nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, errOrder)
	}
	return begin, nil
}

// writeContent writes the content that the client sends, until its commit.
func writeContent(d workspace.Draft, in *connect.ClientStream[pb.WriteRawRequest]) error {
	for in.Receive() {
		switch part := in.Msg().GetPart().(type) {
		case *pb.WriteRawRequest_Content:
			if _, err := d.Write(part.Content); err != nil {
				return toWire(err)
			}
		case *pb.WriteRawRequest_Commit_:
			return nil
		default:
			return connect.NewError(connect.CodeInvalidArgument, errOrder)
		}
	}
	if in.Err() != nil {
		return in.Err()
	}
	return connect.NewError(connect.CodeAborted, errIncomplete)
}
