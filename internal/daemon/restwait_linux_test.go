package daemon_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/daemon"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/server/rest"
)

// begin makes a request, and returns when it is under way. It is given up before the server would
// let it wait no longer: its end has to come from elsewhere.
func (s *site) begin(method, path, body string, headers ...string) <-chan exchange {
	s.t.Helper()
	sent, answered := make(chan struct{}), make(chan exchange, 1)
	trace := &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { close(sent) }}
	ctx, cancel := context.WithTimeout(httptrace.WithClientTrace(context.Background(), trace), patience/2)
	r := s.request(method, path, body, headers...).WithContext(ctx)
	go func() {
		defer cancel()
		answer, err := s.client.Do(r)
		if err != nil {
			answered <- exchange{body: []byte(err.Error())}
			return
		}
		defer answer.Body.Close()
		b, err := io.ReadAll(answer.Body)
		if err != nil {
			b = []byte(err.Error())
		}
		answered <- exchange{answer.StatusCode, answer.Header, b}
	}()
	select {
	case <-sent:
	case <-ctx.Done():
		s.t.Fatalf("%s %s was not sent", method, path)
	}
	return answered
}

// Whoever waits for another list of questions is told of an answer, also if the server has
// seen nothing of the session before: it was restarted while the question was open.
func TestAnAnswerEndsTheWaitForQuestionsAfterARestart(t *testing.T) {
	s := newSite(t)
	id := s.create("Ask me: why?").ID
	s.question()
	s.stop()
	s.open("127.0.0.1:0")
	known := must[rest.Questions](s, "GET", "/questions", "")
	if len(known.Questions) != 1 || known.Questions[0].SessionID != id {
		t.Fatalf("%+v", known)
	}
	waits := s.begin("GET", "/questions?wait=60&known="+known.Version, "")
	q := known.Questions[0]
	must[rest.Accepted](s, "POST", "/questions/"+q.ID+"/answer", `{"digest":"`+q.Digest+`","answer":{"text":"because"}}`)
	var got rest.Questions
	if e := <-waits; json.Unmarshal(e.body, &got) != nil || e.status != http.StatusOK || len(got.Questions) != 0 || got.Version == known.Version {
		t.Error(e)
	}
	s.awaitIdle(string(id))
}

// A creation whose message is refused makes no session.
func TestACreationThatIsRefusedMakesNoSession(t *testing.T) {
	s := newSite(t)
	for _, message := range []string{`{"text":" "}`, `{"text":"x","mode":"shout"}`, `{"text":"x","attachments":[{"name":"a.exe","base64":"AAAA"}]}`, `{"text":"x","attachments":[{"name":"","base64":""}]}`} {
		for _, headers := range [][]string{nil, {"Idempotency-Key", "k"}} {
			if e := s.ask("POST", "/sessions", `{"message":`+message+`}`, headers...); e.status != http.StatusBadRequest || !strings.Contains(e.String(), `"code":"invalid"`) {
				t.Errorf("%s: %v", message, e)
			}
		}
	}
	if list := must[rest.Sessions](s, "GET", "/sessions?unlisted=true", ""); len(list.Sessions) != 0 {
		t.Errorf("%+v", list)
	}
}

// Whoever waits for events of a session is told when it is deleted.
func TestADeletionEndsTheWaitForEvents(t *testing.T) {
	s := newSite(t)
	id := string(s.create("Reply with exactly: HELLO").ID)
	s.awaitIdle(id)
	at := must[rest.Detail](s, "GET", "/sessions/"+id, "").Position
	var waits []<-chan exchange
	for range 5 {
		waits = append(waits, s.begin("GET", fmt.Sprintf("/sessions/%s/events?after=%d&wait=60", id, at), ""))
	}
	must[any](s, "DELETE", "/sessions/"+id, "")
	for _, w := range waits {
		if e := <-w; e.status != http.StatusNotFound || !strings.Contains(e.String(), "not_found") {
			t.Error(e)
		}
	}
}

