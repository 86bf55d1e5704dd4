package httpapi_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/server/httpapi"
	"github.com/abide-run/abide/internal/workspace"
	"github.com/abide-run/abide/internal/workspace/local"
	"github.com/abide-run/abide/internal/workspace/workspacetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A testServer serves the API over real processes.
type testServer struct {
	t         *testing.T
	url, dir  string
	processes workspace.Processes
	client    *http.Client
}

func open(t *testing.T) *testServer {
	t.Helper()
	m := workspacetest.Manager(t, t.TempDir())
	s := &testServer{t: t, dir: t.TempDir()}
	s.processes = local.New(s.dir, m).Processes
	server := httptest.NewServer(httpapi.New(s.processes, httpapi.Options{Env: func(context.Context, process.Owner) ([]string, error) {
		return []string{"PATH=/usr/bin:/bin", "A=base", "B=base"}, nil
	}}))
	s.url, s.client = server.URL+httpapi.Prefix, server.Client()
	t.Cleanup(func() {
		for _, info := range m.All() {
			_, err := m.Stop(context.WithoutCancel(t.Context()), info.Owner, info.ID)
			if err != nil && info.State != process.FailedToStart {
				t.Errorf("stop %s: %v", info.ID, err)
			}
		}
		server.Close()
		must(t, m.Close())
	})
	return s
}

// request makes a request for a session.
func (s *testServer) request(method, path, session string, body any) *http.Response {
	s.t.Helper()
	var in io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		in = strings.NewReader(b)
	default:
		data, err := json.Marshal(b)
		must(s.t, err)
		in = bytes.NewReader(data)
	}
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, in)
	must(s.t, err)
	if session != "" {
		r.Header.Set(httpapi.SessionHeader, session)
	}
	answer, err := s.client.Do(r)
	must(s.t, err)
	return answer
}

// ask makes a request and reads the answer.
func ask[T any](s *testServer, method, path, session string, body any) (int, T) {
	s.t.Helper()
	answer := s.request(method, path, session, body)
	defer answer.Body.Close()
	var v T
	if err := json.NewDecoder(answer.Body).Decode(&v); err != nil {
		s.t.Fatalf("%s %s: %s, and no JSON: %v", method, path, answer.Status, err)
	}
	if kind := answer.Header.Get("Content-Type"); kind != "application/json" {
		s.t.Errorf("%s %s: the answer is %s", method, path, kind)
	}
	return answer.StatusCode, v
}

type fault struct{ Code, Message string }

// refused checks that a request is refused.
func (s *testServer) refused(status int, code, method, path, session string, body any) {
	s.t.Helper()
	got, f := ask[fault](s, method, path, session, body)
	if got != status || f.Code != code || f.Message == "" {
		s.t.Errorf("%s %s %.60v: %d %+v, want %d %s", method, path, body, got, f, status, code)
	}
}

type started struct {
	ID                string
	Started, Attached bool
}

// start starts a process for the session s1.
func (s *testServer) start(request map[string]any) string {
	s.t.Helper()
	status, v := ask[started](s, "POST", "/start", "s1", request)
	if status != http.StatusOK || !v.Started || v.ID == "" {
		s.t.Fatalf("start %v: %d %+v", request, status, v)
	}
	return v.ID
}

func (s *testServer) command(command string) string {
	s.t.Helper()
	return s.start(map[string]any{"command": command})
}

type output struct {
	Output       string
	OutputBase64 string `json:"output_base64"`
	Truncated    *process.TruncationInfo
	Running      bool
	State        string
	ExitCode     *int `json:"exit_code"`
	Signal       string
	Command      string
	Next         *int64 `json:"next_offset"`
	Omitted      int64  `json:"omitted_bytes"`
}

func (s *testServer) output(id, query string) output {
	s.t.Helper()
	status, v := ask[output](s, "GET", "/"+id+"/output"+query, "s1", nil)
	if status != http.StatusOK {
		s.t.Fatalf("output %s: %d", query, status)
	}
	return v
}

