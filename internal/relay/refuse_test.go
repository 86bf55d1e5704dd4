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

// An engine of an older version wants no token, and accepts a connect with one.
func TestTheTokenIsShownBeforeAnythingElse(t *testing.T) {
	w := newSharedState(t, nil)
	c, _ := connect(t, Options{Dial: w.dial, Token: func() string { return `se"cret` }, Store: "here"})
	c.call(`1`, "ping", `{}`)
	got := w.engine(0).got("connect")
	if len(got) != 2 || !strings.Contains(got[0], `"params":{"token":"se\"cret"}`) || !strings.Contains(got[1], `"abide":{`) || strings.Contains(got[1], "secret") {
		t.Errorf("the engine was sent %q", got)
	}
}

// An engine whose token was removed puts it back. One that never knows it ends the relay.
func TestATokenThatIsRefusedIsReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for right, want := range map[int]string{3: "", 100: "the engine refuses this connection: the engine does not know the token of its data folder: no"} {
			reads := 0
			r, near := pipedRelay(t, Options{
				Dial: func(context.Context) (net.Conn, error) {
					ours, theirs := net.Pipe()
					go answerConnects(theirs, "right")
					return ours, nil
				},
				Token: func() string {
					if reads++; reads >= right {
						return "right"
					}
					return "wrong"
				},
			})
			ended := make(chan error, 1)
			go func() { ended <- r.Run(context.Background()) }()
			go near.Write(jsonrpc.AppendFrame(nil, []byte(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)))
			body, err := jsonrpc.NewReader(near, 0).Next(nil)
			if err != nil || strings.Contains(string(body), "error") != (want != "") || !strings.Contains(string(body), want) {
				t.Errorf("the client was told %s, %v", body, err)
			}
			near.Close()
			if err := <-ended; (want != "") != errors.Is(err, ErrRefused) {
				t.Errorf("the relay ended with %v", err)
			}
		}
	})
}

// pipedRelay returns a relay whose client is at the other end of a pipe.
func pipedRelay(t *testing.T, o Options) (*Relay, net.Conn) {
	t.Helper()
	near, far := net.Pipe()
	r, err := New(far, o)
	if err != nil {
		t.Fatal(err)
	}
	return r, near
}

// answerConnects is an engine that answers everything, if it was shown the token.
func answerConnects(conn net.Conn, token string) {
	defer conn.Close()
	in := jsonrpc.NewReader(conn, 0)
	for known := false; ; {
		body, err := in.Next(nil)
		if err != nil {
			return
		}
		m, _ := jsonrpc.Parse(body)
		answer := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{}}`, m.ID)
		if known = known || textMember(m.Params, "token") == token; !known {
			answer = fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32002,"message":"no"}}`, m.ID)
		}
		if _, err := conn.Write(jsonrpc.AppendFrame(nil, []byte(answer))); err != nil {
			return
		}
	}
}

func TestAClientThatIsNotAdmittedCanSendOnlyLittle(t *testing.T) {
	w := newSharedState(t, nil)
	admit := func(m jsonrpc.Message) *jsonrpc.Error {
		if m.Method != "connect" {
			return jsonrpc.Errorf(-32001, "AUTHENTICATION_REQUIRED")
		}
		return nil
	}
	large := `{"text":"` + strings.Repeat("x", 1000) + `"}`
	inside, _ := connect(t, Options{Dial: w.dial, Admit: admit, FirstFrame: 100})
	inside.call(`1`, "connect", `{}`)
	if m := inside.call(`2`, "large", large); m.Err != nil {
		t.Errorf("after connect: %s", m.Err)
	}
	outside, ended := connect(t, Options{Dial: w.dial, Admit: admit, FirstFrame: 100})
	outside.send(`{"id":1,"method":"large","params":` + large + `}`)
	if fault := outside.answer("null").Failure(); !strings.Contains(fault.Message, "more than the limit of 100") {
		t.Errorf("the client was told %v", fault)
	}
	if _, ok := errors.AsType[*jsonrpc.FrameError](<-ended); !ok {
		t.Error("Run does not say so")
	}
}
