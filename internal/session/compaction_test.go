package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/eventlog"
	"github.com/abide-run/abide/internal/model"
	"github.com/abide-run/abide/internal/model/provider"
	"github.com/abide-run/abide/internal/session"
	"github.com/abide-run/abide/internal/session/sessiontest"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/window/compact"
)

// A scriptedModel is a model that answers from a script, and keeps what it was
// asked. Requests for a summary are answered apart.
type scriptedModel struct {
	mu        sync.Mutex
	lines     []scriptedReply
	summaries []scriptedReply
	asked     []*model.Request // requests for an answer
	summed    []*model.Request // requests for a summary
}

// A scriptedReply is one answer of a scriptedModel.
type scriptedReply struct {
	text  string
	call  string // name of the tool that is called
	usage int64
	err   error
	wait  <-chan struct{} // the reply comes when this is closed
	asked chan struct{}   // closed when the model waits; may be nil
	gone  <-chan struct{} // a request that is cancelled while the model waits ends when this is closed; may be nil
	write bool            // the text is handed in with write_summary
}

func (m *scriptedModel) Ask(ctx context.Context, req *model.Request, _ func(model.Delta)) (*model.Reply, error) {
	said, err := m.next(req)
	if err != nil {
		return nil, err
	}
	if said.wait != nil {
		if said.asked != nil {
			close(said.asked)
		}
		select {
		case <-said.wait:
		case <-ctx.Done():
			if said.gone != nil {
				<-said.gone
			}
			return nil, ctx.Err()
		}
	}
	reply := &model.Reply{Text: said.text, Usage: model.Usage{Input: said.usage, Output: 1}}
	switch {
	case said.err != nil:
		return nil, said.err
	case said.call != "":
		reply.Calls = []model.Call{{ID: fmt.Sprintf("call-%d", len(m.asked)), Name: said.call, Arguments: json.RawMessage(`{}`)}}
	case said.write:
		arguments, _ := json.Marshal(map[string]string{"text": said.text})
		reply.Text, reply.Calls = "", []model.Call{{ID: "w", Name: compact.WriteSummary, Arguments: arguments}}
	}
	return reply, nil
}

var errExhausted = &model.Error{Kind: model.KindRequest, Message: "there is nothing left to say"}

func isSummary(req *model.Request) bool {
	return strings.HasPrefix(req.Messages[len(req.Messages)-1].Text, "Please create a detailed summary")
}

func (m *scriptedModel) next(req *model.Request) (scriptedReply, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	from := &m.lines
	if isSummary(req) {
		m.summed = append(m.summed, req)
		from = &m.summaries
	} else {
		m.asked = append(m.asked, req)
	}
	if len(*from) == 0 {
		return scriptedReply{}, errExhausted
	}
	said := (*from)[0]
	*from = (*from)[1:]
	return said, nil
}

// texts returns what the model was last told, in messages.
func (m *scriptedModel) texts() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []string
	for _, msg := range m.asked[len(m.asked)-1].Messages {
		list = append(list, msg.Text)
	}
	return list
}

func (m *scriptedModel) counts() (asked, summed int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.asked), len(m.summed)
}

// largeOutputTool is a tool with a large result.
type largeOutputTool struct{ bytes int }

func (p largeOutputTool) Spec() tool.Spec { return tool.Spec{Name: "print", Replay: tool.Keyed} }
func (p largeOutputTool) Permission(context.Context, tool.Call) (*approval.Request, error) {
	return nil, nil
}
func (p largeOutputTool) Run(context.Context, tool.Call) (tool.Result, error) {
	return tool.Result{Text: strings.Repeat("output ", p.bytes/7)}, nil
}

func num(n int) *int { return &n }

// A compactedSession is a session whose context is compacted as the rules say.
type compactedSession struct {
	*sessiontest.Fixture
	m *scriptedModel
	v *sessiontest.Viewer
	n int // events that were awaited
}

func squeeze(t testing.TB, m *scriptedModel, config event.SessionConfiguredData, tools ...tool.Tool) *compactedSession {
	s := &compactedSession{Fixture: sessiontest.New(t, m, tools...), m: m, v: sessiontest.NewViewer()}
	s.attach(session.Spec{Config: config}, &session.Client{})
	return s
}

// attach creates the session and watches it.
func (s *compactedSession) attach(spec session.Spec, c *session.Client) {
	s.T.Helper()
	c.Viewer = s.v
	view, err := s.Host.Create(s.T.Context(), "s", spec, c)
	if err == nil {
		err = view.CatchUp(s.T.Context())
	}
	if err != nil {
		s.T.Fatal(err)
	}
}

// say sends a message and waits until the session is idle.
func (s *compactedSession) say(text string) {
	s.T.Helper()
	s.Send("s", event.InputAcceptedData{Prompt: text})
	s.settle()
}

func (s *compactedSession) settle() {
	s.T.Helper()
	_, s.n = s.v.Await(s.T, s.n, event.SessionIdle)
}

// since returns the events of these kinds that were stored after a position.
func (s *compactedSession) since(at event.Seq, kinds ...event.Type) []event.Event {
	s.T.Helper()
	var list []event.Event
	for _, e := range s.Verify("s") {
		if e.Seq > at && slices.Contains(kinds, e.Type) {
			list = append(list, e)
		}
	}
	return list
}

func (s *compactedSession) end() event.Seq {
	events := s.Verify("s")
	return events[len(events)-1].Seq
}

