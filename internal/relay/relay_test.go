package relay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/abide-run/abide/internal/jsonrpc"
)

// once dies at the given moment of a method, in its n-th occurrence over all
// engines, and never again.
func once(method string, at phase, n int) func(int, *engine) {
	return func(_ int, e *engine) {
		e.fatal = func(m string, p phase) bool {
			if m != method || p != at {
				return false
			}
			n--
			return n == 0
		}
	}
}

func TestAnEngineMayDieAtAnyMoment(t *testing.T) {
	for _, method := range []string{"connect", "session.create", "session.resume", "session.send", "session.destroy", "ping"} {
		for _, at := range []phase{received, stored, answered, finished} {
			for n := 1; n <= 2; n++ {
				t.Run(fmt.Sprintf("%s/%s/%d", method, at, n), func(t *testing.T) {
					w := newWorld(t, once(method, at, n))
					c, ended := connect(t, Options{Dial: w.dial})
					c.call(`"c"`, "connect", `{}`)
					c.call(`1`, "session.create", `{"sessionId":"a"}`)
					c.call(`2`, "session.send", `{"sessionId":"a","prompt":"p1"}`)
					c.call(`3`, "session.create", `{"sessionId":"b"}`)
					c.call(`4`, "ping", `{}`)
					c.call(`5`, "session.send", `{"sessionId":"b","prompt":"p2"}`)
					c.call(`6`, "session.resume", `{"sessionId":"a"}`)
					c.call(`7`, "session.send", `{"sessionId":"a","prompt":"p3"}`)
					c.check(w, "a", "b")
					c.call(`8`, "session.destroy", `{"sessionId":"b"}`)
					c.call(`9`, "ping", `{}`)
					c.call(`10`, "session.send", `{"sessionId":"a","prompt":"p4"}`)
					c.check(w, "a")
					if got := prompts(w.logs["a"]); got != "p1 p3 p4" {
						t.Errorf("session a was told %q", got)
					}
					c.conn.Close()
					if err := <-ended; err != nil {
						t.Errorf("Run returned %v", err)
					}
				})
			}
		}
	}
}

// Many requests are in flight, and several engines in a row die after a given
// number of messages, wherever that is.
func TestEnginesMayDieInARow(t *testing.T) {
	for after := 1; after <= 24; after++ {
		t.Run(fmt.Sprint(after), func(t *testing.T) {
			w := newWorld(t, func(generation int, e *engine) {
				n := 0
				e.fatal = func(_ string, p phase) bool {
					n++
					return generation < maxSends-1 && n == after
				}
			})
			c, _ := connect(t, Options{Dial: w.dial})
			c.send(`{"id":1,"method":"session.create","params":{"sessionId":"a"}}`)
			c.answer(`1`)
			for i := range 20 {
				c.send(fmt.Sprintf(`{"id":"s%d","method":"session.send","params":{"sessionId":"a","prompt":"p%d"}}`, i, i))
			}
			var want []string
			for i := range 20 {
				c.answer(fmt.Sprintf(`"s%d"`, i))
				want = append(want, fmt.Sprintf("p%d", i))
			}
			c.check(w, "a")
			if got := prompts(w.logs["a"]); got != strings.Join(want, " ") {
				t.Errorf("the session was told %q", got)
			}
		})
	}
}

func TestTheFirstMessageIntroducesTheClient(t *testing.T) {
	w := newWorld(t, nil)
	c, _ := connect(t, Options{Dial: w.dial, Defaults: json.RawMessage(`{"model":"m"}`)})
	c.call(`1`, "ping", `{}`)
	w.engine(0).die()
	c.call(`2`, "ping", `{}`)
	var relays [2]string
	for i := range relays {
		first := w.engine(i).bodies[0]
		var hello struct {
			Method string
			Params struct {
				Abide struct {
					Relay    string
					Defaults json.RawMessage
				}
			}
		}
		if err := json.Unmarshal([]byte(first), &hello); err != nil {
			t.Fatal(err)
		}
		a := hello.Params.Abide
		if hello.Method != "connect" || string(a.Defaults) != `{"model":"m"}` || a.Relay == "" {
			t.Errorf("engine %d was greeted with %s", i, first)
		}
		relays[i] = a.Relay
	}
	if relays[0] != relays[1] {
		t.Errorf("the client was introduced as %s and %s", relays[0], relays[1])
	}
}

