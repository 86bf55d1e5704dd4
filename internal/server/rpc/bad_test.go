package rpc_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/jsonrpc"
	"github.com/abide-run/abide/internal/model/offline"
	"github.com/abide-run/abide/internal/server/rpc"
	"github.com/abide-run/abide/internal/session"
	"github.com/abide-run/abide/internal/session/sessiontest"
)

// Nobody is served before connect, with or without a token, whatever is asked.
func TestNothingIsAnsweredBeforeConnect(t *testing.T) {
	r := newTestServer(t)
	r.open(api.SessionCreate, nil)
	for _, door := range []rpc.Door{{}, {Token: "secret"}, {Private: true}} {
		p := r.dial(door)
		for _, method := range []string{api.Ping, api.SessionCreate, api.SessionResume, api.SessionSend, api.SessionList, api.Attach, api.Shutdown, "no.such"} {
			if fault := p.refused(method, object{"sessionId": "s", "prompt": "x"}); fault.Code != api.CodeAuthenticationRequired {
				t.Errorf("%s before connect: %v", method, fault)
			}
		}
		p.must(api.Connect, api.ConnectParams{Token: door.Token}, nil)
		p.must(api.Ping, nil, nil)
	}
}

func TestParametersThatAreNoObjectAreNamed(t *testing.T) {
	p := newTestServer(t).open(api.SessionCreate, nil)
	for _, params := range []any{[]int{1}, "x", 7, true} {
		if fault := p.refused(api.SessionSend, params); !strings.Contains(fault.Message, "params") && !strings.Contains(fault.Message, "object") {
			t.Errorf("%v: %v", params, fault)
		}
	}
}

// calling makes the model call a client's tool, and returns the request.
func (p *peer) calling(t *testing.T) string {
	t.Helper()
	p.must(api.SessionSend, object{"sessionId": "s", "prompt": "Use act with value 'x', then reply with the result"}, nil)
	return data[event.ExternalAskedData](t, p.await(event.ExternalAsked)).RequestID
}

// A long text is kept in a file, and the model is told where: the event is short.
func TestALongTextIsKeptInAFile(t *testing.T) {
	r := newTestServer(t)
	t.Setenv("TMPDIR", t.TempDir())
	p := r.open(api.SessionCreate, object{"tools": []object{{"name": "act", "skipPermission": true}}})
	var won api.Success
	p.must(api.AnswerTool, object{"sessionId": "s", "requestId": p.calling(t), "result": strings.Repeat("x", 2<<20)}, &won)
	e := p.await(event.ToolComplete)
	d := data[event.ToolCompleteData](t, e)
	if !won.Success || len(e.Bytes) > 64<<10 || !strings.Contains(d.Result.Content, "Output too large to read at once (2048.0 KB)") {
		t.Errorf("an event of %d bytes: %.300s", len(e.Bytes), e.Bytes)
	}
	p.await(event.SessionIdle)
	files, err := os.ReadDir(os.TempDir())
	if err != nil || len(files) != 1 {
		t.Fatalf("there are %d files, %v", len(files), err)
	}
}

// What cannot be kept in a file is refused by name, and the question stays open.
func TestAnEnormousPartIsRefusedAndTheQuestionStaysOpen(t *testing.T) {
	p := newTestServer(t).open(api.SessionCreate, object{"tools": []object{{"name": "act", "skipPermission": true}}})
	request := p.calling(t)
	huge := json.RawMessage(`{"textResultForLlm":"ok","sessionLog":"` + strings.Repeat("A", 33<<20) + `"}`)
	if fault := p.refused(api.AnswerTool, object{"sessionId": "s", "requestId": request, "result": huge}); !strings.Contains(fault.Message, "result.sessionLog: 33 MB") {
		t.Error(fault)
	}
	var won api.Success
	p.must(api.AnswerTool, object{"sessionId": "s", "requestId": request, "result": "fine"}, &won)
	if d := data[event.AssistantMessageData](t, p.await(event.AssistantMessage)); !won.Success || d.Content != "fine" {
		t.Errorf("won is %v, the answer is %q", won.Success, d.Content)
	}
}

// A frame that is longer than any is allowed to be ends its connection with a
// reason, and no other.
func TestAFrameThatIsTooLongEndsItsConnection(t *testing.T) {
	r := newTestServer(t)
	p := r.open(api.SessionCreate, nil)
	raw := r.raw()
	fmt.Fprintf(raw, "Content-Length: %d\r\n\r\n{", jsonrpc.DefaultMaxFrame+1)
	reply := make([]byte, 4096)
	n, err := raw.Read(reply)
	if err != nil || !strings.Contains(string(reply[:n]), `"error"`) {
		t.Errorf("%q, %v", reply[:n], err)
	}
	if _, err := raw.Read(reply); err == nil {
		t.Error("the connection is still open")
	}
	p.must(api.Ping, nil, nil)
}

