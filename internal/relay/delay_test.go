package relay

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abide-run/abide/internal/jsonrpc"
)

var errNoRoom = errors.New("the disk is full: free some space")

// scarce dials as a world does, but without room there is no engine for now. It
// says on a channel that it found that out.
func scarce(w *sharedState, room *atomic.Bool, found chan<- struct{}) func(context.Context) (net.Conn, error) {
	return func(ctx context.Context) (net.Conn, error) {
		if room.Load() {
			return w.dial(ctx)
		}
		select {
		case found <- struct{}{}:
			return nil, &Delay{errNoRoom}
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func TestWithoutAnEngineForLongOnlyWhatNoneHasSeenIsRefused(t *testing.T) {
	w := newSharedState(t, func(generation int, e *fakeEngine) {
		if generation == 0 {
			e.fatal = func(method string, p phase) bool { return method == "work" && p == stored }
		}
	})
	var room atomic.Bool
	room.Store(true)
	found := make(chan struct{})
	c, _ := connect(t, Options{Dial: scarce(w, &room, found)})
	c.call(`1`, "ping", `{}`)
	room.Store(false)
	c.send(`{"jsonrpc":"2.0","id":2,"method":"work","params":{"n":1}}`)
	<-found // the engine is lost
	go func() {
		for range found {
		}
	}()
	for _, id := range []string{`3`, `4`} { // each as soon as it can be told
		fault := c.call(id, "ping", `{}`).Failure()
		if fault == nil || fault.Code != jsonrpc.CodeInternal || fault.Message !=
			"ping was not begun, because there is no engine for now; it can be tried again: the disk is full: free some space" {
			t.Errorf("the answer is %+v", fault)
		}
	}
	room.Store(true)
	defer close(found)
	if m := c.answer(`2`); m.Err != nil {
		t.Errorf("what an engine had seen was refused: %s", m.Err)
	}
	if m := c.call(`5`, "ping", `{}`); m.Err != nil {
		t.Errorf("when it is tried again: %s", m.Err)
	}
}

func TestAClientWithoutARequestIsToldThatThereWillBeNoEngine(t *testing.T) {
	c, ended := connect(t, Options{Dial: func(context.Context) (net.Conn, error) { return nil, errNoRoom }})
	if fault := c.answer("null").Failure(); fault.Message != errNoRoom.Error() {
		t.Errorf("the client was told %v", fault)
	}
	if err := <-ended; err != errNoRoom {
		t.Errorf("Run returned %v", err)
	}
}

func TestWhoWasNotLetInIsToldNothing(t *testing.T) {
	nobody := func(jsonrpc.Message) *jsonrpc.Error { return jsonrpc.Errorf(-32001, "AUTHENTICATION_REQUIRED") }
	c, ended := connect(t, Options{Admit: nobody, Dial: func(context.Context) (net.Conn, error) { return nil, errNoRoom }})
	<-ended
	<-c.over
	if len(c.answers) > 0 {
		t.Errorf("the client was told %v", c.answers)
	}
}

func TestAnAnswerThatWillNeverComeIsOneOfDoubt(t *testing.T) {
	w := newSharedState(t, func(_ int, e *fakeEngine) {
		e.fatal = func(method string, p phase) bool { return method == "work" && p == stored }
	})
	var dials atomic.Int32
	c, _ := connect(t, Options{Dial: func(ctx context.Context) (net.Conn, error) {
		if dials.Add(1) > 1 {
			return nil, errNoRoom
		}
		return w.dial(ctx)
	}})
	fault := c.call(`1`, "work", `{"n":1}`).Failure()
	if fault == nil || !strings.Contains(fault.Message, errNoRoom.Error()+" (it is not known whether work was carried out") {
		t.Errorf("the answer is %+v", fault)
	}
}

func TestAnEngineThatDoesNotAnswerIsToldOfUntilItDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		engine, engineFar := net.Pipe()
		silent := 0
		r, err := New(far, Options{
			Dial:   func(context.Context) (net.Conn, error) { return engineFar, nil },
			Silent: func() { silent++ },
		})
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- r.Run(t.Context()) }()
		in := jsonrpc.NewReader(engine, 0)
		body, err := in.Next(nil)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(3*time.Second + time.Millisecond)
		synctest.Wait()
		if silent != 3 {
			t.Errorf("after three seconds it was told %d times", silent)
		}
		m, _ := jsonrpc.Parse(body)
		out := jsonrpc.NewOutbox(engine, 1<<10, 0)
		go out.Run()
		out.Put(t.Context(), []byte(`{"jsonrpc":"2.0","id":`), m.ID, []byte(`,"result":{}}`))
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if silent != 3 {
			t.Errorf("after the answer it was told %d times", silent)
		}
		near.Close()
		engine.Close()
		out.Close()
		<-done
	})
}