func TestEveryRequestHasAKeyOfItsOwn(t *testing.T) {
	w := newWorld(t, nil)
	c, _ := connect(t, Options{Dial: w.dial})
	for range 3 { // a client may use an id again
		c.call(`1`, "session.send", `{"sessionId":"a","prompt":"p"}`)
		c.mu.Lock()
		delete(c.answers, `1`)
		c.mu.Unlock()
	}
	c.call(`2`, "ping", ` { } `)
	c.send(`{"id":3,"method":"ping"}`)
	c.answer(`3`)
	if len(w.keys) != 5 {
		t.Errorf("five requests have the keys %v", w.keys)
	}
	for key, times := range w.keys {
		if times != 1 {
			t.Errorf("key %s came %d times", key, times)
		}
	}
	got := w.engine(0).got("session.send")[0]
	before, after, _ := strings.Cut(got, `"params":{"abideKey":"`)
	_, after, _ = strings.Cut(after, `"`)
	if before != `{"jsonrpc":"2.0","id":1,"method":"session.send",` || after != `,"sessionId":"a","prompt":"p"}}` {
		t.Errorf("the engine got %s", got)
	}
}

func TestARequestThatIsSentAgainHasTheSameKey(t *testing.T) {
	w := newWorld(t, once("session.send", received, 1))
	c, _ := connect(t, Options{Dial: w.dial})
	c.call(`"x"`, "session.send", `{"sessionId":"a","prompt":"p"}`)
	first, second := w.engine(0).got("session.send"), w.engine(1).got("session.send")
	if len(first) != 1 || len(second) != 1 || first[0] != second[0] {
		t.Errorf("first %s, then %s", first, second)
	}
}

