package turn_test

import (
	"fmt"
	"testing"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/turn"
	"github.com/abide-run/abide/internal/turn/turntest"
)

// rested is a turn that comes to its end, after which the session is idle.
var rested = []event.Payload{accepted, message, asked, words, ended, idle}

func keyedInput(n int) event.Payload {
	return event.InputAcceptedData{InputID: fmt.Sprint("input", n), Mode: event.ModeQueue, Key: fmt.Sprint("key", n)}
}

func keyedAnswer(n int) event.Payload {
	return event.UserInputDoneData{RequestID: fmt.Sprint("request", n), Answer: &event.Answered{Key: fmt.Sprint("key", n)}}
}

// load reads the writer's log as another process would.
func (w *writer) load() *turn.State {
	w.t.Helper()
	loaded := turn.New("s")
	if err := loaded.Load(w.events); err != nil {
		w.t.Fatal(err)
	}
	return loaded
}

// TestKeysOutliveEventsWithoutKeys: a request that is sent again with its key must
// not be carried out twice because many events that carry no key, or an answer's
// key, came between.
func TestKeysOutliveEventsWithoutKeys(t *testing.T) {
	for name, between := range map[string]func(int) event.Payload{
		"answers without a key": func(int) event.Payload { return allowed("c1") },
		"inputs without a key":  func(int) event.Payload { return accepted },
		"answers with keys":     keyedAnswer,
	} {
		w := newWriter(t).add(start, keyedInput(-1))
		for n := range 200 {
			w.add(between(n))
		}
		w.add(rested...)
		if got := w.load().Sent("key-1"); got != "input-1" {
			t.Errorf("%s: the key is that of %q, want input-1", name, got)
		}
		turntest.LoadedEqualsFolded(t, w.events, w.state)
	}
}

// TestOldKeysAreForgottenAlikeByLoading: the last 64 requests are remembered, and
// the last 64 answers, whichever way the state came about.
func TestOldKeysAreForgottenAlikeByLoading(t *testing.T) {
	w := newWriter(t).add(start)
	for n := range 100 {
		w.add(keyedInput(n), keyedAnswer(n))
	}
	w.add(rested...)
	turntest.LoadedEqualsFolded(t, w.events, w.state)
	loaded := w.load()
	for n, want := range map[int]bool{0: false, 35: false, 36: true, 99: true} {
		key := fmt.Sprint("key", n)
		if got := loaded.Sent(key) != ""; got != want {
			t.Errorf("request %d is remembered: %v, want %v", n, got, want)
		}
		if got := loaded.Won(fmt.Sprint("request", n), key); got != want {
			t.Errorf("answer %d is remembered: %v, want %v", n, got, want)
		}
	}
}

// TestASkillIsToldInWhicheverTurnComesNext: a skill that was invoked is not
// forgotten when the turn is one that a notification has opened, when the session
// is idle before the model was told, or when the log is loaded.
func TestASkillIsToldInWhicheverTurnComesNext(t *testing.T) {
	invoked := event.SkillInvokedData{Name: "dance", Content: "Do it twice."}
	told := event.UserMessageData{Content: "Do it twice.", InteractionID: "x", Source: "skill-dance"}
	news := event.SystemNotificationData{Content: "news", InteractionID: "n"}
	commanded := []event.Payload{command, carried, event.CommandDoneData{RequestID: "x"}, idle}
	said := func(s *turn.State) bool { _, ok := turn.Next(s, nothing).(turn.Say); return ok }
	for _, test := range []struct {
		name string
		log  []event.Payload
		want bool // the model is to be told the skill now
	}{
		{"a message opens the turn", []event.Payload{invoked, accepted, message}, true},
		{"a notification opens the turn", []event.Payload{invoked, news}, true},
		{"in a turn", []event.Payload{accepted, message, invoked}, true},
		{"idle meanwhile", append(append([]event.Payload{invoked}, commanded...), news), true},
		{"a whole turn meanwhile", append(append([]event.Payload{invoked, news, asked, words, ended}, commanded...), accepted, message), true},
		{"the turn was stopped", []event.Payload{accepted, message, invoked, event.AbortData{}, idle, news}, true},
		{"told", []event.Payload{invoked, accepted, message, told}, false},
		{"told, idle, the next turn", append(append([]event.Payload{invoked}, accepted, message, told, asked, words, ended, idle), news), false},
		{"taken back", []event.Payload{invoked, idle, event.HistoryHiddenData{From: 1, To: 2}, news}, false},
	} {
		w := newWriter(t).add(start).add(test.log...)
		if got := said(w.state); got != test.want {
			t.Errorf("%s: the skill is told: %v, want %v", test.name, got, test.want)
		}
		turntest.LoadedEqualsFolded(t, w.events, w.state)
	}
}

// TestNothingOfATurnOutlivesIdle: what Load does not read must not be there when it
// is folded, even in a log that says that a session is idle in the middle of its
// work.
func TestNothingOfATurnOutlivesIdle(t *testing.T) {
	for _, log := range [][]event.Payload{
		{accepted},
		{accepted, hooks(event.HookPromptSubmitted)},
		{accepted, message, asked, calls, intended("c1"), hooks(event.HookPreToolUse, "c1")},
		{accepted, message, asked, words, ended, hooks(event.HookSessionEnd)},
		{command, carried, accepted, event.CommandDoneData{RequestID: "x", Stop: true}},
		{accepted, message, event.SessionSuspendedData{Suspended: true}},
		{accepted, message, event.SessionModelChangeData{NewModel: "n", PreviousModel: "m"}},
		{event.SessionResumeData{}},
		{event.AbortData{}},
	} {
		w := newWriter(t).add(start).add(log...).add(idle)
		turntest.LoadedEqualsFolded(t, w.events, w.state)
	}
}
