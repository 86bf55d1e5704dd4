package daemon_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/daemon"
	"github.com/abide-run/abide/internal/daemon/folder"
	"github.com/abide-run/abide/internal/jsonrpc"
)

// dialSocket connects to the private socket of a folder, as any program of the user can.
func dialSocket(t *testing.T, dir string) *jsonrpc.Conn {
	t.Helper()
	conn, err := net.Dial("unix", filepath.Join(dir, "sock"))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonrpc.New(conn, jsonrpc.Options{})
	ran := make(chan struct{})
	go func() { defer close(ran); c.Run(context.Background()) }()
	t.Cleanup(func() { c.Close(); <-ran })
	return c
}

// A sandbox keeps commands from reading the data folder, but not from the socket in it.
func TestThePrivateSocketWantsTheTokenOfTheFolder(t *testing.T) {
	dir := t.TempDir()
	open(t, dir)
	text, err := os.ReadFile(filepath.Join(dir, folder.TokenName))
	if err != nil {
		t.Fatal(err)
	}
	token := strings.TrimSpace(string(text))
	code := func(err error) int {
		fault, _ := errors.AsType[*jsonrpc.Error](err)
		if fault == nil {
			return 0
		}
		return fault.Code
	}
	outside := dialSocket(t, dir)
	for _, params := range []any{
		nil, api.ConnectParams{Token: "guess"}, api.ConnectParams{Token: token[1:]},
		map[string]any{"abide": map[string]any{"relay": "r", "defaults": map[string]any{}}}, // of an older version
	} {
		if err := outside.Call(t.Context(), api.Connect, params, nil); code(err) != api.CodeAuthenticationFailed {
			t.Errorf("connect with %v: %v", params, err)
		}
	}
	if err := outside.Call(t.Context(), api.SessionList, nil, nil); code(err) != api.CodeAuthenticationRequired {
		t.Errorf("without the token: %v", err)
	}
	inside := dialSocket(t, dir)
	if err := inside.Call(t.Context(), api.Connect, api.ConnectParams{Token: token}, nil); err != nil {
		t.Error(err)
	}
	if err := inside.Call(t.Context(), api.SessionList, nil, nil); err != nil {
		t.Error(err)
	}
}

// The engine puts its token back if it was removed. A relay waits for that.
func TestAnEngineWhoseTokenIsRemovedPutsItBack(t *testing.T) {
	dir := t.TempDir()
	first := open(t, dir)
	path := filepath.Join(dir, folder.TokenName)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	connect(t, open(t, dir))
	if after, err := os.ReadFile(path); string(after) != string(before) || !first.Engine() {
		t.Errorf("the token is %q, %v; it was %q", after, err, before)
	}
}

// A relay whose environment is larger than what is read before the token gets in.
func TestARelayMayHaveALargeEnvironment(t *testing.T) {
	dir := t.TempDir()
	open(t, dir)
	relay := openWith(t, dir, api.Defaults{Cwd: dir, Env: []string{"LARGE=" + strings.Repeat("x", 1<<20)}})
	connect(t, relay).must(api.SessionCreate, map[string]any{"sessionId": "s"}, nil)
	if relay.Engine() {
		t.Error("the relay is the engine")
	}
}

func openWith(t *testing.T, dir string, d api.Defaults) *daemon.Node {
	t.Helper()
	n, err := daemon.Open(t.Context(), daemon.Config{Dir: dir, Version: "test", Defaults: d})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close() })
	return n
}
