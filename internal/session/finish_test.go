package session_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/session"
	"github.com/abide-run/abide/internal/session/sessiontest"
)

// cutCall is a call whose arguments were cut off in a place where they are valid JSON.
var cutCall = []model.Call{{ID: "c", Name: "create", Arguments: json.RawMessage(`{}`)}}

func TestAnswersThatAreNotWhole(t *testing.T) {
	cut := func(text string) *model.Reply {
		return &model.Reply{Text: text, Finish: "length", Usage: model.Usage{Output: 100}}
	}
	for name, test := range map[string]struct {
		replies []*model.Reply // the last one is given again and again
		asked   int            // number of requests
		answer  string
		fails   string // type of the error that ends the turn
		says    string // part of its message
	}{
		"it goes on":           {[]*model.Reply{cut("one, "), cut("two, "), {Text: "three", Finish: "stop"}}, 3, "one, two, three", "", ""},
		"it never ends":        {[]*model.Reply{cut("on ")}, 5, "on on on on on ", "cut_off", "went on with it 4 times"},
		"nothing was left":     {[]*model.Reply{cut("all"), {Finish: "stop"}}, 2, "all", "", ""},
		"empty once":           {[]*model.Reply{{Finish: "stop"}, {Text: "here", Finish: "stop"}}, 2, "here", "", ""},
		"empty twice":          {[]*model.Reply{{Finish: "stop"}}, 2, "", "empty_answer", "asked once more"},
		"a refusal":            {[]*model.Reply{{Text: "I will not.", Finish: "refusal"}}, 1, "I will not.", "refusal", "refused to answer: I will not."},
		"a refusal, explained": {[]*model.Reply{{Text: "Half", Finish: "refusal", Declined: "policy 7"}}, 1, "Half", "refusal", "refused to answer: policy 7."},
		"a filter":             {[]*model.Reply{{Text: "Half of", Finish: "content_filter"}}, 1, "Half of", "content_filter", "content filter stopped the answer."},
		"a filter, no text":    {[]*model.Reply{{Finish: "content_filter"}}, 1, "", "content_filter", "content filter"},
		"a pause":              {[]*model.Reply{{Text: "one, ", Finish: "pause_turn"}, {Text: "two", Finish: "stop"}}, 2, "one, two", "", ""},
		"a pause, no text":     {[]*model.Reply{{Finish: "pause_turn"}, {Text: "two", Finish: "stop"}}, 2, "two", "", ""},
		"endless pauses":       {[]*model.Reply{{Text: "on ", Finish: "pause_turn"}}, 5, "on on on on on ", "paused", "went on with it 4 times"},
		"a call that was cut":  {[]*model.Reply{{Calls: cutCall, Finish: "length", Usage: model.Usage{Output: 100}}}, 4, "", "cut_off", "none of them was made"},
		"a filtered call":      {[]*model.Reply{{Calls: cutCall, Finish: "content_filter"}}, 1, "", "content_filter", "content filter"},
		"only thoughts":        {[]*model.Reply{{Finish: "length", Reasoning: &model.Reasoning{Text: "hm"}, Usage: model.Usage{Output: 100}}}, 4, "", "cut_off", "before it said anything"},
	} {
		t.Run(name, func(t *testing.T) {
			m := &functionModel{answer: func(n int, _ *model.Request) (*model.Reply, error) {
				return test.replies[min(n, len(test.replies))-1], nil
			}}
			b := sessiontest.New(t, m)
			v := b.Create("s", &session.Client{})
			b.Send("s", event.InputAcceptedData{Prompt: "hello"})
			v.Await(t, 0, event.SessionIdle)
			events := b.Verify("s")
			var failure event.SessionErrorData
			for _, e := range events {
				switch e.Type {
				case event.SessionError:
					failure, _ = event.As[event.SessionErrorData](e)
				case event.ToolStart:
					t.Error("a call was made")
				}
			}
			if len(m.asked) != test.asked || lastAnswer(t, events) != test.answer {
				t.Errorf("asked %d times, answer %q", len(m.asked), lastAnswer(t, events))
			}
			if failure.ErrorType != test.fails || !strings.Contains(failure.Message, test.says) || failure.EndsTurn != (test.fails != "") {
				t.Errorf("the turn ended with %+v", failure)
			}
		})
	}
}

