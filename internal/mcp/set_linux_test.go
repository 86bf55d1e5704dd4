package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/mcp"
	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/workspace"
	"github.com/abide-run/abide/internal/workspace/local"
)

// testSet is a set of servers with what it has told.
type testSet struct {
	*mcp.Set
	processes workspace.Processes
	logs      *mcp.Logs
	dir       string

	mu      sync.Mutex
	changes []string
}

// open opens a set of servers that are this program.
func open(t *testing.T, elicit func(context.Context, string, string, *sdk.ElicitParams) (*sdk.ElicitResult, error), servers ...mcp.Server) *testSet {
	t.Helper()
	manager, err := process.Open(t.TempDir(), process.Options{Shell: process.Shell()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { manager.Close() })
	s := &testSet{processes: local.New(t.TempDir(), manager).Processes, logs: mcp.OpenLogs(t.TempDir())}
	if s.dir, err = filepath.EvalSymlinks(t.TempDir()); err != nil {
		t.Fatal(err)
	}
	s.Set = mcp.Open(mcp.Options{Processes: s.processes, Logs: s.logs}, mcp.Surroundings{Session: "s1", Dir: s.dir, Env: append(os.Environ(), "COLOUR=blue")}, servers, mcp.Events{
		Status: func(string, mcp.Status, string) {},
		Changed: func(server string, what event.Type) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.changes = append(s.changes, server+" "+string(what))
		},
		Elicit: elicit,
	})
	t.Cleanup(s.Close)
	return s
}

// server returns the configuration of a server that is this program.
func server(t *testing.T, name, mode string) mcp.Server {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return mcp.Server{
		MCPServer: event.MCPServer{Name: name, Type: mcp.Stdio, Command: program},
		Secret:    mcp.Secret{Env: map[string]string{"ABIDE_TEST_MCP_SERVER": mode}},
	}
}

func (s *testSet) call(t *testing.T, server, tool string, args any) (mcp.Result, error) {
	t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	return s.Call(t.Context(), mcp.Request{Server: server, Tool: tool, Arguments: raw})
}

func (s *testSet) must(t *testing.T, server, tool string, args any) mcp.Result {
	t.Helper()
	r, err := s.call(t, server, tool, args)
	if err != nil {
		t.Fatalf("%s of %s: %v", tool, server, err)
	}
	return r
}

type text struct {
	Text string `json:"text"`
}

func TestToolsAreListedAndCalled(t *testing.T) {
	v := server(t, "one", "good")
	v.Env["GREETING"], v.Tools = "${NO_SUCH_VARIABLE:-hello} ${COLOUR}", []string{"echo", "env", "structured", "picture", "fail", "roots"}
	s := open(t, nil, v)
	if r := s.must(t, "one", "echo", text{"hello"}); r.Text != "hello" || r.Failed {
		t.Errorf("echo: %+v", r)
	}
	if r := s.must(t, "one", "env", text{"GREETING"}); r.Text != "hello blue in "+s.dir {
		t.Errorf("the environment and the directory of the server: %q", r.Text)
	}
	if r := s.must(t, "one", "structured", text{}); r.Text != `{"answer":42}` {
		t.Errorf("a result without content: %q", r.Text)
	}
	if r := s.must(t, "one", "picture", text{}); r.Text != "a dot" || len(r.Images) != 1 || string(r.Images[0].Data) != "png" {
		t.Errorf("a result with an image: %+v", r)
	}
	if r := s.must(t, "one", "fail", struct{}{}); !r.Failed || r.Text != "it does not work today" {
		t.Errorf("a call that fails: %+v", r)
	}
	if r := s.must(t, "one", "roots", struct{}{}); r.Text != "file://"+s.dir {
		t.Errorf("the roots: %q", r.Text)
	}
	var names []string
	for _, tool := range s.Tools(func(string) bool { return false }) {
		names = append(names, tool.Name)
		if !strings.Contains(tool.Description, `MCP server "one"`) {
			t.Errorf("the description of %s does not say where it comes from: %s", tool.Name, tool.Description)
		}
	}
	if got := strings.Join(names, " "); got != "one-echo one-env one-fail one-picture one-roots one-structured" {
		t.Errorf("the tools that are wanted: %s", got)
	}
	if r, err := s.ReadResource(t.Context(), "one", "test://note"); err != nil || r.Contents[0].Text != "remember" {
		t.Errorf("a resource: %v, %v", r, err)
	}
	if list, err := s.Prompts(t.Context(), "one"); err != nil || len(list) != 1 || list[0].Name != "greet" {
		t.Errorf("the prompts: %v, %v", list, err)
	}
}

