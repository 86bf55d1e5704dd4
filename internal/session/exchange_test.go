package session_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/model/offline"
	"github.com/abide-run/abide/internal/session"
	"github.com/abide-run/abide/internal/session/sessiontest"
	"github.com/abide-run/abide/internal/turn"
)

func yes() *bool { t := true; return &t }

// TestAFormOutlivesTheRuntime: whoever asked asks again with the same key, and
// gets the answer that was given meanwhile.
func TestAFormOutlivesTheRuntime(t *testing.T) {
	for _, answered := range []string{"before the restart", "after it"} {
		t.Run(answered, func(t *testing.T) {
			b := sessiontest.New(t, offline.Model{})
			v := b.Create("s", &session.Client{Forms: true})
			form := event.ElicitationAskedData{Message: "Name?", Schema: []byte(`{"type":"object","properties":{}}`), Key: "k"}
			keep := func() bool { return true }
			lost, leave := context.WithCancel(t.Context())
			over := make(chan error, 1)
			go func() { _, err := b.Host.Questions.Elicit(lost, "s", form, keep); over <- err }()
			e, _ := v.Await(t, 0, event.ElicitationAsked)
			d, _ := event.As[event.ElicitationAskedData](e)
			leave()
			<-over
			answer := func() {
				won, err := b.Host.Questions.FillIn(t.Context(), "s", d.RequestID, "a", turn.Filled{Action: turn.Accept, Content: []byte(`{"name":"Mona"}`)})
				if !won || err != nil {
					t.Fatal(won, err)
				}
			}
			if answered == "before the restart" {
				answer()
			}
			b.Restart()
			if answered == "after it" {
				st, err := b.Host.Status(t.Context(), "s")
				if err != nil || len(st.Questions) != 1 {
					t.Fatalf("%d questions are open, %v", len(st.Questions), err)
				}
				answer()
			}
			filled, err := b.Host.Questions.Elicit(t.Context(), "s", form, keep)
			if err != nil || filled.Action != turn.Accept || string(filled.Content) != `{"name":"Mona"}` {
				t.Errorf("filled %+v, %v", filled, err)
			}
			if won, _ := b.Host.Questions.FillIn(t.Context(), "s", d.RequestID, "a", turn.Filled{Action: turn.Accept}); !won {
				t.Error("the same answer, given again, has not won")
			}
			if won, _ := b.Host.Questions.FillIn(t.Context(), "s", d.RequestID, "b", turn.Filled{Action: turn.Accept}); won {
				t.Error("a second answer has won")
			}
		})
	}
}

func TestAFormNeedsSomebodyWhoCanFillItIn(t *testing.T) {
	b := sessiontest.New(t, offline.Model{})
	b.Create("s", &session.Client{})
	_, err := b.Host.Questions.Elicit(t.Context(), "s", event.ElicitationAskedData{Message: "?"}, func() bool { return false })
	if !errors.Is(err, session.ErrNobody) {
		t.Error(err)
	}
}

// TestACommandIsCarriedOutOnce: a request that is made again, because the runtime
// died before its reply, waits for the same command.
func TestACommandIsCarriedOutOnce(t *testing.T) {
	b := sessiontest.New(t, offline.Model{})
	client := func() *session.Client { return &session.Client{Commands: []event.Command{{Name: "deploy"}}} }
	v := b.Create("s", client())
	lost, leave := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { _, err := b.Host.Commands.Execute(lost, "s", "deploy", "x", "k"); over <- err }()
	e, _ := v.Await(t, 0, event.CommandExecute)
	d, _ := event.As[event.CommandExecuteData](e)
	leave()
	<-over
	b.Restart()
	b.Resume("s", session.Resume{Continue: yes()}, client())
	done := make(chan string, 1)
	go func() { fault, _ := b.Host.Commands.Execute(t.Context(), "s", "deploy", "x", "k"); done <- fault }()
	if won, err := b.Host.Commands.Finish(t.Context(), "s", d.RequestID, "", "it broke"); !won || err != nil {
		t.Fatal(won, err)
	}
	if fault := <-done; fault != "it broke" {
		t.Errorf("fault = %q", fault)
	}
	n := 0
	for _, e := range b.Verify("s") {
		if e.Type == event.CommandExecute {
			n++
		}
	}
	if n != 1 {
		t.Errorf("the client was asked %d times", n)
	}
}

