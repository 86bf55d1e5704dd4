package bridge

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"connectrpc.com/connect"

	"github.com/abide-run/abide/internal/workspace"
	pb "github.com/abide-run/abide/internal/workspace/workspacepb"
)

// The headers of a request that changes something for a session. A workspace of an older version
// ignores them.
const (
	sessionHeader = "Abide-Session"
	fenceHeader   = "Abide-Fence" // ERA.NUMBER
)

// reading are the procedures that change nothing. All others are fenced.
var reading = map[string]bool{
	pb.WorkspaceServiceDescribeProcedure: true, pb.WorkspaceServiceStatProcedure: true, pb.WorkspaceServiceListDirProcedure: true,
	pb.WorkspaceServiceReadFileProcedure: true, pb.WorkspaceServiceReadRawProcedure: true, pb.WorkspaceServiceNewScopeProcedure: true,
	pb.WorkspaceServiceJudgeProcedure: true, pb.WorkspaceServiceLookProcedure: true, pb.WorkspaceServiceShowProcedure: true,
	pb.WorkspaceServiceGrepProcedure: true, pb.WorkspaceServiceGlobProcedure: true, pb.WorkspaceServiceFindProcedure: true,
	pb.WorkspaceServiceGetProcedure: true, pb.WorkspaceServiceListProcedure: true, pb.WorkspaceServiceWaitProcedure: true,
	pb.WorkspaceServiceOutputProcedure: true, pb.WorkspaceServiceViewProcedure: true, pb.WorkspaceServiceCollectProcedure: true,
	pb.WorkspaceServiceCountProcedure: true, pb.WorkspaceServiceFoldersProcedure: true, pb.WorkspaceServiceSurveyProcedure: true,
	pb.WorkspaceServiceShowLargeProcedure: true, pb.WorkspaceServiceChangesProcedure: true,
}

// A fenceKey is the key of the fence in the context of a request.
type fenceKey struct{}

// setFence sets the headers of a request whose context has a fence.
func setFence(ctx context.Context, h http.Header) {
	if f, ok := ctx.Value(fenceKey{}).(workspace.Fence); ok && f.Session != "" {
		h.Set(sessionHeader, url.PathEscape(f.Session))
		h.Set(fenceHeader, fmt.Sprintf("%d.%d", f.Era, f.Number))
	}
}

// fenceOf returns the fence of a request. It is zero if the request has none.
func fenceOf(h http.Header) (f workspace.Fence, err error) {
	session, given := h.Get(sessionHeader), h.Get(fenceHeader)
	if session == "" && given == "" {
		return f, nil
	}
	f.Session, err = url.PathUnescape(session)
	if err == nil {
		_, err = fmt.Sscanf(given, "%d.%d", &f.Era, &f.Number)
	}
	if err != nil || f.Session == "" {
		return f, connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("the headers %s and %s name no session and no fence", sessionHeader, fenceHeader))
	}
	return f, nil
}

// For returns the workspace for a session, whose changes carry the fence that a function returns.
// An error of the function is that of the change.
func (c *Client) For(fence func(context.Context) (workspace.Fence, error)) workspace.Workspace {
	fenced := *c
	fenced.rpc = fencedRequests{c.rpc, fence}
	return fenced.Workspace()
}

// fencedRequests make requests that carry a fence.
type fencedRequests struct {
	pb.WorkspaceServiceClient
	fence func(context.Context) (workspace.Fence, error)
}

// fenced makes a request whose context has the fence.
func fenced[Q, A any](ctx context.Context, f fencedRequests, ask func(context.Context, Q) (A, error), request Q) (answer A, err error) {
	fence, err := f.fence(ctx)
	if err != nil {
		return answer, &unasked{err}
	}
	return ask(context.WithValue(ctx, fenceKey{}, fence), request)
}

// An unasked is the error of a change for which there is no fence: the workspace was not asked.
type unasked struct{ error }

func (u *unasked) Unwrap() error { return u.error }

func (f fencedRequests) WriteFile(ctx context.Context, r *pb.WriteFileRequest) (*pb.WriteFileResponse, error) {
	return fenced(ctx, f, f.WorkspaceServiceClient.WriteFile, r)
}

