package daemon_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/daemon"
	"github.com/abide-run/abide/internal/schema"
	"github.com/abide-run/abide/internal/server/rest"
)

// A site is a daemon that serves HTTP.
type site struct {
	t      *testing.T
	config daemon.Config
	work   string
	node   *daemon.Node
	base   string // URL without a path
	client *http.Client
	stop   func()
}

func newSite(t *testing.T) *site {
	t.Helper()
	return newSiteWith(t, func(*daemon.Config) {})
}

// newSiteWith serves with a configuration.
func newSiteWith(t *testing.T, change func(*daemon.Config)) *site {
	t.Helper()
	s := &site{t: t, work: t.TempDir(), client: &http.Client{Transport: &http.Transport{}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	s.config = daemon.Config{Dir: t.TempDir(), Version: "test", Defaults: api.Defaults{Cwd: s.work}}
	change(&s.config)
	s.open("127.0.0.1:0")
	t.Cleanup(func() {
		p := connect(t, s.node)
		var r api.TasksResult
		p.must(api.Tasks, api.TasksParams{All: true}, &r)
		for _, task := range r.Tasks {
			p.must(api.TaskStop, api.TaskParams{SessionID: task.SessionID, TaskID: task.TaskID}, nil)
		}
		p.Close()
		s.stop()
	})
	return s
}

// open opens the daemon and serves HTTP on an address.
func (s *site) open(address string) {
	s.t.Helper()
	n, err := daemon.Open(context.Background(), s.config)
	if err != nil {
		s.t.Fatal(err)
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- n.ServeHTTP(ctx, []net.Listener{l}, "secret") }()
	s.node, s.base = n, "http://"+l.Addr().String()
	s.stop = func() {
		cancel()
		if err := <-served; err != nil {
			s.t.Error(err)
		}
		s.client.CloseIdleConnections()
		if err := n.Close(); err != nil {
			s.t.Error(err)
		}
	}
}

// An exchange is a request and its answer.
type exchange struct {
	status int
	header http.Header
	body   []byte
}

func (e exchange) String() string { return fmt.Sprintf("%d %s", e.status, e.body) }

// request makes a request with the token. The headers are pairs of names and values; an empty
// value removes a header.
func (s *site) request(method, path, body string, headers ...string) *http.Request {
	s.t.Helper()
	if strings.HasPrefix(path, "/") && !strings.HasPrefix(path, "/api/") && !strings.HasPrefix(path, "/healthz") && !strings.HasPrefix(path, "/readyz") {
		path = rest.Prefix + path
	}
	r, err := http.NewRequest(method, s.base, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	raw, query, _ := strings.Cut(path, "?")
	unescaped, err := url.PathUnescape(raw)
	if err != nil {
		s.t.Fatal(err)
	}
	r.URL.Path, r.URL.RawPath, r.URL.RawQuery = unescaped, raw, query
	r.Header.Set("Authorization", "Bearer secret")
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		switch {
		case headers[i] == "Host":
			r.Host = headers[i+1]
		case headers[i+1] == "":
			r.Header.Del(headers[i])
		default:
			r.Header.Set(headers[i], headers[i+1])
		}
	}
	return r
}

func (s *site) ask(method, path, body string, headers ...string) exchange {
	s.t.Helper()
	answer, err := s.client.Do(s.request(method, path, body, headers...))
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return exchange{answer.StatusCode, answer.Header, b}
}

// must makes a request that succeeds, and decodes its answer.
func must[R any](s *site, method, path, body string, headers ...string) (r R) {
	s.t.Helper()
	e := s.ask(method, path, body, headers...)
	if e.status >= 300 {
		s.t.Fatalf("%s %s: %v", method, path, e)
	}
	if len(e.body) > 0 {
		if err := json.Unmarshal(e.body, &r); err != nil {
			s.t.Fatalf("%s %s: %v: %v", method, path, e, err)
		}
	}
	return r
}

// quote returns a text as JSON.
func quote(text string) string {
	b, _ := json.Marshal(text)
	return string(b)
}

// create makes a session and sends it a message.
func (s *site) create(text string) rest.Session {
	s.t.Helper()
	return must[rest.Session](s, "POST", "/sessions", `{"message":{"text":`+quote(text)+`}}`)
}

// question waits for an open question.
func (s *site) question() rest.Question {
	s.t.Helper()
	known := must[rest.Questions](s, "GET", "/questions", "")
	for len(known.Questions) == 0 {
		known = must[rest.Questions](s, "GET", "/questions?wait=60&known="+known.Version, "")
	}
	return known.Questions[0]
}

// A frame is an event of a stream.
type frame struct{ id, name, data string }

// frames reads a stream until enough reports true, and closes it.
func (s *site) frames(path string, enough func(frame) bool, headers ...string) (list []frame) {
	s.t.Helper()
	r := s.request("GET", path, "", append([]string{"Accept", "text/event-stream"}, headers...)...)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	answer, err := s.client.Do(r.WithContext(ctx))
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	if h := answer.Header; answer.StatusCode != 200 || h.Get("Content-Type") != "text/event-stream" || h.Get("X-Accel-Buffering") != "no" || h.Get("Cache-Control") != "no-store" {
		b, _ := io.ReadAll(answer.Body)
		s.t.Fatalf("%s: %d %v %s", path, answer.StatusCode, h, b)
	}
	lines := bufio.NewReader(answer.Body)
	var f frame
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			s.t.Fatalf("%s: after %v: %v", path, list, err)
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch {
		case line == "\n" && f.name == "":
			f = frame{}
		case line == "\n":
			list = append(list, f)
			if enough(f) {
				return list
			}
			f = frame{}
		case name == "id":
			f.id = value
		case name == "event":
			f.name = value
		case name == "data":
			f.data += value
		}
	}
}

// isIdle reports whether a frame tells the end of a turn.
func isIdle(f frame) bool { return strings.HasPrefix(f.data, `{"type":"session.idle"`) }

// awaitIdle waits until a session has nothing to do.
func (s *site) awaitIdle(id string) {
	s.t.Helper()
	for {
		d := must[rest.Detail](s, "GET", "/sessions/"+id, "")
		if !d.Active {
			return
		}
		must[rest.Page](s, "GET", fmt.Sprintf("/sessions/%s/events?after=%d&wait=60", id, d.Position), "")
	}
}

// storedFrames returns the frames of stored events.
func storedFrames(list []frame) []frame {
	return slices.DeleteFunc(slices.Clone(list), func(f frame) bool { return f.id == "" })
}

// A reader that comes back with the position of any event gets exactly the rest, also after a
// restart; the long poll and the stream of several sessions say the same.
func TestEventsContinueAfterEveryPosition(t *testing.T) {
	s := newSite(t)
	id := string(s.create("Reply with exactly: HELLO").ID)
	all := storedFrames(s.frames("/sessions/"+id+"/events", isIdle))
	for i, restarted := range []bool{false, true} {
		if restarted {
			s.stop()
			s.open("127.0.0.1:0")
		}
		for n, from := range all[:len(all)-1] {
			want := all[n+1:]
			if got := storedFrames(s.frames("/sessions/"+id+"/events", isIdle, "Last-Event-ID", from.id)); !slices.Equal(got, want) {
				t.Errorf("%d: after %s: %v, want %v", i, from.id, got, want)
			}
			page := must[rest.Page](s, "GET", "/sessions/"+id+"/events?after="+from.id, "")
			if len(page.Events) != len(want) || page.More {
				t.Errorf("after %s: %d events, want %d", from.id, len(page.Events), len(want))
			}
			for i, e := range page.Events {
				if string(e.Event) != want[i].data || fmt.Sprint(e.Position) != want[i].id {
					t.Errorf("after %s: %d %s, want %v", from.id, e.Position, e.Event, want[i])
				}
			}
		}
		several := s.frames("/events?sessions="+id+"@"+all[0].id, func(f frame) bool { return strings.Contains(f.data, `"session.idle"`) })
		if several[0].name != "ready" || len(several) != len(all) {
			t.Errorf("the stream of several sessions has %v", several)
		}
		last := must[rest.Page](s, "GET", "/sessions/"+id+"/events?last=2", "")
		earlier := must[rest.Page](s, "GET", fmt.Sprintf("/sessions/%s/events?before=%d&limit=1000", id, last.Before), "")
		if got := len(last.Events) + len(earlier.Events); len(last.Events) != 2 || got != len(all) || earlier.Before != 0 {
			t.Errorf("backwards: %d and %d events, want %d", len(last.Events), len(earlier.Events), len(all))
		}
	}
	if e := s.ask("GET", "/sessions/"+id+"/events?after=99999", ""); e.status != 409 || !strings.Contains(e.String(), "position_ahead") {
		t.Error(e)
	}
}

// A session that is gone, or whose log is another one, does not keep a reader from the others.
func TestAStreamGoesOnWithoutADeletedSession(t *testing.T) {
	s := newSite(t)
	other := string(s.create("Reply with exactly: three").ID)
	gone, id := string(s.create("Reply with exactly: one").ID), string(s.create("Reply with exactly: two").ID)
	s.awaitIdle(gone)
	if e := s.ask("DELETE", "/sessions/"+gone, ""); e.status >= 300 {
		t.Fatal(e)
	}
	var deleted, replaced []string
	idle := false
	s.frames("/events?sessions="+gone+"@5,"+other+"@99999,unknown,"+id, func(f frame) bool {
		switch f.name {
		case "deleted":
			deleted = append(deleted, f.data)
		case "replaced":
			replaced = append(replaced, f.data)
		}
		idle = idle || f.name == "event" && strings.Contains(f.data, `"type":"session.idle"`)
		return idle && len(deleted) == 2
	})
	if want := []string{`{"sessionId":"` + gone + `"}`, `{"sessionId":"unknown"}`}; !slices.Equal(deleted, want) {
		t.Errorf("%v, want %v", deleted, want)
	}
	if want := []string{`{"sessionId":"` + other + `"}`}; !slices.Equal(replaced, want) {
		t.Errorf("%v, want %v", replaced, want)
	}
}

// What happens while somebody reads comes at once, and what is not stored has no id.
func TestEventsArriveAsTheyHappen(t *testing.T) {
	s := newSite(t)
	id := string(s.create("Reply with exactly: one").ID)
	s.awaitIdle(id)
	at := must[rest.Detail](s, "GET", "/sessions/"+id, "").Position
	began := make(chan struct{}, 1)
	var sent sync.WaitGroup
	sent.Go(func() {
		<-began
		must[rest.Sent](s, "POST", "/sessions/"+id+"/messages", `{"text":"Reply with exactly: two"}`)
	})
	list := s.frames(fmt.Sprintf("/events?sessions=%s@%d", id, at), func(f frame) bool {
		if f.name == "ready" {
			began <- struct{}{}
		}
		return f.name == "event" && strings.Contains(f.data, `"type":"session.idle"`)
	})
	sent.Wait()
	seen := map[string]bool{}
	for _, f := range list {
		seen[f.name] = true
		if f.id != "" {
			t.Errorf("%v has an id, although the stream is of several sessions", f)
		}
	}
	for _, name := range []string{"ready", "event", "delta", "session"} {
		if !seen[name] {
			t.Errorf("no %s in %v", name, list)
		}
	}
	page := make(chan rest.Page, 1)
	at = must[rest.Detail](s, "GET", "/sessions/"+id, "").Position
	sent.Go(func() {
		page <- must[rest.Page](s, "GET", fmt.Sprintf("/sessions/%s/events?after=%d&wait=60", id, at), "")
	})
	must[rest.Sent](s, "POST", "/sessions/"+id+"/messages", `{"text":"Reply with exactly: three"}`)
	if p := <-page; len(p.Events) == 0 || p.Events[0].Position <= at {
		t.Errorf("%+v", p)
	}
	sent.Wait()
	s.awaitIdle(id)
	deleted := make(chan []frame, 1)
	opened := make(chan struct{}, 1)
	sent.Go(func() {
		deleted <- s.frames("/sessions/"+id+"/events", func(f frame) bool {
			select {
			case opened <- struct{}{}:
			default:
			}
			return f.name == "deleted"
		})
	})
	<-opened
	must[any](s, "DELETE", "/sessions/"+id, "")
	<-deleted
	sent.Wait()
}

// An answer counts for the question that was shown, and only the first one does.
func TestAnAnswerIsForTheQuestionThatWasShown(t *testing.T) {
	s := newSite(t)
	id := s.create("Run `touch made > ../outside.txt`").ID
	q := s.question()
	if q.SessionID != id || q.Kind != "permission" || q.Verb != "run" || q.Object != "touch made > ../outside.txt" || q.Request != "Run `touch made > ../outside.txt`" ||
		q.Session.Folder != s.work || q.Session.State != "needs_you" || q.Session.WaitingSince == "" || q.Undoable == nil || *q.Undoable ||
		!slices.Equal(q.Permission.Writes, []string{"../outside.txt"}) || !slices.Contains(q.Permission.Outside, "../outside.txt") || len(q.Permission.Reasons) == 0 || len(q.Answers) < 2 {
		t.Errorf("%+v %+v", q, q.Permission)
	}
	path := "/questions/" + q.ID + "/answer"
	if e := s.ask("POST", path, `{"digest":"`+strings.Repeat("0", 64)+`","answer":{"decision":"once"}}`); e.status != 409 || !strings.Contains(e.String(), "question_changed") {
		t.Error(e)
	}
	for _, bad := range []string{`{"answer":{"decision":"once"}}`, `{"digest":"` + q.Digest + `","answer":{"decision":"perhaps"}}`, `{"digest":"` + q.Digest + `","answer":{"decision":"session"}}`} {
		if e := s.ask("POST", path, bad); e.status != 400 {
			t.Errorf("%s: %v", bad, e)
		}
	}
	answer := `{"digest":"` + q.Digest + `","answer":{"decision":"once"}}`
	var wins, losses int
	var both sync.WaitGroup
	var mu sync.Mutex
	for range 2 { // two tabs
		both.Go(func() {
			e := s.ask("POST", path, answer)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case e.status == 200:
				wins++
			case e.status == 409 && strings.Contains(e.String(), "not_open"):
				losses++
			default:
				t.Error(e)
			}
		})
	}
	both.Wait()
	if wins != 1 || losses != 1 {
		t.Errorf("%d answers count, and %d do not", wins, losses)
	}
	s.awaitIdle(string(id))
	if _, err := os.Stat(filepath.Join(filepath.Dir(s.work), "outside.txt")); err != nil {
		t.Error(err)
	}
	os.Remove(filepath.Join(filepath.Dir(s.work), "outside.txt"))
}

