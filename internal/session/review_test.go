package session_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/model/offline"
	"github.com/abide-run/abide/internal/session"
	"github.com/abide-run/abide/internal/session/sessiontest"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/turn"
)

// reviewed is the question of a reviewedTool.
const reviewed = `{"kind":"write","toolCallId":"c","intention":"i","fileName":"f","diff":"d","canOfferSessionApproval":false}`

// reviewedTool asks about what it has done, until there is an answer.
type reviewedTool struct {
	mu   sync.Mutex
	runs []string // key, attempt and answer of each run
}

func (*reviewedTool) Spec() tool.Spec {
	return tool.Spec{Name: "act", Replay: tool.Keyed, Detaches: true}
}

func (*reviewedTool) Permission(context.Context, tool.Call) (*approval.Request, error) {
	return nil, nil
}

func (r *reviewedTool) Run(_ context.Context, call tool.Call) (tool.Result, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	answer := "none"
	if call.Review != nil {
		answer = fmt.Sprint(call.Review.Approved, call.Review.Feedback)
	}
	r.runs = append(r.runs, fmt.Sprint(call.Attempt, " ", answer))
	if call.Review == nil {
		return tool.Result{Text: "put back", Review: json.RawMessage(reviewed)}, nil
	}
	return tool.Result{Text: "answered " + answer}, nil
}

// TestAReviewIsAskedOnceAndItsAnswerReachesTheTool: the call stays unfinished until then,
// also through a restart before and after the answer.
func TestAReviewIsAskedOnceAndItsAnswerReachesTheTool(t *testing.T) {
	for _, test := range []struct {
		decision turn.Decision
		want     string
		granted  string
	}{
		{turn.Decision{Kind: turn.ApproveOnce}, "answered true", event.Approved},
		{turn.Decision{Kind: turn.ApproveForSession, Approval: json.RawMessage(`{"kind":"write"}`)}, "answered true", event.Approved},
		{turn.Decision{Kind: turn.Reject, Feedback: "no"}, "answered falseno", event.DeniedByUser},
		{turn.Decision{Kind: turn.UserNotAvailable}, "answered false", event.DeniedNobody},
	} {
		for _, restart := range []bool{false, true} {
			act := &reviewedTool{}
			b := sessiontest.New(t, offline.Model{}, act)
			v := b.Create("s", &session.Client{Permission: true})
			b.Send("s", event.InputAcceptedData{Prompt: "Use act with value 'x', then reply with the result"})
			asked, _ := v.Await(t, 0, event.PermissionAsked)
			d, _ := event.As[event.PermissionAskedData](asked)
			if len(d.Grants) > 0 || string(d.PermissionRequest) != reviewed {
				t.Errorf("asked %+v", d)
			}
			if restart {
				b.Restart()
			}
			if won, err := b.Host.Answer(t.Context(), "s", turn.Answer{RequestID: d.RequestID, Permission: &test.decision}); err != nil || !won {
				t.Fatal(won, err)
			}
			awaitIdle(t, b, "s")
			var completed []string
			for _, e := range b.Verify("s") {
				switch e.Type {
				case event.ToolComplete:
					d, _ := event.As[event.ToolCompleteData](e)
					if d.Result == nil {
						t.Fatalf("%s: failed: %+v", test.decision.Kind, d.Error)
					}
					completed = append(completed, d.Result.Content)
				case event.PermissionDone:
					if d, _ := event.As[event.PermissionDoneData](e); d.Result.Kind != test.granted || len(d.Grants) > 0 {
						t.Errorf("%s is recorded as %+v", test.decision.Kind, d)
					}
				}
			}
			if !slices.Equal(completed, []string{test.want}) {
				t.Errorf("%s: results %q, want %q", test.decision.Kind, completed, test.want)
			}
			if len(act.runs) != 2 || !strings.HasPrefix(act.runs[0], "1 none") || !strings.HasPrefix(act.runs[1], "2 ") {
				t.Errorf("%s: runs %q", test.decision.Kind, act.runs)
			}
		}
	}
}

// TestAReviewWithNobodyToAsk: the result of the call says what became of it.
func TestAReviewWithNobodyToAsk(t *testing.T) {
	act := &reviewedTool{}
	b := sessiontest.New(t, offline.Model{}, act)
	b.Create("s", &session.Client{})
	b.Send("s", event.InputAcceptedData{Prompt: "Use act with value 'x', then reply with the result"})
	awaitIdle(t, b, "s")
	for _, e := range b.Verify("s") {
		if d, err := event.As[event.ToolCompleteData](e); e.Type == event.ToolComplete && (err != nil || d.Result == nil || d.Result.Content != "put back") {
			t.Errorf("%+v, %v", d, err)
		}
	}
	if len(act.runs) != 1 {
		t.Errorf("runs %q", act.runs)
	}
}

// TestAnAbortEndsAReview: the question is closed, the call has its terminal record, and
// a task that the call has left is watched.
func TestAnAbortEndsAReview(t *testing.T) {
	act := &reviewedTool{}
	b := sessiontest.New(t, offline.Model{}, act)
	v := b.Create("s", &session.Client{Permission: true})
	b.Send("s", event.InputAcceptedData{Prompt: "Use act with value 'x', then reply with the result"})
	v.Await(t, 0, event.PermissionAsked)
	if err := b.Host.Abort(t.Context(), "s", ""); err != nil {
		t.Fatal(err)
	}
	awaitIdle(t, b, "s")
	var kinds []event.Type
	for _, e := range b.Verify("s") {
		switch e.Type {
		case event.PermissionDone, event.ToolComplete, event.TaskStarted, event.ToolBegun:
			kinds = append(kinds, e.Type)
		}
	}
	if want := []event.Type{event.ToolBegun, event.PermissionDone, event.TaskStarted, event.ToolComplete}; !slices.Equal(kinds, want) {
		t.Errorf("recorded %q, want %q", kinds, want)
	}
}