// A stream has a head by itself: whoever asks for that alone is not kept waiting.
func TestAStreamHasAHead(t *testing.T) {
	s := newSite(t)
	id := string(s.create("Run `sleep 1000` in the background").ID)
	q := s.question()
	must[rest.Accepted](s, "POST", "/questions/"+q.ID+"/answer", `{"digest":"`+q.Digest+`","answer":{"decision":"once"}}`)
	s.awaitIdle(id)
	task := must[rest.Tasks](s, "GET", "/tasks?session="+id, "").Tasks[0].TaskID
	for _, path := range []string{"/events", "/sessions/" + id + "/events?stream=true", "/sessions/" + id + "/tasks/" + task + "/output?stream=true"} {
		if e := s.ask("HEAD", path, ""); e.status != http.StatusOK || e.header.Get("Content-Type") != "text/event-stream" || len(e.body) != 0 {
			t.Errorf("%s: %v %v", path, e.header, e)
		}
	}
}

// Input for a command that reads none waits for nobody but the client that sends it: the command can
// be looked at and stopped meanwhile, and then the client is told.
func TestInputThatIsNotReadHoldsNobodyUp(t *testing.T) {
	s := newSite(t)
	id := s.background("echo up; exec sleep 1000")
	path := "/sessions/" + id + "/tasks/job"
	must[rest.Output](s, "GET", path+"/output?wait=true", "")
	must[any](s, "POST", path+"/input", `{"text":"it fits\n"}`)
	var waits []<-chan exchange
	for _, key := range []string{"", "one", "two"} {
		waits = append(waits, s.begin("POST", path+"/input", `{"text":"`+strings.Repeat("x", 1<<20)+`"}`, "Idempotency-Key", key))
	}
	if task := must[api.Task](s, "GET", path, ""); task.Status != "running" {
		t.Errorf("%+v", task)
	}
	must[api.Task](s, "POST", path+"/stop", "")
	for _, w := range waits {
		if e := <-w; e.status != http.StatusConflict || !strings.Contains(e.String(), "not_running") {
			t.Error(e)
		}
	}
	if e := s.ask("POST", path+"/input", `{"text":"x"}`); e.status != http.StatusConflict || !strings.Contains(e.String(), "not_running") {
		t.Error(e)
	}
}

// background makes a session whose command job runs on, with an open input.
func (s *site) background(command string) (id string) {
	s.t.Helper()
	b, err := json.Marshal(map[string]any{"rules": append(does("Go", "It goes.", one("bash", rule{"command": command, "description": "Job", "shellId": "job", "stdin": true, "mode": "async"})), noted)})
	if err != nil {
		s.t.Fatal(err)
	}
	file := filepath.Join(s.t.TempDir(), "scenario.json")
	if err := os.WriteFile(file, b, 0o600); err != nil {
		s.t.Fatal(err)
	}
	id = string(must[rest.Session](s, "POST", "/sessions", `{"model":`+quote("scripted:"+file)+`,"approve":"all","message":{"text":"Go"}}`).ID)
	s.awaitIdle(id)
	return id
}

// The MCP servers of a session are listed with their states, and so are those that do not work.
func TestTheServersOfASessionAreListed(t *testing.T) {
	works := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server {
		return sdk.NewServer(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	}, &sdk.StreamableHTTPOptions{Stateless: true}))
	t.Cleanup(works.Close)
	s := newSiteWith(t, func(c *daemon.Config) {
		servers := `{"mcpServers":{"works":{"type":"http","url":"` + works.URL + `"},"off":{"command":"true","disabled":true},"dies":{"command":"no-such-program"}}}`
		if err := os.WriteFile(filepath.Join(c.Dir, "mcp.json"), []byte(servers), 0o600); err != nil {
			t.Fatal(err)
		}
	})
	id := string(s.create("Reply with exactly: HELLO").ID)
	s.awaitIdle(id)
	want := []event.MCPServerState{
		{Name: "dies", Status: "failed", Source: "user", Transport: "stdio"}, {Name: "off", Status: "disabled", Source: "user", Transport: "stdio"}, {Name: "works", Status: "connected", Source: "user", Transport: "http"},
	}
	got := must[rest.Servers](s, "GET", "/sessions/"+id+"/servers", "").Servers
	if len(got) != len(want) || !strings.Contains(got[0].Error, "did not start") {
		t.Fatalf("%+v", got)
	}
	got[0].Error = ""
	if !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}
