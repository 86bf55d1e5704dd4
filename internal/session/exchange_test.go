package session_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/model/offline"
	"github.com/abide-run/abide/internal/session"
	"github.com/abide-run/abide/internal/turn"
)

// join attaches another client to a session.
func (b *bench) join(id event.SessionID, c *session.Client, r session.Resume) *viewer {
	b.t.Helper()
	v := newViewer()
	c.Viewer = v
	view, err := b.host.Resume(b.t.Context(), id, r, c)
	if err == nil {
		err = view.CatchUp(b.t.Context())
	}
	if err != nil {
		b.t.Fatal(err)
	}
	return v
}

func yes() *bool { t := true; return &t }

// TestAFormOutlivesTheRuntime: whoever asked asks again with the same key, and
// gets the answer that was given meanwhile.
func TestAFormOutlivesTheRuntime(t *testing.T) {
	for _, answered := range []string{"before the restart", "after it"} {
		t.Run(answered, func(t *testing.T) {
			b := newBench(t, offline.Model{})
			v := b.create("s", &session.Client{Forms: true})
			form := event.ElicitationAskedData{Message: "Name?", Schema: []byte(`{"type":"object","properties":{}}`), Key: "k"}
			keep := func() bool { return true }
			lost, leave := context.WithCancel(t.Context())
			over := make(chan error, 1)
			go func() { _, err := b.host.Questions.Elicit(lost, "s", form, keep); over <- err }()
			e, _ := v.await(t, 0, event.ElicitationAsked)
			d, _ := event.As[event.ElicitationAskedData](e)
			leave()
			<-over
			answer := func() {
				won, err := b.host.Questions.FillIn(t.Context(), "s", d.RequestID, "a", turn.Filled{Action: turn.Accept, Content: []byte(`{"name":"Mona"}`)})
				if !won || err != nil {
					t.Fatal(won, err)
				}
			}
			if answered == "before the restart" {
				answer()
			}
			b.restart()
			if answered == "after it" {
				st, err := b.host.Status(t.Context(), "s")
				if err != nil || len(st.Questions) != 1 {
					t.Fatalf("%d questions are open, %v", len(st.Questions), err)
				}
				answer()
			}
			filled, err := b.host.Questions.Elicit(t.Context(), "s", form, keep)
			if err != nil || filled.Action != turn.Accept || string(filled.Content) != `{"name":"Mona"}` {
				t.Errorf("filled %+v, %v", filled, err)
			}
			if won, _ := b.host.Questions.FillIn(t.Context(), "s", d.RequestID, "a", turn.Filled{Action: turn.Accept}); !won {
				t.Error("the same answer, given again, has not won")
			}
			if won, _ := b.host.Questions.FillIn(t.Context(), "s", d.RequestID, "b", turn.Filled{Action: turn.Accept}); won {
				t.Error("a second answer has won")
			}
		})
	}
}

func TestAFormNeedsSomebodyWhoCanFillItIn(t *testing.T) {
	b := newBench(t, offline.Model{})
	b.create("s", &session.Client{})
	_, err := b.host.Questions.Elicit(t.Context(), "s", event.ElicitationAskedData{Message: "?"}, func() bool { return false })
	if !errors.Is(err, session.ErrNobody) {
		t.Error(err)
	}
}

// TestACommandIsCarriedOutOnce: a request that is made again, because the runtime
// died before its reply, waits for the same command.
func TestACommandIsCarriedOutOnce(t *testing.T) {
	b := newBench(t, offline.Model{})
	client := func() *session.Client { return &session.Client{Commands: []event.Command{{Name: "deploy"}}} }
	v := b.create("s", client())
	lost, leave := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { _, err := b.host.Commands.Execute(lost, "s", "deploy", "x", "k"); over <- err }()
	e, _ := v.await(t, 0, event.CommandExecute)
	d, _ := event.As[event.CommandExecuteData](e)
	leave()
	<-over
	b.restart()
	b.join("s", client(), session.Resume{Continue: yes()})
	done := make(chan string, 1)
	go func() { fault, _ := b.host.Commands.Execute(t.Context(), "s", "deploy", "x", "k"); done <- fault }()
	if won, err := b.host.Commands.Finish(t.Context(), "s", d.RequestID, "", "it broke"); !won || err != nil {
		t.Fatal(won, err)
	}
	if fault := <-done; fault != "it broke" {
		t.Errorf("fault = %q", fault)
	}
	n := 0
	for _, e := range b.verify("s") {
		if e.Type == event.CommandExecute {
			n++
		}
	}
	if n != 1 {
		t.Errorf("the client was asked %d times", n)
	}
}

func TestQueuedCommandsAndTheirOrderOutliveTheRuntime(t *testing.T) {
	b := newBench(t, offline.Model{})
	client := &session.Client{Commands: []event.Command{{Name: "go"}}}
	b.create("s", client)
	hold := func(paused bool) {
		t.Helper()
		if _, err := b.host.Queues.Change(t.Context(), "s", "", func(q *session.Queue) error { return q.Pause(paused) }); err != nil {
			t.Fatal(err)
		}
	}
	hold(true)
	first := b.send("s", event.InputAcceptedData{Prompt: "Reply with exactly: ONE"})
	second := b.send("s", event.InputAcceptedData{Prompt: "/go now"})
	b.host.Queues.Change(t.Context(), "s", "", func(q *session.Queue) error { q.Move(second, 0); return nil })
	b.restart()
	st, err := b.host.Status(t.Context(), "s")
	if err != nil || len(st.Queue) != 2 || st.Queue[0].InputID != second || st.Queue[1].InputID != first || !st.Paused {
		t.Fatalf("the queue is %+v, %v", st.Queue, err)
	}
	v := b.join("s", &session.Client{Commands: client.Commands}, session.Resume{Continue: yes()})
	hold(false)
	e, _ := v.await(t, 0, event.CommandExecute)
	d, _ := event.As[event.CommandExecuteData](e)
	b.restart() // the command is with a client
	v = b.join("s", &session.Client{Commands: client.Commands}, session.Resume{Continue: yes()})
	if won, err := b.host.Commands.Finish(t.Context(), "s", d.RequestID, "", ""); !won || err != nil {
		t.Fatal(won, err)
	}
	v.await(t, 0, event.SessionIdle)
	if got := lastAnswer(t, b.verify("s")); got != "ONE" {
		t.Errorf("answer = %q", got)
	}
}

