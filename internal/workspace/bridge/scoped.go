package bridge

import (
	"context"

	"github.com/abide-run/abide/internal/workspace"
	pb "github.com/abide-run/abide/internal/workspace/workspacepb"
)

// NewScope implements the service.
func (s *service) NewScope(ctx context.Context, r *pb.NewScopeRequest) (*pb.NewScopeResponse, error) {
	made, err := s.ws.Files.Scope(ctx, rulesOf(r.GetAllow()), rulesOf(r.GetDeny()))
	if err != nil {
		return nil, toWire(err)
	}
	return &pb.NewScopeResponse{Scope: scopeTo(made)}, nil
}

// Judge implements the service.
func (s *service) Judge(ctx context.Context, r *pb.JudgeRequest) (*pb.JudgeResponse, error) {
	var asked []workspace.Question
	for _, q := range r.GetQuestions() {
		asked = append(asked, workspace.Question{Path: string(q.GetPath()), Mode: modeOf(q.GetWrite()), Most: q.GetMost()})
	}
	found, err := s.ws.Files.Judge(ctx, scopeOf(r.GetScope()), asked...)
	if err != nil {
		return nil, toWire(err)
	}
	answer := new(pb.JudgeResponse)
	for _, j := range found {
		answer.Judgements = append(answer.Judgements, judgementTo(j))
	}
	return answer, nil
}

// Apply implements the service.
func (s *service) Apply(ctx context.Context, r *pb.ApplyRequest) (*pb.ApplyResponse, error) {
	return &pb.ApplyResponse{}, toWire(s.ws.Files.Apply(ctx, scopeOf(r.GetScope()), workspace.Change{
		Path: string(r.GetPath()), Leads: string(r.GetLeads()), Before: r.GetBefore(), New: r.GetNew(),
		Key: r.GetKey(), Again: r.GetAgain(),
	}))
}

// Grep implements the service.
func (s *service) Grep(ctx context.Context, r *pb.GrepRequest) (*pb.SearchResponse, error) {
	found, err := s.ws.Files.Grep(ctx, scopeOf(r.GetScope()), workspace.GrepQuery{
		Pattern: string(r.GetPattern()), IgnoreCase: r.GetIgnoreCase(), Multiline: r.GetMultiline(), Roots: rootsOf(r.GetRoots()),
		Mode: workspace.GrepMode(r.GetMode()), Dir: string(r.GetDirectory()), Glob: string(r.GetGlob()), Type: string(r.GetType()),
		Before: clamp(r.GetBefore()), After: clamp(r.GetAfter()), Columns: clamp(r.GetColumns()), Limits: limitsOf(r.GetLimits()),
	})
	if err != nil {
		return nil, toWire(err)
	}
	return foundTo(found), nil
}

// Glob implements the service.
func (s *service) Glob(ctx context.Context, r *pb.GlobRequest) (*pb.SearchResponse, error) {
	found, err := s.ws.Files.Glob(ctx, scopeOf(r.GetScope()), workspace.GlobQuery{
		Pattern: string(r.GetPattern()), Roots: rootsOf(r.GetRoots()), Limits: limitsOf(r.GetLimits()),
	})
	if err != nil {
		return nil, toWire(err)
	}
	return foundTo(found), nil
}