func TestWhatIsNoMessageIsLoggedAndSkipped(t *testing.T) {
	s := open(t, nil, server(t, "talk", "talkative"))
	if r := s.must(t, "talk", "echo", text{"still here"}); r.Text != "still here" {
		t.Errorf("echo: %+v", r)
	}
	var log strings.Builder
	if err := s.logs.Read("talk", &log); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"Welcome to the server!", "said on standard error", `{"jsonrpc": "2.0", "id":`} {
		if !strings.Contains(log.String(), line) {
			t.Errorf("the log lacks %q:\n%s", line, log.String())
		}
	}
}

func TestOfAFloodOfLinesOnlyTheFirstAreLogged(t *testing.T) {
	s := open(t, nil, server(t, "noisy", "noisy"))
	if r := s.must(t, "noisy", "echo", text{"still here"}); r.Text != "still here" {
		t.Errorf("echo: %+v", r)
	}
	var log strings.Builder
	if err := s.logs.Read("noisy", &log); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(log.String(), "skipped, because it is no message: noise"); n != 1000 || !strings.Contains(log.String(), "without a note") {
		t.Errorf("%d of 5000 lines are logged", n)
	}
}

func TestAServerThatIgnoresNewRequestsIsAskedInTheOldWay(t *testing.T) {
	s := open(t, nil, server(t, "old", "old"))
	s.Wait(t.Context())
	state, err := s.Get("old")
	if err != nil || state.Status != mcp.Connected || len(state.Tools) != 1 {
		t.Fatalf("the old server: %v, %v", state, err)
	}
}

func TestAServerThatEndsIsStartedAgain(t *testing.T) {
	s := open(t, nil, server(t, "one", "good"), server(t, "two", "good"))
	s.must(t, "one", "echo", text{"hello"})
	if _, err := s.call(t, "one", "die", struct{}{}); err == nil {
		t.Error("the call of a server that dies has a result")
	} else if unavailable := new(mcp.Unavailable); errors.As(err, &unavailable) || mcp.Answered(err) {
		t.Errorf("the error of a server that dies says that nothing was done: %v", err)
	}
	if r := s.must(t, "one", "echo", text{"again"}); r.Text != "again" {
		t.Errorf("after it was started again: %+v", r)
	}
	if r := s.must(t, "two", "echo", text{"unharmed"}); r.Text != "unharmed" {
		t.Errorf("the other server: %+v", r)
	}
}

func TestAServerThatCannotBeStartedSaysWhy(t *testing.T) {
	missing := mcp.Server{MCPServer: event.MCPServer{Name: "missing", Type: mcp.Stdio, Command: "/no/such/program"}}
	unset := server(t, "unset", "good")
	unset.Env["X"] = "${NOT_SET_ANYWHERE}"
	s := open(t, nil, missing, unset, server(t, "broken", "broken"), server(t, "good", "good"))
	s.Wait(t.Context())
	for name, want := range map[string]string{"missing": "/no/such/program", "unset": "NOT_SET_ANYWHERE", "broken": "exit code 3"} {
		state, err := s.Get(name)
		if err != nil || state.Status != mcp.Failed && state.Status != mcp.Pending || !strings.Contains(state.Error, want) && state.Status == mcp.Failed {
			t.Errorf("%s: %v, %v; want an error with %q", name, state, err, want)
		}
	}
	if _, err := s.call(t, "unset", "echo", text{}); err == nil || !strings.Contains(err.Error(), "not connected") {
		t.Errorf("a call of a server that is not connected: %v", err)
	}
	s.must(t, "good", "echo", text{"unharmed"})
}

func TestClosingEndsAllProcesses(t *testing.T) {
	s := open(t, nil, server(t, "one", "good"), server(t, "mute", "mute"))
	child, err := strconv.Atoi(s.must(t, "one", "child", struct{}{}).Text)
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	list, err := s.processes.List(t.Context(), mcp.Owner("s1"))
	if err != nil || len(list) < 2 {
		t.Fatalf("the processes: %v, %v", list, err)
	}
	for _, p := range list {
		if !p.Gone {
			t.Errorf("the server %s still runs", p.Title)
		}
	}
	if err := syscall.Kill(child, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the child of a server still runs: %v", err)
	}
}

func TestAChangedListIsReadAgain(t *testing.T) {
	s := open(t, nil, server(t, "one", "good"))
	s.must(t, "one", "grow", struct{}{})
	mcp.Await(t, "the new tool", func() bool {
		state, err := s.Get("one")
		return err == nil && mcp.HasTool(state, "grown")
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.changes) < 2 || s.changes[len(s.changes)-1] != "one mcp.tools.list_changed" {
		t.Errorf("what was told: %v", s.changes)
	}
}

func TestAQuestionOfAServerIsPutToAPerson(t *testing.T) {
	s := open(t, func(_ context.Context, server, _ string, p *sdk.ElicitParams) (*sdk.ElicitResult, error) {
		if server != "one" || p.Message != "which colour?" {
			t.Errorf("the question: %s, %+v", server, p)
		}
		return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"colour": "green"}}, nil
	}, server(t, "one", "good"))
	if r := s.must(t, "one", "ask", struct{}{}); r.Text != "accept green" {
		t.Errorf("what the server was told: %+v", r)
	}
}

