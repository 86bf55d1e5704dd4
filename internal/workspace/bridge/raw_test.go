package bridge_test

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/abide-run/abide/internal/approval/scope"
	"github.com/abide-run/abide/internal/workspace"
	"github.com/abide-run/abide/internal/workspace/bridge"
	"github.com/abide-run/abide/internal/workspace/bridge/bridgetest"
	"github.com/abide-run/abide/internal/workspace/local"
)

// changingFiles are files that have another length when they are sent than when they were
// opened.
type changingFiles struct {
	workspace.Files
	opened func(size int64) int64 // returns the length when a file was opened
}

func (f changingFiles) ShowStream(_ context.Context, _ *scope.Scope, r workspace.ShowRequest) (workspace.Shown, *os.File, int64, error) {
	file, err := os.Open(r.Path)
	if err != nil {
		return workspace.Shown{}, nil, 0, err
	}
	info, err := file.Stat()
	if err != nil {
		return workspace.Shown{}, nil, 0, err
	}
	length := f.opened(info.Size())
	return workspace.Shown{Size: length}, file, length, nil
}

// connectTo returns a client of a server and the requests that it makes.
func connectTo(t *testing.T, network string, ws workspace.Workspace) (*bridge.Client, *requestLog) {
	t.Helper()
	c, log := bridgetest.Connect(t, network, ws), new(requestLog)
	c.OnRequest(log.add)
	return c, log
}

func TestAFileThatGetsShorterIsShownAsItIs(t *testing.T) {
	for _, network := range []string{"memory", "unix", "tcp"} {
		dir, text := t.TempDir(), strings.Repeat("a line\n", 200_000)
		must(t, os.WriteFile(filepath.Join(dir, "f"), []byte(text), 0o644))
		ws := local.New(dir, nil)
		ws.Files = changingFiles{ws.Files, func(size int64) int64 { return 2 * size }}
		c, log := connectTo(t, network, ws)
		s, err := ws.Files.Scope(t.Context(), []scope.Rule{{Target: dir}}, nil)
		must(t, err)
		shown, err := c.Workspace().Files.Show(t.Context(), s, workspace.ShowRequest{Path: filepath.Join(dir, "f"), MaxWhole: 10 << 20})
		if err != nil || string(shown.Content) != text || shown.Size != int64(len(text)) {
			t.Errorf("%s: %d bytes of %d, %v", network, len(shown.Content), shown.Size, err)
		}
		if got := log.take(); !slices.Equal(got, []string{"Show", "ShowLarge"}) {
			t.Errorf("%s: %q", network, got)
		}
	}
}

// Not a byte more is sent than was announced, so that the connection can be used again.
func TestAFileThatGetsLongerIsShownAsItWas(t *testing.T) {
	for _, network := range []string{"memory", "unix", "tcp"} {
		dir, text := t.TempDir(), strings.Repeat("a line\n", 200_000)
		must(t, os.WriteFile(filepath.Join(dir, "f"), []byte(text), 0o644))
		ws := local.New(dir, nil)
		ws.Files = changingFiles{ws.Files, func(size int64) int64 { return size / 2 }}
		c, log := connectTo(t, network, ws)
		s, err := ws.Files.Scope(t.Context(), []scope.Rule{{Target: dir}}, nil)
		must(t, err)
		for range 3 {
			shown, err := c.Workspace().Files.Show(t.Context(), s, workspace.ShowRequest{Path: filepath.Join(dir, "f"), MaxWhole: 10 << 20})
			if err != nil || string(shown.Content) != text[:len(text)/2] {
				t.Errorf("%s: %d bytes of %d, %v", network, len(shown.Content), shown.Size, err)
			}
		}
		if got := log.take(); !slices.Equal(got, []string{"Show", "Show", "Show"}) {
			t.Errorf("%s: the service was asked: %q", network, got)
		}
	}
}

// Requests wait for one of a few connections.
func TestManyRequestsAtOnce(t *testing.T) {
	for _, network := range []string{"unix", "tcp"} {
		dir, text := t.TempDir(), strings.Repeat("a line\n", 50_000)
		must(t, os.WriteFile(filepath.Join(dir, "f"), []byte(text), 0o644))
		c, _ := connectTo(t, network, local.New(dir, nil))
		files := c.Workspace().Files
		s, err := files.Scope(t.Context(), []scope.Rule{{Target: dir}}, nil)
		must(t, err)
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				shown, err := files.Show(t.Context(), s, workspace.ShowRequest{Path: filepath.Join(dir, "f"), MaxWhole: 10 << 20})
				if err != nil || string(shown.Content) != text {
					t.Errorf("%s: %d bytes, %v", network, len(shown.Content), err)
				}
				if _, err := files.Stat(t.Context(), workspace.At("f")); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	}
}

// TestALargeFileIsNotSentWithoutTheToken: the handler that sends large files is not part of
// the service of package workspacepb, and requires the same token.
func TestALargeFileIsNotSentWithoutTheToken(t *testing.T) {
	r := &remoteWorkspace{wire: newBreaker(unixSocket(t)), dir: t.TempDir(), token: "a secret"}
	r.serve(t)
	defer r.stop()
	http1 := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return r.wire.dial(ctx) }}}
	defer http1.CloseIdleConnections()
	for token, want := range map[string]int{"": http.StatusUnauthorized, "Bearer another": http.StatusUnauthorized, "Bearer a secret": http.StatusUnprocessableEntity} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://workspace/abide.workspace.v1.Raw/Show", nil)
		must(t, err)
		request.Header.Set("Authorization", token)
		response, err := http1.Do(request)
		must(t, err)
		if must(t, response.Body.Close()); response.StatusCode != want {
			t.Errorf("%q: %s", token, response.Status)
		}
	}
}