// A write that is sent again, with the same key, is done once: also after a restart.
func TestAWriteWithAKeyIsDoneOnce(t *testing.T) {
	s := newSite(t)
	key := []string{"Idempotency-Key", "k1"}
	body := `{"name":"one","message":{"text":"Reply with exactly: HELLO"}}`
	first := s.ask("POST", "/sessions", body, key...)
	again := s.ask("POST", "/sessions", body, key...)
	if first.status != 201 || !bytes.Equal(first.body, again.body) || again.header.Get("Idempotency-Replayed") != "true" || again.header.Get("Location") != first.header.Get("Location") {
		t.Fatalf("%v, then %v", first, again)
	}
	if e := s.ask("POST", "/sessions", `{"name":"two"}`, key...); e.status != 422 || !strings.Contains(e.String(), "key_reused") {
		t.Error(e)
	}
	for _, bad := range []string{" ", strings.Repeat("k", 201), "ü"} {
		if e := s.ask("POST", "/sessions", body, "Idempotency-Key", bad); e.status != 400 {
			t.Errorf("%q: %v", bad, e)
		}
	}
	var made struct{ ID, MessageID string }
	if err := json.Unmarshal(first.body, &made); err != nil {
		t.Fatal(err)
	}
	s.awaitIdle(made.ID)
	message := must[rest.Sent](s, "POST", "/sessions/"+made.ID+"/messages", `{"text":"Reply with exactly: two"}`, "Idempotency-Key", "k2")
	fork := must[rest.Session](s, "POST", "/sessions/"+made.ID+"/fork", `{"name":"forked"}`, "Idempotency-Key", "k3")
	s.awaitIdle(made.ID)
	s.stop()
	s.open("127.0.0.1:0")
	if got := must[rest.Session](s, "POST", "/sessions", body, key...); string(got.ID) != made.ID || got.MessageID != made.MessageID {
		t.Errorf("after a restart: %+v, want %+v", got, made)
	}
	if e := s.ask("POST", "/sessions", `{"name":"two"}`, key...); e.status != 422 {
		t.Error(e)
	}
	if got := must[rest.Sent](s, "POST", "/sessions/"+made.ID+"/messages", `{"text":"Reply with exactly: two"}`, "Idempotency-Key", "k2"); got != message {
		t.Errorf("after a restart: %+v, want %+v", got, message)
	}
	if got := must[rest.Session](s, "POST", "/sessions/"+made.ID+"/fork", `{"name":"forked"}`, "Idempotency-Key", "k3"); got.ID != fork.ID {
		t.Errorf("after a restart: %+v, want %+v", got, fork)
	}
	s.stop()
	s.open("127.0.0.1:0")
	s.checkStopIsRepeated()
	if e := s.ask("POST", "/sessions/"+made.ID+"/messages", `{"text":"Reply with exactly: three"}`, "Idempotency-Key", "k2"); e.status != 422 {
		t.Errorf("another message with the key of one before the restart: %v", e)
	}
	if e := s.ask("POST", "/sessions/"+string(fork.ID)+"/fork", `{"name":"forked"}`, "Idempotency-Key", "k3"); e.status != 422 {
		t.Errorf("a fork of another session with the key of one before the restart: %v", e)
	}
	list := must[rest.Sessions](s, "GET", "/sessions", "")
	if len(list.Sessions) != 3 {
		t.Errorf("%d sessions, want one, its fork, and the one that was stopped", len(list.Sessions))
	}
	if d := must[rest.Detail](s, "GET", "/sessions/"+made.ID, ""); d.Totals.Turns != 2 || d.Answer != "two" {
		t.Errorf("%+v", d)
	}
}

