package relay

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/jsonrpc"
)

func TestSessionsAreAttachedBeforeAnythingElse(t *testing.T) {
	w := newSharedState(t, nil)
	c, _ := connect(t, Options{Dial: w.dial})
	c.call(`1`, "session.create", `{"sessionId":"a", "tools":[ ]}`)
	c.call(`2`, "session.create", `{"sessionId":"b"}`)
	c.call(`3`, "session.resume", `{"sessionId":"c","x":1.0}`)
	c.call(`4`, "session.send", `{"sessionId":"a","prompt":"p1"}`)
	c.call(`5`, "session.destroy", `{"sessionId":"b"}`)
	c.check(w, "a")
	w.engine(0).die()
	c.call(`6`, "ping", `{}`)
	next := w.engine(1)
	if got := strings.Join(next.methods, " "); got != "connect abide.attach abide.attach ping" {
		t.Errorf("the engine was told %s", got)
	}
	var got []string
	for _, body := range next.got("abide.attach") {
		m, _ := jsonrpc.Parse([]byte(body))
		got = append(got, string(m.Params))
	}
	want := `{"sessionId":"a","after":3,"method":"session.create","params":{"sessionId":"a", "tools":[ ]}}` + "\n" +
		`{"sessionId":"c","after":0,"method":"session.resume","params":{"sessionId":"c","x":1.0}}`
	if strings.Join(got, "\n") != want {
		t.Errorf("attached with\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.answers) != 6 {
		t.Errorf("the client has answers to %v", c.answers)
	}
}

func TestASessionThatCannotBeAttachedIsLogged(t *testing.T) {
	var log strings.Builder
	w := newSharedState(t, func(generation int, e *fakeEngine) {
		e.handler = func(e *fakeEngine, m jsonrpc.Message) bool {
			if m.Method == "abide.attach" {
				e.refuse(m, -32603, "Session not found: a")
			}
			return m.Method == "abide.attach"
		}
	})
	c, ended := connect(t, Options{Dial: w.dial, Log: slog.New(slog.NewTextHandler(&log, nil))})
	c.call(`1`, "session.create", `{"sessionId":"a"}`)
	c.check(w, "a")
	w.engine(0).die()
	c.call(`2`, "ping", `{}`)
	c.conn.Close()
	<-ended
	if !strings.Contains(log.String(), "a session could not be attached again") || !strings.Contains(log.String(), "Session not found: a") {
		t.Errorf("the log says %s", log.String())
	}
}

func TestOnlyWhatTheClientLooksAtIsAttached(t *testing.T) {
	tests := map[string]struct {
		method, params, answer string
		want                   bool
	}{
		"destroyed":       {"session.destroy", `{"sessionId":"a"}`, `"result":{"success":true}`, false},
		"deleted":         {"session.delete", `{"sessionId":"a"}`, `"result":{"success":true}`, false},
		"shut down":       {"session.shutdown", `{"sessionId":"a"}`, `"result":null`, false},
		"not deleted":     {"session.delete", `{"sessionId":"a"}`, `"result":{"success":false}`, true},
		"refused":         {"session.destroy", `{"sessionId":"a"}`, `"error":{"code":1,"message":"no"}`, true},
		"another":         {"session.destroy", `{"sessionId":"b"}`, `"result":{"success":true}`, true},
		"failed resume":   {"session.resume", `{"sessionId":"a"}`, `"error":{"code":1,"message":"no"}`, true},
		"name in answer":  {"session.create", `{}`, `"result":{"sessionId":"made"}`, true},
		"something other": {"session.send", `{"sessionId":"a"}`, `"result":null`, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newSharedState(t, func(_ int, e *fakeEngine) {
				e.handler = func(e *fakeEngine, m jsonrpc.Message) bool {
					if string(m.ID) != "2" {
						return false
					}
					e.send(`{"id":2,` + test.answer + `}`)
					return true
				}
			})
			c, _ := connect(t, Options{Dial: w.dial})
			c.call(`1`, "session.create", `{"sessionId":"a"}`)
			c.call(`2`, test.method, test.params)
			w.engine(0).die()
			c.call(`3`, "ping", `{}`)
			got := strings.Join(w.engine(1).got("abide.attach"), "")
			if strings.Contains(got, `{"sessionId":"a",`) != test.want {
				t.Errorf("attached: %s", got)
			}
			if name == "name in answer" && !strings.Contains(got, `{"sessionId":"made","after":0,"method":"session.create","params":{}}`) {
				t.Errorf("attached: %s", got)
			}
		})
	}
}

