package killtest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/server/rest"
)

// A webClient uses a victim over HTTP. When the victim dies, it starts another one and makes
// the same request again, with the same key.
type webClient struct {
	*run
	stop    stop // of the first victim
	victim  *process
	base    string
	client  *http.Client
	deaths  int
	session event.SessionID
	seen    []event.Seq // positions of the events that it was shown
}

// connect starts a victim and waits until it serves HTTP.
func (c *webClient) connect() {
	c.t.Helper()
	o := c.instructions
	o.Args, o.Stop = []string{"serve", "--http", "127.0.0.1:0"}, c.stop
	c.stop = stop{}
	c.victim = c.startVictim(o)
	lines := bufio.NewReader(c.victim.out)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			c.t.Fatal(c.victim.endError("it does not serve"))
		}
		if at, ok := strings.CutPrefix(strings.TrimSpace(line), "HTTP on "); ok {
			c.base = "http://" + at + rest.Prefix
			return
		}
	}
}

// lost takes in that a request got no answer: the victim must have been killed.
func (c *webClient) lost() {
	c.t.Helper()
	if err := c.victim.wasKilled(); err != nil {
		c.t.Fatal(err)
	}
	c.deaths++
	c.connect()
}

// once makes a request, if need be again, and decodes the answer.
func (c *webClient) once(method, path, body, key string, into any) {
	c.t.Helper()
	for {
		status, answer, err := c.attempt(method, path, body, key)
		switch {
		case err != nil || status == http.StatusServiceUnavailable:
			c.lost()
		case status >= 300:
			c.t.Fatalf("%s %s: %d %s", method, path, status, answer)
		default:
			if err := json.Unmarshal(answer, into); err != nil {
				c.t.Fatalf("%s %s: %s: %v", method, path, answer, err)
			}
			return
		}
	}
}

func (c *webClient) request(method, path, body string) (*http.Request, error) {
	r, err := http.NewRequestWithContext(c.ctx, method, c.base+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	token, err := os.ReadFile(filepath.Join(c.instructions.Dir, "token"))
	r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	r.Header.Set("Content-Type", "application/json")
	return r, err
}

func (c *webClient) attempt(method, path, body, key string) (int, []byte, error) {
	r, err := c.request(method, path, body)
	if err != nil {
		return 0, nil, err
	}
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	answer, err := c.client.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	return answer.StatusCode, b, err
}

// follow reads events after the last one that it was shown, until enough reports true or the
// victim dies. It reports whether the events were enough.
func (c *webClient) follow(enough func(kind string) bool) bool {
	c.t.Helper()
	r, err := c.request(http.MethodGet, "/sessions/"+string(c.session)+"/events?stream=true", "")
	if err != nil {
		c.t.Fatal(err)
	}
	if len(c.seen) > 0 {
		r.Header.Set("Last-Event-ID", fmt.Sprint(c.seen[len(c.seen)-1]))
	}
	answer, err := c.client.Do(r)
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	lines := bufio.NewReader(answer.Body)
	for at := event.Seq(0); ; {
		line, err := lines.ReadString('\n')
		if err != nil {
			return false
		}
		if text, ok := strings.CutPrefix(line, "id: "); ok {
			n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
			if err != nil {
				c.t.Fatal(err)
			}
			at = event.Seq(n)
		}
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok || at == 0 {
			continue
		}
		c.seen = append(c.seen, at)
		at = 0
		var e struct{ Type string }
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			c.t.Fatal(err)
		}
		if enough(e.Type) {
			return true
		}
	}
}

// awaitKind follows the session until an event of a kind comes.
func (c *webClient) awaitKind(kind event.Type) {
	c.t.Helper()
	for !c.follow(func(k string) bool { return k == string(kind) }) {
		c.lost()
	}
}

// talk has a conversation: a message, a question, its answer, the end of the turn.
func (c *webClient) talk() {
	c.t.Helper()
	var made rest.Session
	c.once(http.MethodPost, "/sessions", `{"message":{"text":"Use once with value 'ask first', then reply with the result"}}`, "create", &made)
	c.session = made.ID
	c.awaitKind(event.PermissionAsked)
	var open rest.Questions
	c.once(http.MethodGet, "/questions", "", "", &open)
	if len(open.Questions) != 1 {
		c.t.Fatalf("%d questions are open, want 1", len(open.Questions))
	}
	q := open.Questions[0]
	var accepted rest.Accepted
	c.once(http.MethodPost, "/questions/"+q.ID+"/answer?session="+string(c.session), `{"digest":"`+q.Digest+`","answer":{"decision":"once"}}`, "answer", &accepted)
	c.awaitKind(event.SessionIdle)
}

// check compares what the client was shown with the log: every event that is shown, once, in
// order.
func (c *webClient) check() {
	c.t.Helper()
	var log rest.Log
	c.once(http.MethodGet, "/sessions/"+string(c.session)+"/log?limit=1000", "", "", &log)
	var want []event.Seq
	inputs, completed := 0, 0
	for i, raw := range log.Events {
		e, err := event.Parse(event.Seq(i+1), raw)
		if err != nil {
			c.t.Fatal(err)
		}
		switch e.Type {
		case event.InputAccepted:
			inputs++
		case event.ToolComplete:
			completed++
		}
		if !e.Type.Hidden() {
			want = append(want, e.Seq)
		}
	}
	if fmt.Sprint(c.seen) != fmt.Sprint(want) {
		c.t.Errorf("the client was shown %v, and the log has %v", c.seen, want)
	}
	if inputs != 1 || completed != 1 {
		c.t.Errorf("%d inputs and %d ends of calls, want one of each", inputs, completed)
	}
	effects, err := readEffects(c.instructions.Effects, c.session)
	if err != nil || len(effects) > 1 {
		c.t.Errorf("the tool ran %d times (%v)", len(effects), err)
	}
}

// A victim is killed at every write of a conversation over HTTP, before and after it is
// stored. The client makes its requests again, and loses and doubles nothing.
func TestKillAtEveryWriteOfAnHTTPConversation(t *testing.T) {
	for _, at := range []point{before, committed} {
		for write := 1; ; write++ {
			reached := false
			t.Run(stop{write, at}.String(), func(t *testing.T) {
				c := &webClient{run: newRun(t, conversation{}), stop: stop{write, at}, client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
				c.connect()
				c.talk()
				c.check()
				reached = c.deaths > 0
				c.victim.kill()
				if err := c.victim.wasKilled(); err != nil {
					t.Error(err)
				}
				c.audit()
			})
			if !reached {
				if write < 4 {
					t.Errorf("the conversation has only %d writes", write-1)
				}
				break
			}
		}
	}
}