// compactions returns how those ended that were begun after a position, and checks
// that each has one end.
func (s *compactedSession) compactions(at event.Seq) []event.CompactionCompleteData {
	s.T.Helper()
	var list []event.CompactionCompleteData
	open := ""
	for _, e := range s.since(at, event.CompactionStart, event.CompactionComplete) {
		if e.Type == event.CompactionStart {
			d := decoded[event.CompactionStartData](s.T, e)
			if open != "" {
				s.T.Errorf("event %d: a compaction begins before the last one has ended", e.Seq)
			}
			open = d.CompactionID
			continue
		}
		d := decoded[event.CompactionCompleteData](s.T, e)
		if d.CompactionID != open || open == "" {
			s.T.Errorf("event %d: a compaction ends that was not begun", e.Seq)
		}
		open = ""
		list = append(list, d)
	}
	if open != "" {
		s.T.Errorf("compaction %s has no end", open)
	}
	return list
}

func decoded[T any](t testing.TB, e event.Event) T {
	t.Helper()
	d, err := event.As[T](e)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func (s *compactedSession) epoch() string {
	s.T.Helper()
	f, err := s.Host.Context.Fill(s.T.Context(), "s")
	if err != nil {
		s.T.Fatal(err)
	}
	return f.EpochID
}

func outcomes(list []event.CompactionCompleteData) []string {
	var all []string
	for _, d := range list {
		all = append(all, d.Outcome)
	}
	return all
}

// eager compacts before every run.
func eager() event.SessionConfiguredData {
	return event.SessionConfiguredData{Compaction: event.CompactionRules{Threshold: num(1), Retained: num(0)}}
}

func TestARunBeginsWithACompactionWhenItIsDue(t *testing.T) {
	m := &scriptedModel{lines: []scriptedReply{{text: "hi"}, {text: "again"}}, summaries: []scriptedReply{{text: "They said hello.", write: true}}}
	s := squeeze(t, m, eager())
	s.say("first")
	if got := outcomes(s.compactions(0)); !slices.Equal(got, []string{"skipped"}) {
		t.Errorf("compactions of the first run = %v: there was nothing to summarise yet", got)
	}
	at := s.end()
	s.say("second")
	var told []string
	for _, e := range s.since(at, event.CompactionStart, event.SystemMessage, event.ContextEpoch, event.CompactionComplete, event.AssistantTurnStart) {
		told = append(told, string(e.Type))
	}
	want := []string{"session.compaction_start", "system.message", "system.message", "context.epoch", "session.compaction_complete", "assistant.turn_start"}
	if !slices.Equal(told, want) {
		t.Fatalf("events = %v, want %v", told, want)
	}
	done := s.compactions(at)[0]
	if done.Outcome != "done" || !done.Success || done.EpochID == "" || done.EpochID != s.epoch() {
		t.Errorf("it ended with %+v, and the current epoch is %s", done, s.epoch())
	}
	if done.SummaryContent != "They said hello." || done.PostTokens == 0 || done.CompactionTokensUsed == nil || done.CompactionTokensUsed.InputTokens == 0 || done.EstimateSource == "" {
		t.Errorf("it tells %+v", done)
	}
	texts := m.texts()
	if len(texts) != 1 || !strings.Contains(texts[0], "They said hello.") || !strings.Contains(texts[0], "<user_message>\nfirst\n</user_message>\n<user_message>\nsecond\n</user_message>") {
		t.Errorf("the model was told %q", texts)
	}
	if asked, summed := m.counts(); asked != 2 || summed != 1 {
		t.Errorf("the model was asked %d times, for a summary %d times", asked, summed)
	}
}

func TestOnlyNewSystemMessagesAreToldByACompaction(t *testing.T) {
	m := &scriptedModel{lines: []scriptedReply{{text: strings.Repeat("long ", 2000)}, {text: "short"}, {text: "done"}}, summaries: []scriptedReply{{text: "They talked."}}}
	s := squeeze(t, m, event.SessionConfiguredData{Compaction: event.CompactionRules{Retained: num(100)}})
	s.say("first")
	s.say("second")
	at, shown := s.end(), len(s.v.Kinds())
	if d, err := s.Host.Context.Compact(t.Context(), "s", session.Squeeze{}); err != nil || d.Outcome != "done" {
		t.Fatalf("it ended with %+v, %v", d, err)
	}
	var texts []string
	for _, e := range s.since(at, event.SystemMessage) {
		texts = append(texts, decoded[event.SystemMessageData](t, e).Content)
	}
	if len(texts) != 2 || !strings.HasPrefix(texts[0], "[Compacted context summary]\nThey talked.") || !strings.HasPrefix(texts[1], "[Session TaskStore snapshot]\nNo task is open.") {
		t.Fatalf("system messages = %q", texts)
	}
	sent := 0
	for _, kind := range s.v.Kinds()[shown:] {
		if kind == event.SystemMessage {
			sent++
		}
	}
	if sent != 2 {
		t.Errorf("%d system messages were sent to clients, want the two new ones", sent)
	}
	s.say("third")
	if got := m.texts(); len(got) != 3 || got[1] != "short" {
		t.Errorf("what is kept: %q", got)
	}
}

func TestAFailingSummariserDoesNotStopTheTurn(t *testing.T) {
	for name, wrong := range map[string][]scriptedReply{
		"exhausted":    nil,
		"empty":        {{text: ""}, {text: " "}},
		"says nothing": {{text: "<overview>none</overview>"}, {text: "n/a"}},
		"broken":       {{err: &model.Error{Kind: model.KindAuth, Message: "no key"}}},
	} {
		t.Run(name, func(t *testing.T) {
			m := &scriptedModel{lines: []scriptedReply{{text: "hi"}, {text: "on"}}, summaries: wrong}
			s := squeeze(t, m, eager())
			s.say("first")
			at := s.end()
			s.say("second")
			done := s.compactions(at)
			if len(done) != 1 || done[0].Outcome != "failed" || done[0].Success || done[0].Error == "" || done[0].EpochID != "" {
				t.Errorf("compactions = %+v", done)
			}
			if got := lastAnswer(t, s.Verify("s")); got != "on" {
				t.Errorf("answer = %q", got)
			}
			if got := m.texts(); len(got) != 3 {
				t.Errorf("the model was told %q", got)
			}
		})
	}
}

func TestATurnYieldsToACompactionBetweenTwoRequests(t *testing.T) {
	m := &scriptedModel{
		lines:     []scriptedReply{{call: "print", usage: 300}, {call: "print", usage: 3000}, {text: "done"}},
		summaries: []scriptedReply{{text: "It printed."}},
	}
	s := squeeze(t, m, event.SessionConfiguredData{Compaction: event.CompactionRules{RequestThreshold: num(2000), Retained: num(0)}}, largeOutputTool{70})
	s.say("print something")
	if done := s.compactions(0); len(done) != 1 || done[0].Outcome != "done" || done[0].EpochID != s.epoch() {
		t.Fatalf("compactions = %+v", done)
	}
	start := decoded[event.CompactionStartData](t, s.since(0, event.CompactionStart)[0])
	if start.Point != event.PointBetween || start.EstimateSource != "usage" || start.CurrentTokens < 3000 {
		t.Errorf("it began with %+v", start)
	}
	if texts := m.texts(); len(texts) != 3 || !strings.Contains(texts[0], "It printed.") || !strings.Contains(texts[0], "print something") {
		t.Errorf("the model was told %q", texts)
	}
	if got := lastAnswer(t, s.Verify("s")); got != "done" {
		t.Errorf("answer = %q", got)
	}
}

func TestWhatTheLastRunUsedIsWhatTheNextOneYieldsFor(t *testing.T) {
	m := &scriptedModel{lines: []scriptedReply{{text: "a", usage: 1000}, {text: "b"}}, summaries: []scriptedReply{{text: "They said a.", write: true}}}
	s := squeeze(t, m, event.SessionConfiguredData{Compaction: event.CompactionRules{RequestThreshold: num(900), Retained: num(0)}})
	s.say("first")
	if n := len(s.compactions(0)); n != 0 {
		t.Errorf("%d compactions below the threshold", n)
	}
	s.say("second")
	if done := s.compactions(0); len(done) != 1 || done[0].Outcome != "done" || done[0].EpochID != s.epoch() {
		t.Errorf("compactions = %+v", done)
	}
	if got := lastAnswer(t, s.Verify("s")); got != "b" {
		t.Errorf("answer = %q", got)
	}
}

func TestOneLongTurnIsCompactedBetweenItsRequests(t *testing.T) {
	m := &scriptedModel{}
	for range 10 {
		m.lines = append(m.lines, scriptedReply{call: "print"})
		m.summaries = append(m.summaries, scriptedReply{text: "It prints."})
	}
	m.lines = append(m.lines, scriptedReply{text: "done"})
	s := squeeze(t, m, event.SessionConfiguredData{Window: 6000, Infinite: &event.InfiniteSessions{Background: new(float64)}}, largeOutputTool{4000}) // nothing beside the turn
	s.say("Print it ten times.")
	done := s.compactions(0)
	if len(done) < 2 || slices.Contains(outcomes(done), "failed") {
		t.Errorf("compactions = %v", outcomes(done))
	}
	if got := lastAnswer(t, s.Verify("s")); got != "done" {
		t.Errorf("answer = %q", got)
	}
	if texts := m.texts(); !strings.Contains(texts[0], "Print it ten times.") {
		t.Errorf("what was asked is gone: %q", texts)
	}
}

func TestAMessageLargerThanTheWindowIsAClearError(t *testing.T) {
	m := &scriptedModel{lines: []scriptedReply{{text: "fine"}}}
	s := squeeze(t, m, event.SessionConfiguredData{Window: 2000})
	s.say(strings.Repeat("word ", 4000))
	if asked, _ := m.counts(); asked != 0 {
		t.Errorf("the model was asked %d times", asked)
	}
	errs := s.since(0, event.SessionError)
	if len(errs) != 1 {
		t.Fatalf("%d errors", len(errs))
	}
	if d := decoded[event.SessionErrorData](t, errs[0]); d.ErrorType != "context_overflow" || !strings.Contains(d.Message, "window") {
		t.Errorf("error = %+v", d)
	}
	if n := len(s.compactions(0)); n != 1 {
		t.Errorf("%d attempts were made", n)
	}
	at := s.end()
	events, err := s.Host.Log.Messages(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		if e.Type == event.UserMessage {
			head, _ := e.Head()
			if _, err := s.Host.Rewind(t.Context(), "s", session.Rewind{EventID: head.ID}); err != nil {
				t.Fatal(err)
			}
			break
		}
	}
	s.say("shorter")
	if got := lastAnswer(t, s.Verify("s")); got != "fine" || len(s.since(at, event.SessionError)) != 0 {
		t.Errorf("answer = %q", got)
	}
}

func TestNothingIsDoneWhereThresholdsAreZero(t *testing.T) {
	m := &scriptedModel{lines: []scriptedReply{{text: "hi", usage: 1000}, {text: "on", usage: 1000}}}
	s := squeeze(t, m, event.SessionConfiguredData{Compaction: event.CompactionRules{Threshold: num(0), RequestThreshold: num(0)}})
	s.say("first")
	s.say("second")
	if n := len(s.compactions(0)); n != 0 {
		t.Errorf("%d compactions", n)
	}
	if _, summed := m.counts(); summed != 0 {
		t.Errorf("a summary was asked for")
	}
}

func TestWhatIsKeptAnywayIsNotSummarised(t *testing.T) {
	m := &scriptedModel{lines: []scriptedReply{{text: "hi"}, {text: "on"}}}
	s := squeeze(t, m, event.SessionConfiguredData{Compaction: event.CompactionRules{Threshold: num(1), Retained: num(10_000)}})
	s.say("first")
	s.say("second")
	for _, d := range s.compactions(0) {
		if d.Outcome != "skipped" || d.Success {
			t.Errorf("outcome = %+v", d)
		}
	}
	if _, summed := m.counts(); summed != 0 {
		t.Error("a summary was asked for")
	}
}

func TestADisabledClientStillNeverOverflows(t *testing.T) {
	off := false
	m := &scriptedModel{lines: []scriptedReply{{text: strings.Repeat("long ", 1500)}, {text: strings.Repeat("long ", 1500)}, {text: "end"}}, summaries: []scriptedReply{{text: "It was long."}}}
	s := squeeze(t, m, event.SessionConfiguredData{Window: 4000, Infinite: &event.InfiniteSessions{Enabled: &off}})
	s.say("one")
	s.say("two")
	if n := len(s.compactions(0)); n != 0 {
		t.Errorf("%d compactions while there was room", n)
	}
	s.say("three")
	if got := outcomes(s.compactions(0)); !slices.Equal(got, []string{"done"}) {
		t.Errorf("compactions = %v", got)
	}
	if got := lastAnswer(t, s.Verify("s")); got != "end" {
		t.Errorf("answer = %q", got)
	}
}

func TestWithoutASummaryThereIsADigest(t *testing.T) {
	m := &scriptedModel{lines: []scriptedReply{{text: strings.Repeat("long ", 1500)}, {text: strings.Repeat("long ", 1500)}, {text: "end"}}}
	off := false
	s := squeeze(t, m, event.SessionConfiguredData{Window: 4000, Infinite: &event.InfiniteSessions{Enabled: &off}})
	s.say("one")
	s.say("two")
	s.say("three")
	done := s.compactions(0)
	if len(done) != 1 || done[0].Outcome != "done" || !done[0].Digest || done[0].Error == "" || done[0].SummaryContent != "" {
		t.Errorf("compactions = %+v", done)
	}
	if got := lastAnswer(t, s.Verify("s")); got != "end" {
		t.Errorf("answer = %q", got)
	}
}

func TestARefusedRequestIsMadeAgainSmaller(t *testing.T) {
	overflow := &model.Error{Kind: model.KindOverflow, Message: "too long"}
	m := &scriptedModel{lines: []scriptedReply{{text: "hi"}, {err: overflow}, {text: "on"}}, summaries: []scriptedReply{{text: "They said hi."}}}
	s := squeeze(t, m, event.SessionConfiguredData{})
	s.say("first")
	s.say("second")
	start := decoded[event.CompactionStartData](t, s.since(0, event.CompactionStart)[0])
	if start.Trigger != event.TriggerRetry || !start.Must {
		t.Errorf("it began with %+v", start)
	}
	if got := lastAnswer(t, s.Verify("s")); got != "on" {
		t.Errorf("answer = %q", got)
	}
	if n := len(s.since(0, event.AssistantTurnStart)); n != 2 {
		t.Errorf("%d steps began, want one for each answer", n)
	}
}

func TestAProviderThatRefusesEverythingIsNotAskedForever(t *testing.T) {
	m := &scriptedModel{lines: []scriptedReply{{text: "hi"}}}
	for range 20 {
		m.lines = append(m.lines, scriptedReply{err: &model.Error{Kind: model.KindOverflow, Message: "too long"}})
		m.summaries = append(m.summaries, scriptedReply{text: "They said hi."})
	}
	s := squeeze(t, m, event.SessionConfiguredData{})
	s.say("first")
	s.say("second")
	if asked, _ := m.counts(); asked > 5 {
		t.Errorf("the model was asked %d times", asked)
	}
	if n := len(s.since(0, event.SessionError)); n != 1 {
		t.Errorf("%d errors", n)
	}
	s.compactions(0)
}

func TestACompactionAheadOfNeedHoldsUpNobody(t *testing.T) {
	summarise := make(chan struct{})
	share := 0.001
	m := &scriptedModel{
		lines:     []scriptedReply{{text: strings.Repeat("hi ", 200)}, {text: "on"}, {text: "and on"}},
		summaries: []scriptedReply{{text: "They said hi.", wait: summarise}},
	}
	s := squeeze(t, m, event.SessionConfiguredData{Window: 100_000, Infinite: &event.InfiniteSessions{Background: &share}})
	s.say("first " + strings.Repeat("word ", 100))
	at := s.end()
	s.say("second")
	if got := lastAnswer(t, s.Verify("s")); got != "on" {
		t.Fatalf("answer = %q although nothing has to wait", got)
	}
	if n := len(s.since(at, event.CompactionComplete)); n != 0 {
		t.Fatalf("%d compactions have ended", n)
	}
	close(summarise)
	_, s.n = s.v.Await(t, s.n, event.CompactionComplete)
	if got := outcomes(s.compactions(at)); !slices.Equal(got, []string{"done"}) {
		t.Errorf("compactions = %v", got)
	}
	s.say("third")
	texts := m.texts()
	if len(texts) != 3 || !strings.Contains(texts[0], "They said hi.") || texts[1] != "on" || !strings.HasSuffix(texts[2], "third") {
		t.Errorf("the model was told %q", texts)
	}
}

// waitForCompaction returns a session whose second turn waits for a compaction that gets no
// reply, and the position at which the turn begins. The next compaction gets one.
func waitForCompaction(t *testing.T) (s *compactedSession, at event.Seq) {
	asked := make(chan struct{})
	m := &scriptedModel{lines: []scriptedReply{{text: "hi"}, {text: "on"}}, summaries: []scriptedReply{{wait: make(chan struct{}), asked: asked}, {text: "They said hi."}}}
	s = squeeze(t, m, eager())
	s.say("first")
	at = s.end()
	s.Send("s", event.InputAcceptedData{Prompt: "second"})
	_, s.n = s.v.Await(t, s.n, event.CompactionStart)
	<-asked // otherwise the next compaction would get the reply that never comes
	return s, at
}

func TestAnAbortEndsTheCompactionThatTheTurnWaitsFor(t *testing.T) {
	s, at := waitForCompaction(t)
	if err := s.Host.Abort(t.Context(), "s", "enough"); err != nil {
		t.Fatal(err)
	}
	s.settle()
	if done := s.compactions(at); len(done) != 1 || done[0].Outcome != "failed" || done[0].Cause != event.CauseAborted {
		t.Errorf("compactions = %+v", done)
	}
	s.say("third")
	if got := lastAnswer(t, s.Verify("s")); got != "on" {
		t.Errorf("answer = %q", got)
	}
}

// TestAStopEndsTheCompactionOfASessionAtRest: no turn is running, and yet the model is being
// asked, because of a person or ahead of need. Nothing is asked after the stop.
func TestAStopEndsTheCompactionOfASessionAtRest(t *testing.T) {
	share := 0.001
	ahead := event.SessionConfiguredData{Window: 100_000, Infinite: &event.InfiniteSessions{Background: &share}}
	for _, test := range []struct {
		name   string
		config event.SessionConfiguredData
		stop   event.AbortData
		ends   bool
	}{
		{"by hand", event.SessionConfiguredData{}, event.AbortFor("enough"), true},
		{"by hand, held", event.SessionConfiguredData{}, event.AbortData{Reason: "enough", KeepQueue: true, Hold: true}, true},
		{"ahead of need", ahead, event.AbortFor("enough"), true},
		{"for the queue only", ahead, event.AbortData{Reason: "enough", KeepQueue: true}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			asked, gone := make(chan struct{}), make(chan struct{})
			m := &scriptedModel{lines: []scriptedReply{{text: strings.Repeat("hi ", 200)}, {text: "on"}}, summaries: []scriptedReply{{wait: gone, asked: asked}, {text: "They said hi."}}}
			s := squeeze(t, m, test.config)
			s.say("first " + strings.Repeat("word ", 100))
			at := s.end()
			if test.config.Window == 0 {
				go func() { _, _ = s.Host.Context.Compact(context.Background(), "s", session.Squeeze{}) }() // how it ends is in the log
			} else {
				s.say("second")
			}
			<-asked
			stopped, err := s.Host.Stop(t.Context(), "s", test.stop)
			if err != nil || stopped.Turn || stopped.Compaction != test.ends {
				t.Fatalf("stopped %+v, %v", stopped, err)
			}
			if !test.ends {
				close(gone)
			}
			_, s.n = s.v.Await(t, s.n, event.CompactionComplete)
			if done := s.compactions(at); len(done) != 1 || (done[0].Cause == event.CauseAborted) != test.ends {
				t.Errorf("compactions = %+v", done)
			}
		})
	}
}