func TestQueuedCommandsAndTheirOrderOutliveTheRuntime(t *testing.T) {
	b := sessiontest.New(t, offline.Model{})
	client := &session.Client{Commands: []event.Command{{Name: "go"}}}
	b.Create("s", client)
	hold := func(paused bool) {
		t.Helper()
		if _, err := b.Host.Queues.Change(t.Context(), "s", "", func(q *session.Queue) error { return q.Pause(paused) }); err != nil {
			t.Fatal(err)
		}
	}
	hold(true)
	first := b.Send("s", event.InputAcceptedData{Prompt: "Reply with exactly: ONE"})
	second := b.Send("s", event.InputAcceptedData{Prompt: "/go now"})
	b.Host.Queues.Change(t.Context(), "s", "", func(q *session.Queue) error { q.Move(second, 0); return nil })
	b.Restart()
	st, err := b.Host.Status(t.Context(), "s")
	if err != nil || len(st.Queue) != 2 || st.Queue[0].InputID != second || st.Queue[1].InputID != first || !st.Paused {
		t.Fatalf("the queue is %+v, %v", st.Queue, err)
	}
	v := b.Resume("s", session.Resume{Continue: yes()}, &session.Client{Commands: client.Commands})
	hold(false)
	e, _ := v.Await(t, 0, event.CommandExecute)
	d, _ := event.As[event.CommandExecuteData](e)
	b.Restart() // the command is with a client
	v = b.Resume("s", session.Resume{Continue: yes()}, &session.Client{Commands: client.Commands})
	if won, err := b.Host.Commands.Finish(t.Context(), "s", d.RequestID, "", ""); !won || err != nil {
		t.Fatal(won, err)
	}
	v.Await(t, 0, event.SessionIdle)
	if got := lastAnswer(t, b.Verify("s")); got != "ONE" {
		t.Errorf("answer = %q", got)
	}
}

func TestDecliningPendingWorkLetsTheQueueGoOn(t *testing.T) {
	b := sessiontest.New(t, offline.Model{})
	client := &session.Client{Commands: []event.Command{{Name: "go"}}}
	v := b.Create("s", client)
	b.Send("s", event.InputAcceptedData{Prompt: "/go now"})
	b.Send("s", event.InputAcceptedData{Prompt: "Reply with exactly: ONE"})
	v.Await(t, 0, event.CommandExecute)
	b.Host.Detach("s", client, false)
	v = b.Resume("s", session.Resume{}, &session.Client{})
	v.Await(t, 0, event.SessionIdle)
	if got := lastAnswer(t, b.Verify("s")); got != "ONE" {
		t.Errorf("answer = %q", got)
	}
}

