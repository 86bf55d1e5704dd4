package bridge_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/workspace"
	"github.com/abide-run/abide/internal/workspace/bridge"
	"github.com/abide-run/abide/internal/workspace/bridge/bridgetest"
	pb "github.com/abide-run/abide/internal/workspace/workspacepb"
)

// generatedClient returns a generated client, as other programs would use it.
func (r *remoteWorkspace) generatedClient(t *testing.T, opts ...connect.ClientOption) pb.WorkspaceServiceClient {
	t.Helper()
	p := new(http.Protocols)
	p.SetHTTP2(r.client != nil)
	p.SetUnencryptedHTTP2(r.client == nil)
	transport := &http.Transport{
		DialContext:     func(ctx context.Context, _, _ string) (net.Conn, error) { return r.wire.dial(ctx) },
		Protocols:       p,
		TLSClientConfig: r.client.Clone(),
	}
	t.Cleanup(transport.CloseIdleConnections)
	base := "http://workspace"
	if r.client != nil {
		base = "https://127.0.0.1"
	}
	return pb.NewWorkspaceServiceClient(&http.Client{Transport: authorised{transport, r.token}}, base, opts...)
}

// authorised is a transport that sends a token.
type authorised struct {
	http.RoundTripper
	token string
}

func (a authorised) RoundTrip(r *http.Request) (*http.Response, error) {
	if a.token != "" {
		r.Header.Set("Authorization", "Bearer "+a.token)
	}
	return a.RoundTripper.RoundTrip(r)
}

// onEveryWire runs a test of a workspace with processes over each wire.
func onEveryWire(t *testing.T, test func(t *testing.T, r *remoteWorkspace, rpc pb.WorkspaceServiceClient)) {
	for name, wire := range wires {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := wire(t)
			r.records = t.TempDir()
			r.fixture(t)
			test(t, r, r.generatedClient(t, connect.WithGRPC()))
		})
	}
}

type stream = connect.BidiStreamForClientSimple[pb.ExecRequest, pb.ExecResponse]

// exec starts a command over a stream, and stops it at the end of the test.
func exec(t *testing.T, rpc pb.WorkspaceServiceClient, spec *pb.Spec) (*stream, *pb.Process) {
	t.Helper()
	s := open(t, rpc)
	spec.Owner = "me"
	if spec.GetKey() == "" {
		spec.Key = string(spec.GetCommand())
	}
	must(t, s.Send(&pb.ExecRequest{Part: &pb.ExecRequest_Start{Start: spec}}))
	m, err := s.Receive()
	must(t, err)
	begun := m.GetBegun()
	if begun == nil || begun.GetAttached() || begun.GetProcess().GetOwner() != "me" {
		t.Fatalf("the first message is %v", m)
	}
	h := &pb.Handle{Owner: "me", Id: begun.GetProcess().GetId()}
	t.Cleanup(func() {
		_, err := rpc.Stop(context.WithoutCancel(t.Context()), &pb.StopRequest{Handle: h})
		must(t, err)
	})
	return s, begun.GetProcess()
}

// open opens a stream and closes it at the end of the test.
func open(t *testing.T, rpc pb.WorkspaceServiceClient) *stream {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	s, err := rpc.Exec(ctx)
	must(t, err)
	t.Cleanup(func() {
		cancel()
		_ = s.CloseRequest()
		_ = s.CloseResponse()
	})
	return s
}

func stdinFrame(text string, last bool) *pb.ExecRequest {
	return &pb.ExecRequest{Part: &pb.ExecRequest_Stdin{Stdin: &pb.Input{Data: []byte(text), Close: last}}}
}

// waitHandled waits until the server has handled what was sent before.
func waitHandled(t *testing.T, rpc pb.WorkspaceServiceClient, p *pb.Process) {
	t.Helper()
	for range 10 {
		_, err := rpc.Get(t.Context(), &pb.GetRequest{Handle: &pb.Handle{Owner: p.GetOwner(), Id: p.GetId()}})
		must(t, err)
	}
}