func TestSessionsAreAttachedBeforeAnythingElse(t *testing.T) {
	w := newWorld(t, nil)
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
	w := newWorld(t, func(generation int, e *engine) {
		e.handler = func(e *engine, m jsonrpc.Message) bool {
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
			w := newWorld(t, func(_ int, e *engine) {
				e.handler = func(e *engine, m jsonrpc.Message) bool {
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
	w := newWorld(t, nil)
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
	replay := func(_ int, e *engine) {
		e.handler = func(e *engine, m jsonrpc.Message) bool {
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
	w := newWorld(t, replay)
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
	w := newWorld(t, func(generation int, e *engine) {
		e.handler = func(e *engine, m jsonrpc.Message) bool {
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

const question = `{"id":7,"method":"userInput.request","params":{"sessionId":"a","requestId":"q1","question":"?"}}`

// asks makes the engines of the given generations ask right after connect.
func asks(body string, generations ...int) func(int, *engine) {
	return func(generation int, e *engine) {
		e.handler = func(e *engine, m jsonrpc.Message) bool {
			for _, g := range generations {
				if m.Method == "connect" && g == generation {
					e.send(body)
				}
			}
			return false
		}
	}
}

func reply(c *client, m jsonrpc.Message, result string) {
	c.send(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":` + result + `}`)
}

func TestTheClientAnswersTheEngine(t *testing.T) {
	for _, body := range []string{question, `{"id":"h","method":"hooks.invoke","params":{"sessionId":"a", "x":1}}`} {
		sent, _ := jsonrpc.Parse([]byte(body))
		got := make(chan jsonrpc.Message, 2)
		w := newWorld(t, func(_ int, e *engine) {
			asks(body, 0)(0, e)
			e.answers = func(_ *engine, m jsonrpc.Message) { got <- m }
		})
		c, _ := connect(t, Options{Dial: w.dial})
		asked := c.ask(0)
		if asked.Method != sent.Method || string(asked.Params) != string(sent.Params) {
			t.Errorf("the client was asked %s %s", asked.Method, asked.Params)
		}
		reply(c, asked, `{"answer": "x"}`)
		if m := <-got; string(m.ID) != string(sent.ID) || string(m.Result) != `{"answer": "x"}` {
			t.Errorf("the engine got %s %s", m.ID, m.Result)
		}
		reply(c, asked, `{"answer":"again"}`) // goes nowhere
		w.engine(0).send(body)
		again := c.ask(1)
		if questions[sent.Method] != "" {
			continue
		}
		c.send(`{"id":` + string(again.ID) + `,"error":{"code":5,"message":"no"}}`)
		if m := <-got; string(m.ID) != string(sent.ID) || string(m.Err) != `{"code":5,"message":"no"}` {
			t.Errorf("the engine got %s %s", m.ID, m.Err)
		}
	}
}

func TestAUsersAnswerReachesTheNextEngine(t *testing.T) {
	const want = `"method":"session.ui.handlePendingUserInput","params":{"sessionId":"a","requestId":"q1","response":{"answer":"yes","wasFreeform":true}}}`
	const given = `{"answer":"yes","wasFreeform":true}`
	t.Run("given after the change", func(t *testing.T) {
		w := newWorld(t, asks(question, 0))
		c, _ := connect(t, Options{Dial: w.dial})
		asked := c.ask(0)
		w.engine(0).die()
		c.call(`1`, "ping", `{}`)
		reply(c, asked, given)
		w.engine(1).wait("session.ui.handlePendingUserInput")
		if got := w.engine(1).got("session.ui.handlePendingUserInput"); len(got) != 1 || !strings.HasSuffix(got[0], want) {
			t.Errorf("the next engine got %s", got)
		}
		c.call(`2`, "ping", `{}`)
		if len(c.answers) != 2 {
			t.Errorf("the client has answers to %v", c.answers)
		}
	})
	t.Run("given to a dying engine", func(t *testing.T) {
		w := newWorld(t, func(generation int, e *engine) {
			asks(question, 0)(generation, e)
			e.answers = func(e *engine, _ jsonrpc.Message) { e.die() }
		})
		c, _ := connect(t, Options{Dial: w.dial})
		reply(c, c.ask(0), given)
		c.call(`1`, "ping", `{}`)
		c.call(`2`, "ping", `{}`)
		if got := w.engine(1).got("session.ui.handlePendingUserInput"); len(got) != 1 || !strings.HasSuffix(got[0], want) {
			t.Errorf("the next engine got %s", got)
		}
	})
	t.Run("which dies, too", func(t *testing.T) {
		w := newWorld(t, func(generation int, e *engine) {
			asks(question, 0)(generation, e)
			e.fatal = func(method string, p phase) bool {
				return generation == 1 && method == "session.ui.handlePendingUserInput" && p == received
			}
		})
		c, _ := connect(t, Options{Dial: w.dial})
		asked := c.ask(0)
		w.engine(0).die()
		c.call(`1`, "ping", `{}`)
		reply(c, asked, given)
		w.engine(1).wait("session.ui.handlePendingUserInput")
		c.call(`2`, "ping", `{}`)
		if got := w.engine(2).got("session.ui.handlePendingUserInput"); len(got) != 1 || !strings.HasSuffix(got[0], want) {
			t.Errorf("the third engine got %s", got)
		}
	})
}

func TestTheUserIsNotAskedTwice(t *testing.T) {
	again := strings.Replace(question, `"id":7`, `"id":"other"`, 1)
	answers := make(chan string, 4)
	plan := func(generation int, e *engine) {
		asks([]string{question, again}[min(generation, 1)], 0, 1)(generation, e)
		e.answers = func(e *engine, m jsonrpc.Message) {
			answers <- fmt.Sprintf("%d %s %s", e.generation, m.ID, m.Result)
		}
	}
	t.Run("while they think", func(t *testing.T) {
		w := newWorld(t, plan)
		c, _ := connect(t, Options{Dial: w.dial})
		asked := c.ask(0)
		w.engine(0).die()
		c.call(`1`, "ping", `{}`)
		reply(c, asked, `{"answer":"yes"}`)
		if got := <-answers; got != `1 "other" {"answer":"yes"}` {
			t.Errorf("got %s", got)
		}
		if len(c.asked) != 1 {
			t.Errorf("the user was asked %d times", len(c.asked))
		}
	})
	t.Run("when they have answered", func(t *testing.T) {
		w := newWorld(t, plan)
		c, _ := connect(t, Options{Dial: w.dial})
		reply(c, c.ask(0), `{"answer":"yes"}`)
		<-answers
		w.engine(0).die()
		c.call(`1`, "ping", `{}`)
		if got := <-answers; got != `1 "other" {"answer":"yes"}` {
			t.Errorf("got %s", got)
		}
		if len(c.asked) != 1 {
			t.Errorf("the user was asked %d times", len(c.asked))
		}
	})
}

func TestOtherAnswersDieWithTheirEngine(t *testing.T) {
	const hook = `{"id":1,"method":"hooks.invoke","params":{"sessionId":"a"}}`
	got := make(chan string, 4)
	w := newWorld(t, func(generation int, e *engine) {
		asks(hook, 0, 1)(generation, e) // both use the same id
		e.answers = func(e *engine, m jsonrpc.Message) { got <- fmt.Sprintf("%d %s", e.generation, m.Result) }
	})
	c, _ := connect(t, Options{Dial: w.dial})
	first := c.ask(0)
	w.engine(0).die()
	second := c.ask(1)
	if string(first.ID) == string(second.ID) {
		t.Errorf("two requests have the id %s", first.ID)
	}
	reply(c, first, `"late"`)
	reply(c, second, `"right"`)
	if answer := <-got; answer != `1 "right"` {
		t.Errorf("got %s", answer)
	}
	c.call(`1`, "ping", `{}`)
	if len(got) != 0 {
		t.Errorf("got also %s", <-got)
	}
}

// A session may need the client's answer before it can be attached.
func TestAnswersPassBeforeSessionsAreAttached(t *testing.T) {
	w := newWorld(t, func(generation int, e *engine) {
		e.handler = func(e *engine, m jsonrpc.Message) bool {
			if m.Method != "abide.attach" {
				return false
			}
			e.answers = func(e *engine, _ jsonrpc.Message) { e.answer(m, `{}`) }
			e.send(`{"id":1,"method":"sessionFs.readFile","params":{}}`)
			return true
		}
	})
	c, _ := connect(t, Options{Dial: w.dial})
	c.call(`1`, "session.create", `{"sessionId":"a"}`)
	w.engine(0).die()
	reply(c, c.ask(0), `{}`)
	c.call(`2`, "ping", `{}`)
}

func TestCancellationsPass(t *testing.T) {
	t.Run("of the client", func(t *testing.T) {
		w := newWorld(t, func(generation int, e *engine) {
			e.handler = func(e *engine, m jsonrpc.Message) bool { return m.Method == "wait" }
		})
		c, _ := connect(t, Options{Dial: w.dial})
		c.send(`{"id":"w","method":"wait"}`)
		c.send(`{"method":"$/cancelRequest","params":{"id":"unknown"}}`)
		c.send(`{"method":"$/cancelRequest","params":{"id":"w"}}`)
		c.call(`1`, "ping", `{}`)
		w.engine(0).die()
		c.call(`2`, "ping", `{}`)
		for i := range 2 {
			got := w.engine(i).got(cancelMethod)
			if len(got) != 1 || got[0] != `{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":"w"}}` {
				t.Errorf("engine %d got %s", i, got)
			}
		}
	})
	t.Run("of the engine", func(t *testing.T) {
		w := newWorld(t, asks(question, 0))
		c, _ := connect(t, Options{Dial: w.dial})
		asked := c.ask(0)
		w.engine(0).send(`{"method":"$/cancelRequest","params":{"id":99}}`)
		w.engine(0).send(`{"method":"$/cancelRequest","params":{"id":7}}`)
		c.until("cancellation", func() bool { return len(c.notices) > 0 })
		if len(c.notices) != 1 || c.notices[0] != cancelMethod {
			t.Errorf("the client got %v for %s", c.notices, asked.ID)
		}
	})
}

func TestARequestThatKillsEnginesIsGivenUp(t *testing.T) {
	w := newWorld(t, func(_ int, e *engine) {
		e.fatal = func(method string, p phase) bool { return method == "poison" && p == received }
	})
	c, _ := connect(t, Options{Dial: w.dial})
	m := c.call(`1`, "poison", `{}`)
	if fault := m.Failure(); fault == nil || !strings.Contains(fault.Message, "poison: 5 engines have died while they worked on this request") {
		t.Errorf("the answer is %s %s", m.Result, m.Err)
	}
	if m := c.call(`2`, "ping", `{}`); m.Err != nil {
		t.Errorf("another request was refused: %s", m.Err)
	}
}

func TestBadMessagesAreRefused(t *testing.T) {
	w := newWorld(t, func(_ int, e *engine) {
		e.handler = func(e *engine, m jsonrpc.Message) bool { return m.Method == "wait" }
	})
	tests := map[string]struct {
		send, id, want string
		code           int
	}{
		"not JSON":     {`{"id":1,`, "null", "not JSON", jsonrpc.CodeParse},
		"batch":        {`[]`, "null", "batches are not supported", jsonrpc.CodeInvalidRequest},
		"array params": {`{"id":1,"method":"m","params":[1]}`, "1", "m: the params must be an object", jsonrpc.CodeInvalidParams},
		"key":          {`{"id":1,"method":"m","params":{"x":1,"abideKey":"y"}}`, "1", "m: abideKey and abideAfter are reserved", jsonrpc.CodeInvalidParams},
		"hidden key":   {`{"id":1,"method":"m","params":{"abide\u004bey":"y"}}`, "1", "m: abideKey and abideAfter are reserved", jsonrpc.CodeInvalidParams},
		"id in flight": {`{"id":"w","method":"m"}`, `"w"`, `the id "w" belongs to a request in flight`, jsonrpc.CodeInvalidRequest},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c, _ := connect(t, Options{Dial: w.dial})
			c.send(`{"id":"w","method":"wait"}`)
			c.send(test.send)
			if fault := c.answer(test.id).Failure(); fault.Code != test.code || !strings.Contains(fault.Message, test.want) {
				t.Errorf("the answer is %+v", fault)
			}
		})
	}
}

func TestAMalformedFrameEndsTheConnectionWithAReason(t *testing.T) {
	w := newWorld(t, nil)
	c, ended := connect(t, Options{Dial: w.dial})
	io.WriteString(c.conn, "hello\r\n\r\n")
	if fault := c.answer("null").Failure(); !strings.Contains(fault.Message, `"hello" is not a header`) {
		t.Errorf("the client was told %v", fault)
	}
	if _, ok := errors.AsType[*jsonrpc.FrameError](<-ended); !ok {
		t.Error("Run does not say so")
	}
}

func TestTheDoorDecidesWhoEnters(t *testing.T) {
	w := newWorld(t, nil)
	c, _ := connect(t, Options{Dial: w.dial, Admit: func(m jsonrpc.Message) *jsonrpc.Error {
		switch {
		case m.Method != "connect":
			return jsonrpc.Errorf(-32001, "AUTHENTICATION_REQUIRED")
		case textMember(m.Params, "token") != "secret":
			return jsonrpc.Errorf(-32002, "AUTHENTICATION_FAILED")
		}
		return nil
	}})
	c.send(`{"method":"early","params":{}}`)
	for i, want := range []struct {
		method, params string
		code           int
	}{
		{"ping", `{}`, -32001},
		{"connect", `{"token":"wrong"}`, -32002},
		{"ping", `{}`, -32001},
		{"connect", `{"token":"secret"}`, 0},
		{"ping", `{}`, 0},
		{"connect", `{"token":"wrong"}`, 0}, // it is the engine's matter now
	} {
		code := 0
		if fault := c.call(fmt.Sprint(i), want.method, want.params).Failure(); fault != nil {
			code = fault.Code
		}
		if code != want.code {
			t.Errorf("%s %s: code %d, want %d", want.method, want.params, code, want.code)
		}
	}
	if got := strings.Join(w.engine(0).methods, " "); got != "connect connect ping connect" {
		t.Errorf("the engine was told %s", got)
	}
}

func TestMessagesWaitForAnEngineUpToABound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		come := make(chan net.Conn)
		r, err := New(far, Options{Queue: 1000, Dial: func(ctx context.Context) (net.Conn, error) { return <-come, nil }})
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- r.Run(t.Context()) }()
		written := 0
		go func() {
			for i := range 100 {
				body := fmt.Sprintf(`{"id":%d,"method":"m","params":{"i":%d}}`, i, i)
				near.Write(jsonrpc.AppendFrame(nil, []byte(body)))
				written++
			}
		}()
		synctest.Wait()
		if written < 5 || written > 20 {
			t.Errorf("%d messages were read without an engine", written)
		}
		door, engine := net.Pipe()
		come <- door
		in := jsonrpc.NewReader(engine, 0)
		go io.Copy(io.Discard, near)
		for next := -1; next < 100; next++ {
			body, err := in.Next(nil)
			if err != nil {
				t.Fatal(err)
			}
			m, _ := jsonrpc.Parse(body)
			if got := string(member(m.Params, "i")); next >= 0 && got != fmt.Sprint(next) {
				t.Fatalf("message %s came as number %d", got, next)
			}
			engine.Write(jsonrpc.AppendFrame(nil, []byte(`{"id":`), m.ID, []byte(`,"result":null}`)))
		}
		near.Close()
		if err := <-ended; err != nil {
			t.Errorf("Run returned %v", err)
		}
	})
}

func TestAClientThatLeavesGetsItsLastAnswers(t *testing.T) {
	w := newWorld(t, func(_ int, e *engine) {
		var waiting jsonrpc.Message
		e.handler = func(e *engine, m jsonrpc.Message) bool {
			switch m.Method {
			case "wait":
				waiting = m
			case cancelMethod:
				e.answer(waiting, `"cancelled"`)
			default:
				return false
			}
			return true
		}
	})
	c, ended := connect(t, Options{Dial: w.dial})
	c.send(`{"id":1,"method":"ping"}`)
	c.send(`{"id":2,"method":"wait"}`)
	c.conn.(*net.UnixConn).CloseWrite()
	c.answer(`1`)
	if m := c.answer(`2`); string(m.Result) != `"cancelled"` {
		t.Errorf("got %s %s", m.Result, m.Err)
	}
	if err := <-ended; err != nil {
		t.Errorf("Run returned %v", err)
	}
}

// quiet returns a relay whose engine answers connect and nothing else.
func quiet(t *testing.T, opt Options) (client, engine net.Conn, ended <-chan error, cancel context.CancelCauseFunc) {
	near, far := net.Pipe()
	opt.Dial = func(ctx context.Context) (net.Conn, error) {
		if engine != nil {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		var door net.Conn
		door, engine = net.Pipe()
		return door, nil
	}
	r, err := New(far, opt)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	synctest.Wait()
	body, err := jsonrpc.NewReader(engine, 0).Next(nil)
	if err != nil {
		t.Fatal(err)
	}
	m, _ := jsonrpc.Parse(body)
	engine.Write(jsonrpc.AppendFrame(nil, []byte(`{"id":`), m.ID, []byte(`,"result":{}}`)))
	return near, engine, done, cancel
}

func TestALeavingClientIsNotWaitedForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, engine, ended, _ := quiet(t, Options{Drain: 3 * time.Second})
		go io.Copy(io.Discard, engine)
		client.Write(jsonrpc.AppendFrame(nil, []byte(`{"id":1,"method":"wait"}`)))
		begin := time.Now()
		client.Close()
		if err := <-ended; err != nil || time.Since(begin) != 3*time.Second {
			t.Errorf("Run returned %v after %v", err, time.Since(begin))
		}
	})
}

func TestAClientThatDoesNotReadIsDisconnected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, engine, ended, _ := quiet(t, Options{Stall: 3 * time.Second})
		defer client.Close()
		engine.Write(jsonrpc.AppendFrame(nil, []byte(`{"method":"n"}`)))
		if err := <-ended; !errors.Is(err, jsonrpc.ErrStalled) {
			t.Errorf("Run returned %v", err)
		}
	})
}

func TestRunEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, _, ended, cancel := quiet(t, Options{})
		defer client.Close()
		enough := errors.New("enough")
		cancel(enough)
		if err := <-ended; err != enough {
			t.Errorf("Run returned %v", err)
		}
	})
}

