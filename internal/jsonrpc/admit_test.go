package jsonrpc

import (
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// guarded is the options of a side that reads only small messages until it is asked "enter".
func guarded(admit **Conn) Options {
	return Options{FirstFrame: 100, Handler: HandlerFunc(func(_ context.Context, req *Request) (any, error) {
		if req.Method == "enter" {
			(*admit).Admit()
		}
		return len(req.Params), nil
	})}
}

func TestOnlySmallMessagesAreReadBeforeAPeerIsAdmitted(t *testing.T) {
	large := raw(`{"text":"` + strings.Repeat("x", 1000) + `"}`)
	for _, enters := range []bool{true, false} {
		var server *Conn
		client, server := Pair(Options{}, guarded(&server))
		ended := make(chan error, 2)
		go func() { ended <- server.Run(context.Background()) }()
		go func() { ended <- client.Run(context.Background()) }()
		if err := client.Call(t.Context(), "ping", nil, nil); err != nil {
			t.Fatal(err)
		}
		if enters {
			if err := client.Call(t.Context(), "enter", nil, nil); err != nil {
				t.Fatal(err)
			}
		}
		err := client.Call(t.Context(), "large", large, nil)
		client.Close()
		first, second := <-ended, <-ended
		refused := errors.As(errors.Join(first, second), new(*FrameError))
		if enters == (err != nil) || enters == refused {
			t.Errorf("admitted: %v; the call: %v; the ends: %v, %v", enters, err, first, second)
		}
	}
}

// A peer may send a large message right behind the one that lets it in.
func TestAMessageBehindTheOneThatAdmitsMayBeLarge(t *testing.T) {
	var server *Conn
	near, far := net.Pipe()
	server = New(far, guarded(&server))
	start(t, server)
	go func() {
		b := AppendFrame(nil, []byte(`{"jsonrpc":"2.0","id":1,"method":"enter"}`))
		near.Write(AppendFrame(b, []byte(`{"jsonrpc":"2.0","id":2,"method":"large","params":{"text":"`+strings.Repeat("x", 1000)+`"}}`)))
	}()
	in := NewReader(near, 0)
	for id := 1; id <= 2; id++ {
		body, err := in.Next(nil)
		if err != nil || !strings.Contains(string(body), `"id":`+strconv.Itoa(id)) || strings.Contains(string(body), "error") {
			t.Errorf("answer %d: %s, %v", id, body, err)
		}
	}
}

// Requests of a peer that was not admitted are handled one after the other, so that it
// cannot make many goroutines wait.
func TestRequestsBeforeAPeerIsAdmittedAreHandledOneByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running, most atomic.Int32
		open := make(chan struct{})
		near, far := net.Pipe()
		server := New(far, Options{FirstFrame: 100, Handler: HandlerFunc(func(context.Context, *Request) (any, error) {
			most.Store(max(most.Load(), running.Add(1)))
			<-open
			running.Add(-1)
			return nil, nil
		})})
		ended := make(chan error, 1)
		go func() { ended <- server.Run(context.Background()) }()
		go func() {
			for id := range 10 {
				near.Write(AppendFrame(nil, []byte(`{"jsonrpc":"2.0","id":`+strconv.Itoa(id)+`,"method":"m"}`)))
			}
		}()
		go io.Copy(io.Discard, near)
		synctest.Wait()
		if most.Load() != 1 {
			t.Errorf("%d requests were handled at the same time", most.Load())
		}
		close(open)
		synctest.Wait()
		near.Close()
		<-ended
	})
}

func TestAPeerForWhichTooManyAnswersWaitIsDisconnected(t *testing.T) {
	for _, reads := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			near, far := net.Pipe()
			answer := raw(`"` + strings.Repeat("x", 1000) + `"`)
			server := New(far, Options{Outbox: 1000, MaxUnread: 5000, Handler: HandlerFunc(func(context.Context, *Request) (any, error) { return answer, nil })})
			ended := make(chan error, 1)
			go func() { ended <- server.Run(context.Background()) }()
			in := NewReader(near, 0)
			for id := range 20 {
				near.Write(AppendFrame(nil, []byte(`{"jsonrpc":"2.0","id":`+strconv.Itoa(id)+`,"method":"m"}`)))
				synctest.Wait()
				if reads {
					in.Next(nil)
				}
			}
			over := server.Err()
			near.Close()
			if err := <-ended; reads != (over == nil) || reads == errors.Is(err, ErrUnread) {
				t.Errorf("a peer that reads (%v) was disconnected: %v; the end: %v", reads, over, err)
			}
		})
	}
}

// One answer may be as large as it is, and small ones may wait behind it.
func TestALargeAnswerDoesNotEndTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		server := New(far, Options{Outbox: 100, MaxUnread: 2000, Handler: HandlerFunc(func(_ context.Context, req *Request) (any, error) {
			if req.Method == "large" {
				return raw(`"` + strings.Repeat("x", 100_000) + `"`), nil
			}
			return nil, nil
		})})
		ended := make(chan error, 1)
		go func() { ended <- server.Run(context.Background()) }()
		for id, method := range []string{"small", "small", "small", "large", "small", "small"} {
			near.Write(AppendFrame(nil, []byte(`{"jsonrpc":"2.0","id":`+strconv.Itoa(id)+`,"method":"`+method+`"}`)))
		}
		synctest.Wait()
		in := NewReader(near, 0)
		for range 6 {
			if _, err := in.Next(nil); err != nil {
				t.Errorf("an answer is missing: %v", err)
			}
		}
		near.Close()
		<-ended
	})
}