// TestAStopEndsTheCompactionsOfAgents: the session of an agent is compacted while the agent
// works, or after it has answered. The session that it worked for is stopped, and nothing is
// asked for the agent any more.
func TestAStopEndsTheCompactionsOfAgents(t *testing.T) {
	hold := event.AbortData{Reason: "user_initiated", KeepQueue: true, Hold: true}
	for _, test := range []struct {
		name  string
		agent string // what the agent does meanwhile: work or rest
		turn  bool   // true if the session that has started it is in a turn
		stop  event.AbortData
		ends  bool
	}{
		{"the agent works", "work", true, event.AbortFor("enough"), true},
		{"the agent has answered", "rest", true, event.AbortFor("enough"), true},
		{"the agent has answered, held", "rest", true, hold, true},
		{"the turn is over", "rest", false, event.AbortFor("enough"), true},
		{"the turn is over, held", "rest", false, hold, true},
		{"for the queue only", "rest", true, event.AbortData{Reason: "user_initiated", KeepQueue: true}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := &delegatingModel{works: test.agent == "work", waits: test.turn, asked: make(chan struct{}), summing: make(chan struct{}), summed: make(chan struct{})}
			b := withAgents(t, m)
			v := b.Create("s", &session.Client{})
			b.Send("s", event.InputAcceptedData{Prompt: "Delegate it"})
			if m.works || m.waits {
				<-m.asked
			} else {
				v.Await(t, 0, event.SessionIdle)
			}
			agent := child(t, []event.Event{b.AwaitStored("s", eventlog.End{}, event.ToolBegun)})
			go func() { _, _ = b.Host.Context.Compact(context.Background(), agent, session.Squeeze{}) }() // how it ends is in the log
			<-m.summing
			if stopped, err := b.Host.Stop(t.Context(), "s", test.stop); err != nil || stopped.Turn != test.turn {
				t.Fatalf("stopped %+v, %v", stopped, err)
			}
			select {
			case <-m.summed:
				if !test.ends {
					t.Error("the compaction was ended, although the session goes on")
				}
			default:
				if test.ends {
					t.Error("the model is still asked for a summary of the agent's work")
				}
			}
		})
	}
}

