package bridge

import (
	"context"

	"github.com/abide-run/abide/internal/workspace"
	pb "github.com/abide-run/abide/internal/workspace/workspacepb"
)

// maxChanges is the maximum number of bytes of the diffs in one answer. Further ones are
// left out.
const maxChanges = 12 << 20

// Changes implements the service.
func (s *service) Changes(ctx context.Context, r *pb.ChangesRequest) (*pb.ChangesResponse, error) {
	found, err := s.ws.Files.Changes(ctx, workspace.ChangesRequest{Dir: string(r.GetDirectory()), Branch: r.GetBranch(), IgnoreSpace: r.GetIgnoreSpace()})
	if err != nil {
		return nil, toWire(err)
	}
	answer, size := &pb.ChangesResponse{Base: found.Base}, 0
	for _, f := range found.Files {
		if size += len(f.Diff); size > maxChanges {
			f.Diff, f.Cut = "", true
		}
		answer.Files = append(answer.Files, &pb.ChangesResponse_File{Path: f.Path, OldPath: f.OldPath, Kind: f.Kind, Diff: f.Diff, Cut: f.Cut})
	}
	return answer, nil
}

// Changes implements workspace.Files.
func (c remoteFiles) Changes(ctx context.Context, r workspace.ChangesRequest) (workspace.Changes, error) {
	answer, err := c.rpc.Changes(ctx, &pb.ChangesRequest{Directory: []byte(r.Dir), Branch: r.Branch, IgnoreSpace: r.IgnoreSpace})
	if err != nil {
		return workspace.Changes{}, fromWire(ctx, err)
	}
	found := workspace.Changes{Base: answer.GetBase()}
	for _, f := range answer.GetFiles() {
		found.Files = append(found.Files, workspace.FileChange{Path: f.GetPath(), OldPath: f.GetOldPath(), Kind: f.GetKind(), Diff: f.GetDiff(), Cut: f.GetCut()})
	}
	return found, nil
}
