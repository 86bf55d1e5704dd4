package bridge_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/abide-run/abide/internal/workspace"
	"github.com/abide-run/abide/internal/workspace/bridge"
	"github.com/abide-run/abide/internal/workspace/bridge/bridgetest"
	"github.com/abide-run/abide/internal/workspace/local"
	pb "github.com/abide-run/abide/internal/workspace/workspacepb"
)

// A versionedService is a workspace with another version of the protocol.
type versionedService struct {
	pb.UnimplementedWorkspaceServiceHandler
	protocol int32
}

func (s versionedService) Describe(context.Context, *pb.DescribeRequest) (*pb.DescribeResponse, error) {
	return &pb.DescribeResponse{Identity: "one", Protocol: s.protocol}, nil
}

// serveHandler serves HTTP in memory until the end of the test.
func serveHandler(t *testing.T, h http.Handler) *bridgetest.Memory {
	t.Helper()
	m, p := new(bridgetest.Memory), new(http.Protocols)
	p.SetHTTP1(true)
	p.SetUnencryptedHTTP2(true)
	server, l, served := &http.Server{Protocols: p, Handler: h}, m.Listen(), make(chan struct{})
	go func() {
		_ = server.Serve(l)
		close(served)
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-served
	})
	return m
}

func TestAnotherVersionOfTheProtocolIsNamed(t *testing.T) {
	for protocol, update := range map[int32]string{
		bridge.Protocol + 1: "this engine",
		bridge.Protocol - 1: "the workspace",
		0:                   "the workspace",
		1000:                "this engine",
	} {
		path, handler := pb.NewWorkspaceServiceHandler(versionedService{protocol: protocol})
		mux := http.NewServeMux()
		mux.Handle(path, handler)
		c := client(t, bridge.ClientOptions{Dial: serveHandler(t, mux).Dial})
		want := fmt.Sprintf("it has %d and this engine has %d; update %s", protocol, bridge.Protocol, update)
		if _, err := c.Describe(t.Context()); !errors.Is(err, workspace.ErrProtocol) || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// A workspace that is older than a request is named as such, whatever it is asked.
func TestARequestThatAWorkspaceDoesNotKnow(t *testing.T) {
	_, service := pb.NewWorkspaceServiceHandler(pb.UnimplementedWorkspaceServiceHandler{})
	for what, handler := range map[string]http.Handler{"methods": service, "service": http.NotFoundHandler()} {
		c := client(t, bridge.ClientOptions{Dial: serveHandler(t, handler).Dial, Retries: []time.Duration{}})
		for name, ask := range requests {
			if err := ask(t.Context(), c); !errors.Is(err, workspace.ErrProtocol) || !strings.HasSuffix(err.Error(), "update the workspace") {
				t.Errorf("unknown %s, %s: %v", what, name, err)
			}
		}
	}
}

func TestAClientOfAnotherVersionIsToldWhatToUpdate(t *testing.T) {
	r := &remoteWorkspace{wire: newBreaker(unixSocket(t)), dir: t.TempDir()}
	r.serve(t)
	defer r.stop()
	http1 := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return r.wire.dial(ctx) }}}
	defer http1.CloseIdleConnections()
	for version, update := range map[string]string{
		strconv.Itoa(bridge.Protocol + 1): "the workspace",
		strconv.Itoa(bridge.Protocol - 1): "the client",
		"0":                               "the client",
		"x":                               "the workspace",
	} {
		want := fmt.Sprintf("it has %d and the client has %q; update %s", bridge.Protocol, version, update)
		request := connect.NewRequest(&pb.StatRequest{Path: &pb.Path{Name: []byte(".")}})
		request.Header().Set("Abide-Workspace-Protocol", version)
		rpc := connect.NewClient[pb.StatRequest, pb.StatResponse](http1, "http://workspace"+pb.WorkspaceServiceStatProcedure)
		if _, err := rpc.CallUnary(t.Context(), request); connect.CodeOf(err) != connect.CodeFailedPrecondition || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("version %q: %v, want %q", version, err, want)
		}
	}
}

func TestACertificateOfAnotherYearIsRefusedWithTheReason(t *testing.T) {
	for _, off := range []time.Duration{-365 * 24 * time.Hour, 365 * 24 * time.Hour} {
		r := &remoteWorkspace{wire: newBreaker(unixSocket(t)), dir: t.TempDir()}
		r.server, r.client = bridgetest.CertificatesFor(t, time.Now().Add(off))
		r.serve(t)
		c := r.connect(t)
		for name, ask := range requests {
			err := ask(t.Context(), c)
			if !errors.Is(err, workspace.ErrCertificate) || !strings.Contains(err.Error(), "has expired or is not yet valid") || !strings.Contains(err.Error(), "compare the clocks") {
				t.Errorf("%s, %s off: %v", name, off, err)
			}
		}
		r.stop()
	}
}

// The times of a workspace are those of its clock, whatever this machine's says.
func TestTimesAreThoseOfTheWorkspace(t *testing.T) {
	for _, network := range []string{"memory", "unix"} {
		dir := t.TempDir()
		here := local.New(dir, nil)
		there := bridgetest.Over(t, network, here)
		now := time.Now()
		for _, at := range []time.Time{now.AddDate(-1, 0, 0), now.AddDate(1, 0, 0), time.Unix(0, 0), time.Unix(-1, 5), time.Unix(1<<32, 999)} {
			must(t, os.WriteFile(filepath.Join(dir, "f"), []byte("x"), 0o600))
			must(t, os.Chtimes(filepath.Join(dir, "f"), at, at))
			want, err := here.Files.Stat(t.Context(), workspace.At("f"))
			must(t, err)
			got, err := there.Files.Stat(t.Context(), workspace.At("f"))
			if err != nil || !got.ModTime.Equal(want.ModTime) || got != want && got.ModTime.Location() == want.ModTime.Location() {
				t.Errorf("%s: %+v, want %+v, %v", network, got, want, err)
			}
		}
	}
}