// receive collects messages until the output ends with a text, or the process exits.
func receive(t *testing.T, s *stream, until string) string {
	t.Helper()
	var all strings.Builder
	for until == "" || !strings.HasSuffix(all.String(), until) {
		m, err := s.Receive()
		must(t, err)
		switch part := m.GetPart().(type) {
		case *pb.ExecResponse_Output_:
			all.Write(part.Output.GetData())
		case *pb.ExecResponse_Exit:
			fmt.Fprintf(&all, "<exit %d %s>", part.Exit.GetExit().GetCode(), part.Exit.GetExit().GetSignal())
			if _, err := s.Receive(); !errors.Is(err, io.EOF) {
				t.Errorf("after the exit: %v", err)
			}
			return all.String()
		default:
			t.Fatalf("unexpected: %v", m)
		}
	}
	return all.String()
}

func TestExecIsOneStreamForEverything(t *testing.T) {
	onEveryWire(t, func(t *testing.T, _ *remoteWorkspace, rpc pb.WorkspaceServiceClient) {
		s, _ := exec(t, rpc, &pb.Spec{Command: []byte("echo ready; read a; echo $a; cat >&2; exit 6"), Stdin: true})
		receive(t, s, "ready\n")
		must(t, s.Send(stdinFrame("one\n", false)))
		receive(t, s, "one\n")
		must(t, s.Send(stdinFrame("two", false)))
		must(t, s.Send(stdinFrame(" three", true)))
		m, err := s.Receive()
		must(t, err)
		if m.GetOutput().GetStream() != pb.Stream_STREAM_STDERR || m.GetOutput().GetOffset() != 10 {
			t.Errorf("received %v", m)
		}
		if got := string(m.GetOutput().GetData()) + receive(t, s, ""); got != "two three<exit 6 >" {
			t.Errorf("the rest is %q", got)
		}
	})
}

func TestExecResizesAndSignals(t *testing.T) {
	onEveryWire(t, func(t *testing.T, _ *remoteWorkspace, rpc pb.WorkspaceServiceClient) {
		s, _ := exec(t, rpc, &pb.Spec{
			Command: []byte("stty -echo; echo ready; read x; stty size; sleep 1000"), Stdin: true, Terminal: &pb.Size{Rows: 5, Columns: 6},
		})
		receive(t, s, "ready\r\n")
		must(t, s.Send(&pb.ExecRequest{Part: &pb.ExecRequest_Resize{Resize: &pb.Size{Rows: 12, Columns: 34}}}))
		must(t, s.Send(stdinFrame("\n", false)))
		receive(t, s, "12 34\r\n")
		must(t, s.Send(&pb.ExecRequest{Part: &pb.ExecRequest_Signal{Signal: "KILL"}}))
		if got := receive(t, s, ""); got != "<exit 137 SIGKILL>" {
			t.Errorf("the rest is %q", got)
		}
	})
}

func TestTheEndOfAStreamDoesNotEndTheProcess(t *testing.T) {
	onEveryWire(t, func(t *testing.T, r *remoteWorkspace, rpc pb.WorkspaceServiceClient) {
		first, p := exec(t, rpc, &pb.Spec{Command: []byte("echo one; read x; echo two; cat; echo three"), Stdin: true})
		receive(t, first, "one\n")
		must(t, first.CloseRequest()) // this does not close the standard input
		waitHandled(t, rpc, p)
		r.wire.cut()
		if _, err := first.Receive(); err == nil {
			t.Error("the stream goes on without a connection")
		}
		second := open(t, rpc)
		h := &pb.Handle{Owner: "me", Id: p.GetId()}
		must(t, second.Send(&pb.ExecRequest{Part: &pb.ExecRequest_Attach_{Attach: &pb.ExecRequest_Attach{Handle: h, Offset: 2}}}))
		m, err := second.Receive()
		must(t, err)
		if !m.GetBegun().GetAttached() || m.GetBegun().GetProcess().GetState() != string(process.Running) {
			t.Errorf("coming back: %v", m)
		}
		must(t, second.Send(stdinFrame("\nmore\n", true)))
		if got := receive(t, second, ""); got != "e\ntwo\nmore\nthree\n<exit 0 >" {
			t.Errorf("the rest is %q", got)
		}
	})
}

