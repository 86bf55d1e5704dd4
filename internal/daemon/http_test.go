package daemon_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/daemon"
	"github.com/abide-run/abide/internal/processapi"
)

// serveHTTP lets a node serve HTTP until the test ends.
func serveHTTP(t *testing.T, n *daemon.Node) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- n.ServeHTTP(ctx, l, "secret") }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
		http.DefaultClient.CloseIdleConnections()
	})
	return "http://" + l.Addr().String() + processapi.Prefix
}

// start asks for a command.
func start(t *testing.T, url, token, session string) (int, string) {
	t.Helper()
	r, err := http.NewRequest(http.MethodPost, url+"/start", strings.NewReader(`{"command":"true"}`))
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", token)
	}
	if session != "" {
		r.Header.Set(processapi.SessionHeader, session)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

func TestHTTPIsForThoseWhoKnowTheTokenAndASession(t *testing.T) {
	n := open(t, t.TempDir())
	connect(t, n).must(api.SessionCreate, map[string]any{"sessionId": "s"}, nil)
	url := serveHTTP(t, n)
	for _, test := range []struct {
		name, token, session string
		status               int
		says                 string
	}{
		{"no token", "", "s", 401, "Authorization: Bearer"},
		{"a wrong token", "Bearer guess", "s", 401, "unauthorized"},
		{"a part of the token", "Bearer secre", "s", 401, "unauthorized"},
		{"another scheme", "Basic secret", "s", 401, "unauthorized"},
		{"no session", "Bearer secret", "", 400, "Abide-Session-Id"},
		{"an unknown session", "Bearer secret", "x", 404, "session x"},
		{"both", "Bearer secret", "s", 200, `"id":`},
	} {
		t.Run(test.name, func(t *testing.T) {
			status, body := start(t, url, test.token, test.session)
			if status != test.status || !strings.Contains(body, test.says) {
				t.Errorf("%d %s, want %d with %q", status, body, test.status, test.says)
			}
		})
	}
}

func TestHTTPOfARelaySaysThatItIsNotTheEngine(t *testing.T) {
	dir := t.TempDir()
	engine := open(t, dir)
	relay := open(t, dir)
	connect(t, engine).must(api.SessionCreate, map[string]any{"sessionId": "s"}, nil)
	if status, body := start(t, serveHTTP(t, relay), "Bearer secret", "s"); status != 503 || !strings.Contains(body, "not_the_engine") {
		t.Errorf("%d %s", status, body)
	}
}
