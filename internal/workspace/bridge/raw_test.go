package bridge_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/abide-run/abide/internal/approval/scope"
	"github.com/abide-run/abide/internal/workspace"
	"github.com/abide-run/abide/internal/workspace/bridge"
	"github.com/abide-run/abide/internal/workspace/bridge/bridgetest"
	"github.com/abide-run/abide/internal/workspace/local"
	"github.com/abide-run/abide/internal/workspace/text"
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
		dir, content := t.TempDir(), strings.Repeat("a line\n", 200_000)
		must(t, os.WriteFile(filepath.Join(dir, "f"), []byte(content), 0o644))
		ws := local.New(dir, nil)
		ws.Files = changingFiles{ws.Files, func(size int64) int64 { return 2 * size }}
		c, log := connectTo(t, network, ws)
		s, err := ws.Files.Scope(t.Context(), []scope.Rule{{Target: dir}}, nil)
		must(t, err)
		shown, err := c.Workspace().Files.Show(t.Context(), s, workspace.ShowRequest{Path: filepath.Join(dir, "f"), MaxWhole: 10 << 20})
		if err != nil || string(shown.Content) != content || shown.Size != int64(len(content)) {
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
		dir, content := t.TempDir(), strings.Repeat("a line\n", 200_000)
		must(t, os.WriteFile(filepath.Join(dir, "f"), []byte(content), 0o644))
		ws := local.New(dir, nil)
		ws.Files = changingFiles{ws.Files, func(size int64) int64 { return size / 2 }}
		c, log := connectTo(t, network, ws)
		s, err := ws.Files.Scope(t.Context(), []scope.Rule{{Target: dir}}, nil)
		must(t, err)
		for range 3 {
			shown, err := c.Workspace().Files.Show(t.Context(), s, workspace.ShowRequest{Path: filepath.Join(dir, "f"), MaxWhole: 10 << 20})
			if err != nil || string(shown.Content) != content[:len(content)/2] {
				t.Errorf("%s: %d bytes of %d, %v", network, len(shown.Content), shown.Size, err)
			}
		}
		if got := log.take(); !slices.Equal(got, []string{"Show", "Show", "Show"}) {
			t.Errorf("%s: the service was asked: %q", network, got)
		}
	}
}

// TestALargeTextIsCheckedPartByPart: characters come in two parts, or are none. What is known to
// be valid is valid, and everything else is replaced as it is on this machine.
func TestALargeTextIsCheckedPartByPart(t *testing.T) {
	wide := strings.Repeat("ä€𝄞x", 100_000)
	for name, content := range map[string]string{
		"valid": wide, "ASCII": strings.Repeat("a line\n", 100_000), "cut": wide + "\xf0\x9d\x84", "cut early": wide + "\xe2",
		"broken": wide + "\xff" + wide, "lonely": wide + "\x80\x80\x80\x80" + wide, "replaced": wide + "\uFFFD",
	} {
		for part, reader := range map[string]func(io.Reader) io.Reader{
			"bytes": iotest.OneByteReader, "halves": iotest.HalfReader, "all": func(r io.Reader) io.Reader { return r }, "error with data": iotest.DataErrReader,
		} {
			got, checked, err := bridge.ReadContent(reader(strings.NewReader(content)), int64(len(content)))
			if err != nil || string(got) != content || checked != utf8.ValidString(content) {
				t.Errorf("%s by %s: %d bytes, known to be valid: %v, %v", name, part, len(got), checked, err)
			}
			if got, _, err := bridge.ReadContent(reader(strings.NewReader(content)), int64(len(content))+1); err == nil {
				t.Errorf("%s by %s: %d bytes of %d are enough", name, part, len(got), len(content)+1)
			}
		}
		for _, network := range []string{"memory", "unix", "tcp"} {
			dir := t.TempDir()
			must(t, os.WriteFile(filepath.Join(dir, "f"), []byte(content), 0o644))
			c, log := connectTo(t, network, local.New(dir, nil))
			s, err := c.Workspace().Files.Scope(t.Context(), []scope.Rule{{Target: dir}}, nil)
			must(t, err)
			log.take()
			shown, err := c.Workspace().Files.Show(t.Context(), s, workspace.ShowRequest{Path: filepath.Join(dir, "f"), MaxWhole: 10 << 20})
			if err != nil || string(shown.Content) != content || shown.Text() != text.Valid([]byte(content)) || shown.Checked != utf8.ValidString(content) {
				t.Errorf("%s over %s: %d bytes, known to be valid: %v, %v", name, network, len(shown.Content), shown.Checked, err)
			}
			if got := log.take(); !slices.Equal(got, []string{"Show"}) {
				t.Errorf("%s over %s: the service was asked: %q", name, network, got)
			}
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
