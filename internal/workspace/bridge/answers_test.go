package bridge_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/abide-run/abide/internal/approval/scope"
	"github.com/abide-run/abide/internal/workspace"
	"github.com/abide-run/abide/internal/workspace/bridge"
	"github.com/abide-run/abide/internal/workspace/local"
	pb "github.com/abide-run/abide/internal/workspace/workspacepb"
)

// largeFiles are files that are all large, and that count who reads them.
type largeFiles struct {
	workspace.Files
	begun   atomic.Int64
	allowed atomic.Int64 // number of answers that the client has begun to read
	most    atomic.Int64 // most answers that were made and that the client had not begun to read
}

func (f *largeFiles) ReadFile(context.Context, workspace.Path) ([]byte, error) {
	unread := f.begun.Add(1) - f.allowed.Load()
	for most := f.most.Load(); unread > most && !f.most.CompareAndSwap(most, unread); most = f.most.Load() {
	}
	return make([]byte, workspace.MaxFile), nil
}

// serveRaw serves a workspace, and returns a function that makes requests on one connection. Their
// answers are read by whoever asks.
func serveRaw(t *testing.T, ws workspace.Workspace) (ask func(procedure string, m proto.Message) (*http.Response, error)) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- (&bridge.Server{Workspace: ws}).Serve(ctx, l) }()
	t.Cleanup(func() { cancel(); must(t, <-served) })
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: protocols, MaxConnsPerHost: 1}
	t.Cleanup(transport.CloseIdleConnections)
	return func(procedure string, m proto.Message) (*http.Response, error) {
		body, err := proto.Marshal(m)
		must(t, err)
		frame := append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(body))), body...)
		r, err := http.NewRequest(http.MethodPost, "http://"+l.Addr().String()+procedure, bytes.NewReader(frame))
		must(t, err)
		r.Header.Set("Content-Type", "application/grpc")
		r.Header.Set("TE", "trailers")
		return transport.RoundTrip(r)
	}
}

// slowSearches are files in which every search takes until it may end.
type slowSearches struct {
	workspace.Files
	begun atomic.Int64
	end   chan struct{}
}

func (f *slowSearches) Grep(context.Context, *scope.Scope, workspace.GrepQuery) (workspace.Found, error) {
	f.begun.Add(1)
	<-f.end
	return workspace.Found{}, nil
}

// Searches that take long hold up nothing else on their connection.
func TestSlowSearchesHoldNothingUp(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "x"), []byte("here"), 0o600))
	ws := local.New(dir, nil)
	files := &slowSearches{Files: ws.Files, end: make(chan struct{})}
	ws.Files = files
	ask := serveRaw(t, ws)
	var all sync.WaitGroup
	const asked = 20
	for range asked {
		all.Go(func() {
			answer, err := ask(pb.WorkspaceServiceGrepProcedure, &pb.GrepRequest{Scope: &pb.Scope{}, Pattern: []byte("x")})
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.Copy(io.Discard, answer.Body)
			answer.Body.Close()
		})
	}
	for files.begun.Load() < 5 {
		runtime.Gosched()
	}
	answer, err := ask(pb.WorkspaceServiceReadFileProcedure, &pb.ReadFileRequest{Path: &pb.Path{Name: []byte("x")}})
	must(t, err)
	if got, err := io.ReadAll(answer.Body); err != nil || !bytes.Contains(got, []byte("here")) {
		t.Errorf("a file beside searches is read as %q, %v", got, err)
	}
	answer.Body.Close()
	close(files.end)
	all.Wait()
	if n := files.begun.Load(); n != asked {
		t.Errorf("%d of %d searches were made", n, asked)
	}
}

// A client that does not read its answers has few of them in memory, and gets all when it
// reads them.
func TestAnswersThatNobodyReadsAreFew(t *testing.T) {
	ws := local.New(t.TempDir(), nil)
	files := &largeFiles{Files: ws.Files}
	ws.Files = files
	ask := serveRaw(t, ws)
	const asked = 20
	reading := make(chan struct{})
	var all sync.WaitGroup
	for range asked {
		all.Go(func() {
			answer, err := ask(pb.WorkspaceServiceReadFileProcedure, &pb.ReadFileRequest{Path: &pb.Path{Name: []byte("x")}})
			if err != nil {
				t.Error(err)
				return
			}
			defer answer.Body.Close()
			<-reading
			files.allowed.Add(1)
			if n, err := io.Copy(io.Discard, answer.Body); err != nil || n < workspace.MaxFile {
				t.Errorf("an answer has %d bytes, %v", n, err)
			}
		})
	}
	for files.begun.Load() < 4 { // others are answered meanwhile
		answer, err := ask(pb.WorkspaceServiceDescribeProcedure, &pb.DescribeRequest{})
		must(t, err)
		_, err = io.Copy(io.Discard, answer.Body)
		must(t, err)
		answer.Body.Close()
	}
	for range 50 {
		answer, err := ask(pb.WorkspaceServiceDescribeProcedure, &pb.DescribeRequest{})
		must(t, err)
		_, err = io.Copy(io.Discard, answer.Body)
		must(t, err)
		answer.Body.Close()
	}
	close(reading)
	all.Wait()
	if most := files.most.Load(); most > 4 {
		t.Errorf("%d answers that nobody read were in memory", most)
	}
	if files.begun.Load() != asked {
		t.Errorf("%d of %d files were read", files.begun.Load(), asked)
	}
}