func TestWithoutAnyEngineTheClientIsTold(t *testing.T) {
	hopeless := errors.New("there will be no engine")
	begin := make(chan struct{})
	c, ended := connect(t, Options{Dial: func(ctx context.Context) (net.Conn, error) {
		<-begin
		return nil, hopeless
	}})
	c.send(`{"id":1,"method":"ping"}`)
	c.send(`{"id":1,"method":"ping"}`) // refused: so the first one is there
	c.answer(`1`)
	close(begin)
	c.until("the second answer", func() bool { return len(c.answers[`1`]) == 2 })
	if fault := c.answers[`1`][1].Failure(); fault == nil || fault.Message != hopeless.Error() {
		t.Errorf("the client was told %v", fault)
	}
	if err := <-ended; err != hopeless {
		t.Errorf("Run returned %v", err)
	}
}

func TestAnEngineMayRefuseTheRelay(t *testing.T) {
	t.Run("for good", func(t *testing.T) {
		w := newWorld(t, func(_ int, e *engine) {
			e.handler = func(e *engine, m jsonrpc.Message) bool { e.refuse(m, -32603, "too old"); return true }
		})
		_, ended := connect(t, Options{Dial: w.dial})
		if err := <-ended; err == nil || err.Error() != "the engine refuses this connection: too old" {
			t.Errorf("Run returned %v", err)
		}
	})
	t.Run("because it is leaving", func(t *testing.T) {
		w := newWorld(t, func(generation int, e *engine) {
			e.handler = func(e *engine, m jsonrpc.Message) bool {
				if generation == 0 {
					e.refuse(m, codeShuttingDown, "SERVER_SHUTTING_DOWN")
					e.die()
				}
				return generation == 0
			}
		})
		c, _ := connect(t, Options{Dial: w.dial})
		if m := c.call(`1`, "ping", `{}`); m.Err != nil {
			t.Errorf("refused: %s", m.Err)
		}
	})
}

