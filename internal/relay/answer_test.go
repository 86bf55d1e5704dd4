package relay

import (
	"fmt"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/jsonrpc"
)

const question = `{"id":7,"method":"userInput.request","params":{"sessionId":"a","requestId":"q1","question":"?"}}`

// asks makes the engines of the given generations ask right after connect.
func asks(body string, generations ...int) func(int, *fakeEngine) {
	return func(generation int, e *fakeEngine) {
		e.handler = func(e *fakeEngine, m jsonrpc.Message) bool {
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
		w := newSharedState(t, func(_ int, e *fakeEngine) {
			asks(body, 0)(0, e)
			e.answers = func(_ *fakeEngine, m jsonrpc.Message) { got <- m }
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
		w := newSharedState(t, asks(question, 0))
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
		w := newSharedState(t, func(generation int, e *fakeEngine) {
			asks(question, 0)(generation, e)
			e.answers = func(e *fakeEngine, _ jsonrpc.Message) { e.die() }
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
		w := newSharedState(t, func(generation int, e *fakeEngine) {
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
	plan := func(generation int, e *fakeEngine) {
		asks([]string{question, again}[min(generation, 1)], 0, 1)(generation, e)
		e.answers = func(e *fakeEngine, m jsonrpc.Message) {
			answers <- fmt.Sprintf("%d %s %s", e.generation, m.ID, m.Result)
		}
	}
	t.Run("while they think", func(t *testing.T) {
		w := newSharedState(t, plan)
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
		w := newSharedState(t, plan)
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
	w := newSharedState(t, func(generation int, e *fakeEngine) {
		asks(hook, 0, 1)(generation, e) // both use the same id
		e.answers = func(e *fakeEngine, m jsonrpc.Message) { got <- fmt.Sprintf("%d %s", e.generation, m.Result) }
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
	w := newSharedState(t, func(generation int, e *fakeEngine) {
		e.handler = func(e *fakeEngine, m jsonrpc.Message) bool {
			if m.Method != "abide.attach" {
				return false
			}
			e.answers = func(e *fakeEngine, _ jsonrpc.Message) { e.answer(m, `{}`) }
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
		w := newSharedState(t, func(generation int, e *fakeEngine) {
			e.handler = func(e *fakeEngine, m jsonrpc.Message) bool { return m.Method == "wait" }
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
		w := newSharedState(t, asks(question, 0))
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
