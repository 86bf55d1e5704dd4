package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/offline"
	"github.com/abide-run/abide/internal/session"
	"github.com/abide-run/abide/internal/session/sessiontest"
	"github.com/abide-run/abide/internal/tool"
)

// deepObject is a JSON object of so many levels.
func deepObject(levels int) string {
	return strings.Repeat(`{"a":`, levels) + "1" + strings.Repeat("}", levels)
}

// deepCaller calls a tool with deep arguments, then repeats what it was told.
type deepCaller struct{ arguments string }

func (m deepCaller) Ask(_ context.Context, q *model.Request, _ func(model.Delta)) (*model.Reply, error) {
	if last := q.Messages[len(q.Messages)-1]; last.Role == model.ToolRole {
		return &model.Reply{Text: "told: " + last.Text}, nil
	}
	return &model.Reply{Calls: []model.Call{{ID: "c", Name: "note", Arguments: json.RawMessage(m.arguments)}}}, nil
}

func TestAnAnswerThatIsNestedTooDeeplyDamagesNothing(t *testing.T) {
	for _, levels := range []int{event.MaxDepth, event.MaxDepth + 1, 9000, 9990, 9994, 9996, 9998, 9999, 10000, 10001, 30000} {
		for _, ask := range []bool{false, true} {
			t.Run(fmt.Sprint(levels, ask), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					note := &countingTool{name: "note", ask: ask}
					b := sessiontest.New(t, deepCaller{deepObject(levels)}, note)
					b.Create("s", &session.Client{})
					b.Send("s", event.InputAcceptedData{Prompt: "go"})
					synctest.Wait()
					b.Restart()
					synctest.Wait()
					st, err := b.Host.Status(t.Context(), "s")
					if err != nil || st.Active {
						t.Fatalf("the session is active (%v) or unreadable: %v", st.Active, err)
					}
					events := b.Verify("s")
					if said := lastAnswer(t, events); levels > event.MaxDepth && !strings.Contains(said, "deeper than 500 levels") && !strings.Contains(said, "not valid JSON") {
						t.Errorf("the model was %.200s", said)
					}
					for _, e := range events {
						if !json.Valid(e.Bytes) {
							t.Errorf("event %d (%s) cannot be decoded", e.Seq, e.Type)
						}
					}
					b.Host.Close()
				})
			})
		}
	}
}

func TestAHookWhoseOutputIsNestedTooDeeplyCountsAsAbsent(t *testing.T) {
	for _, says := range []string{`{"modifiedArgs":` + deepObject(event.MaxDepth) + `}`, `{"modifiedArgs":` + deepObject(9998) + `}`, `{`} {
		synctest.Test(t, func(t *testing.T) {
			note := &countingTool{name: "note"}
			b := sessiontest.New(t, deepCaller{`{}`}, note)
			hooks := &hookClient{says: map[string]string{event.HookPreToolUse: says}}
			b.Create("s", &session.Client{Hook: hooks.hook})
			b.Send("s", event.InputAcceptedData{Prompt: "go"})
			synctest.Wait()
			b.Restart()
			st, err := b.Host.Status(t.Context(), "s")
			if err != nil || st.Active {
				t.Errorf("the session is active (%v) or unreadable: %v", st.Active, err)
			}
			if note.runs != 1 {
				t.Errorf("the tool ran %d times", note.runs)
			}
			b.Host.Close()
		})
	}
}

// deepTool gives a result that cannot be stored.
type deepTool struct{ contents string }

func (deepTool) Spec() tool.Spec                                                  { return tool.Spec{Name: "note"} }
func (deepTool) Permission(context.Context, tool.Call) (*approval.Request, error) { return nil, nil }

func (d deepTool) Run(context.Context, tool.Call) (tool.Result, error) {
	return tool.Result{Text: "fine", Contents: json.RawMessage(d.contents)}, nil
}