// raw is a connection that speaks for itself.
func (r *testServer) raw() net.Conn {
	r.t.Helper()
	ours, theirs := net.Pipe()
	served := make(chan struct{})
	go func() { defer close(served); r.srv.Serve(context.Background(), theirs, rpc.Door{}) }()
	r.t.Cleanup(func() { ours.Close(); <-served })
	return ours
}

func frame(method string, params string) string {
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"method":%[1]q,"params":%s}`, method, params)
	return fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body)
}

// A client that is cut off in the middle of a frame has asked for nothing by it:
// what it asked for before goes on, and can be come back to.
func TestAClientThatVanishesInTheMiddleOfAFrameLeavesNothingBehind(t *testing.T) {
	r := newTestServer(t)
	whole := frame(api.SessionSend, `{"sessionId":"s","prompt":"Reply with exactly: NEVER"}`)
	for _, cut := range []int{3, len("Content-Length: 1"), strings.Index(whole, "{"), strings.Index(whole, "{") + 10, len(whole) - 1} {
		id := event.SessionID(fmt.Sprint("s", cut))
		p := r.connect(rpc.Door{})
		p.must(api.SessionCreate, object{"sessionId": id, "tools": []object{{"name": "act", "skipPermission": true}}}, nil)
		raw := r.raw()
		go func() {
			for _, f := range []string{frame(api.Connect, `{}`), frame(api.SessionResume, fmt.Sprintf(`{"sessionId":%q}`, id)), whole[:cut]} {
				raw.Write([]byte(f))
			}
			raw.Close()
		}()
		for buf := make([]byte, 4096); ; {
			if _, err := raw.Read(buf); err != nil {
				break
			}
		}
		p.must(api.SessionSend, object{"sessionId": id, "prompt": "Reply with exactly: HERE"}, nil)
		if d := data[event.AssistantMessageData](t, p.await(event.AssistantMessage)); d.Content != "HERE" {
			t.Errorf("cut at %d: the answer is %q", cut, d.Content)
		}
	}
}

// A client that never reads is sent away when it has taken nothing for a minute.
// Until then it costs at most what a client may be behind; the others see all,
// and what it missed is still there when it comes back.
func TestAClientThatNeverReadsHindersNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := session.New(eventlog.NewMemory(), session.Options{Resolve: sessiontest.Always(session.Endpoint{Model: offline.Model{}, Name: offline.Name})})
		defer host.Close()
		srv := rpc.New(host, rpc.Options{Version: "test"})
		serve := func() (net.Conn, <-chan error) {
			ours, theirs := net.Pipe()
			ended := make(chan error, 1)
			go func() { ended <- srv.Serve(t.Context(), theirs, rpc.Door{}) }()
			return ours, ended
		}
		deaf, sentAway := serve()
		for _, f := range []string{frame(api.Connect, `{}`), frame(api.SessionCreate, `{"sessionId":"s","streaming":true}`)} {
			deaf.Write([]byte(f))
			synctest.Wait()
		}

		conn, over := serve()
		p := &peer{t: t, events: make(chan event.Event, 100000)}
		p.Conn = jsonrpc.New(conn, jsonrpc.Options{Handler: jsonrpc.HandlerFunc(p.handle)})
		ran := make(chan error, 1)
		go func() { ran <- p.Run(t.Context()) }()
		p.must(api.Connect, api.ConnectParams{}, nil)
		p.must(api.SessionResume, object{"sessionId": "s"}, nil)
		long := strings.Repeat("x", 1<<20)
		for range 12 { // more than a client may be behind
			p.must(api.SessionLog, object{"sessionId": "s", "message": long}, nil)
			p.await(event.SessionInfo)
		}
		p.must(api.SessionSend, object{"sessionId": "s", "prompt": "Reply with exactly: HERE"}, nil)
		if d := data[event.AssistantMessageData](t, p.await(event.AssistantMessage)); d.Content != "HERE" {
			t.Errorf("the answer is %q", d.Content)
		}
		begin := time.Now()
		if err := <-sentAway; err == nil || time.Since(begin) > 2*time.Minute {
			t.Errorf("it was sent away with %v after %s", err, time.Since(begin))
		}
		var events api.EventsResult
		p.must(api.SessionGetMessages, object{"sessionId": "s"}, &events)
		remarks := 0
		for _, b := range events.Events {
			if e, err := event.Parse(0, b); err == nil && e.Type == event.SessionInfo {
				remarks++
			}
		}
		if remarks != 12 {
			t.Errorf("%d of 12 remarks are there", remarks)
		}
		p.Close()
		<-ran
		<-over
		deaf.Close()
	})
}