func TestACallThatIsStoppedEndsAtOnce(t *testing.T) {
	s := open(t, nil, server(t, "one", "good"))
	s.must(t, "one", "echo", text{"hello"})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := s.Call(ctx, mcp.Request{Server: "one", Tool: "hang"})
		done <- err
	}()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("the call that was stopped: %v", err)
	}
	s.must(t, "one", "echo", text{"still here"})
}

func TestServersAreStoppedStartedAndDisabled(t *testing.T) {
	off := server(t, "off", "good")
	off.Disabled = true
	s := open(t, nil, server(t, "one", "good"), off)
	s.Wait(t.Context())
	status := func(name string) mcp.Status {
		state, err := s.Get(name)
		if err != nil {
			t.Fatal(err)
		}
		return state.Status
	}
	if got := status("off"); got != mcp.Disabled {
		t.Errorf("a server that is disabled: %s", got)
	}
	if err := s.Stop("one", mcp.Stopped); err != nil || status("one") != mcp.Stopped {
		t.Errorf("a server that was stopped: %s, %v", status("one"), err)
	}
	if _, err := s.call(t, "one", "echo", text{}); err == nil || !strings.Contains(err.Error(), "start it") {
		t.Errorf("a call of a server that was stopped: %v", err)
	}
	if err := s.Start("one"); err != nil {
		t.Fatal(err)
	}
	s.must(t, "one", "echo", text{"back"})
	if err := s.Stop("none", mcp.Stopped); !errors.Is(err, mcp.ErrNotFound) {
		t.Errorf("a server that is not there: %v", err)
	}
}

func TestServersOverHTTP(t *testing.T) {
	var seen sync.Map
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return mcp.TestServer() }, nil)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen.Store(r.Header.Get("X-Token"), true)
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(web.Close)
	denied := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	t.Cleanup(denied.Close)
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { seen.Store("leaked "+r.Header.Get("X-Token"), true) }))
	t.Cleanup(elsewhere.Close)
	lies := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	t.Cleanup(lies.Close)
	at := func(name, url string) mcp.Server {
		return mcp.Server{MCPServer: event.MCPServer{Name: name, Type: mcp.HTTP, URL: url}, Secret: mcp.Secret{Headers: map[string]string{"X-Token": "secret-${COLOUR}"}}}
	}
	s := open(t, nil, at("web", web.URL), at("denied", denied.URL), at("lies", lies.URL), at("nowhere", "ftp://example.org"))
	if r := s.must(t, "web", "echo", text{"over HTTP"}); r.Text != "over HTTP" {
		t.Errorf("echo: %+v", r)
	}
	s.Wait(t.Context())
	if _, ok := seen.Load("secret-blue"); !ok {
		t.Error("the header was not sent")
	}
	if _, leaked := seen.Load("leaked secret-blue"); leaked {
		t.Error("the header was sent to another place")
	}
	for name, want := range map[string]mcp.Status{"denied": mcp.NeedsAuth, "nowhere": mcp.Failed} {
		if state, err := s.Get(name); err != nil || state.Status != want {
			t.Errorf("%s: %v, %v; want %s", name, state, err, want)
		}
	}
	if state, err := s.Get("lies"); err != nil || state.Status == mcp.Connected {
		t.Errorf("a server that redirects elsewhere: %v, %v", state, err)
	}
}

// The query, the user and the password of an address are sent. They may be keys, so that no error
// shows them.
func TestTheSecretsOfAnAddressAreSentAndNotShown(t *testing.T) {
	var refused sync.Map
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return mcp.TestServer() }, nil)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		if user != "me" || password != "secret" || r.URL.Query().Get("key") != "secret-blue" {
			refused.Store(r.Method+" "+r.URL.String(), true)
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(web.Close)
	gone := httptest.NewServer(nil)
	gone.Close()
	at := func(name, address string) mcp.Server {
		address = strings.Replace(address, "//", "//me:secret@", 1) + "/mcp?key=secret-${COLOUR}"
		return mcp.Server{MCPServer: event.MCPServer{Name: name, Type: mcp.HTTP, URL: address}}
	}
	s := open(t, nil, at("web", web.URL), at("gone", gone.URL), at("bad", "http://host:secret/x"), at("none", "me:secret@host"))
	if r := s.must(t, "web", "echo", text{"over HTTP"}); r.Text != "over HTTP" {
		t.Errorf("echo: %+v", r)
	}
	s.Wait(t.Context())
	refused.Range(func(q, _ any) bool {
		t.Errorf("%v came without the key", q)
		return true
	})
	for _, name := range []string{"gone", "bad", "none"} {
		state, err := s.Get(name)
		if err != nil || state.Status != mcp.Failed || strings.Contains(state.Error, "secret") {
			t.Errorf("%s: %+v, %v", name, state, err)
		}
	}
}

