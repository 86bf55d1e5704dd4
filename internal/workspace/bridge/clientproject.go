package bridge

import (
	"context"

	"github.com/abide-run/abide/internal/workspace"
	pb "github.com/abide-run/abide/internal/workspace/workspacepb"
)

// errUncollected means that a workspace has not answered each part of a request.
var errUncollected = &answer{text: "the workspace has not answered everything that it was asked about"}

// Collect implements workspace.Files.
func (c remoteFiles) Collect(ctx context.Context, which ...workspace.Selection) ([][]workspace.Collected, error) {
	request := new(pb.CollectRequest)
	for _, s := range which {
		request.Selections = append(request.Selections, &pb.CollectRequest_Selection{
			Directory: []byte(s.Dir), Names: texts[[]byte](s.Names), First: s.First, Above: s.Above,
			Pattern: []byte(s.Pattern), Within: texts[[]byte](s.Within), Most: int64(s.Most),
		})
	}
	r, err := c.rpc.Collect(ctx, request)
	if err != nil {
		return nil, fromWire(ctx, err)
	}
	if len(r.GetSelections()) != len(which) {
		return nil, errUncollected
	}
	found := make([][]workspace.Collected, len(which))
	for i, list := range r.GetSelections() {
		for _, f := range list.GetFiles() {
			of := workspace.Collected{Path: string(f.GetPath()), Content: f.GetContent(), Size: f.GetSize()}
			if f.GetProblem() != nil {
				of.Err = errorOf(f.GetProblem())
			}
			if err := checkCollected(of, which[i]); err != nil {
				return nil, err
			}
			found[i] = append(found[i], of)
		}
	}
	return found, nil
}

// Count implements workspace.Files.
func (c remoteFiles) Count(ctx context.Context, paths ...string) ([]int, error) {
	r, err := c.rpc.Count(ctx, &pb.CountRequest{Paths: texts[[]byte](paths)})
	if err != nil {
		return nil, fromWire(ctx, err)
	}
	if len(r.GetCounts()) != len(paths) {
		return nil, errUncollected
	}
	counts := make([]int, len(paths))
	for i, n := range r.GetCounts() {
		counts[i] = int(n)
	}
	return counts, nil
}

// Folders implements workspace.Files.
func (c remoteFiles) Folders(ctx context.Context) (workspace.Folders, error) {
	r, err := c.rpc.Folders(ctx, &pb.FoldersRequest{})
	if err != nil {
		return workspace.Folders{}, fromWire(ctx, err)
	}
	return workspace.Folders{Home: string(r.GetHome()), Temp: string(r.GetTemporary())}, nil
}
