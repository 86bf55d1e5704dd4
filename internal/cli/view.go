package cli

import (
	"github.com/abide-run/abide/internal/event"
)

// A view shows a run.
type view interface {
	// begin shows the session.
	begin(opening)
	// event shows an event.
	event(event.Event)
	// end shows the result. The program itself prints an error.
	end(result)
}

// An opening is the first line of a JSON stream.
type opening struct {
	Type      string          `json:"type"` // "system"
	Subtype   string          `json:"subtype"`
	SessionID event.SessionID `json:"session_id"`
	Cwd       string          `json:"cwd"`
	Model     string          `json:"model,omitempty"`
	Approve   string          `json:"approve"`
	Resumed   bool            `json:"resumed"`
	Version   string          `json:"version"`
}

// The output formats.
const (
	formatText   = "text"
	formatJSON   = "json"
	formatStream = "stream-json"
)

// newView returns the view for an output format.
func (a *app) newView(format string) view {
	switch format {
	case formatJSON:
		return &jsonView{out: a.out, progress: a.newProgress()}
	case formatStream:
		return &streamView{out: a.out}
	}
	if v, ok := a.newLiveView(); ok {
		return v
	}
	return a.newTextView()
}

// A jsonView writes one JSON object at the end.
type jsonView struct {
	out      *printer
	progress *progress
}

func (v *jsonView) begin(o opening)     { v.progress.begin(o) }
func (v *jsonView) event(e event.Event) { v.progress.event(e) }
func (v *jsonView) end(r result)        { v.out.json(r) }

// A streamView writes one JSON object per line: the opening, each event unchanged, and
// the result.
type streamView struct{ out *printer }

func (v *streamView) begin(o opening) { v.out.json(o) }
func (v *streamView) event(e event.Event) {
	v.out.Write(append(e.Bytes[:len(e.Bytes):len(e.Bytes)], '\n'))
}
func (v *streamView) end(r result) { v.out.json(r) }