// ended waits for the end.
func (s *testServer) ended(id string) output {
	s.t.Helper()
	v := s.output(id, "?wait=true")
	if v.Running || v.ExitCode == nil {
		s.t.Fatalf("after waiting: %+v", v)
	}
	return v
}

// awaits waits until a process has written a text.
func (s *testServer) awaits(id, text string) {
	s.t.Helper()
	var all strings.Builder
	for frame, err := range s.processes.Follow(s.t.Context(), "s1", process.ID(id), 0) {
		must(s.t, err)
		all.Write(frame.Data)
		if strings.Contains(all.String(), text) {
			return
		}
	}
	s.t.Fatalf("it never wrote %q, but %q", text, &all)
}

func TestACommandRunsToItsEnd(t *testing.T) {
	s := open(t)
	for _, background := range []bool{false, true} {
		id := s.start(map[string]any{"command": "echo hello; echo oops >&2", "background": background})
		v := s.ended(id)
		if !strings.Contains(v.Output, "hello\n") || !strings.Contains(v.Output, "oops\n") || *v.ExitCode != 0 || v.State != "exited" || v.Truncated != nil || v.Command != "echo hello; echo oops >&2" {
			t.Errorf("background %v: %+v", background, v)
		}
	}
	if v := s.ended(s.command("exit 42")); *v.ExitCode != 42 {
		t.Errorf("exit 42: %+v", v)
	}
	if v := s.ended(s.command("kill -KILL $$")); *v.ExitCode != 137 || v.Signal != "SIGKILL" {
		t.Errorf("killed by itself: %+v", v)
	}
}

func TestAStartIsRefusedIfItMakesNoSense(t *testing.T) {
	s := open(t)
	for _, body := range []any{
		"", "{", "null x", "[]", `{"command":5}`, `{"command":"true"} {}`, `{"command":"true","wrkdir":"/"}`,
		map[string]any{}, map[string]any{"command": ""}, map[string]any{"command": " \n"}, map[string]any{"command": "a\x00b"},
		map[string]any{"command": "true", "env": map[string]any{"A=B": "x"}}, map[string]any{"command": "true", "env": map[string]any{"": "x"}},
		map[string]any{"command": "true", "env": map[string]any{"A": "x\x00"}},
	} {
		s.refused(http.StatusBadRequest, "invalid", "POST", "/start", "s1", body)
	}
	s.refused(http.StatusRequestEntityTooLarge, "too_large", "POST", "/start", "s1", map[string]any{"command": strings.Repeat("x", 3<<20)})
	s.refused(http.StatusUnprocessableEntity, "failed_to_start", "POST", "/start", "s1", map[string]any{"command": "true", "workdir": "/no/such/folder"})
}

func TestCommandsRunWhereAndWithWhatTheyAreTold(t *testing.T) {
	s := open(t)
	must(t, os.Mkdir(filepath.Join(s.dir, "sub"), 0o755))
	for workdir, want := range map[string]string{"": s.dir, "sub": filepath.Join(s.dir, "sub"), "/": "/"} {
		if v := s.ended(s.start(map[string]any{"command": "pwd", "workdir": workdir})); v.Output != want+"\n" {
			t.Errorf("in %q: %q", workdir, v.Output)
		}
	}
	if v := s.ended(s.start(map[string]any{"command": "echo $A $B $C", "env": map[string]any{"B": "own", "C": "own too"}})); v.Output != "base own own too\n" {
		t.Errorf("the environment is %q", v.Output)
	}
}

