package daemon_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/daemon"
	"github.com/abide-run/abide/internal/server/httpapi"
)

// serveHTTP lets a node serve HTTP until the test ends.
func serveHTTP(t *testing.T, n *daemon.Node, hosts ...string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- n.ServeHTTP(ctx, []net.Listener{l}, "secret", hosts...) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
		http.DefaultClient.CloseIdleConnections()
	})
	return "http://" + l.Addr().String() + httpapi.Prefix
}

// The address of a server is found while it serves, and only then.
func TestAddressOfTheServer(t *testing.T) {
	dir := t.TempDir()
	n, err := daemon.Open(context.Background(), daemon.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	if at, err := daemon.HTTPAddress(dir); !errors.Is(err, daemon.ErrNotServed) {
		t.Errorf("before: %q, %v", at, err)
	}
	t.Run("serving", func(t *testing.T) {
		url := serveHTTP(t, n)
		if code, body := ask(t, http.MethodGet, strings.TrimSuffix(url, httpapi.Prefix)+"/healthz", "", "", ""); code != 200 { // it announces its address before it answers
			t.Fatalf("%d %s", code, body)
		}
		if at, err := daemon.HTTPAddress(dir); err != nil || !strings.HasPrefix(url, "http://"+at+"/") {
			t.Errorf("%q, %v, want that of %s", at, err, url)
		}
	})
	if at, err := daemon.HTTPAddress(dir); !errors.Is(err, daemon.ErrNotServed) {
		t.Errorf("after: %q, %v", at, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "http"), []byte("127.0.0.1:1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if at, err := daemon.HTTPAddress(dir); !errors.Is(err, daemon.ErrNotServed) {
		t.Errorf("left by a killed process: %q, %v", at, err)
	}
}

// start asks for a command.
func start(t *testing.T, url, token, session string) (int, string) {
	t.Helper()
	return ask(t, http.MethodPost, url+"/start", token, session, `{"command":"true"}`)
}

// ask makes a request.
func ask(t *testing.T, method, url, token, session, request string) (int, string) {
	t.Helper()
	r, err := http.NewRequest(method, url, strings.NewReader(request))
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", token)
	}
	if session != "" {
		r.Header.Set(httpapi.SessionHeader, session)
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

// A process that is not the engine passes requests on, also those that take their time. When
// the engine ends, it answers them itself.
func TestHTTPOfARelayIsPassedOn(t *testing.T) {
	dir := t.TempDir()
	engine, err := daemon.Open(t.Context(), daemon.Config{Dir: dir, Version: "test", Defaults: api.Defaults{Cwd: dir}})
	if err != nil {
		t.Fatal(err)
	}
	relay := open(t, dir)
	connect(t, engine).must(api.SessionCreate, map[string]any{"sessionId": "s"}, nil)
	url := serveHTTP(t, relay)
	if status, body := start(t, url, "Bearer secret", "s"); status != 200 {
		t.Errorf("%d %s", status, body)
	}
	if status, body := start(t, url, "Bearer wrong", "s"); status != 401 {
		t.Errorf("%d %s", status, body)
	}
	if got := printed(t, url, `{"command":"echo passed on"}`); got != "passed on\n" {
		t.Errorf("%q", got)
	}
	sessions := strings.TrimSuffix(url, "/processes") + "/sessions"
	if status, body := ask(t, http.MethodGet, sessions+"/s", "Bearer secret", "", ""); status != 200 || !strings.Contains(body, `"id":"s"`) {
		t.Errorf("%d %s", status, body)
	}
	if err := engine.Close(); err != nil {
		t.Fatal(err)
	}
	for !relay.Engine() {
		if status, body := ask(t, http.MethodGet, sessions+"/s", "Bearer secret", "", ""); status != 200 && status != 503 {
			t.Fatalf("%d %s", status, body)
		}
	}
	if status, body := ask(t, http.MethodGet, sessions+"/s", "Bearer secret", "", ""); status != 200 {
		t.Errorf("%d %s", status, body)
	}
}

// printed runs a command over HTTP and returns all that it printed.
func printed(t *testing.T, url, request string) string {
	t.Helper()
	var started struct{ ID string }
	status, body := ask(t, http.MethodPost, url+"/start", "Bearer secret", "s", request)
	if err := json.Unmarshal([]byte(body), &started); err != nil || status != 200 {
		t.Fatalf("%d %s, err = %v", status, body, err)
	}
	var view struct{ Output string }
	status, body = ask(t, http.MethodGet, url+"/"+started.ID+"/output?wait=true", "Bearer secret", "s", "")
	if err := json.Unmarshal([]byte(body), &view); err != nil || status != 200 {
		t.Fatalf("%d %s, err = %v", status, body, err)
	}
	return view.Output
}

// Nobody but the one who starts a command gives it an environment: the daemon's own
// has keys in it, and so may the one that sessions have. Its keeper, which the
// command can look at, has neither.
func TestACommandOverHTTPGetsNoKeys(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "leaked")
	t.Setenv("SOME_VARIABLE", "leaked")
	t.Setenv("LC_TIME", "de_DE.UTF-8")
	dir := t.TempDir()
	n, err := daemon.Open(t.Context(), daemon.Config{Dir: dir, Version: "test", Defaults: api.Defaults{Cwd: dir, Env: []string{"SESSION_KEY=leaked"}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close() })
	connect(t, n).must(api.SessionCreate, map[string]any{"sessionId": "s"}, nil)
	url := serveHTTP(t, n)
	for _, request := range []string{
		`{"command":"env; cat /proc/$PPID/environ"}`,
		`{"command":"env; cat /proc/$PPID/environ","env":{}}`,
		`{"command":"env; cat /proc/$PPID/environ","env":{"GIVEN":"yes"}}`,
	} {
		got := printed(t, url, request)
		if strings.Contains(got, "leaked") {
			t.Errorf("%s printed %s", request, got)
		}
		for _, want := range []string{"PATH=" + os.Getenv("PATH"), "LC_TIME=de_DE.UTF-8"} {
			if !strings.Contains(got, want) {
				t.Errorf("%s printed %s, without %s", request, got, want)
			}
		}
		if given := strings.Contains(got, "GIVEN=yes"); given != strings.Contains(request, "GIVEN") {
			t.Errorf("%s printed %s", request, got)
		}
	}
}

// A command that does not say where it runs does so where its session works.
func TestACommandOverHTTPRunsWhereItsSessionWorks(t *testing.T) {
	work, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(work, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	n := open(t, t.TempDir())
	connect(t, n).must(api.SessionCreate, map[string]any{"sessionId": "s", "workingDirectory": work}, nil)
	url := serveHTTP(t, n)
	for workdir, want := range map[string]string{"": work, "sub": filepath.Join(work, "sub"), "/": "/"} {
		if got := printed(t, url, `{"command":"pwd","workdir":"`+workdir+`"}`); got != want+"\n" {
			t.Errorf("in %q: %q, want %q", workdir, got, want)
		}
	}
	if status, body := ask(t, http.MethodPost, url+"/start", "Bearer secret", "s", `{"command":"pwd","workdir":"missing"}`); status != 422 || !strings.Contains(body, "does not exist: choose another") {
		t.Errorf("%d %s", status, body)
	}
}

// A web page can have its own name lead to this machine. Its requests have that name.
func TestHTTPRefusesForeignHostsAndOrigins(t *testing.T) {
	n := open(t, t.TempDir())
	connect(t, n).must(api.SessionCreate, map[string]any{"sessionId": "s"}, nil)
	url := serveHTTP(t, n, "abide.example")
	port := url[strings.LastIndex(strings.TrimSuffix(url, httpapi.Prefix), ":"):]
	port = strings.TrimSuffix(port, httpapi.Prefix)
	for _, test := range []struct {
		host, origin string
		status       int
		says         string
	}{
		{"127.0.0.1" + port, "", 200, ""},
		{"127.0.0.1", "", 200, ""},
		{"localhost" + port, "", 200, ""},
		{"LOCALHOST", "", 200, ""},
		{"[::1]" + port, "", 200, ""},
		{"192.168.1.2" + port, "", 200, ""},
		{"abide.example", "", 200, ""},
		{"Abide.Example.:443", "", 200, ""},
		{"evil.example" + port, "", 421, `this server does not go by the name \"evil.example` + port + `\": use its address or localhost, or start it with --http-host NAME`},
		{"localhost.evil.example", "", 421, "foreign_host"},
		{"127.0.0.1.evil.example", "", 421, "foreign_host"},
		{"evil.example.localhost", "", 421, "foreign_host"},
		{"127.0.0.1" + port, "http://127.0.0.1" + port, 200, ""},
		{"abide.example", "https://abide.example", 200, ""},
		{"127.0.0.1" + port, "http://evil.example", 403, "web pages of http://evil.example may not use this server"},
		{"127.0.0.1" + port, "http://127.0.0.1:1", 403, "foreign_origin"},
		{"127.0.0.1" + port, "null", 403, "foreign_origin"},
		{"127.0.0.1" + port, "file://127.0.0.1" + port, 403, "foreign_origin"},
	} {
		for _, token := range []string{"Bearer secret", ""} {
			r, err := http.NewRequest(http.MethodGet, url+"/list", nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Host = test.host
			r.Header.Set(httpapi.SessionHeader, "s")
			if token != "" {
				r.Header.Set("Authorization", token)
			}
			if test.origin != "" {
				r.Header.Set("Origin", test.origin)
			}
			want := test.status
			if token == "" && want == 200 {
				want = 401
			}
			resp, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if resp.StatusCode != want || err != nil || want == test.status && !strings.Contains(string(body), test.says) || !json.Valid(body) {
				t.Errorf("%+v with %q: %d %s, %v", test, token, resp.StatusCode, body, err)
			}
		}
	}
}