// checkStopIsRepeated checks that a stop which is sent again after a restart does not stop a
// later turn.
func (s *site) checkStopIsRepeated() {
	s.t.Helper()
	id := string(s.create("Ask me: first?").ID)
	s.question()
	stop := func(key string) rest.Stopped {
		return must[rest.Stopped](s, "POST", "/sessions/"+id+"/stop", `{}`, "Idempotency-Key", key)
	}
	if got := stop("s1"); !got.Turn {
		s.t.Errorf("the first stop: %+v", got)
	}
	s.stop()
	s.open("127.0.0.1:0")
	must[rest.Sent](s, "POST", "/sessions/"+id+"/messages", `{"text":"Ask me: second?"}`)
	s.question()
	if got := stop("s1"); got.Turn {
		s.t.Errorf("the first stop, after a restart: %+v", got)
	}
	if got := must[rest.Questions](s, "GET", "/questions?session="+id, ""); len(got.Questions) != 1 {
		s.t.Errorf("a stop of an earlier turn has ended the next one: %+v", got)
	}
	if got := stop("s2"); !got.Turn {
		s.t.Errorf("another stop: %+v", got)
	}
}

// documented returns the operations of the document, and the document as a schema with
// definitions.
func documented(s *site) (operations map[string]map[string]json.RawMessage, definitions json.RawMessage) {
	var d struct {
		OpenAPI    string
		Paths      map[string]map[string]json.RawMessage
		Components struct{ Schemas json.RawMessage }
	}
	e := s.ask("GET", "/openapi.json", "")
	if err := json.Unmarshal(e.body, &d); err != nil || d.OpenAPI != "3.1.0" {
		s.t.Fatalf("%v: %v", e, err)
	}
	return d.Paths, d.Components.Schemas
}

