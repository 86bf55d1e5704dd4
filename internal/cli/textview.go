package cli

import (
	"strings"

	"github.com/abide-run/abide/internal/event"
)

// A textView writes the answer to stdout. On a terminal it writes text as it arrives,
// including that of the steps before the answer.
type textView struct {
	out      *printer
	progress *progress
	live     bool

	// The message that is arriving: its id, and the text that was written.
	message string
	shown   string
	wrote   bool // true if a message was written
}

func (a *app) newTextView() *textView {
	return &textView{out: a.out, progress: a.newProgress(), live: terminal(a.out) != nil}
}

func (v *textView) begin(o opening) { v.progress.begin(o) }

func (v *textView) event(e event.Event) {
	if v.live {
		v.progress.thoughts(e)
		show(streamedEvents, v, e)
	}
	v.progress.event(e)
}

// streamedEvents are the types of events that are written as text arrives.
var streamedEvents = eventHandlers[*textView]{
	event.MessageDelta:     handles((*textView).delta),
	event.AssistantMessage: handles((*textView).whole),
}

func (v *textView) delta(d event.MessageDeltaData) {
	if d.MessageID != v.message {
		v.message = d.MessageID
		if rest, goesOn := strings.CutPrefix(d.DeltaContent, v.shown); goesOn && v.shown != "" {
			d.DeltaContent = rest // the model goes on with an answer that was cut off
		} else {
			v.breakOff()
			v.message = d.MessageID
		}
	}
	v.shown += d.DeltaContent
	v.out.printf("%s", plain(d.DeltaContent))
}

// breakOff ends the line of a message that will not be completed.
func (v *textView) breakOff() {
	if v.shown != "" {
		v.out.printf("…\n")
	}
	v.message, v.shown = "", ""
}

// whole writes the rest of a message that is complete.
func (v *textView) whole(d event.AssistantMessageData) {
	if d.Earlier > 0 && d.Earlier == len(d.Content) && strings.HasPrefix(v.shown, d.Content) {
		v.endShown(d.Content)
		return
	}
	rest, goesOn := strings.CutPrefix(d.Content, v.shown)
	if d.MessageID != v.message || !goesOn {
		v.breakOff()
		rest = d.Content
	}
	v.message, v.shown = "", ""
	if d.Content != "" {
		v.wrote = true
		v.out.printf("%s", withNewline(plain(rest), d.Content))
	}
}

// endShown ends the line of a message all of which was written as earlier parts: the model
// has added nothing to them, or did not come to the end of what it added.
func (v *textView) endShown(content string) {
	if v.shown == content {
		v.out.printf("%s", withNewline("", content))
		v.shown = ""
	}
	v.breakOff()
	v.wrote = true
}

// withNewline appends a line break to the end of a message, unless it has one.
func withNewline(text, whole string) string {
	if strings.HasSuffix(whole, "\n") {
		return text
	}
	return text + "\n"
}

func (v *textView) end(r result) {
	v.breakOff()
	switch {
	case r.Result == "" || v.wrote:
	case v.live:
		v.out.printf("%s", withNewline(plain(r.Result), r.Result))
	default:
		v.out.printf("%s", withNewline(r.Result, r.Result))
	}
	v.progress.end(r)
}
