package relay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/abide-run/abide/internal/jsonrpc"
)

func TestAClientThatLeavesGetsItsLastAnswers(t *testing.T) {
	w := newSharedState(t, func(_ int, e *fakeEngine) {
		var waiting jsonrpc.Message
		e.handler = func(e *fakeEngine, m jsonrpc.Message) bool {
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
	c.send(`{"id":1,"method":"ping"}`) // this one is refused, which proves that the first one is there
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
		w := newSharedState(t, func(_ int, e *fakeEngine) {
			e.handler = func(e *fakeEngine, m jsonrpc.Message) bool { e.refuse(m, -32603, "too old"); return true }
		})
		_, ended := connect(t, Options{Dial: w.dial})
		if err := <-ended; err == nil || err.Error() != "the engine refuses this connection: too old" {
			t.Errorf("Run returned %v", err)
		}
	})
	t.Run("because it is leaving", func(t *testing.T) {
		w := newSharedState(t, func(generation int, e *fakeEngine) {
			e.handler = func(e *fakeEngine, m jsonrpc.Message) bool {
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
		body := slices.Concat(newQueuedMessage(m, value).body(0)...)
		if parsed, fault := jsonrpc.Parse(body); fault != nil || string(parsed.Params) != strings.TrimSpace(joined) {
			t.Fatalf("the message is %q (%v)", body, fault)
		}
	})
}

func TestTheNextEngineIsToldAboutTheConnection(t *testing.T) {
	w := newSharedState(t, func(generation int, e *fakeEngine) {
		e.handler = func(e *fakeEngine, m jsonrpc.Message) bool {
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
