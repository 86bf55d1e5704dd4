package turn

import (
	"slices"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/tool"
)

// A review is a permission question about what a call has done, and not about what it
// will do: a command has changed a file that it should have left alone, the change was
// put back, and a person decides whether it is made again. The call stays unfinished
// meanwhile. Whatever the answer is, the call is then run again under its key, and its
// tool does what the answer says; so a crash at any point is an ordinary recovery.

// askPermission takes in a permission question. A question about a call that was begun
// is a review.
func (t *Turn) askPermission(e event.Event, d event.PermissionAskedData) {
	begun := slices.ContainsFunc(t.Calls, func(c *Call) bool { return c.Request.ToolCallID == d.ToolCallID && c.Stage == Begun })
	c := t.ask(e, d.ToolCallID, WaitingPermission, d.RequestID)
	switch {
	case c == nil:
	case begun:
		c.Reviewing, c.Review = true, &tool.Review{Shown: d.PermissionRequest}
	default:
		c.Grants, c.Shown = d.Grants, d.PermissionRequest
		if d.Abide != nil {
			c.Offers = d.Abide.Offers
		}
	}
}

// endPermission takes in the answer to a permission question.
func (t *Turn) endPermission(d event.PermissionDoneData) {
	i := slices.IndexFunc(t.Calls, func(c *Call) bool { return c.Request.ToolCallID == d.ToolCallID && c.Reviewing })
	if i < 0 {
		if approved(d.Result) {
			if c := t.move(d.ToolCallID, Permitted); c != nil {
				c.Approved = d.RequestID
			}
		}
		return
	}
	c := t.Calls[i]
	c.Reviewing = false
	c.Review = &tool.Review{Shown: c.Review.Shown, Approved: approved(d.Result), Feedback: d.Result.Feedback}
	t.move(d.ToolCallID, Begun)
}

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