// A delegatingModel gives its work to an agent, which makes calls. Requests for a summary
// are not answered.
type delegatingModel struct {
	works, waits    bool          // the last request of the agent, or of the session that has started it, is not answered
	asked           chan struct{} // closed when a request that is not answered was made
	summing, summed chan struct{} // closed when a summary is asked for, and when that has ended

	mu    sync.Mutex
	steps map[string]int // number of answers, by session
}

func (m *delegatingModel) Ask(ctx context.Context, req *model.Request, _ func(model.Delta)) (*model.Reply, error) {
	m.mu.Lock()
	step := m.steps[req.Session]
	if m.steps == nil {
		m.steps = make(map[string]int)
	}
	m.steps[req.Session]++
	m.mu.Unlock()
	silent, calls := m.works, 2 // with one there is nothing that can be summarised
	name, args := "act", `{}`
	if req.Session == "s" {
		silent, calls = m.waits, 1
		name, args = "task", `{"description":"d","prompt":"p","agent_type":"task","name":"n"}`
	}
	switch {
	case isSummary(req):
		close(m.summing)
		<-ctx.Done()
		close(m.summed)
		return nil, ctx.Err()
	case step < calls:
		return &model.Reply{Text: "I go on.", Calls: []model.Call{{ID: fmt.Sprintf("call-%d", step), Name: name, Arguments: json.RawMessage(args)}}}, nil
	case silent:
		close(m.asked)
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return &model.Reply{Text: "done"}, nil
}

// TestARepeatedRequestCompactsNothingThatWasStopped: the reply to a request for a compaction is
// lost with the engine, and the request comes again. What somebody has stopped stays stopped;
// what ended with the engine is done again, once.
func TestARepeatedRequestCompactsNothingThatWasStopped(t *testing.T) {
	for _, stop := range []bool{true, false} {
		asked := make(chan struct{})
		m := &scriptedModel{lines: []scriptedReply{{text: "hi"}}, summaries: []scriptedReply{{wait: make(chan struct{}), asked: asked}, {text: "They said hi."}, {text: "Twice."}}}
		s := squeeze(t, m, event.SessionConfiguredData{})
		s.say("first")
		how := session.Squeeze{Key: "k"}
		go func() { _, _ = s.Host.Context.Compact(context.Background(), "s", how) }() // the reply is lost
		<-asked
		want, summed := "done", 2
		if stop {
			want, summed = "failed", 1
			if stopped, err := s.Host.Stop(t.Context(), "s", event.AbortFor("enough")); err != nil || !stopped.Compaction {
				t.Fatalf("stopped %+v, %v", stopped, err)
			}
		}
		s.Restart()
		for range 2 {
			if d, err := s.Host.Context.Compact(t.Context(), "s", how); err != nil || d.Outcome != want || (d.Cause == event.CauseAborted) != stop {
				t.Errorf("stopped %v: it ended with %+v, %v", stop, d, err)
			}
		}
		if _, n := m.counts(); n != summed {
			t.Errorf("stopped %v: %d summaries were asked for, want %d", stop, n, summed)
		}
	}
}

// TestAStopAfterACrashHoldsForTheRepeatedCompaction: the engine is killed while it compacts for
// a client, and somebody stops the session before the client's request comes again. The next
// engine has ended the compaction before the stop, or not yet.
func TestAStopAfterACrashHoldsForTheRepeatedCompaction(t *testing.T) {
	for _, loaded := range []bool{false, true} {
		for name, stop := range map[string]func(s *compactedSession) (bool, error){
			"abort": func(s *compactedSession) (bool, error) {
				stopped, err := s.Host.Stop(t.Context(), "s", event.AbortFor("enough"))
				return stopped.Compaction, err
			},
			"cancel": func(s *compactedSession) (bool, error) {
				return s.Host.Context.CancelCompaction(t.Context(), "s", true)
			},
		} {
			t.Run(fmt.Sprintf("%s, loaded %v", name, loaded), func(t *testing.T) {
				asked := make(chan struct{})
				m := &scriptedModel{lines: []scriptedReply{{text: "hi"}}, summaries: []scriptedReply{{wait: make(chan struct{}), asked: asked}, {text: "They said hi."}}}
				s := squeeze(t, m, event.SessionConfiguredData{})
				s.say("first")
				at := s.end()
				how := session.Squeeze{Key: "k"}
				go func() { _, _ = s.Host.Context.Compact(context.Background(), "s", how) }() // the reply is lost
				<-asked
				s.Restart()
				if loaded {
					s.Resume("s", session.Resume{}, &session.Client{})
					if done := s.compactions(at); len(done) != 1 || done[0].Cause != event.CauseInterrupted {
						t.Fatalf("compactions = %+v", done)
					}
				}
				if stopped, err := stop(s); err != nil || !stopped {
					t.Errorf("stopped %v, %v", stopped, err)
				}
				if stopped, err := stop(s); err != nil || stopped {
					t.Errorf("stopped again: %v, %v", stopped, err)
				}
				s.Restart()
				if d, err := s.Host.Context.Compact(t.Context(), "s", how); err != nil || d.Outcome != event.OutcomeFailed || d.Cause != event.CauseAborted {
					t.Errorf("the repeated request ended with %+v, %v", d, err)
				}
				if _, n := m.counts(); n != 1 {
					t.Errorf("%d summaries were asked for, want 1", n)
				}
				if d, err := s.Host.Context.Compact(t.Context(), "s", session.Squeeze{Key: "other"}); err != nil || d.Outcome != event.OutcomeDone {
					t.Errorf("another request ended with %+v, %v", d, err)
				}
			})
		}
	}
}

func TestACompactionByHand(t *testing.T) {
	m := &scriptedModel{lines: []scriptedReply{{text: "hi"}, {text: "on"}}, summaries: []scriptedReply{{text: "They said hi."}}}
	s := squeeze(t, m, event.SessionConfiguredData{})
	if d, err := s.Host.Context.Compact(t.Context(), "s", session.Squeeze{}); err != nil || d.Outcome != "skipped" {
		t.Errorf("an empty session: %+v, %v", d, err)
	}
	s.say("first")
	d, err := s.Host.Context.Compact(t.Context(), "s", session.Squeeze{Instructions: "Mind the gap."})
	if err != nil || d.Outcome != "done" || d.Trigger != event.TriggerManual || d.EpochID != s.epoch() {
		t.Fatalf("it ended with %+v, %v", d, err)
	}
	if last := m.summed[0].Messages; !strings.Contains(last[len(last)-1].Text, "Mind the gap.") {
		t.Errorf("the summariser was told %q", last[len(last)-1].Text)
	}
	s.say("second")
	if texts := m.texts(); len(texts) != 2 || !strings.Contains(texts[0], "They said hi.") {
		t.Errorf("the model was told %q", texts)
	}
	if _, err := s.Host.Context.Compact(t.Context(), "nobody", session.Squeeze{}); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("an unknown session: %v", err)
	}
}

