package session_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/transcript"
	"github.com/abide-run/abide/internal/turn"
	"github.com/abide-run/abide/internal/window"
)

// A requestChecker checks requests as strictly as a provider with a small window, and
// as one that knows what was asked.
type requestChecker struct {
	mu     sync.Mutex
	limits map[string]window.Limits // limits by model
	newest string                   // text of the last input; it has to be in every request
	counts float64                  // tokens that the provider counts for each of ours; ours if zero
	found  []string

	requests, summaries, largest int
}

func (x *requestChecker) fault(format string, args ...any) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.found = append(x.found, fmt.Sprintf(format, args...))
}

func (x *requestChecker) asked(prompt string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.newest = prompt
}

// allow settles how large the requests to a model may be.
func (x *requestChecker) allow(model string, l window.Limits) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.limits == nil {
		x.limits = make(map[string]window.Limits)
	}
	x.limits[model] = l
}

func (x *requestChecker) limit(model string) int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.limits[model].Request()
}

// summaryWords are how every request for a summary begins.
const summaryWords = "Please create a detailed summary of the conversation so far."

// wantsSummary reports whether a request is one for a summary.
func wantsSummary(req *model.Request) bool {
	return len(req.Messages) > 0 && strings.HasPrefix(req.Messages[len(req.Messages)-1].Text, summaryWords)
}

// examine looks at a request. One for a summary may be about an earlier request of
// the user.
func (x *requestChecker) examine(req *model.Request) {
	x.mu.Lock()
	limits, newest := x.limits[req.Model], x.newest
	if wantsSummary(req) {
		x.summaries++
	} else {
		x.requests++
	}
	x.largest = max(x.largest, tokensOf(req))
	x.mu.Unlock()
	if err := legal(req.Messages); err != nil {
		x.fault("%v: %s", err, outline(req.Messages))
	}
	if n := x.countedOf(req); n > limits.Request() {
		x.fault("a request has %d tokens, and %d of %d are left beside the answer: %s", n, limits.Request(), limits.Window, outline(req.Messages))
	}
	if n := bytesOf(req) / 4; int(x.share()*float64(n))+limits.Output > limits.Window {
		x.fault("a request has %d bytes, more than fit a window of %d tokens", n*4, limits.Window)
	}
	if !wantsSummary(req) && !slices.ContainsFunc(req.Messages, func(m *model.Message) bool { return m.Role == model.User && strings.Contains(m.Text, newest) }) {
		x.fault("what was asked last is not in the request: %.60q in %s", newest, outline(req.Messages))
	}
}

// countedOf returns the size of a request as its provider counts it. One that counts more than
// we do is not believed before it has counted, so its requests have to fit as we count.
func (x *requestChecker) countedOf(req *model.Request) int {
	return int(x.share() * float64(tokensOf(req)))
}

// share returns how many of our tokens the provider counts, at most all of them.
func (x *requestChecker) share() float64 {
	if x.counts == 0 {
		return 1
	}
	return min(1, x.counts)
}

// tokensOf is the size of a request, measured by one who has not seen others.
func tokensOf(req *model.Request) int {
	var m window.Meter
	return m.Read(req).Tokens
}

// bytesOf counts what is in a request, without any idea of tokens.
func bytesOf(req *model.Request) int {
	n := len(req.System) + len(req.Tail)
	if req.Tools != nil {
		for _, t := range req.Tools.List {
			n += len(t.Name) + len(t.Description) + len(t.Parameters)
		}
	}
	for _, m := range req.Messages {
		n += len(m.Text)
		for _, c := range m.Calls {
			n += len(c.Name) + len(c.Arguments)
		}
	}
	return n
}

// legal says what every provider would refuse.
func legal(list []*model.Message) error {
	if len(list) == 0 || list[0].Role != model.User {
		return errors.New("a request does not begin with a user")
	}
	var open []string
	for i, m := range list {
		switch {
		case m.Role == model.ToolRole && (len(open) == 0 || open[0] != m.CallID):
			return fmt.Errorf("message %d is the result of %s, but %v come next", i+1, m.CallID, open)
		case m.Role == model.ToolRole:
			open = open[1:]
		case len(open) > 0:
			return fmt.Errorf("message %d comes before the results of %v", i+1, open)
		case m.Role == model.Assistant && m.Text == "" && len(m.Calls) == 0:
			return fmt.Errorf("message %d is empty", i+1)
		}
		for _, c := range m.Calls {
			open = append(open, c.ID)
		}
	}
	if len(open) > 0 || list[len(list)-1].Role == model.Assistant {
		return fmt.Errorf("a request ends with an answer, or without the results of %v", open)
	}
	return nil
}

