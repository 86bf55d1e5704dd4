package turn

import (
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/tool"
)

// A review is a permission question about what a call has done, and not about what it
// will do: a command has changed a file that it should have left alone, the change was
// put back, and a person decides whether it is made again. The call stays unfinished
// meanwhile. Whatever the answer is, the call is then run again under its key, and its
// tool does what the answer says; so a crash at any point is an ordinary recovery.

// review returns what is to be recorded when a person has decided about a review. A yes
// covers the changes that were shown, and nothing else.
func (a Answer) review(done event.PermissionDoneData) ([]event.Payload, error) {
	switch d := a.Permission; {
	case d.Kind == ApproveOnce, d.wide():
		done.Result.Kind = event.Approved
	case d.Kind == Reject:
		done.Result = event.PermissionResult{Kind: event.DeniedByUser, Feedback: d.Feedback}
	case d.Kind == UserNotAvailable:
		done.Result.Kind = event.DeniedNobody
	default:
		return nil, d.unknown()
	}
	return []event.Payload{done}, nil
}

// askReview returns the question about what a call has done, or nothing if nobody can be
// asked: then the result of the call says what became of it.
func askReview(s *State, call *Call, r tool.Result) []event.Payload {
	if r.Review == nil || !s.Setup.Declared.Permission {
		return nil
	}
	return []event.Payload{event.PermissionAskedData{
		RequestID: event.NewID(), ToolCallID: call.Request.ToolCallID, PermissionRequest: r.Review, PromptRequest: r.Review,
	}}
}
