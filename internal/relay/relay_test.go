package relay

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// once dies at the given moment of a method, in its n-th occurrence over all
// engines, and never again.
func once(method string, at phase, n int) func(int, *fakeEngine) {
	return func(_ int, e *fakeEngine) {
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
					w := newSharedState(t, once(method, at, n))
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
			w := newSharedState(t, func(generation int, e *fakeEngine) {
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
	w := newSharedState(t, nil)
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
	w := newSharedState(t, nil)
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
	w := newSharedState(t, once("session.send", received, 1))
	c, _ := connect(t, Options{Dial: w.dial})
	c.call(`"x"`, "session.send", `{"sessionId":"a","prompt":"p"}`)
	first, second := w.engine(0).got("session.send"), w.engine(1).got("session.send")
	if len(first) != 1 || len(second) != 1 || first[0] != second[0] {
		t.Errorf("first %s, then %s", first, second)
	}
}