func TestASuspendedTurnOutlivesTheRuntime(t *testing.T) {
	b := sessiontest.New(t, offline.Model{})
	tools := []event.ExternalTool{{Name: "act", SkipPermission: true}}
	client := &session.Client{Tools: tools}
	v := b.Create("s", client)
	b.Send("s", event.InputAcceptedData{Prompt: "Use act with value 'x', then reply with the result"})
	e, _ := v.Await(t, 0, event.ExternalAsked)
	d, _ := event.As[event.ExternalAskedData](e)
	b.Send("s", event.InputAcceptedData{Prompt: "Reply with exactly: NEXT"})
	if err := b.Host.Suspend(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	b.Restart()
	if won, err := b.Host.Answer(t.Context(), "s", turn.Answer{RequestID: d.RequestID, External: &turn.ExternalResult{Text: "DONE"}}); !won || err != nil {
		t.Fatal(won, err)
	}
	if got := lastAnswer(t, b.Verify("s")); strings.Contains(got, "DONE") {
		t.Error("a suspended session went on")
	}
	v = b.Resume("s", session.Resume{Continue: yes()}, &session.Client{Tools: tools})
	v.Await(t, 0, event.SessionIdle)
	var answers []string
	for _, e := range b.Verify("s") {
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
	b := sessiontest.New(t, offline.Model{})
	b.Create("s", &session.Client{Permission: true, Tools: []event.ExternalTool{{Name: "act"}}})
	if err := b.Host.Permissions.AllowAll(t.Context(), "s", true); err != nil {
		t.Fatal(err)
	}
	if err := b.Host.Permissions.ChangeRules(t.Context(), "s", func(r *event.ClientRules) error { r.Directories = []string{"/x"}; return nil }); err != nil {
		t.Fatal(err)
	}
	b.Restart()
	st, err := b.Host.Status(t.Context(), "s")
	if err != nil || !st.AllowsAll || !slices.Equal(st.Rules.Directories, []string{"/x"}) {
		t.Errorf("%+v, %v", st.Rules, err)
	}
	v := b.Resume("s", session.Resume{}, &session.Client{Permission: true, Tools: []event.ExternalTool{{Name: "act"}}})
	b.Send("s", event.InputAcceptedData{Prompt: "Use act with value 'x', then reply with the result"})
	v.Await(t, 0, event.ExternalAsked)
	if slices.Contains(v.Kinds(), event.PermissionAsked) {
		t.Error("somebody was asked")
	}
}

// TestAClientIsNotShownTheEndOfWhatItsResumeDeclines: a client that sends a message as soon as
// its resume is answered would take that end for the end of its own turn.
func TestAClientIsNotShownTheEndOfWhatItsResumeDeclines(t *testing.T) {
	b := sessiontest.New(t, offline.Model{})
	client := func() *session.Client {
		return &session.Client{Permission: true, Tools: []event.ExternalTool{{Name: "act"}}}
	}
	v := b.Create("s", client())
	b.Send("s", event.InputAcceptedData{Prompt: "Use act with value 'x', then reply with the result"})
	v.Await(t, 0, event.PermissionAsked)
	b.Restart()
	v = b.Resume("s", session.Resume{}, client())
	if st, err := b.Host.Status(t.Context(), "s"); err != nil || st.Active {
		t.Errorf("the turn is not over when the resume is answered: %v", err)
	}
	b.Send("s", event.InputAcceptedData{Prompt: "Reply with exactly: NEXT"})
	v.Await(t, 0, event.SessionIdle)
	kinds := v.Kinds()
	if kinds[0] != event.SessionResume || slices.Index(kinds, event.AssistantMessage) < 0 {
		t.Errorf("the client was shown %v", kinds)
	}
	kinds = nil
	for e, err := range b.Host.Log.Events(t.Context(), "s", 0) {
		if err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, e.Type)
	}
	if idle := slices.Index(kinds, event.SessionIdle); idle < 0 || idle > slices.Index(kinds, event.SessionResume) {
		t.Errorf("the log has %v", kinds)
	}
}

func TestAConnectionMayAttachAgainWithItsTools(t *testing.T) {
	b := sessiontest.New(t, offline.Model{})
	client := &session.Client{Tools: []event.ExternalTool{{Name: "act"}}}
	b.Create("s", client)
	again := &session.Client{Tools: client.Tools, Viewer: client.Viewer}
	if _, err := b.Host.Resume(t.Context(), "s", session.Resume{}, again); err != nil {
		t.Error(err)
	}
	other := &session.Client{Tools: client.Tools, Viewer: sessiontest.NewViewer()}
	if _, err := b.Host.Resume(t.Context(), "s", session.Resume{}, other); !errors.Is(err, session.ErrClash) {
		t.Errorf("another connection with the same tool: %v", err)
	}
}

func TestAFormOfASessionThatIsDeletedHasNoAnswer(t *testing.T) {
	b := sessiontest.New(t, offline.Model{})
	v := b.Create("s", &session.Client{Forms: true})
	over := make(chan error, 1)
	go func() {
		_, err := b.Host.Questions.Elicit(context.Background(), "s", event.ElicitationAskedData{Message: "?"}, func() bool { return true })
		over <- err
	}()
	v.Await(t, 0, event.ElicitationAsked)
	if err := b.Host.Delete(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	if err := <-over; !errors.Is(err, session.ErrNotFound) {
		t.Errorf("err = %v", err)
	}
}

// TestWhoWaitsForAnAnswerIsToldAfterTheSessionWasUnloaded: the state of a session that
// nobody is attached to is taken out of memory, and those who wait are not forgotten.
func TestWhoWaitsForAnAnswerIsToldAfterTheSessionWasUnloaded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := sessiontest.New(t, offline.Model{})
		defer b.Host.Close()
		client := &session.Client{Forms: true}
		b.Create("s", client)
		filled := make(chan turn.Filled, 1)
		go func() {
			form := event.ElicitationAskedData{Message: "Name?", Schema: []byte(`{"type":"object","properties":{}}`)}
			f, err := b.Host.Questions.Elicit(t.Context(), "s", form, func() bool { return true })
			if err != nil {
				t.Error(err)
			}
			filled <- f
		}()
		synctest.Wait()
		b.Host.Detach("s", client, false)
		b.Host.Unload("s")
		st, err := b.Host.Status(t.Context(), "s")
		if err != nil || len(st.Questions) != 1 {
			t.Fatalf("the questions are %v, %v", st.Questions, err)
		}
		asked, err := event.As[event.ElicitationAskedData](st.Questions[0])
		if err != nil {
			t.Fatal(err)
		}
		if won, err := b.Host.Questions.FillIn(t.Context(), "s", asked.RequestID, "a", turn.Filled{Action: turn.Accept, Content: []byte(`{}`)}); !won || err != nil {
			t.Fatal(won, err)
		}
		synctest.Wait()
		select {
		case f := <-filled:
			if f.Action != turn.Accept {
				t.Errorf("filled %+v", f)
			}
		default:
			t.Error("whoever waits was not told the answer")
		}
	})
}