// check checks an answer against the schema that the document has for it.
func check(t *testing.T, operation, definitions json.RawMessage, e exchange) {
	t.Helper()
	var op struct {
		Responses map[string]struct {
			Content map[string]struct{ Schema json.RawMessage }
		}
	}
	if err := json.Unmarshal(operation, &op); err != nil {
		t.Fatal(err)
	}
	response, known := op.Responses[fmt.Sprint(e.status)]
	if !known {
		response = op.Responses["default"]
	}
	media, _, _ := strings.Cut(e.header.Get("Content-Type"), ";")
	content, known := response.Content[media]
	if !known && len(e.body) > 0 {
		t.Errorf("%v is of the type %q, which the document does not have", e, media)
		return
	}
	if !strings.HasSuffix(media, "json") || len(e.body) == 0 {
		return
	}
	text := fmt.Sprintf(`{"type":"object","properties":{"answer":%s},"required":["answer"],"$defs":%s}`, content.Schema, definitions)
	if string(content.Schema) == "{}" {
		return
	}
	p, err := schema.Parse([]byte(strings.ReplaceAll(text, "#/components/schemas/", "#/$defs/")))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Check(`{"answer":` + string(e.body) + `}`); err != nil {
		t.Errorf("%v does not match the document: %v", e, err)
	}
}