// A blockingTool returns when the test lets it.
type blockingTool struct{ begun, free chan struct{} }

func (w blockingTool) Spec() tool.Spec { return tool.Spec{Name: "print", Replay: tool.Keyed} }
func (w blockingTool) Permission(context.Context, tool.Call) (*approval.Request, error) {
	return nil, nil
}
func (w blockingTool) Run(context.Context, tool.Call) (tool.Result, error) {
	close(w.begun)
	<-w.free
	return tool.Result{Text: "slow output"}, nil
}

func TestACompactionByHandLeavesTheCallsThatAreBeingMadeAlone(t *testing.T) {
	w := blockingTool{make(chan struct{}), make(chan struct{})}
	m := &scriptedModel{lines: []scriptedReply{{text: "hi"}, {call: "print"}, {text: "done"}}, summaries: []scriptedReply{{text: "They said hi."}}}
	s := squeeze(t, m, event.SessionConfiguredData{}, w)
	s.say("first")
	s.Send("s", event.InputAcceptedData{Prompt: "second"})
	<-w.begun
	if d, err := s.Host.Context.Compact(t.Context(), "s", session.Squeeze{}); err != nil || d.Outcome != "done" {
		t.Errorf("it ended with %+v, %v", d, err)
	}
	for _, msg := range m.summed[0].Messages {
		if msg.CallID != "" || len(msg.Calls) > 0 {
			t.Errorf("the summariser is told of a call that is being made: %+v", msg)
		}
	}
	close(w.free)
	s.settle()
	req := m.last()
	if len(req.Messages) != 3 || len(req.Messages[1].Calls) != 1 || req.Messages[2].Text != "slow output" || !strings.Contains(req.Messages[0].Text, "second") {
		t.Errorf("the model was told %q", m.texts())
	}
}