func TestDefaultsMustBeJSON(t *testing.T) {
	if _, err := New(nil, Options{Defaults: json.RawMessage(`{`)}); err == nil || !strings.Contains(err.Error(), "the defaults are not JSON") {
		t.Errorf("New returned %v", err)
	}
}

func FuzzOpenObject(f *testing.F) {
	f.Add([]byte(`{}`), "k")
	f.Add([]byte(`{ "a":1 , "b":{"c":[]}}`), `u/"1`)
	f.Add([]byte("{\n}"), "\x00\u2028")
	f.Fuzz(func(t *testing.T, object []byte, value string) {
		if !json.Valid(object) || !jsonrpc.IsObject(object) || !utf8.ValidString(value) {
			return
		}
		var want map[string]json.RawMessage
		if err := json.Unmarshal(object, &want); err != nil {
			t.Fatal(err)
		}
		opening, rest := openObject(object, "abideKey", value)
		joined := string(opening) + string(rest)
		var got map[string]json.RawMessage
		if err := json.Unmarshal([]byte(joined), &got); err != nil {
			t.Fatalf("%q became %q: %v", object, joined, err)
		}
		if want["abideKey"] == nil {
			var key string
			json.Unmarshal(got["abideKey"], &key)
			if key != value {
				t.Fatalf("the key %q became %q", value, key)
			}
			delete(got, "abideKey")
		}
		if fmt.Sprintf("%s", got) != fmt.Sprintf("%s", want) {
			t.Fatalf("%q became %q", object, joined)
		}
		m := jsonrpc.Message{ID: json.RawMessage(`1`), Method: "m", Params: object}
		body := slices.Concat(newParcel(m, value).body(0)...)
		if parsed, fault := jsonrpc.Parse(body); fault != nil || string(parsed.Params) != strings.TrimSpace(joined) {
			t.Fatalf("the message is %q (%v)", body, fault)
		}
	})
}

