package relay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/abide-run/abide/internal/jsonrpc"
)

func TestARequestThatKillsEnginesIsGivenUp(t *testing.T) {
	w := newSharedState(t, func(_ int, e *fakeEngine) {
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
	w := newSharedState(t, func(_ int, e *fakeEngine) {
		e.handler = func(e *fakeEngine, m jsonrpc.Message) bool { return m.Method == "wait" }
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
	w := newSharedState(t, nil)
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
	w := newSharedState(t, nil)
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