// Every route of the document is served, answers as the document says, and refuses what is
// not for it.
func TestEveryRouteIsDocumentedAndGuarded(t *testing.T) {
	s := newSite(t)
	operations, definitions := documented(s)
	id := string(s.create("Run `sleep 1000` in the background").ID)
	q := s.question()
	must[rest.Accepted](s, "POST", "/questions/"+q.ID+"/answer", `{"digest":"`+q.Digest+`","answer":{"decision":"once"}}`)
	s.awaitIdle(id)
	tasks := must[rest.Tasks](s, "GET", "/tasks?session="+id, "")
	if len(tasks.Tasks) != 1 {
		t.Fatalf("%+v", tasks)
	}
	first := must[rest.Page](s, "GET", "/sessions/"+id+"/events?limit=1", "").Events[0]
	var head struct{ ID string }
	if err := json.Unmarshal(first.Event, &head); err != nil {
		t.Fatal(err)
	}
	other := string(s.create("Ask me: why?").ID)
	q = s.question()
	names := strings.NewReplacer("{id}", id, "{task}", tasks.Tasks[0].TaskID, "{question}", q.ID, "{message}", "m", "{job}", "j")
	bodies := map[string]string{
		"post /sessions": `{"name":"n","folder":"/"}`, "patch /sessions/{id}": `{"name":"new","mode":"plan"}`, "post /sessions/{id}/fork": `{"at":3}`,
		"post /sessions/{id}/rewind": `{"event":"` + head.ID + `"}`, "post /sessions/{id}/rewind/preview": `{"event":"` + head.ID + `"}`,
		"post /sessions/{id}/messages": `{"text":"Reply with exactly: HELLO"}`, "post /sessions/{id}/stop": `{"reason":"enough"}`,
		"post /sessions/{id}/tasks/{task}/input": `{"text":"x\n"}`, "post /questions/{question}/answer": `{"digest":"` + q.Digest + `","answer":{"text":"because"}}`,
		"post /rules/revoke": `{"rule":"none"}`,
	}
	queries := map[string]string{"get /sessions/{id}/events": "?limit=2", "get /memory/page": "?page=none", "get /memory/search": "?q=x", "get /search": "?q=x", "get /sessions": "?state=idle&limit=1", "get /cost": "?by=session,day,model,purpose"}
	statuses := map[string]int{ // statuses of requests about things that this test does not make
		"delete /sessions/{id}/queue/{message}": 409, "post /rules/revoke": 404, "get /memory/page": 404, "post /jobs/{job}/retry": 404,
		"post /signin": 400, "post /sessions/{id}/tasks/{task}/input": 409,
	}
	last := []string{"post /sessions/{id}/tasks/{task}/stop", "delete /sessions/{id}"}
	for _, path := range slices.Sorted(maps.Keys(operations)) {
		for _, method := range slices.Sorted(maps.Keys(operations[path])) {
			name := method + " " + strings.TrimPrefix(path, rest.Prefix)
			t.Run(name, func(t *testing.T) {
				s.refuses(t, strings.ToUpper(method), names.Replace(path), bodies[name], slices.Sorted(maps.Keys(operations[path])))
				if slices.Contains(last, name) || name == "get /events" {
					return
				}
				s.awaitIdle(id)
				e := s.ask(strings.ToUpper(method), names.Replace(path)+queries[name], bodies[name])
				if want := statuses[name]; e.status >= 300 && e.status != want || want != 0 && e.status != want {
					t.Errorf("%v", e)
				}
				check(t, operations[path][method], definitions, e)
			})
		}
	}
	for _, name := range last {
		method, path, _ := strings.Cut(name, " ")
		e := s.ask(strings.ToUpper(method), names.Replace(path), "")
		if e.status >= 300 {
			t.Errorf("%s: %v", name, e)
		}
		check(t, operations[rest.Prefix+path][method], definitions, e)
	}
	s.awaitIdle(other)
}