func TestTheNextEngineIsToldAboutTheConnection(t *testing.T) {
	w := newWorld(t, func(generation int, e *engine) {
		e.handler = func(e *engine, m jsonrpc.Message) bool {
			if m.Method == addInterest {
				e.answer(m, `{"handle":`+string(member(m.Params, "abideKey"))+`}`)
			}
			return m.Method == addInterest
		}
	})
	c, _ := connect(t, Options{Dial: w.dial})
	c.call("1", setInference, `{}`)
	c.call("2", setInference, `{}`) // the last one counts
	c.call("3", "session.create", `{"sessionId":"s"}`)
	c.call("4", "session.create", `{"sessionId":"t"}`)
	kept := c.call("5", addInterest, `{"sessionId":"s","eventType":"a"}`)
	released := c.call("6", addInterest, `{"sessionId":"s","eventType":"b"}`)
	c.call("7", addInterest, `{"sessionId":"t","eventType":"c"}`)
	c.call("8", dropInterest, `{"sessionId":"s","handle":`+string(member(released.Result, "handle"))+`}`)
	c.call("9", "session.destroy", `{"sessionId":"t"}`)
	w.engine(0).die()
	c.call("10", "ping", `{}`)
	second := w.engine(1)
	if got := second.got(setInference); len(got) != 1 {
		t.Errorf("the engine was told %d times who makes the requests", len(got))
	}
	got := second.got(addInterest)
	if len(got) != 1 || !strings.Contains(got[0], string(member(kept.Result, "handle"))) || !strings.Contains(got[0], `"eventType":"a"`) {
		t.Errorf("the engine was told of the interests %v", got)
	}
	second.mu.Lock()
	defer second.mu.Unlock()
	order := []string{"connect", setInference, "abide.attach", addInterest, "ping"}
	if !slices.Equal(second.methods, order) {
		t.Errorf("the engine got %v, want %v", second.methods, order)
	}
}
