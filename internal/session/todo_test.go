package session_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/model/offline"
	"github.com/abide-run/abide/internal/session"
	"github.com/abide-run/abide/internal/session/sessiontest"
	"github.com/abide-run/abide/internal/tool/todo"
)

const twoTasks = `Call task_create with {"subject":"one"} and task_create with {"subject":"two"}`

// todosOf is the list of a session as a line.
func todosOf(t testing.TB, b *sessiontest.Fixture, id event.SessionID) string {
	t.Helper()
	list, err := b.Host.Todos.List(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	var words []string
	for _, e := range list {
		words = append(words, fmt.Sprintf("%d %s %s", e.ID, e.Subject, e.Status))
	}
	return strings.Join(words, ", ")
}

// say sends a message and waits for the end of its turn.
func say(t testing.TB, b *sessiontest.Fixture, v *sessiontest.Viewer, prompt string) string {
	t.Helper()
	n := len(v.Kinds())
	b.Send("s", event.InputAcceptedData{Prompt: prompt})
	v.Await(t, n, event.SessionIdle)
	return lastAnswer(t, b.Verify("s"))
}

func TestTheModelKeepsAList(t *testing.T) {
	b := sessiontest.New(t, offline.Model{}, todo.New()...)
	v := b.Create("s", &session.Client{})
	if got, want := say(t, b, v, twoTasks), "Created task 1 [pending] one\nCreated task 2 [pending] two"; got != want {
		t.Errorf("calls of one answer give %q, want %q", got, want)
	}
	if got, want := say(t, b, v, `Use task_update with {"id":1,"status":"completed"}`), "Updated task 1 [completed] one"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := say(t, b, v, `Use task_update with {"id":5,"status":"completed"}`); !strings.Contains(got, "There is no task 5") {
		t.Errorf("an unknown task: %q", got)
	}
	const want = "1 one completed, 2 two pending"
	if got := todosOf(t, b, "s"); got != want {
		t.Errorf("the list is %q, want %q", got, want)
	}
	b.Restart()
	if got := todosOf(t, b, "s"); got != want {
		t.Errorf("after a restart the list is %q, want %q", got, want)
	}
	told := 0
	for _, kind := range v.Kinds() {
		switch kind {
		case event.TodosChanged:
			told++
		case event.TodoChanged, event.PermissionAsked:
			t.Errorf("a client was shown %s", kind)
		}
	}
	if told != 2 {
		t.Errorf("clients were told %d times that the list has changed, want once for each of two turns", told)
	}
	if _, err := b.Host.Todos.List(t.Context(), "nope"); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("the list of no session: %v", err)
	}
}

// messageID finds the first message that begins so.
func messageID(t testing.TB, b *sessiontest.Fixture, prompt string) (string, event.Seq) {
	t.Helper()
	for _, e := range b.Verify("s") {
		if d, _ := event.As[event.UserMessageData](e); e.Type == event.UserMessage && strings.HasPrefix(d.Content, prompt) {
			head, err := e.Head()
			if err != nil {
				t.Fatal(err)
			}
			return head.ID, e.Seq
		}
	}
	t.Fatalf("nobody said %q", prompt)
	return "", 0
}

func TestARewindTakesTheListBackAndAForkKeepsIt(t *testing.T) {
	b := sessiontest.New(t, offline.Model{}, todo.New()...)
	v := b.Create("s", &session.Client{})
	say(t, b, v, twoTasks)
	say(t, b, v, `Use task_update with {"id":1,"status":"completed"}`)
	from, at := messageID(t, b, "Use task_update")
	for name, test := range map[string]struct {
		at   event.Seq
		want string
	}{
		"whole":  {0, "1 one completed, 2 two pending"},
		"before": {at - 1, "1 one pending, 2 two pending"},
	} {
		id, err := b.Host.Fork(t.Context(), "", "s", test.at, "")
		if err != nil {
			t.Fatal(err)
		}
		if got := todosOf(t, b, id); got != test.want {
			t.Errorf("%s: the fork has %q, want %q", name, got, test.want)
		}
	}
	n := len(v.Kinds())
	if _, err := b.Host.Rewind(t.Context(), "s", session.Rewind{EventID: from}); err != nil {
		t.Fatal(err)
	}
	v.Await(t, n, event.TodosChanged)
	for _, when := range []string{"after the rewind", "after a restart"} {
		if got, want := todosOf(t, b, "s"), "1 one pending, 2 two pending"; got != want {
			t.Errorf("%s the list is %q, want %q", when, got, want)
		}
		b.Restart()
	}
	first, _ := messageID(t, b, "Call task_create")
	if _, err := b.Host.Rewind(t.Context(), "s", session.Rewind{EventID: first}); err != nil {
		t.Fatal(err)
	}
	if got := todosOf(t, b, "s"); got != "" {
		t.Errorf("the list is %q, and nothing was ever said", got)
	}
	v = b.Resume("s", session.Resume{}, &session.Client{})
	if got, want := say(t, b, v, `Use task_create with {"subject":"again"}`), "Created task 1 [pending] again"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// A refusingAppendStore refuses one append with an event of a kind.
type refusingAppendStore struct {
	eventlog.Store
	kind event.Type

	mu      sync.Mutex
	refused int
	batches [][]event.Event
}

func (r *refusingAppendStore) Append(ctx context.Context, id event.SessionID, b eventlog.Batch) (eventlog.End, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refused == 0 && slices.Contains(kindsOf(b.Events), r.kind) {
		r.refused++
		return eventlog.End{}, errors.New("the disk is full")
	}
	r.batches = append(r.batches, b.Events)
	return r.Store.Append(ctx, id, b)
}

// together reports whether every change came with what its call gave.
func together(t testing.TB, batches [][]event.Event) (changes int) {
	t.Helper()
	for _, batch := range batches {
		made, results := 0, 0
		for _, e := range batch {
			switch e.Type {
			case event.TodoChanged:
				made++
			case event.ToolComplete:
				results++
			case event.HookStart:
				if d, _ := event.As[event.HookStartData](e); d.Outcome != nil {
					results++
				}
			}
		}
		if made > results {
			t.Errorf("an append has %d changes and %d results: %v", made, results, kindsOf(batch))
		}
		changes += made
	}
	return changes
}

func TestAChangeAndItsResultAreOneAppendOrNone(t *testing.T) {
	for _, hooked := range []bool{false, true} {
		t.Run(fmt.Sprintf("hooks=%v", hooked), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := sessiontest.New(t, offline.Model{}, todo.New()...)
				b.Host.Close()
				store := &refusingAppendStore{Store: b.Store, kind: event.TodoChanged}
				b.Store = store
				b.Start()
				defer b.Host.Close()
				client := &session.Client{}
				if e := (&hookClient{}); hooked {
					client.Hook = e.hook
				}
				v := b.Create("s", client)
				if got, want := say(t, b, v, twoTasks), "Created task 1 [pending] one\nCreated task 2 [pending] two"; got != want {
					t.Errorf("answer = %q, want %q", got, want)
				}
				if got, want := todosOf(t, b, "s"), "1 one pending, 2 two pending"; got != want {
					t.Errorf("the list is %q, want %q", got, want)
				}
				if n := together(t, store.batches); n != 2 || store.refused != 1 {
					t.Errorf("%d changes are stored, %d appends were refused", n, store.refused)
				}
			})
		})
	}
}
