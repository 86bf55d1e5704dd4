package bridge

import (
	"bytes"
	"cmp"
	"context"

	"connectrpc.com/connect"

	"github.com/abide-run/abide/internal/approval/scope"
	"github.com/abide-run/abide/internal/workspace"
	pb "github.com/abide-run/abide/internal/workspace/workspacepb"
)

// maxInOne is the maximum size of a file that is asked for in one message. A larger one
// comes in parts, because a large message is copied several times while it grows.
const maxInOne = 512 << 10

// Show implements the service.
func (s *service) Show(ctx context.Context, r *pb.ShowRequest) (*pb.ShowResponse, error) {
	shown, err := s.ws.Files.Show(ctx, scopeOf(r.GetScope()), showOf(r))
	if err != nil {
		return nil, toWire(err)
	}
	return shownTo(shown), nil
}

func showOf(r *pb.ShowRequest) workspace.ShowRequest {
	return workspace.ShowRequest{
		Path: string(r.GetPath()), Lines: r.GetLines(), First: r.GetFirst(), Last: r.GetLast(),
		MaxWhole: r.GetMaxWhole(), MaxImage: r.GetMaxImage(), MaxLines: clamp(r.GetMaxLines()), MaxNames: clamp(r.GetMaxNames()),
	}
}

func shownTo(shown workspace.Shown) *pb.ShowResponse {
	return &pb.ShowResponse{
		Folder: shown.Folder, Names: texts[[]byte](shown.Names), Count: shown.Count,
		Size: shown.Size, Image: shown.Image, Content: shown.Content, Seen: shown.Seen, Full: shown.Full,
	}
}

// ShowLarge implements the service.
func (s *service) ShowLarge(ctx context.Context, r *pb.ShowRequest, out *connect.ServerStream[pb.ShowResponse]) error {
	part, err := s.Show(ctx, r)
	if err != nil {
		return err
	}
	rest := part.Content
	part.Length = int64(len(rest))
	for {
		if part.Content = rest; len(rest) > chunk {
			part.Content = rest[:chunk]
		}
		rest = rest[len(part.Content):]
		if err := out.Send(part); err != nil || len(rest) == 0 {
			return err
		}
		part = new(pb.ShowResponse)
	}
}

// Show implements workspace.Files.
func (c remoteFiles) Show(ctx context.Context, s *scope.Scope, r workspace.ShowRequest) (workspace.Shown, error) {
	request := &pb.ShowRequest{
		Scope: scopeTo(s), Path: []byte(r.Path), Lines: r.Lines, First: r.First, Last: r.Last,
		MaxWhole: r.MaxWhole, MaxImage: r.MaxImage, MaxLines: int64(r.MaxLines), MaxNames: int64(r.MaxNames),
	}
	shown, err := c.show(ctx, request)
	if err != nil {
		return workspace.Shown{}, fromWire(ctx, err)
	}
	if err := checkShown(shown, r); err != nil {
		return workspace.Shown{}, err
	}
	return shown, nil
}

// show asks for a file that may be large beside the service, without copies. Whatever does not
// come so is asked for from the service, which decides.
func (c remoteFiles) show(ctx context.Context, r *pb.ShowRequest) (workspace.Shown, error) {
	ask := c.rpc.Show
	if !r.GetLines() && r.GetMaxWhole() > maxInOne {
		if shown, err := c.showRaw(ctx, r); err == nil || ctx.Err() != nil {
			return shown, err
		}
		ask = c.showLarge
	}
	m, err := ask(ctx, r)
	return shownFrom(m), err
}

func shownFrom(m *pb.ShowResponse) workspace.Shown {
	return workspace.Shown{
		Folder: m.GetFolder(), Names: texts[string](m.GetNames()), Count: m.GetCount(),
		Size: m.GetSize(), Image: m.GetImage(), Content: m.GetContent(), Seen: m.GetSeen(), Full: m.GetFull(),
	}
}

// mostShown returns the maximum number of bytes that an honest workspace answers. Text that
// is not stored in UTF-8 becomes longer, and lines may be a little more than was asked for.
func mostShown(r workspace.ShowRequest) int64 {
	most := max(r.MaxWhole, r.MaxImage)
	if r.Lines {
		most = int64(r.MaxLines)
	}
	return 2*max(min(most, workspace.MaxFile), 0) + 1<<16
}

// showLarge asks the service for a file that may be large, in parts. If the answer is lost, it
// is asked for again from the beginning.
func (c remoteFiles) showLarge(ctx context.Context, r *pb.ShowRequest) (whole *pb.ShowResponse, err error) {
	err = retry(ctx, c.retries, func() error {
		whole, err = c.showParts(ctx, r)
		return err
	})
	return whole, err
}

// errNotWhole means that the content of a file has another length than was announced.
var errNotWhole = &answer{text: "the workspace has not sent the whole file"}

// showParts puts the parts of an answer together.
func (c remoteFiles) showParts(ctx context.Context, r *pb.ShowRequest) (*pb.ShowResponse, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	in, err := c.rpc.ShowLarge(ctx, r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = in.Close() }()
	if !in.Receive() {
		return nil, cmp.Or(in.Err(), error(errNotWhole))
	}
	whole := in.Msg()
	parts, length := [][]byte{whole.GetContent()}, int64(len(whole.GetContent()))
	for in.Receive() {
		part := in.Msg().GetContent()
		if length += int64(len(part)); length > maxMessage {
			return nil, errNotWhole
		}
		parts = append(parts, part)
	}
	if err := in.Err(); err != nil {
		return nil, err
	}
	if length != whole.GetLength() {
		return nil, errNotWhole
	}
	if len(parts) > 1 {
		whole.Content = bytes.Join(parts, nil)
	}
	return whole, nil
}