// refuses checks that a route refuses everybody and everything that is not for it.
func (s *site) refuses(t *testing.T, method, path, body string, methods []string) {
	t.Helper()
	open := path == "/healthz" || path == "/readyz" || path == rest.Prefix+"/signin"
	type refusal struct {
		about, method, body string
		headers             []string
		status              int
		code                string
	}
	list := []refusal{
		{"a foreign host", method, body, []string{"Host", "evil.example"}, 421, "foreign_host"},
		{"a foreign origin", method, body, []string{"Origin", "http://127.0.0.1:1"}, 403, "foreign_origin"},
		{"another method", "OPTIONS", "", nil, 405, "method"},
	}
	if !open {
		list = append(list,
			refusal{"no token", method, body, []string{"Authorization", ""}, 401, "unauthorized"},
			refusal{"a wrong token", method, body, []string{"Authorization", "Bearer secre"}, 401, "unauthorized"},
			refusal{"a cookie alone", method, body, []string{"Authorization", "", "Host", daemon.ConsoleHost, "Cookie", "abide_console=a.1.b"}, 401, "unauthorized"})
	}
	if body != "" {
		large := 3 << 20
		if strings.HasSuffix(path, "/messages") || strings.HasSuffix(path, "/sessions") {
			large = 25 << 20 // with attachments
		}
		list = append(list,
			refusal{"half a body", method, body[:len(body)-1], nil, 400, "invalid"},
			refusal{"no object", method, `[]`, nil, 400, "invalid"},
			refusal{"an unknown field", method, `{"nonsense":1}`, nil, 400, "invalid"},
			refusal{"two values", method, body + body, nil, 400, "invalid"},
			refusal{"a form", method, body, []string{"Content-Type", "application/x-www-form-urlencoded"}, 415, "content_type"},
			refusal{"a body that is too large", method, `{"x":"` + strings.Repeat("x", large) + `"}`, nil, 413, "too_large"})
	}
	if strings.Contains(path, "/sessions/") {
		unknown := rest.Prefix + "/sessions/unknown" + path[strings.Index(path+"/", "/sessions/")+len("/sessions/")+36:]
		if e := s.ask(method, unknown, body); e.status != 404 || !strings.Contains(e.String(), "not_found") {
			t.Errorf("an unknown session: %v", e)
		}
	}
	for _, r := range list {
		e := s.ask(r.method, path, r.body, r.headers...)
		if e.status != r.status || !strings.Contains(string(e.body), `"code":"`+r.code+`"`) || e.header.Get("Content-Type") != rest.ProblemType {
			t.Errorf("%s: %v, want %d %s", r.about, e, r.status, r.code)
		}
		if r.status == 405 {
			for _, m := range methods {
				if !strings.Contains(e.header.Get("Allow"), strings.ToUpper(m)) {
					t.Errorf("Allow is %q, without %s", e.header.Get("Allow"), m)
				}
			}
		}
	}
}

