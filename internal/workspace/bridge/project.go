package bridge

import (
	"context"

	"github.com/abide-run/abide/internal/workspace"
	pb "github.com/abide-run/abide/internal/workspace/workspacepb"
)

// Collect implements the service.
func (s *service) Collect(ctx context.Context, r *pb.CollectRequest) (*pb.CollectResponse, error) {
	var which []workspace.Selection
	for _, q := range r.GetSelections() {
		which = append(which, workspace.Selection{
			Dir: string(q.GetDirectory()), Names: texts[string](q.GetNames()), First: q.GetFirst(), Above: q.GetAbove(),
			Pattern: string(q.GetPattern()), Within: texts[string](q.GetWithin()), Most: clamp(q.GetMost()),
		})
	}
	found, err := s.ws.Files.Collect(ctx, which...)
	if err != nil {
		return nil, toWire(err)
	}
	answer := new(pb.CollectResponse)
	for _, list := range found {
		files := new(pb.CollectResponse_Files)
		for _, f := range list {
			to := &pb.CollectResponse_File{Path: []byte(f.Path), Content: f.Content, Size: f.Size}
			if f.Err != nil {
				to.Problem = reasonTo(f.Err)
			}
			files.Files = append(files.Files, to)
		}
		answer.Selections = append(answer.Selections, files)
	}
	return answer, nil
}

// Count implements the service.
func (s *service) Count(ctx context.Context, r *pb.CountRequest) (*pb.CountResponse, error) {
	counts, err := s.ws.Files.Count(ctx, texts[string](r.GetPaths())...)
	if err != nil {
		return nil, toWire(err)
	}
	answer := new(pb.CountResponse)
	for _, n := range counts {
		answer.Counts = append(answer.Counts, int64(n))
	}
	return answer, nil
}

// Folders implements the service.
func (s *service) Folders(ctx context.Context, _ *pb.FoldersRequest) (*pb.FoldersResponse, error) {
	found, err := s.ws.Files.Folders(ctx)
	if err != nil {
		return nil, toWire(err)
	}
	return &pb.FoldersResponse{Home: []byte(found.Home), Temporary: []byte(found.Temp)}, nil
}