func TestAToolWhoseResultCannotBeStoredHasFailed(t *testing.T) {
	for _, contents := range []string{deepObject(10001), deepObject(9998), deepObject(event.MaxDepth + 1), `{`} {
		synctest.Test(t, func(t *testing.T) {
			b := sessiontest.New(t, deepCaller{`{}`}, deepTool{contents})
			b.Create("s", &session.Client{})
			b.Send("s", event.InputAcceptedData{Prompt: "go"})
			synctest.Wait()
			b.Restart()
			synctest.Wait()
			if said := lastAnswer(t, b.Verify("s")); !strings.Contains(said, "its result cannot be used") {
				t.Errorf("the model was %.200s", said)
			}
			b.Host.Close()
		})
	}
}

// addRaw appends an event with a body of our own to a session.
func addRaw(t testing.TB, store eventlog.Store, id event.SessionID, kind event.Type, body string) {
	t.Helper()
	s, err := store.Session(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf(`{"type":%q,"id":%q,"timestamp":%q,"parentId":null,"data":%s}`, kind, event.NewID(), event.FormatTime(time.Now()), body)
	if _, err := store.Append(t.Context(), id, eventlog.Batch{After: s.End, Events: []event.Event{{Type: kind, Bytes: []byte(text)}}}); err != nil {
		t.Fatal(err)
	}
}

func TestAKindThatThisVersionDoesNotKnowIsNoDamage(t *testing.T) {
	b := sessiontest.New(t, offline.Model{})
	b.Create("s", &session.Client{})
	b.Host.Close()
	addRaw(t, b.Store, "s", "future.kind", `{"of":["a",{"later":"version"}]}`)
	b.Start()
	if _, err := b.Host.Log.Verify(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	v := b.Resume("s", session.Resume{}, &session.Client{})
	b.Send("s", event.InputAcceptedData{Prompt: "Reply with exactly: HELLO"})
	v.Await(t, 0, event.SessionIdle)
	if got := lastAnswer(t, b.Verify("s")); got != "HELLO" {
		t.Errorf("answer = %q", got)
	}
}

func TestVerifyingLiftsTheQuarantineOfASessionThatIsWhole(t *testing.T) {
	b := sessiontest.New(t, offline.Model{})
	b.Create("s", &session.Client{})
	b.Host.Close()
	if err := b.Store.Quarantine(t.Context(), "s", &eventlog.Damage{Seq: 2, Reason: "an older version could not read it"}); err != nil {
		t.Fatal(err)
	}
	b.Start()
	if _, err := b.Host.Status(t.Context(), "s"); err == nil {
		t.Fatal("a quarantined session was opened")
	}
	if end, err := b.Host.Log.Verify(t.Context(), "s"); err != nil || end.Seq != 2 {
		t.Fatalf("verify = %v, %v", end, err)
	}
	v := b.Resume("s", session.Resume{}, &session.Client{})
	b.Send("s", event.InputAcceptedData{Prompt: "Reply with exactly: HELLO"})
	v.Await(t, 0, event.SessionIdle)
}

func TestVerifyingFindsAnEventThatCannotBeRead(t *testing.T) {
	b := sessiontest.New(t, offline.Model{})
	b.Create("s", &session.Client{})
	b.Host.Close()
	addRaw(t, b.Unchecked, "s", event.SessionConfigured, `{"model":7}`)
	b.Start()
	for range 2 { // the mark is lifted and set again
		_, err := b.Host.Log.Verify(t.Context(), "s")
		if d, ok := errors.AsType[*eventlog.Damage](err); !ok || d.Seq != 3 {
			t.Fatalf("verify = %v, want damage at 3", err)
		}
		if s, err := b.Store.Session(t.Context(), "s"); err != nil || s.Damage == nil || s.Damage.Seq != 3 {
			t.Fatalf("session = %+v, %v; want it quarantined", s, err)
		}
	}
	if _, err := b.Host.Log.Verify(t.Context(), "none"); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("verify of no session: %v", err)
	}
}