func TestDecliningPendingWorkLetsTheQueueGoOn(t *testing.T) {
	b := newBench(t, offline.Model{})
	client := &session.Client{Commands: []event.Command{{Name: "go"}}}
	v := b.create("s", client)
	b.send("s", event.InputAcceptedData{Prompt: "/go now"})
	b.send("s", event.InputAcceptedData{Prompt: "Reply with exactly: ONE"})
	v.await(t, 0, event.CommandExecute)
	b.host.Detach("s", client, false)
	v = b.join("s", &session.Client{}, session.Resume{})
	v.await(t, 0, event.SessionIdle)
	if got := lastAnswer(t, b.verify("s")); got != "ONE" {
		t.Errorf("answer = %q", got)
	}
}

func TestASuspendedTurnOutlivesTheRuntime(t *testing.T) {
	b := newBench(t, offline.Model{})
	tools := []event.ExternalTool{{Name: "act", SkipPermission: true}}
	client := &session.Client{Tools: tools}
	v := b.create("s", client)
	b.send("s", event.InputAcceptedData{Prompt: "Use act with value 'x', then reply with the result"})
	e, _ := v.await(t, 0, event.ExternalAsked)
	d, _ := event.As[event.ExternalAskedData](e)
	b.send("s", event.InputAcceptedData{Prompt: "Reply with exactly: NEXT"})
	if err := b.host.Suspend(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	b.restart()
	if won, err := b.host.Answer(t.Context(), "s", turn.Answer{RequestID: d.RequestID, External: &turn.ExternalResult{Text: "DONE"}}); !won || err != nil {
		t.Fatal(won, err)
	}
	if got := lastAnswer(t, b.verify("s")); strings.Contains(got, "DONE") {
		t.Error("a suspended session went on")
	}
	v = b.join("s", &session.Client{Tools: tools}, session.Resume{Continue: yes()})
	v.await(t, 0, event.SessionIdle)
	var answers []string
	for _, e := range b.verify("s") {
		if e.Type == event.AssistantMessage {
			d, _ := event.As[event.AssistantMessageData](e)
			answers = append(answers, d.Content)
		}
	}
	if len(answers) != 3 || !strings.Contains(answers[1], "DONE") || !strings.Contains(answers[2], "NEXT") {
		t.Errorf("answers = %q", answers)
	}
}

func TestWhatClientsSayAboutPermissionsOutlivesTheRuntime(t *testing.T) {
	b := newBench(t, offline.Model{})
	b.create("s", &session.Client{Permission: true, Tools: []event.ExternalTool{{Name: "act"}}})
	if err := b.host.Permissions.AllowAll(t.Context(), "s", true); err != nil {
		t.Fatal(err)
	}
	if err := b.host.Permissions.ChangeRules(t.Context(), "s", func(r *event.ClientRules) error { r.Directories = []string{"/x"}; return nil }); err != nil {
		t.Fatal(err)
	}
	b.restart()
	st, err := b.host.Status(t.Context(), "s")
	if err != nil || !st.AllowsAll || !slices.Equal(st.Rules.Directories, []string{"/x"}) {
		t.Errorf("%+v, %v", st.Rules, err)
	}
	v := b.join("s", &session.Client{Permission: true, Tools: []event.ExternalTool{{Name: "act"}}}, session.Resume{})
	b.send("s", event.InputAcceptedData{Prompt: "Use act with value 'x', then reply with the result"})
	v.await(t, 0, event.ExternalAsked)
	if slices.Contains(v.kinds(), event.PermissionAsked) {
		t.Error("somebody was asked")
	}
}

func TestAConnectionMayAttachAgainWithItsTools(t *testing.T) {
	b := newBench(t, offline.Model{})
	client := &session.Client{Tools: []event.ExternalTool{{Name: "act"}}}
	b.create("s", client)
	again := &session.Client{Tools: client.Tools, Viewer: client.Viewer}
	if _, err := b.host.Resume(t.Context(), "s", session.Resume{}, again); err != nil {
		t.Error(err)
	}
	other := &session.Client{Tools: client.Tools, Viewer: newViewer()}
	if _, err := b.host.Resume(t.Context(), "s", session.Resume{}, other); !errors.Is(err, session.ErrClash) {
		t.Errorf("another connection with the same tool: %v", err)
	}
}

func TestAFormOfASessionThatIsDeletedHasNoAnswer(t *testing.T) {
	b := newBench(t, offline.Model{})
	v := b.create("s", &session.Client{Forms: true})
	over := make(chan error, 1)
	go func() {
		_, err := b.host.Questions.Elicit(context.Background(), "s", event.ElicitationAskedData{Message: "?"}, func() bool { return true })
		over <- err
	}()
	v.await(t, 0, event.ElicitationAsked)
	if err := b.host.Delete(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	if err := <-over; !errors.Is(err, session.ErrNotFound) {
		t.Errorf("err = %v", err)
	}
}