func TestACompactionByHandCanBeCancelled(t *testing.T) {
	m := &scriptedModel{lines: []scriptedReply{{text: "hi"}, {text: "on"}}, summaries: []scriptedReply{{wait: make(chan struct{})}}}
	s := squeeze(t, m, event.SessionConfiguredData{})
	s.say("first")
	done := make(chan event.CompactionCompleteData, 1)
	go func() {
		d, _ := s.Host.Context.Compact(context.Background(), "s", session.Squeeze{})
		done <- d
	}()
	_, s.n = s.v.Await(t, s.n, event.CompactionStart)
	if _, err := s.Host.Context.Compact(t.Context(), "s", session.Squeeze{}); !errors.Is(err, session.ErrCompacting) {
		t.Errorf("a second one: %v", err)
	}
	if did, err := s.Host.Context.CancelCompaction(t.Context(), "s", false); did || err != nil {
		t.Errorf("one in the background was cancelled, though there is none: %v", err)
	}
	if did, err := s.Host.Context.CancelCompaction(t.Context(), "s", true); !did || err != nil {
		t.Errorf("it was not cancelled: %v", err)
	}
	if d := <-done; d.Outcome != "failed" || d.Cause != event.CauseAborted {
		t.Errorf("it ended with %+v", d)
	}
	s.compactions(0)
	s.say("second")
}