func TestInputThatFailsEndsOnlyTheStream(t *testing.T) {
	onEveryWire(t, func(t *testing.T, _ *remoteWorkspace, rpc pb.WorkspaceServiceClient) {
		for name, m := range map[string]*pb.ExecRequest{
			"stdin":  stdinFrame("x", false),
			"resize": {Part: &pb.ExecRequest_Resize{Resize: &pb.Size{}}},
			"signal": {Part: &pb.ExecRequest_Signal{Signal: "NONE"}},
			"start":  {Part: &pb.ExecRequest_Start{}},
			"empty":  {},
		} {
			s, p := exec(t, rpc, &pb.Spec{Key: name, Command: []byte("echo ready; sleep 1000")})
			receive(t, s, "ready\n")
			if err := s.Send(m); err != nil && !errors.Is(err, io.EOF) { // after EOF, Receive says why it was refused
				t.Fatal(err)
			}
			_, err := s.Receive()
			if code := connect.CodeOf(err); code != connect.CodeFailedPrecondition && code != connect.CodeInvalidArgument {
				t.Errorf("%s: %v", name, err)
			}
			now, err := rpc.Get(t.Context(), &pb.GetRequest{Handle: &pb.Handle{Owner: "me", Id: p.GetId()}})
			if err != nil || now.GetProcess().GetState() != string(process.Running) {
				t.Errorf("%s: then the process is %v, %v", name, now, err)
			}
		}
	})
}

func TestInputAfterTheEndDoesNotHideIt(t *testing.T) {
	onEveryWire(t, func(t *testing.T, _ *remoteWorkspace, rpc pb.WorkspaceServiceClient) {
		const bytes = 6_000_000 // more than the buffers of the stream hold
		_, p := exec(t, rpc, &pb.Spec{Command: []byte(fmt.Sprintf("head -c %d /dev/zero; exit 3", bytes)), Stdin: true})
		h := &pb.Handle{Owner: "me", Id: p.GetId()}
		_, err := rpc.Wait(t.Context(), &pb.WaitRequest{Handle: h})
		must(t, err)
		s := open(t, rpc)
		must(t, s.Send(&pb.ExecRequest{Part: &pb.ExecRequest_Attach_{Attach: &pb.ExecRequest_Attach{Handle: h}}}))
		must(t, s.Send(stdinFrame("x", false)))
		waitHandled(t, rpc, p)
		_, err = s.Receive()
		must(t, err)
		if got := receive(t, s, ""); len(got) != bytes+len("<exit 3 >") || !strings.HasSuffix(got, "<exit 3 >") {
			t.Errorf("received %d bytes, the last of them %q", len(got), got[max(0, len(got)-20):])
		}
	})
}

func TestStreamsThatBeginWronglyAreRefused(t *testing.T) {
	onEveryWire(t, func(t *testing.T, r *remoteWorkspace, rpc pb.WorkspaceServiceClient) {
		for name, m := range map[string]*pb.ExecRequest{"stdin": stdinFrame("x", false), "empty": {}} {
			s := open(t, rpc)
			if err := s.Send(m); err != nil && !errors.Is(err, io.EOF) { // after EOF, Receive says why it was refused
				t.Fatal(err)
			}
			if _, err := s.Receive(); connect.CodeOf(err) != connect.CodeInvalidArgument {
				t.Errorf("exec with %s first: %v", name, err)
			}
		}
		s := open(t, rpc)
		must(t, s.CloseRequest())
		if _, err := s.Receive(); err == nil || errors.Is(err, io.EOF) {
			t.Errorf("exec with nothing: %v", err)
		}
		w, err := rpc.WriteRaw(t.Context())
		must(t, err)
		must(t, w.Send(&pb.WriteRawRequest{Part: &pb.WriteRawRequest_Content{Content: []byte("x")}}))
		if _, err := w.CloseAndReceive(); connect.CodeOf(err) != connect.CodeInvalidArgument {
			t.Errorf("content first: %v", err)
		}
	})
}

func TestAFileThatIsNotCommittedIsNotWritten(t *testing.T) {
	onEveryWire(t, func(t *testing.T, r *remoteWorkspace, rpc pb.WorkspaceServiceClient) {
		w, err := rpc.WriteRaw(t.Context())
		must(t, err)
		begin := &pb.WriteRawRequest_Begin{Path: &pb.Path{Name: []byte("f")}}
		must(t, w.Send(&pb.WriteRawRequest{Part: &pb.WriteRawRequest_Begin_{Begin: begin}}))
		must(t, w.Send(&pb.WriteRawRequest{Part: &pb.WriteRawRequest_Content{Content: []byte("half")}}))
		if _, err := w.CloseAndReceive(); connect.CodeOf(err) != connect.CodeAborted {
			t.Errorf("without a commit: %v", err)
		}
		entries, err := os.ReadDir(r.dir)
		if len(entries) != 0 || err != nil {
			t.Errorf("there is %v, %v", entries, err)
		}
	})
}