// The connection to a server of the older form lasts longer than it takes to make it.
func TestAServerOverTheOlderFormOfHTTP(t *testing.T) {
	web := httptest.NewServer(sdk.NewSSEHandler(func(*http.Request) *sdk.Server { return mcp.TestServer() }, nil))
	t.Cleanup(web.Close)
	s := open(t, nil, mcp.Server{MCPServer: event.MCPServer{Name: "web", Type: mcp.SSE, URL: web.URL + "/mcp?key=k"}})
	for range 2 {
		if r := s.must(t, "web", "echo", text{"over SSE"}); r.Text != "over SSE" {
			t.Errorf("echo: %+v", r)
		}
	}
}

// A server answers with more than fits into our memory.
func TestAnAnswerOverHTTPIsLimited(t *testing.T) {
	flood := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		spaces := []byte(strings.Repeat(" ", 1<<20))
		for range 1 << 20 {
			if _, err := w.Write(spaces); err != nil {
				return
			}
		}
	}))
	t.Cleanup(flood.Close)
	s := open(t, nil, mcp.Server{MCPServer: event.MCPServer{Name: "flood", Type: mcp.HTTP, URL: flood.URL}})
	s.Wait(t.Context())
	state, err := s.Get("flood")
	if err != nil || state.Status != mcp.Failed || !strings.Contains(state.Error, "more than") {
		t.Errorf("%v, %v", state, err)
	}
}

// A server asks again and again.
func TestQuestionsOfAServerAreLimited(t *testing.T) {
	var asked sync.WaitGroup
	asked.Add(16)
	free := make(chan struct{})
	s := open(t, func(context.Context, string, string, *sdk.ElicitParams) (*sdk.ElicitResult, error) {
		asked.Done()
		<-free
		return &sdk.ElicitResult{Action: "decline"}, nil
	}, server(t, "one", "nosy"))
	defer close(free)
	r, err := s.call(t, "one", "pester", struct{}{})
	if err != nil || r.Text != "refused 8" {
		t.Errorf("of 24 questions at once: %q, %v", r.Text, err)
	}
	asked.Wait()
}

// A server asks one question after the other for one call: each is stored.
func TestAServerAsksNotForEver(t *testing.T) {
	s := open(t, func(context.Context, string, string, *sdk.ElicitParams) (*sdk.ElicitResult, error) {
		return &sdk.ElicitResult{Action: "decline"}, nil
	}, server(t, "one", "tireless"))
	for range 2 {
		if r := s.must(t, "one", "pester", struct{}{}); r.Text != "64" {
			t.Errorf("it has put %s questions", r.Text)
		}
	}
}

// What is kept of the lists of a server is bounded, whatever it lists.
func TestAServerWithHugeSchemasIsCut(t *testing.T) {
	s := open(t, nil, server(t, "one", "wide"))
	s.Wait(t.Context())
	state, err := s.Get("one")
	if err != nil || len(state.Tools) < 200 || len(state.Tools) > 300 {
		t.Fatalf("%d tools are listed (%v, %v)", len(state.Tools), state.Status, err)
	}
	size := 0
	for _, tool := range state.Tools {
		text, err := json.Marshal(tool)
		if err != nil {
			t.Fatal(err)
		}
		if size += len(text); tool.OutputSchema != nil {
			t.Fatalf("the schema of the results of %s is kept", tool.Name)
		}
	}
	if size > 17<<20 {
		t.Errorf("%d bytes are kept", size)
	}
	if r := s.must(t, "one", "tool000", struct{}{}); r.Text != "well" {
		t.Errorf("%+v", r)
	}
}

// A server over HTTP fails in the middle of a session.
func TestAServerOverHTTPThatFailsIsConnectedAgain(t *testing.T) {
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return mcp.TestServer() }, nil)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		if err != nil || bytes.Contains(text, []byte("fail now")) {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(text))
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(web.Close)
	s := open(t, nil, mcp.Server{MCPServer: event.MCPServer{Name: "web", Type: mcp.HTTP, URL: web.URL}})
	s.must(t, "web", "echo", text{"hello"})
	if r, err := s.call(t, "web", "echo", text{"fail now"}); err == nil {
		t.Fatalf("a call that failed: %+v", r)
	}
	if r := s.must(t, "web", "echo", text{"again"}); r.Text != "again" {
		t.Errorf("after that: %+v", r)
	}
}