func TestUndoReturnsToTheEpochBefore(t *testing.T) {
	m := &scriptedModel{lines: []scriptedReply{{text: "hi"}, {text: "on"}, {text: "back"}, {text: "forth"}}, summaries: []scriptedReply{{text: "They said hi."}}}
	s := squeeze(t, m, event.SessionConfiguredData{})
	if _, err := s.Host.Context.Uncompact(t.Context(), "s"); !errors.Is(err, session.ErrNoEpoch) {
		t.Errorf("without a compaction: %v", err)
	}
	s.say("first")
	if _, err := s.Host.Context.Compact(t.Context(), "s", session.Squeeze{}); err != nil {
		t.Fatal(err)
	}
	s.say("second")
	if _, err := s.Host.Context.Uncompact(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	s.say("third")
	if texts := m.texts(); len(texts) != 5 || texts[1] != "hi" || texts[3] != "on" {
		t.Errorf("after an undo the model was told %q", texts)
	}
	if _, err := s.Host.Context.Uncompact(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	s.say("fourth")
	if texts := m.texts(); len(texts) != 6 || !strings.Contains(texts[0], "They said hi.") || texts[2] != "on" {
		t.Errorf("after an undone undo the model was told %q", texts)
	}
}

func TestARewindTakesEpochsBack(t *testing.T) {
	m := &scriptedModel{lines: []scriptedReply{{text: "one"}, {text: "two"}, {text: "three"}, {text: "four"}}, summaries: []scriptedReply{{text: "They talked."}}}
	s := squeeze(t, m, event.SessionConfiguredData{})
	s.say("first")
	s.say("second")
	second := ""
	for _, e := range s.since(0, event.UserMessage) {
		head, _ := e.Head()
		second = head.ID
	}
	if _, err := s.Host.Context.Compact(t.Context(), "s", session.Squeeze{}); err != nil {
		t.Fatal(err)
	}
	s.say("third")
	if _, err := s.Host.Rewind(t.Context(), "s", session.Rewind{EventID: second}); err != nil {
		t.Fatal(err)
	}
	if id := s.epoch(); id != "" {
		t.Errorf("the epoch is %s, though it was taken back", id)
	}
	s.n = len(s.v.Kinds())
	s.say("other")
	if texts := m.texts(); len(texts) != 3 || texts[1] != "one" || !strings.HasSuffix(texts[2], "other") {
		t.Errorf("the model was told %q", texts)
	}
}

func TestACompactionThatWasInterruptedIsClosed(t *testing.T) {
	s, at := waitForCompaction(t)
	s.Restart()
	s.v, s.n = sessiontest.NewViewer(), 0
	view, err := s.Host.Attach(t.Context(), "s", &session.Client{Viewer: s.v}, at)
	if err != nil {
		t.Fatal(err)
	}
	if err := view.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.settle()
	done := s.compactions(at)
	if got := outcomes(done); !slices.Equal(got, []string{"failed", "done"}) || done[0].Cause != event.CauseInterrupted {
		t.Errorf("compactions = %+v", done)
	}
	if got := lastAnswer(t, s.Verify("s")); got != "on" {
		t.Errorf("answer = %q", got)
	}
}

func TestASummaryHasItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &scriptedModel{lines: []scriptedReply{{text: "hi"}, {text: "on"}}, summaries: []scriptedReply{{wait: make(chan struct{})}}}
		config := eager()
		config.Compaction.TimeoutMs = 90_000
		s := squeeze(t, m, config)
		s.say("first")
		at, began := s.end(), time.Now()
		s.Send("s", event.InputAcceptedData{Prompt: "second"})
		time.Sleep(90 * time.Second)
		synctest.Wait()
		done := s.compactions(at)
		if len(done) != 1 || done[0].Outcome != "failed" || !strings.Contains(done[0].Error, "1m30s") || time.Since(began) != 90*time.Second {
			t.Errorf("compactions = %+v after %s", done, time.Since(began))
		}
		s.Host.Close()
	})
}