func TestClientsOfEveryProtocolAreServed(t *testing.T) {
	for name, wire := range wires {
		for protocol, opts := range map[string][]connect.ClientOption{
			"gRPC": {connect.WithGRPC()}, "gRPCWeb": {connect.WithGRPCWeb()}, "Connect": nil, "JSON": {connect.WithProtoJSON()},
		} {
			t.Run(name+protocol, func(t *testing.T) {
				t.Parallel()
				r := wire(t)
				r.fixture(t)
				must(t, os.WriteFile(filepath.Join(r.dir, "f"), []byte("hello"), 0o600))
				rpc := r.generatedClient(t, opts...)
				got, err := rpc.ReadFile(t.Context(), &pb.ReadFileRequest{Path: &pb.Path{Name: []byte("f")}})
				if string(got.GetContent()) != "hello" || err != nil {
					t.Errorf("read: %v, %v", got, err)
				}
				_, err = rpc.Stat(t.Context(), &pb.StatRequest{})
				if connect.CodeOf(err) != connect.CodeInvalidArgument {
					t.Errorf("a bad request: %v", err)
				}
				in, err := rpc.ReadRaw(t.Context(), &pb.ReadRawRequest{Path: &pb.Path{Name: []byte("f")}, Offset: 1})
				must(t, err)
				var all []byte
				for in.Receive() {
					all = append(all, in.Msg().GetContent()...)
				}
				if string(all) != "ello" || in.Err() != nil {
					t.Errorf("stream: %q, %v", all, in.Err())
				}
				must(t, in.Close())
			})
		}
	}
}

func TestRequestsWithoutTheTokenAreRefused(t *testing.T) {
	r := wires["TCPWithTLSAndToken"](t)
	r.fixture(t)
	right := r.token
	for _, wrong := range []string{"", "A secret", "a secre", "a secrett", "a secret "} {
		r.token = wrong
		c, err := bridge.NewClient(bridge.ClientOptions{Dial: r.wire.dial, Token: wrong, TLS: r.client})
		must(t, err)
		if _, err := c.Workspace().Files.Stat(t.Context(), workspace.At(".")); !errors.Is(err, workspace.ErrToken) {
			t.Errorf("stat with the token %q: %v", wrong, err)
		}
		for _, err := range c.Workspace().Processes.Follow(t.Context(), "me", "id", 0) {
			if !errors.Is(err, workspace.ErrToken) {
				t.Errorf("follow with the token %q: %v", wrong, err)
			}
		}
		d, err := c.Workspace().Files.Create(t.Context(), workspace.At("f"), workspace.WriteOptions{})
		if err == nil {
			err = d.Commit()
		}
		if !errors.Is(err, workspace.ErrToken) {
			t.Errorf("create with the token %q: %v", wrong, err)
		}
		must(t, c.Close())
		for name, opts := range map[string][]connect.ClientOption{"gRPC": {connect.WithGRPC()}, "gRPCWeb": {connect.WithGRPCWeb()}, "Connect": nil} {
			_, err := r.generatedClient(t, opts...).Stat(t.Context(), &pb.StatRequest{})
			if connect.CodeOf(err) != connect.CodeUnauthenticated {
				t.Errorf("%s with the token %q: %v", name, wrong, err)
			}
		}
	}
	client := &http.Client{Transport: &http.Transport{
		DialContext:     func(ctx context.Context, _, _ string) (net.Conn, error) { return r.wire.dial(ctx) },
		TLSClientConfig: r.client.Clone(),
	}}
	defer client.CloseIdleConnections()
	answer, err := client.Get("https://127.0.0.1/")
	must(t, err)
	must(t, answer.Body.Close())
	if answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("a browser is answered %s", answer.Status)
	}
	if entries, err := os.ReadDir(r.dir); len(entries) != 0 || err != nil {
		t.Errorf("there is %v, %v", entries, err)
	}
	r.token = right
	_, err = r.generatedClient(t).Stat(t.Context(), &pb.StatRequest{Path: &pb.Path{Name: []byte(".")}})
	must(t, err)
}