// A path is taken as it is written: nothing leads around the checks, or to another route.
func TestPathsAreTakenAsTheyAre(t *testing.T) {
	s := newSite(t)
	id := string(s.create("Reply with exactly: HELLO").ID)
	s.awaitIdle(id)
	for path, want := range map[string]int{
		"/api/v0/sessions/" + id:                          200,
		"/api/v0/sessions/" + id + "/":                    404,
		"/api/v0//sessions":                               404,
		"/api/v0/./sessions":                              404,
		"/api/v0/x/../sessions":                           404,
		"/api/v0/sessions/..%2f..%2fhealthz":              404,
		"/api/v0/sessions/%2e%2e/status":                  404,
		"/api/v0/sessions/" + id + "%2fevents":            404,
		"/api/v0/sessions/%00":                            404,
		"/api/v0/Sessions":                                404,
		"/api/v1/sessions":                                404,
		"/api":                                            404,
		"/api/v0":                                         404,
		"/api/v0/processes/../sessions":                   404,
		"/api/v0/openapi.json":                            200,
		"/api/v0/sessions/" + strings.Repeat("x", 8<<10):  404,
		"/api/v0/sessions?limit=0":                        400,
		"/api/v0/sessions?state=busy":                     400,
		"/api/v0/sessions?cursor=x":                       400,
		"/api/v0/sessions?since=yesterday":                400,
		"/api/v0/questions?wait=61":                       400,
		"/api/v0/questions?session=unknown":               404,
		"/api/v0/tasks?session=unknown":                   404,
		"/api/v0/tasks?all=perhaps":                       400,
		"/api/v0/events?sessions=" + id + "@x":            400,
		"/api/v0/events?sessions=" + id + "," + id + "@1": 400,
		"/api/v0/cost?by=hour":                            400,
		"/api/v0/search":                                  400,
		"/api/v0/sessions/" + id + "/events?after=-1":     400,
		"/api/v0/sessions/" + id + "/log?hash=zz":         400,
		"/api/v0/sessions/" + id + "/tasks/none":          404,
		"/api/v0/sessions/" + id + "/tasks/none/output":   404,
		"/api/v0/questions/none":                          404,
	} {
		if e := s.ask("GET", path, ""); e.status != want || want >= 400 && e.header.Get("Content-Type") != rest.ProblemType {
			t.Errorf("%.60s: %v, want %d", path, e, want)
		}
	}
}

// A link can be used at every listener of a server, and once at all of them together.
func TestALinkWorksAtAllListeners(t *testing.T) {
	s := newSite(t)
	var list []net.Listener
	for range 2 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, l)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.node.ServeHTTP(ctx, list, "secret") }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	s.base = "http://" + list[0].Addr().String()
	link := must[rest.Link](s, "POST", "/signin/links", "")
	s.base = "http://" + list[1].Addr().String()
	for _, want := range []int{200, 401} {
		if e := s.ask("POST", "/signin", `{"token":"`+link.Token+`"}`, "Authorization", "", "Host", daemon.ConsoleHost, "Origin", "http://"+daemon.ConsoleHost); e.status != want {
			t.Errorf("%v, want %d", e, want)
		}
	}
}