func TestAnotherModelCanSummarise(t *testing.T) {
	talks, sums := &scriptedModel{lines: []scriptedReply{{text: "hi"}, {text: "on"}}}, &scriptedModel{summaries: []scriptedReply{{text: "They said hi."}}}
	config := eager()
	config.Compaction.Model = "small"
	s := &compactedSession{Fixture: sessiontest.New(t, talks), m: talks, v: sessiontest.NewViewer()}
	s.Options.Resolve = func(_ context.Context, as provider.Choice) (session.Endpoint, error) {
		if as.Model == "small" {
			return session.Endpoint{Model: sums, Name: "small", Window: 8000}, nil
		}
		return session.Endpoint{Model: talks, Name: "test"}, nil
	}
	s.Fixture.Restart()
	s.attach(session.Spec{Config: config}, &session.Client{})
	s.say("first")
	at := s.end()
	s.say("second")
	if done := s.compactions(at); len(done) != 1 || done[0].Outcome != "done" || done[0].CompactionTokensUsed.Model != "small" {
		t.Errorf("compactions = %+v", done)
	}
	if req := sums.summed[0]; len(req.Messages) != 1 || req.Model != "small" || req.Tools == nil || req.Tools.List[0].Name != compact.WriteSummary {
		t.Errorf("the other model was asked %+v", req)
	}
}

func TestHooksHaveASayInACompaction(t *testing.T) {
	var mu sync.Mutex
	output, before, after := "", 0, make(chan struct{}, 2)
	hook := func(_ context.Context, _ event.SessionID, kind string, input json.RawMessage) (json.RawMessage, error) {
		mu.Lock()
		defer mu.Unlock()
		switch kind {
		case event.HookPreCompact:
			before++
			return json.RawMessage(output), nil
		case event.HookPostCompact:
			after <- struct{}{}
		}
		return nil, nil
	}
	m := &scriptedModel{lines: []scriptedReply{{text: "hi"}, {text: "on"}}, summaries: []scriptedReply{{text: "They said hi."}}}
	s := &compactedSession{Fixture: sessiontest.New(t, m), m: m, v: sessiontest.NewViewer()}
	s.attach(session.Spec{}, &session.Client{Hook: hook})
	s.say("first")
	output = `{"block":true,"reason":"not now"}`
	if d, err := s.Host.Context.Compact(t.Context(), "s", session.Squeeze{}); err != nil || d.Outcome != "skipped" || d.Error != "not now" {
		t.Errorf("a blocked one ended with %+v, %v", d, err)
	}
	output = `{"customInstructions":"Keep the names."}`
	if d, err := s.Host.Context.Compact(t.Context(), "s", session.Squeeze{}); err != nil || d.Outcome != "done" {
		t.Errorf("it ended with %+v, %v", d, err)
	}
	if last := m.summed[0].Messages; !strings.Contains(last[len(last)-1].Text, "Keep the names.") {
		t.Errorf("the summariser was told %q", last[len(last)-1].Text)
	}
	for range 2 { // nobody waits for these hooks, so they may come late
		<-after
	}
	mu.Lock()
	defer mu.Unlock()
	if before != 2 {
		t.Errorf("hooks were asked %d times before a compaction, want 2", before)
	}
}

func TestAHandoffChangesNothingButTheLedger(t *testing.T) {
	m := &scriptedModel{lines: []scriptedReply{{text: "hi"}}, summaries: []scriptedReply{{text: "They said hi."}}}
	s := squeeze(t, m, event.SessionConfiguredData{})
	if text, err := s.Host.Context.Handoff(t.Context(), "s", ""); text != "" || err != nil {
		t.Errorf("of an empty session: %q, %v", text, err)
	}
	s.say("first")
	at := s.end()
	if text, err := s.Host.Context.Handoff(t.Context(), "s", ""); text != "They said hi." || err != nil {
		t.Errorf("handoff = %q, %v", text, err)
	}
	if s.end() != at+1 || len(s.since(at, event.LedgerRequest)) != 1 || s.byPurpose()[event.PurposeHandoff].Requests != 1 {
		t.Errorf("%d events were recorded; want one request in the ledger", s.end()-at)
	}
	if _, err := s.Host.Context.Handoff(t.Context(), "s", ""); err == nil {
		t.Error("no error although there was no summary")
	}
}