// outline is a list of messages for people.
func outline(list []*model.Message) string {
	var b strings.Builder
	for i, m := range list {
		fmt.Fprintf(&b, "\n%3d %s %s %.50q (%d bytes) %d calls", i+1, m.Role, m.CallID, m.Text, len(m.Text), len(m.Calls))
	}
	return b.String()
}

// A loggedMessage is a message of a log, read without any of the code that makes
// requests.
type loggedMessage struct {
	at      event.Seq
	role    model.Role
	text    string
	callID  string // id of the call whose result it is
	missing bool   // it has given nothing
}

// A loggedEpoch is an epoch that is not hidden.
type loggedEpoch struct {
	at   event.Seq
	data event.ContextEpochData
}

// A plainLog is a log, read plainly.
type plainLog struct {
	said     []loggedMessage
	chapters []loggedEpoch
}

// readPlainly folds a log in the simplest way that can be.
func readPlainly(events []event.Event) (r plainLog, err error) {
	for _, e := range events {
		if err = r.take(e); err != nil {
			return r, fmt.Errorf("event %d (%s): %w", e.Seq, e.Type, err)
		}
	}
	return r, nil
}

func (r *plainLog) take(e event.Event) error {
	switch e.Type {
	case event.UserMessage:
		d, err := event.As[event.UserMessageData](e)
		r.said = append(r.said, loggedMessage{at: e.Seq, role: model.User, text: d.Content})
		return err
	case event.AssistantMessage:
		d, err := event.As[event.AssistantMessageData](e)
		r.said = append(r.said, loggedMessage{at: e.Seq, role: model.Assistant, text: d.Content})
		for _, c := range d.ToolRequests {
			r.said = append(r.said, loggedMessage{at: e.Seq, role: model.ToolRole, callID: c.ToolCallID, missing: true})
		}
		return err
	case event.ToolComplete:
		d, err := event.As[event.ToolCompleteData](e)
		r.gave(d)
		return err
	case event.ContextEpoch:
		d, err := event.As[event.ContextEpochData](e)
		r.chapters = append(r.chapters, loggedEpoch{e.Seq, d})
		return err
	case event.HistoryHidden:
		d, err := event.As[event.HistoryHiddenData](e)
		r.said = slices.DeleteFunc(r.said, func(s loggedMessage) bool { return s.at >= d.From && s.at <= d.To })
		r.chapters = slices.DeleteFunc(r.chapters, func(c loggedEpoch) bool { return c.at >= d.From })
		return err
	}
	return nil
}

// gave takes in what a call gave, which is the newest of its name.
func (r *plainLog) gave(d event.ToolCompleteData) {
	for i := len(r.said) - 1; i >= 0; i-- {
		if s := &r.said[i]; s.callID == d.ToolCallID && s.missing {
			s.text, s.missing = transcript.ResultText(d), false
			return
		}
	}
}

// view is what the model should see: whether there is a head, and what follows it.
func (r plainLog) view() (head bool, list []loggedMessage) {
	if len(r.chapters) == 0 {
		return false, r.said
	}
	d := r.chapters[len(r.chapters)-1].data
	for _, s := range r.said {
		if s.at >= d.From {
			list = append(list, s)
		}
	}
	return d.Head != nil, list
}

// current is the id of the epoch.
func (r plainLog) current() string {
	if len(r.chapters) == 0 {
		return ""
	}
	return r.chapters[len(r.chapters)-1].data.EpochID
}

// shows says how what a model was sent differs from what it should see. Of what
// calls gave, less may be shown.
func (r plainLog) shows(list []*model.Message) error {
	head, want := r.view()
	if head {
		if len(list) == 0 || !strings.HasPrefix(list[0].Text, "Some of the conversation history has been summarized") {
			return errors.New("the head of the epoch is missing")
		}
		list = list[1:]
	}
	if len(list) != len(want) {
		return fmt.Errorf("there are %d messages, want %d", len(list), len(want))
	}
	for i, m := range list {
		w := want[i]
		same := m.Text == w.text || w.missing && m.Text == transcript.Interrupted
		switch {
		case w.role == model.User:
			same = strings.Contains(m.Text, w.text)
		case w.role == model.ToolRole && len(m.Text) < len(w.text):
			same = true
		}
		if !same || m.Role != w.role || m.CallID != w.callID {
			return fmt.Errorf("message %d is %s %s %.60q, want %s %s %.60q", i+1, m.Role, m.CallID, m.Text, w.role, w.callID, w.text)
		}
	}
	return nil
}