func TestADeletedSessionIsForgotten(t *testing.T) {
	w := newSharedState(t, nil)
	c, _ := connect(t, Options{Dial: w.dial})
	c.call(`1`, "session.create", `{"sessionId":"a"}`)
	c.check(w, "a")
	w.engine(0).send(`{"method":"session.lifecycle","params":{"type":"session.updated","sessionId":"a"}}`)
	w.engine(0).send(`{"method":"session.lifecycle","params":{"type":"session.deleted","sessionId":"a"}}`)
	c.until("both notices", func() bool { return strings.Count(strings.Join(c.notices, " "), "session.lifecycle") == 2 })
	w.engine(0).die()
	c.call(`2`, "ping", `{}`)
	if got := w.engine(1).got("abide.attach"); got != nil {
		t.Errorf("attached: %s", got)
	}
}

// An engine that repeats events after a change, or replays them for a repeated
// request, does not make the client see them twice; one that replays them
// because the client asks does.
func TestEventsAreRepeatedOnlyOnRequest(t *testing.T) {
	replay := func(_ int, e *fakeEngine) {
		e.handler = func(e *fakeEngine, m jsonrpc.Message) bool {
			if m.Method == "abide.attach" || attaches(m.Method) {
				e.world.mu.Lock()
				e.attach(textMember(m.Params, "sessionId"), nil)
				e.world.mu.Unlock()
				e.stream()
				e.answer(m, `{}`)
				return true
			}
			return false
		}
	}
	w := newSharedState(t, replay)
	w.logs["a"] = []string{"one", "two"}
	c, _ := connect(t, Options{Dial: w.dial})
	c.call(`1`, "session.resume", `{"sessionId":"a"}`)
	w.engine(0).die()
	c.call(`2`, "ping", `{}`)
	c.call(`3`, "session.create", `{"sessionId":"a"}`)
	if got := fmt.Sprint(c.events["a"]); got != "[1 2 1 2]" {
		t.Errorf("the client saw %s", got)
	}
}

func TestARepeatedAttachingRequestSaysWhatWasSeen(t *testing.T) {
	w := newSharedState(t, func(generation int, e *fakeEngine) {
		e.handler = func(e *fakeEngine, m jsonrpc.Message) bool {
			if generation > 0 || m.Method != "session.resume" {
				return false
			}
			e.world.mu.Lock()
			e.attach("a", nil)
			e.world.mu.Unlock()
			e.stream()
			return true
		}
	})
	w.logs["a"] = []string{"one", "two"}
	c, _ := connect(t, Options{Dial: w.dial})
	c.send(`{"id":1,"method":"session.resume","params":{"sessionId":"a","x":{}}}`)
	c.until("two events", func() bool { return len(c.events["a"]) == 2 })
	w.mu.Lock()
	w.logs["a"] = append(w.logs["a"], "three")
	w.mu.Unlock()
	w.engine(0).die()
	c.answer(`1`)
	c.check(w, "a")
	if got := w.engine(1).got("session.resume")[0]; !strings.HasSuffix(got, `,"abideAfter":2,"sessionId":"a","x":{}}}`) {
		t.Errorf("the engine got %s", got)
	}
}

// The answer to a second resume tells the position at which that one began. What the
// client has seen since the first one is not sent again, whichever is further.
func TestThePositionOfASessionNeverGoesBack(t *testing.T) {
	for name, test := range map[string]struct {
		answered string
		after    string
	}{
		"the answer is behind": {`2`, `"after":3`},
		"the answer is ahead":  {`7`, `"after":7`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newSharedState(t, func(_ int, e *fakeEngine) {
				e.handler = func(e *fakeEngine, m jsonrpc.Message) bool {
					if m.Method == "session.resume" {
						e.answer(m, `{"sessionId":"a","abidePosition":`+test.answered+`}`)
					}
					return m.Method == "session.resume"
				}
			})
			c, _ := connect(t, Options{Dial: w.dial})
			c.call(`1`, "session.create", `{"sessionId":"a"}`)
			c.call(`2`, "session.send", `{"sessionId":"a","prompt":"p1"}`)
			c.check(w, "a")
			c.call(`3`, "session.resume", `{"sessionId":"a"}`)
			w.engine(0).die()
			c.call(`4`, "ping", `{}`)
			if got := strings.Join(w.engine(1).got("abide.attach"), ""); !strings.Contains(got, test.after) {
				t.Errorf("attached: %s", got)
			}
		})
	}
}