func TestAWorkspaceThatCannotBeReachedSaysWhy(t *testing.T) {
	secure := wires["TCPWithTLSAndToken"](t)
	secure.fixture(t)
	stranger, _ := bridgetest.Certificates(t)
	wants := map[string]error{"nobody there": workspace.ErrAway, "nobody behind it": workspace.ErrAway, "unknown certificate": workspace.ErrCertificate, "another's certificate": workspace.ErrCertificate,
		"no TLS": workspace.ErrNeedsTLS, "no TLS, with retries": workspace.ErrNeedsTLS}
	for name, o := range map[string]bridge.ClientOptions{
		"nobody there":          {Address: "unix:" + filepath.Join(t.TempDir(), "none")},
		"nobody behind it":      {Dial: func(context.Context) (net.Conn, error) { return accepted(), nil }},
		"no TLS":                {Dial: secure.wire.dial, Token: secure.token},
		"unknown certificate":   {Dial: secure.wire.dial, Token: secure.token, TLS: &tls.Config{ServerName: "127.0.0.1"}},
		"another's certificate": {Dial: secure.wire.dial, Token: secure.token, TLS: stranger},
		"no TLS, with retries":  {Dial: secure.wire.dial, Token: secure.token, Retries: []time.Duration{0, 50 * time.Millisecond, 200 * time.Millisecond}},
	} {
		if o.Retries == nil {
			o.Retries = []time.Duration{}
		}
		c, err := bridge.NewClient(o)
		must(t, err)
		ws, want := c.Workspace(), wants[name]
		_, err = ws.Files.Stat(t.Context(), workspace.At("."))
		if !errors.Is(err, want) {
			t.Errorf("%s: stat: %v", name, err)
		}
		for _, err := range ws.Processes.Follow(t.Context(), "me", "id", 0) {
			if !errors.Is(err, want) {
				t.Errorf("%s: follow: %v", name, err)
			}
		}
		if err := ws.Processes.Signal(t.Context(), "me", "id", 15); !errors.Is(err, want) {
			t.Errorf("%s: signal: %v", name, err)
		}
		must(t, c.Close())
	}
}

func TestAServerThatStopsEndsRunningRequests(t *testing.T) {
	onEveryWire(t, func(t *testing.T, r *remoteWorkspace, rpc pb.WorkspaceServiceClient) {
		s, p := exec(t, rpc, &pb.Spec{Command: []byte("echo ready; sleep 1000")})
		receive(t, s, "ready\n")
		waited := make(chan error)
		go func() {
			_, err := rpc.Wait(t.Context(), &pb.WaitRequest{Handle: &pb.Handle{Owner: "me", Id: p.GetId()}})
			waited <- err
		}()
		r.stop()
		if err := <-waited; err == nil || connect.IsWireError(err) && connect.CodeOf(err) != connect.CodeUnavailable {
			t.Errorf("waiting: %v", err) // an error that is not from the server is possible: the request may have come after the stop
		}
		if _, err := s.Receive(); connect.CodeOf(err) != connect.CodeUnavailable {
			t.Errorf("receiving: %v", err)
		}
		r.serve(t)
	})
}

func TestAMessageThatIsTooLargeIsRefused(t *testing.T) {
	r := wires["Unix"](t)
	r.fixture(t)
	_, err := r.generatedClient(t, connect.WithGRPC()).WriteFile(t.Context(), &pb.WriteFileRequest{
		Path: &pb.Path{Name: []byte("f")}, Content: make([]byte, workspace.MaxFile+2<<20),
	})
	if connect.CodeOf(err) != connect.CodeResourceExhausted {
		t.Errorf("%v", err)
	}
	if entries, err := os.ReadDir(r.dir); len(entries) != 0 || err != nil {
		t.Errorf("there is %v, %v", entries, err)
	}
}

func TestAddresses(t *testing.T) {
	for address, want := range map[string]string{
		"unix:/a:b": "unix /a:b", "tcp:127.0.0.1:80": "tcp 127.0.0.1:80", "tcp:[::1]:80": "tcp [::1]:80", "unix:x": "unix x",
		"": "", "unix:": "", "unix": "", "tcp:80": "", "tcp:[::1": "", "http://x": "", "/run/sock": "", "UNIX:/x": "",
	} {
		network, addr, err := bridge.ParseAddress(address)
		if got := strings.TrimSpace(network + " " + addr); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v; want %q", address, got, err, want)
		}
	}
}