// paired says what is wrong with the compactions of a log: each is begun once and
// ends once, before the next, and tells which epoch is current.
func paired(events []event.Event, over bool) error {
	var r plainLog
	open := ""
	for i, e := range events {
		if err := r.take(e); err != nil {
			return err
		}
		switch e.Type {
		case event.CompactionStart:
			d, err := event.As[event.CompactionStartData](e)
			if err != nil || open != "" || d.CompactionID == "" {
				return fmt.Errorf("event %d begins compaction %s while %q is open: %v", e.Seq, d.CompactionID, open, err)
			}
			open = d.CompactionID
		case event.CompactionComplete:
			d, err := event.As[event.CompactionCompleteData](e)
			if err != nil || d.CompactionID != open || open == "" {
				return fmt.Errorf("event %d ends compaction %s while %q is open: %v", e.Seq, d.CompactionID, open, err)
			}
			if open = ""; d.EpochID != r.current() {
				return fmt.Errorf("event %d says that epoch %q is current, but %q is", e.Seq, d.EpochID, r.current())
			}
			if err := introduced(events[:i+1], d); err != nil {
				return err
			}
		}
	}
	if over && open != "" {
		return fmt.Errorf("compaction %s was never ended", open)
	}
	return nil
}

// introduced: a compaction that is done comes with exactly one epoch and two
// messages, and any other with none.
func introduced(events []event.Event, d event.CompactionCompleteData) error {
	epochs, messages := 0, 0
	for i := len(events) - 1; i >= 0 && events[i].Type != event.CompactionStart; i-- {
		switch events[i].Type {
		case event.ContextEpoch:
			epochs++
		case event.SystemMessage:
			if m, _ := event.As[event.SystemMessageData](events[i]); m.EpochID == d.EpochID && m.EpochID != "" {
				messages++
			}
		}
	}
	want := 0
	if d.Outcome == event.OutcomeDone {
		want = 1
	}
	if d.Success != (want == 1) || epochs != want || messages != 2*want {
		return fmt.Errorf("a compaction that is %s came with %d epochs and %d messages", d.Outcome, epochs, messages)
	}
	return nil
}

// readLog reads the whole log of a session.
func readLog(store eventlog.Store, id event.SessionID) (events []event.Event, err error) {
	for e, err := range store.Read(context.Background(), id, 0) {
		if err != nil {
			return nil, err
		}
		events = append(events, e)
	}
	return events, nil
}

// fromLog says how a request differs from the one that the log gives to whoever
// has not seen anything of the session. The log may have grown since.
func fromLog(store eventlog.Store, req *model.Request, limit int) error {
	events, err := readLog(store, event.SessionID(req.Session))
	if err != nil {
		return err
	}
	all := follows(events, req, limit)
	for n := len(events) - 1; all != nil && n > 0 && events[n].Type != event.AssistantTurnStart; n-- {
		if follows(events[:n], req, limit) == nil {
			return nil
		}
	}
	return all
}

// follows says how a request differs from the one that a log gives.
func follows(events []event.Event, req *model.Request, limit int) error {
	state := turn.New(event.SessionID(req.Session))
	if err := state.Load(slices.Clone(events)); err != nil {
		return err
	}
	list, err := state.History.Messages()
	if err != nil {
		return err
	}
	var p window.Pruner
	list, _ = p.Prune(list, window.PruningFor(limit))
	if !slices.EqualFunc(list, req.Messages, sameMessage) {
		return fmt.Errorf("the log gives another request:%s\nthe model was sent:%s", outline(list), outline(req.Messages))
	}
	if state.Prompt.System != req.System {
		return fmt.Errorf("the log gives another system prompt: %q, the model was sent %q", state.Prompt.System, req.System)
	}
	r, err := readPlainly(events)
	if err != nil {
		return err
	}
	if err := r.shows(req.Messages); err != nil {
		return fmt.Errorf("%w:%s", err, outline(req.Messages))
	}
	return nil
}

func sameMessage(a, b *model.Message) bool {
	sameCall := func(a, b model.Call) bool {
		return a.ID == b.ID && a.Name == b.Name && string(a.Arguments) == string(b.Arguments)
	}
	return a.Role == b.Role && a.Text == b.Text && a.CallID == b.CallID && a.Failed == b.Failed && slices.EqualFunc(a.Calls, b.Calls, sameCall)
}