func (f fencedRequests) Mkdir(ctx context.Context, r *pb.MkdirRequest) (*pb.MkdirResponse, error) {
	return fenced(ctx, f, f.WorkspaceServiceClient.Mkdir, r)
}

func (f fencedRequests) Rename(ctx context.Context, r *pb.RenameRequest) (*pb.RenameResponse, error) {
	return fenced(ctx, f, f.WorkspaceServiceClient.Rename, r)
}

func (f fencedRequests) Delete(ctx context.Context, r *pb.DeleteRequest) (*pb.DeleteResponse, error) {
	return fenced(ctx, f, f.WorkspaceServiceClient.Delete, r)
}

func (f fencedRequests) Apply(ctx context.Context, r *pb.ApplyRequest) (*pb.ApplyResponse, error) {
	return fenced(ctx, f, f.WorkspaceServiceClient.Apply, r)
}

func (f fencedRequests) Restore(ctx context.Context, r *pb.RestoreRequest) (*pb.RestoreResponse, error) {
	return fenced(ctx, f, f.WorkspaceServiceClient.Restore, r)
}

func (f fencedRequests) Start(ctx context.Context, r *pb.StartRequest) (*pb.StartResponse, error) {
	return fenced(ctx, f, f.WorkspaceServiceClient.Start, r)
}

func (f fencedRequests) Stdin(ctx context.Context, r *pb.StdinRequest) (*pb.StdinResponse, error) {
	return fenced(ctx, f, f.WorkspaceServiceClient.Stdin, r)
}

func (f fencedRequests) Resize(ctx context.Context, r *pb.ResizeRequest) (*pb.ResizeResponse, error) {
	return fenced(ctx, f, f.WorkspaceServiceClient.Resize, r)
}

func (f fencedRequests) Signal(ctx context.Context, r *pb.SignalRequest) (*pb.SignalResponse, error) {
	return fenced(ctx, f, f.WorkspaceServiceClient.Signal, r)
}

func (f fencedRequests) Stop(ctx context.Context, r *pb.StopRequest) (*pb.StopResponse, error) {
	return fenced(ctx, f, f.WorkspaceServiceClient.Stop, r)
}

func (f fencedRequests) MarkSeen(ctx context.Context, r *pb.MarkSeenRequest) (*pb.MarkSeenResponse, error) {
	return fenced(ctx, f, f.WorkspaceServiceClient.MarkSeen, r)
}

func (f fencedRequests) WriteRaw(ctx context.Context) (*connect.ClientStreamForClientSimple[pb.WriteRawRequest, pb.WriteRawResponse], error) {
	open := func(ctx context.Context, _ struct{}) (*connect.ClientStreamForClientSimple[pb.WriteRawRequest, pb.WriteRawResponse], error) {
		return f.WorkspaceServiceClient.WriteRaw(ctx)
	}
	return fenced(ctx, f, open, struct{}{})
}

// fencing is an interceptor that refuses changes for sessions with which a later server goes on.
type fencing struct{ fences *fences }

func (f fencing) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, r connect.AnyRequest) (connect.AnyResponse, error) {
		if reading[r.Spec().Procedure] {
			return next(ctx, r)
		}
		fence, err := fenceOf(r.Header())
		if err != nil {
			return nil, err
		}
		end, err := f.fences.begin(ctx, fence)
		if err != nil {
			return nil, toWire(err)
		}
		defer end()
		return next(ctx, r)
	}
}

func (fencing) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

// WrapStreamingHandler gives handlers the fence in their context: a change is under way in a part
// of the time of a stream only.
func (f fencing) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		fence, err := fenceOf(conn.RequestHeader())
		if err != nil {
			return err
		}
		return next(context.WithValue(ctx, fenceKey{}, fence), conn)
	}
}

// change makes a change that is a part of a stream. Its errors are those of the wire.
func (s *service) change(ctx context.Context, do func() error) error {
	fence, _ := ctx.Value(fenceKey{}).(workspace.Fence)
	end, err := s.fences.begin(ctx, fence)
	if err != nil {
		return toWire(err)
	}
	defer end()
	return do()
}
