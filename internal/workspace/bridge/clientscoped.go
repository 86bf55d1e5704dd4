package bridge

import (
	"context"
	"errors"
	"io/fs"

	"github.com/abide-run/abide/internal/approval/scope"
	"github.com/abide-run/abide/internal/workspace"
	pb "github.com/abide-run/abide/internal/workspace/workspacepb"
)

// Scope implements workspace.Files.
func (c remoteFiles) Scope(ctx context.Context, allow, deny []scope.Rule) (*scope.Scope, error) {
	r, err := c.rpc.NewScope(ctx, &pb.NewScopeRequest{Allow: rulesTo(allow), Deny: rulesTo(deny)})
	if err != nil {
		return nil, fromWire(ctx, err)
	}
	return scopeOf(r.GetScope()), nil
}

// errUnanswered means that a workspace has not answered each question.
var errUnanswered = &answer{text: "the workspace has not judged every path that it was asked about"}

// Judge implements workspace.Files.
func (c remoteFiles) Judge(ctx context.Context, s *scope.Scope, asked ...workspace.Question) ([]workspace.Judgement, error) {
	request := &pb.JudgeRequest{Scope: scopeTo(s)}
	for _, q := range asked {
		request.Questions = append(request.Questions, &pb.JudgeRequest_Question{Path: []byte(q.Path), Write: q.Mode == scope.Write, Most: q.Most})
	}
	r, err := c.rpc.Judge(ctx, request)
	if err != nil {
		return nil, fromWire(ctx, err)
	}
	if len(r.GetJudgements()) != len(asked) {
		return nil, errUnanswered
	}
	list := make([]workspace.Judgement, len(asked))
	for i, j := range r.GetJudgements() {
		if list[i] = judgementOf(j, s, asked[i]); checkJudgement(list[i], asked[i]) != nil {
			return nil, errMoreThanAsked
		}
	}
	return list, nil
}

// Apply implements workspace.Files. If the answer is lost, the change is requested again,
// and the workspace knows from that that it may have made the change before.
func (c remoteFiles) Apply(ctx context.Context, s *scope.Scope, change workspace.Change) error {
	if len(change.New) > workspace.MaxFile {
		return &fs.PathError{Op: "write", Path: change.Path, Err: workspace.ErrTooLarge}
	}
	r := &pb.ApplyRequest{
		Scope: scopeTo(s), Path: []byte(change.Path), Leads: []byte(change.Leads), Before: change.Before, New: change.New,
		Key: change.Key, Again: change.Again,
	}
	err := retry(ctx, c.retries, func() error {
		_, err := c.rpc.Apply(ctx, r)
		r.Again = true
		return err
	})
	return fromWire(ctx, err)
}

// Grep implements workspace.Files.
func (c remoteFiles) Grep(ctx context.Context, s *scope.Scope, q workspace.GrepQuery) (workspace.Found, error) {
	r, err := c.rpc.Grep(ctx, &pb.GrepRequest{
		Scope: scopeTo(s), Pattern: []byte(q.Pattern), IgnoreCase: q.IgnoreCase, Multiline: q.Multiline, Roots: rootsTo(q.Roots),
		Mode: pb.GrepRequest_Mode(q.Mode), Directory: []byte(q.Dir), Glob: []byte(q.Glob), Type: []byte(q.Type),
		Before: int64(q.Before), After: int64(q.After), Columns: int64(q.Columns), Limits: limitsTo(q.Limits),
	})
	if err != nil {
		return workspace.Found{}, fromWire(ctx, err)
	}
	return foundIn(r, q.Roots)
}

// Glob implements workspace.Files.
func (c remoteFiles) Glob(ctx context.Context, s *scope.Scope, q workspace.GlobQuery) (workspace.Found, error) {
	r, err := c.rpc.Glob(ctx, &pb.GlobRequest{Scope: scopeTo(s), Pattern: []byte(q.Pattern), Roots: rootsTo(q.Roots), Limits: limitsTo(q.Limits)})
	if err != nil {
		return workspace.Found{}, fromWire(ctx, err)
	}
	return foundIn(r, q.Roots)
}

// foundIn converts the results of a search in some roots.
func foundIn(r *pb.SearchResponse, roots []workspace.SearchRoot) (workspace.Found, error) {
	found := foundOf(r)
	if err := checkFound(found, roots); err != nil {
		return workspace.Found{}, err
	}
	return found, nil
}

// errorOf converts the reason of an error to the error that the workspace returned.
func errorOf(r *pb.Reason) error {
	var err error = &answer{brief(string(r.GetText())), knownReason(r.GetName())}
	if f := r.GetRefusal(); f != nil {
		finding := findingOf(f.GetFinding())
		finding.Path, finding.Rule, finding.Protected = briefPath(finding.Path), briefPath(finding.Rule), brief(finding.Protected)
		err = &scope.Refusal{Finding: finding, Name: briefPath(string(f.GetName())), Mode: modeOf(f.GetWrite())}
	}
	if len(r.GetPath()) == 0 {
		return err
	}
	return &fs.PathError{Op: brief(string(r.GetOperation())), Path: briefPath(string(r.GetPath())), Err: err}
}

// reasonTo converts an error to a reason, with all that the other side needs to return the
// same error.
func reasonTo(err error) *pb.Reason {
	r := &pb.Reason{Name: reasonName(err)}
	if p, ok := err.(*fs.PathError); ok && p.Path != "" {
		r.Operation, r.Path, err = []byte(p.Op), []byte(p.Path), p.Err
	}
	r.Text = []byte(err.Error())
	var refused *scope.Refusal
	if errors.As(err, &refused) {
		r.Refusal = &pb.Refusal{Finding: findingTo(refused.Finding), Name: []byte(refused.Name), Write: refused.Mode == scope.Write}
	}
	return r
}