// A browser is let in by a link, once. Its cookie and its key are nothing without each other,
// or from another origin.
func TestABrowserNeedsItsCookieAndItsKey(t *testing.T) {
	s := newSite(t)
	var port, host, origin string
	locate := func() {
		port = s.base[strings.LastIndex(s.base, ":"):]
		host, origin = daemon.ConsoleHost+port, "http://"+daemon.ConsoleHost+port
	}
	locate()
	link := must[rest.Link](s, "POST", "/signin/links", "", "Host", host)
	if want := origin + "/#signin=" + link.Token; link.URL != want {
		t.Errorf("%s, want %s", link.URL, want)
	}
	in := func(token string, headers ...string) exchange {
		return s.ask("POST", "/signin", `{"token":"`+token+`"}`, append([]string{"Authorization", "", "Host", host, "Origin", origin}, headers...)...)
	}
	for about, e := range map[string]exchange{
		"no origin":         in(link.Token, "Origin", ""),
		"another port":      in(link.Token, "Origin", "http://"+daemon.ConsoleHost+":1"),
		"a page of another": in(link.Token, "Sec-Fetch-Site", "same-site"),
		"the address":       in(link.Token, "Host", "127.0.0.1"+port, "Origin", "http://127.0.0.1"+port),
		"another token":     in("guess"),
		"no token":          in(""),
	} {
		if e.status < 400 || e.header.Get("Set-Cookie") != "" {
			t.Errorf("%s: %v", about, e)
		}
	}
	signed := in(link.Token)
	var got rest.SignedIn
	if err := json.Unmarshal(signed.body, &got); err != nil || signed.status != 200 {
		t.Fatalf("%v: %v", signed, err)
	}
	set := signed.header.Get("Set-Cookie")
	if !strings.Contains(set, "HttpOnly") || !strings.Contains(set, "SameSite=Strict") || strings.Contains(set, "Domain") {
		t.Errorf("the cookie is %s", set)
	}
	if e := in(link.Token); e.status != 401 || !strings.Contains(e.String(), "link_spent") {
		t.Errorf("a link was used twice: %v", e)
	}
	cookie, _, _ := strings.Cut(set, ";")
	second := must[rest.Link](s, "POST", "/signin/links", "")
	var other rest.SignedIn
	if err := json.Unmarshal(in(second.Token).body, &other); err != nil {
		t.Fatal(err)
	}
	browser := func(method, path string, headers ...string) int {
		return s.ask(method, path, "", append([]string{"Authorization", "", "Host", host, "Cookie", cookie, "Abide-Key", got.Key}, headers...)...).status
	}
	for range 2 {
		for about, test := range map[string]struct{ got, want int }{
			"both":                         {browser("GET", "/me"), 200},
			"a write with the origin":      {browser("POST", "/sessions", "Origin", origin, "Sec-Fetch-Site", "same-origin"), 201},
			"a write without the origin":   {browser("POST", "/sessions"), 401},
			"the cookie alone":             {browser("GET", "/me", "Abide-Key", ""), 401},
			"the key alone":                {browser("GET", "/me", "Cookie", ""), 401},
			"the key of another browser":   {browser("GET", "/me", "Abide-Key", other.Key), 401},
			"another port of the host":     {browser("POST", "/sessions", "Origin", "http://"+daemon.ConsoleHost+":1"), 403},
			"a page of another port":       {browser("GET", "/me", "Sec-Fetch-Site", "same-site"), 401},
			"the address instead":          {browser("GET", "/me", "Host", "127.0.0.1"+port), 401},
			"localhost instead":            {browser("GET", "/me", "Host", "localhost"+port), 401},
			"a wrong token beside":         {browser("GET", "/me", "Authorization", "Bearer guess"), 401},
			"a browser cannot make a link": {browser("POST", "/signin/links", "Origin", origin), 403},
			"sign out":                     {browser("POST", "/signout", "Origin", origin), 204},
		} {
			if test.got != test.want {
				t.Errorf("%s: %d, want %d", about, test.got, test.want)
			}
		}
		s.stop() // a browser stays signed in
		s.open("127.0.0.1:0")
		locate()
	}
}
