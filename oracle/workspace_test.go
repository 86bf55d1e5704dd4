package oracle

import (
	"context"
	"io"
	"net"
	"path/filepath"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/abide-run/abide/internal/workspace/bridge"
	"github.com/abide-run/abide/internal/workspace/local"
	pb "github.com/abide-run/abide/internal/workspace/workspacepb"
	"github.com/abide-run/abide/internal/workspace/workspacetest"
)

// service is the path of the methods of a workspace.
const service = "/abide.workspace.v1.WorkspaceService/"

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// serveWorkspace serves a workspace on a socket, and connects to it with the client of
// gRPC.
func serveWorkspace(t *testing.T) *grpc.ClientConn {
	t.Helper()
	m := workspacetest.Manager(t, t.TempDir())
	path := filepath.Join(t.TempDir(), "sock")
	l, err := net.Listen("unix", path)
	must(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	served := make(chan error, 1)
	server := &bridge.Server{Workspace: local.New(t.TempDir(), m), Token: "a secret"}
	go func() { served <- server.Serve(ctx, l) }()
	conn, err := grpc.NewClient("unix:"+path, grpc.WithTransportCredentials(insecure.NewCredentials()))
	must(t, err)
	t.Cleanup(func() {
		must(t, conn.Close())
		cancel()
		must(t, <-served)
		must(t, m.Close())
	})
	return conn
}

func withToken(ctx context.Context, token string) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
}

func TestAGRPCClientUsesAWorkspace(t *testing.T) {
	conn := serveWorkspace(t)
	ctx := withToken(t.Context(), "a secret")
	f := &pb.Path{Name: []byte("f")}
	must(t, conn.Invoke(ctx, service+"WriteFile", &pb.WriteFileRequest{Path: f, Content: []byte("hello")}, new(pb.WriteFileResponse)))
	read := new(pb.ReadFileResponse)
	must(t, conn.Invoke(ctx, service+"ReadFile", &pb.ReadFileRequest{Path: f}, read))
	if string(read.GetContent()) != "hello" {
		t.Errorf("read %q", read.GetContent())
	}
	err := conn.Invoke(ctx, service+"Stat", &pb.StatRequest{Path: &pb.Path{Name: []byte("none")}}, new(pb.StatResponse))
	reason, ok := detail[*pb.Reason](err)
	if status.Code(err) != codes.NotFound || !ok || reason.GetName() != "not_exist" {
		t.Errorf("a missing file: %v, %v", err, reason)
	}
	for _, token := range []string{"", "wrong"} {
		err := conn.Invoke(withToken(t.Context(), token), service+"Stat", &pb.StatRequest{Path: f}, new(pb.StatResponse))
		if status.Code(err) != codes.Unauthenticated {
			t.Errorf("with the token %q: %v", token, err)
		}
	}
}

// detail returns a detail of an error.
func detail[M proto.Message](err error) (M, bool) {
	for _, d := range status.Convert(err).Details() {
		if m, ok := d.(M); ok {
			return m, true
		}
	}
	return *new(M), false
}

func TestAGRPCClientRunsACommand(t *testing.T) {
	conn := serveWorkspace(t)
	desc := &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}
	stream, err := conn.NewStream(withToken(t.Context(), "a secret"), desc, service+"Exec")
	must(t, err)
	spec := &pb.Spec{Key: "k", Owner: "me", Command: []byte("read x; echo got $x; cat >&2; exit 4"), Stdin: true}
	must(t, stream.SendMsg(&pb.ExecRequest{Part: &pb.ExecRequest_Start{Start: spec}}))
	for _, in := range []*pb.Input{{Data: []byte("it\n")}, {Data: []byte("rest"), Close: true}} {
		must(t, stream.SendMsg(&pb.ExecRequest{Part: &pb.ExecRequest_Stdin{Stdin: in}}))
	}
	must(t, stream.CloseSend())
	said := map[pb.Stream]string{}
	var end *pb.Process
	for {
		m := new(pb.ExecResponse)
		err := stream.RecvMsg(m)
		if err == io.EOF {
			break
		}
		must(t, err)
		said[m.GetOutput().GetStream()] += string(m.GetOutput().GetData())
		end = m.GetExit()
	}
	if said[pb.Stream_STREAM_STDOUT] != "got it\n" || said[pb.Stream_STREAM_STDERR] != "rest" || end.GetExit().GetCode() != 4 {
		t.Errorf("it wrote %q and ended with %v", said, end)
	}
}