func TestAKeyIsOneProcess(t *testing.T) {
	s := open(t)
	request := map[string]any{"command": "echo started >> count", "key": "k"}
	var ids sync.Map
	var callers sync.WaitGroup
	for range 6 {
		callers.Go(func() {
			status, v := ask[started](s, "POST", "/start", "s1", request)
			if status != http.StatusOK {
				t.Errorf("start: %d", status)
			}
			ids.Store(v.ID, true)
		})
	}
	callers.Wait()
	n := 0
	ids.Range(func(id, _ any) bool {
		n++
		s.ended(id.(string))
		return true
	})
	count, err := os.ReadFile(filepath.Join(s.dir, "count"))
	if n != 1 || string(count) != "started\n" || err != nil {
		t.Errorf("%d processes, and %q, %v", n, count, err)
	}
	if _, v := ask[started](s, "POST", "/start", "s1", request); !v.Attached {
		t.Error("a later start does not say that there was one")
	}
	request["command"] = "something else"
	s.refused(http.StatusConflict, "conflict", "POST", "/start", "s1", request)
}

type list struct {
	Processes []struct {
		ID, Command, Workdir, Title, State, Signal string
		Background, Running                        bool
		ExitCode                                   *int   `json:"exit_code"`
		StartedAt                                  int64  `json:"started_at_unix"`
		ExitedAt                                   *int64 `json:"exited_at_unix"`
	}
	Total int
}

func TestTheListHasWhatRunsFirst(t *testing.T) {
	s := open(t)
	if status, v := ask[list](s, "GET", "/list", "s1", nil); status != http.StatusOK || v.Processes == nil || len(v.Processes) != 0 {
		t.Errorf("at first: %d %+v", status, v)
	}
	running := s.start(map[string]any{"command": "sleep 1000", "background": true, "title": "nap"})
	done := s.command("exit 3")
	s.ended(done)
	status, v := ask[list](s, "GET", "/list", "s1", nil)
	if status != http.StatusOK || v.Total != 2 || len(v.Processes) != 2 {
		t.Fatalf("%d %+v", status, v)
	}
	first, second := v.Processes[0], v.Processes[1]
	if first.ID != running || !first.Running || !first.Background || first.ExitCode != nil || first.ExitedAt != nil || first.Title != "nap" || first.StartedAt == 0 || first.Workdir != s.dir {
		t.Errorf("first: %+v", first)
	}
	if second.ID != done || second.Running || second.Background || second.ExitCode == nil || *second.ExitCode != 3 || second.ExitedAt == nil || second.Command != "exit 3" {
		t.Errorf("second: %+v", second)
	}
	if _, v := ask[list](s, "GET", "/list?limit=1", "s1", nil); len(v.Processes) != 1 || v.Total != 2 {
		t.Errorf("one of them: %+v", v)
	}
	s.refused(http.StatusBadRequest, "invalid", "GET", "/list?limit=0", "s1", nil)
}

func TestOutputIsAViewOrAPart(t *testing.T) {
	s := open(t)
	id := s.command("seq 20000; printf end")
	v := s.ended(id)
	if v.Truncated == nil || v.Truncated.OriginalBytes != 108897 || v.Truncated.Strategy != "head_tail" || !strings.HasPrefix(v.Output, "1\n2\n") || !strings.HasSuffix(v.Output, "end") {
		t.Errorf("the view has %d bytes, %+v", len(v.Output), v.Truncated)
	}
	if v := s.output(id, "?tail=9"); v.Output != "20000\nend" {
		t.Errorf("the tail is %q", v.Output)
	}
	if v := s.output(id, "?offset=2&limit=4"); v.Output != "2\n3\n" || v.Next == nil || *v.Next != 6 {
		t.Errorf("from 2: %+v", v)
	}
	var all strings.Builder
	for next := int64(0); ; {
		v := s.output(id, fmt.Sprintf("?offset=%d&wait=true", next))
		if v.Output == "" {
			break
		}
		all.WriteString(v.Output)
		next = *v.Next
	}
	if all.Len() != 108897 || !strings.HasSuffix(all.String(), "20000\nend") {
		t.Errorf("page by page it has %d bytes", all.Len())
	}
	bytes := s.command(`printf 'a\377'; printf b >&2`)
	s.ended(bytes)
	if v := s.output(bytes, "?encoding=base64&stream=stdout&offset=0"); v.OutputBase64 != base64.StdEncoding.EncodeToString([]byte("a\xff")) {
		t.Errorf("bytes: %+v", v)
	}
	if v := s.output(bytes, "?stream=stderr"); v.Output != "b" {
		t.Errorf("stderr: %+v", v)
	}
	for _, query := range []string{"offset=-1", "offset=x", "tail=0", "limit=99999999", "timeout=0", "timeout=-5", "timeout=301", "timeout=1e9", "wait=yes", "stream=3", "encoding=utf-7", "encoding=base64", "offset=1&tail=1"} {
		s.refused(http.StatusBadRequest, "invalid", "GET", "/"+id+"/output?"+query, "s1", nil)
	}
}