// A call that was cut off is asked for with a larger limit, up to that of the model; then the
// model is told to be brief. The calls of a whole answer are made. A small limit is not merely
// doubled: the default of a server may be much too small for any call.
func TestACutOffCallIsAskedAgainWithALargerLimit(t *testing.T) {
	for longest, want := range map[int][]int{300: {0, 300, 300, 300}, 10_000: {0, 4096, 8192, 10_000}, 0: {0, 4096, 8192, 16_384}} {
		var limits []int
		var told []string
		m := &functionModel{answer: func(n int, req *model.Request) (*model.Reply, error) {
			limits = append(limits, req.MaxOutput)
			told = append(told, req.Messages[len(req.Messages)-1].Text)
			if n <= 3 {
				return &model.Reply{Calls: cutCall, Finish: "length", Usage: model.Usage{Output: int64(max(100, req.MaxOutput))}}, nil
			}
			return &model.Reply{Text: "ok", Finish: "stop"}, nil
		}}
		b := sessiontest.New(t, m)
		b.Host.Close()
		b.Options.Resolve = sessiontest.Always(session.Endpoint{Model: m, Name: "test", Longest: longest})
		b.Start()
		v := b.Create("s", &session.Client{})
		b.Send("s", event.InputAcceptedData{Prompt: "hello"})
		v.Await(t, 0, event.SessionIdle)
		if !slices.Equal(limits, want) {
			t.Errorf("limits %v, want %v", limits, want)
		}
		if brief := longest == 300; strings.Contains(told[2], "cut off") != brief || !strings.Contains(told[3], "cut off") {
			t.Errorf("up to %d tokens, the model was told %q", longest, told)
		}
		if got := lastAnswer(t, b.Verify("s")); got != "ok" {
			t.Errorf("answer %q", got)
		}
	}
}

// A dyingModel is cut off in its first answer. The process ends while it gives the second
// one, and the next process gets that.
type dyingModel struct {
	asked chan *model.Request
	n     atomic.Int32
	seen  chan struct{} // closed when somebody watches the next process
}

func (m *dyingModel) Ask(ctx context.Context, req *model.Request, _ func(model.Delta)) (*model.Reply, error) {
	m.asked <- req
	switch m.n.Add(1) {
	case 1:
		return &model.Reply{Text: "one, ", Finish: "length", Usage: model.Usage{Output: 100}}, nil
	case 2:
		<-ctx.Done()
		return nil, ctx.Err()
	}
	<-m.seen
	return &model.Reply{Text: "two", Finish: "stop"}, nil
}

// An answer that was cut off goes on in another process as it would have in the first one,
// and the model is shown its own part.
func TestACutOffAnswerGoesOnAfterACrash(t *testing.T) {
	m := &dyingModel{asked: make(chan *model.Request, 10), seen: make(chan struct{})}
	b := sessiontest.New(t, m)
	b.Create("s", &session.Client{})
	b.Send("s", event.InputAcceptedData{Prompt: "hello"})
	<-m.asked
	before := <-m.asked
	b.Host.Close()
	b.Start()
	v := b.Resume("s", session.Resume{}, &session.Client{})
	close(m.seen)
	v.Await(t, 0, event.SessionIdle)
	after := <-m.asked
	if n := len(after.Messages); n != len(before.Messages) || after.Messages[n-2].Text != "one, " || after.Messages[n-2].Role != model.Assistant || after.Messages[n-1].Text != before.Messages[n-1].Text {
		t.Errorf("the model was asked with %d messages, then with %d", len(before.Messages), n)
	}
	if got := lastAnswer(t, b.Verify("s")); got != "one, two" {
		t.Errorf("answer %q", got)
	}
}

// What the model has said of an answer is shown and stored as a message, also if the rest
// never comes.
func TestAnAnswerThatIsNotCompletedIsKept(t *testing.T) {
	for name, test := range map[string]struct {
		most  int // limit of the requests of a turn; none if zero
		fails string
		halt  bool
	}{
		"the request fails": {0, "auth", false},
		"too many requests": {1, "step_limit", false},
		"it is stopped":     {0, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			asked, release := make(chan struct{}, 10), make(chan struct{})
			m := &functionModel{answer: func(n int, _ *model.Request) (*model.Reply, error) {
				asked <- struct{}{}
				switch {
				case n == 1:
					return &model.Reply{Text: "one, ", Finish: model.FinishLength}, nil
				case test.halt:
					<-release
					return &model.Reply{Text: "two", Finish: model.FinishStop}, nil
				}
				return nil, &model.Error{Kind: model.KindAuth, Status: 401, Message: "no key."}
			}}
			b := sessiontest.New(t, m)
			v := sessiontest.NewViewer()
			view, err := b.Host.Create(t.Context(), "s", session.Spec{Config: event.SessionConfiguredData{MaxSteps: test.most}}, &session.Client{Viewer: v})
			if err == nil {
				err = view.CatchUp(t.Context())
			}
			if err != nil {
				t.Fatal(err)
			}
			b.Send("s", event.InputAcceptedData{Prompt: "hello"})
			<-asked
			if test.halt {
				<-asked
				if err := b.Host.Abort(t.Context(), "s", "test"); err != nil {
					t.Fatal(err)
				}
				close(release)
			}
			v.Await(t, 0, event.AssistantMessage)
			v.Await(t, 0, event.SessionIdle)
			b.Host.Close()
			n := len(m.asked)
			b.Start()
			b.Resume("s", session.Resume{}, &session.Client{})
			events := b.Verify("s")
			var failure event.SessionErrorData
			for _, e := range events {
				if e.Type == event.SessionError {
					failure, _ = event.As[event.SessionErrorData](e)
				}
			}
			if got := lastAnswer(t, events); got != "one, " || failure.ErrorType != test.fails {
				t.Errorf("answer %q, the turn ended with %+v", got, failure)
			}
			if len(m.asked) != n {
				t.Errorf("the model was asked %d times, then %d times", n, len(m.asked))
			}
		})
	}
}