func TestWaiting(t *testing.T) {
	s := open(t)
	must(t, syscall.Mkfifo(filepath.Join(s.dir, "go"), 0o600))
	id := s.command("echo one; read x < go; echo two; exit 7")
	s.awaits(id, "one")
	if v := s.output(id, ""); !v.Running || v.ExitCode != nil || v.Output != "one\n" || v.State != "running" {
		t.Errorf("while it runs: %+v", v)
	}
	if v := s.output(id, "?wait=true&timeout=1"); !v.Running || v.Output != "one\n" {
		t.Errorf("when the time is up: %+v", v)
	}
	if v := s.output(id, "?wait=true&offset=0"); !v.Running || v.Output != "one\n" {
		t.Errorf("when there is something: %+v", v)
	}
	// Some wait for the end, and some for more; one of them leaves.
	var waiters sync.WaitGroup
	for range 3 {
		waiters.Go(func() {
			if v := s.output(id, "?wait=true"); v.Running || *v.ExitCode != 7 || v.Output != "one\ntwo\n" {
				t.Errorf("at the end: %+v", v)
			}
		})
	}
	waiters.Go(func() {
		if v := s.output(id, "?wait=true&offset=4"); v.Output != "two\n" {
			t.Errorf("what follows: %+v", v)
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	waiters.Go(func() {
		r, err := http.NewRequestWithContext(ctx, "GET", s.url+"/"+id+"/output?wait=true", nil)
		if err != nil {
			t.Error(err)
			return
		}
		r.Header.Set(httpapi.SessionHeader, "s1")
		if answer, err := s.client.Do(r); err == nil {
			answer.Body.Close()
		}
	})
	cancel()
	must(t, os.WriteFile(filepath.Join(s.dir, "go"), []byte("\n"), 0))
	waiters.Wait()
	if v := s.ended(id); *v.ExitCode != 7 {
		t.Errorf("again: %+v", v)
	}
}

func TestSignals(t *testing.T) {
	s := open(t)
	for name, want := range map[string]string{"kill": "SIGKILL", "terminate": "SIGTERM", "SIGUSR1": "SIGUSR1", "hup": "SIGHUP"} {
		id := s.command("echo ready; sleep 1000; echo no")
		s.awaits(id, "ready")
		status, v := ask[struct{ Message string }](s, "POST", "/"+id+"/signal", "s1", map[string]any{"signal": name})
		if status != http.StatusOK || !strings.Contains(v.Message, want) {
			t.Errorf("%s: %d %+v", name, status, v)
		}
		if v := s.ended(id); v.Signal != want || v.Output != "ready\n" {
			t.Errorf("%s: %+v", name, v)
		}
		s.refused(http.StatusConflict, "not_running", "POST", "/"+id+"/signal", "s1", map[string]any{"signal": name})
	}
	id := s.command("sleep 1000")
	for _, body := range []any{"", "{", map[string]any{}, map[string]any{"signal": ""}, map[string]any{"signal": "nosuch"}, map[string]any{"signal": 9}} {
		s.refused(http.StatusBadRequest, "invalid", "POST", "/"+id+"/signal", "s1", body)
	}
	s.refused(http.StatusNotFound, "not_found", "POST", "/none/signal", "s1", map[string]any{"signal": "kill"})
}

func TestOtherSessionsAndNobody(t *testing.T) {
	s := open(t)
	id := s.command("echo secret; sleep 1000")
	s.awaits(id, "secret")
	for _, session := range []string{"s2", "S1", "s1 x", "s"} {
		s.refused(http.StatusNotFound, "not_found", "GET", "/"+id+"/output", session, nil)
		s.refused(http.StatusNotFound, "not_found", "GET", "/"+id+"/output?wait=true&offset=0", session, nil)
		s.refused(http.StatusNotFound, "not_found", "POST", "/"+id+"/signal", session, map[string]any{"signal": "kill"})
		if _, v := ask[list](s, "GET", "/list", session, nil); len(v.Processes) != 0 {
			t.Errorf("%s sees %+v", session, v)
		}
	}
	s.refused(http.StatusBadRequest, "no_session", "GET", "/list", "", nil)
	s.refused(http.StatusBadRequest, "no_session", "GET", "/"+id+"/output", "", nil)
	s.refused(http.StatusBadRequest, "no_session", "POST", "/"+id+"/signal", "", map[string]any{"signal": "kill"})
	s.refused(http.StatusBadRequest, "no_session", "POST", "/start", "", map[string]any{"command": "true"})
	for _, values := range [][]string{{"s1", "s1"}, {"s1", ""}, {strings.Repeat("x", 2000)}, {"\xff"}} {
		r, err := http.NewRequestWithContext(t.Context(), "GET", s.url+"/list", nil)
		must(t, err)
		r.Header[httpapi.SessionHeader] = values
		answer, err := s.client.Do(r)
		must(t, err)
		answer.Body.Close()
		if answer.StatusCode != http.StatusBadRequest {
			t.Errorf("%.20q: %s", values, answer.Status)
		}
	}
	if v := s.output(id, ""); !v.Running {
		t.Errorf("the process is %+v", v)
	}
}

func TestWhoMountsItSaysWhoseTheSessionsAre(t *testing.T) {
	s := open(t)
	h := httpapi.New(s.processes, httpapi.Options{Owner: func(r *http.Request, session string) (process.Owner, error) {
		tenant := r.Header.Get("Tenant")
		if tenant == "" {
			return "", process.ErrNotFound
		}
		return process.Owner(tenant + "/" + session), nil
	}})
	get := func(tenant string) *httptest.ResponseRecorder {
		r := httptest.NewRequest("GET", httpapi.Prefix+"/list", nil)
		r.Header.Set(httpapi.SessionHeader, "s1")
		r.Header.Set("Tenant", tenant)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	_, _, err := s.processes.Start(t.Context(), process.Spec{Key: "k", Owner: "t/s1", Command: "true"})
	must(t, err)
	if w := get("t"); !strings.Contains(w.Body.String(), `"total":1`) {
		t.Errorf("their own: %s", w.Body)
	}
	if w := get("u"); !strings.Contains(w.Body.String(), `"total":0`) {
		t.Errorf("another's: %s", w.Body)
	}
	if w := get(""); w.Code != http.StatusNotFound {
		t.Errorf("nobody's: %d", w.Code)
	}
}

func TestPathsAndMethodsThatThereAreNot(t *testing.T) {
	s := open(t)
	for _, path := range []string{"", "/", "/nothing", "/a/b/c", "/x/outputs"} {
		s.refused(http.StatusNotFound, "not_found", "GET", path, "s1", nil)
	}
	s.refused(http.StatusNotFound, "not_found", "GET", "/none/output", "s1", nil)
	s.refused(http.StatusNotFound, "not_found", "GET", "/..%2f..%2fetc/output", "s1", nil)
	s.refused(http.StatusMethodNotAllowed, "method", "GET", "/start", "s1", nil)
	s.refused(http.StatusMethodNotAllowed, "method", "POST", "/list", "s1", nil)
	s.refused(http.StatusMethodNotAllowed, "method", "DELETE", "/x/output", "s1", nil)
}

func TestTheCapIsTold(t *testing.T) {
	s := open(t)
	for range workspacetest.MaxRunning {
		s.command("sleep 1000")
	}
	s.refused(http.StatusTooManyRequests, "full", "POST", "/start", "s1", map[string]any{"command": "true"})
}

// An event is one of a stream.
type event struct{ kind, id, data string }

// events opens a stream of events.
func (s *testServer) events(ctx context.Context, id, query, last string) (*http.Response, func() event) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(ctx, "GET", s.url+"/"+id+"/output"+query, nil)
	must(s.t, err)
	r.Header.Set(httpapi.SessionHeader, "s1")
	r.Header.Set("Accept", "text/event-stream")
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	answer, err := s.client.Do(r)
	must(s.t, err)
	lines := bufio.NewReader(answer.Body)
	return answer, func() (e event) {
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				return event{}
			}
			name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
			switch name {
			case "event":
				e.kind = value
			case "id":
				e.id = value
			case "data":
				e.data = value
			case "":
				if value == "" && e.kind != "" {
					return e
				}
			}
		}
	}
}

func TestOutputIsStreamedAsItComes(t *testing.T) {
	s := open(t)
	for _, name := range []string{"first", "second"} {
		must(t, syscall.Mkfifo(filepath.Join(s.dir, name), 0o600))
	}
	id := s.command(`echo one; read x < first; printf 'two\377' >&2; read x < second; exit 5`)
	answer, next := s.events(t.Context(), id, "", "")
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK || answer.Header.Get("Content-Type") != "text/event-stream" || answer.Header.Get("X-Accel-Buffering") != "no" {
		t.Fatalf("%s, %v", answer.Status, answer.Header)
	}
	step := func(want event) {
		t.Helper()
		if got := next(); got != want {
			t.Errorf("the event is %+v, want %+v", got, want)
		}
	}
	resume := func(fifo string) {
		t.Helper()
		must(t, os.WriteFile(filepath.Join(s.dir, fifo), []byte("\n"), 0))
	}
	step(event{"stdout", "4", `{"offset":0,"text":"one\n"}`})
	resume("first")
	step(event{"stderr", "8", `{"offset":4,"base64":"dHdv/w=="}`})
	resume("second")
	step(event{"exit", "8", `{"state":"exited","exit_code":5}`})
	step(event{})
	// A client that connects again gets the events after the last one that it has seen.
	for last, want := range map[string]event{
		"4": {"stderr", "8", `{"offset":4,"base64":"dHdv/w=="}`},
		"8": {"exit", "8", `{"state":"exited","exit_code":5}`},
	} {
		answer, next := s.events(t.Context(), id, "?offset=0", last)
		if got := next(); got != want {
			t.Errorf("after %s: %+v, want %+v", last, got, want)
		}
		answer.Body.Close()
	}
	answer, next = s.events(t.Context(), id, "?stream=stderr&offset=2", "")
	defer answer.Body.Close()
	step(event{"stderr", "8", `{"offset":4,"base64":"dHdv/w=="}`})
	answer, _ = s.events(t.Context(), id, "", "x")
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusBadRequest {
		t.Errorf("after an event that never was: %s", answer.Status)
	}
	answer, _ = s.events(t.Context(), "none", "", "")
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusNotFound {
		t.Errorf("of no process: %s", answer.Status)
	}
}

func TestAStreamThatIsLeftEndsNothing(t *testing.T) {
	s := open(t)
	must(t, syscall.Mkfifo(filepath.Join(s.dir, "go"), 0o600))
	id := s.command(`seq 100000; read x < go; echo end`)
	ctx, cancel := context.WithCancel(t.Context())
	answer, next := s.events(ctx, id, "", "")
	if e := next(); e.kind != "stdout" {
		t.Errorf("the first event is %+v", e)
	}
	cancel()
	answer.Body.Close()
	must(t, os.WriteFile(filepath.Join(s.dir, "go"), []byte("\n"), 0))
	if v := s.ended(id); !strings.HasSuffix(v.Output, "100000\nend\n") {
		t.Errorf("%+v", v)
	}
}
